"""Refuses a config that contains a credential itself instead of the name of an environment variable."""

from __future__ import annotations

import re

from memorybench.core.errors import BadInput
from memorybench.files.environment import REFERENCE
from memorybench.files.located import Document
from memorybench.secrets.provider_keys import key_kind_in
from memorybench.secrets.redaction import SHORTEST

from .uses import texts_in

_CREDENTIAL_KEY = re.compile(
    r"(?:proxy)?authorization|cookie|token|bearer|pwd"
    r"|.*(?:apikey|accesskey|secretkey|privatekey|authkey|password|passwd|passphrase|secret|accesstoken|authtoken)"
)
"""Names of headers, parameters, fields and variables that hold a credential, in lower case without punctuation."""
_SCHEME = re.compile(r"(?i:bearer|token|basic|apikey)\s+")
_USER_IN_URL = re.compile(r"(?:https?|wss?)://[^\s/@$]+@")


def check_literals(document: Document) -> None:
    """Raise BadInput at the first literal credential. The message does not contain it."""
    for place, text in texts_in(document.value, ()):
        # the default in `${VAR:-default}` is written in the file
        literal = REFERENCE.sub(lambda reference: reference["default"] or reference[0], text)
        if _is_credential(str(place[-1]) if place else "", literal):
            raise BadInput(
                document.where(*place),
                "the value contains a secret, such as an API key",
                expected="the name of an environment variable",
                remedy="write ${VARIABLE} instead, and set that variable; if the file was shared, revoke the secret",
            )


def _is_credential(key: str, text: str) -> bool:
    if key_kind_in(text) is not None or _USER_IN_URL.search(text):
        return True
    has_variable = "$" in text  # ${VAR}, ${name} or $.name
    is_long = len(_SCHEME.sub("", text.strip(), count=1)) >= SHORTEST
    return is_long and not has_variable and _CREDENTIAL_KEY.fullmatch(re.sub(r"\W|_", "", key).lower()) is not None
