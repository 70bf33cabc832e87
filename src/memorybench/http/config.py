"""What configs of HTTP services share: the section `auth`, and checks of keys and addresses."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator

from memorybench.core.errors import BadInput
from memorybench.core.records import Record
from memorybench.files.configs import STAND_IN
from memorybench.files.located import Document, Place

from .addresses import check_url

_PREFIXES = {"bearer": "Bearer ", "token": "Token ", "apikey": ""}
_VARIABLE_NAME = re.compile(r"[A-Z][A-Z0-9_]*")


HEADER_LINE = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+: [^\x00-\x08\x0a-\x1f\x7f]*")


def _check_headers(headers: Mapping[str, str]) -> Mapping[str, str]:
    for name, value in headers.items():
        if not HEADER_LINE.fullmatch(f"{name}: {value}"):
            raise ValueError(f"invalid header {name!r}; a header is one line, and its name has no spaces or colons")
    return headers


def _check_header_name(name: str) -> str:
    _check_headers({name: ""})
    return name


Headers = Annotated[Mapping[str, str], AfterValidator(_check_headers)]
HeaderName = Annotated[str, AfterValidator(_check_header_name)]


class Auth(Record):
    type: Literal["bearer", "token", "apikey", "none"]
    """Value of the header. `none`: no header; `bearer`: `Bearer KEY`; `token`: `Token KEY`; `apikey`: only the key."""
    header: HeaderName = "Authorization"
    """Name of the header that contains the key."""
    prefix: str | None = None
    """Text before the key, instead of the text that `type` sets."""
    env_var: str | None = None
    """Name of the environment variable that contains the key; never the key itself."""


def auth_headers(auth: Auth, key: str | None, where: str) -> Mapping[str, str]:
    """Return the header that authenticates a request; none if `auth.type` is "none"."""
    if auth.type == "none":
        return {}
    key = (key or "").strip()  # a file or a shell may add a newline
    if not key:
        raise BadInput(where, f"the environment variable {auth.env_var} is not set", remedy=f"export {auth.env_var}=…")
    prefix = _PREFIXES[auth.type] if auth.prefix is None else auth.prefix
    return {auth.header: f"{prefix}{key}"}


def check_auth(auth: Auth, document: Document) -> None:
    """Raise BadInput if the section `auth` of the document names no valid environment variable."""
    if auth.type != "none" and not auth.env_var:
        raise BadInput(
            document.where("auth"), '"envVar" is missing', expected="the name of the environment variable with the key"
        )
    if auth.env_var is not None:
        check_variable_name(auth.env_var, document, ("auth", "env_var"))


def check_variable_name(name: str, document: Document, place: Place) -> None:
    if not _VARIABLE_NAME.fullmatch(name):
        # the value is not shown: it is probably the key itself
        raise BadInput(
            document.where(*place),
            "invalid name of an environment variable",
            expected="a name such as MEM0_API_KEY",
            remedy="write the name of a variable here, and never the key itself",
        )


def check_address(url: str, where: str, *, insecure: bool, insecure_key: str) -> None:
    """Raise BadInput if requests to the address are not allowed. Each request is checked again when it is sent.

    `insecure_key` names the key that allows plain http. An address that contains `${VAR}` is not checked yet.
    """
    if STAND_IN in url:
        return
    try:
        check_url(url, insecure)
    except BadInput as error:
        is_plain = url.startswith("http://")
        raise BadInput(
            where,
            f"{error.where}: {error.problem}",
            expected=error.expected,
            remedy=f"use https, or set {insecure_key}: true if you trust the network" if is_plain else error.remedy,
        ) from None
