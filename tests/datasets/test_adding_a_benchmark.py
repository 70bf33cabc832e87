"""What the documentation promises to someone who adds a benchmark, done as that one would."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import memorybench
from tests.cli.command import Command
from tests.doubles.refusals import refused
from tests.doubles.stub import Stub, raw

DOCS = Path(__file__).parents[2] / "docs/adding-a-benchmark.md"


@pytest.fixture
def folder(command: Command) -> Path:
    """The working folder, with the two files of the documentation in it."""
    for name, text in re.findall(r"^`(\S+)`\n```\w+\n(.*?)^```", DOCS.read_text("utf-8"), re.DOTALL | re.MULTILINE):
        file = command.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return command.folder


@pytest.mark.usefixtures("folder")
def test_the_example_of_the_documentation_runs(command: Command) -> None:
    arguments, *_ = re.findall(r"^\$ memorybench (.*)$", DOCS.read_text("utf-8"), re.MULTILINE)
    done = command(*arguments.split(), "--json")
    assert done.code == 0, done.err
    results = done.json["results"]
    overall = next(result for result in results if not result["group"])
    measured = {measure["name"]: (measure["value"], measure["n"]) for measure in overall["measures"]}
    assert measured["recall@5"] == (1.0, 2)
    groups = {result["group"].get("question_type") for result in results if result["group"]}
    assert groups == {"facts", "journeys"}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("name", "questions"), [("diary", 2), ("chat-log", 2), ("handbook", 2)])
def test_every_other_example_runs(command: Command, name: str, questions: int) -> None:
    commands = re.findall(r"^\$ memorybench (.*)$", DOCS.read_text("utf-8"), re.MULTILINE)
    (arguments,) = [line for line in commands if name in line.split()]
    done = command(*arguments.split(), "--json")
    assert done.code == 0, done.err
    overall = next(result for result in done.json["results"] if not result["group"])
    assert {(m["value"], m["n"]) for m in overall["measures"] if m["name"] == "recall@5"} == {(1.0, questions)}


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text("utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


EVIDENCE_MISTAKES = {
    "a misspelled field": ("configs/travel-notes.yaml", "evidenceField: proof", "evidenceField: prof", '"proof"'),
    "another level": (
        "configs/travel-notes.yaml",
        "evidenceLevel: turn",
        "evidenceLevel: session",
        "evidenceLevel: turn",
    ),
    "no id of a turn": ("configs/travel-notes.yaml", ", dialogId: nr", "", "dialogId"),
    "ids of other data": ("datasets/travel-notes.json", '"proof": ["c', '"proof": ["x', "dialogId"),
}


@pytest.mark.parametrize(("file", "old", "new", "remedy"), EVIDENCE_MISTAKES.values(), ids=EVIDENCE_MISTAKES.keys())
@pytest.mark.parametrize("verb", ["eval", "validate"])
def test_evidence_that_no_question_has_is_an_error(
    command: Command, folder: Path, file: str, old: str, new: str, remedy: str, verb: str
) -> None:
    edit(folder / "benchmarks" / file, old, new)
    arguments = ("--benchmarks", "travel-notes", "--providers", "bm25", "--dry-run")
    said = command(verb, *(arguments if verb == "eval" else ("benchmarks/configs/travel-notes.yaml",)))
    assert said.code == 2
    assert "benchmarks/datasets/travel-notes.json" in said.err
    assert remedy in said.err.rpartition("; ")[2]
    if "field" not in old.lower():
        assert "travel-notes.json:11: people[0].quiz[0].proof" in said.err


def test_unknown_evidence_of_a_text_names_the_ids_of_its_turns(command: Command, folder: Path) -> None:
    file = folder / "benchmarks/datasets/handbook.jsonl"
    file.write_text(file.read_text("utf-8").replace('"s1:', '"p'), encoding="utf-8")
    said = command("validate", "benchmarks/configs/handbook.yaml")
    assert said.code == 2
    assert "s1:1 to s1:3" in said.err.rpartition("; ")[2]
    assert "dialogId" not in said.err


def test_the_first_unknown_evidence_id_is_named_before_anything_runs(command: Command, folder: Path) -> None:
    edit(folder / "benchmarks/datasets/travel-notes.json", '"proof": ["c2-1"]', '"proof": ["c9-9"]')
    arguments = ("eval", "--benchmarks", "travel-notes", "--providers", "bm25", "--dry-run")
    (quirks,) = command(*arguments, "--json").json["data_notes"].values()
    (quirk,) = [quirk for quirk in quirks if "c9-9" in quirk]
    assert "travel-notes.json:13: people[0].quiz[1].proof" in quirk
    assert "c9-9" in command(*arguments).out
    said = command("validate", "benchmarks/configs/travel-notes.yaml")
    assert said.code == 0
    assert "c9-9" in said.out


@pytest.mark.usefixtures("folder")
def test_validate_says_what_it_read(command: Command) -> None:
    assert "2 questions" in command("validate", "benchmarks/configs/diary.yaml").out


DATA_MISTAKES = {
    "a key in the documented spelling": (
        "configs/travel-notes.yaml",
        "    questionField: q\n",
        "",
        '"questionField" is missing',
    ),
    "items without ids": ("configs/diary.yaml", "itemId: id\n", "itemId: key\n", "schema.itemId"),
    "a misspelled question": ("configs/diary.yaml", "question: question", "question: qestion", "schema.question"),
    "a misspelled answer": ("configs/diary.yaml", "answer: answer", "answer: anser", "schema.answer"),
    "a list as a text": (
        "configs/diary.yaml",
        "field: $.sessions\n",
        "field: $.sessions\n    type: string\n",
        "schema.context.type: array",
    ),
    "another question": ("configs/travel-notes.yaml", "Field: q\n", "Field: qq\n", "schema.questions.questionField"),
}


@pytest.mark.parametrize(("file", "old", "new", "key"), DATA_MISTAKES.values(), ids=DATA_MISTAKES.keys())
def test_a_mistake_names_the_key_to_correct(
    command: Command, folder: Path, file: str, old: str, new: str, key: str
) -> None:
    edit(folder / "benchmarks" / file, old, new)
    said = command("eval", "--benchmarks", Path(file).stem, "--providers", "bm25", "--dry-run")
    assert said.code == 2
    assert key in said.err
    if "qestion" in new or "anser" in new:
        assert f'did you mean "{old.partition(":")[0]}"?' in said.err


def test_a_missing_data_file_names_every_place_that_was_tried(command: Command, folder: Path) -> None:
    (folder / "benchmarks/datasets/diary.jsonl").unlink()
    error = refused(memorybench.evaluate, benchmarks=["diary"], providers=["bm25"])
    for place in ("benchmarks/configs/datasets/diary.jsonl", "benchmarks/datasets/diary.jsonl", "datasets/diary.jsonl"):
        assert re.search(rf"(?<![\w/]){place}", error.expected)


def test_validate_names_every_place_that_was_tried(command: Command, folder: Path) -> None:
    (folder / "benchmarks/datasets/diary.jsonl").unlink()
    said = command("validate", "benchmarks/configs/diary.yaml")
    assert said.code == 0
    assert "benchmarks/configs/datasets/diary.jsonl or benchmarks/datasets/diary.jsonl" in said.out


def test_a_wrong_data_file_is_to_be_corrected_on_the_command_line(command: Command, folder: Path) -> None:
    error = refused(memorybench.evaluate, benchmarks=["diary"], providers=["bm25"], data_files={"diary": "nope.jsonl"})
    assert (error.where, error.remedy) == ("nope.jsonl", "correct --data-file")


def test_a_wrong_turns_field_is_named_with_the_field_that_was_meant(command: Command, folder: Path) -> None:
    config = folder / "benchmarks/configs/diary.yaml"
    config.write_text(config.read_text("utf-8").replace("turnsField: turns", "turnsField: turn"), encoding="utf-8")
    error = refused(memorybench.evaluate, benchmarks=["diary"], providers=["bm25"])
    assert error.remedy == 'did you mean "turns"? correct schema.context.turnsField'


def test_paths_relative_to_a_session_are_reported_with_the_paths_that_were_meant(
    command: Command, folder: Path
) -> None:
    config = folder / "benchmarks/configs/diary.yaml"
    config.write_text(config.read_text("utf-8").replace("$.sessions[*].", ""), encoding="utf-8")
    done = command("eval", "--benchmarks", "diary", "--providers", "bm25")
    assert done.code == 2
    for key, close in (("idField", "$.sessions[*].id"), ("dateField", "$.sessions[*].date")):
        assert f"schema.context.{key}" in done.err
        assert f"`{close}`" in done.err


def test_an_error_in_the_data_is_reported_before_anything_runs(command: Command, folder: Path) -> None:
    file = folder / "benchmarks/datasets/travel-notes.json"
    file.write_text(file.read_text("utf-8").replace("19.04.2024 18:40", "19 April"), encoding="utf-8")
    done = command("eval", "--benchmarks", "travel-notes", "--providers", "bm25")
    assert done.code == 2
    assert done.out == ""
    where = r"memorybench: benchmarks/datasets/travel-notes.json:7: people\[0\].log.chats\[1\].lines"
    assert re.fullmatch(rf'{where}: invalid date "19 April"; expected %d.%m.%Y %H:%M; .*schema.dateFormat\n', done.err)
    assert not (folder / "results").exists()


def test_a_benchmark_without_its_data_says_what_to_do(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORYBENCH_DATA", str(tmp_path / "cache"))
    done = command("eval", "--benchmarks", "locomo")
    assert done.code == 2
    assert "run `memorybench data pull locomo`, or download https://raw.githubusercontent.com/" in done.err
    assert f"and put it at {tmp_path}/cache/raw.githubusercontent.com/" in done.err


@pytest.mark.slow
def test_data_is_pulled_listed_and_verified(
    command: Command, folder: Path, stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = (folder / "benchmarks/datasets/travel-notes.json").read_bytes()
    stub.always(raw(content, content_type="application/json"))
    config = folder / "benchmarks/configs/travel-notes.yaml"
    remote = "type: huggingface\n  path: someone/notes/notes.json\n  licence: MIT"
    text = config.read_text("utf-8").replace("type: local\n  path: ./datasets/travel-notes.json", remote)
    config.write_text(text, encoding="utf-8")
    monkeypatch.setenv("MEMORYBENCH_DATA", str(folder / "cache"))
    monkeypatch.setenv("HF_ENDPOINT", stub.url)

    rows = command("data", "list", "--json").json
    before = next(row for row in rows if row["name"] == "travel-notes")
    assert (before["present"], before["pinned"], before["size"]) == (False, False, None)
    pulled = command("data", "pull", "travel-notes")
    assert pulled.code == 0, pulled.err
    assert pulled.out.startswith("travel-notes: licence MIT\n")
    assert "unpinned, recorded for later" in pulled.out
    assert [call.path for call in stub.calls] == ["/datasets/someone/notes/resolve/main/notes.json"]
    table = command("data", "list").out
    assert re.search(r"^travel-notes +present .*unpinned  MIT$", table, re.MULTILINE)
    assert re.search(r"^locomo +missing .*pinned    CC BY-NC 4.0", table, re.MULTILINE)

    assert command("data", "verify").code == 0
    file = folder / "cache/someone/notes/notes.json"
    file.write_bytes(content + b" ")
    changed = command("data", "verify")
    assert changed.code == 1
    assert "memorybench data pull travel-notes" in changed.out
    refused = command("eval", "--benchmarks", "travel-notes", "--providers", "bm25")
    assert refused.code == 2
    assert "SHA-256" in refused.err


@pytest.mark.usefixtures("folder")
def test_a_benchmark_without_remote_data_has_nothing_to_pull(command: Command) -> None:
    done = command("data", "pull", "travel-notes")
    assert done.code == 2
    assert 'benchmark "travel-notes"' in done.err
    assert command("data", "pull", "starter").code == 2


SESSIONS = [[{"role": "user", "content": "That is Ada."}]]
CARD = """\
name: parts
data: DATA
schema:
  itemId: id
  question: question
  answer: answer
  context:
    field: sessions
    itemSchema: {content: $.content, role: $.role}
