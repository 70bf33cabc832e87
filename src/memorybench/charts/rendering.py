"""Renders specs with vl-convert-python."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from html import escape
from typing import Any, Self

from memorybench.core.errors import BadInput

from . import MISSING, is_installed
from .look import LIGHT, THEMES
from .narrow import narrow, size
from .parts import Spec

FORMS = ("svg", "png", "pdf")
COMMAND = (sys.executable, "-P", "-m", "memorybench.charts.rendering")
"""The command of the process that draws charts. With `-P`, Python imports nothing from the current folder."""
DRAWING_ERRORS = (OSError, ValueError, subprocess.SubprocessError)
"""What `Renderer` and `render_in_child` raise if the process fails; pages are then shown without charts."""
_VERSION = "5.20"
"""The version of Vega-Lite that vl-convert-python uses."""
_PIXELS = 3.0
"""Pixels of a PNG image per unit of the chart."""
_WIDE = 720
"""A chart that is wider than this, in pixels, takes both columns of a page."""
_NAMES = {color: name for name, color in LIGHT.items()}
_COLOR = re.compile(r'\b(fill|stroke)="(#[0-9a-f]{6})"')
_NOT_INLINE = re.compile(
    r' (?:xmlns(?::xlink)?|version|role|aria-roledescription|font-family|class)="[^"<>]*"(?=[^<>]*>)'
)
"""Matches SVG attributes that have no meaning, or another meaning, inside an HTML page."""


def check_installed(where: str) -> None:
    if not is_installed():
        problem, remedy = MISSING.split("; ")
        raise BadInput(where, problem, remedy=remedy)


def render(spec: Spec, form: str, theme: str = "light") -> bytes:
    """Return a chart as the bytes of an SVG, PNG or PDF file."""
    import vl_convert

    themed = _replace(spec, {color: THEMES[theme][name] for name, color in LIGHT.items()})
    if form == "svg":
        text: str = vl_convert.vegalite_to_svg(themed, vl_version=_VERSION)
        return text.encode()
    if form == "png":
        image: bytes = vl_convert.vegalite_to_png(themed, vl_version=_VERSION, scale=_PIXELS)
        return image
    document: bytes = vl_convert.vegalite_to_pdf(themed, vl_version=_VERSION)
    return document


def render_inline(spec: Spec, title: str) -> str:
    """Return SVG that takes its colours and fonts from the style of the HTML page around it.

    It contains two drawings; the one with the class `slim` is for narrow pages.
    """
    # the font of a page may be wider than the one that is measured here
    drawn = _inline({**spec, "padding": {"left": 28, "right": 30, "top": 4, "bottom": 4}}, title)
    slim = {**narrow(spec), "padding": {"left": 18, "right": 14, "top": 4, "bottom": 4}}
    return drawn + _inline(slim, title, "slim")


def _inline(spec: Spec, title: str, kind: str = "") -> str:
    svg = _NOT_INLINE.sub("", render({**spec, "background": None}, "svg").decode())
    svg = _COLOR.sub(lambda found: f'{found[1]}="var(--{_NAMES[found[2]]})"' if found[2] in _NAMES else found[0], svg)
    width = re.search(r'width="([\d.]+)"', svg)
    kind = "wide" if width and float(width[1]) > _WIDE else kind
    return svg.replace("<svg", f'<svg role="img" aria-label="{escape(title)}"{_class(kind)}', 1)


def empty(spec: Spec) -> str:
    """Return two empty SVGs of about the size of the chart in one text: for wide and for narrow pages."""
    return _empty(spec) + _empty(narrow(spec), "slim")


def _empty(spec: Spec, kind: str = "") -> str:
    width, height = size(spec)
    kind = "wide" if width > _WIDE else kind
    return f'<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}"{_class(kind)}></svg>'


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


class Renderer:
    """A child process that draws the charts of one page, because drawing needs 80 MB and blocks other threads.

    Enter its context early: the child loads its modules, which takes half a second, while this process continues.
    """

    def __enter__(self) -> Self:
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="charts")
        self._child = subprocess.Popen(
            COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,  # Ctrl-C must reach only this process
        )
        return self

    def draw(self, specs: Mapping[str, Spec]) -> Future[list[tuple[str, str]]]:
        """Return a future of the charts, each as (title, SVG). `specs` are by title. Can be called only once."""
        return self._threads.submit(self._draw, json.dumps(specs))

    def _draw(self, specs: str) -> list[tuple[str, str]]:
        drawn, _ = self._child.communicate(specs)
        if self._child.returncode:
            raise subprocess.CalledProcessError(self._child.returncode, COMMAND)
        return [(title, svg) for title, svg in json.loads(drawn).items()]

    def __exit__(self, *_: object) -> None:
        self._child.kill()
        self._threads.shutdown()
        self._child.communicate()


def render_in_child(specs: Mapping[str, Spec]) -> list[tuple[str, str]]:
    """Draw charts in a child process; return each as (title, SVG). `specs` are by title."""
    with Renderer() as renderer:
        return renderer.draw(specs).result()


def _replace(value: Any, colors: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {name: one if name == "values" else _replace(one, colors) for name, one in value.items()} | (
            {"values": [_with_tone(row, colors) for row in value["values"]]} if "values" in value else {}
        )
    if isinstance(value, (list, tuple)):
        return [_replace(one, colors) for one in value]
    return colors.get(value, value) if isinstance(value, str) else value


def _with_tone(row: Any, colors: Mapping[str, str]) -> Any:
    """Return a row of data with the colour in its field `tone` replaced. Other fields have no colours."""
    return {**row, "tone": colors[row["tone"]]} if isinstance(row, dict) and "tone" in row else row


if __name__ == "__main__":
    render({"data": {"values": [{}]}, "mark": "point"}, "svg")  # loads the renderer while the parent makes the specs
    json.dump({title: render_inline(spec, title) for title, spec in json.load(sys.stdin).items()}, sys.stdout)
