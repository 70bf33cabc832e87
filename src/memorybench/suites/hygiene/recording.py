"""Records the calls of an agent to a memory store as a scenario draft, and replays the draft to check it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, Literal

from memorybench.core.agents import ToolSurface
from memorybench.core.errors import BadInput
from memorybench.core.records import Record
from memorybench.mcp import check_sdk
from memorybench.processes.programs import temporary_folder
from memorybench.secrets.credentials import credential_in
from memorybench.suites.blocking import blocking
from memorybench.suites.wiring import ResolvedStore, Wiring

from .attempts import choose_server
from .drafts import Draft, Recording, agent_draft, find_unexplained_changes, parse_draft, store_draft, write_draft
from .evidence import OpenStore
from .plays import new_scope, open_live, open_subject
from .replays import Replay, mend_draft, replay, replay_as_agent
from .script import USER
from .spec import REFERENCE

Shows = Literal["a fault of the store", "a fault of the agent", "good behaviour", "nothing that is proved"]
_UNPROVED: Final = "nothing that is proved"


class RecordedDraft(Record):
    """The file of a scenario draft, and the results of replaying the draft."""

    file: str
    calls: int
    shows: Shows
    replays: tuple[Replay, ...]
    for_a_person: tuple[str, ...] = ()
    """Remarks on what could not be turned into an assertion, for the person who edits the draft."""
    credential: str | None = None
    """The kind of credential that the file seems to contain; None if it seems to contain none."""

    @property
    def is_proved(self) -> bool:
        """Whether replays prove what `shows` says: only a faulty store or agent fails the draft."""
        return self.shows != _UNPROVED


def record(
    name: str,
    command: Sequence[str],
    store: str,
    file: Path,
    *,
    is_good: bool,
    wiring: Wiring,
    tools: ToolSurface | None = None,
    prompt: str | None = None,
    quiet: bool = False,
) -> RecordedDraft:
    """Run an agent's command with a store, and write the recorded calls to `file` as a scenario draft.

    A first draft is written as soon as the command ends, because the calls cost money and the replays may fail. Then
    the draft is replayed, and the file is replaced; the result has the replays. Raise BadInput before the command is
    run if `file` exists or cannot be written.

    `is_good`: the agent behaved well. `prompt`: what the user said to the agent; it replaces `${prompt}` in the
    command. `quiet`: the output of the command goes to standard error.
    """
    check_sdk("hygiene record")
    resolved = wiring.store(store)
    _check_target(file, name)  # a store that is refused must leave no folder
    command = [word.replace("${prompt}", prompt) for word in command] if prompt is not None else command
    kept = _KeptDraft(file, wiring)
    try:
        with temporary_folder("memorybench-record-") as folder:
            recording = blocking(
                _record(resolved, command, folder, wiring, resolved.choose_tools(tools), prompt, kept, quiet=quiet)
            )
        shows, draft, replays, remarks = blocking(_prove(name, recording, resolved, wiring, kept, is_good=is_good))
        draft["description"] = " ".join([draft["description"], *dict.fromkeys(remarks)])
        text = kept.write(draft)
    except BaseException:  # also Ctrl-C
        if kept.is_written:
            print(f"{file}: has the recorded calls, but was not replayed", file=sys.stderr)
        raise
    return RecordedDraft(
        file=str(file),
        calls=len(recording.calls),
        shows=shows,
        replays=tuple(Replay.model_validate_json(wiring.redact(one.model_dump_json())) for one in replays),
        for_a_person=tuple(dict.fromkeys(wiring.redact(remark) for remark in remarks)),
        credential=credential_in(text),
    )


class _KeptDraft:
    """The file of the draft, which is replaced each time that a better draft is known."""

    def __init__(self, file: Path, wiring: Wiring) -> None:
        self.name = file.stem
        self._file = file
        self._wiring = wiring
        self.is_written = False

    def write(self, draft: Draft) -> str:
        """Write a draft without secrets, and return its JSON."""
        text = self._wiring.redact(json.dumps(draft, ensure_ascii=False))
        write_draft(self._file, json.loads(text), replace=self.is_written)
        self.is_written = True
        return text


def _check_target(file: Path, name: str) -> None:
    """Create the folder for a draft before the agent is run. Raise BadInput if the draft could not be written there."""
    another = "name another file with --to"
    if file.name != f"{name}.json":
        raise BadInput(str(file), f"the name of the file differs from the id {name}", expected=f"{name}.json")
    if file.exists():
        raise BadInput(str(file), "already exists", remedy=another)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(str(file.parent), error.strerror or "the folder cannot be created", remedy=another) from None
    if not os.access(file.parent, os.W_OK):
        raise BadInput(str(file.parent), "the folder cannot be written to", remedy=another)


async def _record(
    store: ResolvedStore,
    command: Sequence[str],
    folder: Path,
    wiring: Wiring,
    tools: ToolSurface,
    prompt: str | None,
    kept: _KeptDraft,
    *,
    quiet: bool,
) -> Recording:
    serve_store = choose_server(store, tools)
    async with _open_store(store) as open_store:
        calls = await wiring.record_calls(command, serve_store(open_store), folder, quiet=quiet)
        operations = [part for call in calls for part in call.as_operations()]
        kept.write(store_draft(kept.name, Recording(operations, prompt=prompt))[0])
        async with open_store(folder) as opened:
            held = await opened.list(USER) if "list" in opened.capabilities else ()
            return Recording(operations, held, opened.capabilities, prompt)


async def _prove(
    name: str, recording: Recording, resolved: ResolvedStore, wiring: Wiring, kept: _KeptDraft, *, is_good: bool
) -> tuple[Shows, Draft, list[Replay], list[str]]:
    """Replay the drafts and return what they show, the chosen draft, its replays and remarks.

    A fault of the store is proved by a draft that fails (`red`) on this store and passes (`green`) on the reference.
    """
    reference = await open_subject(wiring.store(REFERENCE), allow_used=True)
    recorded = await open_subject(resolved, allow_used=True)
    stores = [recorded] if recorded.subject.name == REFERENCE else [recorded, reference]
    draft, remarks = store_draft(name, recording)
    draft, left_out = await mend_draft(draft, reference)
    replays = [await replay(parse_draft(draft, f"{name}.json"), store) for store in stores]
    remarks += [*left_out, *find_unexplained_changes(recording)]
    verdicts = [one.verdict for one in replays]
    if verdicts[0] == "red":
        return ("a fault of the store" if verdicts[1:] == ["green"] else _UNPROVED), draft, replays, remarks
    if is_good:
        return ("good behaviour" if set(verdicts) == {"green"} else _UNPROVED), draft, replays, remarks
    if set(verdicts) != {"green"} or find_unexplained_changes(recording):
        return _UNPROVED, draft, replays, remarks  # it may be the store that did what was recorded
    draft, remarks = agent_draft(name, recording)
    kept.write(draft)
    draft, left_out = await mend_draft(draft, reference)
    scenario = parse_draft(draft, f"{name}.json")
    replays = [await replay(scenario, store) for store in stores]
    replays.append(await replay_as_agent(scenario, recorded))
    # the draft is green on the store, so without a prompt no run of it can be red
    is_red = [one.verdict for one in replays] == ["green"] * len(stores) + ["red"] and scenario.real_model is not None
    return ("a fault of the agent" if is_red else _UNPROVED), draft, replays, [*remarks, *left_out]


@asynccontextmanager
async def _open_store(resolved: ResolvedStore) -> AsyncIterator[OpenStore]:
    """Yield the function that opens the store. On a live store, use a new user, whose facts are deleted at the end."""
    if resolved.isolation == "folder":
        yield resolved.open
        return
    store = await open_subject(resolved)
    scope = new_scope() if resolved.isolation == "user" else ""
    if scope:
        print(
            f'store "{resolved.name}" is live: recording as {scope}-{USER}, which is deleted at the end',
            file=sys.stderr,
        )

    async def report_leak(text: str) -> None:
        print(f"leaked scope: {text}", file=sys.stderr)

    async with open_live(store, scope, report_leak) as open_store:
        yield open_store
