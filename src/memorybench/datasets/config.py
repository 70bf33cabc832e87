"""What a benchmark config may say. Field docstrings are the user's documentation: they stand in docs/config-keys.md
and in the JSON Schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import ConfigDict, Field

from memorybench.core.questions import EvidenceLevel
from memorybench.core.records import Record


class Section(Record):
    """A mapping in a config file."""

    model_config = ConfigDict(use_attribute_docstrings=True, defer_build=True)


class Data(Section):
    type: Literal["huggingface", "local", "url", "bundled", "plugin"]
    """Where the data is: on Hugging Face, on this machine, at a URL, in this package, or with an installed plug-in."""
    path: str
    """`owner/name` or `owner/name/file` on Hugging Face, a path from this file or the working folder, a URL, or the
    name of the bundled set or plug-in."""
    local_path: str | None = None
    """Where a download is kept, from this file; on Hugging Face also the name of the file, if `path` has none."""
    format: Literal["json", "jsonl", "csv"] | None = None
    """How to read it; without it, the file's name tells. Each may be gzipped. A CSV cell that holds a JSON array or
    object is read as one."""
    items: str | None = None
    """Path to the array of items, where the file is not that array itself."""
    files: tuple[str, ...] = ()
    """Files of a Hugging Face dataset, or of a folder, where the data is more than one file."""
    sha256: str | None = Field(default=None, pattern="^[0-9a-f]{64}$")
    """Checksum of the file: other data is refused."""
    size: int | None = Field(default=None, ge=1)
    """Bytes of the file: a longer download is cut off and refused."""
    licence: str = ""
    """Under which terms the data may be used; shown before a download and in reports."""


class Questions(Section):
    """Where one item holds many questions about the same context."""

    field: str
    """Path to the array of questions, within an item."""
    question_field: str
    """Path to the question."""
    answer_field: str
    """Path to the gold answer, or to an array of which any is right."""
    evidence_field: str | None = None
    """Path to the ids of the turns or sessions that hold the answer."""
    category_field: str | None = None
    """Path to the question's category or type."""
    id_field: str | None = None
    """Path to the question's own id; without it, the item's id and the question's place: `conv-26:q0`."""
    date_field: str | None = None
    """Path to the date on which it is asked."""
    choices_field: str | None = None
    """Path to the choices of a multiple-choice question; as `schema.choices`."""


class ItemSchema(Section):
    """How to read one turn of the context."""

    content: str | None = None
    """Path to what was said."""
    text: str | None = None
    """Another name of `content`."""
    role: str | None = None
    """Path to the role, such as user or assistant."""
    speaker: str | None = None
    """Path to the speaker's name."""
    dialog_id: str | None = None
    """Path to the turn's id, as evidence names it."""
    caption: str | None = None
    """Path to the caption of a picture that came with the turn; put behind the content."""
    date: str | None = None
    """Path to the turn's own date."""
    evidence: str | None = None
    """Path to a mark that says whether the turn holds the answer. No provider sees it."""


class Context(Section):
    """What a memory is given to remember."""

    field: str
    """Path to the context, within an item."""
    type: Literal["array", "object", "string"] = "array"
    """`array`: lists of turns, texts, and objects with `turnsField` are sessions; other objects are the turns of one
    session, or, with `dateField` or `idField`, sessions of one turn each. `object`: one key for each session.
    `string`: one text, whose paragraphs are turns."""
    turns_field: str | None = None
    """Path to the turns within a session that is an object."""
    date_field: str | None = None
    """Path to the dates of the sessions, one for each, within an item."""
    id_field: str | None = None
    """Path to the ids of the sessions, one for each, within an item. Providers see s1, s2, … in their place: an id may
    tell that a session is gold."""
    session_pattern: str | None = None
    """Which keys of an `object` are sessions; `*` stands for a number."""
    date_pattern: str | None = None
    """Which keys of an `object` are their dates; `*` is the session's number."""
    item_schema: ItemSchema = ItemSchema()
    """How to read one turn; without it, a turn is a text."""


class Abstention(Section):
    """Which questions have no answer in their context, so that to say so is right."""

    id_pattern: str | None = None
    """Pattern of the ids of such questions, with * and ?. Providers then see h1, h2, … as names of histories."""
    categories: tuple[str, ...] = ()
    """Types of such questions, by their names in `categories`."""


