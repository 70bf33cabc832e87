"""The run of `hygiene corrections`: one trial per order of statements, way of sending them and topic."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from msgspec import Struct

from memorybench.core.errors import Lacking
from memorybench.core.measures import Metric
from memorybench.core.plans import Job, Performed, Plan, Steps
from memorybench.core.trials import Case, Exhibit, Score, Trial
from memorybench.datasets.prompts import answer_prompt
from memorybench.files.prompts import load_prompt
from memorybench.journal.rows import Fingerprint
from memorybench.metrics.rates import Rate
from memorybench.suites.answering import Answering, Scoring, ask
from memorybench.suites.estimates import PROMPT_TOKENS, REPLY_TOKENS, Estimate, model_calls, unpriced_calls
from memorybench.suites.spec import with_folders
from memorybench.suites.suite import Opening, PreparedRun, RunPlace
from memorybench.suites.wiring import ResolvedModel, ResolvedStore, Wiring

from .corrections import COLUMNS, CURRENT, TOPIC_NAMES, WAYS, Cell, Topic, Way, answered, make_topics, play_cell
from .plays import Store, open_subject
from .script import USER
from .spec import CORRECTIONS, CorrectionsSpec

SET = CORRECTIONS
PLAY = "corrections"
"""The name of the recorded step whose result is a Cell."""


class CurrentRate(Rate, frozen=True):
    """The mean of a score over the cells of the columns in CURRENT. Only these cells count as planned."""

    def concerns(self, trial: Trial) -> bool:
        return trial.case_id in CURRENT


def measures(*, has_model: bool) -> tuple[Metric, ...]:
    found = [
        CurrentRate("current_first", "current_first"),
        CurrentRate("outdated_listed", "outdated_listed", higher_is_better=False),
        CurrentRate("answered_current", "answered_current"),
    ]
    return tuple(found if has_model else found[:2])


MEANINGS = {
    "current_first": "cells whose search returns the current statement, and not after the outdated one",
    "outdated_listed": "cells whose list still has the outdated statement",
    "answered_current": "cells whose answer has the current value only",
}
_PROMPT = "audit-answer"


class CorrectionCase(Case):
    """One column of the matrix: one order of the statements."""

    title: str


CELLS: tuple[tuple[str, Way, str], ...] = tuple(
    (column, way, topic) for column, ways in WAYS.items() for way in ways for topic in TOPIC_NAMES
)
"""The column, way and topic of each cell of the matrix."""


def prepare(spec: CorrectionsSpec, wiring: Wiring, place: RunPlace) -> PreparedRun:
    store = wiring.store(spec.store)
    model = wiring.model(spec.model) if spec.model is not None else None
    texts = {"store": store.described(), "columns": "\n".join(COLUMNS)}
    if model is not None:
        texts |= {"model": model.described(), "prompt": load_prompt(_PROMPT)}
    return PreparedRun(
        spec=spec,
        totals={(SET, store.name): len(CELLS)},
        subjects=(store.name,),
        fingerprints={name: Fingerprint.of(text) for name, text in texts.items()},
        metrics=measures(has_model=model is not None),
        open_plan=partial(_open_plan, spec, store, model),
        cases={SET: frozenset(COLUMNS)},
        models=(model,),
        estimate=partial(_estimate, store, model),
        hints={
            with_folders(
                ("memorybench", "hygiene", "forget", "--store", store.name), spec, consent=True
            ): "certify that the store forgets deleted facts"
        },
    )


def _estimate(store: ResolvedStore, model: ResolvedModel | None) -> Iterator[Estimate]:
    yield unpriced_calls(SET, store.name, "statements", len(CELLS), spends=False)
    if model is not None:
        yield model_calls(SET, store.name, "answer", model, [PROMPT_TOKENS] * len(CELLS), REPLY_TOKENS)


async def _open_plan(
    spec: CorrectionsSpec, store: ResolvedStore, model: ResolvedModel | None, opening: Opening
) -> Plan:
    subject = await open_subject(store)
    answering = None
    if model is not None:
        prompt = answer_prompt(load_prompt(_PROMPT), _PROMPT)
        answering = Answering(await model.open(opening.stack), {"": prompt}, Scoring("contains"))
    jobs = _Jobs(spec, subject, answering, opening.run_id, make_topics(spec.seed))
    metrics = measures(has_model=model is not None)
    return Plan(jobs=jobs.jobs(), size=len(CELLS), metrics=metrics, limits=subject.limits)


class _Jobs(Struct, frozen=True):
    spec: CorrectionsSpec
    store: Store
    answering: Answering | None
    run: str
    topics: dict[str, Topic]

    def jobs(self) -> list[Job]:
        return [
            Job(
                trial=Trial(
                    suite="hygiene",
                    benchmark=SET,
                    case_id=column,
                    subject=self.store.subject,
                    variant=f"{way}, {topic}",
                    labels={"column": column, "way": way, "topic": topic},
                    cluster=topic,
                ),
                perform=partial(self._perform, column, way, self.topics[topic]),
                ordinal=ordinal,
                case=CorrectionCase(id=column, title=COLUMNS[column]),
                shown=self._exhibit(column, self.topics[topic]),
                spends=self.answering is not None,
            )
            for ordinal, (column, way, topic) in enumerate(CELLS)
        ]

    async def _perform(self, column: str, way: Way, topic: Topic, steps: Steps) -> Performed:
        cell = await self._cell(steps, column, way, topic)
        answer = None
        if self.answering is not None:
            if cell.search is None:
                raise Lacking("the store does not support search, so the model would have nothing to answer from")
            context = "\n\n".join(cell.texts)
            answer = (await ask(steps, self.answering, topic.question, context)).text
        scores = _scores(CURRENT.get(column), cell, None if answer is None else answered(answer, topic))
        return Performed(scores=tuple(scores), shown=self._exhibit(column, topic, cell, answer))

    def _exhibit(self, column: str, topic: Topic, cell: Cell | None = None, answer: str | None = None) -> Exhibit:
        current = {"old": topic.old_value, "new": topic.new_value}.get(CURRENT.get(column, ""), "")
        asked = f"{COLUMNS[column]}: {topic.question}"
        if cell is None:
            return Exhibit(asked=asked, expected=current)
        shown = cell.search.order if cell.search else cell.list.presence if cell.list else ""
        return Exhibit(asked=asked, expected=current, got=answer or shown, context="\n".join(cell.texts))

    async def _cell(self, steps: Steps, column: str, way: Way, topic: Topic) -> Cell:
        inputs = {
            "store": self.store.subject,
            "column": column,
            "way": way,
            "topic": topic.plain(),
            "curate": self.spec.curate,
        }
        play = partial(play_cell, topic=topic, column=column, way=way, curate=self.spec.curate)
        return await self.store.play(steps, PLAY, inputs, play, Cell, run=self.run, users={USER})


def _scores(current: str | None, cell: Cell, answer: str | None) -> Iterator[Score]:
    """Yield the scores of a cell. `current` is `old`, `new`, or None for a column without scores (see CURRENT)."""
    if current is None:
        return
    outdated = {"old": "new", "new": "old"}[current]
    if cell.search is not None:
        is_first = cell.search.order in (f"only {current}", f"{current} before {outdated}")
        yield Score(name="current_first", value=float(is_first))
    if cell.list is not None:
        yield Score(name="outdated_listed", value=float(cell.list.presence in ("both", f"only {outdated}")))
    if answer is not None:
        yield Score(name="answered_current", value=float(answer == f"only {current}"))
