"""`memorybench keygen`, `bundle --sign` and `verify --key`: who stands behind a bundle."""

from __future__ import annotations

import base64
import json
import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_public_key,
)

from memorybench.bundles import signing
from tests.bundles.editing import as_lines, read_files, rows_of, write_files
from tests.cli.command import Command

MakeBundle = Callable[..., Path]


@pytest.fixture
def signed(command: Command, bundle: MakeBundle) -> Path:
    bundle("hygiene")
    assert command("keygen", "author").code == 0
    return bundle("hygiene", "--sign", "author")


@pytest.mark.skipif(os.name == "nt", reason="files have no such mode on Windows")
@pytest.mark.parametrize(("mode", "is_reported"), [(0o600, False), (0o640, True), (0o604, True)])
def test_a_key_that_others_can_read_is_reported(
    command: Command, bundle: MakeBundle, mode: int, is_reported: bool
) -> None:
    bundle("hygiene")
    assert command("keygen", "author").code == 0
    (command.folder / "author").chmod(mode)
    said = command("bundle", "hygiene", "--sign", "author", "--output", "signed.mbz", "--json")
    assert said.code == 0
    assert said.json["root"]
    assert ("author" in said.err) == is_reported


def signature(command: Command, path: Path, *options: str) -> tuple[int, str]:
    said = command("verify", str(path), *options, "--json")
    claims = [claim for claim in said.json["claims"] if claim["name"] == "signature"]
    return said.code, claims[0]["level"]


def test_a_signature_is_proved_with_the_key_of_its_author(command: Command, signed: Path) -> None:
    assert signature(command, signed, "--key", "author.pub") == (0, "proved")
    assert signature(command, signed) == (0, "unchecked")


def test_a_signature_by_another_key_is_contradicted(command: Command, signed: Path) -> None:
    assert command("keygen", "stranger").code == 0
    assert signature(command, signed, "--key", "stranger.pub") == (1, "contradicted")
    assert signature(command, signed, "--key", "stranger.pub", "author.pub") == (0, "proved")


def test_a_bundle_without_a_signature_fails_if_a_key_is_required(command: Command, bundle: MakeBundle) -> None:
    path = bundle("hygiene")
    assert command("keygen", "author").code == 0
    assert signature(command, path, "--key", "author.pub") == (1, "contradicted")
    assert signature(command, path) == (0, "unchecked")


@pytest.mark.parametrize("key", ["", " ", ","])
def test_an_empty_key_requires_no_less_than_a_key(command: Command, bundle: MakeBundle, key: str) -> None:
    path = bundle("hygiene")
    for words in (("verify", str(path)), ("leaderboard", str(path.parent), "--output", "site")):
        said = command(*words, "--key", key)
        assert said.code == 2
        assert "--key" in said.err
    assert not (command.folder / "site").exists()


def test_a_change_behind_a_repaired_manifest_breaks_the_signature(command: Command, signed: Path) -> None:
    files = read_files(signed)
    steps = rows_of(files, "steps.jsonl")
    steps[0]["started"] = "2020-01-01T00:00:00.000+00:00"  # declared only: nothing else detects it
    path = write_files(signed, {**files, "steps.jsonl": as_lines(steps)})
    assert signature(command, path)[1] == "contradicted"


def test_a_signature_of_another_bundle_is_contradicted(command: Command, bundle: MakeBundle, signed: Path) -> None:
    own = read_files(signed)["signature.json"]
    other = bundle("hygiene", "--public")
    path = write_files(other, {**read_files(other), "signature.json": own})
    assert signature(command, path, "--key", "author.pub") == (1, "contradicted")


def envelope_of(path: Path) -> dict[str, Any]:
    envelope: dict[str, Any] = json.loads(read_files(path)["signature.json"])
    return envelope


def test_the_envelope_is_dsse_with_an_in_toto_statement(command: Command, signed: Path) -> None:
    envelope = envelope_of(signed)
    payload = base64.b64decode(envelope["payload"])
    statement = json.loads(payload)
    manifest = json.loads(read_files(signed)["manifest.json"])
    assert envelope["payloadType"] == "application/vnd.in-toto+json"
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["subject"][0]["digest"] == {"sha256": manifest["root"]}
    assert statement["predicate"]["assuranceLevel"] == "self_attested"
    assert {"metric", "value", "sampleSize"} <= {*statement["predicate"]["claims"][0]}
    # checked here by the definition of DSSE, without our code
    kind = envelope["payloadType"].encode()
    content = b" ".join((b"DSSEv1", str(len(kind)).encode(), kind, str(len(payload)).encode(), payload))
    key = load_pem_public_key((command.folder / "author.pub").read_bytes())
    key.verify(base64.b64decode(envelope["signatures"][0]["sig"]), content)  # type: ignore[union-attr,call-arg]


