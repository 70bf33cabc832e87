"""The keys of a benchmark config.

Field docstrings are the user's documentation: docs/config-keys.md and the JSON Schema contain them.
"""

# no `from __future__ import annotations`: pydantic would parse the text of every annotation when it creates the classes
# Defaults that are sections use `model_construct()`: it skips validation, for which pydantic would build the class.
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from memorybench.core.questions import EvidenceLevel
from memorybench.core.records import Record

from .log_lines import LinePattern

HUB = "https://huggingface.co"
"""Address of Hugging Face; HF_ENDPOINT replaces it."""


Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class Join(Record):
    """Another file whose content becomes a field of each item."""

    file: str | None = None
    """Path of one file per data file, relative to the folder of the data file, such as `../chat.json`.
    `a.json | b.json` is b if a does not exist. `${stem}` and `${folder}` are the names of the data file, without its
    suffix, and of its folder;
    `${number}` is the last number in the name of the data file: 12 for `qa_12.json`."""
    files: tuple[str, ...] = ()
    """Names or globs of files whose rows are looked up by `key`."""
    format: Literal["json", "jsonl", "csv", "parquet", "text"] | None = None
    """File format (default: by the file's name). A `file` ending in `.txt`, or with `format: text`, is joined as one
    text."""
    items: str | None = None
    """Path to the rows, as `data.items`. Without it, a `file` that is JSON is joined whole."""
    key: str | None = None
    """Path to the key within a row of `files`; `@key` is the row's own key, if the rows are in an object."""
    by: str | None = None
    """Path to the key within an item; it may begin with the name of an earlier join. If it leads to a list of keys,
    the joined field is the list of their rows."""


class Data(Record):
    type: Literal["huggingface", "local", "url", "bundled", "plugin"]
    """Where the data is: on Hugging Face, on this machine, at a URL, in this package, or with an installed plug-in."""
    path: str
    """`owner/name` or `owner/name/file` on Hugging Face; a file, folder or glob, relative to the folder of this config
    or to the working folder; a URL; or the name of the bundled dataset or plug-in. A file may be a zip archive."""
    local_path: str | None = None
    """Path of the download, relative to this file; on Hugging Face also the name of the file, if `path` has none."""
    format: Literal["json", "jsonl", "csv", "parquet"] | None = None
    """File format (default: by the file's name). JSON, JSONL and CSV may be gzipped; Parquet needs the extra `parquet`.
    A CSV cell that contains a JSON array or object is parsed."""
    items: str | None = None
    """Path to the items: to an array, or to each item (`people.*`). Not needed if the file is an array of items. `$`:
    the file is one item. In JSONL, CSV and Parquet: the path within each row."""
    where: str | None = None
    """Condition of a JSONPath filter, such as `@.image == null` or `@.lang == 'en' && @.turns[1]`. Items that do not
    satisfy it are not read; `data preview` counts them."""
    files: tuple[str, ...] = ()
    """Files of the Hugging Face dataset, local folder or zip archive that `path` names, if the data is more than one
    file. Locally and in archives also globs such as `*/questions.json`, whose files are sorted by name, and exceptions
    such as `!draft*`. Their items are read in this order (default: every data file in the folder;
    those in subfolders are listed by `data preview` and not read)."""
    join: Mapping[str, Join] = Field(default_factory=dict)
    """Name of a field → another file, whose content is added to each item as this field."""
    sha256: Sha256 | Mapping[str, Sha256] | None = None
    """SHA-256 checksum of the file; a file with another checksum is an error. For several files, including joined ones:
    path of the file, relative to the folder of the data → its checksum. Files that are not named are not checked."""
    size: int | None = Field(default=None, ge=1)
    """Size of the file in bytes; a larger download is an error."""
    licence: str = ""
    """Licence of the data; shown before a download and in reports."""


