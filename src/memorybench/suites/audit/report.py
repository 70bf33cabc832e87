"""The report of an audit: a verdict, measures, the worst failures, and how the probes were made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from memorybench.core.measures import Metric
from memorybench.core.report_sections import Case, Cases, Notes, Report, Table, text_column
from memorybench.core.trials import Outcome, Trial
from memorybench.journal.rows import Run
from memorybench.judging.canaries import take_turns
from memorybench.reporting import formatting
from memorybench.suites import report_parts as sections
from memorybench.suites.failures import Failures, reason_table
from memorybench.suites.judge_check import check_document, check_warnings, correction_tables, judge_checks
from memorybench.suites.noise import measure_noise, noise_document, noise_sections
from memorybench.suites.search_limits import OVER_BUDGET, over_budget_warning, search_facts
from memorybench.suites.shards import count_in_shards
from memorybench.suites.stored_run import StoredRun
from memorybench.suites.summary import Result
from memorybench.text.quantities import quantity
from memorybench.text.spelling import camel

from .measures import MEASURES, REVERSED, measures

RIGHT = "Right: the answer was judged correct."
MAIN_MEASURES = (
    "recall_accuracy",
    "hallucinated_memory_rate",
    "conflict_resolution_accuracy",
    "temporal_accuracy",
    "dating_accuracy",
)
MEANINGS = {
    "recall_accuracy": "current facts answered correctly",
    "hallucinated_memory_rate": "questions about things never mentioned that were answered anyway",
    "conflict_resolution_accuracy": "changed facts answered with their latest value",
    "temporal_accuracy": (
        "which of two events came first, or last: correct in both orders of the options (with `--probe-model`)"
    ),
    "answering_rate": "current facts answered at all",
    "paired_rate": "absent fact declined and its present counterpart answered correctly",
    "temporal_consistency": "the same answer in both orders of the options",
    "dating_accuracy": "durations, and what was true at a given time",
}
REASONS = {
    "a plan": "about facts and events that were still to come",
    "answerable without the conversation": "that can be answered without the conversation",
    "asked already": "that repeat another question",
    "asked as a change": "about changed facts, which are asked as they are now and not once more",
    "beyond the limit": "left out by --limit",
    "both values may be true": "about changed facts that may both be true",
    "fits an earlier fact": "that an outdated fact answers as well",
    "free text": "about facts in free text",
    "guessable": "with an answer that is easy to guess",
    "leak": "with a word of the answer in the question",
    "may be told": "about absent facts of which a stated fact has all words",
    "needs a probe model": "about the order of events (--probe-model asks for it)",
    "no gap": "about free text without a name or number to leave out (--probe-model writes questions)",
    "no longer valid": "about facts that had ended",
    "no past form": "that cannot be asked about a past date",
    "no question": "about an attribute that does not name a kind of answer",
    "no shared attribute": "about changed facts without a common attribute (--probe-model writes questions)",
    "no twin": "about absent facts without a fact that was stated",
    "no value": "without a content word in the answer",
    "not English": "about facts that are not in English, or too short to tell (--probe-model writes questions)",
    "not answerable from its evidence": "that their evidence does not answer",
    "not two dated events": "about events without dates of their own",
    "not unique": "with several answers",
    "option tells the time": "about events that their statement dates, such as the first one",
    "options overlap": "with options that share words",
    "relative time": "with a time that depends on when it was said, such as tomorrow",
    "same date": "about a past value that changed on the day on which it was stated",
    "the conversation gives another answer": "that the whole conversation answers in another way",
    "the facts do not answer one question": "about changed facts that do not answer one question",
    "the values do not differ": "about changed facts whose values are the same",
    "superseded": "about facts that were replaced by several others, or by one that had ended",
    "told": "about absent facts that the conversation tells",
    "unanswerable": "without a turn that contains the answer",
    "undated": "about facts or events without a date, or in turns without one",
    "value does not fit": "with a verb or a negation as the answer, which does not fit a note",
    "values overlap": "with an outdated value that contains the latest, or the reverse",
}
"""By name of a check: a phrase for the questions or facts that it rejects. Some names occur only in older runs."""
_ORIGINS: Mapping[str, str] = {
    "structured": "from structured facts",
    "cloze": "by leaving a gap in a fact",
    "model": "by the probe model",
    "given": "by the dataset",
    "edited": "edited in the file of probes, or new in it",
}
"""By origin of a probe: who wrote its question."""
_LABELS = ("category", "turns_back", "days_back", "conversation")
_PHRASES = {
    "recall_accuracy": "recalls {} of the facts",
    "hallucinated_memory_rate": "invents an answer to {} of the questions about things never mentioned",
    "conflict_resolution_accuracy": "knows the latest value of {} of the changed facts",
    "temporal_accuracy": "orders {} of the event pairs correctly",
    "dating_accuracy": "answers {} of the questions about durations and past values",
}
_CORRECTED = {
    "recall_accuracy": False,
    "hallucinated_memory_rate": True,
    "conflict_resolution_accuracy": False,
    "dating_accuracy": False,
}
"""Measures that are corrected for the judge's errors. The value is True if the measure counts wrong answers."""
_SEVERITY = ("hallucination", "conflict", "recall", "temporal")
"""Kinds of probes, the most severe failure first: invented answers, then outdated ones, then missing ones."""
_MAX_FAILURES = 12


