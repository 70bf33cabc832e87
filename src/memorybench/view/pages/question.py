"""One question: gold turns, each provider's memories, answers, verdicts and steps: all that `show` has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from memorybench.core.report_sections import Provenance, Section, Table, Text
from memorybench.journal.run_reader import StepRecord
from memorybench.suites.case_sections import hit_text, trial_report
from memorybench.suites.case_view import CaseTrial, CaseView, memories_of
from memorybench.suites.registry import suite_of
from memorybench.suites.report_parts import gold_lines, gold_turns
from memorybench.suites.stored_run import StoredRun
from memorybench.view.index import Mark, Question
from memorybench.view.results import NotFound, run_url

from . import render, results_of
from .questions import filter_of

_SHOWN_ABOVE = ("Question", "Expected", "Gold turns")
_MOST_MEMORIES = 10


@dataclass(frozen=True, slots=True)
class TrialCard:
    """What the page shows of one trial."""

    trial: CaseTrial
    mark: Mark
    searches: tuple[tuple[str, tuple[dict[str, Any], ...], int], ...]
    """Title, memories and the number of those left out, of each search."""
    sections: tuple[Section, ...]
    scores: str


def page(request: Request) -> Response:
    place, run_id = request.path_params["place"], request.path_params["run"]
    query, results = request.query_params, results_of(request)
    benchmark, case_id = query.get("benchmark", ""), query.get("case", "")
    full = query.get("full") == "1"
    # `benchmark` names the question and selects nothing, so that keys lead on to questions of other benchmarks
    filter = filter_of(_without(query, "benchmark"))
    with results.open(place, run_id) as stored:
        number = results.questions(place, stored)
        question = results.index.question(number, benchmark, case_id)
        if question is None:
            raise NotFound(f"question {case_id} of {benchmark} not found in run {run_id}")
        view = case_of(stored, question, full)
        cards = [_card(stored, view, trial, question) for trial in view.trials]
        roles = list(results.subjects(number, stored.run))
        run = stored.run
    chosen = filter.parameters()
    previous, following = results.index.neighbours(number, filter, question)

    def address(other: Question | None, **more: str) -> str:
        if other is None:
            return ""
        return run_url(place, run_id, "question", benchmark=other.benchmark, case=other.case_id, **chosen, **more)

    return render(
        request,
        "question.html",
        here="runs",
        place=place,
        run=run,
        question=question,
        view=view,
        gold=gold_turns(view.case) or (),
        gold_ids=gold_lines(view.case),
        cards=sorted(cards, key=lambda card: roles.index(card.mark.subject)),
        filters=chosen,
        count=results.index.count(number, filter),
        previous=address(previous),
        next=address(following),
        whole=address(question, full="1"),
        full=full,
    )


def case_of(stored: StoredRun, question: Question, full: bool) -> CaseView:
    """Return a question with its trials, found by their keys."""
    ((reader, run),) = stored.parts
    case = reader.case(run.id, question.benchmark, question.case_id) or {}
    outcomes = reader.outcomes_of(run.id, [mark.trial for mark in question.marks])
    trials = tuple(CaseTrial(one, case, tuple(reader.steps_of(run.id, one)), full) for one in outcomes)
    return CaseView(
        run.id,
        run.suite,
        question.benchmark,
        question.case_id,
        case,
        trials,
        counts_turns=run.spec.get("evidence", {}).get(question.benchmark) != "session",
        has_repeats=any(one.trial.repeat > 1 for one in outcomes),
    )


def _card(stored: StoredRun, view: CaseView, trial: CaseTrial, question: Question) -> TrialCard:
    own = suite_of(stored.run).case_sections(trial)
    report = trial_report(view, trial, own)
    sections = [part for part in report.sections if not isinstance(part, Provenance)]
    if own is None:
        sections = [part for part in sections if not _is_above(part)]
    mark = next(one for one in question.marks if one.trial == trial.outcome.trial.key)
    steps = trial.named("search") if own is None else []
    searches = tuple(_search(trial, step, view.counts_turns) for step in steps)
    return TrialCard(trial, mark, searches, tuple(sections), _main_scores(trial))


def _is_above(part: Section) -> bool:
    """Return whether the page shows a section in a place of its own."""
    if isinstance(part, Table):
        return part.title.startswith("Memories")
    return isinstance(part, Text) and part.title in _SHOWN_ABOVE


def _search(trial: CaseTrial, step: StepRecord, counts_turns: bool) -> tuple[str, tuple[dict[str, Any], ...], int]:
    memories = memories_of(trial, step)
    most = len(memories) if trial.full else max(trial.outcome.shown.memories_shown or 0, _MOST_MEMORIES)
    shown = [one for one in memories if one["rank"] <= most or one["hits"]]
    sessions = trial.case.get("gold_sessions", ())
    texts = tuple(
        {
            **one,
            "content": trial.excerpt(str(one["content"])),
            "gold": hit_text(one["hits"], trial.case),
            "is_hit": bool(set(one["hits"]) - (set(sessions) if counts_turns else set())),
        }
        for one in shown
    )
    title = "" if step.inputs.get("query") == trial.outcome.shown.asked else str(step.inputs.get("query", ""))
    return title, texts, len(memories) - len(shown)


def _main_scores(trial: CaseTrial) -> str:
    names = ("correct", "passed", "answer_f1", "recall@5", "ndcg@10", "context_tokens")
    found = [(name, trial.outcome.score(name)) for name in names]
    return " · ".join(f"{name} {value:,.4g}" for name, value in found if value is not None)


def _without(query: QueryParams, name: str) -> QueryParams:
    return QueryParams([(key, value) for key, value in query.multi_items() if key != name])