evaluation: {method: contains}
"""


def write_parts(folder: Path, data: str) -> None:
    """Two files with one question each."""
    cards = folder / "benchmarks" / "configs"
    (folder / "parts").mkdir(parents=True)
    cards.mkdir(parents=True)
    (cards / "parts.yaml").write_text(CARD.replace("DATA", data), encoding="utf-8")
    for name in ("one", "two"):
        item = {"id": name, "question": f"Who is {name}?", "answer": "Ada", "sessions": SESSIONS}
        (folder / "parts" / f"{name}.jsonl").write_text(f"{json.dumps(item)}\n", encoding="utf-8")


def test_the_data_may_be_several_files(command: Command) -> None:
    write_parts(command.folder, "{type: local, path: ./parts, files: [two.jsonl, one.jsonl]}")
    for place, name in enumerate(("two", "one"), 1):
        chosen = ("--start", str(place), "--end", str(place), "--run-id", name)
        done = command("eval", "--benchmarks", "parts", "--providers", "bm25", *chosen)
        assert done.code == 0, done.err
        assert [outcome.trial.case_id for outcome in memorybench.load_run(name).outcomes()] == [name]


@pytest.mark.parametrize(
    "data",
    ["path: ./parts", "path: ./parts/*.jsonl", "path: ./, files: ['**/*.jsonl']", "path: ./parts, files: ['t*', 'o*']"],
)
def test_the_data_may_be_a_folder_or_globs(command: Command, data: str) -> None:
    write_parts(command.folder, f"{{type: local, {data}}}")
    done = command("eval", "--benchmarks", "parts", "--providers", "bm25", "--run-id", "all")
    assert done.code == 0, done.err
    assert {outcome.trial.case_id for outcome in memorybench.load_run("all").outcomes()} == {"one", "two"}


def test_a_folder_in_place_of_a_file_is_named(command: Command) -> None:
    write_parts(command.folder, "{type: local, path: ./, files: [parts]}")
    error = refused(memorybench.evaluate, benchmarks=["parts"], providers=["bm25"])
    assert Path(error.where).resolve() == (command.folder / "parts").resolve()
    assert "folder" in error.problem
    assert "parts/*" in error.remedy


SPEC = Path(__file__).parents[2] / "../shared/spec/memorybench.md"
LOCOMO = [
    {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ann",
            "speaker_b": "Bo",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [{"speaker": "Ann", "dia_id": "D1:1", "text": "I adopted a heron."}],
            "session_2_date_time": "1:56 pm on 9 May, 2023",
            "session_2": [{"speaker": "Bo", "dia_id": "D2:1", "text": "I sold the boat."}],
            "session_3_date_time": "1:56 pm on 10 May, 2023",
        },
        "qa": [
            {"question": "What did Ann adopt?", "answer": "a heron", "evidence": ["D1:1"], "category": 1},
            {"question": "Who sold the car?", "adversarial_answer": "Bo", "evidence": ["D2:1"], "category": 5},
        ],
    }
]


def test_the_locomo_example_of_the_spec_gives_recall_by_turns(command: Command) -> None:
    """Each error is one line that says what to write; after three of them the example runs."""
    if not SPEC.exists():
        pytest.skip("the spec is not next to this checkout (../shared/spec/memorybench.md)")
    section = SPEC.read_text("utf-8").partition("### Example: LoCoMo")[2]
    example = re.search(r"```yaml\n(.*?)```", section, re.DOTALL)
    assert example is not None
    data = command.folder / "benchmarks/datasets/locomo10.json"
    file = command.folder / "benchmarks/configs/locomo.yaml"
    data.parent.mkdir(parents=True)
    file.parent.mkdir(parents=True)
    data.write_text(json.dumps(LOCOMO, indent=1))
    text = example[1]
    for told, change in (
        ("write ${dialogue}", lambda text: re.sub(r"\$\{session\.map.*\}$", "${dialogue}", text, flags=re.MULTILINE)),
        ('schema.abstention.categories: ["5"]', lambda text: in_schema(text, 'abstention: {categories: ["5"]}')),
        ("set schema.evidenceLevel: turn", lambda text: in_schema(text, "evidenceLevel: turn")),
    ):
        file.write_text(text)
        done = command("validate", str(file))
        assert (done.code, len(done.err.splitlines())) == (2, 1)
        assert told in done.err
        text = change(text)
    file.write_text(text.replace("name: locomo", "name: my-locomo", 1))  # locomo is the bundled one
    done = command("eval", "--benchmarks", "my-locomo", "--providers", "bm25", "--json")
    assert done.code == 0, done.err
    overall = next(result for result in done.json["results"] if not result["group"])
    assert {measure["name"]: measure["value"] for measure in overall["measures"]}["recall@5"] == 1.0


def in_schema(text: str, line: str) -> str:
    return text.replace("schema:\n", f"schema:\n  {line}\n", 1)
