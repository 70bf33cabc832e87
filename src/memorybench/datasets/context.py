"""What an item tells: its sessions and turns, as providers get them, and where its gold lies, which they never see."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
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
class Told:
    sessions: tuple[Session, ...]
    sessions_named: Mapping[str, tuple[str, ...]]
    """From a session's id in the data to ours; two where the data repeats one."""
    turns_named: Mapping[str, tuple[str, ...]]
    session_of: Mapping[str, str]
    """The session of each turn."""
    marked: tuple[str, ...]
    """Turns that the data marks as holding the answer."""
    empty_turns: int
    """Turns in which nothing is said: they are left out."""

    @property
    def repeats(self) -> bool:
        return any(len(ids) > 1 for ids in self.sessions_named.values())

    @property
    def undated(self) -> int:
        return sum(session.at is None for session in self.sessions)

    @property
    def dates(self) -> list[datetime]:
        return [comparable(session.at) for session in self.sessions if session.at is not None]


def comparable(at: datetime) -> datetime:
    """A date without a time zone is taken for UTC."""
    return at if at.tzinfo else at.replace(tzinfo=UTC)


class _Raw(NamedTuple):
    """A session as the file has it."""

    name: str
    """As the data names it."""
    turns: Sequence[Any]
    place: Place | None
    """Of its turns, within the item; None: not known."""
    date: Any = None


class _Read(NamedTuple):
    turn: Turn
    fields: Any
    """What the file says of it, without what is removed and without marks of gold."""
    marked: bool


class ContextReader:
    def __init__(self, context: Context, preprocessing: Preprocessing, date_format: str | None, where: str) -> None:
        """`where` names the config in messages about its paths."""
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

    def read(self, item: Document) -> Told:
        sessions: list[Session] = []
        names: dict[str, tuple[str, ...]] = {}
        turns: dict[str, str] = {}
        marked: list[str] = []
        empty = 0
        for position, raw in enumerate(self._raw_sessions(item), 1):
            # ids of the data may tell which session is gold; keys of an object were made by counting
            id = raw.name if self._context.type == "object" else f"s{position}"
            read = list(self._turns.read(item, raw, id))
            empty += len(raw.turns) - len(read)
            if not read:
                continue
            for one in read:
                assert one.turn.id is not None
                if one.turn.id in turns:
                    problem = f"two turns are called {preview(one.turn.id)}"
                    raise BadInput(_where(item, raw.place), problem, remedy="give each its own id, or drop dialogId")
                turns[one.turn.id] = id
            marked += [one.turn.id or "" for one in read if one.marked]
            names[raw.name] = (*names.get(raw.name, ()), id)
            sessions.append(self._session(item, raw, id, read))
        if not sessions:
            raise self._nothing(item)
        named = {turn: (turn,) for turn in turns}
        return Told(tuple(sessions), names, named, turns, tuple(marked), empty)

    def _session(self, item: Document, raw: _Raw, id: str, read: Sequence[_Read]) -> Session:
        at = read_date(raw.date, lambda: _where(item, raw.place), self._date_format)
        turns = tuple(one.turn for one in read)
        return Session(id=id, at=at, turns=turns, text=self._text(id, at, read))

    def _text(self, id: str, at: datetime | None, read: Sequence[_Read]) -> str | None:
        if self._template is None:
            return None
        date = at.isoformat() if at else ""
        speakers = dict.fromkeys(one.turn.speaker for one in read if one.turn.speaker)
        return self._template.render(
            {
                "date": date,
                "sessionDate": date,
                "session": [one.fields for one in read],
                "dialogue": "\n".join(f"{one.turn.speaker or one.turn.role}: {one.turn.content}" for one in read),
                "sessionId": id,
                "speakers": ", ".join(speakers),
            }
        )

    def _raw_sessions(self, item: Document) -> Sequence[_Raw]:
        matches = self._field.all(item.value)
        place = place_of(self._field, item.value)
        value = next(iter(matches), None) if self._field.singular else matches
        if not value:
            raise self._nothing(item)
        match self._context.type, value:
            case "array", list():
                return self._listed(item, value, place)
            case "object", dict():
                return list(self._keyed(value, place or ()))
            case "string", str():
                return [_Raw("", [part for part in _PARAGRAPH.split(value) if part.strip()], None)]
        raise BadInput(
            _where(item, place),
            f"the context is {preview(value)}",
            expected=f"an {self._context.type}" if self._context.type != "string" else "a text",
            remedy="correct schema.context.type",
        )

    def _listed(self, item: Document, members: list[Any], place: Place | None) -> list[_Raw]:
        apart = self._ids is not None or self._dates is not None or self._turns_within is not None
        if not apart and all(isinstance(member, dict) for member in members):
            return [_Raw("", members, place)]
        names = self._one_each(item, self._ids, len(members), "ids")
        dates = self._one_each(item, self._dates, len(members), "dates")
        found = []
        for index, member in enumerate(members):
            turns, within = self._turns_of(member, None if place is None else (*place, index))
            name = str(index) if names is None else str(names[index])
            found.append(_Raw(name, turns, within, None if dates is None else dates[index]))
        return found

    def _keyed(self, value: Mapping[str, Any], place: Place) -> Iterator[_Raw]:
        """Sessions are iterated, not dates: a file may have dates of sessions that it lacks."""
        pattern = _numbered(self._context.session_pattern or "*")
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
        """The dates or ids of the sessions, from a list or from a path into each session."""
        if path is None:
            return None
        found = path.all(item.value)
        if len(found) == 1 and isinstance(found[0], list):
            found = found[0]
        if len(found) != count:
            raise BadInput(
                _where(item, place_of(path, item.value)),
                f"{len(found)} {what} for {count} sessions",
                expected="one for each session",
                remedy="correct the item",
            )
        return found

    def _nothing(self, item: Document) -> BadInput:
        return BadInput(
            _where(item, place_of(self._field, item.value)),
            "the context is empty",
            expected=f"something to remember at {self._context.field}",
            remedy="remove the item, or correct schema.context",
        )


