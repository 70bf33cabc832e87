"""Code that a config names. It runs only where the user has said so."""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memorybench.suites.answering import Custom
from memorybench.vocabulary.errors import BadInput
from memorybench.vocabulary.questions import Question


def load_evaluator(named: str | None, allowed: bool) -> Custom:
    """`./file.py:function` of question, gold answer and response, plain or async, giving True, False or a share."""
    function = _function(named or "", allowed)

    async def evaluate(question: Question, response: str) -> float:
        given = function(question.question, question.answers[0] if question.answers else "", response)
        value = float(await given if inspect.isawaitable(given) else given)
        if not 0 <= value <= 1:
            raise BadInput(f"customEvaluator {named}", f"gave {value}", expected="True, False or a share from 0 to 1")
        return value

    return evaluate


def _function(named: str, allowed: bool) -> Callable[[str, str, str], Any]:
    where = f"customEvaluator {named}"
    file, _, name = named.rpartition(":")
    if not file or not name:
        raise BadInput(where, "is no function in a file", expected="./evaluators/mine.py:score")
    if not allowed:
        raise BadInput(where, "is code from a config file", remedy="read it, then say --allow-code")
    path = Path(file)
    spec = importlib.util.spec_from_file_location(f"memorybench_custom_{path.stem}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise BadInput(where, "there is no such Python file", remedy="check the path; it is taken from this folder")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise BadInput(where, f"can not be imported: {type(error).__name__}: {error}") from error
    function = getattr(module, name, None)
    if not callable(function):
        raise BadInput(where, f"{path.name} has no function {name}")
    found: Callable[[str, str, str], Any] = function
    return found
