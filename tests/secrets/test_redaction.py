from __future__ import annotations

import base64
import html
import html.entities
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorybench.secrets.redaction import REDACTED, SHORTEST, Redactor

SECRETS = ["sk-Sentinel_0123456789abcdef", "p@ss w/ord+\"quo'te\\x", "schlüssel-ñ-鍵-🔑", "a/b+c=d%e", "Zq7-mP2x"]


def percent(text: str) -> str:
    """Encode every byte, also those of letters."""
    return "".join(f"%{octet:02X}" for octet in text.encode())


def units(text: str) -> str:
    octets = text.encode("utf-16-be")
    return "".join(f"\\u{octets[at : at + 2].hex()}" for at in range(0, len(octets), 2))


NAMED = {character: f"&{name}" for name, character in html.entities.html5.items() if name.endswith(";")}
ENCODINGS = {
    "raw": str,
    "URL-encoded": lambda secret: quote(secret, safe=""),
    "URL-encoded, slashes left": quote,
    "URL-encoded as a form": quote_plus,
    "URL-encoded in lower case": lambda secret: quote(secret, safe="").replace("%2F", "%2f"),
    "base64": lambda secret: base64.b64encode(secret.encode()).decode(),
    "base64 for URLs": lambda secret: base64.urlsafe_b64encode(secret.encode()).decode(),
    "hex": lambda secret: secret.encode().hex(),
    "upper hex": lambda secret: secret.encode().hex().upper(),
    "repr": lambda secret: repr(secret)[1:-1],
    "ascii": lambda secret: ascii(secret)[1:-1],
    "JSON": lambda secret: json.dumps(secret)[1:-1],
    "JSON with letters as they are": lambda secret: json.dumps(secret, ensure_ascii=False)[1:-1],
    "JSON in JSON": lambda secret: json.dumps(json.dumps(secret, ensure_ascii=False)[1:-1], ensure_ascii=False)[1:-1],
    "JSON with escaped slashes": lambda secret: json.dumps(secret)[1:-1].replace("/", "\\/"),
    "every byte percent-encoded": percent,
    "every byte percent-encoded in lower case": lambda secret: percent(secret).lower(),
    "URL-encoded twice": lambda secret: quote(quote(secret, safe=""), safe=""),
    "every byte percent-encoded, then URL-encoded": lambda secret: quote(percent(secret), safe=""),
    "HTML": html.escape,
    "HTML, all named entities": lambda secret: "".join(NAMED.get(letter, letter) for letter in secret),
    "HTML, decimal": lambda secret: "".join(f"&#{ord(letter)};" for letter in secret),
    "HTML, hexadecimal": lambda secret: "".join(f"&#x{ord(letter):X};" for letter in secret),
    "HTML twice": lambda secret: html.escape("".join(f"&#{ord(letter):04};" for letter in secret)),
    "HTML in JSON of Go": lambda secret: html.escape(secret).replace("&", "\\u0026"),
    "\\uXXXX": units,
    "\\uXXXX in upper case": lambda secret: units(secret).upper().replace("\\U", "\\u"),
    "\\uXXXX in JSON": lambda secret: json.dumps(units(secret))[1:-1],
    "\\u{X}": lambda secret: "".join(f"\\u{{{ord(letter):x}}}" for letter in secret),
    "\\UXXXXXXXX": lambda secret: "".join(f"\\U{ord(letter):08x}" for letter in secret),
    "\\xXX": lambda secret: "".join(f"\\x{octet:02x}" for octet in secret.encode()),
    "repr of bytes": lambda secret: repr(secret.encode())[2:-1],
    "every second letter encoded": lambda secret: "".join(
        letter if at % 2 else percent(letter) for at, letter in enumerate(secret)
    ),
}


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_is_found_in_every_encoding(secret: str, encoding: str) -> None:
    disguised = ENCODINGS[encoding](secret)
    cleaned = Redactor([secret]).clean(f"before {disguised} after")
    assert disguised not in cleaned
    assert cleaned.startswith(f"before {REDACTED}")
    assert cleaned.endswith(" after")


