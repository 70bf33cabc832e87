"""What an extractor's file may say. Field docstrings are the user's documentation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import ConfigDict, Field

from memorybench.core.records import Record
from memorybench.http.tls import TlsFiles

from .baselines import Baseline


class Section(Record):
    """A mapping in a config file."""

    model_config = ConfigDict(use_attribute_docstrings=True, defer_build=True)


class Auth(Section):
    type: Literal["bearer", "token", "apikey", "none"]
    """What is sent: `bearer`: `Bearer KEY`; `token`: `Token KEY`; `apikey`: the bare key."""
    header: str = "Authorization"
    """The header it is sent in."""
    prefix: str | None = None
    """What stands before the key, in the place of what `type` says."""
    env_var: str | None = None
    """Name of the environment variable that holds the key; never the key itself."""


def _asked_as_programs_are() -> dict[str, str]:
    return {"existing_memory": "$.existingMemory", "conversation": "$.messages"}


class ExtractorConfig(Section):
    """An extractor under test, and how to ask it."""

    name: str
    """What it is called on the command line: 1 to 64 of a-z 0-9 _ -."""
    display_name: str = ""
    """What reports call it."""
    description: str = ""
    """One line for `list`."""
    type: Literal["http", "command", "callable", "provider", "reference", "baseline"]
    """An endpoint, a program, a Python function, a memory provider's store, our prompt over a model, or one of our
    two baselines."""
    url: str | None = None
    """Where an `http` extractor is asked: https, or http on this machine."""
    method: Literal["POST", "PUT", "PATCH"] = "POST"
    """The HTTP method."""
    headers: Mapping[str, str] = Field(default_factory=dict)
    """Headers beside the one that `auth` sends."""
    auth: Auth = Auth(type="none")
    """How requests prove who sends them."""
    body: Any = Field(default_factory=_asked_as_programs_are)
    """The JSON body, from `existingMemory` (as JSON), `messages` (a list of role and content) and `conversation`
    (text): `$.name` for a whole value that keeps its type, `${name}` inside text."""
    output: str = "$"
    """JSONPath to the new memory in the reply."""
    insecure: bool = False
    """Allows plain http to another machine, which shows keys and data to the network."""
    tls: TlsFiles = TlsFiles()
    """Certificates for https, for an `http` extractor."""
    command: str | None = None
    """The program of a `command` extractor and its arguments, split as a shell would and run without one. It gets
    `{"existing_memory", "conversation"}` as JSON on standard input and writes the new memory as JSON."""
    timeout: int = Field(default=120_000, ge=1)
    """Milliseconds that an endpoint or a program may take for one conversation."""
    function: str | None = None
    """The Python function of a `callable` extractor, as `module:function` or `./file.py:function`; runs only with
    --allow-code."""
    provider: str | None = None
    """The memory provider whose store is looked at; it must be able to list."""
    model: str | None = None
    """The model of a `reference` extractor; --extractor-model wins."""
    prompt: str | None = None
    """What that model is told, with `${existingMemory}` and `${conversation}`."""
    baseline: Baseline | None = None
    """`amnesiac` gives back the memory as it was; `hoarder` stores every sentence of the user."""

    @property
    def runs_code(self) -> bool:
        """Whether it runs what its file names: only where the user has said so."""
        return self.type in ("command", "callable")
