"""What extraction runs depend on: on labelled cases (`run`), or over recorded traces (`online`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, model_validator

from memorybench.core.errors import BadInput
from memorybench.suites.spec import JudgedSpec, RepeatedSpec, flag

PATHS = ("id", "conversation", "existing", "output")
DEFAULT_TAG = "memory_extraction"
_FILES = ("jsonl", "otlp", "langfuse", "phoenix")
"""The sources that are read from a file."""
FEEDBACK_SOURCES = ("langsmith", "langfuse")
"""The sources that scores can be sent back to."""


class ExtractionSpec(RepeatedSpec):
    cases: str | None = flag(
        None, help="Test on these cases (JSON, JSONL).", name="cases", metavar="CASES", default_text="bundled cases"
    )
    extractor: str | None = flag(
        None, help="Test this extractor or provider, module:function or FILE.py:function.", metavar="NAME"
    )
    extractor_command: str | None = flag(
        None, help="Test this command line, which reads and writes JSON.", metavar="LINE", is_program=True
    )
    extractor_model: str | None = flag(None, help="Set the model of the extractor, if it needs one.", metavar="MODEL")
    judge_model: str | None = flag(
        None, help="Let this model decide what the rules cannot.", metavar="MODEL", default_text="none"
    )
    scenarios: tuple[str, ...] = flag(
        (),
        help="Run only cases of these scenarios, such as conflict_resolution.",
        name="--scenario",
        metavar="NAME",
    )
    limit: int | None = flag(None, help="Sample N cases across scenarios.", metavar="N", ge=1)
    sample_seed: int | None = flag(0, help="With --limit: draw the sample with this seed.", metavar="N")
    """None for a run of an earlier version, whose --limit took the first cases."""
    case_ids: tuple[str, ...] = flag((), help="Run only cases with these ids.", name="--case-id", metavar="ID")
    """The ids of the cases to run. In a saved run, also those that --limit selected."""
    repeats: int = flag(1, help="Test each case N times.", metavar="N", ge=1)
    no_targets: bool = flag(False, help="Ignore the default thresholds.", saved=False)

    @classmethod
    def migrate(cls, saved: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"sample_seed": None, **saved, "case_ids": saved.get("case_ids") or ()}


class OnlineSpec(JudgedSpec):
    source: Literal["langsmith", "jsonl", "otlp", "langfuse", "phoenix"] = flag(
        help="Read `langsmith`, or FILE as jsonl, otlp, langfuse or phoenix.",
        metavar="SOURCE",
        usage="SOURCE [FILE]",
        several_words=True,
    )
    file: str | None = None
    project: str | None = flag(None, help="With --source langsmith: read runs of this project.", metavar="NAME")
    tag: str = flag(DEFAULT_TAG, help="Read LangSmith runs with this tag.", name="--trace-tag", metavar="TAG")
    since: str | None = flag(None, help="Read traces not older than TIME: 24h, 7d or 2026-01-31.", metavar="TIME")
    limit: int | None = flag(None, help="Judge at most N traces.", metavar="N", ge=1)
    write_names: tuple[str, ...] = flag(
        (), help="Also count spans with these names as writes.", name="--write-name", metavar="NAME"
    )
    feedback: bool = flag(False, help="Send scores to LangSmith or Langfuse (keys from the environment).")
    judge_model: str | None = flag(
        None, help="Judge the traces with this model.", metavar="MODEL", default_text="$MEMORYBENCH_JUDGE or gpt-4o"
    )
    id_path: str | None = flag(None, help="Find the id of a trace at this path.", metavar="JSONPATH")
    conversation_path: str | None = flag(
        None, help="Find the conversation of a trace at this path.", metavar="JSONPATH"
    )
    existing_path: str | None = flag(None, help="Find the memory before extraction at this path.", metavar="JSONPATH")
    output_path: str | None = flag(None, help="Find the extracted memory at this path.", metavar="JSONPATH")
    baseline: str | None = flag(None, help="Exit with 3 if significantly worse than this run.", metavar="RUN")
    store_is_disposable: bool = Field(False, exclude=True)
    """Not a flag: the command opens no memory."""

    @property
    def paths(self) -> dict[str, str]:
        """The JSONPaths that the user gave, by the part of a trace that they select."""
        return {role: path for role in PATHS if (path := getattr(self, f"{role}_path"))}

    @model_validator(mode="before")
    @classmethod
    def _split_source(cls, values: Any) -> Any:
        """Split `--source jsonl FILE` into source and file. Raise BadInput if one is missing or invalid."""
        source = values.get("source")
        if isinstance(source, (list, tuple)):
            name, *files = source
            values = {**values, "source": name, "file": files[0] if files else values.get("file")}
        known = values.get("source") in ("langsmith", *_FILES)
        if not known or (isinstance(source, (list, tuple)) and len(source) != 1 + (source[0] in _FILES)):
            raise BadInput(
                "--source",
                "the source is unknown, or FILE is missing or not allowed" if source else "missing",
                expected=f"--source langsmith, or FILE after --source {', '.join(_FILES)}",
            )
        return values

    @classmethod
    def migrate(cls, saved: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return saved values for today's version.

        Runs of earlier versions may have all JSONPaths under one key, `paths`, by role. They may also have a project
        beside a file, which had no effect.
        """
        values = {**saved, **{f"{role}_path": path for role, path in saved.get("paths", {}).items()}}
        return {**values, "project": None} if saved.get("file") else values
