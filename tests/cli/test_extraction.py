"""Known extractors get known scores through the command, and a team gates its own by pytest."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.cli.command import Command, Said
from tests.doubles.stub import Call, Stub, completion

ROOT = Path(__file__).parents[2]
KNOWN = ROOT / "tests/extractors/known.py"


def put(command: Command, extractor: str, *more: str) -> tuple[Said, dict[str, Any]]:
    said = command("extraction", "run", "--extractor", f"{KNOWN}:{extractor}", "--allow-code", "--json", *more)
    assert said.code in (0, 3), said.err
    (overall,) = (row for row in said.json["results"] if not row["group"])
    return said, {measure["name"]: measure["value"] for measure in overall["measures"]}


@pytest.mark.slow
def test_the_perfect_extractor_passes_everything(command: Command) -> None:
    said, scores = put(command, "perfect")
    assert said.code == 0
    ones = ("precision", "recall", "f1", "conflict_resolution", "minimalism", "must_not_store", "coverage_f1")
    assert {name: scores[name] for name in ones} == dict.fromkeys(ones, 1)
    assert (scores["duplicates"], scores["violations"], scores["undecided"]) == (0, 0, 0)


def test_the_amnesiac_recalls_nothing_and_has_no_precision(command: Command) -> None:
    said, scores = put(command, "amnesiac")
    assert said.code == 3
    assert scores["precision"] is None, "it wrote nothing: there is nothing to be precise about"
    assert (scores["recall"], scores["f1"], scores["conflict_resolution"], scores["minimalism"]) == (0, 0, 0, 1)


@pytest.mark.slow
def test_the_stale_one_writes_the_new_value_and_keeps_the_old(command: Command) -> None:
    _, scores = put(command, "stale")
    assert scores["conflict_resolution"] == 0
    assert scores["precision"] == 1
    assert scores["update_done"] == 0


@pytest.mark.slow
def test_the_hoarder_is_neither_precise_nor_minimal(command: Command) -> None:
    _, scores = put(command, "hoarder")
    assert scores["minimalism"] == 0
    assert scores["precision"] < 0.3
    assert scores["violations"] > 0


@pytest.mark.parametrize(("key", "is_same"), [("Robert", True), ("robert", True), ("Roberts", False)])
def test_a_fact_under_the_name_of_another_person_is_undecided(command: Command, key: str, is_same: bool) -> None:
    case = {
        "id": "c",
        "existing_memory": {},
        "conversation": "User: My client Robert pays his invoices late; my client Roberts does not.",
        "expected_output": {"Robert": ["pays his invoices late"]},
        "expected_facts": ["Robert: pays his invoices late"],
    }
    (command.folder / "cases.json").write_text(json.dumps([case]))
    output = {key: ["pays his invoices late"]}
    (command.folder / "own.py").write_text(f"def extract(existing_memory, conversation):\n    return {output!r}\n")
    run = ("extraction", "run", "cases.json", "--extractor", "own.py:extract", "--allow-code", "--no-targets")
    said = command(*run, "--json", "--run-id", "r")
    measures = {measure["name"]: measure for measure in said.json["results"][0]["measures"]}
    precision, undecided = measures["precision"], measures["undecided"]["value"]
    assert (precision["value"], undecided) == ((1, 0) if is_same else (None, 1))
    assert (
        is_same or "Roberts: pays his invoices late (Robert: pays his invoices late)" in command("show", "r", "c").out
    )


@pytest.mark.slow
@pytest.mark.parametrize("extractor", ["splitter", "negation_dropper", "paraphraser"])
def test_undecided_pairs_are_counted_and_bound_the_measures(command: Command, extractor: str) -> None:
    """The truth is 1 for the paraphraser, and lower for the others; without a judge none of them has a value."""
    said, scores = put(command, extractor)
    assert scores["undecided"] > 0
    assert "| correct" not in said.err, "the share of the decided cases is not that of all"
    for name in ("precision", "recall", "f1"):
        [measure] = [one for one in said.json["results"][0]["measures"] if one["name"] == name]
        assert measure["value"] is None
        assert measure["n"] < measure["planned"]
        assert measure["low"] <= scores[f"{name}_least"] < scores[f"{name}_most"] <= measure["high"]
        assert scores[f"{name}_most"] == 1 or extractor == "splitter"


@pytest.mark.slow
def test_targets_apply_unless_thresholds_replace_them(command: Command) -> None:
    assert put(command, "amnesiac", "--no-targets")[0].code == 0
    loose = ("--threshold", "recall=0", "--threshold", "f1=0", "--threshold", "conflict_resolution=0")
    assert put(command, "amnesiac", *loose)[0].code == 0
    assert put(command, "amnesiac", "--no-targets", "--threshold", "recall=0.1")[0].code == 3


def test_a_function_may_be_in_a_file_with_dataclasses(command: Command) -> None:
    (command.folder / "own.py").write_text(
        "from __future__ import annotations\n"
        "from dataclasses import dataclass\n"
        "@dataclass\nclass Fact:\n    text: str\n"
        "def extract(existing_memory, conversation):\n    return {'Ben': [Fact('lives in Rome').text]}\n"
    )
    case = {
        "id": "c",
        "existing_memory": {},
        "conversation": "User: Ben lives in Rome.",
        "expected_output": {"Ben": ["lives in Rome"]},
        "expected_facts": ["Ben: lives in Rome"],
    }
    (command.folder / "cases.json").write_text(json.dumps([case]))
    said = command("extraction", "run", "cases.json", "--extractor", "own.py:extract", "--allow-code")
    assert said.code == 0, said.err


def test_a_file_that_ends_the_process_is_an_error(command: Command) -> None:
    (command.folder / "own.py").write_text("raise SystemExit(0)\n")
    said = command("extraction", "run", "--extractor", "own.py:extract", "--allow-code")
    assert (said.code, "own.py cannot be imported: SystemExit" in said.err) == (2, True)


def test_user_code_runs_only_with_allow_code(command: Command) -> None:
    said = command("extraction", "run", "--extractor", f"{KNOWN}:perfect")
    assert said.code == 2
    assert "--allow-code" in said.err


@pytest.mark.slow
def test_a_program_is_an_extractor(command: Command) -> None:
    program = command.folder / "echo.py"
    program.write_text("import json, sys\nprint(json.dumps(json.load(sys.stdin)['existing_memory']))\n")
    line = f"{sys.executable} {program}"
    said = command("extraction", "run", "--extractor-command", line, "--limit", "12", "--json", "--no-targets")
    assert said.code == 0, said.err
    assert said.json["counts"]["scored"] == 12


@pytest.mark.parametrize("prefix", ["", "The updated memory is:\n"], ids=["fenced", "prefixed"])
def test_json_within_the_output_of_a_program_is_read_and_noted(command: Command, prefix: str) -> None:
    program = command.folder / "echo.py"
    printed = "'```json', memory, '```', sep='\\n'" if not prefix else f"{prefix!r}, memory"
    program.write_text(
        f"import json, sys\nmemory = json.dumps(json.load(sys.stdin)['existing_memory'])\nprint({printed})\n"
    )
    line = f"{sys.executable} {program}"
    said = command("extraction", "run", "--extractor-command", line, "--limit", "3", "--json", "--no-targets")
    assert said.json["counts"]["scored"] == 3
    (overall,) = (row for row in said.json["results"] if not row["group"])
    assert {one["name"]: one["value"] for one in overall["measures"]}["json_in_text"] == 3


def test_the_reference_extractor_needs_a_model(command: Command) -> None:
    said = command("extraction", "run", "--extractor", "reference")
    assert said.code == 2
    assert "--extractor-model" in said.err


@pytest.mark.slow
def test_an_extraction_run_is_killed_and_resumed_without_asking_twice(command: Command) -> None:
    calls = command.folder / "calls"
    program = command.folder / "counted.py"
    program.write_text(
        "import json, sys\n"
        f"open({str(calls)!r}, 'a').write('x')\n"
        "print(json.dumps(json.load(sys.stdin)['existing_memory']))\n"
    )
    asked = ("--extractor-command", f"{sys.executable} {program}", "--limit", "10", "--concurrency", "1")
    assert command.killed("extraction", "run", *asked, "--run-id", "r", "--no-targets", at=30)
    before = len(calls.read_text())
    assert 0 < before < 10
    said = command("extraction", "run", "--resume", "r", "--no-targets", "--allow-code", "--json")
    assert said.code == 0, said.err
    assert said.json["counts"]["scored"] == 10
    assert len(calls.read_text()) <= 10 + said.json["possibly_charged_twice"] <= 11


@dataclass
class PytestRun:
    """A run of pytest in this process: its exit code and the results by test name."""

    code: int = -1
    passed: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed[report.location[2]] = report.longreprtext
        elif report.when == "call":
            self.passed.add(report.location[2])


def run_pytest(command: Command, *arguments: str) -> PytestRun:
    own_streams = ("-p", "no:cacheprovider", "-p", "no:faulthandler", "-p", "no:xdist", "-s")
    run = PytestRun()
    run.code = pytest.main([str(command.folder), *own_streams, *arguments], plugins=[run])
    return run


@pytest.mark.slow
def test_pytest_tests_an_extractor_case_by_case(tmp_path: Path) -> None:
    program = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]  # the plug-in is there with the package
    arguments = ("--memory-cases", "bundled", "--memory-extractor", f"{KNOWN}:perfect")
    done = subprocess.run([*program, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "81 passed" in done.stdout  # eighty cases, and the targets


@pytest.mark.slow
def test_pytest_fails_an_extractor_that_misses_its_targets(command: Command) -> None:
    run = run_pytest(command, "--memory-cases", "bundled", "--memory-extractor", f"{KNOWN}:stale")
    assert run.code == 1
    assert "conflict_resolution 0.000" in run.failed["memory targets"]


@pytest.mark.slow
def test_pytest_reports_invalid_cases(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    (command.folder / "cases.json").write_text(json.dumps([{"id": "a"}]))
    assert run_pytest(command, "--memory-cases", "cases.json", "--memory-extractor", "amnesiac").code == 4
    assert "cases.json" in capsys.readouterr().err
    assert run_pytest(command, "--memory-cases", "bundled").code == 4


@pytest.mark.slow
def test_pytest_finds_configs_in_a_folder(command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "configs" / "extractors"
    folder.mkdir(parents=True)
    (folder / "mine.yaml").write_text(f"name: mine\ntype: callable\nfunction: {KNOWN}:perfect\n")
    cases = ("--memory-cases", "bundled", "--memory-extractor", "mine", "-k", "test_001")
    assert run_pytest(command, *cases).code == 4
    assert run_pytest(command, *cases, "--memory-config-dir", str(tmp_path / "configs")).passed == {
        "memory case test_001"
    }


CLI_OPTION = re.compile(r"(?<![\w-])--(?:extractor|extractor-command|extractor-model|judge-model|threshold)\b")


@pytest.mark.slow
def test_pytest_names_its_own_options_in_messages(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_pytest(command, "--memory-cases", "bundled", "--memory-extractor", "reference").code == 4
    error = capsys.readouterr().err
    assert "--memory-extractor-model" in error
    missed = run_pytest(command, "--memory-cases", "bundled", "--memory-extractor", f"{KNOWN}:paraphraser").failed
    assert "--memory-judge-model" in missed["memory targets"]
    assert not CLI_OPTION.search(error + missed["memory targets"])


@pytest.mark.parametrize("threshold", ["recall=abc", "recal=0.5", "recall=80"])
def test_pytest_refuses_an_invalid_threshold_before_any_test(
    command: Command, capsys: pytest.CaptureFixture[str], threshold: str
) -> None:
    extractor = ("--memory-cases", "bundled", "--memory-extractor", "amnesiac")
    run = run_pytest(command, *extractor, "--memory-threshold", threshold)
    assert (run.code, run.passed, run.failed) == (4, set(), {})
    error = capsys.readouterr().err
    assert "--memory-threshold" in error
    assert not CLI_OPTION.search(error)


@pytest.mark.slow
def test_pytest_reports_a_function_of_wrong_arity_without_a_traceback(command: Command) -> None:
    (command.folder / "mine.py").write_text("def extract(existing):\n    return existing\n")
    function = f"{command.folder / 'mine.py'}:extract"
    run = run_pytest(command, "--memory-cases", "bundled", "--memory-extractor", function, "-k", "test_001")
    failure = run.failed["memory case test_001"]
    assert "two parameters" in failure
    assert "Traceback" not in failure
    assert ".py:" not in failure.replace(function, "")


CASES = json.loads((ROOT / "data/memory_test_cases.json").read_text())["cases"]


def gold(call: Call) -> str:
    """What the bundled gold says for the conversation in the prompt."""
    asked = call.json["messages"][-1]["content"]
    for case in CASES:
        said = case["conversation"]
        last = said.splitlines()[-1].partition(": ")[2] if isinstance(said, str) else said[-1]["content"]
        first = said.splitlines()[0].partition(": ")[2] if isinstance(said, str) else said[0]["content"]
        if first in asked and last in asked:
            return json.dumps(case["expected_output"])
    raise AssertionError(asked)


@pytest.mark.slow
@pytest.mark.parametrize(("reply", "recall"), [(gold, 1), (lambda call: "UNCHANGED", 0)], ids=["gold", "unchanged"])
def test_the_reference_extractor_scores_as_its_model_does(
    command: Command, monkeypatch: pytest.MonkeyPatch, reply: Callable[[Call], str], recall: int
) -> None:
    with Stub() as stub:
        stub.always(completion(reply, model="", tokens=(100, 50)))
        monkeypatch.setenv("VLLM_BASE_URL", f"{stub.url}/v1")
        asked = ("--extractor", "reference", "--extractor-model", "vllm/stub", "--no-targets", "--json")
        said = command("extraction", "run", *asked)
    assert said.code == 0, said.err
    (overall,) = (row for row in said.json["results"] if not row["group"])
    scores = {measure["name"]: measure["value"] for measure in overall["measures"]}
    assert scores["recall"] == recall
    assert scores["minimalism"] == 1
    assert said.json["circumstances"]["spent"]["calls"] == len(CASES)


@pytest.mark.slow
@pytest.mark.parametrize(
    "reply",
    [
        "Here is the memory:\n```json\n{}\n```\nLet me know if you need more.",
        "The updated memory is: {}",
        "```\n{}\n```",
    ],
    ids=["fenced in prose", "prefixed", "fenced"],
)
def test_json_within_a_reply_is_read_and_noted(command: Command, monkeypatch: pytest.MonkeyPatch, reply: str) -> None:
    with Stub() as stub:
        stub.always(completion(lambda call: reply.replace("{}", gold(call)), model="", tokens=(100, 50)))
        monkeypatch.setenv("VLLM_BASE_URL", f"{stub.url}/v1")
        asked = ("--extractor", "reference", "--extractor-model", "vllm/stub", "--limit", "12", "--no-targets")
        said = command("extraction", "run", *asked, "--json")
    assert said.json["counts"]["scored"] == 12
    (overall,) = (row for row in said.json["results"] if not row["group"])
    scores = {measure["name"]: measure["value"] for measure in overall["measures"]}
    in_prose = 0 if reply.startswith("```") else 12
    assert (scores["f1"], scores["json_in_text"]) == (1, in_prose)
    report = command("results", "latest").out
    assert ("12 replies had text around the JSON" in " ".join(report.split())) == bool(in_prose)


def test_a_reply_with_two_memories_is_not_read(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    with Stub() as stub:
        stub.always(completion(lambda call: 'Either {"a": ["x"]} or {"b": ["y"]}.', model="", tokens=(100, 50)))
        monkeypatch.setenv("VLLM_BASE_URL", f"{stub.url}/v1")
        asked = ("--extractor", "reference", "--extractor-model", "vllm/stub", "--limit", "3", "--no-targets")
        said = command("extraction", "run", *asked, "--json")
    assert said.json["counts"]["failed"] == 3


@pytest.mark.slow
def test_must_not_store_counts_only_cases_that_forbid_something(command: Command) -> None:
    said, _ = put(command, "perfect")
    [measure] = [one for one in said.json["results"][0]["measures"] if one["name"] == "must_not_store"]
    assert (measure["n"], measure["planned"]) == (45, 45)


def n_of(said: Said, *names: str) -> dict[str, int]:
    return {one["name"]: one["n"] for one in said.json["results"][0]["measures"] if one["name"] in names}


def test_a_measure_counts_only_cases_that_have_a_value(command: Command) -> None:
    said, scores = put(command, "hoarder", "--no-targets")
    operations = {"update_done": 11, "delete_done": 2, "keep_done": 62}
    assert n_of(said, *operations) == operations
    assert scores["delete_done"] == 0


def test_without_anything_to_store_a_silent_extractor_meets_the_targets(command: Command) -> None:
    case = {"existing_memory": {}, "conversation": "User: Hello!", "expected_output": {}, "expected_facts": []}
    cases = [{"id": id, "scenario": "no_extraction", **case} for id in ("a", "b")]
    (command.folder / "cases.json").write_text(json.dumps(cases))
    said, scores = put(command, "amnesiac", "cases.json")
    assert said.code == 0, said.err
    assert (scores["precision"], scores["minimalism"]) == (None, 1)
    assert n_of(said, "precision", "delete_done", "minimalism") == {"precision": 0, "delete_done": 0, "minimalism": 2}


def test_an_undecided_case_is_not_called_passed(command: Command) -> None:
    case = {
        "id": "a",
        "existing_memory": {},
        "conversation": "User: I live in Porto.",
        "expected_output": {"home": ["Lives in Porto"]},
        "expected_facts": ["home: Lives in Porto"],
    }
    (command.folder / "cases.json").write_text(json.dumps([case]))
    extractor = shlex.join(["echo", json.dumps({"home": ["Resides in Porto"]})])
    words = ("cases.json", "--extractor-command", extractor, "--no-targets", "--run-id", "r", "--junit", "j.xml")
    assert command("extraction", "run", *words).code == 0
    suite = ElementTree.parse(command.folder / "j.xml").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("1", "0", "1")
    (skipped,) = suite.iter("skipped")
    assert "--judge-model" in skipped.get("message", "")
    assert "every case passed" not in (command.folder / "results/r/report.md").read_text()


def test_an_unreadable_judge_meets_no_target(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of two cases is right by code. The measures were those of this case alone."""
    facts = {"a": "Lives in Porto", "b": "Lives in Braga"}
    cases = [
        {
            "id": id,
            "existing_memory": {},
            "conversation": f"User: {fact}.",
            "expected_output": {"home": [fact]},
            "expected_facts": [f"home: {fact}"],
        }
        for id, fact in facts.items()
    ]
    (command.folder / "cases.json").write_text(json.dumps(cases))
    program = command.folder / "extract.py"
    program.write_text(
        "import json, sys\n"
        "said = json.load(sys.stdin)['conversation'][0]['content'].strip('.')\n"
        "print(json.dumps({'home': [said.replace('Lives in Braga', 'Braga is home')]}))\n"
    )
    asked = ("cases.json", "--extractor-command", f"{sys.executable} {program}", "--run-id", "r", "--canaries", "0")
    with Stub() as stub:
        monkeypatch.setenv("VLLM_BASE_URL", f"{stub.url}/v1")
        stub.always(completion("perhaps so", model="", tokens=(1, 1)))
        said = command("extraction", "run", *asked, "--judge-model", "vllm/stub", "--json")
        assert said.json["counts"]["unscored"] == 1
        (overall,) = (row for row in said.json["results"] if not row["group"])
        measures = {measure["name"]: measure for measure in overall["measures"]}
        for name in ("precision", "recall", "f1"):
            one = measures[name]
            assert (one["value"], one["n"], one["planned"], one["low"]) == (None, 1, 2, pytest.approx(0))
        assert measures["unreadable"]["value"] == 1
        assert "--judge-model" not in "".join(check["text"] for check in said.json["checks"]), "the run has a judge"
        checks = {check["name"]: check["missed"] for check in said.json["checks"]}
        assert {checks[f"threshold {name}"] for name in ("precision", "recall", "f1")} == {True}
        assert command("bundle", "r", "--output", "r.mbz").code == 0
        assert command("verify", "r.mbz").code == 0
        stub.always(completion("yes", model="", tokens=(1, 1)))
        said = command("extraction", "run", "--resume", "r", "--allow-code", "--json")
    assert said.code == 0
    assert said.json["counts"]["scored"] == 2


