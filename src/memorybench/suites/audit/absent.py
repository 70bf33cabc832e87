"""Probes about what a conversation does not tell, each beside an answerable one.

Verified by code, on every turn, speaker and fact of the conversation:
- complement and false premise: none of the words that stand beside the question in `absent_topics`, which are what it
  asks about and what would answer it or bear it out, stands anywhere, in any inflection;
- near miss: the word that was put in place of another stands nowhere;
- not yet stated: no turn after the plan, and no other fact, speaks of what was planned: names none of its names, and
  less than half of what else it is called by.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import islice, zip_longest

from memorybench.datasets.audit import AuditFact

from .absent_topics import NAMES, PREMISES, RELATIVES, SIBLINGS, TOPICS, Topic
from .choosing import AskableFact, Study
from .clauses import Clause, read_clause
from .evidence import IndexedConversation
from .grammar import possessive
from .probes import Probe, probe
from .subjects import USER, split_subject, tidy
from .verbs import past
from .wellformed import is_half, malformed
from .words import content, keys, words

NOT_TOLD = "The conversation does not tell."
MOST = 32
"""Absent probes of one conversation; never more than it has recall probes."""
_KINDS = 4
_PLANS = re.compile(
    r"^(?:plan|hope|want|intend|aim|wish|planning|hoping|going|aiming|like|intending|wanting|expect|looking forward)"
    r" (?:to )?\w+$"
)
_LONGEST_PLAN = 10


def absent_probes(study: Study, told: Sequence[AskableFact], elsewhere: Collection[str], seed: int) -> Iterator[Probe]:
    """As many of each kind as there are, up to a quarter of the recall probes.

    `elsewhere` has the names of topics that other conversations speak of.
    """
    if not told:
        return
    chance = random.Random(f"{seed}:{study.indexed.conversation.id}")
    most = min(len(told), MOST)
    quota = -(-most // _KINDS)
    twins = _Twins(told)
    kinds = (
        _not_yet_stated(study, told, twins), _near_misses(study, told, twins, chance),
        _complements(study, told, twins, elsewhere, chance), _false_premises(study, told, twins, chance),
    )  # fmt: skip
    found = [list(islice(kind, quota)) for kind in kinds]
    yield from islice((candidate for row in zip_longest(*found) for candidate in row if candidate is not None), most)


def recall_id(study: Study, told: AskableFact) -> str:
    return f"{study.indexed.conversation.id}/recall/{told.fact.id}"


def _absent(study: Study, kind: str, name: str, question: str, twin: AskableFact, facts: Sequence[str] = ()) -> Probe:
    return probe(
        study.indexed, f"absent/{kind.replace(' ', '-')}/{name}", "hallucination", kind, question, NOT_TOLD,
        origin=twin.askable.origin, related_facts=facts, twin=recall_id(study, twin), abstain=True,
    )  # fmt: skip


_SERVES = 2
"""Absent probes that one answerable one stands beside."""
Sort = tuple[str, str]


def sort_of(question: str) -> Sort:
    """The question word, and whether a state, a habit or an event is asked for."""
    said = words(question)
    if said[:1] == ("fill",):
        return "fill", "gap"
    word = next((word for word in said if word in _ASKING), said[0])
    if word == "how":
        after = said[said.index("how") + 1]
        word = {"many": "number", "much": "number", "old": "number"}.get(after, f"how {after}")
    elif word in ("what", "which") and said[said.index(word) + 1] in ("year", "month", "day", "date", "time"):
        word = "when"
    front = next((one for one in said[1:] if one in _FRONTS), "")
    return {"which": "what", "whose": "who", "whom": "who"}.get(word, word), _FRONTS.get(front, "state")


_ASKING = frozenset(("what", "which", "who", "whom", "whose", "where", "when", "why", "how"))
_FRONTS = {"did": "event", "does": "habit", "do": "habit", "happened": "event"}


class _Twins:
    """Gives each absent probe an answerable one of its sort, the least used first, as long as there are some."""

    def __init__(self, told: Sequence[AskableFact]) -> None:
        self._sorts: dict[Sort, list[AskableFact]] = {}
        for one in told:
            self._sorts.setdefault(sort_of(one.askable.question), []).append(one)
        self._used: Counter[str] = Counter()

    def beside(self, question: str) -> AskableFact | None:
        alike = self._sorts.get(sort_of(question), [])
        # of equals min takes the first
        twin = min(alike, key=lambda one: self._used[one.fact.id], default=None)
        return twin if twin is not None and self.take(twin) else None

    def take(self, one: AskableFact) -> bool:
        if self._used[one.fact.id] >= _SERVES:
            return False
        self._used[one.fact.id] += 1
        return True


def _complements(
    study: Study,
    told: Sequence[AskableFact],
    twins: _Twins,
    elsewhere: Collection[str],
    chance: random.Random,
) -> Iterator[Probe]:
    """Attributes that other conversations speak of come first."""
    topics = list(TOPICS)
    chance.shuffle(topics)
    topics.sort(key=lambda topic: topic.name not in elsewhere)
    return _of_topics(study, told, twins, "complement", topics)


def _false_premises(study: Study, told: Sequence[AskableFact], twins: _Twins, chance: random.Random) -> Iterator[Probe]:
    return _of_topics(study, told, twins, "false premise", chance.sample(PREMISES, len(PREMISES)))


def _of_topics(
    study: Study, told: Sequence[AskableFact], twins: _Twins, kind: str, topics: Sequence[Topic]
) -> Iterator[Probe]:
    subject = _main_subject(study.indexed, told)
    for topic in topics:
        if _speaks_of(study.indexed, topic):
            study.dropped["not absent"] += 1
            continue
        question = topic.question.replace("{own}", possessive(subject)).replace("{s}", subject)
        twin = twins.beside(question)
        if twin is None:
            study.dropped["no twin"] += 1
            continue
        yield _absent(study, kind, topic.name.replace(" ", "-"), question, twin)


def spoken_topics(heard: IndexedConversation) -> Counter[str]:
    """Return the names of the topics that a conversation speaks of."""
    return Counter(topic.name for topic in TOPICS if _speaks_of(heard, topic))


def _speaks_of(heard: IndexedConversation, topic: Topic) -> bool:
    return heard.has_any((topic.words,))


def _main_subject(heard: IndexedConversation, told: Sequence[AskableFact]) -> str:
    """The speaker whom most facts are about; where facts are about the user, or speakers have no names, the user."""
    speakers = heard.speakers | {USER}
    subjects = Counter(one.askable.subject for one in told if one.askable.subject in speakers)
    return max(subjects, key=lambda subject: (subjects[subject], subject), default=USER)


def _near_misses(study: Study, told: Sequence[AskableFact], twins: _Twins, chance: random.Random) -> Iterator[Probe]:
    shuffled = list(told)
    chance.shuffle(shuffled)
    for one in shuffled:
        if one.askable.origin in ("cloze", "given"):
            continue
        question = _near_miss(study, one, chance)
        if question is not None and twins.take(one):
            yield _absent(study, "near miss", one.fact.id, question, one, [one.fact.id])


def _near_miss(study: Study, one: AskableFact, chance: random.Random) -> str | None:
    for old, new in _swaps(one, chance):
        if study.indexed.has_any((new,)):
            study.dropped["not absent"] += 1
            continue
        question = re.sub(rf"\b{re.escape(old)}\b", new, one.askable.question, count=1, flags=re.IGNORECASE)
        question = question[0].upper() + question[1:]
        if not malformed(question, one.askable.value):
            return question
    return None


_HERS, _HIS = re.compile(r"\b(?:her|hers|she|herself)\b", re.I), re.compile(r"\b(?:his|him|he|himself)\b", re.I)


def _swaps(one: AskableFact, chance: random.Random) -> Iterator[tuple[str, str]]:
    """Nouns of the question and what may be put in their place, the nearest first; of nobody's gender but theirs."""
    question = one.askable.question
    genders = {name for name, said in (("f", _HERS), ("m", _HIS)) if said.search(question)}
    for group in SIBLINGS:
        for word in (word for word in group if _stands_alone(word, question) and not genders):
            yield from ((word, other) for other in chance.sample(group, len(group)) if other != word)
    if len(genders) > 1:
        return
    subject = one.askable.subject
    name = re.fullmatch(r"[A-Z][\w-]+", subject)
    if name:
        names = [other for gender in sorted(genders or "fm") for other in NAMES[gender]]
        yield from ((name[0], other) for other in chance.sample(names, len(names)))
    elif subject == USER:
        relatives = [other for gender in sorted(genders or "fm") for other in RELATIVES[gender]]
        yield from ((USER, f"{USER}'s {other}") for other in chance.sample(relatives, len(relatives)))