def metrics(run: StoredRun) -> tuple[Metric, ...]:
    return measures(has_judge=bool(run.spec["judge"]))


def facts(runs: Sequence[Run]) -> dict[str, str]:
    """Return what the header says about a run, or about shards of one run."""
    run, spec = runs[0], runs[0].spec
    answerer = spec.get("answerer", spec.get("reader"))
    subject = f"{', '.join(spec['providers'])}, read by {answerer}" if spec["providers"] else answerer
    conversations, stated = quantity(spec["conversations"], "conversation"), quantity(spec["facts"], "fact")
    policies = {"latest": "the latest value is correct", "flag": "pointing out the change is correct"}
    return {
        "Run ID": " + ".join(shard.id for shard in runs),
        "Dataset": f"{PurePath(spec['dataset']).name} ({conversations}, {stated})",
        "Audited": subject,
        **search_facts(spec),
        "Probes": ", ".join(f"{n} {kind}" for kind, n in count_in_shards(runs, "probes").items()),
        "Judge": spec["judge"] or "none: only answers equal to a known one are scored",
        "Conflicts": policies[spec["policy"]],
        **({"Repeats": f"{spec['repeats']} per probe"} if spec.get("repeats", 1) > 1 else {}),
        "Started": sections.started(run.created),
    }


def _over_budget(outcomes: Sequence[Outcome]) -> list[str]:
    counts = Counter(outcome.trial.subject.name for outcome in outcomes if outcome.score(OVER_BUDGET))
    return [over_budget_warning(subject, n) for subject, n in counts.items()]


def report(run: StoredRun) -> Report:
    summary = run.summary
    outcomes = list(run.outcomes())
    probes = _probe_facts(run)
    rejected = _rejected(outcomes)
    if rejected:
        probes["Probes that a model rejected"] = _reasons(rejected)
    checks = judge_checks(run, _CORRECTED)
    noise = measure_noise(run, dict.fromkeys(summary.benchmarks, MAIN_MEASURES))
    return Report(
        title=sections.title(f"Memory audit: {', '.join(summary.benchmarks)}", summary),
        verdict=tuple(_verdict(result) for result in summary.results if not result.group),
        warnings=(*sections.warnings(summary), *_over_budget(outcomes)),
        sections=(
            *check_warnings(checks),
            *sections.self_judged_notes(summary),
            *sections.score_tables(summary, MEANINGS, _LABELS, MAIN_MEASURES),
            *correction_tables(run, checks),
            *noise_sections(noise),
            *(table for name in summary.benchmarks for table in sections.difference_tables(summary, name)),
            *_attribution(outcomes),
            _worst_failures(run, outcomes),
            sections.provenance(facts(run.runs)),
            Notes(tuple(probes.items()), title="How the probes were made"),
            *sections.step_tables(summary),
            Notes((sections.accounting(summary),)),
        ),
        document={
            **sections.document(summary),
            **noise_document(noise),
            **check_document(checks),
            **_audit_result(run, outcomes),
        },
    )


