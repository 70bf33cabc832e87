"""Checks whether a config may run code and send environment variables.

Bundled configs and installed plug-ins may. Any other config needs the user's consent on this command line:
`--allow-code` for programs, modules, containers and SQL, `--allow-env NAME` for a variable that is not its own key.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from memorybench.catalog.catalog import Catalog
from memorybench.catalog.entries import BUNDLED
from memorybench.catalog.uses import EVERY_VARIABLE, OWN_SETTINGS, model_uses, uses_of
from memorybench.core.errors import ConsentRequired
from memorybench.core.uses import Consent, Uses
from memorybench.text.sanitize import printable

from .environment import environment

if TYPE_CHECKING:
    from memorybench.catalog.entries import Entry
    from memorybench.core.uses import Use

ALLOW_CODE, ALLOW_ENV = "--allow-code", "--allow-env"
_CONFIG_KINDS = ("provider", "store", "extractor", "agent", "benchmark", "model")
_OF_OTHERS = (
    r"(?:AWS|AZURE|ARM|GCP|GCLOUD|GOOGLE|CLOUDFLARE|DIGITALOCEAN|HEROKU|VERCEL|NETLIFY|FLY|GH|GITHUB|GITLAB|BITBUCKET|CI"
    r"|HF|HUGGINGFACE|HUGGING_FACE|NPM|NODE_AUTH|PYPI|TWINE|UV|PIP|CARGO|DOCKER|KUBE|VAULT|SLACK|DISCORD|TWILIO"
    r"|STRIPE|SENTRY|DATADOG|DD|NEW_RELIC|WANDB|LANGSMITH|LANGCHAIN|LANGFUSE|OTEL|COHERE|MISTRAL|GROQ|TOGETHER"
    r"|DEEPSEEK|XAI|FIREWORKS|REPLICATE|PERPLEXITY|PINECONE|PG|POSTGRES|MYSQL|REDIS|MONGO|DATABASE|SSH|GPG|SMTP|XDG"
    r"|LC)_.*"
    r"|PG[A-Z]+|HOME|PATH|USER|LOGNAME|SHELL|PWD|OLDPWD|HOSTNAME|LANG|TERM|EDITOR|MAIL|TMPDIR|TZ"
    r"|[A-Z_]*(?:PROXY|PYTHONPATH|LD_PRELOAD|LD_LIBRARY_PATH)"
)
"""Pattern for variables of well-known services and of the system. A file of the user needs consent to use one as its
key."""


def entry_uses(catalog: Catalog, entry: Entry, variables: Mapping[str, str] | None = None) -> Uses:
    """Return what the config of an entry uses. If it names a provider, what the provider uses is not included."""
    if entry.kind not in _CONFIG_KINDS:
        return Uses()
    config = getattr(catalog, entry.kind)(entry.name)
    return uses_of(config, entry.file, environment() if variables is None else variables, catalog.card)


def own_uses(catalog: Catalog, entry: Entry) -> Uses:
    """Return what the config of an entry uses, without what it inherits unchanged from the config that it extends."""
    uses = entry_uses(catalog, entry)
    if entry.base is None:
        return uses
    inherited = entry_uses(catalog, entry.base)
    names = uses.__struct_fields__
    return Uses(
        **{name: tuple(use for use in getattr(uses, name) if use not in getattr(inherited, name)) for name in names}
    )


def with_provider(catalog: Catalog, entry: Entry) -> list[Entry]:
    """Return the entry and, for a store or extractor that uses a provider, the entry of the provider."""
    provider = getattr(catalog, entry.kind)(entry.name).provider if entry.kind in ("store", "extractor") else None
    return [entry] if provider is None else [entry, catalog.chosen("provider", provider)]


def check_consent(catalog: Catalog, entry: Entry, consent: Consent) -> None:
    """Raise ConsentRequired if the entry would run code or send variables that are not allowed."""
    check_code(catalog, entry, consent)
    check_variables(catalog, entry, consent)


def check_code(catalog: Catalog, entry: Entry, consent: Consent) -> None:
    if entry.base is not None:
        check_code(catalog, entry.base, consent)
    if not entry.is_installed:
        require_code(_where(entry), own_uses(catalog, entry).code, consent)


def check_variables(catalog: Catalog, entry: Entry, consent: Consent) -> None:
    if entry.base is not None:
        check_variables(catalog, entry.base, consent)
    sent = [] if entry.is_installed else uses_to_allow(own_uses(catalog, entry), consent)
    if sent:
        listed = ", ".join(f"{use.value} ({printable(use.key)}) to {printable(use.to)}" for use in sent)
        names = " ".join(dict.fromkeys(use.value for use in sent))
        remedy = f"read the config, and if you trust it, add {ALLOW_ENV} {names}"
        raise ConsentRequired(_where(entry), f"would send {listed}", sent, remedy=remedy)


def _where(entry: Entry) -> str:
    return f'{entry.kind} "{entry.name}" ({entry.origin})'


def require_code(where: str, uses: Sequence[Use], consent: Consent) -> None:
    """Raise ConsentRequired if there are programs, modules, images or SQL, and the user has not allowed code."""
    if uses and not consent.code:
        listed = ", ".join(f"{printable(use.value)} ({printable(use.key)})" for use in uses)
        remedy = f"read that code, and if you trust it, add {ALLOW_CODE}"
        raise ConsentRequired(where, f"would run {listed}", uses, remedy=remedy)


def missing_consent(catalog: Catalog, entry: Entry) -> list[str]:
    """Return the command-line flags that an entry, its provider and the configs that they extend need."""
    entries = list(with_provider(catalog, entry))
    for one in entries:  # grows by what they extend
        entries += [one.base] if one.base is not None else []
    flags = [flag for one in entries if not one.is_installed for flag in needed_flags(own_uses(catalog, one))]
    return list(dict.fromkeys(flags))


def needed_flags(uses: Uses) -> list[str]:
    """Return the command-line flags that a config with these uses needs if it is a file of the user."""
    if uses.code:
        return [ALLOW_CODE]
    return [f"{ALLOW_ENV} {name}" for name in dict.fromkeys(use.value for use in uses_to_allow(uses))]


def uses_to_allow(uses: Uses, consent: Consent | None = None) -> list[Use]:
    """Return the variables that a config would send and that the user has not allowed (consent None: none is allowed).

    The key of the config's own service needs no consent. If the user allows code, all variables are allowed.
    """
    allowed = consent or Consent()
    if allowed.code:
        return []
    others = [use for use in uses.other_variables if use.to and not use.value.startswith(OWN_SETTINGS)]
    keys = [use for use in uses.credentials if _is_key_of_others(use)]
    return [use for use in (*others, *keys) if use.value not in allowed.variables and use.value != EVERY_VARIABLE]


def _is_key_of_others(use: Use) -> bool:
    hosts = _hosts_by_key(tuple(sorted(_address_settings().items()))).get(use.value)
    return use.to not in hosts if hosts is not None else re.fullmatch(_OF_OTHERS, use.value) is not None


def _address_settings() -> dict[str, str]:
    """Return the environment variables that set the address of a service."""
    return {name: value for name, value in environment().items() if name.endswith(("_URL", "_HOST", "_ENDPOINT"))}


@lru_cache(maxsize=4)
def _hosts_by_key(settings: tuple[tuple[str, str], ...]) -> Mapping[str, frozenset[str]]:
    """Return, for each variable, the hosts to which bundled configs and known models send the key in it."""
    from memorybench.models.presets import PRESETS

    hosts: dict[str, set[str]] = defaultdict(set)
    catalog = Catalog(Path(__file__).parent)  # has no configs of the user
    for variables in ({}, dict(settings)):
        for entry in catalog.entries("provider", "extractor", "agent", "benchmark"):
            if entry.origin == BUNDLED and entry.broken is None:
                for use in entry_uses(catalog, entry, variables).credentials:
                    hosts[use.value].add(use.to)
        for prefix in PRESETS:
            for use in model_uses(f"{prefix}/model", "model", variables).credentials:
                hosts[use.value].add(use.to)
    return {name: frozenset(found) for name, found in hosts.items()}