def _stands_alone(word: str, question: str) -> bool:
    """Whether it is a noun of its own there: the user's dog, not the mother tongue, the camper van or to play."""
    owned = rf"(?:'s?|\bthe|\bhis|\bher|\btheir|\ban?) {word}(?=\?|'s\b| (?:do|does|did|is|was|live|work)\b)"
    return re.search(owned, question) is not None


def _not_yet_stated(study: Study, told: Sequence[AskableFact], twins: _Twins) -> Iterator[Probe]:
    """How a plan went of which nothing was heard again."""
    asked = {one.fact.id: one for one in told}
    for fact in study.history.current:
        clause = _plan(fact)
        place = _told_at(study, fact, asked.get(fact.id))
        if clause is None or place is None:
            continue
        planned = " ".join(phrase.whole for phrase in clause.phrases if phrase.kind in ("object", "place", "with"))
        if not content(planned) or len(planned.split()) > _LONGEST_PLAN or is_half(planned):
            continue
        if _heard_again(study, fact, place, planned):
            study.dropped["not absent"] += 1
            continue
        question = f"What happened when {clause.subject} {past(clause.main)} {planned}?"
        twin = twins.beside(question) or _own(asked.get(fact.id), twins)
        if twin is None:
            study.dropped["no twin"] += 1
        else:
            yield _absent(study, "not yet stated", fact.id, question, twin, [fact.id])


