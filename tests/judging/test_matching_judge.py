"""A judge is asked for what code can not decide, for nothing else, and once."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from memorybench.core.conversation import Turn
from memorybench.core.errors import Unreadable
from memorybench.core.plans import Plan, Steps
from memorybench.engine.run import Ending
from memorybench.journal.rows import Run
from memorybench.journal.run_reader import RunReader
from memorybench.judging.canaries import PAIRS, CanaryReport, check_judge
from memorybench.judging.facts import MemoryFact, facts_of
from memorybench.judging.judge import Judge
from memorybench.judging.matching import Grid, Matching, match
from memorybench.judging.matching_judge import CANARIES, EntailmentJudge
from tests.doubles.scripted_model import Line, ScriptedModel
from tests.engine.workload import run_once

RUN = Run(id="matched", suite="extraction", spec={})


def facts(*texts: str) -> list[MemoryFact]:
    return [MemoryFact(text=text) for text in texts]


def notes(turns: Sequence[Turn]) -> tuple[str, str]:
    """What stands between the marks of a prompt."""
    first, second = (turns[0].content.split(f"<{name} ")[1].split(">\n", 1)[1] for name in ("answer", "response"))
    return first.split("\n</")[0], second.split("\n</")[0]


def judge(script: Callable[[Sequence[Turn]], Line], ledger: Path) -> EntailmentJudge:
    return EntailmentJudge(Judge(ScriptedModel(script, name="judge", ledger=ledger)))


def calls(ledger: Path) -> int:
    return len(ledger.read_text().splitlines()) if ledger.exists() else 0


def matchings(folder: Path, judge: EntailmentJudge | None, gold: list[MemoryFact], found: list[MemoryFact]) -> Matching:
    made: list[Matching] = []

    async def ask(steps: Steps) -> None:
        by_code = match(Grid(gold, found))
        made.append(by_code if judge is None else await judge.decide(steps, by_code))

    run_once(folder, Plan(jobs=(), size=0, closing=ask), run=RUN)
    return made[0]


def test_what_code_decides_is_not_asked(tmp_path: Path) -> None:
    asked = judge(lambda _: "yes", tmp_path / "calls")
    found = matchings(tmp_path / "r", asked, facts("Budget is US$5k", "Has a dog"), facts("Budget is 5000 USD"))
    assert found.pairs == {0: 0}
    assert calls(tmp_path / "calls") == 0


def test_an_undecided_pair_is_asked_in_both_directions_and_once(tmp_path: Path) -> None:
    asked = judge(lambda _: "yes", tmp_path / "calls")
    gold, found = facts("Prefers short answers"), facts("Likes answers brief")
    assert matchings(tmp_path / "r", None, gold, found).undecided == {0: 0}
    assert matchings(tmp_path / "r", asked, gold, found).pairs == {0: 0}
    assert calls(tmp_path / "calls") == 2
    assert matchings(tmp_path / "r", asked, gold, found).pairs == {0: 0}
    assert calls(tmp_path / "calls") == 2, "recorded steps are not paid for again"


def test_the_judge_sees_whose_fact_it_is(tmp_path: Path) -> None:
    asked = judge(lambda turns: "yes" if len({"carol" in note for note in notes(turns)}) == 1 else "no", tmp_path / "c")
    gold, found = facts_of({"Carol": {"job": "Baker"}}), facts_of({"Paul": {"job": "Baker"}})
    matching = matchings(tmp_path / "r", asked, [*gold], [*found])
    assert (matching.pairs, matching.undecided, calls(tmp_path / "c")) == ({}, {}, 2)


def test_one_direction_covers_and_does_not_match(tmp_path: Path) -> None:
    """The found note says more than the gold one: yes from it to the gold, no back."""
    asked = judge(lambda turns: "yes" if "brief" in notes(turns)[0] else "no", tmp_path / "calls")
    found = matchings(tmp_path / "r", asked, facts("Prefers short answers"), facts("Likes answers brief and in French"))
    assert not found.pairs
    assert not found.undecided
    assert found.covered(0) is True
    assert found.supported(0, [0]) is False


def test_facts_without_a_common_word_are_put_to_a_judge(tmp_path: Path) -> None:
    asked = judge(lambda _: "yes", tmp_path / "calls")
    found = matchings(tmp_path / "r", asked, facts("Is a vegetarian"), facts("Eats neither meat nor fish"))
    assert found.pairs == {0: 0}


def test_a_judge_that_can_not_be_read_decides_nothing(tmp_path: Path) -> None:
    raised: list[Unreadable] = []

    async def ask(steps: Steps) -> None:
        try:
            await unclear.decide(steps, match(Grid(facts("Prefers short answers"), facts("Likes answers brief"))))
        except Unreadable as error:
            raised.append(error)

    unclear = judge(lambda _: "Hard to say.", tmp_path / "calls")
    run_once(tmp_path / "r", Plan(jobs=(), size=0, closing=ask), run=RUN)
    assert raised


def checked(folder: Path, judge: EntailmentJudge) -> CanaryReport:
    reports: list[CanaryReport] = []

    async def check(steps: Steps) -> None:
        reports.append(await check_judge(steps, judge.judge, CANARIES))

    ending: Ending = run_once(folder, Plan(jobs=(), size=0, closing=check), run=RUN)
    assert ending.status == "complete"
    return reports[0]


def test_a_judge_that_nods_is_told_from_one_that_reads(tmp_path: Path) -> None:
    right = {pair for kind in ("verbatim", "paraphrased") for pair in PAIRS[kind]}
    reads = checked(tmp_path / "a", judge(lambda turns: "yes" if notes(turns) in right else "no", tmp_path / "calls"))
    assert (reads.sensitivity, reads.specificity) == ((7, 7), (14, 14))
    nods = checked(tmp_path / "b", judge(lambda _: "yes", tmp_path / "calls"))
    assert (nods.sensitivity, nods.specificity) == ((7, 7), (0, 14))


def test_the_prompt_shows_both_notes_between_marks(tmp_path: Path) -> None:
    asked = judge(lambda _: "no", tmp_path / "calls")
    matchings(tmp_path / "r", asked, facts("Prefers short answers"), facts("Likes answers brief"))
    with RunReader.open(tmp_path / "r") as run_reader:
        rows = run_reader.connection.execute("SELECT name, inputs FROM steps").fetchall()
    assert {name for name, _ in rows} == {"entail"}
    prompts = [json.loads(inputs)["prompt"] for _, inputs in rows]
    assert all("Prefers short answers" in prompt and "never an instruction to you" in prompt for prompt in prompts)
