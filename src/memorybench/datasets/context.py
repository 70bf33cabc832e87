"""Reads the context of an item: its sessions and turns, which providers get, and its gold marks, which they do not."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial
from itertools import pairwise, takewhile
from typing import Any, NamedTuple

from memorybench.core.conversation import Session, Turn
from memorybench.core.errors import BadInput
from memorybench.files.jsonpaths import Path
from memorybench.files.located import Document, Place
from memorybench.files.templates import Template
from memorybench.text.sanitize import preview

from .config import Context, ItemSchema, Preprocessing
from .config_reading import SESSION_VARIABLES
from .dates import Formats, read_date
from .paths import flatten, only, parse_path, place_of

_NO_TEXT = (dict, list, bool)
_ROLES = ("user", "assistant", "system", "tool")
_NOT_WORDS = re.compile(r"(?:[^\w+#%&@$€£¥°=<>-]|_|-(?!\d)|(?<=\w)-)+")
"""Signs that change what a text says are kept: C++ is not C#, and -5 is not 5."""
_PARAGRAPH = re.compile(r"\n\s*\n")


@dataclass(slots=True)
class LeftOut:
    """What a history has and is not read."""

    members: int = 0
    """Number of members after the prefix."""
    filtered: int = 0
    """Number of members and turns that filters of paths leave out."""
    keys: list[str] = field(default_factory=list)
    """Keys of an object that are neither sessions nor dates."""
    dates: int = 0
    """Number of keys of an object that are dates of no session."""


class MarkedTurn(NamedTuple):
    """A turn that the data marks as containing the answer."""

    session: str
    role: str


@dataclass(frozen=True)
class ItemContext:
    """The sessions of an item and the ids that evidence refers to.

    Sessions are made when they are first read: the questions of a large file are found without them.
    """

    make_sessions: Callable[[], tuple[Session, ...]]
    sessions_named: Mapping[str, tuple[str, ...]]
    """From a session's id in the data to our ids; two if the data repeats the id."""
    marked: Mapping[str, MarkedTurn]
    """By turn id."""
    dates: Sequence[datetime]
    """Of the sessions that have one, in their order, with a time zone."""
    undated_sessions: int
    """Number of sessions without a date."""
    empty_turns: int
    """Number of turns without content, which are skipped."""
    raw_turns: Callable[[], Iterator[Any]]
    """Yields the turns as the data has them."""
    number_turns: Callable[[], Mapping[int, str]]
    """Returns the ids of turns by their number in the data, from 0. Empty turns have a number and no id."""
    raw_turn_count: int
    """Number of turns, also of empty ones."""
    numbered_sessions: Mapping[int, str]
    """The ids of sessions by their number in the data, from 0. Empty sessions have a number and no id."""
    numbered_session_count: int
    """Number of sessions, also of empty ones."""
    session_count: int
    """Number of sessions with turns."""
    turn_count: int
    """Number of turns with content."""
    empty_sessions: int = 0
    """Number of sessions without turns, which are skipped."""
    images: int = 0
    """Number of pictures, which are not read."""
    left_out: LeftOut = field(default_factory=LeftOut)

    @cached_property
    def sessions(self) -> tuple[Session, ...]:
        return self.make_sessions()

    @cached_property
    def session_of(self) -> Mapping[str, str]:
        """The session of each turn."""
        return {turn.id or "": session.id for session in self.sessions for turn in session.turns}

    @cached_property
    def turn_texts(self) -> Mapping[str, str]:
        """The text of each turn, for evidence that is text."""
        return {turn.id or "": turn.content.strip() for session in self.sessions for turn in session.turns}

    @cached_property
    def turn_words(self) -> Mapping[str, str]:
        return {id: words_of(text) for id, text in self.turn_texts.items()}

    @cached_property
    def numbered_turns(self) -> Mapping[int, str]:
        return self.number_turns()

    @property
    def has_repeated_ids(self) -> bool:
        return any(len(ids) > 1 for ids in self.sessions_named.values())


def words_of(text: str) -> str:
    """Return the words of a text in lower case, without punctuation, but with signs such as + and %."""
    return _NOT_WORDS.sub(" ", text.casefold()).strip()


