"""Lets a judge decide whether a reply uses a memory that was found. Canaries, cases with a known answer, check it."""

from __future__ import annotations

from collections.abc import Sequence

from memorybench.core.plans import Steps
from memorybench.core.questions import Question
from memorybench.files.prompts import load_prompt
from memorybench.files.templates import Template

from .canaries import Canary
from .judge import Judge
from .prompts import JudgePrompt

USED = "used"
PROMPT = JudgePrompt(
    USED, Template.parse(load_prompt("judge-used"), ("question", "answer", "response"), "used prompt"), "entailment"
)

_CANARIES: Sequence[tuple[str, str, str, str]] = (
    ("paraphrased", "dinner plans", "The user does not eat meat.", "How about the vegetarian place on Elm Street?"),
    ("vague", "dinner plans", "The user does not eat meat.", "There are many good restaurants in town."),
    ("verbatim", "flight to Oslo", "The user's flight leaves at 7:40.", "Your flight leaves at 7:40."),
    ("swapped roles", "flight to Oslo", "The user's flight leaves at 7:40.", "The train to Bergen is cheaper."),
    ("paraphrased", "birthday of Ana", "Ana was born on 3 May 1990.", "Ana's birthday is in early May."),
    ("negated", "birthday of Ana", "Ana was born on 3 May 1990.", "I do not know when Ana's birthday is."),
    ("verbatim", "shoe size", "The user wears shoe size 43.", "I ordered them in size 43, as always."),
    ("near miss", "shoe size", "The user wears shoe size 43.", "Which size do you need?"),
    ("paraphrased", "project language", "The team writes its services in Rust.", "Then add it with cargo."),
    ("vague", "project language", "The team writes its services in Rust.", "A linter will find such mistakes."),
    ("verbatim", "name of the dog", "The user's dog is called Biscuit.", "Give Biscuit a hug from me!"),
    ("stale", "name of the dog", "The user's dog is called Biscuit.", "What is your dog called?"),
)
"""The kind, the query, the memory and the reply of each canary. Used and unused memories alternate."""


def _question(query: str, memory: str) -> Question:
    return Question(id="", haystack="", question=query, answers=(memory,))


CANARIES = tuple(Canary(PROMPT, kind, _question(query, memory), reply) for kind, query, memory, reply in _CANARIES)


async def is_used(steps: Steps, judge: Judge, query: str, memory: str, reply: str) -> bool:
    """Whether the reply uses the memory that the query found. Raise Unreadable if the judge's reply is unclear."""
    return (await judge.ask(steps, USED, PROMPT, _question(query, memory), reply, shared=True)).correct
