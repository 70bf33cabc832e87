from __future__ import annotations

from pathlib import Path

import pytest

from memorybench.core.errors import BadInput
from memorybench.datasets.config_reading import read_benchmark
from memorybench.datasets.prompts import answer_prompt, judge_prompt
from memorybench.files.located import Document
from memorybench.files.yaml_file import load_yaml, parse_yaml
from memorybench.metrics.names import ALIASES, METRIC_NAMES, known_metrics
from memorybench.suites.bench.measures import run_metrics
from tests.doubles.refusals import refused

SAMPLE = """\
name: sample
data: {type: local, path: ./sample.json}
schema:
  itemId: id
  question: query
  answer: $.gold.text | $.gold
  context:
    field: sessions
    dateField: dates
    itemSchema: {content: $.content, role: $.role}
questionTypes:
  - name: temporal-reasoning
    evaluationPrompt: temporal
    allowOffByOne: true
ingestion:
  preprocessing:
    removeFields: [has_answer]
    formatTemplate: "${date} ${dialogue}"
evaluation:
  method: llm-judge
  answerPrompt:
    default: "${retrievedContext} ${question}"
  judgePrompts:
    default: Say yes or no.
    byQuestionType:
      temporal-reasoning: "Is ${response} right? ${answer}"
metrics: [accuracy, recall_at_5]
"""


def document(text: str) -> Document:
    return parse_yaml(text, "sample.yaml")


def refusal(text: str) -> str:
    with pytest.raises(BadInput) as caught:
        read_benchmark(document(text), metrics=known_metrics())
    line = str(caught.value)
    assert "\n" not in line
    assert line.startswith("sample.yaml:")
    return line


def test_a_benchmark_is_data_a_mapping_and_a_way_to_score() -> None:
    config = read_benchmark(document(SAMPLE))
    assert config.mapping is not None
    assert config.mapping.context.type == "array"
    assert config.search.default_limit == 10
    assert config.evaluation.answer_prompt.user_override
    assert config.question_types[0].allow_off_by_one


def test_many_questions_on_one_conversation() -> None:
    nested = SAMPLE.replace(
        "  question: query\n  answer: $.gold.text | $.gold\n",
        "  questions: {field: qa, questionField: question, answerField: answer, categoryField: category}\n",
    ).replace(
        "    field: sessions\n    dateField: dates\n",
        "    field: talk\n    type: object\n    sessionPattern: session_*\n",
    )
    config = read_benchmark(document(nested + 'categories: {1: multi-hop, 2: "temporal"}\n'))
    assert config.categories == {"1": "multi-hop", "2": "temporal"}
    assert config.mapping is not None
    assert config.mapping.questions is not None


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("name: sample", "name: My/Bench", "is not a valid name"),
        ("itemId:", "itemID:", 'did you mean "itemId"?'),
        ("itemId: id", "itemId: '$.['", "sample.yaml:4: schema.itemId"),
        ("role: $.role", "role: '$.a[b'", "is not a valid JSONPath"),
        ("  question: query\n", "", '"question" is missing'),
        (
            "  answer: $",
            "  questions: {field: q, questionField: q, answerField: a}\n  answer: $",
            "sample.yaml:6: schema.questions",
        ),
        ("dateField: dates", "sessionPattern: session_*", "schema.context.sessionPattern"),
        ("field: sessions", "field: sessions\n    type: object", '"sessionPattern" is missing'),
        (
            "field: sessions",
            "field: sessions\n    type: object\n    sessionPattern: session",
            "schema.context.sessionPattern",
        ),
        ("content: $.content", "content: $.content, text: $.text", "schema.context.itemSchema.text"),
        ("type: local", "type: url", "data.path"),
        ("./sample.json", "file:///etc/passwd", "data.path"),
        ("type: local, path: ./sample.json", "type: huggingface, path: LoCoMo", "owner/name"),
        ("type: local, path: ./sample.json", "type: bundled, path: startr", 'did you mean "starter"?'),
        ("type: local, path: ./sample.json", "type: bundled, path: starter", "sample.yaml:3: schema"),
        ("./sample.json}", "./sample.json, sha256: abc}", "data.sha256"),
        ("./sample.json}", "./sample.json, license: MIT}", 'did you mean "licence"?'),
        ("./sample.json}", "./sample.json, items: '$.data[*'}", "data.items"),
        ("./sample.json}", "./sample.json, files: [a, ../b]}", "data.files"),
        ("itemId: id", "itemId: id\n  dateFormat: '%d %Q'", "sample.yaml:5: schema.dateFormat"),
        ("role: $.role", "role: $.role, evidence: '$..gold'", "schema.context.itemSchema.evidence"),
        ("questionTypes:", "needles: {}\nquestionTypes:", "data.files"),
        ("evaluationPrompt: temporal", "evaluationPrompt: temporl", 'did you mean "temporal"?'),
        ("${date} ${dialogue}", "${JSON.stringify(session)}", "write ${session}"),
        ("${date} ${dialogue}", "${session.map(turn => turn.text)}", "write ${dialogue}"),
        ("${date} ${dialogue}", "${dialog}", 'did you mean "dialogue"?'),
        ("${retrievedContext} ${question}", "${retrievedContext}", "add ${question} to the prompt"),
        ("${retrievedContext} ${question}", "${context} ${question}", 'unknown variable "context"'),
        ("${retrievedContext} ${question}", "${question} ${answer}", 'unknown variable "answer"'),
        ("${retrievedContext} ${question}", "${question} ${OPENAI_API_KEY}", 'unknown variable "OPENAI_API_KEY"'),
        ("${retrievedContext} ${question}", "  ", "the prompt is empty"),
        ("Is ${response} right? ${answer}", "Is it ${answer}?", "add ${response} to the prompt"),
        ("Is ${response} right? ${answer}", "${respons}", 'did you mean "response"?'),
        ("      temporal-reasoning:", "      temporal-reasonin:", 'did you mean "temporal-reasoning"?'),
        ("recall_at_5", "recal_at_5", "sample.yaml:27: metrics[1]"),
        ("recall_at_5", "recal_at_5", 'did you mean "recall_at_5"?'),
        ("method: llm-judge", "method: llm_judge", 'did you mean "llm-judge"?'),
        ("method: llm-judge", "method: custom", '"customEvaluator" is missing'),
        ("method: llm-judge", "method: custom\n  customEvaluator: ./e/mine.ts", "expected ./e/mine.py:evaluate"),
        ("method: llm-judge", "method: custom\n  customEvaluator: ./e/mine.py", "expected ./file.py:function"),
    ],
)
def test_errors_are_one_line_with_their_place(old: str, new: str, complaint: str) -> None:
    assert old in SAMPLE
    assert complaint in refusal(SAMPLE.replace(old, new))


