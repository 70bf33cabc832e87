"""Reads turns by the paths of `schema.context.itemSchema`."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from memorybench.core.conversation import Turn
from memorybench.core.errors import BadInput
from memorybench.files.jsonpaths import Path
from memorybench.files.located import Document, Place
from memorybench.text.sanitize import preview

from .config import Context, Preprocessing
from .dates import Formats, read_date
from .paths import only, optional_path

_NO_TEXT = (dict, list, bool)
_CONTAINERS = frozenset((dict, list))
_ROLES = ("user", "assistant", "system", "tool")
_LONGEST_NAME = 50
_NO = frozenset({"", "0", "false", "no", "f", "n", "none", "null"})


class MarkedTurn(NamedTuple):
    """A turn that the data marks as containing the answer."""

    session: str
    role: str


class RawSession(NamedTuple):
    """A session as the data has it, with turns that are not read yet."""

    name: str | None
    """The session's id in the data; None if it has none."""
    turns: Sequence[Any]
    place: Place | None
    """Place of the list of turns within the item; None if it is unknown."""
    date: Any = None
    places: Sequence[Place] | None = None
    """The place of each turn within the item, if the turns are not the members of one list."""
    number: int | None = 0
    """The index of the session in the data, from 0, or the number in its key. None: this is not a whole session of the
    data, but a part of one."""

    def turn_place(self, index: int) -> Place | None:
        if self.places is not None:
            return self.places[index]
        return None if self.place is None else (*self.place, index)


class KeptSession(NamedTuple):
    """A session without its empty turns."""

    raw: RawSession
    id: str
    at: datetime | None
    turns: Sequence[tuple[int, Any]]
    """The index of each turn in the session of the file, and its fields without those of `removeFields`."""
    turns_before: int
    """Number of turns of the item before this session, including empty ones."""


