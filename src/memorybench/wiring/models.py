"""Looks up models by name and opens them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, TypeGuard

from msgspec import Struct

from memorybench.core.errors import BadInput
from memorybench.journal.rows import config_text
from memorybench.models.presets import PRESETS, Options, address_of_card, has_address, key_of, resolve
from memorybench.models.prices import Usage, price, price_by_card
from memorybench.models.rehearsal import PREFIX, rehearse
from memorybench.text.spelling import suggestion

from .consent import check_consent
from .environment import environment, redactor

if TYPE_CHECKING:
    from memorybench.catalog.catalog import Catalog
    from memorybench.core.contracts import Embedder, Model
    from memorybench.core.uses import Consent
    from memorybench.datasets.config import ModelChoice
    from memorybench.models.presets import ModelAddress

MODEL_VARIABLE = "MEMORYBENCH_MODEL"
NO_MODEL = "none"
_LONGEST_REPLY = 1024
"""The default for the most tokens of a reply. It leaves room for models that reason first, and ends endless replies."""


class ResolvedModel(Struct, frozen=True):
    """A model whose address and settings were found, but that is not open yet."""

    name: str
    address: ModelAddress | None
    """Where and how the model is called; None: a scripted model, which needs no server."""
    temperature: float | None = 0.0
    """The sampling temperature; None: the default of the server."""

    def described(self) -> str:
        """Return a text that identifies the model and its settings. If it changes, a run cannot be resumed."""
        where = self.address.base_url if self.address else "here"
        temperature = "default" if self.temperature is None else f"{self.temperature:g}"
        text = f"{self.name}\nat {where}\ntemperature {temperature}"
        if self.address is None or self.address.card is None:
            return text
        settings = {**self.address.card_settings, "model": self.address.model, "max_tokens": self._longest_reply}
        return f"{text}\n{config_text(settings)}"

    @property
    def _longest_reply(self) -> int:
        card = self.address.card if self.address else None
        return (card.max_tokens if card else None) or _LONGEST_REPLY

    def price(self, input_tokens: int, output_tokens: int) -> float | None:
        """Return the price, in dollars, of one call with so many tokens; None if it is unknown."""
        if self.address is not None and self.address.card is not None:
            return price_by_card(self.address.card, Usage(input_tokens, output_tokens))
        if self.address is None or self.address.priced_as is None:
            return 0.0
        return price(self.address.model, self.address.priced_as, Usage(input_tokens, output_tokens))

    @property
    def listed_window(self) -> int | None:
        """The context window of the model in tokens; None if it is unknown without a call to the server."""
        from memorybench.models.server import known_window

        return known_window(self.address) if self.address else None

    async def fetch_window(self) -> int | None:
        """Return the context window in tokens that the server reports; None if it reports none."""
        if self.address is None:
            return None
        from memorybench.models.server import fetch_window

        key = key_of(self.address, environment()) if self.address.ready else None
        return await fetch_window(self.address, key=key, redactor=redactor())

    async def open(self, stack: AsyncExitStack, *, seed: int | None = None) -> Model:
        if self.address is None:
            return rehearse(self.name)
        from memorybench.models.opening import open_model

        options = Options(temperature=self.temperature, seed=seed, max_tokens=self._longest_reply)
        if self.address.card is not None:
            options = options.model_copy(update={"timeout": self.address.card.timeout / 1000})
        return await stack.enter_async_context(
            open_model(
                self.address,
                key=key_of(self.address, environment()),
                redactor=redactor(),
                options=options,
            )
        )

    async def open_embedder(
        self, stack: AsyncExitStack, dimensions: int | None = None, *, name: str = "openai"
    ) -> Embedder:
        """Open the model as an embedder with this name. Raise BadInput unless its server has OpenAI's API."""
        address = self.address
        if address is None or address.kind != "openai":
            raise BadInput(
                f'model "{self.name}"',
                "cannot be used as an embedding model",
                expected="a model on a server with OpenAI's API",
            )
        from memorybench.embedding.openai import OpenAIEmbedder
        from memorybench.models.server import open_address, request_headers

        headers = request_headers(address, key_of(address, environment()))
        http = await stack.enter_async_context(open_address(address, redactor()))
        query = address.card.query if address.card else {}
        price = partial(self.price, 1, 0)
        return OpenAIEmbedder(name, address.model, dimensions, address.base_url, http, headers, price, query)


class ModelResolver(Struct, frozen=True):
    """Looks up models by name: first model cards in the catalog, then names with a prefix or an address."""

    catalog: Catalog
    consent: Consent
    need_key: bool = True

    def choose(
        self, name: str | None, variable: str | None, defaults: Sequence[ModelChoice | None]
    ) -> ResolvedModel | None:
        """Return the model with this name, else the one named in the environment variable, else the first default.

        Return None if the name is "none", if there is no default, or if the key of the default is not set. Raise
        BadInput if the key of a model that was named is not set.
        """
        name = name or (environment().get(variable) if variable else None)
        if name == NO_MODEL:
            return None
        if name:
            return self.resolve(name)
        choice = next((choice for choice in defaults if choice), None)
        if choice is None:
            return None
        model = self._resolve(choice.model, choice.temperature)
        return model if model.address is None or model.address.ready else None

    def has_server(self, name: str | None) -> TypeGuard[str]:
        """Return whether the name is that of a model card, or contains the address of its server."""
        return name is not None and (has_address(name) or self.catalog.has_card(name))

    def resolve(self, name: str) -> ResolvedModel:
        """Return the model with this name. Raise BadInput if its key is needed and not set."""
        model = self._resolve(name)
        if model.address is not None and self.need_key:
            try:
                key_of(model.address, environment())
            except BadInput as error:
                close = "" if model.address.card else suggestion(name, self.catalog.names("model"))
                raise BadInput(error.where, error.problem, remedy=close or error.remedy) from None
        return model

    def _resolve(self, name: str, temperature: float = 0.0) -> ResolvedModel:
        if name.startswith(PREFIX):
            rehearse(name)  # raises where the script is unknown
            return ResolvedModel(name, None)
        if self.catalog.has_card(name):
            return self._of_card(name, temperature)
        return ResolvedModel(name, resolve(name, environment(), self._allowed_keys()), temperature)

    def _allowed_keys(self) -> frozenset[str]:
        every_key = frozenset(variable for preset in PRESETS.values() for variable in preset.key_variables)
        return every_key if self.consent.code else self.consent.variables

    def _of_card(self, name: str, temperature: float) -> ResolvedModel:
        check_consent(self.catalog, self.catalog.chosen("model", name), self.consent)
        written = self.catalog.model(name)
        card = self.catalog.model(name, environment()) if self.need_key else written
        chosen = temperature if card.temperature is None else card.temperature
        address = address_of_card(card, written, environment())
        return ResolvedModel(name, address, None if chosen == "default" else chosen)