def _told_at(study: Study, fact: AuditFact, asked: AskableFact | None) -> int | None:
    if asked is not None:
        return max(asked.places)
    return None if fact.turn is None else study.indexed.place(fact.turn)


def _own(asked: AskableFact | None, twins: _Twins) -> AskableFact | None:
    """What was planned, where no event is told to stand beside."""
    alike = asked is not None and sort_of(asked.askable.question)[0] == "what"
    return asked if alike and asked is not None and twins.take(asked) else None


def _plan(fact: AuditFact) -> Clause | None:
    split = split_subject(tidy(fact.content))
    clause = None if split is None else read_clause(*split)
    if clause is None or not clause.phrases or not clause.main:
        return None
    if re.search(r"\b(?:not|never)\b", clause.verb) or clause.main in (
        "be",
        "have",
        "get",
        "make",
        "do",
        "know",
        "see",
    ):
        return None
    return clause if _PLANS.match(clause.verb) or clause.front == "will" else None


def _heard_again(study: Study, fact: AuditFact, place: int, planned: str) -> bool:
    named = frozenset(keys(" ".join(re.findall(r"[A-Z][\w-]+", planned)))) - frozenset(
        keys(" ".join(study.indexed.speakers))
    )
    wanted = content(planned)
    later = study.indexed.turn_keys[place + 1 :]
    facts = (content(other.content) for other in study.indexed.conversation.facts if other.id != fact.id)
    return any(named & held or len(wanted & held) * 2 >= len(wanted) for held in (*later, *facts))
