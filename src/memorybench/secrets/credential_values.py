"""Decides whether a value looks like a password or key, or is an amount, version, identifier or sample."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from .sample_values import is_sample

_STATES = re.compile(
    r"\w+(?:ed|en|ing|able|ible|ful|less|some)|wrong|strong|secure|unsafe|unique|random|secret|private|gone|"
    r"simple|memorable|complex|common|public|missing|correct|stale|invalid|better|longer|shorter|\w+ly",
    re.I,
)
"""Words that describe a password, such as `expired`, and are not a password themselves."""
_PROSE = re.compile(
    r"a|about|again|all|also|always|an|and|any|are|as|at|be|been|because|before|both|but|by|"
    r"case|characters|days|default|different|digits|down|each|easy|every|few|for|from|hard|has|"
    r"have|he|her|here|his|how|if|in|into|is|it|its|just|last|least|less|letters|long|many|"
    r"months|more|most|much|my|names|never|new|no|none|not|now|numbers|of|off|often|old|on|"
    r"once|one|only|or|other|our|out|over|own|per|reset|same|sensitive|she|short|signs|since|"
    r"so|some|still|strong|symbols|than|that|the|their|then|there|these|they|this|those|to|too|"
    r"under|until|up|use|user|very|was|we|weak|weeks|what|when|where|which|who|with|words|"
    r"years|you|your|als|am|an|anders|auch|auf|aus|bei|bis|das|dem|den|der|des|die|durch|ein|eine|einem|einen|einer|"
    r"er|es|für|hat|im|immer|ist|kein|keine|mit|muss|nach|nicht|noch|nur|oder|ohne|sie|sind|und|uns|unter|vom|von|vor|"
    r"wie|wird|wurde|zu|zum|zur|au|aux|avec|ce|cette|chez|comme|dans|de|des|deux|du|elle|en|encore|est|et|il|la|le|les|"
    r"leur|mais|ne|nos|notre|nous|ou|où|par|pas|plus|pour|qui|sa|sans|ses|son|sont|sous|sur|très|trop|un|une|vers|votre|"
    r"vous|antes|con|como|cada|de|del|desde|e|el|ella|en|entre|es|esta|fue|hasta|la|las|lo|los|más|muy|ni|no|nuestra|o|"
    r"para|pero|por|que|se|según|ser|sin|sobre|solo|su|sus|tiene|todas|todos|una|unos|y|ya|ao|aos|até|com|da|das|do|dos|"
    r"ela|ele|em|essa|foi|já|mais|mas|muito|na|nas|nem|no|nos|nossa|ou|pela|pelas|pelo|pelos|quem|sem|seu|sua|só|também|"
    r"tem|todos|uma"
)
"""Words of ordinary sentences, which a random passphrase does not contain."""

_ENVIRONMENT_NAME = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_AMOUNT = re.compile(
    r"[\d.,:/-]{1,15}(?-i:[a-z%]{0,12}|[A-Z%]{1,4}|[kKMGT]i?B)|\d{4}-\d\d-\d\dT[\d:.+-]+Z?|v\d[\w.-]*|"
    r"\d+%?-[a-z-]+|\d+x\d+[a-z]{0,3}",
    re.I,
)
_STANDARD = re.compile(
    r"(?:[A-Z]{1,6}\d{0,5}|[A-Z][a-z]{1,9}\d{0,5}|\d{1,5})(?:[-_/](?:[A-Z]{1,6}\d{0,5}|\d{1,5})){0,2}|"
    r"[a-z]{1,6}\d{2,5}(?:[a-z]\d)?|[A-Za-z]{2,}(?:[-_/.](?:[A-Za-z]{2,}|\d{1,4}))+"
)
"""Names of standards and identifiers, such as `RSA-4096`, `secp256k1` or `color-primary-500`."""
_TECHNICAL = re.compile(
    r"(?:argon|pbkdf|bcrypt|scrypt|sha|md|aes|rsa|oauth|fido|u2f|base|utf|ipv|http|tls|ssl|rfc|iso|ed|secp|blake|"
    r"chacha|"
    r"hmac|hs|rs|es|ps|win|windows|ios|android|python|node|java|postgres|mysql|gpt|claude|web|e2e|p2p|b2b|k8s|i18n|"
    r"x509|"
    r"ctrl|alt|shift|cmd|wpa|ldap|saml|kerberos|jwt|m2m|s2s)(?:ql|sql|js)?(?:[-_/+.]?v?\d[\w.+/-]*|[-_/+.][\w.+/-]*)?|1password|7-?zip\w*",
    re.I,
)
"""Names of algorithms, protocols and products, also with an ending: `sha256`, `oauth2`, `http-only`."""
_LOCATION = re.compile(
    r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+|\w+://.*|[\w-]+(?:\.[\w-]+)*\.(?:com|org|net|io|dev|md|py|js|ts|json|ya?ml|txt|"
    r"html?|toml|env|pem|[jt]sx|[cm]js|vue|go|rs|java|kt|cs|cpp|hpp?|rb|php|s?css|sql|lock|xml|csv|png|svg|jpe?g|exe|gz|"
    r"cfg|ini|sh|log|pdf|zip|internal|local|lan|example|test)(?:[/:].*)?|(?:[.~]?/|[\w.-]+/[\w.-]+/).*|\w+\(.*",
    re.I,
)
"""Values that are mail, web, host or file addresses, or function calls."""
_BASE64 = re.compile(r"(?=.*\d)(?=.*[a-z])(?=.*[A-Z])[A-Za-z0-9+/]{40,}={0,2}")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.I)
_SHA = re.compile(r"[0-9a-f]{7,64}", re.I)
_SIGNS = "!@#$%^&*+=~?"
_STRONG_SIGNS = "!@#$%^&*?"
_ENTROPY = 3.0
"""The least entropy of a random value, in bits per character. Sixteen random letters and digits have 3.5 or more.
Identifiers made of words have about as much, so a mixture of letters and digits is required as well."""


def _bare(value: str) -> str:
    return value.replace(" ", "").strip("\"'`“”‘’*").rstrip(".,;:!?)]")


def looks_secret(value: str, *, technical: bool = True) -> bool:
    """Return whether the value could be a secret: it mixes letters with digits or signs, or has 16 digits or signs.

    Amounts, dates, versions, addresses and samples do not count; nor, without `technical`, do names such as `sha256`.
    """
    value = _bare(value)
    if len(value) < 6 or is_sample(value) or _AMOUNT.fullmatch(value) or _ENVIRONMENT_NAME.fullmatch(value):
        return False
    if _is_location(value) or (not technical and _TECHNICAL.fullmatch(value)):
        return False
    letters = any(character.isalpha() for character in value)
    digits = any(character.isdigit() for character in value)
    if not letters:
        return len(value) >= 16
    return digits or any(sign in value[1:] for sign in _SIGNS)


def _is_location(value: str) -> bool:
    if _BASE64.fullmatch(value) and not is_made_of_words(value):
        return False  # base64 may contain slashes: it is not a path
    return _LOCATION.fullmatch(value) is not None


def is_standard(value: str) -> bool:
    return _STANDARD.fullmatch(_bare(value)) is not None


def is_hash_or_uuid(value: str) -> bool:
    return _UUID.fullmatch(value) is not None or _SHA.fullmatch(value) is not None


def is_state(value: str) -> bool:
    return _STATES.fullmatch(value) is not None


def is_strong(value: str, *, sign: bool = False) -> bool:
    """Return whether a value looks like a password even without a word such as "password" near it.

    With `sign`, it must contain one of the characters `!@#$%^&*?`.
    """
    value = value.strip("\"'`“”‘’").rstrip(".,;:)]*")
    if not 7 <= len(value) <= 40 or not looks_secret(value, technical=False) or not any(map(str.isdigit, value)):
        return False
    cases = any(map(str.isupper, value)) and any(map(str.islower, value))
    if any(one in value[1:] for one in _STRONG_SIGNS):
        return cases or len(value) >= 10
    if sign or _UUID.fullmatch(value) or _SHA.fullmatch(value):
        return False
    inner = re.search(r"[A-Za-z]\d+[A-Za-z]", value) is not None
    return cases and (
        inner or "_" in value or ("-" in value and re.search(r"[A-Za-z]+-[A-Za-z]+-\w", value) is not None)
    )


def is_chosen_word(value: str) -> bool:
    value = _bare(value)
    return len(value) >= 6 and not is_sample(value) and not _STATES.fullmatch(value) and not _is_location(value)


def is_passphrase(phrase: str) -> bool:
    words: Sequence[str] = re.findall(r"[^\W\d_]+", phrase.lower())
    if not words or words[0].endswith("ed") or any(map(_PROSE.fullmatch, words)):
        return False
    return sum(not _STATES.fullmatch(word) for word in words) >= 3


def is_random(value: str) -> bool:
    value = _bare(value)
    if len(value) < 16 or _UUID.fullmatch(value) or _SHA.fullmatch(value) or _ENVIRONMENT_NAME.fullmatch(value):
        return False  # ids and hashes often appear beside these words
    if is_sample(value) or _is_location(value):
        return False
    digits = sum(character.isdigit() for character in value)
    mixed = digits >= 2 and any(character.isalpha() for character in value) and not is_made_of_words(value)
    return mixed and _entropy(value) >= _ENTROPY


def is_hex_key(value: str) -> bool:
    """Return whether the value could be a key: 32 to 64 hex digits that look random.

    Hashes look the same; the context must decide.
    """
    return 32 <= len(value) <= 64 and _SHA.fullmatch(value) is not None and _entropy(value) >= _ENTROPY


def _entropy(value: str) -> float:
    shares = [count / len(value) for count in Counter(value).values()]
    return -sum(share * math.log2(share) for share in shares)


def is_made_of_words(value: str) -> bool:
    """Return whether every part is a word or number: `release-notes-2024-06`, `src/auth/token_v2.py`."""
    return all(re.fullmatch(r"[A-Za-z]{2,}\d{0,4}|v?\d+|[A-Za-z]|", part) for part in re.split(r"[-_./=+~]", value))
