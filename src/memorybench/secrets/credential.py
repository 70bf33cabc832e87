"""What a detector returns: the kind and the place of a credential."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Kind = Literal[
    "AWS access key", "GitHub token", "GitLab token", "model API key", "Slack token", "Stripe key", "Google API key",
    "package registry token", "service token", "JSON web token", "private key", "connection string with a password",
    "bearer token", "basic credentials", "webhook address", "password hash", "payment card number", "PIN", "password",
    "recovery phrase", "API key or token", "one-time password seed", "recovery code",
]  # fmt: skip


class Credential(Struct, frozen=True):
    kind: Kind
    start: int
    end: int
    """`start` and `end` are offsets in the text; if the credential is encoded, those of its encoded form."""