def comparable(at: datetime) -> datetime:
    """Return the date with a time zone: UTC if it has none."""
    return at if at.tzinfo else at.replace(tzinfo=UTC)


class _Raw(NamedTuple):
    """A session of the file."""

    name: str | None
    """Its id in the data; None: it has none."""
    turns: Sequence[Any]
    place: Place | None
    """Place of its turns within the item; None: unknown."""
    date: Any = None
    places: Sequence[Place] | None = None
    """The place of each turn, if they are not adjacent."""
    start: int = 0
    """Index of the first turn at `place`."""
    number: int | None = 0
    """Number among the sessions of the data, from 0; None: it is a part of one."""

    def turn_place(self, index: int) -> Place | None:
        if self.places is not None:
            return self.places[index]
        return None if self.place is None else (*self.place, self.start + index)


class _Kept(NamedTuple):
    """A session without its empty turns."""

    raw: _Raw
    id: str
    at: datetime | None
    turns: Sequence[tuple[int, Any]]
    """The index of each turn in the file, and its fields without the removed ones."""


_SESSION_NAMES = ("s", "session-")
"""Sessions are called s1, s2 …, or session-1, session-2 … if turns have such ids."""
_NO = frozenset({"", "0", "false", "no", "f", "n", "none", "null"})


def _is_marked(value: Any) -> bool:
    """Return whether a turn is marked as evidence; CSV files and some JSON have "false" as a text."""
    return value.strip().lower() not in _NO if isinstance(value, str) else bool(value)


