"""Whether a question that somebody else wrote may stand in for ours.

It passes the gates that ours has passed, and it still asks for the same: it speaks of what ours speaks of, opens with a
word that asks for the same sort of answer, and is no other probe's question.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from memorybench.datasets.audit import AuditConversation

from .absent_topics import PREMISES, TOPICS
from .evidence import IndexedConversation
from .gates import empty_context, leaks, vague
from .lexicon import KIN, PETS
from .probes import Probe
from .reading import ways_to_ask
from .words import akin, content, keys, words

_SAME = tuple(
    frozenset(keys(group))
    for group in (
        "live home town city reside based residence dwell", "job work occupation profession career employed do living",
        "old age", "name call named", "spouse fiancé husband wife married partner", "employer work company firm",
        "favourite favorite prefer best like love", "from origin come originally", "drive car vehicle",
        "own have possess", "purchase buy acquire", "child kid", "film movie", "start begin", "finish complete end",
        "cost price much pay", "big large size", "problem illness condition", "pet animal", "allergic allergy",
        "travel trip go", "attend visit", "speak language",
    )
)  # fmt: skip
"""Words that ask for the same thing."""
_SORTS = (
    ("when", r"when|what (?:day|date|time|year|month)|which (?:day|date|year|month|season)|how long ago|since"),
    ("where", r"where|which|what|whereabouts"),
    ("why", r"why|reason|what (?:made|caused|led|prompted)|how come|because"),
    ("who", r"who|whom|whose|which person|what is the name|what's the name|name|which|what (?:person|company)"),
    ("how many", r"how many|number|count|what (?:amount|quantity)"),
    ("how much", r"how much|amount|sum|price|cost|what"),
    ("how old", r"how old|age"),
    ("how long", r"how long|length|duration|since|period"),
    ("how", r"how|what|which"),
    ("what", r"what|which|who|whose|where|how"),
)
"""How ours opens, and the words one of which must ask in its place."""
_MOST = 0.6
"""Of the words that ours speaks of, so many must be there."""


def admit(probe: Probe, conversation: AuditConversation, *, others: Sequence[Probe] = ()) -> str | None:
    """Why a question that somebody else wrote may not be asked, or None.

    `others` are the probes it stands beside, the one it was written for among them: its question is the one to keep
    to. Without it the questions that we would ask about the same fact, or topic, are.
    """
    if probe.options:
        named = all(option in probe.question for option in probe.options)
        return None if named else "options not named"
    if not probe.abstain and leaks(probe.question, (probe.expected_answer, *probe.stale)):
        return "leak"
    if vague(probe.question):
        return "vague"
    if empty_context(probe.question, probe.expected_answer):
        return "empty context"
    if not probe.abstain and not _answered(probe, conversation):
        return "unanswerable"
    if any(other.id == probe.id and other.question == probe.question for other in others):
        return None  # it is ours
    if _asked_by_another(probe, others):
        return "not unique"
    originals = _originals(probe, conversation, others)
    if probe.abstain:
        return None if _still_absent(probe, conversation, originals) else "not absent"
    told = frozenset(key for turn in probe.gold_context for key in keys(turn.content))
    same = any(_asks_the_same(probe.question, one, told) for one in originals)
    return None if same else "asks for something else"


def _originals(probe: Probe, conversation: AuditConversation, others: Sequence[Probe]) -> list[str]:
    ours = [other.question for other in others if other.id == probe.id]
    if ours:
        return ours
    facts = [fact for fact in conversation.facts if fact.id in probe.related_facts]
    if facts:
        return [way.question for fact in facts for way in ways_to_ask(fact) if not vague(way.question)]
    name = probe.id.rpartition("/")[2]
    return [topic.question for topic in (*TOPICS, *PREMISES) if topic.name.replace(" ", "-") == name]


def _answered(probe: Probe, conversation: AuditConversation) -> bool:
    if probe.kind == "duration":
        return True  # counted, not said
    held = {key for turn in probe.gold_context or conversation.turns for key in keys(turn.content)}
    told = probe.current or probe.expected_answer
    return all(any(akin(one, key) for key in held) for one in content(told))


def _asked_by_another(probe: Probe, others: Iterable[Probe]) -> bool:
    """Whether it says no more than another question that has another answer."""
    about = _about(probe.question)
    for other in others:
        if other.id == probe.id or other.options or other.id == probe.twin or other.twin == probe.id:
            continue
        if other.expected_answer == probe.expected_answer and not other.abstain:
            continue
        if words(other.question) == words(probe.question) or (
            about and not other.abstain and not probe.abstain and about <= _about(other.question)
            and not set(probe.related_facts) & set(other.related_facts)
        ):  # fmt: skip
            return True
    return False


def _asks_the_same(question: str, original: str, told: frozenset[str] = frozenset(), *, of_whom: bool = True) -> bool:
    """`told` are words it may take from what was said. It may add a few of its own, but not another subject."""
    wanted, said = _about(original), set(keys(question))
    kept = [one for one in wanted if _said(one, said)]
    if of_whom and not all(_said(one, said) for one in _naming(original)):
        return False
    if not all(_said(one, {*keys(original), *told}) for one in _names(question)):
        return False
    own = [one for one in content(question) if not _said(one, {*keys(original), *told})]
    return len(kept) >= _MOST * len(wanted) and len(own) <= len(kept) and _same_sort(question, original)


def _about(question: str) -> frozenset[str]:
    """What it speaks of; a question of nothing but small words speaks of its verb."""
    body = re.sub(r"^Fill the gap[^:]*:|\{\w+\}'?s?", " ", question)
    held = content(body) | (frozenset(keys("name")) if "name" in words(body) else frozenset())
    return held or frozenset(keys(body)[1:]) - frozenset(keys("does do did is the a user"))


def _naming(question: str) -> frozenset[str]:
    """Names and kin: whom it is about must stay."""
    kin = " ".join(word for word in words(question) if word in KIN | PETS)
    return _names(question) | frozenset(keys(kin))


def _names(question: str) -> frozenset[str]:
    body = re.sub(r"^Fill the gap[^:]*: *\S+", " ", question)
    return frozenset(keys(" ".join(re.findall(r"(?<=\s)[A-Z][\w-]+", body))))


def _said(wanted: str, said: Iterable[str]) -> bool:
    same = frozenset().union(*(group for group in _SAME if wanted in group))
    return any(akin(wanted, one) or one in same for one in said)


def _same_sort(question: str, original: str) -> bool:
    if original.startswith("Fill the gap"):
        return True  # a statement may become a question of any sort
    opening = original.lower()
    allowed = next((sort for name, sort in _SORTS if opening.startswith(name)), None)
    return allowed is None or re.search(rf"\b(?:{allowed})\b", question, re.IGNORECASE) is not None


def _still_absent(probe: Probe, conversation: AuditConversation, originals: Sequence[str]) -> bool:
    """The words that were verified to stand nowhere must be there, beside most of what ours speaks of."""
    vocabulary = IndexedConversation(conversation).vocabulary
    said = set(keys(probe.question))
    if probe.kind != "not yet stated" and not any(_new(one, vocabulary) for one in content(probe.question)):
        return False
    for original in originals:
        new = [one for one in _about(original) if _new(one, vocabulary)]
        # by its fact alone a near miss is known but for the word that was exchanged
        of_whom = probe.kind != "near miss" or bool(new)
        if all(_said(one, said) for one in new) and _asks_the_same(probe.question, original, of_whom=of_whom):
            return True
    return False


def _new(one: str, vocabulary: frozenset[str]) -> bool:
    return not any(akin(one, held) for held in vocabulary)