def test_a_judge_is_not_advised_if_every_extraction_failed(command: Command) -> None:
    said = command("extraction", "run", "--extractor-command", "false", "--limit", "12", "--json")
    assert said.json["counts"]["failed"] == 12
    missed = {check["name"]: check["text"] for check in said.json["checks"] if check["missed"]}
    assert {"threshold recall", "threshold minimalism"} <= set(missed)
    assert not [text for text in missed.values() if "--judge-model" in text]


@pytest.mark.slow
def test_an_undecided_case_does_not_meet_a_target(command: Command) -> None:
    wrong = command.folder / "wrong.py"
    wrong.write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "from tests.extractors.known import perfect\n"
        "def sister(existing, conversation):\n"
        "    def told(state):\n"
        "        if isinstance(state, dict):\n"
        "            return {name: told(part) for name, part in state.items()}\n"
        "        if isinstance(state, list):\n"
        "            return [told(part) for part in state]\n"
        "        return state if state in str(existing) else f'The sister: {state}'\n"
        "    return told(perfect(existing, conversation))\n"
    )
    said = command("extraction", "run", "--extractor", f"{wrong}:sister", "--allow-code")
    assert said.code == 3
    assert "could be as low as" in " ".join(said.out.split())


@pytest.mark.slow
def test_pytest_runs_only_the_selected_cases(command: Command) -> None:
    calls = command.folder / "calls"
    (command.folder / "counting.py").write_text(
        "def extract(existing, conversation):\n"
        f"    with open({str(calls)!r}, 'a') as file:\n"
        "        file.write('x')\n"
        "    return existing\n"
    )
    bundled = ("--memory-cases", "bundled")
    run_pytest(command, *bundled, "--memory-extractor", "counting.py:extract", "-k", "test_002")
    assert calls.read_text() == "x"
    broken = command.folder / "broken.py"
    broken.write_text("def extract(existing, conversation):\n    raise RuntimeError('no')\n")
    run = run_pytest(command, *bundled, "--memory-extractor", "broken.py:extract", "-k", "targets")
    assert run.code == 1
    assert "80 of 80 cases have no score" in run.failed["memory targets"]


