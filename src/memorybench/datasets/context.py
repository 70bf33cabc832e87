"""Reads the context of an item: its sessions and turns, which providers get, and its gold marks, which they do not."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import Any, NamedTuple

from memorybench.core.conversation import Session, Turn
from memorybench.core.errors import BadInput
from memorybench.files.jsonpaths import Path
from memorybench.files.located import Document, Place
from memorybench.files.templates import Template
from memorybench.text.sanitize import preview

from .config import Context, ItemSchema, Preprocessing
from .config_reading import SESSION_VARIABLES
from .dates import read_date

_NO_TEXT = (dict, list, bool)
_PARAGRAPH = re.compile(r"\n\s*\n")


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

    @cached_property
    def sessions(self) -> tuple[Session, ...]:
        return self.make_sessions()

    @cached_property
    def session_of(self) -> Mapping[str, str]:
        """The session of each turn."""
        return {turn.id or "": session.id for session in self.sessions for turn in session.turns}

    @property
    def has_repeated_ids(self) -> bool:
        return any(len(ids) > 1 for ids in self.sessions_named.values())


def comparable(at: datetime) -> datetime:
    """Return the date with a time zone: UTC if it has none."""
    return at if at.tzinfo else at.replace(tzinfo=UTC)


class _Raw(NamedTuple):
    """A session of the file."""

    name: str
    """Its id in the data."""
    turns: Sequence[Any]
    place: Place | None
    """Place of its turns within the item; None: unknown."""
    date: Any = None

    def turn_place(self, index: int) -> Place | None:
        return None if self.place is None else (*self.place, index)


class _Kept(NamedTuple):
    """A session without its empty turns."""

    raw: _Raw
    id: str
    at: datetime | None
    turns: Sequence[tuple[int, Any]]
    """The index of each turn in the file, and its fields without the removed ones."""


class ContextReader:
    """Reads the context of items by the paths of a config."""

    def __init__(self, context: Context, preprocessing: Preprocessing, date_format: str | None, where: str) -> None:
        """Parse the paths of the config; `where` names the config in error messages."""
        self._context = context
        self._date_format = date_format
        self._field = Path.parse(context.field, where)
        self._ids = _optional(context.id_field, where)
        self._dates = _optional(context.date_field, where)
        self._turns_within = _optional(context.turns_field, where)
        self._turns = _TurnReader(context.item_schema, preprocessing, date_format, where)
        self._template: Template | None = None
        if preprocessing.format_template is not None:
            self._template = Template.parse(preprocessing.format_template, SESSION_VARIABLES, where)

    def read(self, item: Document) -> ItemContext:
        """Check the sessions and turns of an item, and return its context."""
        sessions: list[_Kept] = []
        names: dict[str, tuple[str, ...]] = {}
        marked: dict[str, MarkedTurn] = {}
        turn_ids: set[str] = set()
        empty = 0
        for position, raw in enumerate(self._raw_sessions(item), 1):
            # session ids may reveal which session is gold; keys of an object are only numbers
            id = raw.name if self._context.type == "object" else f"s{position}"
            turns = self._turns.keep(item, raw)
            empty += len(raw.turns) - len(turns)
            if not turns:
                continue
            at = read_date(raw.date, partial(_where, item, raw.place), self._date_format)
            session = _Kept(raw, id, at, turns)
            self._turns.check_ids(item, session, turn_ids)
            marked |= self._turns.marked(session)
            names[raw.name] = (*names.get(raw.name, ()), id)
            sessions.append(session)
        if not sessions:
            raise self._empty(item)
        return ItemContext(
            make_sessions=lambda: tuple(self._session(item, session) for session in sessions),
            sessions_named=names,
            marked=marked,
            dates=[comparable(session.at) for session in sessions if session.at is not None],
            undated_sessions=sum(session.at is None for session in sessions),
            empty_turns=empty,
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

    def _raw_sessions(self, item: Document) -> Sequence[_Raw]:
        matches = self._field.all(item.value)
        place = place_of(self._field, item.value)
        value = next(iter(matches), None) if self._field.singular else matches
        if not value:
            raise self._empty(item)
        match self._context.type, value:
            case "array", list():
                return self._array_sessions(item, value, place)
            case "object", dict():
                return list(self._object_sessions(value, place or ()))
            case "string", str():
                return [_Raw("", [part for part in _PARAGRAPH.split(value) if part.strip()], None)]
        actual = {"list": "array", "dict": "object", "str": "string"}.get(type(value).__name__)
        raise BadInput(
            _where(item, place),
            f"invalid context {preview(value)}",
            expected=f"an {self._context.type}" if self._context.type != "string" else "a text",
            remedy=f"set schema.context.type: {actual}" if actual else "correct schema.context.field",
        )

    def _array_sessions(self, item: Document, members: list[Any], place: Place | None) -> list[_Raw]:
        are_sessions = self._ids is not None or self._dates is not None or self._turns_within is not None
        if not are_sessions and all(isinstance(member, dict) for member in members):
            return [_Raw("", members, place)]
        names, dates = self._ids_and_dates(item, len(members))
        sessions = []
        for index, member in enumerate(members):
            turns, within = self._turns_of(member, None if place is None else (*place, index))
            name = str(index) if names is None else str(names[index])
            sessions.append(_Raw(name, turns, within, None if dates is None else dates[index]))
        return sessions

    def _object_sessions(self, value: Mapping[str, Any], place: Place) -> Iterator[_Raw]:
        """Yield the sessions of an object, sorted by number. Dates without a session are ignored."""
        pattern = _number_pattern(self._context.session_pattern or "*")
        numbers = {key: int(match[1]) for key in value if (match := pattern.fullmatch(key))}
        for key, number in sorted(numbers.items(), key=lambda pair: pair[1]):
            date = None
            if self._context.date_pattern is not None:
                date = value.get(self._context.date_pattern.replace("*", str(number)))
            turns, within = self._turns_of(value[key], (*place, key))
            yield _Raw(key, turns, within, date)

    def _turns_of(self, member: Any, place: Place | None) -> tuple[Sequence[Any], Place | None]:
        if isinstance(member, dict) and self._turns_within is not None:
            turns = self._turns_within.first(member)
            inner = place_of(self._turns_within, member)
            place = (*place, *inner) if place is not None and inner is not None else None
            return (turns if isinstance(turns, list) else [] if turns is None else [turns]), place
        return (member, place) if isinstance(member, list) else ([member], None)

    def _ids_and_dates(self, item: Document, count: int) -> Sequence[list[Any] | None]:
        """Return the ids and the dates of the sessions, from a list or from a path into each session."""
        found: list[list[Any] | None] = []
        problems: list[str] = []
        place: Place | None = None
        context = self._context
        for key, text, path in (
            ("idField", context.id_field, self._ids),
            ("dateField", context.date_field, self._dates),
        ):
            values = None if path is None else path.all(item.value)
            if values is not None and len(values) == 1 and isinstance(values[0], list):
                values = values[0]
            found.append(values)
            if values is not None and len(values) != count:
                place = place or (place_of(path, item.value) if path else None)
                matched = f"`{text}` matched {_count(values, 'value')} for {_count(range(count), 'session')}"
                close = self._path_of_each(item, text or "", count)
                hint = f", did you mean `{close}`?" if close else ""
                problems.append(f"schema.context.{key} is a path within the item: {matched}{hint}")
        if problems:
            remedy = "correct the config, or the item"
            raise BadInput(_where(item, place), "; ".join(problems), expected="one value per session", remedy=remedy)
        return found

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

    def __init__(self, schema: ItemSchema, preprocessing: Preprocessing, date_format: str | None, where: str) -> None:
        self._content_path = _optional(schema.content or schema.text, where)
        self._role = _optional(schema.role, where)
        self._speaker = _optional(schema.speaker, where)
        self._id = _optional(schema.dialog_id, where)
        self._caption = _optional(schema.caption, where)
        self._date = _optional(schema.date, where)
        self._mark = _optional(schema.evidence, where)
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
        if self._date is not None:
            for index, fields in kept:
                self._turn_date(item, session, index, fields)  # an error is reported before anything is spent
        return kept

    def check_ids(self, item: Document, session: _Kept, known: set[str]) -> None:
        """Raise BadInput if a turn has the id of another. Default ids are unique."""
        if self._id is None:
            return
        for index, fields in session.turns:
            id = self._turn_id(session, index, fields)
            if id in known:
                where, problem = _where(item, session.raw.place), f"duplicate turn id {preview(id)}"
                raise BadInput(where, problem, remedy="make ids unique, or remove dialogId")
            known.add(id)

    def marked(self, session: _Kept) -> dict[str, MarkedTurn]:
        """Return the turns that the data marks as containing the answer."""
        if self._mark is None:
            return {}
        name, find = self._mark.name, self._mark.first
        return {
            self._turn_id(session, index, fields): MarkedTurn(session.id, _text(self._role, fields) or "user")
            for index, fields in session.turns
            if (fields.get(name) if name is not None and type(fields) is dict else find(fields))
        }

    def turn(self, item: Document, session: _Kept, index: int, fields: Any) -> Turn:
        speaker = _text(self._speaker, fields)
        return Turn(
            _text(self._role, fields) or "user",
            self._transform(self._content(item, session.raw, index, fields)),
            self._transform(speaker) if speaker else None,
            self._turn_date(item, session.raw, index, fields) if self._date else None,
            self._turn_id(session, index, fields),
        )

    def _turn_id(self, session: _Kept, index: int, fields: Any) -> str:
        """Return its id, or one made from its place in the file."""
        return (self._id and _text(self._id, fields)) or f"{session.id}:{index + 1}"

    def visible(self, fields: Any) -> Any:
        """Return the fields of a turn as templates show them: without gold marks."""
        if not isinstance(fields, dict):
            return fields
        return {k: _map_texts(v, self._transform) for k, v in fields.items() if k not in self._hidden}

    def _turn_date(self, item: Document, session: _Raw, index: int, fields: Any) -> datetime | None:
        date = self._date.first(fields) if self._date else None
        where = partial(_where, item, session.turn_place(index))
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
            content = fields.get(self._content_path.name, fields)
        else:
            content = next(iter(self._content_path.all(fields)), fields)
        if isinstance(content, _NO_TEXT):
            problem = f"{self._content_path.text} is missing or not a text"
            remedy = "correct the turn, or schema.context.itemSchema"
            where = _where(item, session.turn_place(index))
            raise BadInput(where, problem, expected="the content of the turn", remedy=remedy)
        text = "" if content is None else str(content)
        caption = _text(self._caption, fields)
        if caption:
            text = f"{text} [shares a photo: {caption}]".lstrip()
        return text.strip() and text


def place_of(path: Path, value: Any) -> Place | None:
    """Return the place in `value` that the path leads to; None if it may lead to several."""
    if not path.singular:
        return None
    return next((route.steps for route in path.routes if route.all(value)), path.routes[0].steps)


def _count(values: Sequence[Any], noun: str) -> str:
    return f"{len(values)} {noun}{'' if len(values) == 1 else 's'}"


def _where(item: Document, place: Place | None) -> str:
    return item.where(*(place or ()))


def _optional(path: str | None, where: str) -> Path | None:
    return None if path is None else Path.parse(path, where)


def _text(path: Path | None, fields: Any) -> str | None:
    if path is None:
        return None
    value = path.first(fields)
    return None if value is None or isinstance(value, (dict, list)) else str(value)


def _number_pattern(pattern: str) -> re.Pattern[str]:
    """Return a regular expression in which `*` is a number: `session_*` does not match `session_1_date_time`."""
    before, _, after = pattern.partition("*")
    return re.compile(rf"{re.escape(before)}(\d+){re.escape(after)}")


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
