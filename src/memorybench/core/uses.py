"""Which programs, hosts and variables a config uses, and which of them the user allows (consent)."""

from __future__ import annotations

from msgspec import Struct


class Use(Struct, frozen=True):
    """One program, module, image, SQL statement, host or variable that a config uses."""

    value: str
    """A command line, a module, an image, SQL, a host, or the name of an environment variable."""
    key: str
    """The key of the config that contains `value`, such as `mcp.command`."""
    to: str = ""
    """For a variable: the host or program that gets its value; empty if the value stays in this process."""


class Uses(Struct, frozen=True):
    """Everything that a config runs, contacts or reads from the environment."""

    programs: tuple[Use, ...] = ()
    modules: tuple[Use, ...] = ()
    """Python code that the config names. Installed plug-ins are not listed."""
    images: tuple[Use, ...] = ()
    """Container images. The images of a compose file are found by a search in its text, which may miss some."""
    sql: tuple[Use, ...] = ()
    hosts: tuple[Use, ...] = ()
    credentials: tuple[Use, ...] = ()
    """Environment variables that contain a key for `auth`, an embedder, a model or an MCP server's `Authorization`."""
    other_variables: tuple[Use, ...] = ()

    @property
    def code(self) -> tuple[Use, ...]:
        return (*self.programs, *self.modules, *self.images, *self.sql)

    def __or__(self, other: Uses) -> Uses:
        names = self.__struct_fields__
        return Uses(**{name: tuple(dict.fromkeys((*getattr(self, name), *getattr(other, name)))) for name in names})


class Consent(Struct, frozen=True):
    """What the user allows configs to do that do not come with memorybench.

    The user gives it by flags of each command; it is never saved.
    """

    code: bool = False
    """Whether configs may run programs, modules, containers and SQL. This allows all variables, too, because code can
    read them."""
    variables: frozenset[str] = frozenset()
    """The names of environment variables that configs may send."""
    disposable_store: bool = False
    """Whether a run may use an existing memory that it cannot separate from other data. All data in it may be changed
    or deleted."""
    reads_only: bool = False
    """Whether the command only reads from a store, so that its data need not be separated."""
