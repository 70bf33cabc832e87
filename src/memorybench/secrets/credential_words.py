"""Detects credentials by their name in a sentence ("my password is …") and the value beside it.

The name alone proves nothing ("the token is expired", "the key is AES-256"): the value must look chosen or random. The
names and verbs are those of English, German, French, Spanish and Portuguese.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from . import credential_phrases as phrases
from .credential_values import (
    is_chosen_word,
    is_hex_key,
    is_mixed,
    is_passphrase,
    is_random,
    is_standard,
    is_state,
    is_strong,
    looks_secret,
)
from .sample_values import TEST_CARDS
from .word_places import NameStarts, Windows, WordPlaces, find_candidates, find_quotes, find_tokens

WordedKind = Literal[
    "payment card number", "PIN", "password", "recovery phrase", "API key or token", "one-time password seed",
    "recovery code",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class FoundValue:
    kind: WordedKind
    start: int
    end: int


_CARD = re.compile(r"\d(?<![\w.-].)(?:[ -]?\d){12,18}(?![.-]?\w)")
"""It begins with a digit, not with what must not precede it, because that is faster."""
_ISSUERS = re.compile(r"4|5[1-5]|2[2-7]|3[47]|6011|65")
_CARD_LENGTHS = (13, 15, 16, 19)

_WHOSE = r"(?:my|his|her|our|their|the(?:\s+user's)?|mein|unser|das|die|mon|notre|le|la|mi|el|minha|a|o)"
_PREPOSITION = (
    r"(?:for|of|to|on|at|in|für|fürs|von|vom|am|im|zum|zur|der|des|beim|du|de|d['’]|pour|del|para|do|da|dos|das|no|na|"
    r"en|em)"
)
_FOR = (
    r"(?:\s+(?:nueva|nuevo|nova|novo|actual|atual|neu|new|old|admin|root|wifi))?"
    rf"(?:\s+{_PREPOSITION}(?:\s+[\w'’.-]+){{1,6}}?)?"
)
_VERB = (
    r"is|was|are|reads|remains|bleibt|"
    r"(?:should|will|shall|must)\s+be|set to|changed to|ist|war|lautet|heißt|heisst|est|était|sera|es|"
    r"era|será|sería|seria|serait|wäre|é|eh|foi|ficou|c['’]\s?est|ce\s+sera|das\s+ist"
)
_IS = (
    rf"\s*(?:(?:[?,;:–-]?\s*(?:it|that)(?:['’]s|\s+is|\s+was)(?:\s+(?:now|still))?\b)|(?:\b(?:{_VERB}))"
    r"(?:\s+(?:now|still|jetzt|nun|maintenant|ahora|agora|(?:since|seit|depuis|desde)\s+\w+))?\b\s*[:=]?|=>|->|[:=→>])\s*"
)

_LOCKED = r"(?:safe|vault|lock|padlock|locker|gate|bike)"
_PIN_NAME = (
    r"(?:pin(?:[\s-]+(?:code|number|nummer))?|passcode|cv[cv]2?|"
    r"(?:alarm|door|gate|garage|entry|entrance|building|lobby|lock ?box|"
    r"access|lock|safe|keypad|security|unlock|voicemail|tür|haustür|zugangs)[\s-]*code|"
    r"(?:code|código|codigo)\s+(?:pin|secret|(?:de|du|do|da|del|d['’])\s*(?:l['’]|la\s+)?"
    r"(?:alarm[ea]?|porte|porta|puerta|portail|portón|portão|garage[mn]?|garaje|coffre|cofre|caja|immeuble|prédio|"
    r"accès))|"
    r"code(?=\s+(?:for|to|of)\s+(?:the|my|our)\s+(?:[\w'’-]+\s+)?(?:door|gate|garage|alarm|safe|lock|building|shed|"
    r"lockbox))|keypad|"
    rf"{_LOCKED}\s+(?:combination|opens\s+with)|combination(?=\s+(?:of|for|to)\s+(?:the|"
    rf"{_WHOSE})\s+(?:[\w'’-]+\s+)?{_LOCKED}\b))"
)
_PIN_VALUE = r"(?P<value>\d{3,8}[#*]?|\d{1,2}(?:-\d{1,2}){2,3})(?![\w-])(?!\s*(?:[a-z%]{2,12}\b(?<!and)(?<!cvv)|%))"
_PIN = re.compile(
    rf"\b{_PIN_NAME}\b{_FOR}\s*(?:\b(?:{_VERB})\b\s*:?|[:=]|"
    rf"(?<=code\s)(?=\d{{4,8}}[#*]?(?:[,.;)]|\s*$|\s+(?:and|then|at)\b))|"
    rf"(?<=cv[cv])|(?<=keypad)|(?<=opens with))\s*{_PIN_VALUE}",
    re.I,
)
_PIN_AFTER = re.compile(
    rf"\b(?P<value>\d{{3,8}})\s+(?:is|ist|est|es|é)\s+{_WHOSE}\s+(?:[\w'’-]+\s+){{0,2}}{_PIN_NAME}\b", re.I
)

_PASSWORD_NAME = (
    r"(?:pass(?:word|wd|phrase|code)s?|pwd?|passwort|passwörter|kennwort|mot\s+de\s+passe|mdp|contrase[ñn]a|clave|"  # noqa: S105 - a pattern
    r"senha|palavra[ -]passe|pass(?=\s*=))"
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
"""The end of a name of a setting: `token_b64`, `password2`."""
_NAME = rf"(?P<name>{_PASSWORD_NAME}|{_KEY_NAME})"
_VALUE = r"(?P<quote>[\"'`“‘«„]?)(?P<value>(?:\S ){5,100}\S(?!\S)|[^\s\"'`”’»“]{1,200})"
_GIVEN = re.compile(
    rf"(?<!\{{)(?:\b|_|(?=passw)){_NAME}{_FORM}\b[\"'*`]{{0,3}}(?:\s*\([^)]{{0,40}}\))?{_FOR}{_IS}[*]{{0,2}}\s*{_VALUE}",
    re.I,
)
_GIVEN_AFTER = re.compile(
    rf"(?<!\S)(?P<value>\S{{6,200}})\s+(?:(?:is|ist|est|es|é)\s+{_WHOSE}|as\s+(?:{_WHOSE}|an?)|als|comme|"
    rf"como(?:\s+(?:la|a))?)"
    rf"\s+(?:[\w'’-]+\s+){{0,2}}{_NAME}\b",
    re.I,
)
_CHANGED = re.compile(
    rf"\b(?:chang|set|reset|updat)\w*\s+(?:{_WHOSE}\s+)?(?:[\w'’-]+\s+){{0,2}}(?P<name>{_PASSWORD_NAME}){_FOR}"
    rf"\s+(?:(?:from\s+\S+\s+)?to|as)\s+{_VALUE}",
    re.I,
)
_FROM_TO = re.compile(
    rf"(?:\b|(?=passw)){_PASSWORD_NAME}\b{_FOR}"
    r"(?:\s+(?:was|were|has|have|been|is|got|gets|changed|rotated|updated|reset|switched|wurde|ist|hat|a|été|est|"
    r"fue|ha|"
    r"sido|foi|cambió|cambiada|mudou|alterada|changé|passé|modifié|on|am|\w{2,10}day)){0,4}"
    r"\s+(?:from|von|de|desde)\s+[\"'`“‘«„]?(?P<old>[^\s\"'`”’»“]{5,60})[\"'`”’»“]?"
    r"\s+(?:to|into|auf|zu|in|à|a|en|para|por|->|→)\s+[\"'`“‘«„]?(?P<value>[^\s\"'`”’»“]{5,60})",
    re.I,
)
_SET_TO = re.compile(
    rf"(?:\b|(?=passw)){_PASSWORD_NAME}\b{_FOR}"
    r"(?:\s+(?:wurde|ist|wird|habe|hat|jetzt|nun|neu|a|été|est|fue|foi|ha|sido|cambiada|alterada|changé|modifié)){0,3}"
    r"\s+(?:auf|en|à|por|para|a)\s+[\"'`“‘«„]?(?P<value>[^\s\"'`”’»“]{6,60})",
    re.I,
)
_TYPED = re.compile(
    r"(?:--pass(?:word|wd)?[ =]|\bsshpass\s+-p\s*|\bmysql\b[^|;\n]{0,80}\s-p(?=\S)|\s-u\s+[\w.@-]+:|"
    r"(?:^|[,;/|&(]\s*|\b(?:my|and)\s+)pass\s*:\s*|\blogin\s+\S{1,64}\s+password\s+)[\"']?(?P<value>[^\s\"']{6,200})",
    re.I | re.M,
)
"""Command-line and config file syntax."""
_ACCOUNT = (
    r"(?:log-?in|creds?|credentials?|account|zugangsdaten|zugang|anmeldung|konto|identifiants?|compte|"
    r"credenciales|credenciais|acceso|acesso|conta|cuenta)"
)
_PAIR = re.compile(
    rf"\b{_ACCOUNT}(?:\s+{_PREPOSITION}(?:\s+[\w'’.-]+){{1,3}}?)?\s*(?:\b(?:{_VERB})\b:?|->|=>|[:=→])\s*"
    r"[\w.@+-]{2,64}\s*[:/|,]\s*(?P<value>[^\s/]{6,200})",
    re.I,
)
_SLASH = re.compile(
    r"(?:^|(?<=[\s:(*|`\"]))[a-z][\w.@+-]{1,64}\s+/\s+[`\"'*]{0,2}(?P<value>[^\s/`\"']{8,64})", re.I | re.M
)
"""`admin / Kestrel!22`: without any name."""
_GIVE = re.compile(
    r"\b(?:type|enter|key in|input|use|try|with|using|and|gib|gebe|geben Sie|tippe?|nutze|verwende|mit|und|tapez|tape|"
    r"entrez|entre|saisis(?:sez)?|saisir|utilise[rz]?|avec|et|escrib[ea]|introduc[ea]|ingres[ae]|teclea|pon|usa|con|y|"
    r"digit[ea]|escreva|insira|com|e)[,:]?\s+[\"'`“‘«„]?(?P<value>[^\s\"'`”’»“]{7,64})",
    re.I,
)
_LOGIN = re.compile(
    r"\blog(?:s|ged|ging)?[ -]?(?:in|on)|\bsign(?:s|ed|ing)?[ -]?in|unlock|prompt|\basks?\b|\basked\b|\bget in|"
    r"pass(?:word|code|phrase|wort)|kennwort|anmeld|einlogg|entsperr|einzuloggen|connecter|connexion|connectez|"
    r"déverrouill|mot de passe|\bentrar\b|acceder|accede|iniciar|desbloque|contraseña|acessar|\bsenha|palavra-passe|"
    r"decrypt|\bopens?\b the (?:zip|archive|vault|file|safe)",
    re.I,
)
_AFTER_USER = re.compile(
    rf"\b(?:user(?:name)?|usuario|usuário|utilisateur|benutzer(?:name)?|login|konto|account)\s*[:=]?\s*[\w.@+-]{{2,64}}"
    rf"\s*[,;/|]?\s+(?:and\s+|und\s+|et\s+|y\s+|e\s+)?(?:{_PASSWORD_NAME}|"
    rf"pass)\s*[:=]?\s+[\"'`“‘«„]?(?P<value>[^\s\"'`”’»“]{{6,64}})",
    re.I,
)
_ACCOUNT_USES = re.compile(
    r"\b(?:account|konto|compte|cuenta|conta|login)\s+(?:uses?|has|nutzt|verwendet|utilise|"
    r"usa)\s+[\"'`“‘«„]?(?P<value>[^\s\"'`”’»“]{8,64})",
    re.I,
)
_BESIDE = re.compile(rf"\b{_PASSWORD_NAME}\s+[\"'`“‘«„]?(?P<value>[^\s\"'`”’»“]{{6,200}})", re.I)
_NEAR = re.compile(
    rf"(?:(?<![\w+/=])|_){_NAME}\b(?![+/])\W+(?:[\w'’-]+\W+){{0,3}}?(?P<value>(?<![A-Za-z0-9+/_.~=-])[A-Za-z0-9+/_.~=-]{{16,}})",
    re.I,
)
_KEY_FOR = re.compile(
    r"\bkey(?:\s+(?:for|of|to)(?:\s+[\w'’.-]+){1,5}?)?\s*(?:\bis\b|[:=])\s*[\"'`“‘]?(?P<value>[A-Za-z0-9+/_=-]{20,})",
    re.I,
)
_NETWORK_KEY = re.compile(
    r"\b(?:wi-?fi|wlan|ssid|network|hotspot|router)\b[^\n]{0,60}?\b(?:key|psk|schlüssel|clé|clave|"
    r"chave)\s*(?:\bis\b|\bist\b|[:=])?\s*"
    r"[\"'`“‘]?(?P<value>[^\s\"'`”’]{8,63})",
    re.I,
)
_HEX_PROVIDER = re.compile(
    r"\b(?:twilio|datadog|deepgram|mailgun|wandb|weights ?& ?biases|cloudflare|linode|pagerduty|opsgenie|algolia|"
    r"segment|"
    r"rollbar|newsapi|openweather\w*|assemblyai|vonage|nexmo|plivo|messagebird|amplitude|mixpanel|bugsnag|honeycomb|"
    r"launchdarkly|fastly|trello|giphy|yandex|last\.?fm|tmdb|alpha ?vantage|azure|cognitive services)\b"
    r"(?:\W+[\w'’-]+){0,4}?\W+(?P<value>[0-9a-f]{32,64})(?![0-9a-z])",
    re.I,
)
_HASH_WORD = re.compile(
    r"sha-?\d*\b|md5|commit|digest|checksum|hash|etag|revision|\brev\b|merge|cherry|blob|tree|\bid\b|sid\b|uuid|"
    r"guid|trace|"
    r"fingerprint|\bcache|\betag|public key|address|adresse|dirección",
    re.I,
)
_OWNED = re.compile(
    rf"\b(?!(?:the|das|die|le|la|el|a|o)\s+(?!user)){_WHOSE}\s+(?:[\w'’-]+\s+){{0,2}}{_PASSWORD_NAME}\s+is\s+"
    r"(?P<value>[a-z]{6,40})[.!]?[ \t]*$",
    re.I | re.M,
)
_PHRASE = re.compile(
    rf"\b{_PASSWORD_NAME}\b{_FOR}{_IS}[\"'`“‘]?"
    r"(?P<value>[a-z]{2,20}(?:[ _.-][a-z]{2,20}){2,11})[\"'`”’]?[.!]?[ \t]*$",
    re.I | re.M,
)
_SEED = re.compile(
    rf"\b(?:(?:seed|recovery|backup|mnemonic|wallet)[\s_-]+(?:phrase|words|seed)|mnemonic|seedphrase){_FOR}{_IS}[\"'`“‘]?"
    r"(?P<value>[a-z]{3,8}(?:[ ,]+[a-z]{3,8}){7,23})\b",
    re.I,
)
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
    r"[^\n]{0,60}?(?<![\w.-])(?P<value>\d{6}(?:-\d{6}){7}|(?=[a-z-]*\d)[a-z0-9]{4,8}(?:-[a-z0-9]{4,8}){1,7}|"
    r"\d{4} \d{4}|\d{8}|"
    r"(?=[a-z]*\d)(?=\d*[a-z])[a-z0-9]{8,16})(?![\w.-]*[\w])",
    re.I,
)

_PASSWORD_WORDS = ("pass", "pw", "kennw", "mdp", "contrase", "clave", "senha")
_KEY_WORDS = (
    "key",
    "secret",
    "token",
    "cred",
    "schlüssel",
    "clé",
    "cle ",
    "jeton",
    "chave",
    "session",
    "sessid",
    "psk",
    "cookie",
)
_LOGIN_WORDS = (
    "log", "sign", "unlock", "prompt", "ask", "get in", "pass", "kennw", "anmeld", "einzulog", "entsperr", "connect",
    "connex",
    "déverr", "entrar", "acced", "iniciar", "desbloq", "contrase", "acessar", "senha", "decrypt", "open",
)  # fmt: skip
_ACCOUNT_WORDS = (
    "login", "log-in", "cred", "account", "zugang", "anmeld", "konto", "identifiant", "compte", "acces", "aceso",
    "conta", "cuenta",
)  # fmt: skip
_PROVIDER_WORDS = (
    "twilio", "datadog", "deepgram", "mailgun", "wandb", "weights", "cloudflare", "linode", "pagerduty", "opsgenie",
    "algolia",
    "segment", "rollbar", "newsapi", "weather", "assembly", "vonage", "nexmo", "plivo", "messagebird", "amplitude",
    "mixpanel",
    "bugsnag", "honeycomb", "launchdarkly", "fastly", "trello", "giphy", "yandex", "last.fm", "lastfm", "tmdb",
    "vantage",
    "azure", "cognitive",
)  # fmt: skip


_Accepts = Callable[[re.Match[str]], bool]


def _value_is(*checks: Callable[[str], bool]) -> _Accepts:
    """Return a check of the group `value` that any of the checks passes."""
    return lambda match: any(check(match["value"]) for check in checks)


def _accepts_name(match: re.Match[str]) -> bool:
    value = match["value"]
    return looks_secret(value) and (_called(match) == "password" or not is_standard(value))


def _accepts_quoted(match: re.Match[str]) -> bool:
    return bool(match["quote"]) and _called(match) == "password" and is_chosen_word(match["value"])


def _accepts_near(match: re.Match[str]) -> bool:
    before = match.string[max(match.start() - 60, 0) : match.start("value")]
    return is_random(match["value"]) or (is_hex_key(match["value"]) and not _HASH_WORD.search(before))


def _accepts_login(match: re.Match[str]) -> bool:
    """Return whether a strong value is in a line about a login."""
    if not is_strong(match["value"]):
        return False
    start, end = match.string.rfind("\n", 0, match.start()) + 1, match.string.find("\n", match.end())
    return _LOGIN.search(match.string, start, end if end >= 0 else len(match.string)) is not None


@dataclass(frozen=True, slots=True)
class _Rule:
    kind: WordedKind | None
    """None: by the name that was matched."""
    words: tuple[str, ...]
    """Lower-case strings of which one is near each match: a fast check."""
    pattern: re.Pattern[str]
    accepts: _Accepts
    starts_with_name: bool = False
    """Whether the pattern begins with the name of a credential."""


_NAME_START = re.compile(rf"(?:\b|(?<=_)|(?=passw))(?={_PASSWORD_NAME}|{_KEY_NAME})")
"""Where a name begins in a text in lower case."""
_NAMES = (*_PASSWORD_WORDS, *_KEY_WORDS)
_PINS = ("pin", "code", "códi", "codig", "combination", "cvc", "cvv", "keypad", "opens with")
_OF_WORDS = (
    _Rule("recovery phrase", ("phrase", "words", "seed", "mnemonic"), _SEED, _value_is(is_passphrase)),
    _Rule(
        "recovery phrase",
        ("seed", "recovery", "mnemonic", "wallet", "ledger", "trezor", "metamask", "bip", "12", "24"),
        phrases.SEED_RUN,
        phrases.has_seed_phrase,
    ),
    _Rule("password", ("ask", "prompt"), phrases.WORD_TO_TYPE, phrases.is_typed_word),
    _Rule("password", ("ask", "prompt"), phrases.TYPE_AFTER_ASKED, phrases.is_typed_word),
    _Rule("password", ("pass",), phrases.WORDS_FROM_TO, phrases.changed_words),
    _Rule("password", ("passwort", "kennwort"), phrases.GERMAN_WORD, phrases.is_german_word),
    _Rule("password", _PASSWORD_WORDS, _OWNED, _value_is(lambda value: not is_state(value))),
    _Rule("password", _PASSWORD_WORDS, _PHRASE, _value_is(is_passphrase)),
)
"""Rules for values that consist of words."""
_QUOTED = (_Rule(None, _NAMES, _GIVEN, _accepts_quoted, starts_with_name=True),)
"""Rules for one word in quotes."""
_SHORT = (
    _Rule("PIN", _PINS, _PIN, bool),
    _Rule("PIN", _PINS, _PIN_AFTER, bool),
    _Rule("PIN", ("door", "gate", "garage", "entrance", "lobby", "lockbox", "lock box", "key safe", "keypad", "shed",
    "tür", "haupteingang", "tor", "porte", "portail", "digicode", "puerta", "portón", "porta"), phrases.DOOR_CODE,
          phrases.is_door_code),
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
)  # fmt: skip
"""Rules for values with digits that may be short."""
_MIXED = (
    _Rule("password", ("meld", "logg"), phrases.GERMAN_LOGIN, phrases.is_german_login),
    _Rule("password", (*_PASSWORD_WORDS, "-u ", "login"), _TYPED, _value_is(looks_secret)),
    _Rule("password", _ACCOUNT_WORDS, _PAIR, _value_is(lambda value: looks_secret(value) and not is_standard(value))),
    _Rule("password", _PASSWORD_WORDS, _BESIDE, _value_is(
        is_strong, lambda value: looks_secret(value) and is_mixed(value))),
    _Rule("password", _PASSWORD_WORDS, _AFTER_USER, _value_is(looks_secret)),
    _Rule("password", _ACCOUNT_WORDS, _ACCOUNT_USES, _value_is(is_strong)),
    _Rule("password", _PASSWORD_WORDS, _SET_TO, _value_is(is_strong)),
    _Rule("password", (" / ",), _SLASH, _value_is(lambda value: is_strong(value, sign=True))),
    _Rule("password", _PASSWORD_WORDS, _FROM_TO, lambda match: all(
        looks_secret(value, technical=False) for value in match.group("old", "value"))),
    _Rule("password", _LOGIN_WORDS, _GIVE, _accepts_login),
    _Rule(None, _NAMES, _GIVEN, _accepts_name, starts_with_name=True),
    _Rule(None, _NAMES, _GIVEN_AFTER, _accepts_name),
    _Rule("password", _PASSWORD_WORDS, _CHANGED, _accepts_name),
    _Rule(None, _NAMES, _NEAR, _accepts_near, starts_with_name=True),
    _Rule("API key or token", ("key",), _KEY_FOR, _value_is(is_random)),
    _Rule("API key or token", ("key", "psk", "schlüssel", "clé", "clave",
    "chave"), _NETWORK_KEY, _value_is(looks_secret)),
    _Rule("API key or token", _PROVIDER_WORDS, _HEX_PROVIDER, _accepts_near),
)  # fmt: skip
"""Rules for values of six characters and more with a digit or sign."""
_Near = Callable[[str], Sequence[int]]
_GROUPS: tuple[tuple[tuple[_Rule, ...], _Near | None], ...] = (
    (_SHORT, find_candidates),
    (_MIXED, find_tokens),
    (_QUOTED, find_quotes),
    (_OF_WORDS, None),
)
"""Rules, and the function that returns where values for them may be; None: anywhere."""
_ALL_WORDS = frozenset(word for rules, _ in _GROUPS for rule in rules for word in rule.words)


def find_values(text: str) -> Iterator[FoundValue]:
    """Yield the credentials that the text names and contains."""
    for match in _CARD.finditer(text):
        if _is_card(match[0]):
            yield FoundValue("payment card number", match.start(), match.end())
    for match in phrases.SPACED_SEED.finditer(text):
        if phrases.is_spaced_seed(match):
            yield FoundValue("one-time password seed", match.start("value"), match.end("value"))
    places = WordPlaces(text, _ALL_WORDS)
    names = NameStarts(places.lowered, _NAME_START)
    for group, find_near in _GROUPS:
        rules = [rule for rule in group if places.has_any(rule.words)]
        near = find_near(text) if rules and find_near else None
        if near is not None and not near:
            continue
        windows: dict[tuple[str, ...], Windows] = {}  # many rules have the same words
        for rule in rules:
            if rule.words not in windows:
                windows[rule.words] = places.windows(rule.words, near)
            for start, end in windows[rule.words]:
                part = text[start:end]
                has_name = rule.starts_with_name
                matches = names.matches(rule.pattern, part, start) if has_name else rule.pattern.finditer(part)
                for match in matches:
                    if rule.accepts(match) and not _is_in_resource_name(match):
                        kind, value = rule.kind or _called(match), match["value"].rstrip(".,;:)]")
                        at = start + match.start("value")
                        yield FoundValue(kind, at, at + len(value))


def _is_in_resource_name(match: re.Match[str]) -> bool:
    """Return whether the value is part of an Amazon resource name, which says where a secret is kept."""
    before = match.string[max(match.start("value") - 200, 0) : match.end("value")]
    return re.search(r"\barn:aws[\w-]*:\S*\Z", before) is not None


def _is_card(run: str) -> bool:
    digits = [int(digit) for digit in run if digit.isdigit()]
    number = "".join(map(str, digits))
    if len(digits) not in _CARD_LENGTHS or not _ISSUERS.match(number) or number in TEST_CARDS:
        return False
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _called(match: re.Match[str]) -> WordedKind:
    is_password = re.fullmatch(_PASSWORD_NAME.replace(r"(?=\s*=)", ""), match["name"], re.I)
    return "password" if is_password else "API key or token"
