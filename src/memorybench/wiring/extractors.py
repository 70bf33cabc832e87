"""Opens extractors by name."""

from __future__ import annotations

import shlex
import sys
from contextlib import AsyncExitStack
from pathlib import Path

from msgspec import Struct

from memorybench.catalog.catalog import Catalog
from memorybench.catalog.entries import Entry
from memorybench.core.contracts import Model, Provider
from memorybench.core.errors import BadInput
from memorybench.core.extraction import Extractor
from memorybench.core.uses import Consent
from memorybench.extractors.command import split_command
from memorybench.extractors.config import ExtractorConfig
from memorybench.extractors.plugin import OpenContext, load_type
from memorybench.journal.rows import config_text

from .code import load_function
from .consent import check_consent
from .environment import environment, redactor
from .models import MODEL_VARIABLE, ModelResolver, ResolvedModel
from .providers import ProviderOpener, check_provider
from .source_code import code_of, describe_code

FLAG = "--extractor"
_COMMAND = "command"


class ResolvedExtractor(Struct, frozen=True):
    """An extractor whose config was found and checked, but that is not open yet."""

    name: str
    config: ExtractorConfig
    catalog: Catalog
    base: Path
    """The folder that paths in the config are relative to."""
    consent: Consent
    provider: Entry | None = None
    model: ResolvedModel | None = None

    @property
    def spends(self) -> bool:
        return load_type(self.config.type).spends

    def described(self) -> str:
        """Return a text that identifies the extractor. If it changes, a run cannot be resumed."""
        model = f"\n{self.model.described()}" if self.model else ""
        places = [self.config.function.rpartition(":")[0]] if self.config.function else []
        places += [word for word in shlex.split(self.config.command or "") if word.endswith(".py")]
        code = describe_code(places, self.base)
        if self.provider is not None:
            code += code_of(self.catalog, self.provider)
        return f"{config_text(self.config.plain())}{model}{code}"

    async def open(self, stack: AsyncExitStack, stores: Path, run: str) -> Extractor:
        async def open_model() -> Model:
            assert self.model is not None
            return await self.model.open(stack)

        async def open_provider() -> Provider:
            assert self.provider is not None
            opener = ProviderOpener(stack, self.catalog, stores, run, self.consent)
            return (await opener.open(self.provider.name)).provider

        context = OpenContext(
            name=self.name,
            config=self.config,
            folder=self.base,
            run=run,
            environment=environment(),
            redactor=redactor(),
            open_model=open_model,
            open_provider=open_provider,
            load_function=lambda: load_function(FLAG, self.config.function or "", self.consent, self.base),
            report_leak=lambda line: print(f"leaked scope: {line}", file=sys.stderr),
        )
        return await stack.enter_async_context(load_type(self.config.type).open(context))


def resolve_extractor(
    catalog: Catalog,
    name: str | None,
    command: str | None,
    model: str | None,
    consent: Consent,
    *,
    need_keys: bool = True,
) -> ResolvedExtractor:
    """Return the extractor with this name or command line; exactly one of them must be given.

    `name` is a config, a provider or `module:function`. Raise BadInput if something that it needs is missing.
    """
    if (name is None) == (command is None):
        either = "--extractor NAME or --extractor-command LINE"
        if name is None:
            raise BadInput(FLAG, "missing", remedy=f"add {either}")
        raise BadInput(FLAG, "two extractors are given", remedy=f"name one extractor, with {either}")
    if command is not None:
        split_command(command, "--extractor-command")
        config = ExtractorConfig(name=_COMMAND, type="command", command=command)
        return _without_model(ResolvedExtractor(_COMMAND, config, catalog, Path(), consent), model)
    assert name is not None
    if "(" in name:
        chosen = catalog.chosen("provider", name).name
        return _without_model(_of_provider(catalog, chosen, chosen, consent, need_keys), model)
    if ":" in name:
        load_function(FLAG, name, consent)  # raises before anything is spent
        config = ExtractorConfig(name="callable", type="callable", function=name)
        return _without_model(ResolvedExtractor(name, config, catalog, Path(), consent), model)
    extractors = [entry.name for entry in catalog.entries("extractor")]
    providers = [entry.name for entry in catalog.entries("provider")]
    if name in extractors:
        return _configured(catalog, name, model, consent, need_keys)
    if name in providers:
        return _without_model(_of_provider(catalog, name, name, consent, need_keys), model)
    raise catalog.unreadable(name) or BadInput(
        "", f'no extractor "{name}"', remedy=catalog.advice("extractor", name, providers)
    )


def _configured(catalog: Catalog, name: str, model: str | None, consent: Consent, need_keys: bool) -> ResolvedExtractor:
    entry = catalog.chosen("extractor", name)
    check_consent(catalog, entry, consent)
    config = catalog.extractor(name, environment() if need_keys else None)
    base = entry.file.parent if entry.file else Path()
    extractor = load_type(config.type)
    if config.type == "callable" and config.function:
        load_function(f'extractor "{name}"', config.function, consent, base)
    if config.type == "provider" and config.provider:
        return _without_model(_of_provider(catalog, name, config.provider, consent, need_keys), model)
    if need_keys and config.type == "http" and config.auth.env_var and not environment().get(config.auth.env_var):
        raise BadInput(
            f'extractor "{name}"',
            f"the environment variable {config.auth.env_var} is not set",
            remedy="set it to the key",
        )
    chosen = ResolvedExtractor(name, config, catalog, base, consent)
    if not extractor.needs_model:
        return _without_model(chosen, model)
    model_name = model or config.model or environment().get(MODEL_VARIABLE)
    if model_name is None:
        raise BadInput(f'extractor "{name}"', "the extractor needs a model", remedy="add --extractor-model MODEL")
    resolved = ModelResolver(catalog, consent, need_keys).resolve(model_name)
    return ResolvedExtractor(name, config, catalog, base, consent, model=resolved)


def _of_provider(catalog: Catalog, name: str, provider: str, consent: Consent, need_keys: bool) -> ResolvedExtractor:
    entry = catalog.chosen("provider", provider)
    check_provider(catalog, entry, consent, need_keys=need_keys)
    config = ExtractorConfig(name=name, type="provider", provider=provider)
    return ResolvedExtractor(name, config, catalog, Path(), consent, provider=entry)


def _without_model(chosen: ResolvedExtractor, model: str | None) -> ResolvedExtractor:
    if model is not None:
        raise BadInput(
            "--extractor-model",
            f"the extractor {chosen.name} uses no model that can be chosen",
            remedy="leave the flag out",
        )
    return chosen
