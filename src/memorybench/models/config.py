"""The keys of a model card, and how cards are read. Field docstrings are the user's documentation."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from memorybench.core.errors import BadInput
from memorybench.core.records import Record
from memorybench.files.configs import STAND_IN, read_config
from memorybench.files.located import Document
from memorybench.files.names import safe_name
from memorybench.http.config import Auth, Headers, check_address, check_auth
from memorybench.http.tls import TlsFiles

Kind = Literal["openai", "anthropic"]

SEVERAL = "models"
"""The key of the list of cards, in a file with several cards."""
OF_OPENAI = re.compile(r"(?:chat)?gpt-.*|o\d.*|text-embedding-.*")
"""Pattern for names of OpenAI's models. A card must not have such a name, because the name means OpenAI's server."""


class Price(Record):
    """US dollars per million tokens."""

    input: float = Field(ge=0)
    """The price of input tokens, including cached ones."""
    output: float = Field(default=0, ge=0)
    """The price of output tokens; an embedding model has none."""


class ModelConfig(Record):
    """A model on a server: its address, key, price and options."""

    name: str
    """Name on the command line: 1 to 64 of a-z 0-9 _ -."""
    display_name: str = ""
    """Name in lists."""
    description: str = ""
    """One line for `list`."""
    tags: tuple[str, ...] = ()
    """Words for `list --tags`."""
    kind: Kind = "openai"
    """The API: `openai` (chat completions, which most servers offer) or `anthropic` (messages)."""
    base_url: str
    """Address of the server: https, or http on this machine. `/chat/completions`, `/embeddings` or, for `anthropic`,
    `/v1/messages` is added."""
    model: str | None = None
    """The model's name on the server; by default, `name`."""
    auth: Auth = Auth(type="none")
    """How requests are authenticated. With `type: apikey`, the header is `x-api-key` if `kind` is `anthropic`."""
    headers: Headers = Field(default_factory=dict)
    """Headers in addition to the one of `auth`."""
    query: Mapping[str, str] = Field(default_factory=dict)
    """Parameters added to the URL, such as `api-version` for Azure."""
    body: Mapping[str, Any] = Field(default_factory=dict)
    """Fields added to the JSON body; null removes a field."""
    price: Price | None = None
    """US dollars per million tokens. Without it, costs are unknown."""
    context_window: int | None = Field(default=None, ge=1)
    """Context window in tokens; by default, that in the price table or in the server's list of models."""
    temperature: float | Literal["default"] | None = Field(default=None)
    """The temperature of every call, by default 0; `default` sends none."""
    max_tokens: int | None = Field(default=None, ge=1)
    """Maximum number of tokens of a reply, by default 1024."""
    timeout: int = Field(default=120_000, ge=1)
    """Timeout of one call, in milliseconds."""
    insecure: bool = False
    """Allow plain http to another machine: keys and data are visible on the network."""
    tls: TlsFiles = TlsFiles()
    """Certificates for https."""

    @property
    def effective_auth(self) -> Auth:
        """The section `auth`, with the header `x-api-key` if the API is Anthropic's and the card names no header."""
        is_default = (
            self.kind == "anthropic" and self.auth.type == "apikey" and "header" not in self.auth.model_fields_set
        )
        return self.auth.model_copy(update={"header": "x-api-key"}) if is_default else self.auth

    @property
    def request_settings(self) -> dict[str, Any]:
        """The headers, query parameters and body fields that the card adds to every request."""
        settings = {"headers": self.headers, "query": self.query, "body": self.body}
        return {name: dict(value) for name, value in settings.items() if value}


def cards_in(document: Document) -> Sequence[Document]:
    """Return the cards of a file: those in its list `models`, or if it has no such key, the file itself as one card."""
    value = document.value
    if not isinstance(value, dict) or SEVERAL not in value:
        return [document]
    if len(value) > 1:
        other = next(key for key in value if key != SEVERAL)
        raise BadInput(
            document.where(other),
            f'a file with "{SEVERAL}" must not have other keys',
            remedy="move this key into a model card of the list",
        )
    if not isinstance(value[SEVERAL], list) or not all(isinstance(card, dict) for card in value[SEVERAL]):
        raise BadInput(document.where(SEVERAL), "the value is not a list of model cards", expected="a list of objects")
    return [document.at(SEVERAL, place) for place in range(len(value[SEVERAL]))]


def read_model(document: Document, environment: Mapping[str, str] | None = None) -> ModelConfig:
    return read_config(document, ModelConfig, _check, environment)


def _check(card: ModelConfig, document: Document) -> None:
    safe_name(card.name, document.where("name"))
    if OF_OPENAI.fullmatch(card.name):
        raise BadInput(
            document.where("name"),
            f'"{card.name}" is already the name of a model of OpenAI',
            remedy=f'choose another name, such as "my-{card.name}"',
        )
    check_auth(card.auth, document)
    where = document.where("base_url")
    check_address(card.base_url, where, insecure=card.insecure, insecure_key="insecure")
    if STAND_IN not in card.base_url and ("?" in card.base_url or "#" in card.base_url):
        raise BadInput(where, "the URL must not contain a query (?…) or fragment (#…)", remedy="use the key `query`")
    if isinstance(card.temperature, float) and card.temperature < 0:
        raise BadInput(document.where("temperature"), "the temperature must not be negative", expected="0 or more")