@pytest.mark.parametrize("change", ["payload", "sig", "payloadType", "more", "none"])
def test_a_changed_envelope_is_contradicted(command: Command, signed: Path, change: str) -> None:
    envelope = envelope_of(signed)
    if change == "payload":
        text = base64.b64decode(envelope["payload"]).replace(b"self_attested", b"third_party__")
        envelope["payload"] = base64.b64encode(text).decode()
    elif change == "sig":
        envelope["signatures"][0]["sig"] = base64.b64encode(bytes(64)).decode()
    elif change == "payloadType":
        envelope["payloadType"] = "text/plain"
    elif change == "more":
        envelope["more"] = 1
    else:
        envelope["signatures"] = []
    files = {**read_files(signed), "signature.json": json.dumps(envelope).encode()}
    path = write_files(signed, files)
    assert signature(command, path, "--key", "author.pub") == (1, "contradicted")


@pytest.mark.parametrize(("options", "expected"), [((), False), (("--key", "author.pub"), True)])
def test_only_who_names_a_key_reads_that_its_signature_is_missing(
    command: Command, signed: Path, options: Sequence[str], expected: bool
) -> None:
    path = write_files(signed, {**read_files(signed), "signature.json": b'{"payload": "!!"}'})
    said = command("verify", str(path), *options)
    assert said.code == 1
    assert ("a key that you named" in said.out) == expected
    assert ("contradicts itself" in said.out) != expected


def test_a_statement_with_too_many_values_is_not_parsed(
    command: Command, signed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two million empty lists take hundreds of megabytes, and a few thousand bytes of a bundle."""
    envelope = envelope_of(signed)
    envelope["payload"] = base64.b64encode(b"[" + b"[]," * 2_000_001 + b"0]").decode()
    path = write_files(signed, {**read_files(signed), "signature.json": json.dumps(envelope).encode()})
    parsed = []
    monkeypatch.setattr(signing, "decode", lambda text, *_: parsed.append(text))
    assert signature(command, path, "--key", "author.pub") == (1, "contradicted")
    assert parsed == []


def test_the_same_run_and_key_give_the_same_bytes(command: Command, bundle: MakeBundle, signed: Path) -> None:
    first = signed.read_bytes()
    assert bundle("hygiene", "--sign", "author").read_bytes() == first


def test_a_private_key_is_readable_by_its_owner_only_and_never_replaced(command: Command) -> None:
    assert command("keygen", "author", "--json").json["key_id"]
    key = command.folder / "author"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    content = key.read_bytes()
    assert command("keygen", "author").code == 2
    assert key.read_bytes() == content


@pytest.mark.parametrize("name", [".", "/", "", "a" * 252, "a" * 300, "missing/author", "linked"])
def test_keys_are_made_together_or_not_at_all(command: Command, name: str) -> None:
    """A name that fits may be too long with the suffix, and a link that leads nowhere is in the way."""
    (command.folder / "linked.pub").symlink_to("nowhere")
    said = command("keygen", name)
    assert (said.code, said.err.count("\n")) == (2, 1)
    assert "unexpected" not in said.err
    assert [path.name for path in command.folder.iterdir()] == ["linked.pub"]


@pytest.mark.parametrize(
    "options",
    [
        ("--sign", "author", "--output", "./author"),
        ("--sign", "author", "--output", "author.pub"),
        ("--output", "author"),
        ("--output", "author.pub"),
        ("--output", "empty"),
    ],
)
def test_a_bundle_replaces_no_file_but_a_bundle(command: Command, bundle: MakeBundle, options: Sequence[str]) -> None:
    bundle("hygiene")
    assert command("keygen", "author").code == 0
    (command.folder / "empty").touch()
    before = {path.name: path.read_bytes() for path in command.folder.iterdir() if path.is_file()}
    said = command("bundle", "hygiene", *options)
    assert (said.code, said.err.count("\n")) == (2, 1)
    assert {path.name: path.read_bytes() for path in command.folder.iterdir() if path.is_file()} == before
    assert command("bundle", "hygiene", "--sign", "author", "--output", "hygiene.mbz").code == 0


def test_a_key_with_a_password_is_refused_with_the_reason(command: Command, bundle: MakeBundle) -> None:
    bundle("hygiene")
    key = Ed25519PrivateKey.generate()
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))
    (command.folder / "locked").write_bytes(text)
    said = command("bundle", "hygiene", "--sign", "locked")
    assert said.code == 2
    assert "without a password" in said.err


def test_a_file_that_is_no_key_is_refused(command: Command, bundle: MakeBundle) -> None:
    path = bundle("hygiene")
    (command.folder / "text").write_text("hello")
    assert command("keygen", "author").code == 0
    assert command("verify", str(path), "--key", "text").code == 2
    assert command("verify", str(path), "--key", "author").code == 2
    assert command("bundle", "hygiene", "--sign", "author.pub").code == 2
    assert command("bundle", "hygiene", "--sign", "missing").code == 2
    assert not (command.folder / "hygiene.mbz.part").exists()