def test_a_question_type_is_listed_once() -> None:
    assert "questionTypes[1].name" in refusal(
        SAMPLE.replace("ingestion:", "  - name: temporal-reasoning\ningestion:", 1)
    )


def test_the_schema_is_required_unless_a_plug_in_reads_the_data() -> None:
    without = SAMPLE[: SAMPLE.index("schema:")] + SAMPLE[SAMPLE.index("questionTypes:") :]
    assert '"schema" is missing' in refusal(without)
    read_benchmark(document(without.replace("type: local, path: ./sample.json", "type: plugin, path: theirs")))


def test_only_data_reads_the_environment() -> None:
    text = SAMPLE.replace("./sample.json", '"${DATA}/sample.json"')
    assert read_benchmark(document(text)).data.path == "${DATA}/sample.json"
    assert read_benchmark(document(text), {"DATA": "/data"}).data.path == "/data/sample.json"
    assert refused(read_benchmark, document(text), {}).where == "sample.yaml:2: data.path"


def test_metrics_of_plug_ins_are_known() -> None:
    text = SAMPLE.replace("recall_at_5", "novelty")
    assert "metrics[1]" in refusal(text) or "metrics.1" in refusal(text)
    read_benchmark(document(text), metrics=known_metrics(["novelty"]))
    read_benchmark(document(text.replace("novelty", "novelty@5")), metrics=known_metrics(["novelty"]))


def test_names_of_the_older_specification_are_aliases() -> None:
    assert ALIASES["recall_at_5"] == "recall@5"
    assert ALIASES["turn_recall_at_10"] == "turn_recall@10"
    assert ALIASES["accuracy_by_category"] == "accuracy"


def test_a_config_may_list_every_measure_of_the_bench_suite() -> None:
    names = {metric.name for metric in run_metrics({"answered": True, "evidence": {"a": "session", "b": "turn"}})}
    assert names <= METRIC_NAMES
    assert set(ALIASES.values()) <= METRIC_NAMES


def test_a_judge_prompt_may_do_without_variables() -> None:
    assert judge_prompt("Say yes or no.", "here").names == frozenset()
    assert answer_prompt("${question}", "here").names == {"question"}


def test_a_config_inherits_missing_keys_from_the_one_it_extends(tmp_path: Path) -> None:
    (tmp_path / "sample.yaml").write_text(SAMPLE, encoding="utf-8")
    variant = tmp_path / "variant.yaml"
    text = "name: variant\nextends: sample\ndata: {path: ./other.json}\nmetrics: [mrr]\n"
    variant.write_text(text, encoding="utf-8")
    config, base = read_benchmark(load_yaml(variant)), read_benchmark(document(SAMPLE))
    assert (config.name, config.data.type, config.data.path) == ("variant", "local", "./other.json")
    assert config.metrics == ("mrr",)
    assert config.mapping == base.mapping
    assert config.evaluation == base.evaluation


@pytest.mark.parametrize(
    "extends",
    [
        pytest.param("nothing", id="a missing file"),
        pytest.param("../sample", id="an invalid name"),
        pytest.param("variant", id="a config that extends another"),
    ],
)
def test_configs_that_cannot_be_extended(tmp_path: Path, extends: str) -> None:
    (tmp_path / "sample.yaml").write_text(SAMPLE, encoding="utf-8")
    variant = tmp_path / "variant.yaml"
    variant.write_text(f"name: variant\nextends: {extends}\n", encoding="utf-8")
    with pytest.raises(BadInput) as caught:
        read_benchmark(load_yaml(variant))
    assert caught.value.where.endswith("variant.yaml:2: extends")
