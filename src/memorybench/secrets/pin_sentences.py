"""Detects PINs and door codes: a few digits that the words around them call a code, or say to open something.

The digits themselves prove nothing, so the words around them must be clear.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .credential_sentences import CHANGED, OPENING, VERB, last_match, sentence_after, sentence_before

_PLACE_WORD = (
    r"(?:doors?|gates?|garage|entrance|lobby|lock ?box|key ?safe|keypad|shed|safe|vault|lockers?|padlock|alarm|"
    r"building|\w*tür|haupteingang|\w*tor|tresor|spind|alarmanlage|\w*schloss|"
    r"porte|portail|coffre|immeuble|cadenas|puerta|portal|portón|caja fuerte|candado|alarma|garaje|edificio|"
    r"porta|portão|cofre|cadeado|alarme|garagem|prédio)"
)
_PLACE = re.compile(rf"\b{_PLACE_WORD}\b|\b(?:unlocks?|entsperr\w*|déverrouill\w*|desbloque\w*|disarms?)\b", re.I)
_LOCK = re.compile(
    r"\b(?:\w*lock|lock ?box|safe|\w*schloss|tresor|cadenas|candado|cadeado|coffre|cofre)(?:\s+\w+)?\s*"
    rf"(?:\b{VERB}\b|[:=]){OPENING}\Z",
    re.I,
)
_PIN = re.compile(
    r"\b(?:pins?(?:[\s-]+(?:codes?|number|nummer))?|puk|\w*geheimzahl|passcode|digicode|cv[cv]2?|combo|combination|kombination|"
    rf"combinaison|combinaci[oó]n|combina[çc][ãa]o|keypad|(?:{_PLACE_WORD}|entry|access|security|unlock|voicemail|"
    r"garagen|eingangs|zugangs)[\s-]*code|(?:code|c[óo]digo)\s+(?:pin|secret|de\s+(?:la\s+|ma\s+)?carte))\b",
    re.I,
)
_CODE_WORD = re.compile(
    r"(?<!zip )(?<!post)(?<!postal )(?<!error )(?<!status )(?<!source )(?<!discount )(?<!promo )"
    r"\b(?:codes?|c[óo]digos?)\b(?!\s+(?:postal|d['’]erreur|de erro|de error|source|fuente|fonte|de barras))",
    re.I,
)
_CODE = re.compile(
    r"(?<![\w.,:/+#$€£-])(?P<value>\d{3} \d{3}|\d{3,8}[#*]?|\d{1,2}(?:-\d{1,2}){2,4}|"
    r"(?:[A-Z]?\d{2,6}[A-Z]\d{0,5}|\d[A-Z]\d{3,5}|[A-Z]\d{4,6})[#*]?)(?![\w-]|[.,:/]\d)"
    r"(?!\s*(?i:[%€$]|digit|char|number|time|attempt|minute|second|hour|day|year|people|person|user|page|point|eur|usd|"
    r"dollar|stell|ziffer|zeichen|uhr|chiffre|caract|d[ií]gito|mal\b|fois|vez|veces|pins?\b|out\b|of\b))"
)
_DIRECT = re.compile(rf"(?:\s+(?:nr|no|number)\b\.?)?{OPENING}", re.I)
_SAID = re.compile(rf"(?:\b{VERB}(?:\s+(?:the|le|el|o|die|now|jetzt))?\s*:?|[:=]){OPENING}\Z", re.I)
_CHANGED_TO = re.compile(rf"\b(?:to|into|auf|zu|à|en|a|por|para){OPENING}\Z", re.I)
_MOST_BETWEEN = 60
_USED = re.compile(
    r"\b(?:punch|key|type|tap|press|dial|enter|use|takes|with|code|opens?|tippe?|gib|drücke?|mit|tapez|avec|marca|con|com)"
    rf"(?:\s+(?:in|on|to|the|den|code|is|ist|le)){{0,2}}{OPENING}\Z",
    re.I,
)
_COUNTED = re.compile(
    r"\s+(?!(?:and|at|on|to|then|last|when|for|und|dann|an|am|auf|scharf|frei|ein|et|y|e|puis|luego)\b)[^\W\d_]{2,}",
    re.I,
)
"""Matches the text after a number if it begins with a noun, so that the number is an amount."""
_YEAR = re.compile(r"(?:19|20)\d\d")
_NAMED_AFTER = re.compile(
    rf"\s+(?:is|ist|est|es|é)\s+(?:my|his|her|our|their|the|mein\w*|unser\w*|die|mon|le|la|mi|el|minha|a|o)\s+"
    rf"(?:[\w'’-]+\s+){{0,2}}?{_PIN.pattern}",
    re.I,
)
NAMES = (
    "pin", "puk", "geheimz", "passcode", "code", "códi", "codig", "cvc", "cvv", "comb", "kombin", "door", "gate",
    "lobby", "garage", "garaje", "entrance", "key", "lock", "safe", "vault", "shed", "alarm", "tür", "eingang", "tor",
    "tresor", "building", "spind", "schloss", "porte", "port", "coffre", "immeuble",
    "cadenas", "puerta", "caja", "candado",
    "edific", "cofre", "cadeado", "prédio", "sperr", "verrou", "desbloq", "disarm",
)  # fmt: skip
"""Lower-case strings. PINs are only searched for near one of them, which saves time."""


def find_pins(text: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of the PINs and door codes in a text."""
    for match in _CODE.finditer(text):
        start, end = match.span("value")
        if _is_code(match["value"].rstrip("#*"), sentence_before(text, start), sentence_after(text, end)):
            yield start, end


def _is_code(value: str, before: str, after: str) -> bool:
    has_place = _PLACE.search(before) is not None or _PLACE.search(after) is not None
    name = last_match(_PIN, before)
    if name is None and has_place:
        name = last_match(_CODE_WORD, before)
    if name is not None:
        between = before[name.end() :]
        is_word = name[0] == "pin"  # of an electronic part, too
        is_long = len(value) > 3 or name[0].lower().startswith("cv")
        is_direct = _DIRECT.fullmatch(between) is not None and not is_word
        is_changed = _CHANGED_TO.search(between) is not None and CHANGED.search(before + after) is not None
        if is_long and (is_direct or (len(between) <= _MOST_BETWEEN and (is_changed or _SAID.search(between)))):
            return True
    if _NAMED_AFTER.match(after):
        return True
    if _LOCK.search(before):
        return len(value) > 3 and not _COUNTED.match(after)
    is_used = has_place and _USED.search(before) is not None
    return is_used and len(value) > 3 and not _YEAR.fullmatch(value) and not _COUNTED.match(after)