@pytest.mark.parametrize("before", ["Bearer ", "user:", "me:", ":", ""])
@pytest.mark.parametrize("after", ["", "@", "\r\n"])
def test_a_secret_is_found_inside_the_base64_of_a_longer_text(before: str, after: str) -> None:
    secret = "sk-Sentinel_0123456789abcdef"
    cleaned = Redactor([secret]).clean(base64.b64encode(f"{before}{secret}{after}".encode()).decode())
    assert REDACTED in cleaned
    assert len(cleaned.replace(REDACTED, "")) <= len(base64.b64encode((before + after).encode())) + 4


@pytest.mark.slow
@given(st.text(min_size=8), st.text(), st.text())
def test_no_raw_secret_survives(secret: str, before: str, after: str) -> None:
    if len(secret.strip()) < SHORTEST or secret in REDACTED:
        return
    assert secret not in Redactor([secret]).clean(before + secret + after).replace(REDACTED, "\0")


@pytest.mark.parametrize("shown", [" Zq7-mP2x\r", "Zq7-mP2x", "Zq7-mP2x\r"])
def test_a_secret_is_found_with_and_without_the_spaces_around_it(shown: str) -> None:
    assert "Zq7" not in Redactor([" Zq7-mP2x\r"]).clean(f"key={shown}.")


def test_spaces_inside_a_secret_may_have_changed() -> None:
    redactor = Redactor(["correct  horse\tbattery"])
    for shown in ("correct horse battery", "correct\n   horse battery", "correct%20%20horse+battery"):
        assert redactor.clean(f"<{shown}>") == f"<{REDACTED}>"


def test_each_line_of_a_private_key_is_a_secret() -> None:
    line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"
    redactor = Redactor([f"-----BEGIN PRIVATE KEY-----\n{line}\n-----END PRIVATE KEY-----\n"])
    assert redactor.clean(f"line 1: {line}") == f"line 1: {REDACTED}"
    assert redactor.clean("-----BEGIN PRIVATE KEY-----") == "-----BEGIN PRIVATE KEY-----"


@pytest.mark.parametrize("value", ["postgresql://me:Zq7%2DmP2x@host/db", "Bearer Zq7-mP2x", "https://Zq7-mP2x@host"])
def test_the_credential_in_a_url_or_header_is_a_secret_of_its_own(value: str) -> None:
    assert Redactor([value]).clean("password Zq7-mP2x!") == f"password {REDACTED}!"


def test_a_value_of_less_than_8_characters_is_not_redacted() -> None:
    redactor = Redactor(["1234567", "  12345  "])
    assert redactor.clean("1234567 12345") == "1234567 12345"


def test_a_secret_can_be_added_later() -> None:
    redactor = Redactor([])
    clean = redactor.clean
    redactor.add("Zq7-mP2x")
    assert clean("token Zq7-mP2x") == f"token {REDACTED}"


def test_many_backslashes_take_linear_time() -> None:
    text = "\\" * 200_000 + "%41"
    assert Redactor(['"quoted"secret"']).clean(text) == text


def test_a_secret_that_contains_another_is_replaced_whole() -> None:
    assert Redactor(["secret-one", "secret-one-and-more"]).clean("secret-one-and-more secret-one") == (
        f"{REDACTED} {REDACTED}"
    )


def test_without_secrets_the_text_stays_as_it_is() -> None:
    assert Redactor([]).clean("anything") == "anything"
    assert Redactor(["", "  "]).clean("any  thing") == "any  thing"


def test_a_redactor_does_not_show_what_it_hides() -> None:
    assert "sk-Sentinel" not in repr(Redactor(["sk-Sentinel"]))


def test_many_spaces_take_linear_time() -> None:
    text = "correct" + " " * 200_000 + "stallion"
    assert Redactor(["correct horse"]).clean(text) == text
