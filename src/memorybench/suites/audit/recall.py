"""Recall probes: for each fact, a question that code can make, with the turns that answer it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import cached_property

from msgspec import Struct, field
from msgspec.structs import replace

from memorybench.datasets.audit import AuditFact

from .answers import content, date_tells, is_same, leaks, normalise, occurs, stems, tokens
from .cloze import NUMBER_REQUEST, gaps, is_one_weekday
from .evidence import IndexedConversation
from .history import PLAN, History, history
from .probes import Question
from .templates import GAP, attribute_name, question_for, subject_name, with_time
from .time_words import ask_as_of, day_text, has_time_words

RELATIVE = "relative time"
"""The reason for rejecting a value that depends on when it was said, such as `tomorrow`."""
ASKED_ALREADY = "asked already"
"""The reason for a fact of which another statement is asked about."""
_AGE = re.compile(
    r"\b(?:how old|years? old|wie alt|quel âge|cuántos años tiene|quanti anni ha|hoe oud)\b"
    r"|几岁|岁数|年龄|年纪|多大了|(?<!有)多大[？?]?$|何歳|年齢",
    re.IGNORECASE,
)
"""Matches a question about an age, which changes every year. 多大 also asks for sizes, which are left out then."""
_GUESSABLE = frozenset(("yes", "no", "true", "false", "male", "female"))
_NEGATION = re.compile(r"(?:not|never|no longer)\b", re.IGNORECASE)
_WAS = re.compile(r"\b(?:was|were)\b(?! born\b)")
"""Matches a statement about the past: it does not say when it was true."""
_BEFORE_VERB = re.compile(
    r"\b(?:I|we|they|will|would|can|could|must|should|might|cannot|(?:do|does|did|is|are|was|were) not|\w+n['’]t"
    r"|(?:I|you|we|he|she|they)['’](?:ll|d))\s+$",
    re.IGNORECASE,
)
"""Text before a word that shows that the word is a verb. The list is short: some verbs are not recognised."""

_Parts = tuple[frozenset[str], ...]


class AskableFact(Struct, frozen=True):
    """A fact with its question and the indexes of the turns that state it."""

    fact: AuditFact
    question: Question
    places: tuple[int, ...]
    topic: str
    """A key that is the same for facts with the same question, whatever day it names."""


class Material(Struct, frozen=True, dict=True):
    """The data from which the probes of one conversation are generated."""

    indexed: IndexedConversation
    history: History
    gaps: bool = True
    """Whether free-text facts get questions with a gap."""
    left_out: dict[str, str] = field(default_factory=dict)
    """By id of a fact: why it has no recall or duration probe. It may still have a probe of another kind."""
    dropped: Counter[str] = field(default_factory=Counter)
    """By reason: the number of absent facts and past values that are not asked about."""

    @classmethod
    def of(cls, indexed: IndexedConversation, *, gaps: bool) -> Material:
        return cls(indexed, history(indexed), gaps)

    @cached_property
    def _superseded(self) -> dict[str, AuditFact]:
        """By id of a fact: the older fact that it replaced."""
        by_id = {fact.id: fact for fact in self.indexed.conversation.facts}
        replaced = ((id, by_id.get(fact.supersedes or "")) for id, fact in by_id.items())
        return {id: fact for id, fact in replaced if fact is not None}

    @cached_property
    def _replaced(self) -> frozenset[str | None]:
        return frozenset(fact.supersedes for fact in self.indexed.conversation.facts)

    def is_relative(self, value: str) -> bool:
        return any(has_time_words(kind, value, self.indexed.languages) for kind in ("day", "distance"))

    def questions(self, fact: AuditFact) -> Iterator[Question]:
        """Yield questions for a fact: the one in the dataset, else a note, else statements with a gap.

        Notes and statements exist in English only, so that other conversations may have no question.
        """
        if fact.question and fact.value:
            yield Question(fact.question, fact.value, "given")
        elif not self.indexed.is_english:
            return
        elif fact.attribute and fact.value and (text := self._by_attribute(fact)):
            yield Question(text, fact.value, "structured")
        elif self.gaps:
            found = (Question(text, value, "cloze") for text, value in gaps(fact.content))
            yield from (one for one in found if not fact.value or occurs(one.value, fact.value))

    def _by_attribute(self, fact: AuditFact) -> str | None:
        if _WAS.search(fact.content) and fact.valid_from is None and fact.id not in self._replaced:
            return None  # `User's wife was Aase`
        return question_for(fact.subject, fact.attribute or "")

    def reject(self, question: Question, others: Sequence[str] = ()) -> str | None:
        """Return the name of the check that a question fails; None if it passes.

        The question must not reveal its value, nor one of `others`.
        """
        if normalise(question.value) in _GUESSABLE or question.value in self.indexed.speakers:
            return "guessable"
        if not content(question.value):
            return "no value"
        filled = question.text.replace(GAP, question.value)
        if self.is_relative(question.value) or (self.is_relative(filled) and not self.is_relative(question.text)):
            return RELATIVE
        is_english = self.indexed.is_english
        return "leak" if leaks(question.text, (question.value, *others), is_english=is_english) else None

    def choose(self, fact: AuditFact) -> AskableFact | str:
        """Return the fact with the first question that passes all checks, or the reason against its first question."""
        first = None
        for question in self.questions(fact):
            has_changed = self._has_changed(fact, question)
            if has_changed and question.origin == "cloze":
                first = first or "fits an earlier fact"
                continue
            reason = "not unique" if self._fits_another(fact, question) else self.reject(question)
            places = () if reason else self.indexed.find(fact, question.value)
            if places and question.origin == "structured" and not self._fits_note(question.value, places):
                reason = "value does not fit"
            if places and question.origin != "given" and is_one_weekday(fact.content, question.value):
                reason = RELATIVE
            if places and question.origin != "cloze" and self.is_planned(fact, places):
                reason = PLAN
            if places and question.origin == "cloze" and self._is_filled_otherwise(question, places):
                reason = "not unique"
            if reason is None and places:
                asked = self._choose_time(question, places, has_changed=has_changed)
                if not isinstance(asked, str):
                    return AskableFact(fact, asked, places, _question_key(question))
                reason = asked
            first = first or reason or "unanswerable"
        return first or ("not English" if not self.indexed.is_english else "no gap" if self.gaps else "free text")

    def is_outdated_question(self, question: Question, places: Sequence[int]) -> bool:
        """Return whether another day gives a question another answer, and it was answered before the last day.

        It asks for an age, or has words such as `this week`. A question with a gap tells its day, if that is needed.
        """
        has_day = question.origin != "cloze" and has_time_words("day", question.text, self.indexed.languages)
        if not has_day and not _AGE.search(question.text):
            return False
        now, day = self.indexed.now, self.last_day(places)
        return day is not None and now is not None and day < now.date()

    def last_day(self, places: Sequence[int]) -> date | None:
        """Return the day of the last of these turns; None if none has a date."""
        return max((turn.at.date() for turn in self.indexed.turns(places) if turn.at is not None), default=None)

    def _choose_time(self, question: Question, places: Sequence[int], *, has_changed: bool) -> Question | str:
        """Return the question, worded for the day on which its fact was stated, or the reason why it cannot be asked.

        A fact may have ended later: code cannot see that, and not every dataset marks it. A question of the dataset, or
        one in a conversation without dates, is reworded only if the fact has changed.
        """
        day = self.last_day(places)
        is_reworded = has_changed or (question.origin != "given" and day is not None)
        if is_reworded and day is not None and self.day_tells(day, question, (question.value,)):
            return "leak"
        text = self.ask_as_of(day, question) if is_reworded else question.text
        if question.origin == "given" and text == question.text and self.is_outdated_question(question, places):
            return RELATIVE
        return replace(question, text=text)

    def is_planned(self, fact: AuditFact, places: Sequence[int]) -> bool:
        """Return whether a fact was stated before it became true: it may have come true on another day, or never."""
        day = self.last_day(places)
        return fact.valid_from is not None and day is not None and day < fact.valid_from.date()

    def day_tells(self, day: date, question: Question, values: Iterable[str]) -> bool:
        """Return whether the day, as the question names it, contains one of the values."""
        is_given = question.origin == "given"
        shown = day_text(day, self.indexed.question_language(question.text) if is_given else "en")
        return any(date_tells(shown, value) for value in values)

    def ask_as_of(self, day: date | None, question: Question) -> str:
        """Return the text of the question, worded so that it asks about a day; None: about the end of the conversation.

        Return it unchanged if the dataset gives the question, in a language without such words in `TIME_WORDS`.
        """
        if question.origin == "given":
            return ask_as_of(question.text, day, self.indexed.question_language(question.text))
        if question.origin == "structured":
            time = "at the end of the conversation" if day is None else f"on {day_text(day)}"
            return with_time(question.text, f"as things stood {time}")
        request, _, statement = question.text.partition(": ")
        return question.text if day is None else f"{request} in a note of {day_text(day)}: {statement}"

    def _has_changed(self, fact: AuditFact, question: Question) -> bool:
        """Return whether a fact that this one replaced answers the question, too, or a planned fact will replace it.

        For a question with a gap: whether a fact that this one replaced has all words around the gap.
        """
        if question.origin == "cloze":
            words = _words_around_gap(question)
            return any(words <= content(earlier.content) for earlier in self._earlier(fact))
        return fact.id in self._replaced or any(
            normalise(one.text) == normalise(question.text)
            for earlier in self._earlier(fact)
            for one in self.questions(earlier)
        )

    def has_other_answer(self, fact: AuditFact, question: Question) -> bool:
        """Return whether a question without a gap has another answer, from another fact that is true now.

        That fact has the same question and another value, even if no turn contains the value. For a note, see also
        `has_second`.
        """
        values = self._current_values.get(_question_key(question), set()) - {normalise(question.value)}
        return bool(values) or (question.origin == "structured" and self.has_second(fact))

    @cached_property
    def _current_values(self) -> Mapping[str, set[str]]:
        """By question, unless it is a cloze: the normalised values that answer it now."""
        found: dict[str, set[str]] = defaultdict(set)
        for fact in self.history.current:
            question = next(self.questions(fact), None)
            if question is not None and question.origin != "cloze":
                found[_question_key(question)].add(normalise(question.value))
        return found

    def _fits_another(self, fact: AuditFact, question: Question) -> bool:
        """Return whether the question has another answer, from a fact that this one did not replace.

        For a question with a gap: a fact with all words around the gap and another name or number, or a fact that
        replaces this one. For others: see `has_other_answer`.
        """
        if question.origin != "cloze":
            return self.has_other_answer(fact, question)
        words = _words_around_gap(question)
        rarest = min((self._facts_with[word] for word in words), key=len, default=[])
        earlier = {one.id for one in self._earlier(fact)}
        is_number = question.text.startswith(NUMBER_REQUEST)
        filler = re.compile("" if is_number else r"\d" if re.search(r"\d", question.value) else r"\s[^\W\d_a-zß-ÿ]")
        return fact.id in self._replaced or any(
            words <= found
            and other.id not in earlier
            and not occurs(question.value, other.content)
            and filler.search(other.content)
            for other, found in rarest
        )

    def has_second(self, fact: AuditFact) -> bool:
        """Return whether another thing of the same kind has another value, as `user's second dog` beside `user's dog`.

        The other fact has all words of subject and attribute of this fact, and more. `user's dog` is not a second
        `user`, who is its owner.
        """
        parts = _parts(fact)
        similar = min((self._topics_with[word] for part in parts for word in part), key=len, default={})
        return any(
            other != parts and len(other) == len(parts) and all(map(frozenset.issubset, parts, other))
            and values - {normalise(fact.value or "")}
            for other, values in similar.items()
        )  # fmt: skip

    @cached_property
    def _topics_with(self) -> Mapping[str, Mapping[_Parts, set[str]]]:
        """By word of a subject or attribute: the topics with this word, each with its values."""
        found: dict[str, dict[_Parts, set[str]]] = defaultdict(lambda: defaultdict(set))
        for fact in self.indexed.conversation.facts:
            if fact.attribute and fact.value:
                parts = _parts(fact)
                for word in frozenset().union(*parts):
                    found[word][parts].add(normalise(fact.value))
        return found

    @cached_property
    def _facts_with(self) -> Mapping[str, Sequence[tuple[AuditFact, frozenset[str]]]]:
        """By word: the facts that contain it, each with all its words."""
        found: dict[str, list[tuple[AuditFact, frozenset[str]]]] = defaultdict(list)
        for fact in self.indexed.conversation.facts:
            words = content(fact.content)
            for word in words:
                found[word].append((fact, words))
        return found

    def _earlier(self, fact: AuditFact) -> Iterator[AuditFact]:
        seen = {fact.id}
        earlier = self._superseded.get(fact.id)
        while earlier is not None and earlier.id not in seen:
            yield earlier
            seen.add(earlier.id)
            earlier = self._superseded.get(earlier.id)

    def _is_filled_otherwise(self, question: Question, places: Sequence[int]) -> bool:
        """Return whether a turn has the two words before the gap, followed by something other than the value."""
        before = tokens(question.text.partition(": ")[2].partition(GAP)[0])[-2:]
        otherwise = re.compile(rf"(?<!\S){re.escape(' '.join(before))} (?!{re.escape(normalise(question.value))}\b)")
        return any(otherwise.search(normalise(turn.content)) for turn in self.indexed.turns(places))

    def _fits_note(self, value: str, places: Sequence[int]) -> bool:
        """Return whether a value can follow a label such as `Diet: `; `not decided` and `eat fish` cannot."""
        if _NEGATION.match(value):
            return False
        texts = (turn.content for turn in self.indexed.turns(places))
        spellings = (re.search(re.escape(value), text, re.IGNORECASE) for text in texts if value[0].islower())
        return not any(found and _BEFORE_VERB.search(found.string[: found.start()]) for found in spellings)


def _words_around_gap(question: Question) -> frozenset[str]:
    return content(question.text.partition(": ")[2])


def _parts(fact: AuditFact) -> _Parts:
    """Return the words of each owner and of the attribute. `user's dog` and `name` give three: user, dog and name.

    Articles do not count, but the last word is none: `flat A`.
    """
    topic = f"{subject_name(fact.subject)}'s {attribute_name(fact.attribute or '')}"
    parts = re.split(r"['’]s? ", topic)
    return tuple(frozenset(stems(part)) | ({"a"} if part.casefold().endswith(" a") else set()) for part in parts)


def choose_facts(material: Material, asked_as_change: Collection[str]) -> list[AskableFact]:
    """Return the current facts with a question that has one answer; note in `material.left_out` why others have none.

    Facts in `asked_as_change` get no recall question, because a conflict probe asks about them.
    """
    chosen = {
        fact.id: "asked as a change" if fact.id in asked_as_change else material.choose(fact)
        for fact in material.history.current
    }
    answers: dict[str, list[AskableFact]] = {}
    for one in chosen.values():
        if isinstance(one, AskableFact):
            answers.setdefault(one.topic, []).append(one)
    for same in answers.values():
        unique = all(is_same(one.question.value, same[0].question.value) for one in same)
        for one in same[1:] if unique else same:
            chosen[one.fact.id] = ASKED_ALREADY if unique else "not unique"
    if not material.gaps:  # a model writes the questions about the other facts
        stated = {normalise(one.fact.content) for one in chosen.values() if isinstance(one, AskableFact)}
        for fact in material.history.current:
            text = normalise(fact.content)
            if isinstance(chosen[fact.id], str) and fact.id not in asked_as_change and text in stated:
                chosen[fact.id] = ASKED_ALREADY
            stated.add(text)
    material.left_out.update((fact.id, reason) for fact, reason in material.history.past)
    material.left_out.update((id, one) for id, one in chosen.items() if isinstance(one, str))
    return [one for one in chosen.values() if isinstance(one, AskableFact)]


def _question_key(question: Question) -> str:
    """Return a key that is the same for equal questions. Singular and plural of an attribute count as equal."""
    if question.origin != "structured":
        return normalise(question.text)
    return " ".join(stems(question.text))
