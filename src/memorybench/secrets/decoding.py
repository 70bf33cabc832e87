"""Decodes a text in every known way, two levels deep; base64 three.

Each decoder decodes as much as it can, from every possible starting position. Text that was never encoded becomes
noise; only parts of the result that could be text are kept.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import quopri
import re
import string
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from urllib.parse import unquote, unquote_plus

from msgspec import Struct

from .provider_keys import BASE58, base58_bytes

_DEPTH = 3
"""Levels of nested encodings that are decoded. On the last level, only base64 is decoded."""
_WORTH_DECODING = 12
"""Minimum characters of a decoded line that is decoded again. Noise is usually shorter."""

_PRINTABLE = rb"[\t\n\r\x20-\x7e]|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
_TEXT_RUN = re.compile("[\t\n\r\x20-\x7e\x80-\ufffc\ufffe-\U0010ffff]{5,}")
_TEXT = re.compile(rb"(?:" + _PRINTABLE + rb")*+")
_ONE_TOKEN = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
_HEX = re.compile(r"[0-9A-Fa-f]+")
_UTF_16 = re.compile(rb"(?:[A-Za-z ]\0){3}[A-Za-z ](?:\0|(?<=\0.\0.\0.\0.))", re.DOTALL)
"""Four letters in UTF-16. The pattern begins with a letter, because files have long sequences of zeros."""
_UTF_32 = re.compile(rb"(?:[A-Za-z ]\0{3}){3}")
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffd]+")
_NO_CONTROL = "[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffd]"

_ESCAPED = re.compile(r"\\+(?:u([0-9a-f]{4})|u\{([0-9a-f]{1,6})\}|x([0-9a-f]{2})|(?P<octal>[0-3][0-7]{2}))", re.I)
_ESCAPED_BLANK = re.compile(r"\\+[nrt]")
_NUMBER = re.compile(r"\d+")
_BETWEEN_HEX = re.compile(r"0x|\\x|[%\s:.,;_\-]+")
_ASCII_BETWEEN_HEX = b"%:.,;_- \t\n\r\f\v\x1c\x1d\x1e\x1f"
_HEX_RUN = re.compile(r"[0-9a-f]{8,}")
_BASE64 = f"{string.ascii_letters}{string.digits}+/"
_UNLIKE_A_WORD = re.compile(r".+[A-Z]|(?=.*[a-z]).*[!#$%&*<=>?@^`{|}~]")
"""Matches a token that may be base85: a capital after the first letter, or punctuation and letters."""
_BASE85 = f"{string.digits}{string.ascii_uppercase}{string.ascii_lowercase}!#$%&()*+-;<=>?@^_`{{|}}~"
_ASCII85 = "".join(map(chr, range(ord("!"), ord("u") + 1)))
_BASE85_RUNS = tuple(
    (re.compile(rf"[{re.escape(alphabet)}]{{8,}}"), bytes.maketrans(alphabet.encode(), bytes(range(85))))
    for alphabet in (_BASE85, _ASCII85)
)
"""For each base85 alphabet: a pattern of its characters, and the table that maps them to digits."""
_LONGEST_BASE85 = 1_000
"""In characters. Longer tokens are embedded files, which take too long to decode."""

_OCTAL = re.compile(r"[01][0-7]{2}|[4-7][0-7]")
_BYTE = re.compile(r"[01]{8}")
_BINARY_RUN = re.compile(r"(?:[01]{8}[\s,]*){4,}")
_BASE58_RUN = re.compile(rf"(?<![A-Za-z0-9+/_=-])(?=[A-Za-z]*\d)[{BASE58}]{{12,400}}(?![A-Za-z0-9+/_=-])")
_MOST_BASE58 = 500
"""The most base58 tokens of a text that are decoded, which is slow. A text with more is a list of addresses."""
_ROT47 = str.maketrans({chr(33 + at): chr(33 + (at + 47) % 94) for at in range(94)})
ROTATIONS = ("rot13", "rot47")
_COMPRESSED = re.compile(rb"\x1f\x8b\x08|\x78[\x01\x5e\x9c\xda]")
_MOST_COMPRESSED, _LONGEST_EXPANDED = 50, 2**20
"""The most streams of a text that are decompressed, and the most bytes of each, because a small one may be huge."""
_SHORTEST_EXPANDED = 5

_BASE32 = f"{string.ascii_uppercase}234567"
_BASE32_DIGITS = str.maketrans(_BASE32, "0123456789abcdefghijklmnopqrstuv")

_UU_LINE = re.compile(r"^([!-M])([ -`]{4,61}) *\r?$", re.M)
"""A uuencoded line: one character for the number of bytes, then four per three bytes, sometimes a checksum."""

LOOK_ALIKES: Mapping[str, str] = {
    "A": "АΑ", "B": "ВΒ", "C": "СϹ", "E": "ЕΕ", "H": "НΗ", "I": "ІΙ", "J": "Ј", "K": "КΚ", "M": "МΜ", "N": "Ν",
    "O": "ОΟ", "P": "РΡ", "S": "Ѕ", "T": "ТΤ", "X": "ХΧ", "Y": "УΥ", "Z": "Ζ", "a": "аα", "c": "сϲ", "d": "ԁ", "e": "е",
    "h": "һ", "i": "іι", "j": "ј", "k": "кκ", "n": "п", "o": "оο", "p": "рρ", "q": "ԛ", "r": "г", "s": "ѕ", "t": "τ",
    "u": "υ", "v": "ν", "w": "ԝ", "x": "хχ", "y": "уγ", "3": "З",
}  # fmt: skip
"""Cyrillic and Greek letters that look like a Latin letter, by the Latin letter."""
_LATIN = str.maketrans({other: latin for latin, others in LOOK_ALIKES.items() for other in others})


class Decoding(Struct, frozen=True):
    name: str
    """The encoding, such as `base64` or `hex of base64`; "": the text itself."""
    text: str


def decodings(text: str) -> Iterator[Decoding]:
    """Yield the text and everything decoded from it, simplest first, each once."""
    yield Decoding("", text)
    seen = {text}
    level = [Decoding("", text), Decoding("reversed", text[::-1])]
    for depth in range(_DEPTH):
        decoders = _DECODERS if depth < _DEPTH - 1 else {"base64": _from_base64}
        deeper = [decoding for outer in level for decoding in _decode(outer, decoders) if decoding.text not in seen]
        for decoding in deeper:
            if decoding.text not in seen:
                seen.add(decoding.text)
                yield decoding
        level = [
            Decoding(decoding.name, worth)
            for decoding in deeper
            if not decoding.name.endswith(ROTATIONS) and (worth := _worth_decoding(decoding.text))
        ]


def _decode(outer: Decoding, decoders: Mapping[str, Callable[[str], str]]) -> Iterator[Decoding]:
    for name, decode in decoders.items():
        decoded = decode(outer.text)
        if decoded:
            yield Decoding(f"{outer.name} of {name}" if outer.name else name, decoded)


def _worth_decoding(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if len(line) >= _WORTH_DECODING)


def text_in(octets: bytes, shortest: int = 1) -> str:
    """Return the text that bytes contain in UTF-8, UTF-16 or UTF-32. Compressed parts are read by compressed.py.

    Sequences of text of fewer than `shortest` characters between other bytes are left out: most of them are noise.
    """
    texts = [octets.decode("utf-8", "replace")]
    if _UTF_16.search(octets):
        texts += [octets[at:].decode(codec, "replace") for codec in ("utf-16-le", "utf-16-be") for at in (0, 1)]
    if _UTF_32.search(octets):
        texts.append(octets.replace(b"\0", b"").decode("utf-8", "replace"))
    text = "\n".join(texts)
    if shortest == 1:
        return _CONTROLS.sub("\n", text)
    return "\n".join(re.findall(f"{_NO_CONTROL}{{{shortest},}}", text))


def may_be_encoded(run: str) -> bool:
    """Return whether a string may be encoded: it decodes to text or compressed data, or it has separators."""
    if not _ONE_TOKEN.fullmatch(run):
        return True  # codes with separators, or several lines
    token = run.rstrip("=")[:64].replace("-", "+").replace("_", "/")
    starts = [base64.b64decode(_padded(token))]
    if _HEX.fullmatch(token):
        starts.append(bytes.fromhex(token[: len(token) // 2 * 2]))
    if _BASE58_RUN.fullmatch(run):
        starts.append(base58_bytes(run))
    if not token.upper().strip(_BASE32):
        starts.append(base64.b32decode(token.upper()[: len(token) // 8 * 8]))
    return any(_TEXT.fullmatch(start.replace(b"\0", b"")[:8]) or _COMPRESSED.match(start) for start in starts)


def decode_long(run: str) -> str:
    """Return the decoded text of one long base64 or hex string, such as an embedded file; "" if it is not text."""
    letters = re.sub(r"[^A-Za-z0-9+/]", "", run.replace("-", "+").replace("_", "/"))
    octets = [base64.b64decode(_padded(letters))]
    if _HEX.fullmatch(letters):
        octets.append(bytes.fromhex(letters[: len(letters) // 2 * 2]))
    parts = [part for one in octets for part in (one, *_expanded(one))]
    return "\n".join(part.decode() for part in parts if _TEXT.fullmatch(part))


def replace_escapes(text: str) -> list[str]:
    """Return up to two versions of the text: with URL escapes decoded, and with backslash escapes decoded."""
    return [plain for plain in (_from_url(text), _from_escapes(text)) if plain]


def _from_url(text: str) -> str:
    return unquote(unquote_plus(text)) if "%" in text else ""


def _from_escapes(text: str) -> str:
    """Decode backslash escapes, as in JSON and programming languages."""
    if "\\" not in text:
        return ""
    plain = _ESCAPED.sub(_escaped_character, _ESCAPED_BLANK.sub(" ", text))
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # two escapes may form one character


def _escaped_character(escape: re.Match[str]) -> str:
    digits = next(digits for digits in escape.groups() if digits)
    code = int(digits, 8 if escape["octal"] else 16)
    return chr(code) if code <= 0x10FFFF else ""


def _from_entities(text: str) -> str:
    return html.unescape(text) if "&" in text else ""


def _from_quoted_printable(text: str) -> str:
    return quopri.decodestring(text.encode("utf-8", "replace")).decode("utf-8", "replace") if "=" in text else ""


def _from_look_alikes(text: str) -> str:
    return "" if text.isascii() else text.translate(_LATIN)


def _from_codes(text: str) -> str:
    """Decode decimal numbers as ASCII codes; other numbers are skipped."""
    numbers = (number for number in _NUMBER.findall(text) if len(number) in (2, 3))
    return _text_among(bytes(code for number in numbers if 0x20 <= (code := int(number)) < 0x7F))


def _from_hex(text: str) -> str:
    runs = _HEX_RUN.findall(_without_separators(text.lower()))
    shifted = (run[shift:] for run in runs for shift in (0, 1))
    return _lines(bytes.fromhex(digits[: len(digits) // 2 * 2]) for digits in shifted)


def _without_separators(text: str) -> str:
    """Remove separators and prefixes (`0x`, `:`, spaces) between hex digits."""
    if not text.isascii():
        return _BETWEEN_HEX.sub("", text)
    octets = text.encode().replace(b"0x", b"").replace(b"\\x", b"")
    return octets.translate(None, _ASCII_BETWEEN_HEX).decode()


def _from_base64(text: str) -> str:
    """Decode base64 from each of the first four characters on, ignoring characters that are not base64."""
    url_safe = _keep(_BASE64, text.replace("-", "+").replace("_", "/"))
    letters = dict.fromkeys((url_safe, _keep(_BASE64, text)))
    shifted = (run[shift:] for run in letters for shift in range(4))
    return _lines(base64.b64decode(_padded(run)) for run in shifted)


def _keep(alphabet: str, text: str) -> str:
    """Return the characters of the text that are in the alphabet."""
    octets = text.encode("ascii", "ignore")
    return octets.translate(None, bytes(octet for octet in range(128) if chr(octet) not in alphabet)).decode()


def _padded(run: str) -> str:
    whole = len(run) - (len(run) % 4 == 1)  # one extra letter holds less than a byte
    return run[:whole] + "=" * (-whole % 4)


def _from_base32(text: str) -> str:
    """Decode base32 from every possible starting position, by shifting the bits of one large number."""
    letters = _keep(_BASE32, text.upper())
    if not letters:
        return ""
    bits = int(letters.translate(_BASE32_DIGITS), 32)
    return _lines((bits >> shift).to_bytes(len(letters) * 5 // 8 + 1) for shift in range(8))


def _from_octal(text: str) -> str:
    """Decode two or three octal digits per byte, with or without a backslash before them."""
    codes = [int(number, 8) for number in _NUMBER.findall(text) if _OCTAL.fullmatch(number)]
    return _text_among(bytes(codes)) if len(codes) >= 6 else ""


def _from_binary(text: str) -> str:
    if not _BYTE.search(text):  # much faster than the search for a run
        return ""
    runs = (re.sub(r"[\s,]+", "", run) for run in _BINARY_RUN.findall(text))
    return _lines(int(run, 2).to_bytes(len(run) // 8) for run in runs)


def _from_base58(text: str) -> str:
    return _lines(base58_bytes(run) for run in _BASE58_RUN.findall(text)[:_MOST_BASE58])


def _from_uuencoding(text: str) -> str:
    """Decode uuencoded lines, whose first character is their length; spaces at the end may be missing."""
    octets = []
    for first, body in _UU_LINE.findall(text):
        size = ord(first) - 0x20
        groups = -(-size // 3)
        if -4 < len(body.rstrip(" ")) - 4 * groups <= 1:
            # with the size of whole groups: it refuses other bits after the last byte
            octets.append(binascii.a2b_uu(f"{chr(0x20 + 3 * groups)}{body[: 4 * groups]}")[:size])
    return _lines(iter([b"".join(octets)]))


def _from_rot13(text: str) -> str:
    return codecs.encode(text, "rot13")


def _from_rot47(text: str) -> str:
    return text.translate(_ROT47)


def _reversed(text: str) -> str:
    return text[::-1]


REARRANGEMENTS: tuple[Callable[[str], str], ...] = (_from_rot13, _from_rot47, _reversed)
"""Functions that move or replace single characters, so that the length of a token does not change."""


def _expanded(octets: bytes) -> Iterator[bytes]:
    """Yield the decompressed content of each gzip or zlib stream in the bytes."""
    for attempt, magic in enumerate(_COMPRESSED.finditer(octets)):
        if attempt >= _MOST_COMPRESSED:
            return
        try:
            expanded = zlib.decompressobj(wbits=47).decompress(octets[magic.start() :], _LONGEST_EXPANDED)
        except zlib.error:
            continue
        if len(expanded) >= _SHORTEST_EXPANDED:
            yield expanded


def _from_base85(text: str) -> str:
    tokens = [token for token in text.split() if 8 <= len(token) <= _LONGEST_BASE85 and _UNLIKE_A_WORD.match(token)]
    return _lines(
        octets
        for runs, digits in _BASE85_RUNS
        for token in tokens
        for run in runs.findall(token)
        for octets in _base85_bytes(run, digits)
    )


def _base85_bytes(run: str, digits: bytes) -> Iterator[bytes]:
    """Yield what base85 text decodes to from each of the first five characters on, also if it has invalid blocks."""
    values = run.encode().translate(digits) + bytes([84] * 4)
    blocks = zip(values, values[1:], values[2:], values[3:], values[4:], strict=False)
    numbers = [min((((a * 85 + b) * 85 + c) * 85 + d) * 85 + e, 0xFFFFFFFF) for a, b, c, d, e in blocks]
    for shift in range(5):
        aligned = numbers[shift::5]
        padding = (shift - len(run)) % 5
        yield struct.pack(f">{len(aligned)}I", *aligned)[: 4 * len(aligned) - padding]


def _lines(decoded: Iterator[bytes]) -> str:
    parts = [part for octets in decoded for part in (octets, *_expanded(octets))]
    return _text_among(b"\xff".join(parts))  # a byte that is never text keeps them apart


def _text_among(octets: bytes) -> str:
    """Return the parts of the bytes that are text in UTF-8, or Latin text in UTF-16."""
    return "\n".join(_TEXT_RUN.findall(octets.replace(b"\0", b"").decode("utf-8", "replace")))


_DECODERS: Mapping[str, Callable[[str], str]] = {
    "look-alikes": _from_look_alikes,
    "url": _from_url,
    "escapes": _from_escapes,
    "entities": _from_entities,
    "quoted-printable": _from_quoted_printable,
    "character codes": _from_codes,
    "octal": _from_octal,
    "binary": _from_binary,
    "hex": _from_hex,
    "base64": _from_base64,
    "base58": _from_base58,
    "base32": _from_base32,
    "base85": _from_base85,
    "uuencoding": _from_uuencoding,
    "rot13": _from_rot13,
    "rot47": _from_rot47,
}
