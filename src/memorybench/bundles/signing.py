"""Signs bundles: an in-toto statement in a DSSE envelope, by ed25519. Needs the extra `verify`.

https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md, https://github.com/secure-systems-lab/dsse
The predicate follows the proposal in-toto/attestation#575.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from pydantic import Field, ValidationError

from memorybench.core.errors import BadInput
from memorybench.core.records import Record, canonical
from memorybench.files.json_text import decode

from .archive import Manifest, has_too_many_values
from .claims import Claim, claim
from .rows import RunRow

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

STATEMENT, PAYLOAD = "https://in-toto.io/Statement/v1", "application/vnd.in-toto+json"
PREDICATE = "https://in-toto.io/attestation/eval-result/v0.1"
_LARGEST_KEY = 10_000


class _Signature(Record):
    keyid: str = Field(max_length=200)
    sig: str = Field(max_length=1000)


class _Envelope(Record):
    payload_type: str = Field(alias="payloadType")
    payload: str
    signatures: tuple[_Signature, ...] = Field(min_length=1, max_length=10)


class _Subject(Record):
    name: str
    digest: Mapping[str, str]


class _Statement(Record):
    type: str = Field(alias="_type")
    subject: tuple[_Subject, ...] = Field(min_length=1, max_length=1)
    predicate_type: str = Field(alias="predicateType")
    predicate: Mapping[str, Any]


class PublicKey(Struct, frozen=True):
    key: Ed25519PublicKey

    @classmethod
    def read(cls, path: Path) -> PublicKey:
        """Read a public key in PEM form, as `memorybench keygen` and `openssl pkey -pubout` write it."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key

        return cls(_read_key(path, "public", load_pem_public_key, Ed25519PublicKey))

    @property
    def id(self) -> str:
        return hashlib.sha256(self.key.public_bytes_raw()).hexdigest()

    def is_valid(self, signature: bytes, content: bytes) -> bool:
        from cryptography.exceptions import InvalidSignature

        try:
            self.key.verify(signature, content)
        except InvalidSignature:
            return False
        return True


class PrivateKey(Struct, frozen=True):
    key: Ed25519PrivateKey

    @classmethod
    def read(cls, path: Path) -> PrivateKey:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        return cls(_read_key(path, "private", partial(load_pem_private_key, password=None), Ed25519PrivateKey))

    @property
    def public(self) -> PublicKey:
        return PublicKey(self.key.public_key())

    def sign(self, manifest: Manifest, run: RunRow, report: Mapping[str, Any]) -> str:
        """Return the signature of a bundle: a DSSE envelope as JSON. Equal bundles and keys give equal signatures."""
        payload = canonical(statement(manifest.root, run, report)).encode()
        signature = self.key.sign(_encoded(PAYLOAD, payload))
        return canonical(
            {
                "payloadType": PAYLOAD,
                "payload": base64.b64encode(payload).decode(),
                "signatures": [{"keyid": self.public.id, "sig": base64.b64encode(signature).decode()}],
            }
        )


def check_installed() -> None:
    """Raise BadInput if the library for signatures is missing."""
    from importlib.util import find_spec

    if find_spec("cryptography") is None:
        raise BadInput(
            "signatures", "the package cryptography is not installed", remedy="pip install 'memorybench[verify]'"
        )


