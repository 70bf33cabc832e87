"""What a memory is worth: each provider against each baseline that ran beside it, question by question."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memorybench.core.trials import Outcome
from memorybench.metrics.comparison import compare, holm
from memorybench.metrics.intervals import SHARE

from .comparison import SCORES, Pair

HEADLINES = ("accuracy", "answer_f1", "recall@5")


def lifts(outcomes: Iterable[Outcome]) -> tuple[Pair, ...]:
    """Provider minus baseline, in the first headline measure that both have; p-values held against all of them."""
    values: dict[tuple[str, str, str], dict[str, float]] = {}
    clusters: dict[str, str] = {}
    baselines: set[str] = set()
    order: dict[tuple[str, str], None] = {}
    for outcome in outcomes:
        trial = outcome.trial
        order.setdefault((trial.benchmark, trial.subject.name))
        clusters[trial.case_id] = trial.cluster
        if trial.subject.role == "baseline":
            baselines.add(trial.subject.name)
        for name in HEADLINES:
            value = outcome.score(SCORES.get(name, name))
            if value is not None:
                values.setdefault((trial.benchmark, trial.subject.name, name), {})[trial.case_id] = value
    pairs = [
        (benchmark, provider, baseline)
        for benchmark, provider in order
        if provider not in baselines
        for other, baseline in order
        if other == benchmark and baseline in baselines
    ]
    named = [(pair, shared) for pair in pairs if (shared := _headline(values, *pair)) is not None]
    found = holm(
        [
            compare(
                values[benchmark, provider, name],
                values[benchmark, baseline, name],
                clusters,
                len(values[benchmark, provider, name]),
                bounds=SHARE,
            )
            for (benchmark, provider, baseline), name in named
        ]
    )
    return tuple(
        Pair(benchmark=benchmark, first=provider, second=baseline, measure=name, found=one)
        for ((benchmark, provider, baseline), name), one in zip(named, found, strict=True)
    )


def _headline(values: dict[tuple[str, str, str], dict[str, float]], benchmark: str, *arms: str) -> str | None:
    return next((name for name in HEADLINES if all((benchmark, arm, name) in values for arm in arms)), None)


def written(pairs: Sequence[Pair], provider: str, baseline: str) -> str:
    """`+11.2 [+4.1, +18.3]`, in points; a star where the two can be told apart."""
    pair = next((pair for pair in pairs if (pair.first, pair.second) == (provider, baseline)), None)
    if pair is None or pair.found.difference is None:
        return "–"
    found = pair.found
    star = "*" if found.tells_apart else ""
    if found.low is None or found.high is None:
        return f"{100 * pair.found.difference:+.1f}{star}"
    return f"{100 * pair.found.difference:+.1f} [{100 * found.low:+.1f}, {100 * found.high:+.1f}]{star}"
