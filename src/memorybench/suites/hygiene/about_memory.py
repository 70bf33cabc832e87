"""Assertions about what is in memory, told without disturbing it."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import closing
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from memorybench.core.errors import Lacking, Unreadable
from memorybench.core.stores import Capability, StoredFact
from memorybench.secrets.canaries import find_secret, find_text

from .claims import Bounded, Claim, Selecting, quoted
from .evidence import Evidence, Moment, Picture
from .matching import Matcher

Look = tuple[str | None, ...]
"""Whose fact it is, and all it says; how often it was retrieved does not change a fact."""


class Count(Bounded, Matcher):
    """How many facts there are, of those that match."""

    kind: Literal["count"]

    @model_validator(mode="after")
    def _says_how_many(self) -> Count:
        if not self.bounded:
            raise ValueError("says no number; give equals, at_least or at_most")
        return self

    async def fault(self, evidence: Evidence) -> str:
        matching = [fact for _, fact in evidence.facts(self.user) if self.matches(fact.content)]
        if self.admits(len(matching)):
            return ""
        return f"{len(matching)} facts with {self.told} instead of {self.wanted}{quoted(matching)}"


class Content(Selecting):
    """That some fact matches, or none does."""

    kind: Literal["content"]
    present: bool = True

    async def fault(self, evidence: Evidence) -> str:
        matching = [fact for _, fact in evidence.facts(self.user) if self.matches(fact.content)]
        if bool(matching) == self.present:
            return ""
        return f"a fact has {self.told}{quoted(matching)}" if matching else f"no fact has {self.told}"


class SecretFree(Claim):
    """That no planted secret stands in any fact, its metadata, its history or a file, in any encoding, whole or split.

    Files do not say whose they are: of one user, only facts and history can be told.
    """

    kind: Literal["secret_free"]
    secrets: tuple[str, ...] = ()
    """Kinds of secrets; without them, all that are planted."""

    async def fault(self, evidence: Evidence) -> str:
        told = _told_by(evidence.facts(self.user)) | _told(evidence.history)
        files = evidence.raw_texts() if self.user is None else {}
        for planted, value in evidence.planted.items():
            family, _, name = planted.partition(":")
            if family == "secret" and (not self.secrets or name in self.secrets):
                # a file repeats the facts: what is in memory is told by the fact that holds it
                for sighting in find_secret(value, told) or find_secret(value, files):
                    return f"the planted {name} is in memory ({sighting.encoding}: {sighting.where})"
        return ""

    def blind(self, evidence: Evidence) -> str:
        seen = evidence.capabilities - ({"files"} if self.user is not None else set())
        return _unseen(("history", "files"), seen)


class UnchangedSince(Claim):
    """That named facts still stand as they did, or, where none is named, that nothing came, went or changed."""

    kind: Literal["unchanged_since"]
    moment: str = "fixture"
    until: str | None = None
    """Another moment, instead of the end."""
    facts: tuple[str, ...] = ()

    def refers_to(self) -> Iterable[str]:
        return self.facts

    async def fault(self, evidence: Evidence) -> str:
        for moment in (self.moment, self.until):
            if moment is not None and moment not in evidence.moments:
                return f'it never came to "{moment}"'
        then = evidence.moments[self.moment]
        later = evidence.held if self.until is None else evidence.moments[self.until].held
        now = Counter(self._looks(later))
        if self.facts:
            return self._missing(then, now)
        before = Counter(self._looks(then.held))
        changes = [f'gone: "{look[1]}"' for look in (before - now).elements()]
        changes += [f'new: "{look[1]}"' for look in (now - before).elements()]
        return "; ".join(changes)

    def _looks(self, held: Picture) -> Iterable[Look]:
        return (_look(who, fact) for who, facts in held.items() if self.user in (None, who) for fact in facts)

    def _missing(self, then: Moment, now: Counter[Look]) -> str:
        named = {fact.id: _look(who, fact) for who, facts in then.held.items() for fact in facts}
        for name in self.facts:
            look = named.get(then.names.get(name, ""))
            if look is None:
                return f'"{name}" was not in memory at "{self.moment}"'
            if not now[look]:
                return f'"{look[1]}" no longer stands as it did'
        return ""


class _OfFacts(Bounded, Matcher):
    """About a number that a store keeps with each fact: of the one named, or of all that match."""

    fact: str | None = None

    @model_validator(mode="after")
    def _complete(self) -> _OfFacts:
        if not self.bounded:
            raise ValueError("says no number; give equals, at_least or at_most")
        if (self.fact is None) == (not self.selective):
            raise ValueError("give either fact (a name) or what its text contains")
        return self

    def refers_to(self) -> Iterable[str]:
        return () if self.fact is None else (self.fact,)

    def number(self, fact: StoredFact) -> float | None:
        raise NotImplementedError

    async def fault(self, evidence: Evidence) -> str:
        named = None if self.fact is None else evidence.names.get(self.fact)
        meant = [
            fact
            for _, fact in evidence.facts(self.user)
            if (fact.id == named if self.fact is not None else self.matches(fact.content))
        ]
        if not meant:
            return f"there is no fact {self.fact or self.told}"
        for fact in meant:
            number = self.number(fact)
            if number is None or not self.admits(number):
                told = "unknown" if number is None else f"{number:g}"
                return f'it is {told} instead of {self.wanted} for "{fact.content}"'
        return ""


class RetrievalCount(_OfFacts):
    needs: ClassVar[tuple[Capability, ...]] = ("list", "retrieval_count")

    kind: Literal["retrieval_count"]

    def number(self, fact: StoredFact) -> float | None:
        return fact.retrieval_count


class Trust(_OfFacts):
    needs: ClassVar[tuple[Capability, ...]] = ("list", "trust")

    kind: Literal["trust"]

    def number(self, fact: StoredFact) -> float | None:
        return fact.trust


class Residue(Claim):
    """That nothing is left of a text: no fact of anybody, no history, no byte of a file, in any encoding.

    All of the text, in this order: other facts rightly share its words. A planted secret is looked for in pieces, too.
    """

    kind: Literal["residue"]
    text: str = Field(min_length=6)
    places: tuple[Literal["facts", "history", "files"], ...] = ("facts", "history", "files")

    async def fault(self, evidence: Evidence) -> str:
        texts = {
            "facts": _told_by(evidence.facts(self.user)),
            "history": _told(evidence.history),
            "files": evidence.raw_texts(),
        }
        left = [place for place in self.places if self._stands_in(texts[place], evidence)]
        return f'"{self.text}" is left in {" and ".join(left)}' if left else ""

    def _stands_in(self, texts: Mapping[str, str], evidence: Evidence) -> bool:
        secrets = [value for name, value in evidence.planted.items() if name.startswith("secret:")]
        within = [secret for secret in secrets if secret in self.text]
        return bool(find_text(self.text, texts)) or any(find_secret(secret, texts) for secret in within)

    def blind(self, evidence: Evidence) -> str:
        return _unseen(self.places, evidence.capabilities)


class Sql(Claim):
    """What a query on the store's own SQLite files says; every file that has the tables must agree."""

    needs: ClassVar[tuple[Capability, ...]] = ("sql",)

    kind: Literal["sql"]
    query: str = Field(min_length=1)
    equals: str | int | float | None
    """The first column of the first row; null: no row, or NULL."""

    async def fault(self, evidence: Evidence) -> str:
        if evidence.files is None:
            raise Lacking("the store's files can not be copied")
        answers = [answer for path in _databases(evidence.files) for answer in self._asked(path)]
        if not answers:
            raise Unreadable(f'"{self.claim}" can not be asked: no file of the store has these tables and columns')
        wrong = next((answer for answer in answers if answer != self.equals), self.equals)
        return "" if wrong == self.equals else f"the query gives {wrong!r} instead of {self.equals!r}"

    def _asked(self, path: Path) -> Sequence[str | int | float | None]:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
            try:
                row = database.execute(self.query).fetchone()
            except sqlite3.OperationalError as error:
                if str(error).startswith(("no such table", "no such column")):
                    return ()  # another of its files may have them
                raise Unreadable(f'"{self.claim}" can not be asked: {error}') from error
        return (row[0] if row else None,)


def _told_by(facts: Iterable[tuple[str, StoredFact]]) -> dict[str, str]:
    """All that facts say, metadata too, each under a name: a secret may be split over them."""
    return {
        f"{field} of fact {fact.id} of {user}": text
        for user, fact in facts
        for field, text in (("content", fact.content), ("category", fact.category), ("source", fact.source))
        if text
    }


def _told(history: Sequence[str]) -> dict[str, str]:
    return {f"history {place}": text for place, text in enumerate(history, 1)}


def _unseen(places: Iterable[Literal["facts", "history", "files"]], capabilities: Set[Capability]) -> str:
    """The places that the store does not let one look into."""
    tiers: tuple[Literal["history", "files"], ...] = ("history", "files")
    return " and ".join(tier for tier in tiers if tier in places and tier not in capabilities)


def _look(user: str, fact: StoredFact) -> Look:
    trust = None if fact.trust is None else f"{fact.trust:.6f}"
    return user, fact.content, fact.category, fact.source, trust


def _databases(folder: Path) -> list[Path]:
    """SQLite files, by the bytes that they begin with."""
    return sorted(
        path for path in folder.rglob("*") if path.is_file() and path.read_bytes().startswith(b"SQLite format 3\0")
    )
