"""Detects keys by the format that their provider documents: a fixed prefix, an alphabet, a length, a checksum.

A key with a wrong checksum is reported, too: a mistyped or shortened key is still a leak. A key with a right checksum
is reported even if it looks like a sample.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
import zlib
from collections.abc import Iterator
from functools import cache
from itertools import chain
from typing import NamedTuple

from .credential import Credential, Kind
from .sample_values import is_sample

_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

_RULES: tuple[tuple[Kind, str, str], ...] = (
    (
        "AWS access key",
        "AKIA ASIA ABIA ACCA",
        r"A(?:KI|SI|BI|CC)A[A-Z0-9]{16}(?:\W{1,5}[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=]))?",  # with the secret beside it
    ),
    ("AWS access key", "ABSK", r"ABSK[A-Za-z0-9+/]{100,}={0,2}"),
    ("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{20,255}"),
    ("GitHub token", "github_pat_", r"github_pat_[A-Za-z0-9_]{22,255}"),
    ("GitLab token", "glpat- glrt- gldt- glcbt- glptt- glft- glimt- glagent- gloas- glsoat- glffct-",
    r"gl(?:pat|rt|dt|cbt|ptt|ft|imt|agent|oas|soat|ffct)-[A-Za-z0-9_.-]{20,}"),
    ("Stripe key", "~_live_ ~_test_ whsec_", r"(?:[sr]k_(?:live|test)|whsec)_[A-Za-z0-9+/]{16,}"),
    ("model API key", "sk-", r"(?<![A-Za-z0-9])sk-(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{20,}"),
    ("model API key", "gsk_ pplx- xai- nvapi- r8_ hf_ csk-",
     r"(?<![A-Za-z0-9])(?:gsk_|pplx-|xai-|nvapi-|r8_|hf_|csk-)[A-Za-z0-9_-]{30,}"),
    ("model API key", "lsv2_ tvly- pcsk_ jina_ fc- m0-",
     r"(?<![A-Za-z0-9])(?:lsv2_(?:pt|sk)_|tvly-|pcsk_|jina_|fc-(?=[0-9a-f]{32})|"
     r"m0-(?=[A-Za-z0-9]{36}))[A-Za-z0-9_-]{24,}"),
    ("Slack token", "xoxa xoxb xoxc xoxe xoxo xoxp xoxr xoxs", r"xox[abceoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,}"),
    ("Slack token", "xapp-", r"xapp-[A-Za-z0-9-]{20,}"),
    ("Slack token", "hooks.slack.com", r"hooks\.slack\.com/(?:services|workflows|triggers)/T?\w+/B?\w+/\w{16,}"),
    ("webhook address", "~webhooks/", r"discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d{15,21}/[A-Za-z0-9_-]{40,}"),
    ("webhook address", "webhook.office.com logic.azure.com",
     r"(?:webhook\.office\.com/webhookb2/[\w@-]{30,}/IncomingWebhook/\w{20,}|"
     r"logic\.azure\.com\S{10,300}[?&]sig=[\w%-]{30,})"),
    ("webhook address", "hooks.zapier.com maker.ifttt.com",
     r"(?:hooks\.zapier\.com/hooks/catch/\d+/\w{6,}|maker\.ifttt\.com/\S{5,80}/key/[\w-]{15,})"),
    ("webhook address", "chat.googleapis.com",
     r"chat\.googleapis\.com/v1/spaces/\S{5,40}[?&]key=[\w-]{20,}\S*token=[\w%-]{20,}"),
    ("Google API key", "AIza GOCSPX- ya29. 1//0",
     r"AIza[A-Za-z0-9_-]{30,}|GOCSPX-[A-Za-z0-9_-]{20,}|ya29\.[A-Za-z0-9_-]{20,}|(?<!\w)1//0[A-Za-z0-9_-]{30,}"),
    ("package registry token", "npm_ pypi-AgE rubygems_ dckr_ CLOJARS_",
     r"npm_[A-Za-z0-9]{36}|pypi-AgE[A-Za-z0-9_-]{20,}|rubygems_[0-9a-f]{48}|dckr_(?:pat|oat)_[A-Za-z0-9_-]{24,}|"
     r"CLOJARS_[0-9a-z]{60}"),
    ("package registry token", "cio oy2 AKCp",
     r"(?<![A-Za-z0-9])(?:cio(?=\w*\d)[A-Za-z0-9]{32}|oy2(?=\w*\d)[a-z0-9]{43}|"
     r"AKCp(?=\w*\d)[A-Za-z0-9]{69})(?![A-Za-z0-9])"),
    ("service token", "SG.", r"SG\.[\w-]{16,}\.[\w-]{16,}"),
    ("service token", "~:AA", r"(?<!\d)\d{8,10}:AA[\w-]{32,}"),
    ("service token", "dop_v1_ doo_v1_ dor_v1_", r"do[por]_v1_[0-9a-f]{32,}"),
    ("service token", "hvs. hvb. hvr. ~.atlasv1.", r"hv[sbr]\.[A-Za-z0-9_-]{24,}|\w{14}\.atlasv1\.[\w-]{50,}"),
    ("service token", "shpat_ shpss_ shpca_ shppa_", r"shp(?:at|ss|ca|pa)_[0-9a-fA-F]{32}"),
    ("service token", "dapi lin_api_ lin_oauth_", r"dapi[0-9a-f]{32}|lin_(?:api|oauth)_\w{32,}"),
    ("private key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[A-Z0-9]{32,}"),
    ("service token", "dp. ops_ey", r"(?<!\w)dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{40,}|(?<!\w)ops_eyJ[\w-]{50,}"),
    ("service token", "glsa_ glc_ NRAK- NRJS- NRII- sntrys_ sntryu_ phx_",
     r"glsa_\w{32}_[0-9a-f]{8}|glc_[\w+/=]{32,}|NR(?:AK|JS|II)-[A-Za-z0-9-]{19,}|sntry[su]_[\w+/=.-]{40,}|phx_\w{40,}"),
    ("service token", "PMAK- figd_ ntn_ secret_ CFPAT- tfp_",
     r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}|figd_[\w-]{36,}|ntn_\w{40,}|(?<!\w)secret_(?=\w*\d)[A-Za-z0-9]{43}|"
     r"CFPAT-[\w-]{40,}|"
     r"tfp_\w{40,}"),
    ("service token", "ATATT3 ATCTT3 ATBB", r"AT[AC]TT3[\w=-]{60,}|(?<!\w)ATBB\w{28,}"),
    ("service token", "pat", r"(?<!\w)pat[A-Za-z0-9]{14}\.[0-9a-f]{64}|(?<!\w)pat-(?:na|eu|ap)\d-" + _UUID),
    ("service token", "xkeysib- xsmtpsib- key- ~-us",
     r"x(?:key|smtp)sib-[0-9a-f]{64}-\w{16}|(?<!\w)key-(?=[a-z]*\d)[0-9a-z]{32}(?!\w)|"
     r"(?<!\w)[0-9a-f]{32}-us\d{1,2}(?!\w)"),
    ("service token", "tskey- sbp_ sb_secret_ npg_ pscale_ nfp_ rnd_ HRKU- fo1_ fm2_ fm1_",
     r"tskey-[a-z]+-\w{8,}-\w{20,}|sbp_[0-9a-f]{40}|sb_secret_[\w-]{20,}|(?<!\w)npg_\w{12,}|pscale_(?:tkn|pw|"
     r"oauth)_[\w.-]{32,}|"
     r"(?<!\w)nfp_\w{36,}|(?<!\w)rnd_\w{28,}|HRKU-[\w-]{36,}|(?<!\w)fo1_[\w-]{40,}|(?<!\w)fm[12]_[\w+/=-]{60,}"),
    ("service token", "sq0 EAAA EAAC EAAG EAAB", r"sq0(?:atp|csp|idp)-[\w-]{22,}|(?<!\w)EAA[A-Z](?=\w*\d)\w{56,}"),
    ("service token", "pul- bkua_ CCIPAT_ CCIPRJ_ squ_ sqp_ sqa_ pnu_ dt0c01.",
     r"(?<!\w)pul-[0-9a-f]{40}|bkua_[0-9a-f]{40}|CCIP(?:AT|RJ)_\w{20,}|(?<!\w)sq[upa]_[0-9a-f]{40}|(?<!\w)pnu_\w{36}|"
     r"dt0c01\.[A-Z0-9]{24}\.[A-Z0-9]{60,}"),
    ("service token", "~8Q~ ~7Q~", r"(?<![\w~])[\w.~-]{3}[78]Q~[\w.~-]{31,37}(?![\w~])"),
    ("service token", "AccountKey= SharedAccessKey= ~sig=",
     r"(?:AccountKey|SharedAccessKey)=[A-Za-z0-9+/]{40,}={0,2}|[?&]s[vpre]\w?=\S{1,300}[?&]sig=[\w%+/-]{40,}"),
    ("service token", "access-production- access-development- access-sandbox- access_token$",
     r"access-(?:production|development|sandbox)-" + _UUID + r"|access_token\$\w+\$[0-9a-z]{16}\$[0-9a-f]{32}"),
    ("service token", "duffel_ shippo_ FLWSECK EZAK EZTK",
     r"duffel_(?:live|test)_[\w-]{40,}|shippo_(?:live|test)_[0-9a-f]{40}|FLWSECK(?:_TEST)?-[\w-]{30,}|"
     r"EZ[AT]K[\w]{50,}"),
    ("service token", "sk.eyJ", r"(?<!\w)sk\.eyJ[\w-]{40,}\.[\w-]{20,}"),
    ("service token", "aio_ oauth: sha256~",
     r"(?<!\w)aio_[A-Za-z]{4}\d{2}\w{22}|(?<!\w)oauth:[a-z0-9]{30}(?!\w)|sha256~[\w-]{40,}"),
    ("service token", "vcp_ vci_ vca_ vcr_ vck_ cfut_ cfat_ cfk_ napi_ re_ fw_ e2b_ rpa_ llx- sgp_ rdme_ "
     "bedrock-api-key-",
     r"(?<!\w)(?:vc[piark]_\w{24,}|cf(?:ut|at|k)_\w{40,}|napi_\w{40,}|re_[A-Za-z0-9]{8}_[A-Za-z0-9]{16,}|"
     r"fw_(?=\w*\d)[A-Za-z0-9]{22,}|e2b_[0-9a-f]{40}|rpa_[A-Z0-9]{40,}\w*|llx-[A-Za-z0-9]{40,}|"
     r"sgp_(?:(?:[0-9a-f]{16}|local)_)?[0-9a-f]{40}|rdme_\w{60,}|bedrock-api-key-[\w+/=]{40,})"),
    ("service token", "SSWS ATTA GR1348941 mdb_sa_sk_ CCDB1_ A3- API- p8e- fio-u- tk-us- cmVmd hcaik_ hcbik_ sk_",
     r"SSWS\s+00[\w-]{38,}|(?<!\w)(?:ATTA[0-9a-f]{64,}|GR1348941[\w-]{20}|mdb_sa_sk_[\w-]{30,}|CCDB1_\w{22}_\w{40}|"
     r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}|API-(?=[A-Z]*\d)[A-Z0-9]{25,28}(?!\w)|"
     r"p8e-\w{32}|fio-u-[\w=-]{60,}|tk-us-[\w-]{40,}|cmVmd\w{59}|hc[ab]ik_\w{50,}|sk_[0-9a-f]{48}(?!\w))"),
    ("service token", "~JQQJ99 ~_mmk ~:APA91b", r"(?<!\w)(?:[A-Za-z0-9]{40,60}JQQJ99[A-Za-z0-9+/=]{20,40}|"
     r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk|[\w-]{20,25}:APA91b[\w-]{100,})"),
    ("service token", "v1.0- sdk- api- mob- 1/1 2/1 sl. AAAAAAAAAAAAAAAAAAAAA pat. sat.",
     r"(?<![\w/])(?:v1\.0-[0-9a-f]{24}-[0-9a-f]{100,}|(?:sdk|api|mob)-" + _UUID +
     r"|[12]/1\d{12,}(?:/\d+)?:[0-9a-f]{32}|sl\.[\w-]{120,}|A{21,22}[A-Za-z0-9%]{80,}|[ps]at\.[\w-]{22}\.\w{24}\.\w{20})"),
    ("basic credentials", '"auth"', r'"auth"\s*:\s*"(?P<pair>[A-Za-z0-9+/]{12,}={0,2})"'),
    ("one-time password seed", "otpauth://", r"otpauth://[th]otp/\S{0,200}[?&]secret=[A-Za-z2-7]{10,}"),
    ("private key", "-----BEGIN", r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:\s|\\+[rn])*"
     r"(?:M[A-Z]|b3B|Proc-Type|Version:|Comment:|Hash:|Bag |[A-Za-z0-9+/=]{24}|\Z)"),
    ("private key", "PuTTY-User-Key-File", r"PuTTY-User-Key-File-\d[\s\S]{0,4000}?Private-Lines: \d"),
    ("private key", "PrivateKey PresharedKey", r"(?:Private|Preshared)Key\s*=\s*[A-Za-z0-9+/]{43}="),
    ("connection string with a password", "~://",
     r"(?<![a-z])[a-z][a-z0-9+]{1,20}://(?P<user>[^\s/:@]{0,100}):(?!(?P=user)@)"
     r"(?P<value>[^\s/@<${*\[][^\s/@]{0,100})@(?!(?i:host(?:name)?|server)\b)[\w.\[-]"),
    ("connection string with a password", "WIFI:",
     r"WIFI:(?:[STHIARE]\w?:[^;\n]{0,64};){0,4}P:\"?(?P<value>(?:\\\\.|[^;\n\\\\]){5,63});"),
    ("connection string with a password", "~:543 ~:6432: ~:*:",
     r"(?m)(?:^|(?<=[\s`\"]))(?:[\w.-]+|\*):(?:\d{4,5}|\*):[\w.*-]+:[\w.*@-]+:(?P<value>[^\s:`\"]{4,100})(?=[\s`\"]|$)"),
    ("password hash", "~:$apr1$ ~:$2y$ ~:$2b$ ~:$2a$ ~:{SHA} ~:$1$ ~:$5$ ~:$6$ ~:$y$",
     r"[\w.@+-]{1,64}:(?:\$apr1\$|\$2[aby]\$\d\d\$|\$[156]\$|\$y\$\w+\$|\{SHA\})[\w./$=+]{20,}"),
    ("basic credentials", "~asic", r"(?i:authorization[\"']?\s*[:=]\s*[\"']?basic)\s+[A-Za-z0-9+/]{8,}"),
    ("bearer token", "~earer ~EARER", r"(?i:\bbearer)\s+(?=[A-Za-z._~+/=-]*[0-9])[A-Za-z0-9._~+/=-]{16,}"),
)  # fmt: skip
"""For each kind of key: literals, of which every key contains one, and the pattern. A key begins with the literal,
unless the literal is written with `~`.
Patterns have no boundary before a long prefix, so that they also match decoded, reversed or joined text."""
_INSIDE, _LONGEST = 330, 5_000
"""The most characters of a key before a literal with `~`, and from the start of a literal to the end of the key."""


class _Literal(NamedTuple):
    kind: Kind
    literal: str
    inside: int
    """The most characters of a key before the literal; 0: the key begins with it."""
    pattern: str


_LITERALS = tuple(
    _Literal(kind, literal.removeprefix("~"), _INSIDE if literal.startswith("~") else 0, pattern)
    for kind, literals, pattern in _RULES
    for literal in literals.split()
)


_JSON_WEB_TOKEN = r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"  # noqa: S105 - a pattern
_DISCORD_BOT = r"[MNO](?<![\w.-].)[A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}(?![\w.-])"
_MAILGUN = r"[0-9a-f](?<![\w-].)[0-9a-f]{31}-[0-9a-f]{8}-[0-9a-f]{8}(?![\w-])"
_WALLET = rf"[5KLxyz](?<!\w.)(?:[{BASE58}]{{50,51}}|prv[{BASE58}]{{107,108}})(?!\w)"
_compiled = cache(re.compile)


def find_keys(text: str, *, samples: bool = False) -> Iterator[Credential]:
    """Yield the keys in a text, recognised by their format without decoding.

    Keys that look like samples are left out, unless `samples` is true.
    """
    for rule in _LITERALS:
        # almost always false, and much faster than a search for the pattern
        if rule.literal not in text:
            continue
        for match in _matches(text, rule):
            value = match.groupdict().get("value") or match[0]
            pair = match.groupdict().get("pair")
            if pair is not None and not _is_user_and_password(pair):
                continue
            if samples or not is_sample(value) or _has_checksum(match[0]):
                yield Credential(rule.kind, match.start(), match.end())
    for match in chain.from_iterable(_compiled(one).finditer(text) for one in (_DISCORD_BOT, _MAILGUN)):
        if samples or not is_sample(match[0]):
            yield Credential("service token", match.start(), match.end())
    if "eyJ" in text:
        for match in _compiled(_JSON_WEB_TOKEN).finditer(text):
            if (samples or not is_sample(match[0])) and _has_header(match[0]):
                yield Credential("JSON web token", match.start(), match.end())
    for match in _compiled(_WALLET).finditer(text):
        if _is_base58check(match[0]):
            yield Credential("private key", match.start(), match.end())


def key_kind_in(text: str) -> Kind | None:
    """Return the kind of the first key in the text, recognised by its format without decoding, or None.

    Sample keys count.
    """
    return next((key.kind for key in find_keys(text, samples=True)), None)


def _matches(text: str, rule: _Literal) -> Iterator[re.Match[str]]:
    """Yield the matches of the rule's pattern at or around each occurrence of its literal."""
    literal, inside, pattern = rule.literal, rule.inside, rule.pattern
    at, reached = text.find(literal), 0
    while at >= 0:
        start = max(at - inside, reached)
        match = _compiled(pattern).search(text, start, at + _LONGEST) if inside else _compiled(pattern).match(text, at)
        if match is not None:
            yield match
        reached = max(reached, match.end() if match else at + 1)
        at = text.find(literal, max(at + 1, reached))


