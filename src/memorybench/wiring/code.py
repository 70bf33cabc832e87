"""Code that a config names. It runs only where the user has said so."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from memorybench.core.errors import BadInput
from memorybench.core.questions import Question
from memorybench.suites.answering import Custom


def load_evaluator(named: str | None, allowed: bool) -> Custom:
    """`./file.py:function` of question, gold answer and response, plain or async, giving True, False or a share."""
    function = load_function(f"customEvaluator {named}", named or "", allowed)

    async def evaluate(question: Question, response: str) -> float:
        given = function(question.question, question.answers[0] if question.answers else "", response)
        value = float(await given if inspect.isawaitable(given) else given)
        if not 0 <= value <= 1:
            raise BadInput(f"customEvaluator {named}", f"gave {value}", expected="True, False or a share from 0 to 1")
        return value

    return evaluate


def load_function(where: str, named: str, allowed: bool, base: Path | None = None) -> Callable[..., Any]:
    """`./file.py:function` (from `base`, else from this folder) or `module:function`, found as Python finds it."""
    place, _, name = named.rpartition(":")
    if not place or not name:
        raise BadInput(where, "names no function", expected="./file.py:function or module:function")
    if not allowed:
        raise BadInput(where, "is code of the user's", remedy="read it, then say --allow-code")
    module = _from_file(where, (base or Path()) / place) if place.endswith(".py") else _from_path(where, place)
    function = getattr(module, name, None)
    if not callable(function):
        raise BadInput(where, f"{place} has no function {name}")
    found: Callable[..., Any] = function
    return found


def _from_file(where: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"memorybench_custom_{path.stem}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise BadInput(where, "there is no such Python file", remedy="check the path; it is taken from this folder")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise BadInput(where, f"can not be imported: {type(error).__name__}: {error}") from error
    return module


def _from_path(where: str, module: str) -> ModuleType:
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # as `python -m` does
    try:
        return importlib.import_module(module)
    except Exception as error:
        raise BadInput(where, f"can not be imported: {type(error).__name__}: {error}") from error
