"""What an audit depends on: the flags of `audit`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import field_validator, model_validator

from memorybench.core.errors import BadInput
from memorybench.suites.search_limits import SearchSpec
from memorybench.suites.spec import RepeatedSpec, flag
from memorybench.text.sanitize import preview
from memorybench.text.spelling import unknown_name

from .probes import PROBE_TYPES, Policy, ProbeType

_DATASET_SUFFIXES = (".json", ".jsonl", ".ndjson")


class AuditSpec(SearchSpec, RepeatedSpec):
    dataset: str = flag(
        help="Audit with these conversations and facts (JSON, JSONL).", name="dataset", metavar="DATASET"
    )
    model: tuple[str, ...] = flag(
        (),
        help="Answer with these models.",
        name="--model",
        metavar="MODEL",
        default_text="$MEMAUDIT_MODEL or gpt-4o-mini",
    )
    judge_model: str | None = flag(
        None,
        help='Judge with this model; "none" leaves reworded answers unscored.',
        metavar="MODEL",
        default_text="$MEMORYBENCH_JUDGE or gpt-4o",
    )
    top_k: int | None = flag(None, help="Retrieve N memories per search.", metavar="N", default_text="10", ge=1)
    context_limit: int | None = flag(
        None, help="Show the model at most N memories.", metavar="N", default_text="10", ge=1
    )
    providers: tuple[str, ...] = flag(
        (), help="Answer from these providers or baselines, not the whole conversation.", metavar="NAME"
    )
    kinds: tuple[ProbeType, ...] = flag(
        PROBE_TYPES,
        help="Ask only these kinds of probes.",
        metavar="KIND",
        default_text=f"all: {' '.join(PROBE_TYPES)}",
    )
    probe_file: tuple[str, ...] = flag(
        (),
        help="Ask the probes in this file, written by `audit probes`.",
        name="--probes",
        metavar="FILE",
        usage="FILE",
    )
    policy: Policy = flag("latest", help="Expect the latest value, or that changes are flagged.", name="--conflicts")
    limit: int | None = flag(None, help="Ask at most N probes, spread over all kinds.", metavar="N", ge=1)
    sample_seed: int = flag(0, help="With --limit: draw the sample with this seed.", metavar="N")
    seed: int | None = flag(None, help="Send this seed to the model.", metavar="N")
    context_window: int | None = flag(
        None,
        help="Set the model's context window; longer conversations are an error.",
        metavar="TOKENS",
        default_text="that of the model, if known",
        ge=1,
    )
    probe_model: str | None = flag(
        None, help="Let this model write further probes, and drop faulty ones.", metavar="MODEL"
    )
    answer_prompt: str | None = flag(
        None, help="Replace the answer prompt (file or text).", metavar="PROMPT", file_or_text=True
    )
    verify_probes: bool = flag(False, help="Skip probes that the answering model answers without the conversation.")
    format: Literal["all", "json", "markdown"] = flag("all", help="Write these reports.", saved=False)

    @classmethod
    def migrate(cls, saved: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return saved values for today's version. Before --sample-seed existed, `seed` also chose the probes."""
        return {"sample_seed": saved.get("seed") or 0, **saved}

    @model_validator(mode="before")
    @classmethod
    def _read_old_forms(cls, given: Any) -> Any:
        """Accept old values: a single name as `model`, and kinds of probes as `--probes`."""
        if not isinstance(given, Mapping):
            return given
        read = {**given}
        for name in ("model", "probe_file"):
            if isinstance(read.get(name), str):
                read[name] = (read[name],)
        models = read.pop("model", None) or ()
        if "dataset" not in read and models and Path(models[-1].removesuffix(".gz")).suffix in _DATASET_SUFFIXES:
            *models, read["dataset"] = models  # `--model NAME DATASET`
        read |= {"model": tuple(models)} if models else {}
        named = read.get("probe_file") or ()
        if named and set(named) <= set(PROBE_TYPES):
            read |= {"kinds": tuple(named), "probe_file": ()}
        return read

    @field_validator("probe_file")
    @classmethod
    def _one_file(cls, files: tuple[str, ...]) -> tuple[str, ...]:
        if len(files) > 1 and all(Path(name).suffix for name in files):
            raise BadInput("--probes", f"{len(files)} files are named", expected="one probe file")
        for name in files:
            if not Path(name).suffix or len(files) > 1:
                raise unknown_name("--probes", f"{preview(name)} is not a probe file", name, PROBE_TYPES)
        return files

    @field_validator("kinds")
    @classmethod
    def _in_usual_order(cls, kinds: tuple[ProbeType, ...]) -> tuple[ProbeType, ...]:
        return tuple(kind for kind in PROBE_TYPES if kind in kinds)
