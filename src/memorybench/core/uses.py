"""What a config makes memorybench start, import, contact and send, and what of that the user allows."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Use:
    """One thing that a config uses."""

    value: str
    """A command line, a module, an image, SQL, a host, or the name of an environment variable."""
    key: str
    """The key of the config that names it, such as `mcp.command`."""
    to: str = ""
    """For a variable: the host or program that gets its value; empty if the value stays in this process."""


@dataclass(frozen=True, slots=True)
class Uses:
    """Everything that a config uses outside of this process."""

    programs: tuple[Use, ...] = ()
    modules: tuple[Use, ...] = ()
    """Python code that the config names. Installed plug-ins are not listed."""
    images: tuple[Use, ...] = ()
    """Container images, as far as they are found in the compose file: it is read as text, in the usual layout."""
    sql: tuple[Use, ...] = ()
    hosts: tuple[Use, ...] = ()
    credentials: tuple[Use, ...] = ()
    """Variables that contain a key: for `auth`, an embedder, a model, or the `Authorization` of an MCP server."""
    other_variables: tuple[Use, ...] = ()

    @property
    def code(self) -> tuple[Use, ...]:
        return (*self.programs, *self.modules, *self.images, *self.sql)

    def __or__(self, other: Uses) -> Uses:
        names = [field.name for field in fields(self)]
        return Uses(**{name: tuple(dict.fromkeys((*getattr(self, name), *getattr(other, name)))) for name in names})


@dataclass(frozen=True, slots=True)
class Consent:
    """What the user allows configs to do that are not part of memorybench. Given with each command, never saved."""

    code: bool = False
    """Whether configs may run programs, modules, containers and SQL. Includes all variables, because code can read
    them."""
    variables: frozenset[str] = frozenset()
    """The names of environment variables that configs may send."""
    disposable_store: bool = False
    """Whether a live memory may be used without a private scope, so that all its data may be changed and deleted."""
    reads_only: bool = False
    """Whether the command only reads from a store, so that no private scope is needed."""
