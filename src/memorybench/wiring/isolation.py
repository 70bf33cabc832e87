"""Checks whether a run can use a memory without reading or changing other data in it.

A memory is live if the run does not create it: a URL, a hosted account, or a program that does not get a folder of the
run. A run uses a live memory only with new users or scopes, which it clears afterwards, unless the user says that the
memory is disposable.
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

    That every endpoint and tool uses the scope is already checked when the config is read.
    """
    if config.type != "hosted" or config.endpoints is None:
        return
    if config.endpoints.clear is None and not config.teardown:
        raise BadInput(
            where,
            "is a live memory, and its config has no request that deletes what a run adds",
            expected="endpoints.clear",
            remedy=f"add it, {_DISPOSABLE}",
        )
    for place in unscoped_deletions(config):
        raise BadInput(
            where,
            f"is a live memory, and {place} may delete the data of others",
            expected="the scope in that request",
            remedy=f"add $.scope to the request, {_DISPOSABLE}",
        )


def find_isolation(
    config: StoreConfig, provider: ProviderConfig | None, *, disposable: bool, reads_only: bool = False
) -> Isolation:
    """Return what separates the data of a run from other data: a folder, a user or nothing (`none`).

    `provider` is the config of the store's provider, if it has one. A command that only reads needs no separation.
    Raise BadInput for a live store that neither separates users nor can be emptied, and for one that has only one of
    these two abilities and is not disposable.
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
            "is a live memory that neither separates users nor can be emptied, so scenarios would share data",
            expected=f"{_USERS}, or {_DELETION}",
            remedy="change its config as in docs/live-memories.md, or use another store",
        )
    raise BadInput(
        where,
        f"is a live memory, and a run could not {'delete what it adds' if separates_users else 'keep its data apart'}",
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
        return "users" in able, "list" in able and ("clear" in operations.writes or "forget" in able)
    if config.command is not None:
        return "users" in config.capabilities, {"list", "forget"} <= set(config.capabilities)
    return True, True  # a provider has scopes, and check_provider_isolation checks that it clears them