class Questions(Record):
    """For items with several questions about the same context."""

    field: str | None = None
    """Path to the questions, within an item: to an array, or with several matches, to each array or question
    (`$.*` for an object of arrays). All matches are read."""
    columns: Mapping[str, str] = Field(default_factory=dict)
    """Instead of `field`, if an item has one list per field of its questions, all of equal length, as in many Parquet
    files: name → path to the list, within an item. The nth question has the nth member of each list as the field of
    this name. A list may be missing or empty."""
    question_field: str
    """Path to the question."""
    answer_field: str | None = None
    """Path to the gold answer, or to an array of answers; `schema.answerMode` says how many of them are needed. Not
    needed with a rubric or with texts that answers must or must not contain."""
    rubric_field: str | None = None
    """Path to the items of the question's rubric; see `schema.rubric`."""
    must_contain_field: str | None = None
    """Path to texts that a right answer contains; see `schema.mustContain`."""
    must_not_contain_field: str | None = None
    """Path to texts that a right answer does not contain; see `schema.mustNotContain`."""
    forbidden_field: str | None = None
    """Path to the ids of turns or sessions that must not be retrieved; see `schema.forbidden`."""
    evidence_field: str | None = None
    """Path to the ids of the turns or sessions that contain the answer."""
    category_field: str | None = None
    """Path to the question's category or type."""
    id_field: str | None = None
    """Path to the question's id (default: the item's id and the question's index, such as `conv-26:q0`)."""
    date_field: str | None = None
    """Path to the date on which the question is asked."""
    choices_field: str | None = None
    """Path to the choices of a multiple-choice question; see `schema.choices`."""
    prefix_field: str | None = None
    """Path to a number, within a question: the question is asked after so many sessions or turns of the history have
    been added. The history is ingested once. `@parentIndex` is the number of the session that contains the question;
    `@before` is the number of sessions before it."""
    labels: Mapping[str, str] = Field(default_factory=dict)
    """Name → path, within a question. Reports break figures down by labels."""


class ItemSchema(Record):
    """How to read one turn of the context."""

    content: str | None = None
    """Path to the text of the turn, or to a list of texts. Several matches, such as those of `content[*].text` or
    `$['title','tags','body']`, become paragraphs."""
    text: str | None = None
    """Alias of `content`."""
    role: str | None = None
    """Path to the role, such as user or assistant."""
    speaker: str | None = None
    """Path to the speaker's name."""
    dialog_id: str | None = None
    """Path to the turn's id, which evidence refers to."""
    caption: str | None = None
    """Path to the captions of pictures in the turn, a text or a list of texts; appended to the content."""
    image: str | None = None
    """Path to pictures in the turn. They are counted but not read; a turn with a picture may have no text."""
    date: str | None = None
    """Path to the turn's date. A session without a date has that of its first turn."""
    evidence: str | None = None
    """Path to the field that marks the turns that contain the answer. Providers never see it."""


class SessionSchema(Record):
    """How to read one session that is an object."""

    id: str | None = None
    """Path to the session's id, within the session; see `context.idField`. A session need not have one."""
    date: str | None = None
    """Path to the session's date, within the session."""


