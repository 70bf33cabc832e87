"""Decodes a text in every known way, up to two levels deep.

Each decoder decodes as much as it can at every alignment. Text that was never encoded becomes noise; only runs that
could be text are kept.
"""

from __future__ import annotations

import base64
import html
import quopri
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import unquote, unquote_plus

_DEPTH = 2
"""Levels of encoding."""
_WORTH_DECODING = 12
"""Minimum characters of a line. Noise is usually shorter."""

_PRINTABLE = rb"[\t\n\r\x20-\x7e]|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
_TEXT_RUN = re.compile(rb"(?:" + _PRINTABLE + rb"){5,}")
_UTF_16 = re.compile(rb"(?:[A-Za-z ]\0){4}|(?:\0[A-Za-z ]){4}")
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffd]+")

_ESCAPED = re.compile(r"\\+(?:u([0-9a-f]{4})|u\{([0-9a-f]{1,6})\}|x([0-9a-f]{2}))", re.I)
_ESCAPED_BLANK = re.compile(r"\\+[nrt]")
_CODE = re.compile(r"(?<!\d)\d{2,3}(?!\d)")
_BETWEEN_HEX = re.compile(r"0x|\\x|[%\s:.,;_\-]+")
_HEX_RUN = re.compile(r"[0-9a-f]{8,}")
_NO_BASE64 = re.compile(r"[^A-Za-z0-9+/]+")
_UNLIKE_A_WORD = re.compile(r".+[A-Z]|(?=.*[a-z]).*[!#$%&*<=>?@^`{|}~]")
"""A capital after the first letter, or punctuation beside letters: other tokens are words and numbers, not base85."""
_BASE85_RUNS: tuple[tuple[re.Pattern[str], Callable[[str], bytes]], ...] = (
    (re.compile(r"[0-9A-Za-z!#$%&()*+;<=>?@^_`{|}~-]{8,}"), base64.b85decode),
    (re.compile(r"[!-u]{8,}"), base64.a85decode),
)
_LONGEST_BASE85 = 1_000
"""Characters without a blank. Longer tokens are embedded files, which take too long to decode."""

_BASE32 = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", "0123456789abcdefghijklmnopqrstuv")
_NO_BASE32 = re.compile(r"[^A-Z2-7]+")

LOOK_ALIKES: Mapping[str, str] = {
    "A": "АΑ", "B": "ВΒ", "C": "СϹ", "E": "ЕΕ", "H": "НΗ", "I": "ІΙ", "J": "Ј", "K": "КΚ", "M": "МΜ", "N": "Ν",
    "O": "ОΟ", "P": "РΡ", "S": "Ѕ", "T": "ТΤ", "X": "ХΧ", "Y": "УΥ", "Z": "Ζ", "a": "аα", "c": "сϲ", "d": "ԁ", "e": "е",
    "h": "һ", "i": "іι", "j": "ј", "k": "кκ", "n": "п", "o": "оο", "p": "рρ", "q": "ԛ", "r": "г", "s": "ѕ", "t": "τ",
    "u": "υ", "v": "ν", "w": "ԝ", "x": "хχ", "y": "уγ", "3": "З",
}  # fmt: skip
"""Cyrillic and Greek letters that look like a Latin one."""
_LATIN = str.maketrans({other: latin for latin, others in LOOK_ALIKES.items() for other in others})


@dataclass(frozen=True, slots=True)
class Decoding:
    name: str
    """`base64`, `hex of base64` …; "" is the text itself."""
    text: str


def decodings(text: str) -> Iterator[Decoding]:
    """Yield the text and everything decoded from it, simplest first, each once."""
    yield Decoding("", text)
    seen = {text}
    level = [Decoding("", text), Decoding("reversed", text[::-1])]
    for _ in range(_DEPTH):
        deeper = [decoding for outer in level for decoding in _decode(outer) if decoding.text not in seen]
        for decoding in deeper:
            if decoding.text not in seen:
                seen.add(decoding.text)
                yield decoding
        level = [Decoding(decoding.name, worth) for decoding in deeper if (worth := _worth_decoding(decoding.text))]


def _decode(outer: Decoding) -> Iterator[Decoding]:
    for name, decode in _DECODERS.items():
        decoded = decode(outer.text)
        if decoded:
            yield Decoding(f"{outer.name} of {name}" if outer.name else name, decoded)