class TurnReader:
    """Reads turns by the paths of `schema.context.itemSchema`."""

    def __init__(self, context: Context, preprocessing: Preprocessing, date_format: Formats, where: str) -> None:
        schema = context.turn_schema
        self._separator = context.speaker_separator
        self._is_log = context.line_pattern is not None
        self._content_path = optional_path(schema.content or schema.text, where)
        self._role = optional_path(schema.role, where)
        self._speaker = optional_path(schema.speaker, where)
        self._id = optional_path(schema.dialog_id, where)
        self._caption = optional_path(schema.caption, where)
        self._date = optional_path(schema.date, where)
        self._mark = optional_path(schema.evidence, where)
        self._image = optional_path(schema.image, where)
        self._removed = frozenset(preprocessing.remove_fields)
        self._hidden = {str(route.steps[0]) for route in self._mark.routes} if self._mark else frozenset()
        self._transform: Callable[[str], str] = partial(html.escape, quote=False) if preprocessing.escape_html else str
        self._date_format = date_format

    def keep(self, item: Document, session: RawSession) -> list[tuple[int, Any]]:
        """Return the index and the fields of each turn of a session that has content."""
        is_plain = self._caption is None and self._separator is None
        name = self._content_path.name if self._content_path and is_plain else None
        kept = []
        for index, fields in enumerate(session.turns):
            if type(fields) is dict:
                if self._removed:
                    fields = {k: v for k, v in fields.items() if k not in self._removed}
                content = fields.get(name)  # a short cut for most turns of large files
                if type(content) is str and content and not content.isspace():
                    kept.append((index, fields))
                    continue
            if self._read(item, session, index, fields)[1]:
                kept.append((index, fields))
        self._check_fields(item, session, kept)
        return kept

    def _check_fields(self, item: Document, session: RawSession, kept: Sequence[tuple[int, Any]]) -> None:
        """Raise BadInput for an invalid date, role or speaker.

        Checked now, so that an error occurs before anything is spent.
        """
        for path in filter(None, (self._role, self._speaker)):
            name = path.name
            for index, fields in kept:
                if name is None or (type(fields) is dict and type(fields.get(name)) in _CONTAINERS):
                    text_at(path, fields, partial(_locate_turn, item, session, index))
        if self._date is not None:
            for index, fields in kept:
                self.date_of(item, session, index, fields)

    def count_images(self, session: RawSession) -> int:
        if self._image is None:
            return 0
        return sum(match is not None for fields in session.turns for match in self._image.all(fields))

    def find_speakers(self, item: Document, session: RawSession) -> list[str | None]:
        """Return the speakers that texts or lines of logs begin with, one for each turn that has a text.

        None: a turn without a speaker. Empty if the texts of this dataset do not begin with a speaker.
        """
        if self._is_log and self._speaker is not None:
            return [text_at(self._speaker, fields) for fields in session.turns]
        if self._separator is None:
            return []
        texts = (self._text(item, session, index, fields) for index, fields in enumerate(session.turns))
        return [self._split(text)[0] for text in texts if text]

    def check_ids(self, item: Document, session: KeptSession, known: set[str]) -> None:
        """Raise BadInput if two turns have the same id. Ids made by memorybench are unique and are not checked."""
        if self._id is None:
            return
        for index, fields in session.turns:
            id = self.turn_id(item, session, index, fields)
            if id in known:
                raise BadInput(
                    locate_in(item, session.raw.place),
                    f"two turns have the id {preview(id)}",
                    remedy="give each turn a different id, or remove schema.context.itemSchema.dialogId",
                )
            known.add(id)

    def marked(self, item: Document, session: KeptSession) -> dict[str, MarkedTurn]:
        """Return the turns that the data marks as containing the answer, by turn id."""
        if self._mark is None:
            return {}
        name, find = self._mark.name, self._mark.first
        return {
            self.turn_id(item, session, index, fields): MarkedTurn(
                session.id, self._role_of(fields, self._read(item, session.raw, index, fields)[0])
            )
            for index, fields in session.turns
            if (mark := fields.get(name) if name is not None and type(fields) is dict else find(fields))
            and _is_marked(mark)
        }

    def turn(self, item: Document, session: KeptSession, index: int, fields: Any) -> Turn:
        where = partial(_locate_turn, item, session.raw, index)
        name, content = self._read(item, session.raw, index, fields)
        is_role = name is not None and self._role is None and name.lower() in _ROLES
        speaker = text_at(self._speaker, fields, where) if name is None else (None if is_role else name)
        return Turn(
            self._role_of(fields, name, where),
            self._transform(content),
            self._transform(speaker) if speaker else None,
            self.date_of(item, session.raw, index, fields) if self._date else None,
            self.turn_id(item, session, index, fields),
        )

    def turn_id(self, item: Document, session: KeptSession, index: int, fields: Any) -> str:
        """Return the id of a turn in the data, or else one made from session and position, such as `s1:3`."""
        if self._id is None:
            return f"{session.id}:{index + 1}"
        return text_at(self._id, fields, partial(_locate_turn, item, session.raw, index)) or f"{session.id}:{index + 1}"

    def visible(self, fields: Any) -> Any:
        """Return the fields of a turn as templates show them: without gold marks."""
        if not isinstance(fields, dict):
            return fields
        return {k: _map_texts(v, self._transform) for k, v in fields.items() if k not in self._hidden}

    def date_of(self, item: Document, session: RawSession, index: int, fields: Any) -> datetime | None:
        where = partial(_locate_turn, item, session, index)
        date = only(self._date, fields, where) if self._date else None
        return None if date is None else read_date(date, where, self._date_format)

    def _role_of(self, fields: Any, name: str | None, where: Callable[[], str] | None = None) -> str:
        """Return the role of a turn. `name` is the name at the beginning of its text, which may be a role, or None."""
        role = (text_at(self._role, fields, where) if self._role is not None else name) or "user"
        if role.lower() in _ROLES:
            return role.lower()  # as APIs write it: `user` for `User`
        return role if self._role is not None else "user"

    def _split(self, text: str) -> tuple[str | None, str]:
        """Return the speaker at the beginning of a text, and the text after it; without speaker, None and the text."""
        if self._separator is None:
            return None, text
        before, separator, rest = text.partition(self._separator)
        name = before.strip()
        if not separator or not name or len(name) > _LONGEST_NAME or "\n" in name:
            return None, text
        return name, rest.strip()

    def _read(self, item: Document, session: RawSession, index: int, fields: Any) -> tuple[str | None, str]:
        """Return the speaker at the beginning of a turn's text, or None, and the rest of the text with the captions."""
        name, text = self._split(self._text(item, session, index, fields))
        if self._caption is not None:
            for caption in _captions(self._caption, fields, partial(_locate_turn, item, session, index)):
                text = f"{text} [shares a photo: {caption}]".lstrip()
        return name, text.strip() and text

    def _text(self, item: Document, session: RawSession, index: int, fields: Any) -> str:
        if isinstance(fields, str):
            return fields.strip() and fields
        if not isinstance(fields, dict) or self._content_path is None:
            raise BadInput(
                locate_in(item, session.turn_place(index)),
                f"invalid turn {preview(fields)}",
                expected="a text, or an object and schema.context.itemSchema.content",
            )
        content = fields.get(self._content_path.name)
        if isinstance(content, str):
            return content
        if self._content_path.name is not None:
            contents = [fields[self._content_path.name]] if self._content_path.name in fields else []
        else:
            contents = self._content_path.all(fields)
        # a list of texts, such as tags, is read whole
        contents = [text for content in contents for text in (content if _is_texts(content) else [content])]
        has_image = self._image is not None and bool(self._image.all(fields))
        if any(isinstance(content, _NO_TEXT) for content in contents) or not (contents or has_image):
            where = locate_in(item, session.turn_place(index))
            raise BadInput(
                where,
                f"{self._content_path.text} is missing or not a text",
                expected="the content of the turn",
                remedy="correct the turn, or schema.context.itemSchema",
            )
        return "\n\n".join(str(content) for content in contents if content is not None)


def _captions(path: Path, fields: Any, where: Callable[[], str]) -> Iterator[str]:
    """Yield the captions of a turn; several, if it has several pictures."""
    for value in path.all(fields):
        for caption in value if _is_texts(value) else [value]:
            if isinstance(caption, _NO_TEXT):
                raise BadInput(
                    where(), f"invalid value {preview(caption)} at {path.text}", expected="a text or a list of texts"
                )
            if caption is not None and str(caption).strip():
                yield str(caption)


def _is_marked(value: Any) -> bool:
    """Return whether the value of a mark means yes. Texts such as "false" and "0" mean no, as in CSV files."""
    return value.strip().lower() not in _NO if isinstance(value, str) else bool(value)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(member, str) for member in value)


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


def locate_in(item: Document, place: Place | None) -> str:
    return item.where(*(place or ()))


def _locate_turn(item: Document, session: RawSession, index: int) -> str:
    return locate_in(item, session.turn_place(index))


def text_at(path: Path | None, fields: Any, where: Callable[[], str] | None = None) -> str | None:
    """Return the text or number at a path as text; None if there is none.

    With `where`, raise BadInput if the path leads to something else or to several values.
    """
    if path is None:
        return None
    value = path.first(fields) if where is None else only(path, fields, where)
    if isinstance(value, dict | list):
        if where is not None:
            raise BadInput(where(), f"invalid value {preview(value)} at {path.text}", expected="a text or a number")
        return None
    return None if value is None else str(value)