class ContextReader:
    """Reads the context of items by the paths of a config."""

    def __init__(self, context: Context, preprocessing: Preprocessing, date_format: Formats, where: str) -> None:
        """Parse the paths of the config; `where` names the config in error messages."""
        self._context = context
        self._date_format = date_format
        self._field = parse_path(context.field, where)
        self._ids = _optional(context.id_field, where)
        self._dates = _optional(context.date_field, where)
        self._turns_within = _optional(context.turns_field, where)
        self._prefix = _optional(context.prefix, where)
        self._own_id = _optional(context.session_schema.id, where)
        self._own_date = _optional(context.session_schema.date, where)
        self._turns = _TurnReader(context.item_schema, preprocessing, date_format, where)
        self._members: tuple[Any, dict[Place, int]] | None = None
        """An item, and the numbers of the members of its history, by place."""
        self._template: Template | None = None
        if preprocessing.format_template is not None:
            self._template = Template.parse(preprocessing.format_template, SESSION_VARIABLES, where)

    def read(self, item: Document, cuts: Sequence[int] = (), upto: int | None = None) -> ItemContext:
        """Check the sessions and turns of an item, and return its context.

        A list of turns is divided into sessions at `cuts`, where other questions about the same history are asked. Only
        the first `upto` members are read, in the place of the number that `prefix` leads to.
        """
        for name in _SESSION_NAMES:
            context = self._read_as(name, item, cuts, upto)
            if context is not None:
                return context
        raise BadInput(_where(item, ()), "turns have the ids s1 and session-1", remedy="remove dialogId")

    def _read_as(self, session_name: str, item: Document, cuts: Sequence[int], upto: int | None) -> ItemContext | None:
        """Return the context with sessions of this name and a number; None if a turn has the id of a session."""
        sessions: list[_Kept] = []
        names: dict[str, tuple[str, ...]] = {}
        marked: dict[str, MarkedTurn] = {}
        turn_ids: set[str] = set()
        starts: list[int] = []
        numbers: dict[int, str] = {}
        left_out = LeftOut()
        empty = turn_count = empty_sessions = images = raw_count = number_count = 0
        for position, raw in enumerate(self._raw_sessions(item, cuts, upto, left_out), 1):
            # session ids may reveal which session is gold; keys of an object are only numbers
            is_keyed = self._context.type == "object"
            id = raw.name if is_keyed and raw.name is not None else f"{session_name}{position}"
            turns = self._turns.keep(item, raw)
            empty += len(raw.turns) - len(turns)
            turn_count += len(turns)
            images += self._turns.count_images(raw)
            start, raw_count = raw_count, raw_count + len(raw.turns)
            number_count = max(number_count, 0 if raw.number is None else raw.number + 1)
            if not turns:
                empty_sessions += not raw.turns
                continue
            at = read_date(raw.date, partial(_where, item, raw.place), self._date_format)
            session = _Kept(raw, id, at, turns)
            self._turns.check_ids(item, session, turn_ids)
            marked |= self._turns.marked(item, session)
            if raw.name is not None:
                names[raw.name] = (*names.get(raw.name, ()), id)
            if raw.number is not None:
                numbers[raw.number] = id
            sessions.append(session)
            starts.append(start)
        if not sessions:
            raise self._empty(item)
        if self._context.type != "object" and not turn_ids.isdisjoint(session.id for session in sessions):
            return None
        return ItemContext(
            make_sessions=lambda: tuple(self._session(item, session) for session in sessions),
            sessions_named=names,
            marked=marked,
            dates=[comparable(session.at) for session in sessions if session.at is not None],
            undated_sessions=sum(session.at is None for session in sessions),
            empty_turns=empty,
            raw_turns=lambda: (turn for session in sessions for turn in session.raw.turns),
            number_turns=lambda: {
                start + index: self._turns.turn_id(item, session, index, fields)
                for start, session in zip(starts, sessions, strict=True)
                for index, fields in session.turns
            },
            raw_turn_count=raw_count,
            numbered_sessions=numbers,
            numbered_session_count=number_count,
            session_count=len(sessions),
            turn_count=turn_count,
            empty_sessions=empty_sessions,
            images=images,
            left_out=left_out,
        )

    def _session(self, item: Document, kept: _Kept) -> Session:
        turns = tuple([self._turns.turn(item, kept, index, fields) for index, fields in kept.turns])
        render_text = None if self._template is None else partial(self._text, self._template, kept, turns)
        return Session(kept.id, turns, kept.at, render_text)

    def _text(self, template: Template, kept: _Kept, turns: Sequence[Turn]) -> str:
        date = kept.at.isoformat() if kept.at else ""
        return template.render(
            {
                "date": date,
                "sessionDate": date,
                "session": [self._turns.visible(fields) for _, fields in kept.turns],
                "dialogue": "\n".join(f"{turn.speaker or turn.role}: {turn.content}" for turn in turns),
                "sessionId": kept.id,
                "speakers": ", ".join(dict.fromkeys(turn.speaker for turn in turns if turn.speaker)),
            }
        )

    def _raw_sessions(self, item: Document, cuts: Sequence[int], upto: int | None, left_out: LeftOut) -> Sequence[_Raw]:
        matches = self._field.located(item.value)
        left_out.filtered += self._field.left_out(item.value)
        place = place_of(self._field, item.value)
        value = next((match for _, match in matches), None) if self._field.singular else [match for _, match in matches]
        if not value:
            raise self._empty(item)
        match self._context.type, value:
            case "array" | "turns", list():
                if place is not None:
                    members = [((*place, index), member) for index, member in enumerate(value)]
                    return self._array_sessions(item, members, place, cuts, upto, left_out)
                return self._array_sessions(item, matches, None, cuts, upto, left_out)
            case "object", dict():
                return list(self._object_sessions(value, place or (), left_out))
            case "string", str():
                if self._context.split == "lines":  # blank lines have numbers, too, and count as empty turns
                    return [_Raw(None, value.rstrip("\r\n").replace("\r\n", "\n").split("\n"), None)]
                return [_Raw(None, [part for part in _PARAGRAPH.split(value) if part.strip()], None)]
        actual = {"list": "array", "dict": "object", "str": "string"}.get(type(value).__name__)
        raise BadInput(
            _where(item, place),
            f"invalid context {preview(value)}",
            expected={"string": "a text", "turns": "a list"}.get(self._context.type, f"an {self._context.type}"),
            remedy=f"set schema.context.type: {actual}" if actual else "correct schema.context.field",
        )

    def prefix_of(self, item: Document) -> int | None:
        """Return how many members of the context are the history of the item's question; None: all."""
        return None if self._prefix is None else read_prefix(self._prefix, item, "schema.context.prefix")

    def member_number(self, item: Document, place: Place) -> int | None:
        """Return the number, from 1, of the member of the history that contains a place; None if none does."""
        start = place_of(self._field, item.value)
        if start is not None:
            step = place[len(start)] if len(place) > len(start) and place[: len(start)] == start else None
            return step + 1 if isinstance(step, int) else None
        if self._members is None or self._members[0] is not item.value:
            found = self._field.located(item.value)
            self._members = item.value, {at: number for number, (at, _) in enumerate(found, 1)}
        known = self._members[1]
        return next((known[place[:end]] for end in range(len(place), 0, -1) if place[:end] in known), None)

    def _array_sessions(
        self,
        item: Document,
        members: list[tuple[Place, Any]],
        place: Place | None,
        cuts: Sequence[int],
        upto: int | None,
        left_out: LeftOut,
    ) -> list[_Raw]:
        whole, upto = members, self.prefix_of(item) if upto is None else upto
        if upto is not None:
            if upto > len(members):
                where = _where(item, place_of(self._prefix, item.value) if self._prefix else None)
                problem = f"a prefix of {upto:,}, but the history has {_count(members, 'member')}"
                raise BadInput(where, problem, remedy="correct it, or schema.context.prefix")
            members = members[:upto]
            left_out.members += len(whole) - upto
        paths = (self._ids, self._dates, self._turns_within, self._own_id, self._own_date)
        are_sessions = any(path is not None for path in paths)
        is_one = self._context.type == "turns"
        if is_one or (not are_sessions and all(isinstance(member, dict) for _, member in members)):
            dates = self._ids_and_dates(item, [(place or (), None)], None)[1] if is_one else None
            date = dates[0] if dates else None
            inner = sorted(cut for cut in set(cuts) if 0 < cut < len(members))
            bounds = pairwise((0, *inner, len(members)))
            pieces = ((start, members[start:end]) for start, end in bounds if end)
            number = None if inner else 0
            return [
                _Raw(None, [turn for _, turn in piece], place, date, [at for at, _ in piece], start, number)
                for start, piece in pieces
            ]
        names, dates = self._ids_and_dates(item, whole, upto)
        # without ids, evidence may name sessions by their index
        has_ids = names is not None or self._own_id is not None
        sessions = []
        for index, (at, member) in enumerate(members):
            place_text, own = partial(_where, item, at), None
            name, date = None if names is None else names[index], None if dates is None else dates[index]
            name = None if name is None else str(name)
            if isinstance(member, dict):
                name = name or _text(self._own_id, member, place_text)
                own = only(self._own_date, member, place_text) if self._own_date is not None else None
            raw = self._raw(name if has_ids else str(index), member, at, date or own, left_out)
            sessions.append(raw._replace(number=index))
        return sessions

    def _object_sessions(self, value: Mapping[str, Any], place: Place, left_out: LeftOut) -> Iterator[_Raw]:
        """Yield the sessions of an object, sorted by number."""
        numbers = _numbered_keys(self._context.session_pattern or "*", value)
        date_keys = _numbered_keys(self._context.date_pattern, value)
        dated = {number: key for key, number in reversed(date_keys.items())}
        used = {dated[number] for number in numbers.values() if number in dated}
        left_out.dates += len(date_keys.keys() - used)
        left_out.keys += [key for key in value if key not in numbers and key not in date_keys]
        lowest = min(numbers.values(), default=0)
        for key, number in sorted(numbers.items(), key=lambda pair: pair[1]):
            date = value[dated[number]] if number in dated else None
            yield self._raw(key, value[key], (*place, key), date, left_out)._replace(number=number - lowest)

    def _raw(self, name: str | None, member: Any, place: Place, date: Any, left_out: LeftOut) -> _Raw:
        """Return a session. Lists within lists of turns are flattened, and all matches of `turnsField` are read."""
        matches: list[tuple[Place, Any]] = [((), member)]
        if isinstance(member, dict) and self._turns_within is not None:
            left_out.filtered += self._turns_within.left_out(member)
            matches = [(at, match) for at, match in self._turns_within.located(member) if match is not None]
        match matches:
            case [(at, list(turns))] if not any(type(turn) is list for turn in turns):
                return _Raw(name, turns, (*place, *at), date)
        found = [one for at, match in matches for one in flatten(match, (*place, *at))]
        return _Raw(name, [turn for _, turn in found], place, date, [at for at, _ in found])

    def _ids_and_dates(
        self, item: Document, members: Sequence[tuple[Place, Any]], upto: int | None
    ) -> Sequence[list[Any] | None]:
        """Return the ids and the dates of all sessions, from a list or from a path into each session.

        A list may also have one value for each of the first `upto` sessions, which are read. Other values belong to all
        sessions: if one has none, those of the later sessions would move to it.
        """
        found: list[list[Any] | None] = []
        problems: list[str] = []
        place: Place | None = None
        context = self._context
        for key, text, path in (
            ("idField", context.id_field, self._ids),
            ("dateField", context.date_field, self._dates),
        ):
            if path is None:
                found.append(None)
                continue
            located = path.located(item.value)
            if len(located) == 1 and isinstance(located[0][1], list):
                at, listed = located[0]
                located = [((*at, index), value) for index, value in enumerate(listed)]
            values = [value for _, value in located]
            found.append(values)
            is_enough = len(values) == len(members) or (path.singular and len(values) == upto)
            if is_enough and (path.singular or self._belong(path, located, members)):
                continue
            place = place or place_of(path, item.value)
            matched = f"`{text}` matched {_count(values, 'value')} for {_count(members, 'session')}"
            if is_enough:
                matched = f"`{text}` matched several values for one session and none for another"
            close = self._path_of_each(item, text or "", len(members))
            hint = f", did you mean `{close}`?" if close and not is_enough else ""
            problems.append(f"schema.context.{key} is a path within the item: {matched}{hint}")
        if problems:
            remedy = "correct the config or the item; if sessions lack them, schema.context.sessionSchema"
            raise BadInput(_where(item, place), "; ".join(problems), expected="one value per session", remedy=remedy)
        return found

    def _belong(self, path: Path, values: Sequence[tuple[Place, Any]], members: Sequence[tuple[Place, Any]]) -> bool:
        """Return whether the values at a path belong to the members of the history, in this order."""
        field = [*self._field.segments(), *(["[*]"] if self._field.singular else [])]
        pairs = zip(field, path.segments(), strict=False)
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        return _are_aligned([at for at, _ in values], [at for at, _ in members], shared)

    def _path_of_each(self, item: Document, path: str, count: int) -> str | None:
        """Return the path as one within each session, if each session has a match."""
        field = self._context.field if self._context.field.startswith("$") else f"$.{self._context.field}"
        close = f"{field.removesuffix('[*]')}[*].{path.removeprefix('$.')}"
        try:
            return close if len(Path.parse(close, "").all(item.value)) == count else None
        except BadInput:
            return None

    def _empty(self, item: Document) -> BadInput:
        return BadInput(
            _where(item, place_of(self._field, item.value)),
            "the context is empty",
            expected=f"a text, list or object at {self._context.field}",
            remedy="remove the item, or correct schema.context",
        )