def counting(command: Command, then: str) -> tuple[Path, tuple[str, ...]]:
    """Return a file that gets a letter per call of an extractor, which then does `then`, and the options to test it."""
    calls = command.folder / "calls"
    (command.folder / "counting.py").write_text(
        "import signal, threading\n"
        "from pathlib import Path\n"
        "once = threading.Lock()\n"
        "def extract(existing, conversation):\n"
        f"    with open({str(calls)!r}, 'a') as file:\n"
        "        file.write('x')\n"
        f"    {then}\n"
        "    return existing\n"
    )
    return calls, ("--memory-cases", "bundled", "--memory-extractor", "counting.py:extract", "-k", "test_00")


@pytest.mark.slow
def test_pytest_performs_a_run_that_raised_once_only(command: Command) -> None:
    """Its tests would otherwise perform, and pay for, one run each."""
    no_report = "[(run / 'report.json').mkdir(exist_ok=True) for run in Path('kept').glob('run_*')]"
    calls, options = counting(command, no_report)
    run = run_pytest(command, *options, "--memory-results", "kept")
    assert (len(run.failed), run.passed) == (9, set())
    assert calls.read_text() == "x" * 9


@pytest.mark.slow
def test_pytest_ends_at_ctrl_c(command: Command) -> None:
    press = "signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)"
    _, options = counting(command, f"once.acquire(blocking=False) and {press}")  # twice would end this process
    run = run_pytest(command, *options, "-k", "test")  # more cases than calls at the same time
    assert (run.code, run.passed, run.failed) == (pytest.ExitCode.INTERRUPTED, set(), {})