class _TurnReader:
    def __init__(self, schema: ItemSchema, preprocessing: Preprocessing, date_format: str | None, where: str) -> None:
        self._said = _optional(schema.content or schema.text, where)
        self._role = _optional(schema.role, where)
        self._speaker = _optional(schema.speaker, where)
        self._id = _optional(schema.dialog_id, where)
        self._caption = _optional(schema.caption, where)
        self._date = _optional(schema.date, where)
        self._mark = _optional(schema.evidence, where)
        self._removed = frozenset(preprocessing.remove_fields)
        self._hidden = {str(route.steps[0]) for route in self._mark.routes} if self._mark else frozenset()
        self._written: Callable[[str], str] = _escaped if preprocessing.escape_html else str
        self._date_format = date_format

    def read(self, item: Document, session: _Raw, id: str) -> Iterator[_Read]:
        """The turns in which something is said, with ids by their place in the file."""
        for index, raw in enumerate(session.turns):
            where = None if session.place is None else (*session.place, index)
            fields = {k: v for k, v in raw.items() if k not in self._removed} if isinstance(raw, dict) else raw
            content = self._content(item, fields, where)
            if content:
                yield self._turn(item, fields, content, where, f"{id}:{index + 1}")

    def _turn(self, item: Document, fields: Any, content: str, place: Place | None, default_id: str) -> _Read:
        speaker = _text(self._speaker, fields)
        date = self._date.first(fields) if self._date else None
        turn = Turn(
            role=_text(self._role, fields) or "user",
            content=self._written(content),
            speaker=self._written(speaker) if speaker else None,
            at=None if date is None else read_date(date, lambda: _where(item, place), self._date_format),
            id=_text(self._id, fields) or default_id,
        )
        shown_fields = fields
        if isinstance(fields, dict):
            shown_fields = {k: _deeply(v, self._written) for k, v in fields.items() if k not in self._hidden}
        return _Read(turn, shown_fields, bool(self._mark and self._mark.first(fields)))

    def _content(self, item: Document, fields: Any, place: Place | None) -> str:
        if isinstance(fields, str):
            return fields.strip() and fields
        if not isinstance(fields, dict) or self._said is None:
            raise BadInput(
                _where(item, place), f"the turn is {preview(fields)}", expected="a text, or itemSchema.content"
            )
        found = self._said.all(fields)
        said = found[0] if found else fields
        if isinstance(said, dict | list | bool):
            raise BadInput(
                _where(item, place),
                f"no text at {self._said.text}" if found else f"there is no {self._said.text}",
                expected="what was said",
                remedy="correct the turn, or schema.context.itemSchema",
            )
        text = "" if said is None else str(said)
        caption = _text(self._caption, fields)
        if caption:
            text = f"{text} [shares a photo: {caption}]".lstrip()
        return text.strip() and text


def place_of(path: Path, value: Any) -> Place | None:
    """Where the path leads in `value`, where that is one place."""
    if not path.singular:
        return None
    return next((route.steps for route in path.routes if route.all(value)), path.routes[0].steps)


def _where(item: Document, place: Place | None) -> str:
    return item.where(*(place or ()))


def _optional(path: str | None, where: str) -> Path | None:
    return None if path is None else Path.parse(path, where)


def _text(path: Path | None, fields: Any) -> str | None:
    found = path.first(fields) if path else None
    return None if found is None or isinstance(found, dict | list) else str(found)


def _numbered(pattern: str) -> re.Pattern[str]:
    """`session_*` is `session_<number>`, and so never `session_1_date_time`."""
    before, _, after = pattern.partition("*")
    return re.compile(rf"{re.escape(before)}(\d+){re.escape(after)}")


def _escaped(text: str) -> str:
    return html.escape(text, quote=False)


def _deeply(value: Any, written: Callable[[str], str]) -> Any:
    match value:
        case str():
            return written(value)
        case dict():
            return {key: _deeply(inner, written) for key, inner in value.items()}
        case list():
            return [_deeply(inner, written) for inner in value]
    return value
