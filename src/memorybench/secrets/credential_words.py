"""Detects credentials by their name in a sentence ("my password is …") and the value beside it.

The name alone proves nothing ("the token is expired", "the key is AES-256"): the value must look like a password or a
random key. The names and verbs are those of English, German, French, Spanish and Portuguese.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from msgspec import Struct

from . import credential_phrases as phrases
from . import credential_sentences, pin_sentences
from .credential import Credential, Kind
from .credential_sentences import PASSWORD, PREPOSITION, VERB
from .credential_values import (
    is_chosen_word,
    is_passphrase,
    is_standard,
    is_state,
    is_strong,
    looks_secret,
)
from .sample_values import TEST_CARDS, is_reference
from .word_places import WordPlaces

_CARD = re.compile(r"\d(?<![\w.-].)(?:[ -]?\d){12,18}(?![.-]?\w)")
"""A payment card number. The lookbehind comes after the first digit, because that is faster."""
_ISSUERS = re.compile(r"4|5[1-5]|2[2-7]|3[47]|6011|65")
_CARD_LENGTHS = (13, 15, 16, 19)

_WHOSE = r"(?:my|his|her|our|their|the(?:\s+user's)?|mein|unser|das|die|mon|notre|le|la|mi|el|minha|a|o)"
_FOR = (
    r"(?:\s+(?:nueva|nuevo|nova|novo|actual|atual|neu|new|old|admin|root|wifi))?"
    rf"(?:\s+{PREPOSITION}(?:\s+[\w'’.-]+){{1,6}}?)?"
)
_IS = (
    rf"\s*(?:(?:[?,;:–-]?\s*(?:it|that)(?:['’]s|\s+is|\s+was)(?:\s+(?:now|still))?\b)|(?:\b(?:{VERB}))"
    r"(?:\s+(?:now|still|jetzt|nun|maintenant|ahora|agora|(?:since|seit|depuis|desde)\s+\w+))?\b\s*[:=]?|=>|->|[:=→>])\s*"
)


_KEY_NAME = (
    r"(?:(?:api|access|secret|private|signing|encryption|deploy|license|product|activation|master|account|auth|wi-?fi|"
    r"wlan|network|webhook|client|consumer|app|storage|hmac)[ _-]?(?:keys?|secrets?)(?:[ _-]?base)?|(?:pre-?shared|"
    r"shared)[ _-]?keys?|psk|secrets?|tokens?|credentials?|"
    r"(?:session|auth)[ _-]?(?:id|cookie|key)|auth[ _-]?session|session(?=\s*=)|sessionid|jsessionid|phpsessid|"
    r"(?:api|zugangs|geheim|wlan)-?\s?schlüssel|"
    r"cl[ée]\s+(?:d['’]\s?)?(?:api|secrète|privée)|jeton|(?:clave|chave)\s+(?:de\s+)?(?:api|acceso|acesso|secreta|"
    r"privada))"
)
_FORM = r"(?:_?(?:b64|base64|hex|enc|encoded|plain|raw|value|text|\d{1,2}))?"
"""Pattern for the optional end of a setting's name, such as `_b64` in `token_b64` or `2` in `password2`."""
_NAME = rf"(?P<name>{PASSWORD}|{_KEY_NAME})"
_VALUE = r"(?P<quote>[\"'`“‘«„]?)(?P<value>(?:\S ){5,100}\S(?!\S)|[^\s\"'`”’»“]{1,200})"
_GIVEN = re.compile(
    rf"(?<!\{{)(?:\b|_|(?=passw)){_NAME}{_FORM}\b[\"'*`]{{0,3}}(?:\s*\([^)]{{0,40}}\))?{_FOR}{_IS}[*]{{0,2}}\s*{_VALUE}",
    re.I,
)
_TYPED = re.compile(
    r"(?:--pass(?:word|wd)?[ =]|\bsshpass\s+-p\s*|\bmysql\b[^|;\n]{0,80}\s-p(?=\S)|\s-u\s+[\"']?[\w.@-]+:|"
    r"(?:^|[,;/|&(]\s*|\b(?:my|and)\s+)pass\s*:\s*|\blogin\s+\S{1,64}\s+password\s+)[\"']?(?P<value>[^\s\"']{6,200})",
    re.I | re.M,
)
"""A password in the syntax of a command line or config file."""
_SLASH = re.compile(
    r"(?:^|(?<=[\s:(*|`\"]))[a-z][\w.@+-]{1,64}\s+/\s+[`\"'*]{0,2}(?P<value>[^\s/`\"']{8,64})", re.I | re.M
)
"""Pattern for a user and a password without the word "password", as in `admin / Kestrel!22`."""
_OWNED = re.compile(
    rf"\b(?!(?:the|das|die|le|la|el|a|o)\s+(?!user)){_WHOSE}\s+(?:[\w'’-]+\s+){{0,2}}{PASSWORD}\s+is\s+"
    r"(?P<value>[a-z]{6,40})[.!]?[ \t]*$",
    re.I | re.M,
)
_PHRASE = re.compile(
    rf"\b(?:(?P<english>pass(?:word|phrase|code))|{PASSWORD})\b{_FOR}{_IS}[\"'`“‘]?"
    r"(?P<value>[a-z]{2,20}(?:(?:[_.-][a-z]{2,20}){2,11}(?=[\s,;.!\"'`”’]|$)|"
    r"(?(english)(?: [a-z]{2,20}){3,11}[.!]?[ \t]*$|(?!))))",
    re.I | re.M,
)
_JOINTS = 3
"""A passphrase with at least this many hyphens may contain any words."""
_ONE_TIME = re.compile(
    r"(?:(?<![a-z0-9])(?:totp|2fa|mfa|otp|authenticator|authentifi\w*|google auth\w*|authy)(?![a-z0-9])|"
    r"two[- ]factor|zwei-?faktor|2-?step|"
    r"double facteur|deux facteurs|dos factores|dois fatores|setup key)[^\n]{0,80}?(?<![\w-])"
    r"(?P<value>(?-i:[A-Z2-7]{4}(?:[ -]?[A-Z2-7]{4}){3,15}|[a-z2-7]{4}(?:[ -]?[a-z2-7]{4}){3,15}))(?![\w-])",
    re.I,
)
_RECOVERY = re.compile(
    r"(?:(?:recovery|backup|back-up|scratch|rescue|emergency|one-time)[ -](?:codes?|keys?)|(?:wiederherstellungs|"
    r"notfall|backup-?|"
    r"ersatz|einmal)-?(?:codes?|schlüssel)|codes?\s+de\s+(?:secours|récupération|sauvegarde)|"
    r"c[oó]digos?\s+de\s+(?:recuperaci[oó]n|recupera[cç][aã]o|respaldo|emerg[eê]ncia|emergencia|seguran[çc]a|"
    r"reserva|backup))"
    r"(?:[^\n]{0,60}?|[^\n]{0,60}\n\s*(?:\d{1,2}[.)]|[-*])?\s*)(?<![\w.-])"
    r"(?P<value>\d{6}(?:-\d{6}){7}|\d{6}(?:[,;\s]+(?:(?:and|und|et|y|e)\s)?\d{6}){2,}|"
    r"(?=[a-z-]*\d)[a-z0-9]{4,8}(?:-[a-z0-9]{4,8}){1,7}|"
    r"\d{4} \d{4}|\d{8}|"
    r"(?=[a-z]*\d)(?=\d*[a-z])[a-z0-9]{8,16})(?![\w.-]*[\w])",
    re.I,
)