def make_keys(path: Path) -> str:
    """Write a new private key to `path`, and its public key to `path` with .pub appended; return the id of the key.

    Raise BadInput if one of the files exists.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    if not path.name:
        raise BadInput(str(path), "is a folder", expected="the name of a new file")
    key = Ed25519PrivateKey.generate()
    public = path.with_name(f"{path.name}.pub")
    texts = {
        path: (key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), 0o600),
        public: (key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo), 0o644),
    }
    for place in texts:
        if os.path.lexists(place):
            raise BadInput(
                str(place), "the file already exists, and a key is never replaced", remedy="choose another name"
            )
    made: list[Path] = []
    try:
        for place, (content, mode) in texts.items():
            with os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
                made.append(place)
                file.write(content)
    except OSError as error:
        for one in made:  # one key without the other is useless, and the next attempt would find an existing file
            one.unlink(missing_ok=True)
        raise BadInput(
            str(place), f"the key file cannot be written ({error.strerror})", remedy="choose another folder"
        ) from error
    return PublicKey(key.public_key()).id


def statement(root: str, run: RunRow, report: Mapping[str, Any]) -> dict[str, Any]:
    """Return the statement that is signed: the root of the bundle, and the measures of its report."""
    name, _, version = run.program.partition(" ")
    return {
        "_type": STATEMENT,
        "subject": [{"name": f"memorybench run {run.id}", "digest": {"sha256": root}}],
        "predicateType": PREDICATE,
        "predicate": {
            "evaluatedAt": run.finished or run.created,
            "harness": {"name": name or "memorybench", "version": version or "unknown"},
            "suite": {"name": run.suite},
            "claims": list(_signed_measures(report)),
            "assuranceLevel": "self_attested",
        },
    }


def _signed_measures(report: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for result in report["results"]:
        if not result["group"]:
            for measure in result["measures"]:
                if measure["value"] is not None:
                    yield {
                        "benchmark": result["benchmark"],
                        "subject": result["subject"],
                        "metric": measure["name"],
                        "value": measure["value"],
                        "low": measure["low"],
                        "high": measure["high"],
                        "sampleSize": measure["n"],
                    }


def signature_claims(
    text: str | None, manifest: Manifest, run: RunRow, report: Mapping[str, Any], keys: Sequence[PublicKey]
) -> Iterator[Claim]:
    """Check the signature of a bundle with the public keys that the user trusts. `report` is the bundle's report."""
    if text is None:
        if keys:
            yield claim("signature", "contradicted", "the bundle has no signature")
        else:
            yield claim("signature", "unchecked", "the bundle has no signature: anyone may have made it")
        return
    try:
        envelope = _Envelope.model_validate_json(text)
        payload = base64.b64decode(envelope.payload, validate=True)
        signatures = [base64.b64decode(one.sig, validate=True) for one in envelope.signatures]
        if has_too_many_values(payload):
            raise ValueError("too many values")
        decode(payload.decode(), "the signature")  # rejects a repeated key, of which programs read different values
        signed = _Statement.model_validate_json(payload)
    except (ValidationError, binascii.Error, ValueError, BadInput):
        yield claim("signature", "contradicted", "the signature does not have the form of a DSSE envelope")
        return
    same_types = (envelope.payload_type, signed.type, signed.predicate_type) == (PAYLOAD, STATEMENT, PREDICATE)
    if not same_types or signed.subject[0].digest != {"sha256": manifest.root}:
        yield claim("signature", "contradicted", "the signature is about another bundle")
        return
    expected = statement(manifest.root, run, report)
    if canonical(signed.predicate) != canonical(expected["predicate"]):
        yield claim("signature", "contradicted", "the signed figures are not those of the report")
        return
    if not keys:
        known = ", ".join(one.keyid[:16] for one in envelope.signatures if one.keyid.isalnum())
        yield claim(
            "signature", "unchecked", f"signed by the key {known or '?'}; name it with --key", n=len(signatures)
        )
        return
    content = _encoded(PAYLOAD, payload)
    signers = [key for key in keys if any(key.is_valid(one, content) for one in signatures)]
    if signers:
        names = ", ".join(key.id[:16] for key in signers)
        text = f"the owner of the key {names} signed this root and these figures"
        yield claim("signature", "proved", text, n=len(signers))
    else:
        yield claim("signature", "contradicted", "no signature is of the given key")


def _encoded(kind: str, payload: bytes) -> bytes:
    """Return the bytes that DSSE signs: its pre-authentication encoding of the payload."""
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(payload), payload)


def _read_key(path: Path, kind: str, load: Callable[[bytes], object], key_type: type) -> Any:
    """Return the key in a file. Raise BadInput if `load` cannot parse it, or if it is a key of another algorithm."""
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_KEY)
    except OSError as error:
        raise BadInput(str(path), f"cannot be read ({error.strerror})", expected="a key file") from error
    with suppress(ValueError, TypeError):  # TypeError: it has a password
        key = load(content)
        if isinstance(key, key_type):
            return key
    raise BadInput(
        str(path),
        f"is not a {kind} ed25519 key",
        expected="a PEM file without a password",
        remedy="`memorybench keygen` makes a pair of keys",
    )
