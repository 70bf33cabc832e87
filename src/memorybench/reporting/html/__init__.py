"""Report sections as HTML, for the viewer and for reports in one file. Needs jinja2 (the extra `view`).

`environment` returns a Jinja environment that escapes all text. `sections.html` contains the macros, `style.css` the
styles.
Pages have no inline styles or scripts, so that they work with a strict Content-Security-Policy. `report_page` returns a
report in one file.
"""

from __future__ import annotations

import os
import sys
from base64 import b64encode
from collections.abc import Callable, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memorybench.core.measures import Measure
from memorybench.core.report_sections import Cell, Difference, Duration, Money, Report, Table
from memorybench.reporting.formatting import cell_text, footnotes, seconds, share, with_interval
from memorybench.text.sanitize import sanitize

if TYPE_CHECKING:
    from jinja2 import Environment, Template

FOLDER = Path(__file__).parent
STYLE = FOLDER / "style.css"
_SCRIPT = FOLDER / "report.js"
_SHADES = 10
_LONGEST_LINE = 30
"""A name with at most this many characters is never broken into lines."""
_WIDTH, _MARGIN = 96, 4
"""The width and the margin of a drawn interval, in CSS pixels."""


def environment(*folders: Path, redact: Callable[[str], str] = str) -> Environment:
    """Return the Jinja environment for templates in these folders.

    All text is escaped; control characters, bidi marks and secrets are removed.
    """
    from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    def finalize(value: Any) -> Any:
        if isinstance(value, str) and not isinstance(value, Markup):
            return redact(sanitize(value))
        return value

    # compiled templates are kept where Python keeps the compiled modules of this package
    compiled = FOLDER / "__pycache__"
    may_write = not sys.dont_write_bytecode and os.access(compiled, os.W_OK)
    templates = Environment(
        loader=FileSystemLoader([*folders, FOLDER]),
        bytecode_cache=FileSystemBytecodeCache(str(compiled)) if may_write else None,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.finalize = finalize
    templates.globals |= {
        "kind": lambda value: type(value).__name__,
        "cell_text": cell_text,
        "cell_class": cell_class,
        "footnotes": footnotes,
        "interval": interval,
        "shade": shade,
        "is_heat_map": is_heat_map,
        "is_long": is_long,
        "with_interval": with_interval,
        "share": share,
        "seconds": seconds,
        "refuse": _refuse,
    }
    return templates


def _refuse(section: object) -> str:
    raise TypeError(f"sections.html has no macro for {type(section).__name__}")


@cache
def _template(name: str) -> Template:
    """Return a template of this folder, compiled once per process."""
    return environment().get_template(name)


def report_page(report: Report, charts: Sequence[tuple[str, str]], **values: Any) -> str:
    """Return a report as one HTML page."""
    from markupsafe import Markup

    drawn = [(title, Markup(svg)) for title, svg in charts]  # noqa: S704  made by our renderer, escaped
    return single_page("report.html", _SCRIPT.read_text(encoding="utf-8"), report=report, charts=drawn, **values)


def single_page(template: str, script: str = "", **values: Any) -> str:
    """Return an HTML page in one file. Its Content-Security-Policy allows only its own style and this script."""
    from markupsafe import Markup

    style = STYLE.read_text(encoding="utf-8")
    allowed = f"script-src '{_policy_hash(script)}'; " if script else ""
    policy = f"default-src 'none'; style-src '{_policy_hash(style)}'; {allowed}base-uri 'none'; form-action 'none'"
    ours = {"style": Markup(style), "script": Markup(script)}  # noqa: S704  ours
    text: str = _template(template).render(**ours, policy=policy, **values)
    return text


def _policy_hash(text: str) -> str:
    """Return the hash by which a Content-Security-Policy allows this inline style or script."""
    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode()


def cell_class(cell: Cell) -> str:
    """Return the CSS class of a cell: numbers are aligned on the right, a missing value is muted."""
    if cell is None:
        return "n none"
    if isinstance(cell, str):
        return ""
    if isinstance(cell, Difference):
        return "n significant" if cell.significant else "n"
    return "n" if isinstance(cell, (int, Measure, Duration, Money)) else ""


def is_long(cell: Cell) -> bool:
    """Return whether a cell or heading must be broken into lines, because in one line it would hide other columns."""
    return isinstance(cell, str) and len(cell) > _LONGEST_LINE


def is_heat_map(table: Table) -> bool:
    """Return whether a table is shaded as a heat map: it has one column of names and several columns of measures."""
    names = sum(column.align != "right" for column in table.columns)
    return names == 1 and sum(column.shows == "interval" for column in table.columns) > 1


def shade(cell: Cell) -> str:
    """Return the CSS classes that shade a cell by its share. A cell without a share gets no shade."""
    if not isinstance(cell, Measure) or cell.value is None or cell.unit:
        return "shade"
    return f"shade shade-{round(_SHADES * min(max(cell.value, 0.0), 1.0))}"


def interval(cell: Cell) -> dict[str, float] | None:
    """Return the positions of a measure's `low`, `high` and `value` in the drawing of its interval, in CSS pixels.

    None if the cell is not a share from 0 to 1. `value` is missing if undecided verdicts leave only a range.
    """
    if not isinstance(cell, Measure) or cell.unit:
        return None
    ends = {"low": cell.value if cell.low is None else cell.low, "high": cell.value if cell.high is None else cell.high}
    found = {name: end for name, end in (*ends.items(), ("value", cell.value)) if end is not None}
    if not {"low", "high"} <= found.keys() or not all(0 <= end <= 1 for end in found.values()):
        return None
    return {name: round(_MARGIN + (_WIDTH - 2 * _MARGIN) * end, 1) for name, end in found.items()}
