"""Detects passwords by one rule: a word about passwords or logins, and near it a value that looks like a password.

How much the value must look like a password depends on the words between them. After "the password is", a word with a
number is enough. After "log in with", only a value that can hardly be anything else counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum

from .credential_values import is_hash_or_uuid, is_hex_key, is_random, is_state, looks_secret
from .sample_values import is_sample

PASSWORD = (
    r"(?:pass(?:words?|wd|phrases?|codes?|w[oö]rt(?:er)?)|pwd?|(?<!boarding )pass(?=\s*[:=])|kennw[oö]rt(?:er)?|"  # noqa: S105 - a pattern
    r"mots?[ _-]?de[ _-]?passe|mdp|contrase[ñn]as?|claves?|senhas?|palavras?[ -]?passe|"
    r"phrase[ -](?:de[ -]passe|secr[èe]te)|frase[ -](?:de[ -](?:paso|contrase[ñn]a)|passe|secreta))"
)
_PASSWORD = re.compile(rf"(?:\b|_|(?=(?:passw|kennw)ort)){PASSWORD}(?![^\W_])", re.I)
_NETWORK = re.compile(r"\b(?:wi-?fi|wlan|ssid|hotspot)\b", re.I)
_NETWORK_KEY = re.compile(
    r"\b(?:wi-?fi|wlan|ssid|network|netzwerk|hotspot|router|réseau|rede?)\b.{0,60}?\b(?:key|psk|"
    r"schlüssel|clé|clave|chave|code)\b",
    re.I,
)
_LOGIN = re.compile(
    r"\b(?:pass|log(?:s|ged|ging)?[ -]?(?:in|on)|sign(?:s|ed|ing)?[ -]?in|credentials?|creds?|accounts?|unlocks?|"
    r"asks?|asked|prompt(?:s|ed)?|gets? in(?:to)?|types?(?=\s)|typed|typing|enters?|wi-?fi|wlan|admin|root|sudo|"
    r"username|benutzer\w*|utilisateur|usuario|usuário|utilizador|decrypts?|zugang\w*|anmeld\w*|melde[tn]?|konto|"
    r"eingelogg\w*|einlogg\w*|einzuloggen|entsperr\w*|logge?|tipp\w*|gib|"
    r"identifiants?|connecte\w*|connexion|compte|acc[eè]s|d[ée]verrouill\w*|tape[rz]?|saisi\w*|"
    r"credenciales|acceso|accede\w*|cuenta|entra\w*|entr[éeo]|iniciar|desbloque\w*|ponga?|escrib\w*|teclea\w*|"
    r"credenciais|acess\w*|conta|digit[ae]\w*)\b",
    re.I,
)
KEY = (
    r"(?:keys?|secret[oa]?s?|segredos?|tokens?|credentials?|creds?|(?-i:PAT)|psk|(?:set-)?cookies?|"
    r"session(?:[ _-]?id)?|j?sessionid|phpsessid|\w*schlüssel|cl[ée]s?|jetons?|claves?|chaves?)"
)
KEY_NAMES = (
    "key", "secret", "segredo", "token", "cred", "pat", "psk", "cookie", "sess", "schlüssel", "cl", "jeton", "chave",
)  # fmt: skip
NAMES = (
    "pass", "pw", "kennw", "mdp", "contrase", "clave", "senha", "frase", "phrase",
    "admin", "root", "sudo", "user", "benutzer", "usuario", "usuário", "utili",
    "wifi", "wi-fi", "wlan", "ssid", "netw", "netzw", "hotspot", "router", "réseau", "rede",
    "log", "sign", "cred", "account", "unlock", "ask", "prompt", "get in", "gets in", "type", "enter", "decrypt",
    "zugang", "meld", "konto", "sperr", "tipp", "gib", "identifiant", "conne", "compte", "acc", "verrou", "tape",
    "saisi", "cuenta", "entr", "iniciar", "desbloq", "pon", "escrib", "tecle", "acess", "conta", "digit",
)  # fmt: skip
"""Lower-case strings. Each word about passwords or logins that is searched for contains one of them, so texts without
them are skipped."""

PREPOSITION = (
    r"(?:for|of|to|on|at|in|from|für|fürs|von|vom|am|im|zum|zur|der|des|beim|du|de|d['’][\w-]+|pour|sur|del|para|do|da|"
    r"dos|das|no|na|en|em)"
)
VERB = (
    r"(?:is|was|are|(?:should|will|shall|must)\s+be|be|stays|it['’]s|that['’]s|reads|remains|set to|changed to|uses?|"
    r"has|ist|war|wäre|lautet|hei(?:ß|ss)t|bleibt|das\s+ist|nutzt|verwendet|hat|"
    r"est|[ée]tait|sera|serait|reste|c['’]\s?est|ce\s+sera|utilise|es|era|será|ser[ií]a|sigue siendo|usa|"
    r"é|eh|foi|ficou|continua (?:sendo|a ser))"
)
_NOW = r"(?:now|still|currently|again|jetzt|nun|aktuell|noch|maintenant|ahora|agora|(?:since|seit|depuis|desde)\s+\w+)"
OPENING = r"[\s\"'`“‘«»›‹„‚*(]*"
_HEAD = re.compile(
    rf"[\"'*`)]*(?:\s*\([^)]{{0,40}}\))?(?:\s+(?:{_NOW}|nueva|nuevo|nova|novo|neu|new|old|admin|root|wifi))?"
    rf"(?P<of>\s+{PREPOSITION}(?:\s+[\w'’.&/-]+){{0,8}}?)?"
    rf"(?P<link>\s*[?,;–—-]?\s*(?:(?:it|that)\s+|{_NOW}\s+)?\b{VERB}(?:\s+{_NOW})?\b\s*[:=]?|\s*(?:[:=]|->|=>|→)|)\??{OPENING}",
    re.I,
)
"""Matches the text between a word such as "password" and a value, if it says that the value is the password."""
_SAID = re.compile(rf"(?:\b{VERB}(?:\s+{_NOW})?\b\s*:?|[:=→>]|[\s(][\"'`“‘«„‚]){OPENING}\Z", re.I)
CHANGED = re.compile(
    r"\b(?:chang|set|reset|updat|rotat|switch|ge?änder|änder|gesetz|setz|umgestell|remis|modifi|cambi|puse|puest|mud|alter|"
    r"troc|troq|defin)\w*",
    re.I,
)
_TO = re.compile(
    rf"(?:\s+{PREPOSITION}(?:\s+\S+){{1,8}}?|\s+(?:was|were|has|have|been|is|got|wurde|ist|hat|été|est|fue|ha|sido|foi|"
    rf"changed|rotated|updated|reset|switched|cambi\w+|mud\w+|alterada|changé|modifié|on|am|\w{{2,10}}day)){{0,4}}"
    rf"\s+(?:to|into|as|auf|zu|à|en|a|por|para){OPENING}",
    re.I,
)
_STILL = re.compile(
    rf"(?:[,;–—]|\b(?:still|then|weiterhin|noch|dann|toujours|encore|puis|todavía|sigue|luego|ainda|depois)){OPENING}\Z",
    re.I,
)
_JOINED = re.compile(
    r"(?:\b(?:and|then|with|using|use|try|just|to|as|put|pass|wants|expects|takes|und|dann|mit|nimm|nutze|verwende|auf|et|puis|avec|"
    rf"utilise[rz]?|y|e|luego|con|com|ponga?|usa|depois)|[,;/|–—]|\s\()[,:]?{OPENING}\Z",
    re.I,
)
_TYPE = re.compile(
    r"\b(?:typ(?:es?|ing)|enter(?:ing)?|key in|input|gib|gebe|tippe?|tape[rz]?|entrez|saisi\w*|escrib[ea]|teclea|"
    rf"introduc[ea]|ingres[ae]|digit[ae]|escreva|insira){OPENING}\Z",
    re.I,
)
_CREDENTIALS = re.compile(r"\b(?:credentials?|creds|zugangsdaten|identifiants|credenciales|credenciais)\b", re.I)
_WITH = re.compile(rf"\b(?:with|mit|avec|con|com){OPENING}\Z", re.I)
_NAMED_AFTER = re.compile(
    r"[\"'`”’»*)]*(?:\s*[,(–—-])?\s+(?:is|was|it['’]s|that['’]s|ist|war|est|c['’]est|es|era|é|as|als|comme|como|de)\s+"
    rf"(?!(?:an?|eine?|une?|una|uma?|not|kein|no)\s)(?:[\w'’-]+\s+){{0,3}}?{PASSWORD}(?!\w)",
    re.I,
)
_SENTENCE_END = re.compile(r"[.!][\"'”»)]*\s+(?=[^a-z\d\s])(?=.*\w)|(?<!:)\n", re.DOTALL)
_KEY = re.compile(rf"(?:(?<![^\W_])|(?<=schlüssel)){KEY}(?:[ _-]?(?:b64|base64|hex|value|\d{{1,2}}))?(?![^\W_])", re.I)
_KEY_AFTER = re.compile(
    rf"[\"'`”’»*)]*,?\s+(?:is|ist|est|es|é|as|als|comme|como)\s+(?:[\w'’-]+\s+){{0,3}}?{KEY}(?!\w)", re.I
)
_SETTING = re.compile(r"[\w.-]{2,40}=(?=.)")
_FEW_WORDS = re.compile(r"\W+(?:[\w'’-]+\W+){0,3}")
_PUBLIC = re.compile(
    r"sha-?\d*\b|md5|commit|digest|checksum|hash|etag|revision|\brev\b|merge|cherry|blob|tree|\b(?:\w+_)?id\b|sid\b|"
    r"site[ _-]?key|tracking|measurement|uuid|guid|trace|finger|empreinte|huella|impress|cache|"
    r"publi|públi|öffentlich|(?<!mail)(?<!mail[ -])(?:address|adresse)|dirección|"
    r"host[ -]?key|idempotency|partition|primary",
    re.I,
)
"""Words before values that are hashes, ids or otherwise not secret."""
_FINGERPRINT = re.compile(r"finger|empreinte|huella|impress|publi|públi|öffentlich", re.I)
_PUBLIC_BEFORE = 25
_RANDOM = re.compile(r"(?<![A-Za-z0-9+/_.~=%:@-])[A-Za-z0-9+/_.~=%-]{16,}")
_PUBLIC_ID = re.compile(
    r"(?:pk|cus|sub|acct|price|prod|pi|ch|in|org|usr|pub)[_-].*|AAAA.*|0x(?:.{40}|[0-9A-F]{8}|[0-9A-F]{16})|(?:0x)?[0-9A-F]{40}"
)
_BEFORE, _AFTER = 130, 60
"""Numbers of characters before and after a value that are searched for words about it."""
_SETTING_NAME = re.compile(r"[\"'][\w.-]+[\"']\s*[:=]\s*[\"']?\Z|\w=[\"']?\Z")
"""The name of another setting in JSON, HTML or a program, directly before a value."""
_LONG = 12
"""In characters. A value of this length or more is unlikely to be a product name with a number."""
_VALUE = re.compile(r"(?<![^\s\"'`“‘«»›‹„‚(*:=/|,])(?=\S*[\d!@#$%^&*?])[^\s\"'`“”‘’«»›‹„<>]{6,100}")
_UNLOCKING_PHRASE = re.compile(
    r"\b(?:unlock|open|decrypt|log|entsperr|öffn|entschlüssel|ouvr|déverrouill|déchiffr|abr|desbloque|descifr|decifr)\w*"
    r"(?:\s+\w+){0,2}?\s+(?:with|by|mit|avec|con|com)\s+(?:(?:the|dem|der|la|a|o)\s+)?(?:phrase|satz|frase)(?!\w)",
    re.I,
)
_PHRASE = re.compile(
    r"(?:(?P<quote>[\"'`“‘«„‚])[ \xa0]?|:[ \t]*)(?P<words>[^\W\d_]{2,20}(?:[ -][^\W\d_]{2,20}){2,11})"
    r"(?(quote)[ \xa0]?[\"'`”’»“‘]|[.!]?[ \t]*$)",
    re.M,
)
_ONE_WORD = re.compile(
    r"(?<=[\s\"'`“‘«„‚])(?P<quote>(?<=[\"'`“‘«„‚])[ \xa0]?)?(?P<words>[^\W\d_]{8,24})"
    r"(?(quote)[ \xa0]?[\"'`”’»“‘]|[.,;!]?[ \t]*(?:$|(?<=[.,;!]) ))",
    re.M,
)
_RULE = re.compile(
    rf"(?i:{PASSWORD})|\b(?i:must|please|enter|invalid|incorrect|wrong|least|expired|characters|required|cannot|should|"
    r"user|login|account|muss|bitte|falsch|zeichen|doit|veuillez|incorrecte?|caractères|debe|por favor|caracteres|deve|"
    r"field|forgot|reset|change|same|minimum|maximum)\b"
)
"""Words of messages and rules about passwords. A sentence with them contains no password."""
_EXAMPLE = re.compile(
    r"(?<![.@])\b(?:examples?(?!\.)|e\.g\.|placeholder|dummy|fake|such as|beispiele?|platzhalter|z\. ?b\.|exemples?|"
    rf"factice|fictif|ejemplos?|fictici[oa]s?|exemplos?|fictíci[oa]s?|\b(?:like|wie|comme|como){OPENING}\Z)",
    re.I,
)
_USER_BEFORE = re.compile(
    rf"(?:[:=]|\b(?:is|are|ist|sind|est|sont|es|son|é|são))\s*[\w.@+-]{{2,64}}"
    rf"\s*(?:[/|,]|\b(?:and|und|et|y|e))(?:\s+(?:then|dann|puis|luego|depois))?{OPENING}\Z"
)
_USER = re.compile(r"[\w.@+-]{2,64}[:/](?=[^/:]{6,}\Z)")


class Look(IntEnum):
    """How much a value looks like a password."""

    OTHER = 0
    POSSIBLE = 1
    """Letters with digits or signs, as an identifier may have them: `login-form2`."""
    LIKELY = 2
    """A word with a number, or three parts and more: `Tournesol-93`, `damp.quarry.7`."""
    CERTAIN = 3
    """Hardly anything else: `Gr4nite!Fox`."""


_REFERENCE = re.compile(
    r"(?:[\w.-]+/)*(?:[a-z]*|[A-Z]{1,4})#\d+|@?[\w./-]+@[~^v]?\d{1,3}(?:\.[\w.-]*)?|[\w.-]+[=<>]=?[\w.,%-]*|[A-Za-z]+\d{0,2}(?:\+[A-Za-z]*\d{0,2})+|"
    r"[.#-]{1,2}[A-Za-z_].*|AAAA.*|[^()]*\(.*|(?:pk|cus|sub|acct|price|prod|pi|ch|in|org|usr)_\w+|"
    r".*(?:__|--|//|[\\{}<>]).*|[\w.]+%|\$[\w.]+|&\w+;.*|[A-Za-z]+/[\d.]+"
)
"""Values that are not passwords: issue numbers, package versions, assignments, key combinations, public keys …"""
_DIGIT_IN_WORD = re.compile(r"[^\W\d_](?:[0134578]|\d{2,})[a-zà-ÿ]|[a-z]\d{2,}[A-Z]")
_WORD_AND_NUMBER = re.compile(r"[^\W\d_]{3,}\d+[^\W\d_]+\d|^[^\W\d_]{5,}[-_.]?\d{2,4}$")
_RANDOM_LENGTH = 20
_PART_END = re.compile(r"[-._!@#$%^&*?]+")


def look_of(value: str) -> Look:
    """Return how much a value, without quotes and final punctuation, looks like a password."""
    if not looks_secret(value, technical=False) or is_hash_or_uuid(value) or not any(map(str.isalpha, value)):
        return Look.OTHER
    if _REFERENCE.fullmatch(value):
        return Look.POSSIBLE
    has_digit = any(map(str.isdigit, value))
    has_sign = any(sign in value[1:] for sign in "!@#$%^&*?")
    if value.isupper() and not has_sign:
        return Look.OTHER
    words = [part for part in _PART_END.split(value.replace(".", "x")) if part[:1].isalpha()]
    capitals = any(map(str.isupper, value))
    mixed_case = 0 < sum(word[0].isupper() for word in words) < len(words)
    if has_digit and ((has_sign and (capitals or len(value) >= 10)) or _DIGIT_IN_WORD.search(value) or mixed_case):
        return Look.CERTAIN
    if has_digit and len(value) >= _RANDOM_LENGTH and is_random(value):
        return Look.CERTAIN
    if has_sign or (has_digit and (capitals or len(_PART_END.split(value)) >= 3 or _WORD_AND_NUMBER.search(value))):
        return Look.LIKELY
    return Look.POSSIBLE


def find_keys(text: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of random values that the words around them call a key, token or secret."""
    for match in _RANDOM.finditer(text):
        setting = _SETTING.match(match[0])
        value = match[0][setting.end() if setting else 0 :].rstrip(".")
        if not (is_random(value) or is_hex_key(value)) or _PUBLIC_ID.fullmatch(value):
            continue
        before, after = sentence_before(text, match.start()), text[match.end() : match.end() + _AFTER]
        is_fingerprint = _FINGERPRINT.search(before) is not None
        name = last_match(_KEY, before)
        if name is not None:
            between = before[name.end() :]
            is_named = _FEW_WORDS.fullmatch(between) or _SAID.search(between) or _JOINED.search(between)
            before = before[max(name.start() - _PUBLIC_BEFORE, 0) :]
        else:
            is_named = _KEY_AFTER.match(after)
        if is_named and not _PUBLIC.search(before) and not is_fingerprint:
            end = match.start() + len(match[0].rstrip("."))
            yield end - len(value), end