class Context(Record):
    """The sessions that are added to a memory."""

    field: str
    """Path to the context, within an item."""
    type: Literal["array", "turns", "object", "string"] = "array"
    """`array`: lists of turns, texts, and objects with `turnsField` are sessions; other objects are the turns of one
    session, or, with `dateField` or `idField`, sessions of one turn each. `turns`: a list, also of texts, that is one
    session, whose date `dateField` finds. `object`: one key per session.
    `string`: one text, whose paragraphs are turns."""
    split: Literal["paragraphs", "lines"] | None = None
    """What the turns of a `string` are (default: paragraphs)."""
    speaker_separator: str | None = Field(default=None, min_length=1)
    """What is between speaker and text, if the text of a turn begins with its speaker: `":"` in `Ida: Good morning`. A
    name has at most 50 characters. The names user, assistant, system and tool are roles, unless `itemSchema.role` is
    set. Turns that begin without a speaker are counted and read as they are."""
    line_pattern: str | None = None
    """How each message of a `string` is written, if it is a log: `[{date}] {speaker}: {content}`. Fields: `date`,
    `speaker`, `role`, `dialogId` and, at the end, `content`. A line that does not fit is part of the message before
    it."""
    session_per: Literal["day"] | None = None
    """How to divide a list of turns, or a log, into sessions by the dates of turns: consecutive turns of one day are a
    session."""
    turns_field: str | None = None
    """Path to the turns within a session, if sessions are objects. All matches are turns, and so are the members of
    lists within lists."""
    prefix: str | None = None
    """Path to a number, within an item: only so many sessions or turns of the array are in the history of its question.
    A history that is joined by key is ingested once, and each question is asked when its part has been added."""
    date_field: str | None = None
    """Path to the dates of the sessions, one per session, within an item."""
    id_field: str | None = None
    """Path to the ids of the sessions, one per session, within an item. Providers see s1, s2, … instead, because an id
    may reveal that a session is gold."""
    session_pattern: str | None = None
    """Keys of an `object` that are sessions; `*` is a number."""
    date_pattern: str | None = None
    """Keys of an `object` that are the dates of sessions; `*` is the session's number."""
    session_schema: SessionSchema = SessionSchema.model_construct()
    """Paths within a session, instead of `idField` and `dateField`."""
    item_schema: ItemSchema = ItemSchema.model_construct()
    """Paths within a turn (default: a turn is a text)."""

    @property
    def turn_schema(self) -> ItemSchema:
        """The paths within a turn: those of `itemSchema`, or for a log, the fields of `linePattern`."""
        if self.line_pattern is None:
            return self.item_schema
        fields = LinePattern(self.line_pattern, "schema.context.linePattern").fields
        return ItemSchema.model_validate({name: name for name in fields})


class RubricItemSchema(Record):
    """How to read one item of a rubric, if items are objects."""

    text: str | None = None
    """Path to the requirement (default: an item is a text)."""
    weight: str | None = None
    """Path to its weight, a number above 0 (default: every item weighs 1)."""


class Abstention(Record):
    """Questions without an answer in their context. The right response is to say that it is unknown."""

    id_pattern: str | None = None
    """Pattern of the ids of such questions, with * and ?. Haystacks are then called h1, h2, …, because
    ids would reveal the gold."""
    categories: tuple[str, ...] = ()
    """The types of questions without an answer, by the names that the key `categories` gives them."""


class OfficialRetrieval(Record):
    """Questions in the authors' retrieval averages. Each question gets the label `official_retrieval`."""

    abstention: bool = False
    """Whether questions without an answer are included."""
    gold_turn_role: str | None = None
    """Include only questions with a gold turn of this role."""