def _verdict(result: Result) -> str:
    found = {name: measure for name in _PHRASES if (measure := result.measure(name))}
    is_undecided = any(measure.value is None and measure.low is not None for measure in found.values())
    measures = {name: one for name, one in found.items() if one.n and (one.value is not None or one.low is not None)}
    if not measures:
        hint = ": code could not decide the answers; a judge decides them (--judge-model)" if is_undecided else ""
        return f"{result.subject}: nothing was measured{hint}."
    *first, last = (_PHRASES[name].format(formatting.with_interval(one)) for name, one in measures.items())
    sentence = f"{result.subject} {', '.join(first)}{' and ' if first else ''}{last}."
    answering = result.measure("answering_rate")
    if answering is not None and answering.value is not None and answering.value < 0.5:
        share = formatting.share(answering.value)
        sentence += f" It answers only {share} of the questions about facts: a silent system invents nothing."
    for measure in measures.values():
        if 2 * measure.n < measure.planned:
            sentence += f" {measure.name} is based on {measure.n} of {measure.planned} probes only."
    if is_undecided:
        sentence += (
            " A range allows for all answers that code could not decide being wrong, and for all being right; a judge"
            " decides them (--judge-model)."
        )
    return sentence


def _rejected(outcomes: Iterable[Outcome]) -> Counter[str]:
    """Count the probes that the probe model rejected, by reason. A probe counts once for all subjects."""
    reasons = {
        outcome.trial.case_id: outcome.failure.message.partition(":")[0]
        for outcome in outcomes
        if outcome.status == "skipped" and outcome.failure is not None
    }
    return Counter(reasons.values())


def _attribution(outcomes: Iterable[Outcome]) -> list[Table]:
    """Return a table of the reasons why answers are wrong, by subject."""
    wrong = [outcome for outcome in outcomes if outcome.score("correct") == 0]
    if not wrong:
        return []
    table = reason_table(Failures(wrong))
    return [Table("Why answers are wrong", (text_column("subject"), *table.columns[1:]), table.rows, level=3)]


def _probe_facts(run: StoredRun) -> dict[str, str]:
    """Return lines about the probes: what the checks rejected, and which facts no probe asks about."""
    spec = run.spec
    kinds = ", ".join(f"{n} {kind}" for kind, n in count_in_shards(run.runs, "probes").items())
    origins = count_in_shards(run.runs, "origins")
    conversations, stated = quantity(spec["conversations"], "conversation"), quantity(spec["facts"], "fact")
    lines = {
        f"Probes from {stated} of {conversations}": kinds,
        "Who wrote the questions": ", ".join(f"{n} {_ORIGINS.get(name, name)}" for name, n in origins.items()),
        "Questions that were not asked": _reasons({name: n for name, n in spec["gates"].items() if name != "made"}),
        "Facts without a probe": _reasons(spec["skipped"]),
    }
    return {name: text for name, text in lines.items() if text}


def _reasons(counts: Mapping[str, int]) -> str:
    """Return the counts and reasons as one text, the most frequent reason first."""
    ranked = sorted(counts.items(), key=lambda item: -item[1])
    return "; ".join(f"{n} {REASONS.get(name, name)}" for name, n in ranked if n)