class _TurnReader:
    """Reads turns by the paths of `schema.context.itemSchema`."""

    def __init__(self, schema: ItemSchema, preprocessing: Preprocessing, date_format: Formats, where: str) -> None:
        self._content_path = _optional(schema.content or schema.text, where)
        self._role = _optional(schema.role, where)
        self._speaker = _optional(schema.speaker, where)
        self._id = _optional(schema.dialog_id, where)
        self._caption = _optional(schema.caption, where)
        self._date = _optional(schema.date, where)
        self._mark = _optional(schema.evidence, where)
        self._image = _optional(schema.image, where)
        self._removed = frozenset(preprocessing.remove_fields)
        self._hidden = {str(route.steps[0]) for route in self._mark.routes} if self._mark else frozenset()
        self._transform: Callable[[str], str] = partial(html.escape, quote=False) if preprocessing.escape_html else str
        self._date_format = date_format

    def keep(self, item: Document, session: _Raw) -> list[tuple[int, Any]]:
        """Return the index and fields of the turns with content."""
        name = self._content_path.name if self._content_path and not self._caption else None
        kept = []
        for index, fields in enumerate(session.turns):
            if type(fields) is dict:
                if self._removed:
                    fields = {k: v for k, v in fields.items() if k not in self._removed}
                content = fields.get(name)  # a short cut for most turns of large files
                if type(content) is str and content and not content.isspace():
                    kept.append((index, fields))
                    continue
            if self._content(item, session, index, fields):
                kept.append((index, fields))
        self._check_fields(item, session, kept)
        return kept

    def _check_fields(self, item: Document, session: _Raw, kept: Sequence[tuple[int, Any]]) -> None:
        """Raise BadInput for an invalid date, role or speaker, which are read later: before anything is spent."""
        for path in filter(None, (self._role, self._speaker)):
            for index, fields in kept:
                if path.name is None or (type(fields) is dict and type(fields.get(path.name)) in (dict, list)):
                    _text(path, fields, partial(_where, item, session.turn_place(index)))
        if self._date is not None:
            for index, fields in kept:
                self._turn_date(item, session, index, fields)

    def count_images(self, session: _Raw) -> int:
        if self._image is None:
            return 0
        return sum(match is not None for fields in session.turns for match in self._image.all(fields))

    def check_ids(self, item: Document, session: _Kept, known: set[str]) -> None:
        """Raise BadInput if a turn has the id of another. Default ids are unique."""
        if self._id is None:
            return
        for index, fields in session.turns:
            id = self.turn_id(item, session, index, fields)
            if id in known:
                where, problem = _where(item, session.raw.place), f"duplicate turn id {preview(id)}"
                raise BadInput(where, problem, remedy="make ids unique, or remove dialogId")
            known.add(id)

    def marked(self, item: Document, session: _Kept) -> dict[str, MarkedTurn]:
        """Return the turns that the data marks as containing the answer."""
        if self._mark is None:
            return {}
        name, find = self._mark.name, self._mark.first
        return {
            self.turn_id(item, session, index, fields): MarkedTurn(session.id, _role(_text(self._role, fields)))
            for index, fields in session.turns
            if _is_marked(fields.get(name) if name is not None and type(fields) is dict else find(fields))
        }

    def turn(self, item: Document, session: _Kept, index: int, fields: Any) -> Turn:
        where = partial(_where, item, session.raw.turn_place(index))
        speaker = _text(self._speaker, fields, where)
        return Turn(
            _role(_text(self._role, fields, where)),
            self._transform(self._content(item, session.raw, index, fields)),
            self._transform(speaker) if speaker else None,
            self._turn_date(item, session.raw, index, fields) if self._date else None,
            self.turn_id(item, session, index, fields),
        )

    def turn_id(self, item: Document, session: _Kept, index: int, fields: Any) -> str:
        """Return its id, or one made from its place in the file."""
        if self._id is None:
            return f"{session.id}:{index + 1}"
        return (
            _text(self._id, fields, partial(_where, item, session.raw.turn_place(index))) or f"{session.id}:{index + 1}"
        )

    def visible(self, fields: Any) -> Any:
        """Return the fields of a turn as templates show them: without gold marks."""
        if not isinstance(fields, dict):
            return fields
        return {k: _map_texts(v, self._transform) for k, v in fields.items() if k not in self._hidden}

    def _turn_date(self, item: Document, session: _Raw, index: int, fields: Any) -> datetime | None:
        where = partial(_where, item, session.turn_place(index))
        date = only(self._date, fields, where) if self._date else None
        return None if date is None else read_date(date, where, self._date_format)

    def _content(self, item: Document, session: _Raw, index: int, fields: Any) -> str:
        if isinstance(fields, str):
            return fields.strip() and fields
        if not isinstance(fields, dict) or self._content_path is None:
            raise BadInput(
                _where(item, session.turn_place(index)),
                f"invalid turn {preview(fields)}",
                expected="a text, or itemSchema.content",
            )
        if self._content_path.name is not None:
            contents = [fields[self._content_path.name]] if self._content_path.name in fields else []
        else:
            contents = self._content_path.all(fields)
        # a list of texts, such as tags, is read whole
        contents = [text for content in contents for text in (content if _is_texts(content) else [content])]
        has_image = self._image is not None and bool(self._image.all(fields))
        if any(isinstance(content, _NO_TEXT) for content in contents) or not (contents or has_image):
            problem = f"{self._content_path.text} is missing or not a text"
            remedy = "correct the turn, or schema.context.itemSchema"
            where = _where(item, session.turn_place(index))
            raise BadInput(where, problem, expected="the content of the turn", remedy=remedy)
        text = "\n\n".join(str(content) for content in contents if content is not None)
        where_of = partial(_where, item, session.turn_place(index))
        caption = _text(self._caption, fields, where_of)
        if caption:
            text = f"{text} [shares a photo: {caption}]".lstrip()
        return text.strip() and text