class SchemaMapping(Record):
    """Paths to the fields of an item. A path is a field name or a JSONPath; `a | b` falls back to b if a is
    missing, null or empty."""

    item_id: str | tuple[str, ...] = "@index"
    """Path to the item's id, which must be unique (default: its number, from 1), or a list of paths, if several fields
    make it: `[user, day]` is `ann:3`. Names for what is not in the item: `@index`, `@key` (its key, if items are in an
    object), `@file`, `@stem`, `@folder`."""
    question: str | None = None
    """Path to the question, if an item has one."""
    answer: str | None = None
    """Path to the gold answer, or to an array of answers. Not needed with `rubric`, `mustContain` or
    `mustNotContain`."""
    answer_mode: Literal["any", "all", "rubric"] | None = None
    """What an array of answers means. `any`: each of them is right; `all`: a right answer states all of them; `rubric`:
    they are the items of a rubric (default: `rubric` if `rubric` is set, otherwise `any`)."""
    rubric: str | None = None
    """Path to the items of a rubric: texts, or objects that `rubricItem` describes. A judge scores each item 0, 0.5
    or 1; `rubric_score` is their weighted mean. Every question must have at least one."""
    rubric_item: RubricItemSchema = RubricItemSchema.model_construct()
    """Paths within an item of a rubric."""
    must_contain: str | None = None
    """Path to a text or an array of texts, all of which a right answer contains. This is checked by code, not by a
    judge: case, punctuation and articles are ignored, but not signs as in -5, 1.5 and C++, and whole words are
    compared. If set, it alone decides whether an answer is right, even if there is a gold answer."""
    must_not_contain: str | None = None
    """Path to a text or an array of texts, none of which a right answer contains. If there is a gold answer, a right
    answer must also agree with it. Memories that contain one are counted in `forbidden_hit` and `drift`."""
    forbidden: str | None = None
    """Path to ids of sessions or turns that must not be retrieved; counted in `forbidden_hit` and `drift`. `@others`:
    all that are not evidence, so that `drift` is the share of the memories shown that are noise."""
    evidence: str | None = None
    """Path to the ids of the sessions or turns that contain the answer; without it, there are no retrieval metrics."""
    evidence_level: EvidenceLevel = "session"
    """Unit of retrieval metrics: sessions or turns."""
    evidence_format: Literal[
        "exact", "dialog-ids", "text", "numbers-from-0", "numbers-from-1", "ranges-from-0", "ranges-from-1"
    ] = "exact"
    """Spelling of evidence ids: `exact` as in the context, or `dialog-ids` as in LoCoMo, where `D8:6; D9:17`, `D:11:26`
    and `D30:05` are split and repaired. `text`: evidence is the text of a turn, or a part that only one turn contains;
    case and punctuation are ignored, signs such as + are not. `numbers-from-0` and `numbers-from-1`: numbers of turns,
    counted through all sessions, or of sessions; `evidenceLevel` says which, and must be set. Sessions in an object
    have the numbers of their keys. `ranges-from-0` and
    `ranges-from-1`: also pairs of numbers, `3-7` or `[[3, 7]]`, of the first and the last. `[3, 7]` is a range if the
    evidence of every question is such a pair; otherwise it is refused, because it may be two numbers. Unknown ids,
    texts and numbers, and texts that several turns have, are dropped and counted."""
    choices: str | None = None
    """Path to the choices of a multiple-choice question: an array, or an object of label and text. They are appended to
    the question. The gold answer is a choice as the data writes it, its text, or its label: a, b, c …, or that at the
    beginning of the choices, if all of them have one, in order (`A. beef`, `B. lentils`). Such choices are shown as
    written. If the data has labels, a gold answer that is a label and also the text of another choice is the label."""
    choice_index: Literal[0, 1] | None = None
    """The index of the first choice, if gold answers are indexes. With it, every gold answer that is a number is an
    index."""
    parse: Mapping[str, str] = Field(default_factory=dict)
    """Path of a text that contains a list, within an item or question → its format: `json`, `python` (as Python prints
    it), `lines`, or the separator, such as `;`."""
    cluster: str | None = None
    """Path to a value that related items share, such as a person: confidence intervals treat these items as one sample
    (default: items with the same history)."""
    date_format: str | tuple[str, ...] | None = None
    """Date format in the codes of Python's strptime, or a list of formats, of which the first that fits is used. `%?`
    is a word that is skipped, such as the name of a weekday in any language. Not needed for ISO 8601, seconds since
    1970, `1:56 pm on 8 May, 2023` and `2023/05/20 (Sat) 02:21`."""
    abstention: Abstention = Abstention.model_construct()
    """Questions without an answer in their context."""
    official_retrieval: OfficialRetrieval | None = None
    """Questions that the authors include in their retrieval averages."""
    questions: Questions | None = None
    """Replaces `question` and `answer`, if an item has several questions."""
    context: Context
    """The sessions that are added to a memory."""
    metadata: Mapping[str, str] = Field(default_factory=dict)
    """Name → path, within an item. `questionType` and `questionDate` are used in prompts and breakdowns; others become
    labels, and reports break figures down by them."""

    @property
    def item_id_paths(self) -> tuple[str, ...]:
        return (self.item_id,) if isinstance(self.item_id, str) else self.item_id

    def question_path(self, name: str) -> str | None:
        """Return the path to a field of a question: `answer`, or `questions.answerField` if items have several."""
        many = self.questions
        path: str | None = getattr(self, name) if many is None else getattr(many, f"{name}_field")
        return path