class OfficialRetrieval(Section):
    """Which questions the authors' own retrieval averages count. Each question gets the label `official_retrieval`."""

    abstention: bool = False
    """Whether questions that can not be answered count."""
    gold_turn_role: str | None = None
    """Counts only questions with a gold turn of this role."""


class SchemaMapping(Section):
    """From the file's fields to ours. A path is a field's name or a JSONPath; `a | b` falls back to b."""

    item_id: str
    """Path to the item's id; each must be different."""
    question: str | None = None
    """Path to the question, where an item holds one."""
    answer: str | None = None
    """Path to the gold answer, or to an array of which any is right."""
    evidence: str | None = None
    """Path to the ids of the sessions or turns that hold the answer; without it, there are no retrieval figures."""
    evidence_level: EvidenceLevel = "session"
    """At which level retrieval is counted: whole sessions, or single turns."""
    evidence_format: Literal["exact", "dialog-ids"] = "exact"
    """How ids of evidence are written: as the context has them, or as LoCoMo does: `D8:6; D9:17`, `D:11:26`, `D30:05`
    are taken apart and mended. What leads nowhere is dropped and counted."""
    choices: str | None = None
    """Path to the choices of a multiple-choice question: an array, or an object of label and text. They are shown below
    the question, which is an open one without them. The gold is a choice's text, label, or place counted from 0."""
    date_format: str | None = None
    """How dates are written, in the codes of Python's strptime, where they are neither ISO 8601, seconds since 1970,
    `1:56 pm on 8 May, 2023` nor `2023/05/20 (Sat) 02:21`."""
    abstention: Abstention = Abstention()
    """Which questions can not be answered."""
    official_retrieval: OfficialRetrieval | None = None
    """Which questions the authors' own retrieval averages count."""
    questions: Questions | None = None
    """In the place of `question` and `answer`, where an item holds many."""
    context: Context
    """What is to be remembered."""
    metadata: Mapping[str, str] = Field(default_factory=dict)
    """Name → path, within an item. `questionType` and `questionDate` are used in prompts and breakdowns; others become
    labels, and reports break figures down by them."""


class Needles(Section):
    """How histories are made of needle sets and books, as in NoLiMa: the first of `data.files` holds the needles, the
    others are books."""

    lengths: tuple[int, ...] = (250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000)
    """Tokens of a history, at four bytes each."""
    depths: int = Field(default=26, ge=2)
    """Places of the needle, evenly from the beginning to the end."""
    seed: int = 42
    """Chooses the characters."""


class QuestionType(Section):
    name: str
    """As the data names it."""
    evaluation_prompt: str = "default"
    """Which judge prompt serves this type where `judgePrompts.byQuestionType` has none for it: `default`,
    `temporal`, `knowledge-update`, `rubric` or `abstention`."""
    allow_off_by_one: bool = False
    """Tells the judge to forgive a day, week or month more or less."""


class Preprocessing(Section):
    escape_html: bool = False
    """Writes < > & as entities, for systems that take them for markup."""
    remove_fields: tuple[str, ...] = ()
    """Fields of a turn that are dropped before it is read: providers see nothing of them."""
    format_template: str | None = None
    """What providers get as a session's content. Variables: `date`, `session` (JSON), `dialogue` (lines of
    `speaker: text`), `sessionId`, `speakers`."""


class Ingestion(Section):
    mode: Literal["bulk", "incremental", "session-based"] = "session-based"
    """`session-based`: one add for each session, by date; `incremental`: one for each turn; `bulk`: sessions may go
    together to providers that are `unordered`."""
    batch_size: int | None = Field(default=None, ge=1)
    """Sessions in a batch at most, for providers that take batches. Without it, as many as a provider takes."""
    delay_between_batches: int = Field(default=0, ge=0)
    """Milliseconds between two batches."""
    preprocessing: Preprocessing = Preprocessing()
    """What is done to a session before a provider gets it."""


class SearchDefaults(Section):
    default_limit: int = Field(default=10, ge=1)
    """How many memories every provider is asked for: rankings are judged to that depth."""
    context_limit: int = Field(default=10, ge=1)
    """How many of them, best first, the answering model gets to see."""
    default_threshold: float | None = None
    """What the variable `threshold` is in the requests of providers that use it; no memory is dropped by us."""
    include_chunks: bool = False
    """Whether chunks that a provider returns are shown to the answering model."""


