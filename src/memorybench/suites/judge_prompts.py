"""The prompts of a judge, from a benchmark's config and the command line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from memorybench.core.errors import BadInput
from memorybench.datasets.prompts import judge_prompt
from memorybench.files.reading import read_text
from memorybench.judging.prompts import JudgePrompts

if TYPE_CHECKING:
    from memorybench.datasets.config import BenchmarkConfig

JUDGE_PROMPT_FLAG = "--judge-prompt"
_FILE_NAME = re.compile(r"[^\n]*\.[A-Za-z]{1,5}")
_LONGEST_PATH = 4096


def prompt_text(given: str, flag: str) -> str:
    """Return the content of the file that `given` names, or `given` itself if it is a prompt.

    Raise BadInput if it looks like a path to a missing file: a judge that is asked "prompts/strict.txt" would still
    answer yes or no.
    """
    path = Path(given)
    if len(given) < _LONGEST_PATH and "\n" not in given and path.is_file():
        return read_text(path)
    if given.strip() and "${" not in given and (not re.search(r"\s", given.strip()) or _FILE_NAME.fullmatch(given)):
        raise BadInput(
            f"{flag} {given}",
            "file not found",
            expected="an existing file, or the text of a prompt",
            remedy="check the path",
        )
    return given


def judge_prompts(config: BenchmarkConfig | None, override: str | None = None) -> JudgePrompts:
    """Return the judge prompts of a benchmark; without a config, the bundled ones by question type.

    `override`, the value of --judge-prompt, replaces all of them.
    """
    replacement = None
    if override is not None:
        if config is not None and not config.evaluation.judge_prompts.user_override:
            raise BadInput(
                JUDGE_PROMPT_FLAG,
                f"the config of {config.name} does not allow another judge prompt (judgePrompts.userOverride: false)",
                remedy="leave the flag out",
            )
        replacement = judge_prompt(prompt_text(override, JUDGE_PROMPT_FLAG), JUDGE_PROMPT_FLAG)
    if config is None:
        return JudgePrompts.by_name(replacement)
    own, where = config.evaluation.judge_prompts, f"{config.name}: evaluation.judgePrompts"
    return JudgePrompts(
        override=replacement,
        by_type={
            kind: judge_prompt(text, f"{where}.byQuestionType.{kind}") for kind, text in own.by_question_type.items()
        },
        default=None if own.default is None else judge_prompt(own.default, f"{where}.default"),
        names={kind.name: kind.evaluation_prompt for kind in config.question_types},
        off_by_one=frozenset(kind.name for kind in config.question_types if kind.allow_off_by_one),
    )
