"""The keys of an extractor's config file. Field docstrings are the user's documentation."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from memorybench.core.records import Record
from memorybench.http.config import Auth, Headers
from memorybench.http.tls import TlsFiles

from .plugin import type_names

Baseline = Literal["amnesiac", "hoarder"]


class ExtractorConfig(Record):
    """An extractor under test, and how it is called."""

    name: str
    """Name on the command line: 1 to 64 of a-z 0-9 _ -."""
    display_name: str = ""
    """Name in reports."""
    description: str = ""
    """One line for `list`."""
    type: Annotated[str, Field(json_schema_extra=lambda schema: schema.update(enum=list(type_names())))]
    """`http` (an endpoint), `command` (a program), `callable` (a Python function), `provider` (the store of a memory
    provider), `reference` (memorybench's prompt and a model) or `baseline`."""
    url: str | None = None
    """Address of an `http` extractor: https, or http on this machine."""
    method: Literal["POST", "PUT", "PATCH"] = "POST"
    """The HTTP method."""
    headers: Headers = Field(default_factory=dict)
    """Headers in addition to the one of `auth`."""
    auth: Auth = Auth(type="none")
    """How requests are authenticated."""
    body: Any = Field(default_factory=lambda: {"existing_memory": "$.existingMemory", "conversation": "$.messages"})
    """The JSON body. Variables: `existingMemory` (JSON), `messages` (a list of role and content) and `conversation`
    (text); `$.name` inserts a value with its type, `${name}` inserts text."""
    output: str = "$"
    """JSONPath to the new memory in the reply."""
    insecure: bool = False
    """Allow plain http to another machine: keys and data are visible on the network."""
    tls: TlsFiles = TlsFiles()
    """Certificates for https, for an `http` extractor."""
    command: str | None = None
    """The program of a `command` extractor and its arguments, split like in a shell but run without one. It reads
    `{"existing_memory", "conversation"}` as JSON from standard input and writes the new memory as JSON."""
    timeout: int = Field(default=120_000, ge=1)
    """Timeout of an endpoint or a program for one conversation, in milliseconds."""
    function: str | None = None
    """The Python function of a `callable` extractor: `module:function` or `./file.py:function`. Needs
    --allow-code."""
    provider: str | None = None
    """The memory provider of a `provider` extractor; it must be able to list its memories."""
    model: str | None = None
    """The model of a `reference` extractor; --extractor-model takes precedence."""
    prompt: str | None = None
    """The prompt of a `reference` extractor, with `${existingMemory}` and `${conversation}`."""
    baseline: Baseline | None = None
    """`amnesiac` returns the memory unchanged; `hoarder` stores every sentence of the user."""