class Needles(Record):
    """Builds haystacks from needle sets and books, as in NoLiMa. The first of `data.files` contains the needles; the
    others are books."""

    lengths: tuple[int, ...] = (250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000)
    """Lengths of haystacks in tokens of four bytes."""
    depths: int = Field(default=26, ge=2)
    """Number of positions of the needle, evenly spaced from the beginning to the end."""
    seed: int = 42
    """Seed of the random choice of characters."""


class Cues(Record):
    """Builds histories by inserting short dialogues into long conversations, as in Locomo-Plus. The first of
    `data.files` contains the dialogues and the questions, the second LoCoMo's conversations."""

    days_after: int = Field(default=7, ge=0)
    """Days from the last session of a conversation to the question."""


class QuestionType(Record):
    name: str
    """Name of the type: as in `categories` if that renames it, otherwise as in the data."""
    evaluation_prompt: str = "default"
    """Judge prompt of this type, unless `judgePrompts.byQuestionType` has one for it: `default`,
    `temporal`, `knowledge-update`, `rubric` or `abstention`."""
    rubric: tuple[str, ...] = ()
    """Items of the rubric of all questions of this type, for data that has none; `${answer}` is the list of the gold
    answers, which are then used only there."""
    allow_off_by_one: bool = False
    """Tells the judge to accept answers that are off by one day, week or month."""


class Preprocessing(Record):
    escape_html: bool = False
    """Replaces < > & by entities, for systems that read them as markup."""
    remove_fields: tuple[str, ...] = ()
    """Fields that are removed from each turn; providers never see them."""
    format_template: str | None = None
    """Template of the session text that providers get. Variables: `date`, `session` (JSON), `dialogue` (lines of
    `speaker: text`), `sessionId`, `speakers`."""


class Ingestion(Record):
    mode: Literal["bulk", "incremental", "session-based"] = "session-based"
    """`session-based`: one request per session, by date; `incremental`: one per turn; `bulk` is accepted and means the
    same as `session-based`. With any of them, providers that are `unordered` get requests concurrently, or batches."""
    batch_size: int | None = Field(default=None, ge=1)
    """Largest number of sessions per batch (default: the provider's limit)."""
    delay_between_batches: int = Field(default=0, ge=0)
    """Milliseconds between two batches."""
    preprocessing: Preprocessing = Preprocessing.model_construct()
    """Changes to sessions before providers get them."""


class SearchDefaults(Record):
    default_limit: int = Field(default=10, ge=1)
    """Number of memories requested from every provider; retrieval metrics use this depth."""
    context_limit: int = Field(default=10, ge=1)
    """Number of memories, best first, in the answer prompt."""
    default_threshold: float | None = None
    """Value of the variable `threshold` in requests. memorybench itself removes no memories by their score."""
    include_chunks: bool = False
    """Whether chunks that a provider returns are included in the answer prompt."""


class ModelChoice(Record):
    """A model and its settings."""

    model: str
    """The model's name, such as `gpt-4o`; the command line overrides it."""
    temperature: float = Field(default=0.0, ge=0)
    """The temperature of this model, unless its card sets one; not sent to models that accept none. A model that the
    command line or the environment names does not get it."""


class AnswerPrompt(Record):
    default: str | None = None
    """The prompt. Variables: `question` (required), `questionDate`, `questionType`, `retrievedContext`."""
    by_question_type: Mapping[str, str] = Field(default_factory=dict)
    """Prompts for single question types."""
    user_override: bool = True
    """Whether --answer-prompt may replace them."""


class JudgePrompts(Record):
    source: Literal["paper", "custom"] = "custom"
    """Origin of the prompts; shown by `describe`."""
    paper_reference: str = ""
    """Section of the paper; shown by `describe`."""
    default: str | None = None
    """The prompt. Variables: `question`, `answer` (gold), `response`, `rubric` and those of answer prompts. To a
    prompt without variables, question, gold answer and response are appended."""
    by_question_type: Mapping[str, str] = Field(default_factory=dict)
    """Prompts for single question types."""
    user_override: bool = True
    """Whether --judge-prompt may replace them."""


