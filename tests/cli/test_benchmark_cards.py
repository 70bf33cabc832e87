"""The shipped cards of public benchmarks, on small files of the same shape that we wrote."""

import csv
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from memorybench.catalog import catalog as catalogue
from tests.cli.command import Command

BATCHES = [
    {
        "batch_number": 1,
        "turns": [
            [
                {
                    "role": "user",
                    "id": 0,
                    "time_anchor": "March-15-2024",
                    "content": "My first sprint ends on 29 March.",
                },
                {"role": "assistant", "id": 1, "content": "I will remember the sprint."},
            ],
            [
                {"role": "user", "id": 2, "content": "I never wrote a Flask route."},
                {"role": "assistant", "id": 3, "content": "Understood."},
            ],
        ],
    },
    {
        "batch_number": 2,
        "turns": [
            [
                {"role": "user", "id": 4, "time_anchor": "April-02-2024", "content": "My Flask homepage route works."},
                {"role": "assistant", "id": 5, "content": "Good."},
            ]
        ],
    },
]
PROBES: dict[str, list[dict[str, Any]]] = {
    "abstention": [
        {"question": "Who is my aunt?", "ideal_response": "There is no information.", "rubric": ["no information"]}
    ],
    "contradiction_resolution": [
        {
            "question": "Did I write Flask routes?",
            "ideal_answer": "You said both.",
            "source_chat_ids": {"first_statement": [2], "second_statement": [4]},
            "rubric": ["states a contradiction", "mentions never", "mentions the homepage", "asks which is right"],
        }
    ],
    "event_ordering": [
        {
            "question": "In which order?",
            "answer": "Sprint, then Flask.",
            "source_chat_ids": [0, 4],
            "rubric": ["a", "b"],
        }
    ],
    "instruction_following": [
        {"question": "Show it.", "expected_compliance": "With code.", "source_chat_ids": [2], "rubric": ["has code"]}
    ],
    "summarization": [
        {"question": "Sum it up.", "ideal_summary": "Sprint and Flask.", "source_chat_ids": [0, 2, 4], "rubric": ["x"]}
    ],
}


def write_beam(folder: Path) -> Path:
    for name in ("1", "2"):
        chat = folder / name
        (chat / "probing_questions").mkdir(parents=True)
        (chat / "chat.json").write_text(json.dumps(BATCHES), encoding="utf-8")
        (chat / "probing_questions/probing_questions.json").write_text(json.dumps(PROBES), encoding="utf-8")
    (folder / "2/chat_trunecated.json").write_text(json.dumps(BATCHES[:1]), encoding="utf-8")
    return folder


def cases_of(command: Command, run: str, ids: list[str]) -> dict[str, Mapping[str, Any]]:
    return {id: command("show", run, id, "--json").json["case"] for id in ids}


def test_beam_has_rubrics_abilities_and_evidence(command: Command) -> None:
    folder = write_beam(command.folder / "100K")
    run = ("eval", "--benchmarks", "beam", "--data-file", f"beam={folder}", "--providers", "bm25", "--run-id", "r")
    models = ("--answering-model", "scripted/quote", "--judge-model", "scripted/judge", "--canaries", "off")
    document = command(*run, *models, "--json").json
    assert document["counts"]["scored"] == 10
    kinds = {one["group"]["question_type"] for one in document["results"] if "question_type" in one["group"]}
    assert kinds == set(PROBES)
    (overall,) = (one for one in document["results"] if not one["group"])
    measures = {one["name"]: one for one in overall["measures"]}
    assert measures["rubric_score"]["n"] == 10
    assert measures["accuracy"]["n"] == 0
    rows = json.loads(command("export", "r", "--format", "json").out)
    gold = {(row["question_type"], row["cluster"]): row for row in rows}
    (first,) = {cluster for _, cluster in gold if "1/" in cluster}
    (second,) = {cluster for _, cluster in gold if "2/" in cluster}
    assert gold["contradiction_resolution", first]["gold_turns"] == ["2", "4"]
    assert gold["contradiction_resolution", second]["gold_turns"] == ["2"], "the shortened chat ends before turn 4"
    assert gold["contradiction_resolution", first]["rubric_items"] == PROBES["contradiction_resolution"][0]["rubric"]
    assert gold["abstention", first]["gold_turns"] == []


