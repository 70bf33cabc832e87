"""Detects credentials that are ordinary words or short numbers: seed phrases, door codes, a word to type when asked.

The value proves little here, so the words around it must be plain.
"""

from __future__ import annotations

import re

from .credential_values import is_standard, is_state, looks_secret

_FUNCTION_WORDS = frozenset(
    ("the", "and", "for", "was", "are", "has", "have", "had", "not", "from", "his", "her", "but",
     "our", "their", "which", "been", "its", "than", "who", "how", "why", "could", "would",
     "were", "does", "did", "must", "may", "being", "these", "those", "into", "onto", "upon")
)  # fmt: skip
"""Words of three letters and more that ordinary sentences need and the word list of BIP 39 does not contain."""
_SEED_LENGTH = 12
_WALLET = re.compile(r"seed|recovery|mnemonic|wallet|ledger|trezor|metamask|bip-?39|(?:12|24)[ -]words?", re.I)
SEED_RUN = re.compile(
    r"\b(?P<value>[a-z]{3,8}(?:(?:[ \t]+|[ \t]*[,;|][ \t]*|[ \t]*\n[ \t]*)(?:\d{1,2}[.):][ \t]*)?[a-z]{3,8}\b){11,40})"
)
DOOR_CODE = re.compile(
    r"\b(?:punch|key|type|tap|press|dial|enter|use|takes|with|code|opens? (?:with|on|to)|unlocks? with|tippe?|gib|"
    r"drücke?|mit|tapez|avec|marca|con|com)\s+(?:(?:in|the|den|code|is|ist|le)\s+){0,2}"
    r"(?P<value>\d{4,8}[#*]?)(?![\w*#]|[.,:/-]\d)(?!\s*(?:%|(?!and|at|on|to|then|last|when|for|und|dann|an|am|"
    r"ein|et|y|e\b)[a-zäöü]{2,}))",
    re.I,
)
_DOOR = re.compile(
    r"\b(?:(?:front|back|side|main|garage)?[ -]?door|gate|garage|entrance|lobby|lock ?box|key ?safe|keypad|shed|"
    r"\w*tür|haupteingang|garagentor|tor|porte|portail|digicode|puerta|portón|porta|portão)\b",
    re.I,
)
_YEAR = re.compile(r"(?:19|20)\d\d")
WORD_TO_TYPE = re.compile(
    r"\b(?:type|enter|key in|input)\s+(?P<quote>[\"'`“‘]?)(?P<value>[^\s\"'`”’]{5,64})[\"'`”’]?,?\s+"
    r"(?:when(?:ever)?|if|once|as soon as)\s+[^.\n]{0,20}?\b(?:ask(?:s|ed)?|prompt(?:s|ed)?|challenged)\b",
    re.I,
)
TYPE_AFTER_ASKED = re.compile(
    r"\b(?:when(?:ever)?|if|once)\s+[^.\n]{0,40}?\b(?:ask(?:s|ed)?|prompt(?:s|ed)?)\b[^.\n]{0,40}?[,\s]\s*"
    r"(?:just\s+)?(?:type|enter|key in|input)\s+(?P<quote>[\"'`“‘]?)(?P<value>[^\s\"'`”’]{5,64})[\"'`”’]?"
    r"(?=[.,;!]?\s*$|[.;!]\s)",
    re.I | re.M,
)
_ORDINARY_INPUT = re.compile(
    r"yes|continue|confirm|proceed|delete|overwrite|accept|agree|destroy|approve|install|uninstall|restart|default|"
    r"password|passphrase|username|localhost|production|development|staging|anything|nothing|whatever|something|"
    r"everything|numbers?|address|email|credentials?|details|information|your|that|this|them|their|the|exactly|only",
    re.I,
)
_ASKED_FOR_OTHER = re.compile(
    r"\b(?:ask|prompt)\w* (?:you )?for (?!it\b|(?:(?:the|a|your|my|its) )?(?:[\w-]+ )?(?:pass|code|pin|secret))", re.I
)
_PASSWORD = re.compile(r"pass(?:word|phrase|code)|\bsudo\b|unlock|log ?in|vault|decrypt", re.I)
WORDS_FROM_TO = re.compile(
    r"\bpass(?:word|phrase|code)\b[^.\n]{0,40}?\bfrom\s+(?P<quote>[\"'`“‘]?)(?P<old>[^\s\"'`”’]{5,60})[\"'`”’]?\s+to\s+"
    r"[\"'`“‘]?(?P<value>[^\s\"'`”’]{5,60})",
    re.I,
)
_OWNED = re.compile(
    r"\b(?:my|his|her|their|admin|root|wi-?fi|router|guest|laptop|account|server|database|vault|\w+['’]s)\b", re.I
)
_DESCRIBED = re.compile(
    r"(?i:optional|required|plain-?text|plain|hash\w*|manual|default|disabled?|enabled?|weekly|monthly|digits|"
    r"characters|sms|email|bcrypt|argon2?|scrypt|clear-?text|numeric|alpha\w*|text|number|string|varchar|single|"
    r"server|client|yearly|quarterly|never|always|local|remote|upper\w*|lower\w*|keychain|vault|\w*pass|\w*warden)"
)
GERMAN_WORD = re.compile(
    r"\b(?:[\wäöü]+-?)?(?:passwort|kennwort)\b(?:\s+(?:für|fürs|von|vom|am|im|zum|zur|der|des|beim)(?:\s+[\w-]+){1,4}?)?"
    r"\s+(?:lautet|heißt|heisst)\s+(?:jetzt\s+|nun\s+|seit\s+\w+\s+)?[\"'„“‚]?(?P<value>[\w!?#-]{5,40})[\"'“”‘]?[.!]?"
    r"(?=\s*$|\s+(?:und|bis)\b)",
    re.I | re.M,
)
GERMAN_LOGIN = re.compile(
    r"\b(?:melde[tn]?|logge?n?|einloggen|anmelden)\b[^.\n]{0,40}?\bmit\s+[\"'„“]?(?P<value>[A-Za-zäöüÄÖÜß]{5,}[\w!?#-]*"
    r"\d{1,4}[!?#]?)[\"'“”]?\s+(?:an|ein)\b",
    re.I,
)
SPACED_SEED = re.compile(
    r"(?<![\w-])(?P<value>[A-Z2-7]{4}(?: [A-Z2-7]{4}){3,15}|[a-z2-7]{4}(?: [a-z2-7]{4}){3,15})(?: ?[\w]{1,3})?(?![\w-])"
)


