"""Strings that try to become markup, and a results folder whose every text is one of them."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from memorybench.core.trials import Outcome
from memorybench.journal.checksums import CHECKSUMS, crc

MARKER = "xk7"
"""Every hostile string contains it, so that a page can be searched for what became of it."""
STRINGS = tuple(
    text.replace("X", MARKER)
    for text in (
        "<script>X=1</script>",
        "<img src=x onerror=X()>",
        '"><svg onload=X()>',
        "'><body onload=X()>",
        "</title><script>X</script>",
        "</textarea><script>X</script>",
        "</style><script>X</script>",
        "<!--X--><script>X</script>",
        "<a href=javascript:X>X</a>",
        "javascript:X()",
        '" onmouseover="X()',
        "' autofocus onfocus='X()",
        "{{ 7*7 }}X",
        "{% for x in ().__class__.__mro__ %}X{% endfor %}",
        "${X}",
        "#{X}",
        '<iframe src="http://X.example"></iframe>',
        '<link rel=stylesheet href="//X.example/a.css">',
        '<meta http-equiv=refresh content="0;url=//X.example">',
        '<base href="//X.example/">',
        '<form action="//X.example"><input name=X></form>',
        '<div hx-get="//X.example" hx-trigger="load">X</div>',
        '<div hx-on:click="X()">X</div>',
        "<template><script>X</script></template>",
        '<math><mtext><img src=X onerror="X()">',
        "&lt;script&gt;X&lt;/script&gt;",
        "&#x3c;script&#x3e;X",
        "\u003cscript\u003eX\u003c/script\u003e",
        "＜script＞X＜/script＞",
        "\u202eX\u202d<script>",
        "\x1b]8;;http://X.example\x07X\x1b]8;;\x07",
        "\x00<script>X</script>",
        "X\r\nSet-Cookie: a=b\r\n\r\n<script>X</script>",
        "a' OR 1=1; DROP TABLE runs; --X",
        "../../../../etc/passwd X",
        "%2e%2e%2fX?x=1&y=2#z",
        "X" * 200,
        "😀\ud83dX",
        "</script><script src=//X.example></script>",
        "]]><script>X</script>",
        '<object data="//X.example"></object><embed src="//X.example">X',
    )
)
_STRUCTURE = frozenset(
    {
        "suite",
        "role",
        "status",
        "kind",
        "at",
        "finished",
        "steps",
        "cluster",
        "variant",
        "benchmark",
        "name",
        "asked_at",
        "phase",
        "rate",
    }
)
"""Keys of JSON texts whose values the program itself writes, or reads as anything but text."""


_OFTEN = ("outcome.", "case.", "score.", "search.", "answer.", "judge.", "step.")
"""Fields of many texts. Each of the other texts has every string."""
_CLAIMS = ("kill: ", "skipped: ", "residue: ")
"""Prefixes of scores whose names contain a text of a scenario."""
HOSTILE_RUNS = {"results": ("second", "h", "e"), "audit-results": ("a",)}
"""A run of each suite, by folder."""


class Spoiler:
    """Adds hostile strings to texts: each field gets the next ones, so that after some texts it has had all."""

    def __init__(self, *, is_large: bool) -> None:
        """`is_large`: whether each field has many texts; in a small run, each text has every string."""
        self.used: dict[str, list[str]] = {}
        self._is_large = is_large

    def strings(self, field: str, many: int = 0) -> str:
        used = self.used.setdefault(field, [])
        if not self._is_large:
            many = len(STRINGS)
        many = many or (8 if field.startswith(_OFTEN) else len(STRINGS))
        chosen = [storable(STRINGS[(len(used) + place) % len(STRINGS)]) for place in range(many)]
        used += chosen
        return " ".join(chosen)

    def spoil(self, value: Any, field: str) -> Any:
        if isinstance(value, dict):
            return {name: self.spoil(one, f"{field}.{name}") for name, one in value.items()}
        if isinstance(value, list):
            return [self.spoil(one, field) for one in value]
        is_text = isinstance(value, str) and field.rpartition(".")[2] not in _STRUCTURE
        return f"{value} {self.strings(field)}" if is_text else value


def copy_hostile(recorded: Path, target: Path) -> list[Path]:
    """Copy the results folders, with hostile strings in a run of each suite."""
    for folder, runs in HOSTILE_RUNS.items():
        shutil.copytree(recorded / folder, target / folder)
        for run in runs:
            make_hostile(target / folder, run)
    return [target / folder for folder in HOSTILE_RUNS]


def make_hostile(results: Path, run: str) -> dict[str, set[str]]:
    """Add hostile strings to every text of a run, with correct checksums; return the strings of each field."""
    spoiler = Spoiler(is_large=run == "second")
    subjects: dict[str, str] = {}
    cases: dict[str, tuple[str, str]] = {}
    with closing(sqlite3.connect(results / "results.db")) as db:
        db.row_factory = sqlite3.Row
        for row in db.execute("SELECT rowid, * FROM outcomes WHERE run = ?", (run,)).fetchall():
            body = json.loads(row["body"])
            name, id = body["trial"]["subject"]["name"], body["trial"]["case_id"]
            if name not in subjects:
                subjects[name] = f"{name} {spoiler.strings('provider', 14)}"
            if id not in cases:
                cases[id] = f"{id} {spoiler.strings('case', 6)}", f"t {spoiler.strings('type', 6)}"
            case_id, type = cases[id]
            spoiled = {**spoiler.spoil(body, "outcome"), "steps": body["steps"]}
            spoiled["trial"]["case_id"] = case_id
            spoiled["trial"]["subject"] |= {"name": subjects[name], "settings": {}}
            if body["trial"]["suite"] == "bench":  # baselines become providers, which are compared
                spoiled["trial"]["labels"] = {"question_type": type}
                spoiled["trial"]["subject"]["role"] = "provider"
            spoiled["scores"] = [
                {**one, "reason": spoiler.strings("score.reason")}
                | ({"name": f"{one['name']} {spoiler.strings('claim')}"} if one["name"].startswith(_CLAIMS) else {})
                for one in body["scores"]
            ]
            outcome = Outcome.model_validate(spoiled)
            values = {**dict(row), "body": json.dumps(spoiled), "trial": outcome.trial.key}
            write_row(db, "outcomes", values | {"case_id": case_id, "subject": subjects[name]})
        for row in db.execute("SELECT rowid, * FROM cases WHERE run = ?", (run,)).fetchall():
            body = json.dumps(spoiler.spoil(json.loads(row["body"]), "case"))
            write_row(db, "cases", {**dict(row), "id": cases[row["id"]][0], "body": body})
        for row in db.execute("SELECT rowid, * FROM steps WHERE run = ?", (run,)).fetchall():
            parts = {
                part: json.dumps(spoiler.spoil(json.loads(row[part]), f"{row['name']}.{part}"))
                for part in ("inputs", "result")
            }
            write_row(db, "steps", {**dict(row), **parts, "subject": spoiler.strings("step.subject")})
        for text in map(storable, STRINGS):
            db.execute("INSERT INTO notes VALUES (?, ?, ?, ?)", (run, text, text, crc(run, text, text)))
            db.execute("INSERT INTO tags VALUES (?, ?, ?)", (run, text, crc(run, text)))
        db.commit()
    (results / run / "report.json").unlink(missing_ok=True)
    return {field: set(used) for field, used in spoiler.used.items()}


def storable(text: str) -> str:
    """No journal has a lone surrogate: writing one fails."""
    return text.encode("utf-8", "replace").decode()


def write_row(db: sqlite3.Connection, table: str, values: dict[str, Any]) -> None:
    checked = crc(*(values[column] for column in CHECKSUMS[table]["crc"]))
    columns = [name for name in values if name not in ("rowid", "crc")]
    assignments = ", ".join(f"{name} = ?" for name in columns)
    written = [values[name] for name in columns]
    db.execute(f"UPDATE {table} SET {assignments}, crc = ? WHERE rowid = ?", (*written, checked, values["rowid"]))


class Markup(HTMLParser):
    """Collects the tags and attributes of a page."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: dict[str, set[str]] = {}
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self._in_script = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self._in_script = tag == "script"
        for name, value in attrs:
            self.attributes.setdefault(name, set()).add(value or "")

    def handle_endtag(self, tag: str) -> None:
        self._in_script = False

    def handle_data(self, data: str) -> None:
        (self.scripts if self._in_script else self.texts).append(data)

    @property
    def text(self) -> str:
        return " ".join(self.texts)
