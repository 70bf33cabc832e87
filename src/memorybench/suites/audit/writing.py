"""Questions that a model writes. They pass the same gates as ours before they are asked."""

from __future__ import annotations

from memorybench.core.contracts import Model
from memorybench.core.conversation import Turn
from memorybench.core.errors import Unreadable
from memorybench.core.plans import Steps

from .probes import Probe

_PROMPT = """\
Put the question below into the words of somebody who talks to an assistant that was there. It must ask for exactly the
same, be one sentence that ends with a question mark, and hold none of these words: {hidden}.

Question: {question}

Reply with the question and nothing else.
"""
_LONGEST = 300


async def write_question(steps: Steps, writer: Model, probe: Probe) -> str:
    """Recorded as a step. A reply that is no question leaves ours as it is."""
    hidden = ", ".join(dict.fromkeys((probe.expected_answer, *probe.stale))) if not probe.abstain else "(none)"
    text = _PROMPT.format(hidden=hidden, question=probe.question)

    async def ask() -> str:
        reply = (await writer.complete([Turn(role="user", content=text)])).text.strip().strip('"')
        if "\n" in reply or not reply.endswith("?") or len(reply) > _LONGEST:
            raise Unreadable(f"the model wrote no question: {reply[:80]!r}")
        return reply

    inputs = {"model": writer.subject, "prompt": text}
    try:
        return await steps.once("question", inputs, ask, str, on=writer.subject, paid=True)
    except Unreadable:
        return probe.question
