"""One question: gold turns, and each provider's memories, answers, verdicts and steps, as `show` prints them."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from memorybench.core.report_sections import Provenance, Section, Table, Text
from memorybench.journal.run_reader import StepRecord
from memorybench.suites.case_sections import hit_text, trial_sections
from memorybench.suites.case_view import CaseTrial, CaseView, hit_level, memories_of
from memorybench.suites.registry import suite_of
from memorybench.suites.report_parts import gold_lines, gold_turns
from memorybench.suites.stored_run import StoredRun
from memorybench.view.index import Mark, Question
from memorybench.view.results import NotFound, explain_page, run_url

from . import number as number_of
from . import render, results_of
from .questions import filter_of

_SHOWN_ABOVE = ("Question", "Expected", "Gold turns")
_MOST_MEMORIES = 10
_MOST_TRIALS = 18
"""The most trials on one page; a scenario has one per mutant."""


class TrialCard(Struct, frozen=True):
    """The content of the page about one trial."""

    trial: CaseTrial
    mark: Mark
    searches: tuple[tuple[str, tuple[dict[str, Any], ...], int], ...]
    """Per search: its title, the shown memories, and the number of memories left out."""
    sections: tuple[Section, ...]
    scores: str


def page(request: Request) -> Response:
    place, run_id = request.path_params["place"], request.path_params["run"]
    query, results = request.query_params, results_of(request)
    benchmark, case_id = query.get("benchmark", ""), query.get("case", "")
    full = query.get("full") == "1"
    # `benchmark` only names the question and is no filter, so that the next question may be of another benchmark
    filter = replace(filter_of(query), benchmark="")
    with results.open(place, run_id) as stored, explain_page(stored.run, f"question {case_id}"):
        number = results.questions(place, stored)
        question = results.index.question(number, benchmark, case_id)
        if question is None:
            raise NotFound(f"question {case_id} of {benchmark} not found in run {run_id}")
        roles, first = list(results.subjects(number, stored.run)), number_of(request, "trials")
        marks = sorted(question.marks, key=lambda mark: (roles.index(mark.subject), *mark.variant_order))
        view = case_of(stored, question, [mark.trial for mark in marks[first : first + _MOST_TRIALS]], full)
        cards = [_card(stored, view, trial, question) for trial in view.trials]
        run = stored.run
        has_own = any(suite_of(run).case_sections(run, trial) is not None for trial in view.trials[:1])
        chosen = filter.parameters()
        previous, following = results.index.neighbours(number, filter, question)

        def address(other: Question | None, **more: str | int) -> str:
            if other is None:
                return ""
            return run_url(
                place, run_id, "question", **{"benchmark": other.benchmark, "case": other.case_id, **chosen, **more}
            )

        return render(
            request,
            "question.html",
            here="runs",
            place=place,
            run=run,
            noun=suite_of(run).case_noun(run),
            question=question,
            view=view,
            gold=gold_turns(view.case) or (),
            gold_ids=gold_lines(view.case),
            cards=sorted(cards, key=lambda card: marks.index(card.mark)),
            first=first,
            size=_MOST_TRIALS,
            filters=chosen,
            count=results.index.count(number, filter),
            previous=address(previous),
            next=address(following),
            whole=address(question, full="1"),
            history=run_url(place, run_id, "history", benchmark=benchmark, cluster=question.cluster, case=case_id),
            full=full,
            has_own=has_own,
            hit_levels={one["hit_level"] for card in cards for _, memories, _ in card.searches for one in memories},
            trials_address=lambda offset: address(question, trials=offset, full="1" if full else ""),
        )


def case_of(stored: StoredRun, question: Question, keys: list[str], full: bool) -> CaseView:
    """Return a question with those of its trials that have these keys. With `full`, texts are not shortened."""
    ((reader, run),) = stored.parts
    case = reader.case(run.id, question.benchmark, question.case_id) or {}
    outcomes = reader.outcomes_of(run.id, keys)
    trials = tuple(CaseTrial(one, case, tuple(reader.steps_of(run.id, one)), full) for one in outcomes)
    return CaseView(
        run.id,
        run.suite,
        question.benchmark,
        question.case_id,
        case,
        trials,
        counts_turns=run.spec.get("evidence", {}).get(question.benchmark) != "session",
        has_repeats=any(mark.repeat > 1 for mark in question.marks),
    )


def _card(stored: StoredRun, view: CaseView, trial: CaseTrial, question: Question) -> TrialCard:
    own = suite_of(stored.run).case_sections(stored.run, trial)
    sections = [part for part in trial_sections(view, trial, own) if not isinstance(part, Provenance)]
    if own is None:
        sections = [part for part in sections if not _is_above(part)]
    own_trial = trial.outcome.trial
    key = own_trial.subject.name, own_trial.variant, own_trial.repeat
    mark = next(one for one in question.marks if (one.subject, one.variant, one.repeat) == key)
    steps = trial.named("search") if own is None else []
    searches = tuple(_search(trial, step, view.counts_turns) for step in steps)
    level = ("turns" if view.counts_turns else "sessions") if view.suite == "bench" else ""
    return TrialCard(trial, mark, searches, tuple(sections), _main_scores(trial, level))


def _is_above(part: Section) -> bool:
    """Return whether the page shows the content of a section itself, above the other sections."""
    if isinstance(part, Table):
        return part.title.startswith("Memories")
    return isinstance(part, Text) and part.title in _SHOWN_ABOVE


def _search(trial: CaseTrial, step: StepRecord, counts_turns: bool) -> tuple[str, tuple[dict[str, Any], ...], int]:
    memories = memories_of(trial, step)
    most = len(memories) if trial.full else max(trial.outcome.shown.memories_shown or 0, _MOST_MEMORIES)
    shown = [one for one in memories if one["rank"] <= most or one["hits"]]
    ranks: dict[str, int] = {}
    for one in memories if not counts_turns else ():
        ranks.setdefault(next(iter(one.get("sources") or ()), ""), len(ranks) + 1)
    texts = tuple(
        {
            **one,
            "content": trial.excerpt(str(one["content"])),
            "gold": hit_text(one["hits"], trial.case),
            "session_rank": next((ranks[hit] for hit in one["hits"] if hit in ranks), None),
            "hit_level": hit_level(one["hits"], trial.case),
        }
        for one in shown
    )
    title = "" if trial.is_own_search(step) else str(step.inputs.get("query", ""))
    return title, texts, len(memories) - len(shown)


def _main_scores(trial: CaseTrial, level: str) -> str:
    """Return the main scores as text. `level` says what the search scores count, such as `turns`."""
    of = f" of {level}" if level else ""
    of_searches = {"recall@5": of, "ndcg@10": of}
    names = {"correct": "", "rubric_score": "", "passed": "", "answer_f1": "", **of_searches, "context_tokens": ""}
    found = [(f"{name}{counted}", trial.outcome.score(name)) for name, counted in names.items()]
    return " · ".join(f"{name} {value:,.4g}" for name, value in found if value is not None)
