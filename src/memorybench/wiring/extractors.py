"""From an extractor's name to an extractor that can be asked."""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from memorybench.catalog.catalog import Catalog
from memorybench.catalog.entries import Entry
from memorybench.core.errors import BadInput
from memorybench.core.extraction import Extractor
from memorybench.extractors.command import split_command
from memorybench.extractors.config import ExtractorConfig
from memorybench.extractors.reference import parse_prompt
from memorybench.text.spelling import suggestion

from .code import load_function
from .environment import environment, redactor
from .models import MODEL_VARIABLE, Chosen, model_named, open_chosen
from .providers import ProviderOpener, check_provider, lines

FLAG = "--extractor"
_COMMAND = "command"


@dataclass(frozen=True, slots=True)
class ChosenExtractor:
    """Everything is resolved, nothing is opened."""

    name: str
    config: ExtractorConfig
    catalog: Catalog
    base: Path
    """Where paths in its config are taken from."""
    provider: Entry | None = None
    model: Chosen | None = None
    allow_code: bool = False

    @property
    def spends(self) -> bool:
        return self.config.type in ("http", "command", "callable", "reference", "provider")

    def described(self) -> str:
        """What a resumed run must find unchanged."""
        model = f"\n{self.model.described()}" if self.model else ""
        return f"{lines(self.config.plain())}{model}"

    async def open(self, stack: AsyncExitStack, stores: Path, run: str) -> Extractor:
        config = self.config
        if config.type == "baseline" and config.baseline is not None:
            from memorybench.extractors.baselines import open_baseline

            return await stack.enter_async_context(open_baseline(config.baseline))
        if config.type == "callable" and config.function is not None:
            from memorybench.extractors.callable_extractor import open_callable

            function = load_function(FLAG, config.function, self.allow_code, self.base)
            return await stack.enter_async_context(open_callable(function, self.name))
        if config.type == "command" and config.command is not None:
            from memorybench.extractors.command import open_command

            return await stack.enter_async_context(
                open_command(
                    split_command(config.command, FLAG),
                    environment(),  # the user named the program, and it may need the user's keys
                    self.base,
                    redactor().clean,
                    name=self.name,
                    deadline=config.timeout / 1000,
                )
            )
        if config.type == "http":
            from memorybench.extractors.http import open_http_extractor

            key = environment().get(config.auth.env_var) if config.auth.env_var else None
            return await stack.enter_async_context(open_http_extractor(config, key=key, redactor=redactor()))
        if config.type == "reference" and self.model is not None and config.prompt is not None:
            from memorybench.extractors.reference import open_reference

            model = await open_chosen(stack, self.model)
            prompt = parse_prompt(config.prompt, self.name)
            return await stack.enter_async_context(open_reference(model, prompt, name=self.name))
        assert self.provider is not None  # nothing else is left
        from memorybench.extractors.provider import open_provider_extractor

        opener = ProviderOpener(stack, self.catalog, stores, run=run, allow_code=self.allow_code, threshold=None)
        provider = (await opener.open(self.provider)).provider
        return await stack.enter_async_context(
            open_provider_extractor(provider, run, lambda line: print(f"leaked scope: {line}", file=sys.stderr))
        )


def choose_extractor(
    catalog: Catalog, name: str | None, command: str | None, model: str | None, *, allow_code: bool
) -> ChosenExtractor:
    """By the name of a config or a provider, by `module:function`, or by a command line."""
    if (name is None) == (command is None):
        raise BadInput(
            FLAG, "which extractor shall be tested?", expected="--extractor NAME or --extractor-command LINE"
        )
    if command is not None:
        split_command(command, "--extractor-command")
        config = ExtractorConfig(name=_COMMAND, type="command", command=command)
        return _without_model(ChosenExtractor(_COMMAND, config, catalog, Path()), model)
    assert name is not None
    if ":" in name:
        load_function(FLAG, name, allow_code)  # raises where there is none, before anything is asked
        config = ExtractorConfig(name="callable", type="callable", function=name)
        return _without_model(ChosenExtractor(name, config, catalog, Path(), allow_code=allow_code), model)
    extractors = [entry.name for entry in catalog.entries("extractor")]
    providers = [entry.name for entry in catalog.entries("provider")]
    if name in extractors:
        return _configured(catalog, name, model, allow_code)
    if name in providers:
        return _without_model(_of_provider(catalog, name, name, allow_code), model)
    raise BadInput(
        "",
        f'no extractor "{name}"',
        remedy=f"{suggestion(name, [*extractors, *providers])} (memorybench list --extractors)",
    )


def _configured(catalog: Catalog, name: str, model: str | None, allow_code: bool) -> ChosenExtractor:
    entry = catalog.chosen("extractor", name)
    config = catalog.extractor(name, environment())
    base = entry.file.parent if entry.file else Path()
    if config.runs_code and not allow_code:
        raise BadInput(f'extractor "{name}"', "runs what its file names", remedy="read it, then say --allow-code")
    if config.type == "callable" and config.function:
        load_function(f'extractor "{name}"', config.function, allow_code, base)
    if config.type == "provider" and config.provider:
        return _without_model(_of_provider(catalog, name, config.provider, allow_code), model)
    if config.type == "http" and config.auth.env_var and not environment().get(config.auth.env_var):
        raise BadInput(f'extractor "{name}"', f"{config.auth.env_var} is not set", remedy="set it")
    chosen = ChosenExtractor(name, config, catalog, base, allow_code=allow_code)
    if config.type != "reference":
        return _without_model(chosen, model)
    wanted = model or config.model or environment().get(MODEL_VARIABLE)
    if wanted is None:
        raise BadInput(f'extractor "{name}"', "which model shall it ask?", expected="--extractor-model MODEL")
    return ChosenExtractor(name, config, catalog, base, model=model_named(wanted), allow_code=allow_code)


def _of_provider(catalog: Catalog, name: str, provider: str, allow_code: bool) -> ChosenExtractor:
    entry = catalog.chosen("provider", provider)
    check_provider(catalog, entry, allow_code=allow_code)
    config = ExtractorConfig(name=name, type="provider", provider=provider)
    return ChosenExtractor(name, config, catalog, Path(), provider=entry, allow_code=allow_code)


def _without_model(chosen: ChosenExtractor, model: str | None) -> ChosenExtractor:
    if model is not None:
        raise BadInput("--extractor-model", f"{chosen.name} asks no model of ours", remedy="leave it out")
    return chosen