def find_passphrases(text: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of passwords of several words, in quotes or between a colon and the end of the line."""
    for match in _PHRASE.finditer(text):
        before = sentence_before(text, match.start("words"))
        name = last_match(_PASSWORD, before) or last_match(_UNLOCKING_PHRASE, before)
        if name is None or _RULE.search(match["words"]):
            continue
        is_phrase = re.search("phras|frase|satz", name[0], re.I) is not None
        between = before[name.end() :]
        head = _HEAD.fullmatch(between)
        is_changed = match["quote"] and _TO.fullmatch(between) and CHANGED.search(before)
        if (
            is_changed
            or (head and (head["link"] if match["quote"] else is_phrase))
            or (is_phrase and match["quote"] and (_SAID.search(between[:-1]) or not between[:-1].strip()))
        ):
            yield match.span("words")
    for match in _ONE_WORD.finditer(text):
        before = sentence_before(text, match.start("words"))
        name = last_match(_PASSWORD, before)
        if name and _NETWORK.search(before) and not is_state(match["words"]) and not is_sample(match["words"]):
            head = _HEAD.fullmatch(before[name.end() :])
            if head and (head["link"] or match["quote"] is not None):
                yield match.span("words")


def find_passwords(text: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of the passwords in a text."""
    for match in _VALUE.finditer(text):
        start, value = match.start(), match[0].rstrip(".,;:)]}*|")
        user = _USER.match(value)
        if user is not None and _PUBLIC.match(user[0]):
            continue
        if user is not None:
            start, value = start + user.end(), value[user.end() :]
        look = look_of(value)
        if look and look >= _needed(text, match.start(), start + len(value), has_user=user is not None):
            yield start, start + len(value)


def _needed(text: str, start: int, end: int, *, has_user: bool) -> int:
    """Return the least Look that text[start:end] needs to count as a password; above CERTAIN: it never counts."""
    never = Look.CERTAIN + 1
    before = sentence_before(text, start)
    after = sentence_after(text, end)
    name = last_match(_PASSWORD, before) or last_match(_NETWORK_KEY, before)
    if name is not None:
        between = before[name.end() :]
        head = _HEAD.fullmatch(between)
        # in "the password for the NAS Tulip-42," the value is last, in "the password for web-02 expires" it is none
        is_last = (
            head is not None and (head["of"] or "").count(" ") != 1 and (not head["of"] or not after[:1].isspace())
        )
        if head and (head["link"] or is_last):
            return Look.POSSIBLE if head["link"] else Look.LIKELY
        if _SETTING_NAME.search(between):
            return never
        if _TO.fullmatch(between) and (CHANGED.search(before) or CHANGED.search(after)):
            return Look.POSSIBLE
        if has_user or _SAID.search(between) or _STILL.search(between):
            return Look.LIKELY
        return Look.CERTAIN
    if _NAMED_AFTER.match(after):
        return Look.LIKELY
    has_user = has_user or _USER_BEFORE.search(before) is not None
    named = before + text[start:end]
    if _PUBLIC.search(before) or _SETTING_NAME.search(before) or not (_LOGIN.search(named) or _LOGIN.search(after)):
        return never
    typed = _TYPE.search(before) is not None
    if (
        has_user
        or (typed and _CREDENTIALS.search(before))
        or (end - start >= _LONG and (typed or _WITH.search(before)))
    ):
        return Look.LIKELY
    return Look.CERTAIN if typed or _SAID.search(before) or _JOINED.search(before) else never


def is_example(text: str, start: int) -> bool:
    """Return whether the words before a value say that it is an example."""
    return _EXAMPLE.search(sentence_before(text, start)) is not None


def last_match(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    return next(reversed(list(pattern.finditer(text))), None)


def sentence_after(text: str, start: int) -> str:
    """Return the part of the sentence that is after this offset."""
    return _SENTENCE_END.split(text[start : start + _AFTER])[0]


def sentence_before(text: str, end: int) -> str:
    """Return the part of the sentence that is before this offset."""
    before = text[max(end - _BEFORE, 0) : end]
    ends = [match.end() for match in _SENTENCE_END.finditer(before)]
    return before[ends[-1] :] if ends else before
