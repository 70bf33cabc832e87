"""Reads the context of an item: its sessions and turns, which providers get, and its gold marks, which they do not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise, takewhile
from typing import Any

from memorybench.core.conversation import Session, Turn
from memorybench.core.errors import BadInput
from memorybench.files.jsonpaths import Path
from memorybench.files.located import Document, Place
from memorybench.files.templates import Template
from memorybench.text.sanitize import preview
from memorybench.text.spelling import suggestion

from .config import Context, Preprocessing
from .config_reading import SESSION_VARIABLES
from .dates import Formats, read_date
from .ids import locate
from .item_context import ItemContext
from .log_lines import LinePattern
from .paths import flatten, only, optional_path, parse_path, place_of
from .turns import KeptSession, RawSession, TurnReader, locate_in, text_at

_PARAGRAPH = re.compile(r"\n\s*\n")
_SESSION_NAMES = ("s", "session-")
"""Prefixes of session ids: s1, s2 …, or session-1, session-2 … if turns already have ids such as s1."""


class ContextReader:
    """Reads the context of items by the paths of a config."""

    def __init__(self, context: Context, preprocessing: Preprocessing, date_format: Formats, where: str) -> None:
        """Parse the paths of the config; `where` names the config in error messages."""
        self._context = context
        self._date_format = date_format
        self._field = parse_path(context.field, where)
        self._ids = optional_path(context.id_field, where)
        self._dates = optional_path(context.date_field, where)
        self._turns_within = optional_path(context.turns_field, where)
        self._prefix = optional_path(context.prefix, where)
        self._own_id = optional_path(context.session_schema.id, where)
        self._own_date = optional_path(context.session_schema.date, where)
        self._turns = TurnReader(context, preprocessing, date_format, where)
        pattern = context.line_pattern
        self._lines = None if pattern is None else LinePattern(pattern, f"{where}.linePattern")
        self._members: tuple[Any, dict[Place, int]] | None = None
        """The item that was read last, and the number of each session or turn of its history, by its place."""
        self._template: Template | None = None
        if preprocessing.format_template is not None:
            self._template = Template.parse(preprocessing.format_template, SESSION_VARIABLES, where)

    def read(self, item: Document, cuts: Sequence[int] = (), upto: int | None = None) -> ItemContext:
        """Check the sessions and turns of an item, and return its context.

        A list of turns is divided into sessions at `cuts`: the numbers of turns after which questions about the history
        are asked. Only the first `upto` sessions or turns are read; None: as many as `context.prefix` says, or all.
        """
        for name in _SESSION_NAMES:
            context = self._read_as(name, item, cuts, upto)
            if context is not None:
                return context
        raise BadInput(
            locate_in(item, ()),
            "ids of turns are the same as ids that memorybench gives to sessions, such as s1 and session-1",
            expected="ids of turns that no session has",
            remedy="remove schema.context.itemSchema.dialogId, so that turns are numbered",
        )

    def _read_as(self, session_name: str, item: Document, cuts: Sequence[int], upto: int | None) -> ItemContext | None:
        """Return the context, with session ids such as `s1` if `session_name` is `s`.

        In an object of sessions, the keys are the ids instead. None if the id of a turn equals a made-up session id.
        """
        separator = self._context.speaker_separator
        context = ItemContext(partial(self._session, item), partial(self._turns.turn_id, item), separator)
        turn_ids: set[str] = set()
        is_keyed = self._context.type == "object"
        for position, raw in enumerate(self._raw_sessions(item, cuts, upto, context), 1):
            # session ids may reveal which session is gold; keys of an object are only numbers
            id = raw.name if is_keyed and raw.name is not None else f"{session_name}{position}"
            turns = self._turns.keep(item, raw)
            turns_before, context.raw_turn_count = context.raw_turn_count, context.raw_turn_count + len(raw.turns)
            context.irregularities["empty"] += len(raw.turns) - len(turns)
            context.turn_count += len(turns)
            context.irregularities["images"] += self._turns.count_images(raw)
            context.speakers.update(self._turns.find_speakers(item, raw))
            if raw.number is not None:
                context.numbered_session_count = max(context.numbered_session_count, raw.number + 1)
            if is_keyed and context.first_key is None:
                context.first_key = raw.number
            if not turns:
                context.irregularities["empty_sessions"] += not raw.turns
                continue
            at = read_date(raw.date, partial(locate_in, item, raw.place), self._date_format)
            if at is None:  # a session begins with its first turn
                at = self._turns.date_of(item, raw, *turns[0])
            session = KeptSession(raw, id, at, turns, turns_before)
            self._turns.check_ids(item, session, turn_ids)
            context.marked |= self._turns.marked(item, session)
            if raw.name is not None:
                context.sessions_named[raw.name] = (*context.sessions_named.get(raw.name, ()), id)
            if raw.number is not None:
                context.numbered_sessions[raw.number] = id
            context.kept.append(session)
        if not context.kept:
            has_no_turns = self._context.turns_field is not None and context.raw_turn_count == 0
            raise self._without_turns(item, context) if has_no_turns else self._empty(item)
        if not is_keyed and not turn_ids.isdisjoint(session.id for session in context.kept):
            return None
        return context

    def _session(self, item: Document, kept: KeptSession) -> Session:
        turns = tuple([self._turns.turn(item, kept, index, fields) for index, fields in kept.turns])
        render_text = None if self._template is None else partial(self._text, self._template, kept, turns)
        return Session(kept.id, turns, kept.at, render_text)

    def _text(self, template: Template, kept: KeptSession, turns: Sequence[Turn]) -> str:
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

    def _raw_sessions(
        self, item: Document, cuts: Sequence[int], upto: int | None, context: ItemContext
    ) -> Sequence[RawSession]:
        matches = self._field.located(item.value)
        context.irregularities["filtered_history"] += self._field.left_out(item.value)
        place = place_of(self._field, item.value)
        value = next((match for _, match in matches), None) if self._field.singular else [match for _, match in matches]
        if not value:
            raise self._empty(item)
        match self._context.type, value:
            case "array" | "turns", list():
                if place is not None:
                    members = [((*place, index), member) for index, member in enumerate(value)]
                    return self._array_sessions(item, members, place, cuts, upto, context)
                return self._array_sessions(item, matches, None, cuts, upto, context)
            case "object", dict():
                return list(self._object_sessions(value, place or (), context))
            case "string", str() if self._lines is not None:
                return self._by_day(item, self._log(item, value, place or (), self._lines, context))
            case "string", str():
                if self._context.split == "lines":  # blank lines have numbers, too, and count as empty turns
                    return [RawSession(None, value.rstrip("\r\n").replace("\r\n", "\n").split("\n"), None)]
                return [RawSession(None, [part for part in _PARAGRAPH.split(value) if part.strip()], None)]
        actual = {"list": "array", "dict": "object", "str": "string"}.get(type(value).__name__)
        raise BadInput(
            locate_in(item, place),
            f"{preview(value)} does not match schema.context.type: {self._context.type}",
            expected={"string": "a text", "turns": "a list"}.get(self._context.type, f"an {self._context.type}"),
            remedy=f"set schema.context.type: {actual}" if actual else "correct schema.context.field",
        )

    def _log(self, item: Document, text: str, place: Place, lines: LinePattern, context: ItemContext) -> RawSession:
        """Return the messages of a log as one session."""
        messages, continued = lines.split(text, locate_in(item, place))
        context.irregularities["continued"] += continued
        places = [(*place, message.line) for message in messages]
        return RawSession(None, [message.fields for message in messages], place, None, places)

    def _by_day(self, item: Document, session: RawSession) -> list[RawSession]:
        """Divide a session into one per day if `sessionPer` is set; otherwise, return it as it is."""
        if self._context.session_per is None:
            return [session]
        starts, day = [0], None
        for index, fields in enumerate(session.turns):
            at = self._turns.date_of(item, session, index, fields)
            if at is not None and day is not None and at.date() != day:
                starts.append(index)
            day = day if at is None else at.date()
        sessions = []
        for number, (start, end) in enumerate(pairwise((*starts, len(session.turns)))):
            places = [session.turn_place(index) or () for index in range(start, end)]
            sessions.append(RawSession(None, session.turns[start:end], session.place, None, places, number))
        return sessions

    def prefix_of(self, item: Document) -> int | None:
        """Return how many sessions or turns of the context are the history of the item's question; None: all."""
        return None if self._prefix is None else read_prefix(self._prefix, item, "schema.context.prefix")

    def member_number(self, item: Document, place: Place) -> int | None:
        """Return the number, from 1, of the session or turn of the history that contains `place` in the item's data.

        None if no session or turn does.
        """
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
        context: ItemContext,
    ) -> list[RawSession]:
        whole, upto = members, self.prefix_of(item) if upto is None else upto
        if upto is not None:
            if upto > len(members):
                where = locate_in(item, place_of(self._prefix, item.value) if self._prefix else None)
                raise BadInput(
                    where,
                    f"the prefix is {upto:,}, but the history has only {_count(members, 'member')}",
                    remedy="correct the prefix in the data, or schema.context.prefix",
                )
            members = members[:upto]
            context.irregularities["beyond"] += len(whole) - upto
        paths = (self._ids, self._dates, self._turns_within, self._own_id, self._own_date)
        are_sessions = any(path is not None for path in paths)
        is_one = self._context.type == "turns"
        if is_one or (not are_sessions and all(isinstance(member, dict) for _, member in members)):
            dates = self._ids_and_dates(item, [(place or (), None)], None)[1] if is_one else None
            date = dates[0] if dates else None
            inner = sorted(cut for cut in set(cuts) if 0 < cut < len(members))
            bounds = pairwise((0, *inner, len(members)))
            pieces = (members[start:end] for start, end in bounds if end)
            number = None if inner else 0
            sessions = [
                RawSession(None, [turn for _, turn in piece], place, date, [at for at, _ in piece], number)
                for piece in pieces
            ]
            return self._by_day(item, sessions[0]) if self._context.session_per else sessions
        if self._context.session_per:
            raise BadInput(
                locate_in(item, place),
                "schema.context.sessionPer divides turns into sessions, but the data already has sessions",
                expected="a list of turns that are objects",
                remedy="remove schema.context.sessionPer",
            )
        names, dates = self._ids_and_dates(item, whole, upto)
        sessions = []
        for index, (at, member) in enumerate(members):
            place_text, own = partial(locate_in, item, at), None
            name, date = None if names is None else names[index], None if dates is None else dates[index]
            name = None if name is None else str(name)
            if isinstance(member, dict):
                name = name or text_at(self._own_id, member, place_text)
                own = only(self._own_date, member, place_text) if self._own_date is not None else None
            sessions.append(self._raw(name, index, member, at, date or own, context))
        return sessions

    def _object_sessions(self, value: Mapping[str, Any], place: Place, context: ItemContext) -> Iterator[RawSession]:
        """Yield the sessions of an object, sorted by the number in their keys."""
        numbers = _numbered_keys(self._context.session_pattern or "*", value)
        date_keys = _numbered_keys(self._context.date_pattern, value)
        dated = {number: key for key, number in reversed(date_keys.items())}
        used = {dated[number] for number in numbers.values() if number in dated}
        context.irregularities["stray_dates"] += len(date_keys.keys() - used)
        context.unknown_keys += [key for key in value if key not in numbers and key not in date_keys]
        for key, number in sorted(numbers.items(), key=lambda pair: pair[1]):
            date = value[dated[number]] if number in dated else None
            yield self._raw(key, number, value[key], (*place, key), date, context)

    def _raw(
        self, name: str | None, number: int, member: Any, place: Place, date: Any, context: ItemContext
    ) -> RawSession:
        """Return `member` of the data as a session: its turns are those at `turnsField`, or else `member` itself.

        Nested lists are flattened.
        """
        matches: list[tuple[Place, Any]] = [((), member)]
        if isinstance(member, dict) and self._turns_within is not None:
            context.session_fields |= dict.fromkeys(member)
            context.irregularities["filtered_history"] += self._turns_within.left_out(member)
            matches = [(at, match) for at, match in self._turns_within.located(member) if match is not None]
        match matches:
            case [(at, list(turns))] if list not in map(type, turns):
                return RawSession(name, turns, (*place, *at), date, number=number)
        found = [one for at, match in matches for one in flatten(match, (*place, *at))]
        return RawSession(name, [turn for _, turn in found], place, date, [at for at, _ in found], number=number)

    def _ids_and_dates(
        self, item: Document, members: Sequence[tuple[Place, Any]], upto: int | None
    ) -> Sequence[list[Any] | None]:
        """Return the ids and the dates that `idField` and `dateField` lead to; None for one that is not set.

        Each must have one value per session; a list may also have one for each of the first `upto` sessions, which are
        the ones that are read. Otherwise raise BadInput: a value could be assigned to the wrong session.
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
            remedy = "correct the path or the data; if some sessions have no value, use schema.context.sessionSchema"
            raise BadInput(locate_in(item, place), "; ".join(problems), expected="one value per session", remedy=remedy)
        return found

    def _belong(self, path: Path, values: Sequence[tuple[Place, Any]], members: Sequence[tuple[Place, Any]]) -> bool:
        """Return whether there is one value per session of the history, in the same order."""
        field = [*self._field.segments(), *(["[*]"] if self._field.singular else [])]
        pairs = zip(field, path.segments(), strict=False)
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        return _are_aligned([at for at, _ in values], [at for at, _ in members], shared)

    def _path_of_each(self, item: Document, path: str, count: int) -> str | None:
        """Return a path to suggest, such as `sessions[*].date` for `date`; None if it does not match each session."""
        field = self._context.field if self._context.field.startswith("$") else f"$.{self._context.field}"
        close = f"{field.removesuffix('[*]')}[*].{path.removeprefix('$.')}"
        try:
            return close if len(Path.parse(close, "").all(item.value)) == count else None
        except BadInput:
            return None

    def _without_turns(self, item: Document, context: ItemContext) -> BadInput:
        turns_field = self._context.turns_field or ""
        return BadInput(
            locate(self._field, item)(),
            f"no session has turns at {turns_field}",
            expected="a list of turns in each session",
            remedy=f"{suggestion(turns_field, context.session_fields)} correct schema.context.turnsField".strip(),
        )

    def _empty(self, item: Document) -> BadInput:
        return BadInput(
            locate(self._field, item)(),
            "the item has no context",
            expected=f"a text, list or object at {self._context.field}",
            remedy="remove the item, or correct schema.context",
        )


def read_prefix(path: Path, part: Document, key: str) -> int:
    """Return the number at a path of an item or question: how many sessions or turns are its history."""
    where = locate(path, part)
    number = only(path, part.value, where)
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    if isinstance(number, bool) or not re.fullmatch(r"[0-9]+", str(number).strip()):
        raise BadInput(
            where(),
            f"invalid prefix {preview(number)}",
            expected="the number of sessions or turns before the question",
            remedy=f"correct it in the data, or correct {key}",
        )
    return int(number)


def _are_aligned(values: Sequence[Place], members: Sequence[Place], shared: int) -> bool:
    """Return whether the nth value belongs to the nth session: no other session is nearer to its place in the data.

    The first `shared` steps of the two paths of the config are equal, so the first steps of the places must be, too.
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


def _count(values: Sequence[Any], noun: str) -> str:
    return f"{len(values)} {noun}{'' if len(values) == 1 else 's'}"


def _numbered_keys(pattern: str | None, value: Mapping[str, Any]) -> dict[str, int]:
    """Return the keys that match a pattern, with their numbers: `*` is a number, so session_* is not session_1_date."""
    if pattern is None:
        return {}
    before, _, after = pattern.partition("*")
    expression = re.compile(rf"{re.escape(before)}(\d+){re.escape(after)}")
    return {key: int(match[1]) for key in value if (match := expression.fullmatch(key))}