def _has_checksum(token: str) -> bool:
    """Return whether the last six of 36 characters are the CRC-32 of the first 30, as in tokens of GitHub and npm."""
    prefix, _, body = token.partition("_")
    if prefix not in ("ghp", "gho", "ghu", "ghs", "ghr", "npm") or len(body) != 36:
        return False
    number, digits = zlib.crc32(body[:30].encode()), ""
    while number:
        number, digit = divmod(number, 62)
        digits = _BASE62[digit] + digits
    return body[30:] == digits.rjust(6, "0")


def _is_user_and_password(encoded: str) -> bool:
    """Return whether base64 text contains a user and a password, as in the configuration of Docker."""
    try:
        user, colon, password = base64.b64decode(encoded, validate=True).decode("ascii").partition(":")
    except (ValueError, binascii.Error):
        return False
    return bool(user and colon) and password.isprintable() and len(password) >= 4 and not is_sample(password)


def _has_header(token: str) -> bool:
    """Return whether the first part of a JSON web token is a header that names an algorithm or a key."""
    part = token.partition(".")[0]
    try:
        header = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (ValueError, binascii.Error):
        return False
    return isinstance(header, dict) and ("alg" in header or "enc" in header or "kid" in header)


def base58_bytes(letters: str) -> bytes:
    number = 0
    for letter in letters:
        number = number * 58 + BASE58.index(letter)
    return number.to_bytes((number.bit_length() + 7) // 8)


def _is_base58check(key: str) -> bool:
    """Return whether the key ends with the checksum of Bitcoin's wallet format."""
    octets = base58_bytes(key)
    return hashlib.sha256(hashlib.sha256(octets[:-4]).digest()).digest()[:4] == octets[-4:]