class ModelChoice(Section):
    """A model and how it is asked."""

    model: str
    """The model's name, such as `gpt-4o`; the command line may name another."""
    temperature: float = Field(default=0.0, ge=0)
    """Sent with every call, to models that take one; at 0 they choose the likeliest words."""


class AnswerPrompt(Section):
    default: str | None = None
    """The prompt. Variables: `question` (needed), `questionDate`, `questionType`, `retrievedContext`."""
    by_question_type: Mapping[str, str] = Field(default_factory=dict)
    """Prompts for single question types."""
    user_override: bool = True
    """Whether --answer-prompt may replace them."""


class JudgePrompts(Section):
    source: Literal["paper", "custom"] = "custom"
    """Where the prompts come from; reports say so."""
    paper_reference: str = ""
    """The place in the paper; reports cite it."""
    default: str | None = None
    """The prompt. Variables: `question`, `answer` (gold), `response`, `rubric` and those of answer prompts. One
    without variables is followed by question, gold answer and response."""
    by_question_type: Mapping[str, str] = Field(default_factory=dict)
    """Prompts for single question types."""
    user_override: bool = True
    """Whether --judge-prompt may replace them."""


class Evaluation(Section):
    method: Literal["exact-match", "f1", "contains", "llm-judge", "semantic-similarity", "custom"]
    """How an answer is compared with the gold. A judge named on the command line decides in any case."""
    f1_rule: Literal["tokens", "locomo"] = "tokens"
    """`tokens`: F1 of the words, as SQuAD has it; `locomo`: LoCoMo's official scoring by category."""
    answering_model: ModelChoice | None = None
    """Who answers, if the command line and $MEMORYBENCH_MODEL name no one."""
    answer_prompt: AnswerPrompt = AnswerPrompt()
    """How it is asked."""
    judge: ModelChoice | None = None
    """Who judges, if the command line names no one."""
    judge_prompts: JudgePrompts = JudgePrompts()
    """How it is asked."""
    custom_evaluator: str | None = None
    """For `custom`: `./file.py:function`, which runs only with --allow-code."""


class Runtime(Section):
    """Accepted for the sake of older files: every step is recorded, and every run can be resumed, always."""

    checkpointing: bool = True
    """No effect: always on."""
    checkpoint_granularity: Literal["item", "batch", "session"] = "session"
    """No effect: each step is recorded by itself, which is finer than all three."""
    resumable: bool = True
    """No effect: always on."""


class BenchmarkConfig(Section):
    """A dataset, how to read it, and how answers about it are scored."""

    name: str
    """What it is called on the command line: 1 to 64 of a-z 0-9 _ -."""
    extends: str | None = None
    """Name of a benchmark whose file lies beside this one: what this file does not say is taken from there."""
    display_name: str = ""
    """What reports call it."""
    description: str = ""
    """One line for `list`."""
    version: str = ""
    """The benchmark's version; recorded with every result."""
    source: str = ""
    """URL of the original; shown by `describe`."""
    paper: str = ""
    """URL of the paper; shown by `describe`."""
    tags: tuple[str, ...] = ()
    """Words to find it by: `list --tags`."""
    data: Data
    """Where the data comes from."""
    mapping: SchemaMapping | None = Field(default=None, alias="schema")
    """How to read it; bundled data and plug-ins know that themselves."""
    needles: Needles | None = None
    """In the place of `schema`, for data that is needle sets and books."""
    categories: Mapping[str, str] = Field(default_factory=dict)
    """What the data's category values mean; reports use these names."""
    question_types: tuple[QuestionType, ...] = ()
    """The types of questions, and how each is judged."""
    ingestion: Ingestion = Ingestion()
    """How the context is handed to providers."""
    search: SearchDefaults = SearchDefaults()
    """How much is searched for."""
    evaluation: Evaluation
    """How answers are made and scored."""
    metrics: tuple[str, ...] = ()
    """Figures to show first; all others are measured as well. `accuracy`, `recall@5` …; `recall_at_5` and
    `accuracy_by_question_type` are other names."""
    runtime: Runtime = Runtime()
    """Accepted, without effect."""