@pytest.mark.slow
def test_pytest_says_why_a_case_was_not_reached(command: Command) -> None:
    extractors = command.folder / "configs" / "extractors"
    extractors.mkdir(parents=True)
    address = "http://127.0.0.1:9/extract"
    (extractors / "gone.yaml").write_text(f"name: gone\ntype: http\nurl: {address}\nauth: {{type: none}}\n")
    options = ("--memory-cases", "bundled", "--memory-extractor", "gone", "--memory-config-dir", "configs")
    run = run_pytest(command, *options, "-k", "test")
    assert len(run.failed) == 80
    assert all(address in failure and "KeyError" not in failure for failure in run.failed.values())


@pytest.mark.slow
def test_pytest_refuses_to_pay_for_all_cases_in_each_process(command: Command) -> None:
    calls, options = counting(command, "pass")
    program = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options]
    done = subprocess.run([*program, "-n", "2"], cwd=command.folder, capture_output=True, text=True, check=False)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert not calls.exists()
    for alone in (("-n", "0"), ("--dist", "loadfile")):
        calls.unlink(missing_ok=True)
        done = subprocess.run([*program, *alone], cwd=command.folder, capture_output=True, text=True, check=False)
        assert calls.exists(), done.stderr
        assert calls.read_text() == "x" * 9, done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("columns", ["80", "200"])
def test_no_table_is_cut_off(command: Command, monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    said = command("extraction", "run", "--extractor", "hoarder", "--no-targets")
    assert "preference_extraction" in said.out
    assert not [line for line in said.out.splitlines() if line.startswith("│") and "…" in line]
