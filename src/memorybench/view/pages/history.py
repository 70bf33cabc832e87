"""A conversation of a run: its sessions and turns by date, the evidence of its questions, and who retrieved it.

The journal has the turns that contain an answer, not whole conversations. Those are read again from the data of the run
(conversations.py); if that is not possible, the page says why and shows the recorded turns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from memorybench.core.conversation import Haystack
from memorybench.core.errors import BadInput
from memorybench.core.records import iso_date
from memorybench.suites.case_view import memories_of
from memorybench.suites.report_parts import gold_turns
from memorybench.suites.stored_run import StoredRun
from memorybench.view.index import Filter, Mark, Question
from memorybench.view.results import NotFound

from . import number, render, results_of
from .question import case_of

_QUESTIONS = 200
"""The most questions whose evidence is read for one page."""
_TURNS = 200
"""The most turns on one page."""
_LONGEST_TURN = 20_000
_RANKS = 10
"""The number of memories of each provider that are marked as retrieved; gold ones are also marked at lower ranks."""
_MOST_PROVIDERS = 18

Cases = Sequence[tuple[Question, Mapping[str, Any]]]


class ShownTurn(Struct, frozen=True):
    id: str
    session: str
    at: str
    speaker: str
    content: str
    questions: Sequence[Question] = ()
    """The questions for which the turn is evidence."""
    retrieved: Mapping[str, int] = field(default_factory=dict)
    """By provider: the best rank of a memory from this turn, for the chosen question."""
    is_gold: bool = False
    """Whether the turn is evidence for the chosen question or, if none is chosen, for any question."""


class ShownSession(Struct, frozen=True):
    id: str
    at: str
    first: int
    """The index of its first turn in the conversation."""
    size: int
    gold: int
    """The number of its turns that are evidence; for the chosen question only, if one is chosen."""
    is_gold: bool
    """Whether the whole session is evidence, as in benchmarks that do not name turns."""
    retrieved: Mapping[str, int]
    """By provider: the best rank of a memory that names only the session, not a turn."""
    best: Mapping[str, int]
    """By provider: the best rank of a memory from the session or one of its turns."""


def page(request: Request) -> Response:
    place, run_id = request.path_params["place"], request.path_params["run"]
    results, query, offset = results_of(request), request.query_params, number(request, "offset")
    with results.open(place, run_id) as stored:
        ((reader, run),) = stored.parts
        own = results.questions(place, stored)
        clusters = results.index.values(own, "cluster")
        cluster = query.get("cluster", "") or next(iter(clusters), "")
        filter = Filter(cluster=cluster, benchmark=query.get("benchmark", ""))
        asked = results.index.page(own, filter, 0, _QUESTIONS) if cluster in clusters else []
        if not asked:
            raise NotFound(f"history {cluster} not found in run {run_id}" if cluster else "this run has no histories")
        problem, turns = "", []
        try:
            turns = _turns_of(results.conversation(place, run, asked[0].benchmark, cluster))
        except BadInput as error:
            problem = str(error)
            asked = results.index.page(own, filter, offset, _QUESTIONS)
        chosen = results.index.question(own, asked[0].benchmark, query.get("case", "")) if asked else None
        if chosen is not None and chosen.cluster != cluster:
            chosen = None
        if chosen is not None and chosen not in asked:
            asked.append(chosen)
        cases = [(one, reader.case(run.id, one.benchmark, one.case_id) or {}) for one in asked]
        turns = turns or _recorded_turns(cases)
        retrieved = _retrieved(stored, chosen, {turn.id for turn in turns}) if chosen is not None else {}
        turns, sessions = _marked(turns, cases, chosen, retrieved)
        first = 0
        if not problem:
            evidence = next((n for n, turn in enumerate(turns) if turn.is_gold), 0) if chosen is not None else 0
            first = offset if "offset" in query else evidence // _TURNS * _TURNS
        return render(
            request,
            "history.html",
            here="runs",
            place=place,
            run=run,
            clusters=clusters,
            cluster=cluster,
            benchmark=query.get("benchmark", ""),
            problem=problem,
            asked=asked,
            chosen=chosen,
            total=results.index.count(own, filter),
            sessions=sessions,
            shown=_by_session(turns if problem else turns[first : first + _TURNS], sessions),
            first=offset if problem else first,
            turns=len(turns),
            size=_QUESTIONS if problem else _TURNS,
        )


def _turns_of(conversation: Haystack) -> list[ShownTurn]:
    return [
        ShownTurn(
            id,
            session.id,
            iso_date(turn.at or session.at) or "",
            turn.speaker or turn.role,
            turn.content[:_LONGEST_TURN] + "…" * (len(turn.content) > _LONGEST_TURN),
        )
        for session in conversation.sessions
        for id, turn in session.named_turns()
    ]


def _recorded_turns(cases: Cases) -> list[ShownTurn]:
    """Return the turns that the run recorded as evidence, ordered by date."""
    turns: dict[str, ShownTurn] = {}
    for _, case in cases:
        for turn in gold_turns(case) or ():
            id = _turn_id(turn)
            session = str(turn.get("session") or id.rpartition(":")[0] or "session")
            speaker = str(turn.get("speaker") or turn.get("role") or "")
            turns[id] = ShownTurn(id, session, str(turn.get("at") or ""), speaker, str(turn.get("content", "")))
    dates: dict[str, str] = {}
    for one in turns.values():
        dates[one.session] = min(dates.get(one.session, one.at), one.at)

    def order(turn: ShownTurn) -> tuple[str, str, int, str]:
        last = turn.id.rpartition(":")[2]
        return dates[turn.session], turn.session, int(last) if last.isdecimal() and len(last) < 10 else 0, turn.id

    return sorted(turns.values(), key=order)


def _turn_id(turn: Mapping[str, Any]) -> str:
    return str(turn.get("id") or str(turn.get("content", ""))[:40])


def _marked(
    turns: Sequence[ShownTurn], cases: Cases, chosen: Question | None, retrieved: Mapping[str, Mapping[str, int]]
) -> tuple[list[ShownTurn], list[ShownSession]]:
    """Return the turns with their questions and ranks, and their sessions in order."""
    evidence: dict[str, list[Question]] = {}
    for question, case in cases:
        ids = [*map(_turn_id, gold_turns(case) or ()), *case.get("gold_turns", ()), *case.get("gold_sessions", ())]
        for id in dict.fromkeys(map(str, ids)):
            evidence.setdefault(id, []).append(question)
    gold = {id for id, questions in evidence.items() if chosen is None or chosen in questions}
    marked = [
        replace(
            turn, questions=evidence.get(turn.id, ()), retrieved=retrieved.get(turn.id, {}), is_gold=turn.id in gold
        )
        for turn in turns
    ]
    sessions, first = [], 0
    for id, group in groupby(marked, lambda turn: turn.session):
        own = list(group)
        count = sum(turn.is_gold for turn in own)
        is_gold = id in gold and not count
        best: dict[str, int] = {}
        for ranks in (retrieved.get(id, {}), *(turn.retrieved for turn in own)):
            best |= {name: min(rank, best.get(name, rank)) for name, rank in ranks.items()}
        sessions.append(ShownSession(id, own[0].at, first, len(own), count, is_gold, retrieved.get(id, {}), best))
        first += len(own)
    return marked, sessions


def _by_session(
    turns: Sequence[ShownTurn], sessions: Sequence[ShownSession]
) -> list[tuple[ShownSession, list[ShownTurn]]]:
    known = {session.id: session for session in sessions}
    return [(known[id], list(own)) for id, own in groupby(turns, lambda turn: turn.session)]


def _retrieved(stored: StoredRun, question: Question, turns: set[str]) -> dict[str, dict[str, int]]:
    """Return, by turn id and provider, the best rank of a memory from that turn.

    A memory that names no turn of the conversation counts for its session, by session id.
    """
    firsts: dict[str, Mark] = {}
    for mark in question.marks:
        firsts.setdefault(mark.subject, mark)
    view = case_of(stored, question, [mark.trial for mark in firsts.values()][:_MOST_PROVIDERS], full=False)
    gold = set(view.case.get("gold_turns") or view.case.get("gold_sessions", ()))
    found: dict[str, dict[str, int]] = {}
    for trial in view.trials:
        subject = trial.outcome.trial.subject.name
        own = filter(trial.is_own_search, trial.named("search"))
        for memory in (memory for step in own for memory in memories_of(trial, step)):
            sources = list(map(str, memory.get("sources") or ()))
            if memory["rank"] <= _RANKS or gold.intersection(memory["hits"]):
                for source in [id for id in sources if id in turns] or sources:
                    found.setdefault(source, {}).setdefault(subject, memory["rank"])
    return found