_PASSWORD_WORDS = ("pass", "pw", "kennw", "mdp", "contrase", "clave", "senha")
_KEY_WORDS = (
    "key", "secret", "token", "cred", "schlüssel", "clé", "cle ", "jeton", "chave", "session", "sessid", "psk",
    "cookie",
)  # fmt: skip
_WALLET_WORDS = (
    "seed", "recovery", "mnem", "wallet", "ledger", "trezor", "metamask", "bip", "wiederherst", "récup", "recup",
    "semilla", "semente", "moneder", "billeter", "carter", "carteira", "portefeuille", "words", "wört", "worte", "mots",
    "palabras", "palavras",
)  # fmt: skip
_Accepts = Callable[[re.Match[str]], bool]


def _value_is(*checks: Callable[[str], bool]) -> _Accepts:
    """Return a function that tells whether the group `value` of a match passes at least one of the checks."""
    return lambda match: any(check(match["value"]) for check in checks)


def _accepts_name(match: re.Match[str]) -> bool:
    value = match["value"]
    return looks_secret(value) and (_called(match) == "password" or not is_standard(value))


def _accepts_quoted(match: re.Match[str]) -> bool:
    """Return whether the match is a password in quotes that begins with six letters or digits."""
    is_word = is_chosen_word(match["value"]) and re.match(r"\w{6}", match["value"])
    return bool(match["quote"] and is_word) and _called(match) == "password"


class _Rule(Struct, frozen=True):
    kind: Kind | None
    """The kind of credential; None: the name in the match determines it."""
    words: tuple[str, ...]
    """Lower-case strings. The pattern is only tried near one of them, which saves time."""
    pattern: re.Pattern[str]
    accepts: _Accepts


