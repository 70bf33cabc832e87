"""Loads Python functions that a config or a flag names, if the user allows code."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from memorybench.core.errors import BadInput
from memorybench.core.questions import Question
from memorybench.core.uses import Consent, Use

from .consent import require_code


def load_evaluator(named: str | None, consent: Consent) -> Callable[[Question, str], Awaitable[float]]:
    """Return an evaluator that calls the user's function `./file.py:function` and returns a score from 0 to 1.

    The function, which may be async, gets the question, the gold answer and the response.
    """
    where = f"customEvaluator {named}"
    function = load_function(where, named or "", consent)

    async def evaluate(question: Question, response: str) -> float:
        returned = function(question.question, question.answers[0] if question.answers else "", response)
        value = float(await returned if inspect.isawaitable(returned) else returned)
        if not 0 <= value <= 1:
            raise BadInput(
                where, f"the custom evaluator returned {value}", expected="True, False or a number from 0 to 1"
            )
        return value

    return evaluate


def load_function(where: str, named: str, consent: Consent, base: Path | None = None) -> Callable[..., Any]:
    """Import and return the function `./file.py:function` or `module:function`.

    A file is relative to `base`; None: to the current folder. Raise ConsentRequired unless the user allows code.
    """
    place, _, name = named.rpartition(":")
    if not place or not name:
        raise BadInput(where, "no function is named", expected="./file.py:function or module:function")
    require_code(where, [Use(named, "function")], consent)
    if place.endswith(".py"):
        from memorybench.providers.adapters import import_file

        path = (base or Path()) / place
        if not path.is_file():
            raise BadInput(where, f"Python file not found: {path.absolute()}", remedy="check the path")
        module = import_file(path, where)
    else:
        if str(Path.cwd()) not in sys.path:
            sys.path.insert(0, str(Path.cwd()))  # as `python -m` does
        try:
            module = importlib.import_module(place)
        except (Exception, SystemExit) as error:
            raise BadInput(
                where,
                f"{place} cannot be imported: {type(error).__name__}: {error}",
                remedy="correct the error in that module",
            ) from error
    function = getattr(module, name, None)
    if not callable(function):
        raise BadInput(where, f"{place} has no function {name}", remedy="check the name of the function")
    loaded: Callable[..., Any] = function
    return loaded