def _worth_decoding(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if len(line) >= _WORTH_DECODING)


def text_in(octets: bytes) -> str:
    """Return the text in bytes of any kind, in UTF-8 or UTF-16."""
    texts = [octets.decode("utf-8", "replace")]
    if _UTF_16.search(octets):
        texts += [octets[at:].decode(codec, "replace") for codec in ("utf-16-le", "utf-16-be") for at in (0, 1)]
    return _CONTROLS.sub("\n", "\n".join(texts))


def _from_url(text: str) -> str:
    return unquote(unquote_plus(text)) if "%" in text else ""


def _from_escapes(text: str) -> str:
    """Decode escapes of JSON and programming languages."""
    if "\\" not in text:
        return ""
    plain = _ESCAPED.sub(_escaped_character, _ESCAPED_BLANK.sub(" ", text))
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # two escapes may form one character


def _escaped_character(escape: re.Match[str]) -> str:
    code = int(next(digits for digits in escape.groups() if digits), 16)
    return chr(code) if code <= 0x10FFFF else ""


def _from_entities(text: str) -> str:
    return html.unescape(text) if "&" in text else ""


def _from_quoted_printable(text: str) -> str:
    return quopri.decodestring(text.encode("utf-8", "replace")).decode("utf-8", "replace") if "=" in text else ""


def _from_look_alikes(text: str) -> str:
    return "" if text.isascii() else text.translate(_LATIN)


def _from_codes(text: str) -> str:
    """Decode decimal numbers as ASCII codes; others are skipped."""
    return _text_among(bytes(code for number in _CODE.findall(text) if 0x20 <= (code := int(number)) < 0x7F))


def _from_hex(text: str) -> str:
    runs = _HEX_RUN.findall(_BETWEEN_HEX.sub("", text.lower()))
    shifted = (run[shift:] for run in runs for shift in (0, 1))
    return _lines(bytes.fromhex(digits[: len(digits) // 2 * 2]) for digits in shifted)


def _from_base64(text: str) -> str:
    """Ignore blanks and other characters in between, and try all four alignments."""
    url_safe = _NO_BASE64.sub("", text.replace("-", "+").replace("_", "/"))
    letters = dict.fromkeys((url_safe, _NO_BASE64.sub("", text)))
    shifted = (run[shift:] for run in letters for shift in range(4))
    return _lines(base64.b64decode(_padded(run)) for run in shifted)


def _padded(run: str) -> str:
    whole = len(run) - (len(run) % 4 == 1)  # one extra letter holds less than a byte
    return run[:whole] + "=" * (-whole % 4)


def _from_base32(text: str) -> str:
    """Decode as one large number; its bits, shifted by up to a byte, cover all alignments."""
    letters = _NO_BASE32.sub("", text.upper())
    if not letters:
        return ""
    bits = int(letters.translate(_BASE32), 32)
    return _lines((bits >> shift).to_bytes(len(letters) * 5 // 8 + 1) for shift in range(8))


def _from_base85(text: str) -> str:
    tokens = [token for token in text.split() if 8 <= len(token) <= _LONGEST_BASE85 and _UNLIKE_A_WORD.match(token)]
    return _lines(
        b"".join(_block(run[at : at + 5], decode) for at in range(shift, len(run), 5))
        for runs, decode in _BASE85_RUNS
        for token in tokens
        for run in runs.findall(token)
        for shift in range(5)
    )


def _block(letters: str, decode: Callable[[str], bytes]) -> bytes:
    try:
        return decode(letters)
    except ValueError:
        return b"\xff\xff\xff\xff"


def _lines(decoded: Iterator[bytes]) -> str:
    return "\n".join(text for octets in decoded if (text := _text_among(octets)))


def _text_among(octets: bytes) -> str:
    """Return the runs that are text in UTF-8, or Latin text in UTF-16."""
    return b"\n".join(_TEXT_RUN.findall(octets.replace(b"\0", b""))).decode("utf-8", "ignore")


_DECODERS: Mapping[str, Callable[[str], str]] = {
    "look-alikes": _from_look_alikes,
    "url": _from_url,
    "escapes": _from_escapes,
    "entities": _from_entities,
    "quoted-printable": _from_quoted_printable,
    "character codes": _from_codes,
    "hex": _from_hex,
    "base64": _from_base64,
    "base32": _from_base32,
    "base85": _from_base85,
}