_NAMES = (*_PASSWORD_WORDS, *_KEY_WORDS)
_RULES = (
    _Rule(
        "one-time password seed",
        ("totp", "2fa", "mfa", "otp", "auth", "factor", "fakt", "2-step", "2step", "facteur",
         "factores", "fatores", "setup key"),
        _ONE_TIME,
        _value_is(lambda value: any(letter.isdigit() for letter in value)),
    ),
    _Rule(
        "recovery code",
        ("recovery", "backup", "back-up", "scratch", "rescue", "emerg", "one-time", "wiederher", "notfall", "ersatz",
        "einmal",
         "secours", "récup", "sauveg", "recup", "respaldo", "segur", "reserva"),
        _RECOVERY,
        bool,
    ),
    _Rule("password", (*_PASSWORD_WORDS, "-u ", "login"), _TYPED, _value_is(looks_secret)),
    _Rule("password", (" / ",), _SLASH, _value_is(lambda value: is_strong(value, sign=True))),
    _Rule(None, _NAMES, _GIVEN, _accepts_name),
    _Rule(None, _NAMES, _GIVEN, _accepts_quoted),
    _Rule("recovery phrase", _WALLET_WORDS, phrases.SEED_RUN, phrases.has_seed_phrase),
    _Rule("password", ("ask", "prompt"), phrases.WORD_TO_TYPE, phrases.is_typed_word),
    _Rule("password", ("ask", "prompt"), phrases.TYPE_AFTER_ASKED, phrases.is_typed_word),
    _Rule("password", ("pass",), phrases.WORDS_FROM_TO, phrases.is_password_change),
    _Rule("password", ("passwort", "kennwort"), phrases.GERMAN_WORD, phrases.is_german_word),
    _Rule("password", _PASSWORD_WORDS, _OWNED, _value_is(lambda value: not is_state(value))),
    _Rule("password", _PASSWORD_WORDS, _PHRASE, _value_is(is_passphrase, lambda value: value.count("-") >= _JOINTS)),
)  # fmt: skip
_Find = Callable[[str], Iterator[tuple[int, int]]]
_SENTENCES: tuple[tuple[Kind, tuple[str, ...], _Find], ...] = (
    ("PIN", pin_sentences.NAMES, pin_sentences.find_pins),
    ("password", credential_sentences.NAMES, credential_sentences.find_passwords),
    ("password", (*_PASSWORD_WORDS, "phrase", "frase"), credential_sentences.find_passphrases),
    ("API key or token", credential_sentences.KEY_NAMES, credential_sentences.find_keys),
)
_ALL_WORDS = frozenset(
    word for words in (*(rule.words for rule in _RULES), *(words for _, words, _ in _SENTENCES)) for word in words
)


def find_values(text: str) -> Iterator[Credential]:
    """Yield card numbers, one-time password seeds, and credentials that the words around them reveal."""
    for match in _CARD.finditer(text):
        if _is_card(match[0]):
            yield Credential("payment card number", match.start(), match.end())
    for match in phrases.SPACED_SEED.finditer(text):
        if phrases.is_spaced_seed(match):
            yield Credential("one-time password seed", match.start("value"), match.end("value"))
    places = WordPlaces(text, _ALL_WORDS, before=120, after=220)
    for kind, words, find in _SENTENCES:
        for start, end in places.windows(words):
            for first, last in find(text[start:end]):
                if not _is_mentioned(text, start + first, start + last):
                    yield Credential(kind, start + first, start + last)
    for rule in _RULES:
        for start, end in places.windows(rule.words):
            part = text[start:end]
            for match in rule.pattern.finditer(part):
                value = match["value"].rstrip(".,;:)]")
                if rule.accepts(match) and not is_reference(value) and not _is_mentioned(part, *match.span("value")):
                    at = start + match.start("value")
                    yield Credential(rule.kind or _called(match), at, at + len(value))


def _is_mentioned(text: str, start: int, end: int) -> bool:
    """Return whether the value is an example, or part of an Amazon resource name, which only refers to a secret."""
    return (
        credential_sentences.is_example(text, start)
        or re.search(r"\barn:aws[\w-]*:\S*\Z", text[max(start - 200, 0) : end]) is not None
    )


def _is_card(run: str) -> bool:
    number = "".join(filter(str.isdigit, run))
    if len(number) not in _CARD_LENGTHS or not _ISSUERS.match(number) or number in TEST_CARDS:
        return False
    return has_luhn_digit(number)


def has_luhn_digit(number: str) -> bool:
    """Return whether the last digit is the check digit of the others by the Luhn algorithm (ISO/IEC 7812-1)."""
    digits = [int(sign) for sign in number if sign.isdigit()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _called(match: re.Match[str]) -> Kind:
    is_password = re.fullmatch(PASSWORD.replace(r"(?=\s*[:=])", ""), match["name"], re.I)
    return "password" if is_password else "API key or token"