def read_prefix(path: Path, part: Document, key: str) -> int:
    """Return the number of members that are history, which the path leads to within an item or question."""
    where = partial(_where, part, place_of(path, part.value))
    number = only(path, part.value, where)
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    if isinstance(number, bool) or not re.fullmatch(r"[0-9]+", str(number).strip()):
        raise BadInput(
            where(),
            f"invalid prefix {preview(number)}",
            expected="the number of members that are history",
            remedy=f"correct it, or {key}",
        )
    return int(number)


def _are_aligned(values: Sequence[Place], members: Sequence[Place], shared: int) -> bool:
    """Return whether each value belongs to the member at its position: no other is nearer to it.

    The first `shared` steps of both are matches of the same path, so that they must be the same.
    """
    near: dict[Place, set[int]] = {}
    for index, member in enumerate(members):
        for depth in range(len(member) + 1):
            near.setdefault(member[:depth], set()).add(index)
    depths = [next(depth for depth in range(len(value), -1, -1) if value[:depth] in near) for value in values]
    return len(set(depths)) < 2 and all(
        index in near[value[:depth]] and value[:shared] == members[index][:shared]
        for index, (value, depth) in enumerate(zip(values, depths, strict=True))
    )


def _role(text: str | None) -> str:
    """Return the role as APIs write it: some data has `User`."""
    lower = (text or "user").lower()
    return lower if lower in _ROLES else text or "user"


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(member, str) for member in value)