def has_seed_phrase(match: re.Match[str]) -> bool:
    """Return whether twelve words in a row could be of a wallet's word list, after words about wallets."""
    if not _WALLET.search(match.string, max(match.start() - 120, 0), match.end()):
        return False
    streak = 0
    for word in re.findall(r"[a-z]+", match["value"]):
        streak = 0 if word in _FUNCTION_WORDS else streak + 1
        if streak >= _SEED_LENGTH:
            return True
    return False


def is_door_code(match: re.Match[str]) -> bool:
    return not _YEAR.fullmatch(match["value"]) and _DOOR.search(_line(match)) is not None


def is_typed_word(match: re.Match[str]) -> bool:
    value = match["value"].rstrip(".,;!")
    if _ORDINARY_INPUT.fullmatch(value) or value.isupper() or is_state(value):
        return False
    if _ASKED_FOR_OTHER.search(_line(match)):
        return False
    if value.isalpha():
        return len(value) >= (5 if match["quote"] or _PASSWORD.search(_line(match)) else 9)
    return looks_secret(value, technical=False) or re.fullmatch(r"[A-Za-z]{3,}(?:-[A-Za-z]{3,})+", value) is not None


def changed_words(match: re.Match[str]) -> bool:
    """Return whether both values could be passwords that consist of letters."""
    values = [match[name].rstrip(".,;!") for name in ("old", "value")]
    if values[0].lower() == values[1].lower():
        return False
    parts = [part for value in values for part in (value, *value.split("-"))]
    if any(is_state(part) or _DESCRIBED.fullmatch(part) for part in parts) or any(map(_digits_only, values)):
        return False
    before = match.string[max(match.start() - 40, 0) : match.start()]
    compound = all(re.search(r"[a-z]-[a-z]|\w\d|[!@#$%^&*?]", value, re.I) for value in values)
    return bool(match["quote"]) or compound or _OWNED.search(before) is not None


def is_german_word(match: re.Match[str]) -> bool:
    return re.fullmatch(r"(?i:wie|immer|anders|genau|nicht|gleich|weiter\w*|noch)", match["value"]) is None


def is_german_login(match: re.Match[str]) -> bool:
    return looks_secret(match["value"], technical=False) and not is_standard(match["value"].upper())


def is_spaced_seed(match: re.Match[str]) -> bool:
    """Return whether groups of four base32 letters are mixed with digits as in a seed, not words or numbers."""
    groups = match["value"].split()
    mixed = sum(any(map(str.isdigit, group)) and any(map(str.isalpha, group)) for group in groups)
    letters = sum(any(map(str.isalpha, group)) for group in groups)
    return mixed >= 2 and letters >= len(groups) - 1


def _digits_only(value: str) -> bool:
    return not any(map(str.isalpha, value))


def _line(match: re.Match[str]) -> str:
    start, end = match.string.rfind("\n", 0, match.start()) + 1, match.string.find("\n", match.end())
    return match.string[start : end if end >= 0 else None]