class Evaluation(Record):
    method: Literal["exact-match", "f1", "contains", "llm-judge", "semantic-similarity", "custom", "retrieval"]
    """How an answer is compared with the gold answer. A judge on the command line replaces it. `retrieval` is
    for data without answers: it measures search only, and needs `evidence`."""
    closed_answers: bool | None = None
    """For `exact-match`: whether only the gold answers themselves are right. If not, token F1 is the main metric,
    and accuracy needs a judge (default: whether gold answers have three words or fewer on average). Multiple choice is
    always decided by label."""
    partial_credit: bool = True
    """Whether a rubric item that is half met counts 0.5. If not, it counts 0."""
    f1_rule: Literal["tokens", "locomo"] = "tokens"
    """`tokens`: token F1 as in SQuAD; `locomo`: LoCoMo's official scoring by category."""
    answering_model: ModelChoice | None = None
    """The answering model, unless the command line or $MEMORYBENCH_MODEL names one."""
    answer_prompt: AnswerPrompt = AnswerPrompt.model_construct()
    """Prompts of the answering model."""
    judge: ModelChoice | None = None
    """The judge model, unless the command line names one."""
    judge_prompts: JudgePrompts = JudgePrompts.model_construct()
    """Prompts of the judge."""
    custom_evaluator: str | None = None
    """For `custom`: `./file.py:function`, which runs only with --allow-code."""


class Runtime(Record):
    """Accepted for compatibility, without effect: every step is recorded, and every run can be resumed."""

    checkpointing: bool = True
    """No effect: always on."""
    checkpoint_granularity: Literal["item", "batch", "session"] = "session"
    """No effect: each step is recorded."""
    resumable: bool = True
    """No effect: always on."""


class BenchmarkConfig(Record):
    """A dataset, how to read it, and how answers about it are scored."""

    name: str
    """Its name on the command line: 1 to 64 of a-z 0-9 _ -."""
    extends: str | None = None
    """Name of a benchmark whose config is in the same folder; keys missing here are read from it."""
    display_name: str = ""
    """Its name in reports."""
    description: str = ""
    """One line for `list`."""
    version: str = ""
    """The benchmark's version, which `describe` shows and a run records with this file."""
    source: str = ""
    """URL of the original; shown by `describe`."""
    paper: str = ""
    """URL of the paper; shown by `describe`."""
    checked_against: str = ""
    """What this config was checked against: the version of the data, and what was compared; shown by `describe`."""
    tags: tuple[str, ...] = ()
    """Tags for `list --tags`."""
    data: Data
    """Where the data comes from."""
    mapping: SchemaMapping | None = Field(default=None, alias="schema")
    """Mapping from the data's fields; not used by bundled data and plug-ins."""
    needles: Needles | None = None
    """Replaces `schema`, for needle sets and books."""
    cues: Cues | None = None
    """Replaces `schema`, for dialogues that are inserted into conversations."""
    categories: Mapping[str, str] = Field(default_factory=dict)
    """Names of the data's category values; used in reports."""
    question_types: tuple[QuestionType, ...] = ()
    """The types of questions, and how each is judged."""
    ingestion: Ingestion = Ingestion.model_construct()
    """How sessions are sent to providers."""
    search: SearchDefaults = SearchDefaults.model_construct()
    """Search settings."""
    evaluation: Evaluation
    """How questions are answered and answers are scored."""
    metrics: tuple[str, ...] = ()
    """Metrics to show first; all others are measured as well. `accuracy`, `recall@5` …; `recall_at_5` and
    `accuracy_by_question_type` are aliases."""
    runtime: Runtime = Runtime.model_construct()
    """Accepted, without effect."""

    @property
    def is_built(self) -> bool:
        """Whether code builds the histories from the files (`needles` or `cues`), instead of a schema."""
        return self.needles is not None or self.cues is not None
