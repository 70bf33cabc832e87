"""Reads texts whose lines are messages, such as `[2024-03-01 08:30] Ida: Good morning.`"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from memorybench.core.errors import BadInput
from memorybench.text.sanitize import preview
from memorybench.text.spelling import join_names

LINE_FIELDS = ("content", "date", "dialog_id", "role", "speaker")
"""The fields of a turn that a line pattern may contain, by their names in ItemSchema."""
_NAMES = {"dialogId" if name == "dialog_id" else name: name for name in LINE_FIELDS}
_FIELD = re.compile(r"\{(\w*)\}")


class LogLine(NamedTuple):
    """A message of a log. Its content includes the lines after it that do not begin another message."""

    line: int
    """Index of the message's first line in the text."""
    fields: dict[str, str]


class LinePattern:
    """The pattern of the first line of a message, such as `[{date}] {speaker}: {content}`."""

    def __init__(self, text: str, where: str) -> None:
        """Parse the pattern, which `where` names in error messages."""
        self.text = text
        names = _FIELD.findall(text)
        unknown = next((name for name in names if name not in _NAMES), None)
        if unknown is not None:
            raise BadInput(where, f"unknown field {{{unknown}}}", expected=join_names(_NAMES))
        if len(set(names)) < len(names):
            raise BadInput(where, f"a field occurs twice in {preview(text)}", expected="each field once")
        if not text.endswith("{content}"):
            raise BadInput(
                where, f"the pattern {preview(text)} does not end with {{content}}", remedy="write {content} at the end"
            )
        if "}{" in text:
            raise BadInput(
                where,
                f"no text separates two fields of {preview(text)}",
                expected="a separator, as in {speaker}: {content}",
            )
        self.fields = tuple(_NAMES[name] for name in names)
        # a field ends where the text after it begins for the first time; only the content may be anything
        groups = {name: f"(?P<{field}>{'.*' if name == 'content' else '.+?'})" for name, field in _NAMES.items()}
        parts = enumerate(_FIELD.split(text))  # names and the texts between them, in turn
        self._expression = re.compile("".join(groups[part] if n % 2 else re.escape(part) for n, part in parts))

    def split(self, text: str, where: str) -> tuple[Sequence[LogLine], int]:
        """Return the messages, and the number of non-empty lines that continue the message before them.

        `where` names the text in an error.
        """
        messages: list[LogLine] = []
        continued = 0
        for index, line in enumerate(text.replace("\r\n", "\n").split("\n")):
            match = self._expression.fullmatch(line)
            if match is not None:
                messages.append(LogLine(index, match.groupdict()))
            elif messages:
                messages[-1].fields["content"] += f"\n{line}"
                continued += bool(line.strip())
            elif line.strip():
                raise BadInput(
                    where,
                    f"line {index + 1} does not match the pattern: {preview(line)}",
                    expected=self.text,
                    remedy="correct schema.context.linePattern",
                )
        for message in messages:
            message.fields["content"] = message.fields["content"].rstrip()
        return messages, continued