def _worst_failures(run: StoredRun, outcomes: Sequence[Outcome]) -> Cases:
    wrong = [outcome for outcome in outcomes if outcome.score("correct") == 0]
    wrong = list({_question(outcome.trial): outcome for outcome in reversed(wrong)}.values())[::-1]
    cases = []
    for outcome in _select_worst(wrong):
        trial, shown = outcome.trial, outcome.shown
        fields = [("asked", shown.asked), ("expected", shown.expected), ("got", shown.got or "(nothing)")]
        fields += [("why", shown.reason)] if shown.reason else []
        fields += [("from", line) for line in sections.gold_lines(run.case(outcome))]
        heading = (trial.labels.get("probe_type", ""), trial.subject.name, trial.case_id)
        cases.append(Case(heading, tuple(fields)))
    counts = run.summary.counts
    is_complete = counts["scored"] == counts["planned"]
    none = "None: every answer was correct." if is_complete else f"None among the {counts['scored']} scored answers."
    return Cases("Worst failures", tuple(cases), len(wrong), none)


def _question(trial: Trial) -> tuple[str, str, str]:
    """Return a key that is the same for the repeats of a probe, and for an order question with exchanged options."""
    probe = f"{trial.case_id.removesuffix('/2')}/1" if trial.variant == REVERSED else trial.case_id
    return trial.benchmark, trial.subject.name, probe


def _select_worst(wrong: Sequence[Outcome]) -> list[Outcome]:
    """Select failures to show: equally many of each kind, most severe kind first, from many conversations."""
    selected: list[Outcome] = []
    for kind in _SEVERITY:
        by_conversation: dict[str, list[Outcome]] = {}
        for outcome in wrong:
            if outcome.trial.labels.get("probe_type") == kind:
                by_conversation.setdefault(outcome.trial.cluster, []).append(outcome)
        selected += take_turns(*by_conversation.values())[: _MAX_FAILURES // len(_SEVERITY)]
    return selected


def _audit_result(run: StoredRun, outcomes: Iterable[Outcome]) -> dict[str, Any]:
    """Return the fields of memaudit's AuditResult.

    `metrics` are those of the first subject, which `metricsOf` names.
    """
    first = next((result for result in run.summary.results if not result.group), None)
    measures = {metric.name: first.measure(metric.name) if first else None for metric in MEASURES}
    return {
        "datasetId": run.spec["benchmarks"][0],
        "timestamp": run.summary.created,
        "metrics": {camel(name): measure.value if measure else None for name, measure in measures.items()},
        "metricsOf": first.subject if first else None,
        "probes": count_in_shards(run.runs, "probes"),
        **{key: dict(run.spec[key]) for key in ("gates", "skipped")},
        "probeResults": [_probe_result(outcome, run.case(outcome)) for outcome in outcomes],
    }


def _probe_result(outcome: Outcome, probe: Mapping[str, Any]) -> dict[str, Any]:
    correct = outcome.score("correct")
    return {
        "probe": {
            "id": outcome.trial.case_id,
            "type": outcome.trial.labels.get("probe_type", ""),
            "question": outcome.shown.asked,
            "context": [
                {key: turn[field] for key, field in _TURN_KEYS.items() if field != "at" or turn.get("at")}
                for turn in probe.get("gold_context", ())
            ],
            "expectedAnswer": outcome.shown.expected,
            "relatedFacts": list(probe.get("related_facts", ())),
        },
        "subject": outcome.trial.subject.name,
        "repeat": outcome.trial.repeat,
        "response": outcome.shown.got,
        "correct": None if correct is None else correct == 1.0,
        "status": outcome.status,
        "reason": outcome.failure.message if outcome.failure else outcome.shown.reason,
        "conversation": outcome.trial.cluster,
        "origin": "model" if outcome.score("rewritten") == 1 else probe.get("origin", ""),
        "checks": list(probe.get("checks", ())),
    }


_TURN_KEYS = {"role": "role", "content": "content", "timestamp": "at"}