COLUMNS = (
    "persona_id",
    "question_id",
    "question_type",
    "topic",
    "user_question_or_message",
    "correct_answer",
    "all_options",
    "shared_context_id",
    "end_index_in_shared_context",
)


def write_persona(folder: Path) -> Path:
    folder.mkdir()
    histories = {
        "h1": [{"role": "user", "content": "I like jazz."}, {"role": "user", "content": "Now I prefer folk music."}],
        "h2": [{"role": "user", "content": "I like chess."}],
    }
    lines = "".join(json.dumps({name: turns}) + "\n" for name, turns in histories.items())
    (folder / "shared_contexts_32k.jsonl").write_text(lines, encoding="utf-8")
    options = str(["(a) Try a folk concert, it's near.", '(b) Try "jazz"', "(c) Opera", "(d) Stay at home"])
    with (folder / "questions_32k.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(COLUMNS)
        rows.writerow(["0", "q1", "track", "music", "What tonight?", "(b)", options, "h1", 1])
        rows.writerow(["0", "q2", "track", "music", "What tonight?", "(a)", options, "h1", 2])
        rows.writerow(["1", "q3", "track", "games", "What tonight?", "(d)", options, "h2", 1])
    return folder


def test_personamem_reads_choices_and_shared_histories(command: Command) -> None:
    folder = write_persona(command.folder / "persona")
    run = ("eval", "--benchmarks", "personamem", "--data-file", f"personamem={folder}", "--run-id", "r", "--json")
    document = command(*run, "--providers", "none", "full-context", "--answering-model", "scripted/silence").json
    assert document["counts"]["scored"] == 6
    shown = cases_of(command, "r", ["q1", "q2", "q3"])
    assert [case["answers"][0][:3] for case in shown.values()] == ["(b)", "(a)", "(d)"]
    assert shown["q1"]["choices"][1] == ["b", 'Try "jazz"']
    contexts = {
        row["item"]: row["context_tokens"]
        for row in json.loads(command("export", "r", "--format", "json").out)
        if row["provider"] == "full-context"
    }
    assert contexts["q1"] < contexts["q2"], "the first question is asked before the second message"


def test_state_tracking_reads_files_at_both_levels(command: Command) -> None:
    folder = command.folder / "states"
    (folder / "machine").mkdir(parents=True)
    for file, place in ((folder / "a.json", "Lisbon"), (folder / "machine/b.json", "Porto")):
        case = {
            "case_id": file.stem,
            "sessions": [{"session_id": "s", "messages": [{"role": "user", "content": f"I live in {place}."}]}],
            "queries": [{"question": "Where do I live?", "reference_answer": {"text": place}}],
        }
        file.write_text(json.dumps(case), encoding="utf-8")
    name = "structmemeval-states"
    run = ("eval", "--benchmarks", name, "--data-file", f"{name}={folder}", "--providers", "bm25", "--json")
    assert command(*run, "--run-id", "r").json["counts"]["scored"] == 2
    rows = json.loads(command("export", "r", "--format", "json").out)
    assert {row["expected"] for row in rows} == {"Lisbon", "Porto"}


def belief(id: str, **fields: Any) -> dict[str, Any]:
    return {
        "_id": id,
        "user_id": "test-user",
        "type": "entity",
        "canonical_name": id,
        "aliases": [],
        "content": f"Something about {id}.",
        "why_it_matters": "It shapes plans.",
        "scope": ["domain:code"],
        "pinned": False,
        "created_at": "2026-09-01T00:00:00Z",
    } | fields


def test_precisionmembench_asks_for_beliefs_without_answers(command: Command) -> None:
    folder = command.folder / "fixtures"
    folder.mkdir()
    beliefs = [
        belief("rust", aliases=["borrow checker"], content="Writes services in Rust."),
        belief("pinned", pinned=True),
        belief("open", pinned=True, type="open_question"),
        belief("stranger", user_id="other-user"),
        belief("kafka", aliases=["queue", "stream"], content="Events go through Kafka."),
    ]
    (folder / "beliefs.seed.json").write_text(json.dumps(beliefs), encoding="utf-8")
    cases = [
        {
            "caseId": "c1",
            "query": "borrow checker trouble",
            "expect": {"relevantBeliefs": {"shouldOnlyInclude": ["rust"]}},
        },
        {"caseId": "c2", "query": "queue", "expect": {"relevantBeliefs": {"shouldOnlyInclude": ["kafka", "rust"]}}},
        {"caseId": "c3", "query": "", "expect": {"relevantBeliefs": {"shouldOnlyInclude": []}}},
        {"caseId": "c4", "query": "who am I?", "expect": {"personaPrelude": {"nonEmpty": True}}},
    ]
    rows = [{"category": "Alias resolution", "scope": ["domain:code"], **case} for case in cases]
    (folder / "retrieval.cases.json").write_text(json.dumps(rows), encoding="utf-8")
    name = "precisionmembench"
    run = ("eval", "--benchmarks", name, "--data-file", f"{name}={folder}", "--providers", "bm25", "--json")
    assert command(*run, "--run-id", "r").json["counts"]["scored"] == 2
    gold = {row["item"]: row["gold_sessions"] for row in json.loads(command("export", "r", "--format", "json").out)}
    assert gold == {"c1": ["s1"], "c2": ["s3", "s1"]}, "the pinned fact and the other user's are not in the history"
    assert cases_of(command, "r", ["c1"])["c1"]["forbidden"] == ["s2", "s3"]


def said(*texts: str) -> dict[str, Any]:
    speakers = ("User", "Assistant")
    return {"id": "c", "messages": [{"speaker": speakers[n % 2], "text": text} for n, text in enumerate(texts)]}


FACT = {
    "question": "How many kids do I have?",
    "answer": "Three.",
    "message_evidences": [{"speaker": "User", "text": "I have three kids -- Emma, Josh and Lily!"}],
    "conversations": [said("Hello.", "Hi there."), said("I have three kids – Emma, Josh, and Lily.", "How nice.")],
    "category": "Family",
    "personId": "p1",
}
UNKNOWN = {
    "question": "What is John's number?",
    "answer": "That was not mentioned.",
    "message_evidences": [{"speaker": "User", "text": "John leads the project"}],
    "conversations": [said("By the way, John leads the project now.", "Noted.")],
    "category": "Work",
    "personId": "p2",
}


def test_convomem_finds_evidence_by_its_text(command: Command) -> None:
    folder = command.folder / "evidence_questions"
    fact = FACT | {"message_evidences": [{"speaker": "User", "text": "I have three kids, Emma, Josh, and Lily"}]}
    lost = FACT | {"question": "Who?", "message_evidences": [{"speaker": "User", "text": "Nobody said this."}]}
    for place, items in {"user_evidence/1_evidence": [fact, lost], "abstention_evidence/2_evidence": [UNKNOWN]}.items():
        (folder / place).mkdir(parents=True)
        (folder / place / "p_Nurse.json").write_text(json.dumps({"evidence_items": items}), encoding="utf-8")
    run = (
        "eval",
        "--benchmarks",
        "convomem",
        "--data-file",
        f"convomem={folder}",
        "--providers",
        "bm25",
        "--run-id",
        "r",
    )
    document = command(*run, "--json").json
    assert document["counts"]["scored"] == 3
    rows = {row["question"]: row for row in json.loads(command("export", "r", "--format", "json").out)}
    assert {text: (row["question_type"], row["gold_turns"]) for text, row in rows.items()} == {
        FACT["question"]: ("user facts", ["s2:1"]),
        "Who?": ("user facts", []),
        UNKNOWN["question"]: ("abstention", ["s1:1"]),
    }
    id = rows[UNKNOWN["question"]]["item"]
    assert cases_of(command, "r", [id])[id]["abstain"]
    assert rows[FACT["question"]]["cluster"] == "p1"


def test_convomem_mixed_shares_a_history(command: Command) -> None:
    folder = command.folder / "pre_mixed_testcases"
    (folder / "user_evidence/1_evidence").mkdir(parents=True)
    case = {
        "evidenceItems": [FACT | {"message_evidences": [{"speaker": "User", "text": "Emma, Josh, and Lily"}]}, UNKNOWN],
        "conversations": [*FACT["conversations"], said("It rains.", "Yes."), *UNKNOWN["conversations"]],
        "contextSize": 4,
    }
    (folder / "user_evidence/1_evidence/batched_000.json").write_text(json.dumps([case]), encoding="utf-8")
    name = "convomem-mixed"
    run = ("eval", "--benchmarks", name, "--data-file", f"{name}={folder}", "--providers", "bm25", "--run-id", "r")
    assert command(*run, "--json").json["counts"]["scored"] == 2
    rows = json.loads(command("export", "r", "--format", "json").out)
    assert [row["gold_turns"] for row in rows] == [["s2:1"], ["s4:1"]]
    shown = cases_of(command, "r", [row["item"] for row in rows])
    assert {case["labels"]["conversations"] for case in shown.values()} == {"4"}


@pytest.mark.parametrize("name", ["memoryagentbench-conflict", "memoryagentbench-retrieval"])
def test_memoryagentbench_reads_columns_of_questions(command: Command, name: str) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = [
        {
            "context": "Here is a list of facts:\n0. Ida lives in Oslo.\n1. Ida lives in Bergen.",
            "questions": ["Where does Ida live?", "Who lives in Bergen?"],
            "answers": [["Bergen", "Bergen, Norway"], ["Ida"]],
            "metadata": {"source": f"set_{n}", "qa_pair_ids": [f"set_{n}_no0", f"set_{n}_no1"], "question_dates": None},
        }
        for n in range(2)
    ]
    file = command.folder / "split.parquet"
    parquet.write_table(pyarrow.Table.from_pylist(rows), file)
    run = ("eval", "--benchmarks", name, "--data-file", f"{name}={file}", "--providers", "bm25", "--run-id", "r")
    assert command(*run, "--json").json["counts"]["scored"] == 4
    exported = {row["item"]: row for row in json.loads(command("export", "r", "--format", "json").out)}
    id = "set_{}_no{}" if name.endswith("conflict") else "{}:q{}"
    first = 0 if name.endswith("conflict") else 1
    assert exported.keys() == {id.format(n + first, q) for n in range(2) for q in range(2)}
    row = exported[id.format(1 + first, 0)]
    assert (row["expected"], row["question_type"]) == ("Bergen | Bergen, Norway", "set_1")


def halu_session(day: int, text: str, **more: Any) -> dict[str, Any]:
    at = f"Dec {day:02}, 2025, 08:00:00"
    turn = {"role": "user", "content": text, "timestamp": at, "dialogue_turn": 0}
    return {"start_time": at, "end_time": at, "dialogue": [turn], "dialogue_turn_num": 1, **more}


def halu_question(text: str, answer: str, kind: str) -> dict[str, Any]:
    proof = [{"memory_content": "Ida moved.", "memory_type": "Event Memory"}]
    return {"question": text, "answer": answer, "evidence": proof, "difficulty": "easy", "question_type": kind}


@pytest.mark.parametrize("name", ["halumem", "halumem-long"])
def test_halumem_asks_after_each_session(command: Command, name: str) -> None:
    sessions = [
        halu_session(
            1, "I live in Oslo.", memory_points=[], questions=[halu_question("Where?", "Oslo.", "Basic Fact Recall")]
        ),
        halu_session(2, "Tell me about primes.", is_generated_qa_session=True, questions=[]),
        halu_session(3, "Nothing new.", memory_points=[]),
        halu_session(
            4, "I moved to Bergen.", memory_points=[], questions=[halu_question("Where?", "Bergen.", "Dynamic Update")]
        ),
    ]
    users = [{"uuid": id, "persona_info": "Name: Ida; Gender: f", "sessions": sessions} for id in ("u1", "u2")]
    file = command.folder / "HaluMem.jsonl"
    file.write_text("".join(json.dumps(user) + "\n" for user in users), encoding="utf-8")
    run = ("eval", "--benchmarks", name, "--data-file", f"{name}={file}", "--run-id", "r", "--json")
    document = command(*run, "--providers", "bm25", "full-context", "--answering-model", "scripted/silence").json
    assert document["counts"]["scored"] == 8
    shown = cases_of(command, "r", ["u1:q0", "u1:q1", "u2:q1"])
    assert [(case["asked_after"], case["shared_history"]) for case in shown.values()] == [
        (1, "u1"),
        (4, "u1"),
        (4, "u2"),
    ]
    rows = json.loads(command("export", "r", "--format", "json").out)
    full = {row["item"]: row for row in rows if row["provider"] == "full-context"}
    assert full["u1:q0"]["context_tokens"] < full["u1:q1"]["context_tokens"]
    assert (full["u1:q1"]["question_type"], full["u1:q1"]["expected"]) == ("Dynamic Update", "Bergen.")


def test_longmemeval_v2_joins_visits_and_leaves_out_pictures(command: Command) -> None:
    folder = command.folder / "lme"
    (folder / "haystacks").mkdir(parents=True)
    state = {"state_index": 0, "step": 0, "url": "shop/cart", "screenshot": "screenshots/t1/0.png"}
    visits = [
        {"id": "t1", "domain": "web", "goal": "Buy tea", "states": [
            state | {"action": "click('12')", "thought": "The cart is full.", "accessibility_tree": "button Checkout"},
            state | {"action": None, "thought": None, "accessibility_tree": "heading Paid"},
        ]},
        {"id": "t2", "domain": "web", "goal": "Return tea", "states": [
            state | {"action": "wait", "thought": "Slow.", "accessibility_tree": "link Returns"},
        ]},
        {"id": "t3", "domain": "enterprise", "goal": "Unused", "states": [state | {"accessibility_tree": "x"}]},
    ]  # fmt: skip
    questions = [
        {"id": "q1", "question_type": "static-environment", "question": "Which button pays?", "answer": "Checkout"},
        {"id": "q2", "question_type": "procedure-abs", "question": "Where is the fax?", "answer": "There is none."},
        {"id": "q3", "question_type": "procedure", "question": "What is shown?", "answer": "x", "image": "q3.png"},
    ]
    rows = [{"domain": "web", "eval_function": "norm_phrase_set_match", "image": None, **one} for one in questions]
    for file, lines in {"trajectories.jsonl": visits, "questions.jsonl": rows}.items():
        (folder / file).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    lists = {one["id"]: ["t2", "t1"] for one in questions}
    (folder / "haystacks/lme_v2_small.json").write_text(json.dumps(lists), encoding="utf-8")
    name = "longmemeval-v2"
    run = ("eval", "--benchmarks", name, "--data-file", f"{name}={folder}", "--run-id", "r", "--json")
    document = command(*run, "--providers", "full-context", "--answering-model", "scripted/silence").json
    assert document["counts"]["scored"] == 2
    shown = cases_of(command, "r", ["q1", "q2"])
    assert [case["abstain"] for case in shown.values()] == [False, True]
    assert len({case["haystack"] for case in shown.values()}) == 1, "one memory for both"
    (trial,) = command("show", "r", "q1", "--json", "--full").json["trials"]
    prompt = next(step["inputs"]["prompt"] for step in trial["steps"] if step["name"] == "answer")
    texts = ("Return tea", "link Returns", "Buy tea", "The cart is full.", "heading Paid")
    places = [prompt.find(text) for text in texts]
    assert places == sorted(places)
    assert min(places) >= 0


def write_locomo_plus(folder: Path) -> Path:
    folder.mkdir()

    def conversation(id: str, a: str, b: str) -> dict[str, Any]:
        said = [{"speaker": a, "dia_id": "D1:1", "text": "Hello."}, {"speaker": b, "dia_id": "D1:2", "text": "Hi."}]
        dates = ("1:00 pm on 1 March, 2023", "2:00 pm on 1 May, 2023", "3:00 pm on 1 June, 2023")
        sessions = {f"session_{n}": said for n in (1, 2, 3)}
        days = {f"session_{n}_date_time": date for n, date in enumerate(dates, 1)}
        return {"sample_id": id, "conversation": {"speaker_a": a, "speaker_b": b, **sessions, **days}}

    def cue(text: str, gap: str, kind: str = "causal") -> dict[str, Any]:
        return {"relation_type": kind, "cue_dialogue": text, "trigger_query": "A: It rains again.", "time_gap": gap}

    cues = [
        cue("A: Rain makes me sad.\nB: I know.", "two weeks later"),
        cue("B: I lost my umbrella.", "about one month later", "state"),
        cue("A: I love rain.", "several months later"),
        cue("A: I moved here from the desert.", "a year after", "value"),
    ]
    (folder / "locomo_plus.json").write_text(json.dumps(cues, indent=1), encoding="utf-8")
    both = [conversation("c1", "Ida", "Jo"), conversation("c2", "Kim", "Lou")]
    (folder / "locomo10.json").write_text(json.dumps(both, indent=1), encoding="utf-8")
    return folder


def test_locomo_plus_inserts_each_cue_at_its_time(command: Command) -> None:
    folder, name = write_locomo_plus(command.folder / "plus"), "locomo-plus"
    run = ("eval", "--benchmarks", name, "--data-file", f"{name}={folder}", "--providers", "bm25", "--run-id", "r")
    document = command(
        *run, "--answering-model", "scripted/quote", "--judge-model", "scripted/judge", "--canaries", "off", "--json"
    ).json
    assert document["counts"]["scored"] == 4
    (overall,) = (one for one in document["results"] if not one["group"])
    assert {one["name"]: one["n"] for one in overall["measures"]}["rubric_met"] == 4
    rows = {row["item"]: row for row in json.loads(command("export", "r", "--format", "json").out)}
    # asked on 8 June: two weeks before is 25 May, a month 9 May; several is no number, and a year is before all
    assert [rows[f"cue-{n}"]["gold_sessions"] for n in (1, 2, 3, 4)] == [["s3"], ["s3"], ["s4"], ["s1"]]
    assert rows["cue-1"]["gold_turns"] == ["s3:1", "s3:2"]
    assert [rows[f"cue-{n}"]["question"] for n in (1, 2)] == ["Ida: It rains again.", "Kim: It rains again."]
    assert [rows[f"cue-{n}"]["cluster"] for n in (1, 2, 3, 4)] == ["c1", "c2", "c1", "c2"]
    (requirement,) = rows["cue-2"]["rubric_items"]
    assert requirement.endswith("\nLou: I lost my umbrella.")


def test_locomo_plus_is_previewed(command: Command) -> None:
    write_locomo_plus(command.folder / "benchmarks").rename(command.folder / "data")
    place = command.folder / "benchmarks/datasets/Locomo-Plus"
    place.mkdir(parents=True)
    (command.folder / "data").rename(place / "data")
    counts = command("data", "preview", "locomo-plus", "--json").json["counts"]
    assert {name: counts[name] for name in ("questions", "histories", "sessions", "turns")} == {
        "questions": 4,
        "histories": 4,
        "sessions": 16,
        "turns": 29,
    }


@pytest.mark.parametrize(
    ("file", "old", "new", "expected"),
    [
        ("locomo_plus.json", "A: Rain makes", "C: Rain makes", "locomo_plus.json:4"),
        ("locomo_plus.json", '"time_gap": "a year after"', '"gap": ""', "time_gap"),
        ("locomo10.json", '"session_2_date_time"', '"session_2_date"', "session_2_date_time"),
        ("locomo10.json", "1:00 pm on 1 March, 2023", "in spring", "locomo10.json"),
        ("locomo10.json", '"speaker_b": "Jo"', '"speaker_b": 1', "speaker_b"),
    ],
)
def test_a_mistake_in_locomo_plus_is_located(command: Command, file: str, old: str, new: str, expected: str) -> None:
    folder, name = write_locomo_plus(command.folder / "plus"), "locomo-plus"
    text = (folder / file).read_text("utf-8")
    assert old in text
    (folder / file).write_text(text.replace(old, new, 1), encoding="utf-8")
    done = command("eval", "--benchmarks", name, "--data-file", f"{name}={folder}", "--providers", "bm25")
    assert done.code == 2
    assert expected in done.err
    assert len(done.err.strip().splitlines()) == 1


def test_persistbench_has_requirements_by_type(command: Command) -> None:
    kinds = ("cross_domain", "sycophancy", "beneficial_memory_usage")
    rows = [
        {
            "query": f"Help me ({kind})",
            "memories": ["User eats no nuts.", "User sings."],
            "memory_domain": "food",
            "query_domain": "work",
            "failure_type": kind,
        }
        for kind in kinds
    ]
    (command.folder / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    card = Path(catalogue.__file__).parent / "benchmarks/persistbench.yaml"
    unpinned = re.sub(r"\n  (sha256|size):.*", "", card.read_text("utf-8")).replace(
        "name: persistbench", "name: copy", 1
    )
    (command.folder / "configs").mkdir()
    (command.folder / "configs/copy.yaml").write_text(unpinned, encoding="utf-8")
    run = ("eval", "--benchmarks", "copy", "--data-file", "copy=samples.jsonl", "--config-dir", "configs")
    models = ("--answering-model", "scripted/quote", "--judge-model", "scripted/judge", "--canaries", "off")
    document = command(*run, *models, "--providers", "bm25", "--run-id", "r", "--json").json
    assert document["counts"]["scored"] == 3
    (overall,) = (one for one in document["results"] if not one["group"])
    assert {one["name"]: one["n"] for one in overall["measures"]}["rubric_met"] == 3
    exported = json.loads(command("export", "r", "--format", "json").out)
    assert [row["question_type"] for row in exported] == list(kinds)
    items = [row["rubric_items"] for row in exported]
    assert [len(one) for one in items] == [1, 1, 1]
    assert all(one[0].endswith("\n- User eats no nuts.\n- User sings.") for one in items)
    assert len({one[0] for one in items}) == 3


def test_persistbench_refuses_another_file(command: Command) -> None:
    (command.folder / "samples.jsonl").write_text('{"query": "x", "memories": ["y"]}\n', encoding="utf-8")
    run = ("eval", "--benchmarks", "persistbench", "--data-file", "persistbench=samples.jsonl", "--providers", "bm25")
    done = command(*run)
    assert (done.code, "SHA-256" in done.err) == (2, True)


CARDS = [
    "beam",
    "convomem",
    "convomem-mixed",
    "halumem",
    "halumem-long",
    "locomo-plus",
    "longmemeval-v2",
    "memoryagentbench-conflict",
    "memoryagentbench-retrieval",
    "persistbench",
    "personamem",
    "precisionmembench",
    "structmemeval-states",
]


@pytest.mark.parametrize("name", CARDS)
def test_cards_say_what_they_were_checked_against(command: Command, name: str) -> None:
    document = command("describe", name, "--json").json
    assert "commit" in document["checked against"]
    assert "Not " in document["checked against"], "and what was not"
    assert document["licence"]
    assert document["prompts"]["answer prompt"] or document["scored by"] == "retrieval"
    assert "missing" in document["questions"], "data is never shipped"


@pytest.mark.parametrize(
    ("name", "judge"), [("longmemeval", "the paper"), ("locomo", "this config"), ("beam", "memorybench")]
)
def test_cards_name_the_source_of_their_prompts(command: Command, name: str, judge: str) -> None:
    assert f"judge: {judge}" in command("describe", name, "--json").json["prompts from"]


def test_placebo_is_never_of_the_same_person(command: Command) -> None:
    folder = write_persona(command.folder / "persona")
    run = ("eval", "--benchmarks", "personamem", "--data-file", f"personamem={folder}", "--run-id", "r")
    command(*run, "--providers", "placebo", "--answering-model", "scripted/silence")
    for id, other in {"q1": "chess", "q2": "chess", "q3": "jazz"}.items():
        (trial,) = command("show", "r", id, "--json", "--full").json["trials"]
        prompt = next(step["inputs"]["prompt"] for step in trial["steps"] if step["name"] == "answer")
        assert f"I like {other}." in prompt
