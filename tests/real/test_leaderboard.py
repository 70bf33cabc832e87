"""The leaderboard in a real Chromium."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("jinja2")

from tests.bundles.conftest import bundle as bundle  # noqa: E402
from tests.bundles.editing import as_lines, read_files, rows_of, write_files  # noqa: E402
from tests.cli.command import Command  # noqa: E402
from tests.real.test_viewer import FITS, find_browser  # noqa: E402

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]
HOSTILE = "<img src=x onerror=\"document.title='owned'\">"


@pytest.fixture
def browser() -> Iterator[Any]:
    found = find_browser()
    if found is None:
        pytest.skip("no Chromium")
    with api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_shows_verified_and_refused_bundles(
    command: Command, bundle: Callable[..., Path], browser: Any, width: int
) -> None:
    paths = [bundle(name) for name in ("judged", "hygiene")]
    folder = command.folder / "bundles"
    folder.mkdir()
    for path in paths:
        path.rename(folder / path.name)
    files = read_files(folder / "judged.mbz")
    outcomes = rows_of(files, "outcomes.jsonl")
    outcomes[0]["body"]["trial"]["subject"]["name"] = HOSTILE
    write_files(folder / "tampered.mbz", {**files, "outcomes.jsonl": as_lines(outcomes)})
    assert command("leaderboard", str(folder), "--output", "site").code == 0
    page = browser.new_page(viewport={"width": width, "height": 900})
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text))
    page.on("request", lambda request: problems.append(request.url) if "index.html" not in request.url else None)
    page.goto((command.folder / "site" / "index.html").as_uri())
    assert page.title() == "Leaderboard"
    assert page.locator("section.board").count() == 2
    rows = page.locator("section.board tbody tr")
    assert rows.count() == 4
    assert "tampered.mbz" in page.locator("section.refused").inner_text()
    assert "tampered" not in page.locator("section.board").first.inner_text()
    links = page.locator("a[download]")
    for place in range(links.count()):
        assert (command.folder / "site" / links.nth(place).get_attribute("href")).is_file()
    rows.first.locator("summary").click()
    assert rows.first.locator("dl").is_visible()
    assert page.evaluate(FITS)
    assert problems == []


def test_the_name_of_a_provider_stays_beside_its_figures(
    command: Command, bundle: Callable[..., Path], browser: Any
) -> None:
    folder = command.folder / "bundles"
    folder.mkdir()
    path = bundle("judged")
    path.rename(folder / path.name)
    assert command("leaderboard", str(folder), "--output", "site").code == 0
    page = browser.new_page(viewport={"width": 1280, "height": 120})
    page.goto((command.folder / "site" / "index.html").as_uri())
    scrolled = page.locator(".scroll").evaluate("node => { node.scrollTop = 60; return node.scrollTop; }")
    assert scrolled > 30, "the first row is partly above the region"
    first = page.locator("tbody tr").first
    assert first.locator("th").bounding_box()["y"] < page.locator(".scroll").bounding_box()["y"]
