from __future__ import annotations

import base64
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorybench.secrets.redaction import REDACTED, Redactor

SECRETS = ["sk-Sentinel_0123456789abcdef", "p@ss w/ord+\"quo'te\\x", "schlüssel-ñ-鍵-🔑", "a/b+c=d%e"]
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


@given(st.text(min_size=6), st.text(), st.text())
def test_no_raw_secret_survives(secret: str, before: str, after: str) -> None:
    if not secret.strip() or secret in REDACTED:
        return
    assert secret not in Redactor([secret]).clean(before + secret + after).replace(REDACTED, "\0")


def test_a_short_secret_is_replaced_only_as_a_whole_word() -> None:
    redactor = Redactor(["abc"])
    assert redactor.clean("abc abcd xabc (abc)") == f"{REDACTED} abcd xabc ({REDACTED})"
    assert redactor.clean(base64.b64encode(b"abc").decode()) == "YWJj"


def test_a_secret_that_contains_another_is_replaced_whole() -> None:
    assert Redactor(["secret-one", "secret-one-and-more"]).clean("secret-one-and-more secret-one") == (
        f"{REDACTED} {REDACTED}"
    )


def test_without_secrets_the_text_stays_as_it_is() -> None:
    assert Redactor([]).clean("anything") == "anything"
    assert Redactor(["", "  "]).clean("any  thing") == "any  thing"


def test_a_redactor_does_not_show_what_it_hides() -> None:
    assert "sk-Sentinel" not in repr(Redactor(["sk-Sentinel"]))
