"""Detects credentials that are ordinary words: seed phrases, a password to type when asked, a changed password.

The value itself proves little here, so the words around it must be clear.
"""

from __future__ import annotations

import re

from .credential_values import is_state, looks_secret

_FUNCTION_WORDS = frozenset(
    ("the", "and", "for", "was", "are", "has", "have", "had", "not", "from", "his", "her", "but",
     "our", "their", "which", "been", "its", "than", "who", "how", "why", "could", "would",
     "were", "does", "did", "must", "may", "being", "these", "those", "into", "onto", "upon",
     "der", "die", "das", "und", "mit", "von", "nicht", "ist", "les", "des", "est", "pour", "dans", "avec", "une",
     "que",
     "los", "las", "por", "con", "una", "del", "para", "uma", "com", "não", "dos", "das")
)  # fmt: skip
"""Common words of three or more letters that are not in the word lists of BIP 39, so not in a seed phrase."""
_MOST_REPEATED, _FEW_INITIALS = 2, 4
"""A seed phrase repeats at most _MOST_REPEATED words, and its words have more than _FEW_INITIALS different first
letters."""
_SEED_LENGTH = 12
_WALLET = re.compile(
    r"seed|recovery|mnem[oóôô]?\w*ni|wallet|ledger|trezor|metamask|bip-?39|wiederherst|récupération|recupera[cç]|"
    r"semilla|semente|monedero|billetera|cartera|carteira|portefeuille|"
    r"\b(?:12|24|twelve|zwölf|douze|doce|doze|vingt[ -]quatre|veinticuatro|vinte e quatro|vierundzwanzig)"
    r"[ -](?:\w+ )?(?:words?|wörter|worte|mots|palabras|palavras)",
    re.I,
)
SEED_RUN = re.compile(
    r"\b(?P<value>[a-zà-ÿ]{3,9}(?:(?:[ \t]+|[ \t]*[,;|–-][ \t]*|[ \t]*\n[ \t]*)(?:\d{1,2}[.):]?[ \t]*)?"
    r"[a-zà-ÿ]{3,9}\b){11,40})"
)
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
SPACED_SEED = re.compile(
    r"(?<![\w-])(?P<value>[A-Z2-7]{4}(?: [A-Z2-7]{4}){3,15}|[a-z2-7]{4}(?: [a-z2-7]{4}){3,15})(?: ?[\w]{1,3})?(?![\w-])"
)


def has_seed_phrase(match: re.Match[str]) -> bool:
    """Return whether the match has twelve words in a row that could be a seed phrase, near words about wallets."""
    if not _WALLET.search(match.string, max(match.start() - 120, 0), match.end() + 60):
        return False
    streak: list[str] = []
    for word in re.findall(r"[^\W\d_]+", match["value"]):
        streak = [] if word in _FUNCTION_WORDS else [*streak, word]
        last = streak[-_SEED_LENGTH:]
        # words of a published list are in alphabetical order, so that they begin with the same letters
        if (
            len(last) == _SEED_LENGTH
            and len(set(last)) >= _SEED_LENGTH - _MOST_REPEATED
            and len({word[0] for word in last}) > _FEW_INITIALS
        ):
            return True
    return False


def is_typed_word(match: re.Match[str]) -> bool:
    value = match["value"].rstrip(".,;!")
    if _ORDINARY_INPUT.fullmatch(value) or value.isupper() or is_state(value):
        return False
    if _ASKED_FOR_OTHER.search(_line(match)):
        return False
    if value.isalpha():
        return len(value) >= (5 if match["quote"] or _PASSWORD.search(_line(match)) else 9)
    return looks_secret(value, technical=False) or re.fullmatch(r"[A-Za-z]{3,}(?:-[A-Za-z]{3,})+", value) is not None


def is_password_change(match: re.Match[str]) -> bool:
    """Return whether the groups `old` and `value` of a match could be a password before and after a change."""
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


def is_spaced_seed(match: re.Match[str]) -> bool:
    """Return whether groups of four base32 characters mix letters and digits, as in a seed and not in words."""
    groups = match["value"].split()
    mixed = sum(any(map(str.isdigit, group)) and any(map(str.isalpha, group)) for group in groups)
    letters = sum(any(map(str.isalpha, group)) for group in groups)
    return mixed >= 2 and letters >= len(groups) - 1


def _digits_only(value: str) -> bool:
    return not any(map(str.isalpha, value))


def _line(match: re.Match[str]) -> str:
    start, end = match.string.rfind("\n", 0, match.start()) + 1, match.string.find("\n", match.end())
    return match.string[start : end if end >= 0 else None]
