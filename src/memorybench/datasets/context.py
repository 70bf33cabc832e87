"""Reads the context of an item: its sessions and turns, which providers get, and its gold marks, which they do not."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
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

_PARAGRAPH = re.compile(r"\n\s*\n")


@dataclass(frozen=True, slots=True)
class ItemContext:
    """The sessions of an item and the ids that evidence refers to."""

    sessions: tuple[Session, ...]
    sessions_named: Mapping[str, tuple[str, ...]]
    """From a session's id in the data to our ids; two if the data repeats the id."""
    turns_named: Mapping[str, tuple[str, ...]]
    session_of: Mapping[str, str]
    """The session of each turn."""
    marked: tuple[str, ...]
    """Turns that the data marks as containing the answer."""
    empty_turns: int
    """Number of turns without content, which are skipped."""

    @property
    def has_repeated_ids(self) -> bool:
        return any(len(ids) > 1 for ids in self.sessions_named.values())

    @property
    def undated_sessions(self) -> int:
        return sum(session.at is None for session in self.sessions)

    @property
    def dates(self) -> list[datetime]:
        return [comparable(session.at) for session in self.sessions if session.at is not None]


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


class _ReadTurn(NamedTuple):
    turn: Turn
    fields: Any
    """Its fields in the file, without removed fields and gold marks."""
    marked: bool


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
        sessions: list[Session] = []
        names: dict[str, tuple[str, ...]] = {}
        turns: dict[str, str] = {}
        marked: list[str] = []
        empty = 0
        for position, raw in enumerate(self._raw_sessions(item), 1):
            # session ids may reveal which session is gold; keys of an object are only numbers
            id = raw.name if self._context.type == "object" else f"s{position}"
            read = list(self._turns.read(item, raw, id))
            empty += len(raw.turns) - len(read)
            if not read:
                continue
            for one in read:
                assert one.turn.id is not None
                if one.turn.id in turns:
                    problem = f"duplicate turn id {preview(one.turn.id)}"
                    raise BadInput(_where(item, raw.place), problem, remedy="make ids unique, or remove dialogId")
                turns[one.turn.id] = id
            marked += [one.turn.id or "" for one in read if one.marked]
            names[raw.name] = (*names.get(raw.name, ()), id)
            at = read_date(raw.date, partial(_where, item, raw.place), self._date_format)
            text = None if self._template is None else self._template.render(_template_values(id, at, read))
            sessions.append(Session(id=id, at=at, turns=tuple(one.turn for one in read), text=text))
        if not sessions:
            raise self._empty(item)
        turns_named = {turn: (turn,) for turn in turns}
        return ItemContext(tuple(sessions), names, turns_named, turns, tuple(marked), empty)

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
        raise BadInput(
            _where(item, place),
            f"invalid context {preview(value)}",
            expected=f"an {self._context.type}" if self._context.type != "string" else "a text",
            remedy="correct schema.context.type",
        )

    def _array_sessions(self, item: Document, members: list[Any], place: Place | None) -> list[_Raw]:
        are_sessions = self._ids is not None or self._dates is not None or self._turns_within is not None
        if not are_sessions and all(isinstance(member, dict) for member in members):
            return [_Raw("", members, place)]
        names = self._one_each(item, self._ids, len(members), "ids")
        dates = self._one_each(item, self._dates, len(members), "dates")
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

    def _one_each(self, item: Document, path: Path | None, count: int, what: str) -> list[Any] | None:
        """Return the dates or ids of the sessions, from a list or from a path into each session."""
        if path is None:
            return None
        values = path.all(item.value)
        if len(values) == 1 and isinstance(values[0], list):
            values = values[0]
        if len(values) != count:
            problem = f"{len(values)} {what} for {count} sessions"
            where = _where(item, place_of(path, item.value))
            raise BadInput(where, problem, expected="one per session", remedy="correct the item")
        return values

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

    def read(self, item: Document, session: _Raw, id: str) -> Iterator[_ReadTurn]:
        """Yield the turns with content. Default ids are made from the place in the file."""
        for index, raw in enumerate(session.turns):
            where = None if session.place is None else (*session.place, index)
            fields = {k: v for k, v in raw.items() if k not in self._removed} if isinstance(raw, dict) else raw
            content = self._content(item, fields, where)
            if content:
                yield self._turn(item, fields, content, where, f"{id}:{index + 1}")

    def _turn(self, item: Document, fields: Any, content: str, place: Place | None, default_id: str) -> _ReadTurn:
        speaker = _text(self._speaker, fields)
        date = self._date.first(fields) if self._date else None
        turn = Turn(
            role=_text(self._role, fields) or "user",
            content=self._transform(content),
            speaker=self._transform(speaker) if speaker else None,
            at=None if date is None else read_date(date, lambda: _where(item, place), self._date_format),
            id=_text(self._id, fields) or default_id,
        )
        visible = fields
        if isinstance(fields, dict):
            visible = {k: _map_texts(v, self._transform) for k, v in fields.items() if k not in self._hidden}
        return _ReadTurn(turn, visible, bool(self._mark and self._mark.first(fields)))

    def _content(self, item: Document, fields: Any, place: Place | None) -> str:
        if isinstance(fields, str):
            return fields.strip() and fields
        if not isinstance(fields, dict) or self._content_path is None:
            raise BadInput(
                _where(item, place), f"invalid turn {preview(fields)}", expected="a text, or itemSchema.content"
            )
        matches = self._content_path.all(fields)
        content = matches[0] if matches else fields
        if isinstance(content, dict | list | bool):
            problem = f"{self._content_path.text} is missing or not a text"
            remedy = "correct the turn, or schema.context.itemSchema"
            raise BadInput(_where(item, place), problem, expected="the content of the turn", remedy=remedy)
        text = "" if content is None else str(content)
        caption = _text(self._caption, fields)
        if caption:
            text = f"{text} [shares a photo: {caption}]".lstrip()
        return text.strip() and text


def _template_values(id: str, at: datetime | None, turns: Sequence[_ReadTurn]) -> dict[str, Any]:
    date = at.isoformat() if at else ""
    return {
        "date": date,
        "sessionDate": date,
        "session": [one.fields for one in turns],
        "dialogue": "\n".join(f"{one.turn.speaker or one.turn.role}: {one.turn.content}" for one in turns),
        "sessionId": id,
        "speakers": ", ".join(dict.fromkeys(one.turn.speaker for one in turns if one.turn.speaker)),
    }


def place_of(path: Path, value: Any) -> Place | None:
    """Return the place in `value` that the path leads to; None if it may lead to several."""
    if not path.singular:
        return None
    return next((route.steps for route in path.routes if route.all(value)), path.routes[0].steps)


def _where(item: Document, place: Place | None) -> str:
    return item.where(*(place or ()))


def _optional(path: str | None, where: str) -> Path | None:
    return None if path is None else Path.parse(path, where)


def _text(path: Path | None, fields: Any) -> str | None:
    value = path.first(fields) if path else None
    return None if value is None or isinstance(value, dict | list) else str(value)


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