def _count(values: Sequence[Any], noun: str) -> str:
    return f"{len(values)} {noun}{'' if len(values) == 1 else 's'}"


def _where(item: Document, place: Place | None) -> str:
    return item.where(*(place or ()))


def _optional(path: str | None, where: str) -> Path | None:
    return None if path is None else parse_path(path, where)


def _text(path: Path | None, fields: Any, where: Callable[[], str] | None = None) -> str | None:
    """Return the text or number at a path. With `where`, anything else than one of them is an error."""
    if path is None:
        return None
    value = path.first(fields) if where is None else only(path, fields, where)
    if isinstance(value, dict | list):
        if where is not None:
            raise BadInput(where(), f"invalid value {preview(value)} at {path.text}", expected="a text or a number")
        return None
    return None if value is None else str(value)


def _numbered_keys(pattern: str | None, value: Mapping[str, Any]) -> dict[str, int]:
    """Return the keys that fit a pattern in which `*` is a number: `session_*` does not fit `session_1_date_time`."""
    if pattern is None:
        return {}
    before, _, after = pattern.partition("*")
    expression = re.compile(rf"{re.escape(before)}(\d+){re.escape(after)}")
    return {key: int(match[1]) for key in value if (match := expression.fullmatch(key))}


def _map_texts(value: Any, transform: Callable[[str], str]) -> Any:
    """Apply `transform` to every text in a JSON value."""
    match value:
        case str():
            return transform(value)
        case dict():
            return {key: _map_texts(inner, transform) for key, inner in value.items()}
        case list():
            return [_map_texts(inner, transform) for inner in value]
    return value
