"""Whether a run can use a memory without touching the data of others.

A memory is live if the run does not create it: a URL, a hosted account, or a program that is given no folder of ours. A
live memory is used only with users or scopes that the run makes up and clears, unless the user says that it is
disposable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memorybench.core.errors import BadInput
from memorybench.files.located import Document
from memorybench.providers.config.variables import unscoped_deletions
from memorybench.providers.config_mcp_reading import folders_used
from memorybench.stores.mcp_operations import Operations
from memorybench.stores.programs import ProgramTemplate

if TYPE_CHECKING:
    from memorybench.core.stores import Isolation
    from memorybench.providers.config.provider import ProviderConfig
    from memorybench.stores.config import StoreConfig

_USERS = "the user in every operation, or ${folder} in the command"
_DELETION = "a way to list and delete facts (list, and forget or clear)"
_DISPOSABLE = "or add --store-is-disposable if everything in it may be changed and deleted"


def check_provider_isolation(config: ProviderConfig, where: str) -> None:
    """Raise BadInput if a hosted provider cannot clear its scopes, or may delete more than its scopes.

    When a config is read, it is checked that every endpoint and every tool uses the scope.
    """
    if config.type != "hosted" or config.endpoints is None:
        return
    if config.endpoints.clear is None and not config.teardown:
        problem = "is a live memory, from which a run could not delete what it adds"
        raise BadInput(where, problem, expected="endpoints.clear", remedy=f"add it, {_DISPOSABLE}")
    for place in unscoped_deletions(config):
        problem = f"is a live memory, and {place} may delete the data of others"
        raise BadInput(where, problem, expected="the scope in that request", remedy=f"add $.scope to it, {_DISPOSABLE}")


def find_isolation(
    config: StoreConfig, provider: ProviderConfig | None, *, disposable: bool, reads_only: bool = False
) -> Isolation:
    """Return what keeps a run apart from other data; raise BadInput if nothing does and the store is not disposable.

    `provider` is the config of a store of type provider. A command that only reads needs nothing.
    """
    if not _is_live(config, provider):
        return "folder"
    if reads_only:
        return "none"
    separates_users, can_clear = _find_abilities(config)
    if separates_users and (can_clear or disposable):
        return "user"
    if can_clear and disposable:
        return "none"
    where = f'store "{config.name}"'
    if not separates_users and not can_clear:
        raise BadInput(
            where,
            "is a live memory that neither separates users nor can be emptied: scenarios would mix",
            expected=f"{_USERS}, or {_DELETION}",
            remedy="see docs/live-memories.md",
        )
    raise BadInput(
        where,
        "is a live memory, and the run could not keep its own data apart from other data",
        expected=_DELETION if separates_users else _USERS,
        remedy=f"add it (docs/live-memories.md), {_DISPOSABLE}",
    )


def _is_live(config: StoreConfig, provider: ProviderConfig | None) -> bool:
    where = f'store "{config.name}"'
    if provider is not None:
        if provider.mcp is not None:
            return not folders_used(provider.mcp, Document(where, {}))
        return provider.type == "hosted"
    if config.mcp is not None:
        return not ProgramTemplate.parse(config.mcp.command, config.mcp.env, where).uses_folder
    if config.command is not None:
        uses_folder = ProgramTemplate.parse(config.command.run, config.command.env, where).uses_folder
        return not uses_folder and "files" not in config.capabilities
    return False


def _find_abilities(config: StoreConfig) -> tuple[bool, bool]:
    """Return whether a live store separates users, and whether it can delete all facts of a user."""
    if config.mcp is not None:
        operations = Operations(config.name, config.mcp)
        able = operations.capabilities(uses_folder=False)
        # only a list shows that a new user has no facts, so that deleting all of them deletes nothing of others
        return "users" in able, "list" in able and (operations.clear is not None or "forget" in able)
    if config.command is not None:
        return "users" in config.capabilities, {"list", "forget"} <= set(config.capabilities)
    return True, True  # a provider has scopes, and check_provider_isolation checks that it clears them
