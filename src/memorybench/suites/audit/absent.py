"""Probes about what a conversation does not tell, each beside an answerable one.

Verified by code, on every turn, speaker and fact of the conversation:
- complement and false premise: none of the words that stand beside the question in `absent_topics`, which are what it
  asks about and what would answer it or bear it out, stands anywhere, in any inflection;
- near miss: the word that was put in place of another stands nowhere;
- not yet stated: no turn after the plan, and no other fact, names a content word of what was planned.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from .absent_topics import NAMES, PREMISES, RELATIVES, SIBLINGS, TOPICS, Topic
from .choosing import Study, Told
from .clauses import read_clause
from .evidence import Heard
from .grammar import possessive
from .probes import Probe, probe
from .subjects import USER, split_subject, tidy
from .verbs import past
from .words import akin, content, words

NOT_TOLD = "The conversation does not tell."
MOST = 32
"""Absent probes of one conversation; never more than it has recall probes."""
_KINDS = 4
_PLANS = re.compile(r"^(?:plan|hope|want|intend|aim|wish|planning|hoping|going|aiming|like) to \w+$")


def absent_probes(study: Study, told: Sequence[Told], others: Sequence[Heard], seed: int) -> Iterator[Probe]:
    """As many of each kind as there are, up to a quarter of the recall probes."""
    if not told:
        return
    chance = random.Random(f"{seed}:{study.heard.conversation.id}")
    quota = -(-min(len(told), MOST) // _KINDS)
    kinds = (
        _complements(study, told, others, chance), _near_misses(study, told, chance),
        _false_premises(study, told, chance), _not_yet_stated(study, told),
    )  # fmt: skip
    found = [[candidate for _, candidate in zip(range(quota), kind, strict=False)] for kind in kinds]
    yield from (candidate for row in zip_longest(*found) for candidate in row if candidate is not None)


def recall_id(study: Study, told: Told) -> str:
    return f"{study.heard.conversation.id}/recall/{told.fact.id}"


def _absent(study: Study, kind: str, name: str, question: str, twin: Told, facts: Sequence[str] = ()) -> Probe:
    return probe(
        study.heard, f"absent/{kind.replace(' ', '-')}/{name}", "hallucination", kind, question, NOT_TOLD,
        origin=twin.askable.origin, related_facts=facts, twin=recall_id(study, twin), abstain=True,
    )  # fmt: skip


class _Twins:
    """Gives each absent probe an answerable one that opens alike, the least used first."""

    def __init__(self, told: Sequence[Told]) -> None:
        self._told = told
        self._used: Counter[str] = Counter()

    def beside(self, question: str) -> Told:
        opening = words(question)[:1]
        # of equals min takes the first
        twin = min(self._told, key=lambda one: (words(one.askable.question)[:1] != opening, self._used[one.fact.id]))
        self._used[twin.fact.id] += 1
        return twin


def _complements(study: Study, told: Sequence[Told], others: Sequence[Heard], chance: random.Random) -> Iterator[Probe]:
    """Attributes that other conversations speak of come first."""
    topics = list(TOPICS)
    chance.shuffle(topics)
    topics.sort(key=lambda topic: not any(_speaks_of(other, topic) for other in others))
    return _of_topics(study, told, "complement", topics)


def _false_premises(study: Study, told: Sequence[Told], chance: random.Random) -> Iterator[Probe]:
    return _of_topics(study, told, "false premise", chance.sample(PREMISES, len(PREMISES)))


def _of_topics(study: Study, told: Sequence[Told], kind: str, topics: Sequence[Topic]) -> Iterator[Probe]:
    twins, subject = _Twins(told), _main_subject(study.heard, told)
    for topic in topics:
        if _speaks_of(study.heard, topic):
            study.dropped["not absent"] += 1
            continue
        question = topic.question.replace("{own}", possessive(subject)).replace("{s}", subject)
        yield _absent(study, kind, topic.name.replace(" ", "-"), question, twins.beside(question))


def _speaks_of(heard: Heard, topic: Topic) -> bool:
    return heard.has_any((topic.words,))


def _main_subject(heard: Heard, told: Sequence[Told]) -> str:
    """The speaker whom most facts are about; where facts are about the user, or speakers have no names, the user."""
    speakers = {turn.speaker for turn in heard.conversation.turns}
    subjects = Counter(one.askable.subject for one in told if one.askable.subject in speakers | {USER})
    return max(subjects, key=lambda subject: (subjects[subject], subject), default=USER)


def _near_misses(study: Study, told: Sequence[Told], chance: random.Random) -> Iterator[Probe]:
    shuffled = list(told)
    chance.shuffle(shuffled)
    for one in shuffled:
        if one.askable.origin in ("cloze", "given"):
            continue
        for old, new in _swaps(one, chance):
            if study.heard.has_any((new,)):
                study.dropped["not absent"] += 1
                continue
            question = re.sub(rf"\b{re.escape(old)}\b", new, one.askable.question, count=1, flags=re.IGNORECASE)
            question = question[0].upper() + question[1:]
            yield _absent(study, "near miss", one.fact.id, question, one, [one.fact.id])
            break


def _swaps(one: Told, chance: random.Random) -> Iterator[tuple[str, str]]:
    """Words of the question and what may be put in their place, the nearest first."""
    asked = set(re.findall(r"[\w-]+", one.askable.question.lower()))
    for group in SIBLINGS:
        for word in sorted(asked & set(group)):
            yield from ((word, other) for other in chance.sample(group, len(group)) if other != word)
    subject = one.askable.subject
    name = re.match(r"[A-Z][\w-]+", subject)
    if name:
        yield from ((name[0], other) for other in chance.sample(NAMES, len(NAMES)))
    elif subject == USER:
        yield from ((USER, f"{USER}'s {other}") for other in chance.sample(RELATIVES, len(RELATIVES)))


def _not_yet_stated(study: Study, told: Sequence[Told]) -> Iterator[Probe]:
    """How a plan went of which nothing was heard again."""
    twins = _Twins(told)
    for one in told:
        split = split_subject(tidy(one.fact.content))
        clause = None if split is None else read_clause(*split)
        if clause is None or not _PLANS.match(clause.verb) or not clause.phrases:
            continue
        planned = " ".join(phrase.whole for phrase in clause.phrases if phrase.kind in ("object", "place", "with"))
        if not content(planned):
            continue
        if _heard_again(study, one, planned):
            study.dropped["not absent"] += 1
            continue
        question = f"How did it go when {clause.subject} {past(clause.main)} {planned}?"
        yield _absent(study, "not yet stated", one.fact.id, question, twins.beside(question), [one.fact.id])


def _heard_again(study: Study, one: Told, planned: str) -> bool:
    wanted = content(planned)
    later = study.heard.turn_keys[max(one.places) + 1 :]
    facts = (content(fact.content) for fact in study.heard.conversation.facts if fact.id != one.fact.id)
    return any(akin(key, held) for kept in (*later, *facts) for held in kept for key in wanted)
