"""Checks the `mcp` section of a config without a server: variables, paths, and whether scopes are kept apart."""

from __future__ import annotations

from memorybench.core.errors import BadInput
from memorybench.files.bodies import BodyTemplate, names_in
from memorybench.files.located import Document
from memorybench.mcp.config import ToolCall, check_connection
from memorybench.text.spelling import join_names

from .config.provider import ProviderConfig
from .config.variables import ALWAYS, DOCUMENT_NAMES, SCOPE, check_response
from .config_mcp import AddTool, ListTool, Mcp, SearchTool

FOLDERS = frozenset({"scopeFolder", "dataFolder"})
DOCUMENTS = "documents"
VARIABLES = {
    "add": ALWAYS | (DOCUMENT_NAMES - {"embedding"}),
    "search": ALWAYS | {"query", "limit"},
    "clear": ALWAYS,
    "list": ALWAYS,
}


def check_mcp(config: ProviderConfig, document: Document) -> None:
    """Raise BadInput if the `mcp` section is invalid, or is missing although the config has `adapter: builtin:mcp`.

    A config without that adapter must not have the section.
    """
    if config.adapter != "builtin:mcp":
        if config.mcp is not None:
            raise BadInput(
                document.where("mcp"),
                "mcp has no effect without adapter: builtin:mcp",
                remedy="set adapter: builtin:mcp, or remove mcp",
            )
        return
    if config.mcp is None:
        raise BadInput(
            document.where(), '"mcp" is missing', expected="a section mcp, because the config has adapter: builtin:mcp"
        )
    part = document.at("mcp")
    check_connection(config.mcp, part)
    folders = folders_used(config.mcp, part)
    calls = {stage: call for stage in VARIABLES if (call := getattr(config.mcp.tools, stage)) is not None}
    for stage, call in calls.items():
        names = _check_call(call, part.at("tools", stage), VARIABLES[stage])
        if "scopeFolder" not in folders and not names & SCOPE:
            raise BadInput(
                part.where("tools", stage),
                "the call does not send the scope, so all histories would share one memory",
                expected=f"one of {join_names(SCOPE)} in the arguments, or ${{scopeFolder}} in command or env",
            )
    if "scopeFolder" not in folders and "clear" not in calls:
        raise BadInput(part.where("tools"), '"clear" is missing', remedy="add clear with a tool that deletes a scope")


def folders_used(mcp: Mcp, part: Document) -> frozenset[str]:
    """Return which of the variables `scopeFolder` and `dataFolder` the server's command and environment use.

    Raise BadInput if they use both.
    """
    program = Document(part.path, {"command": list(mcp.command), "env": dict(mcp.env)}, part.line_of, part.within)
    used = names_in(BodyTemplate.parse(program, FOLDERS).root)
    if used == FOLDERS:
        raise BadInput(
            part.where(), "${scopeFolder} and ${dataFolder} cannot be combined", remedy="remove one of the two"
        )
    return used


def _check_call(call: ToolCall, part: Document, known: frozenset[str]) -> frozenset[str]:
    """Return the variables that a call uses. Raise BadInput if it is invalid or uses one that is not in `known`."""
    names: set[str] = set()
    if isinstance(call, AddTool) and call.document is not None:
        names |= names_in(BodyTemplate.parse(part.at("document"), known).root)
        known = ALWAYS | {DOCUMENTS}
    if call.arguments:
        names |= names_in(BodyTemplate.parse(part.at("arguments"), known).root)
    if isinstance(call, AddTool) and (call.document is not None) != (DOCUMENTS in names):
        raise BadInput(
            part.where(), "document and $.documents must be used together", remedy="add the missing one, or remove both"
        )
    if isinstance(call, SearchTool) and "query" not in names:
        raise BadInput(part.where("arguments"), "the call does not send the query", expected="$.query in the arguments")
    if isinstance(call, SearchTool) and call.query_words and not call.response.id_field:
        raise BadInput(
            part.where("response"),
            '"idField" is missing',
            expected="idField, because queryWords counts the hits of each id",
        )
    if isinstance(call, SearchTool | ListTool):
        check_response(call.response, part.at("response"))
    return frozenset(names)
