"""The viewer in a real Chromium: every page, filters, keys, live progress, hostile texts and accessibility."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("jinja2")

from tests.view.conftest import recorded as recorded  # noqa: E402
from tests.view.hostile import make_hostile  # noqa: E402

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
AXE = Path(sys.prefix) / "node_modules" / "axe-core" / "axe.min.js"
MEMORYBENCH = [sys.executable, "-m", "memorybench"]
PAGES = ("/", "/run/0/{}", "/run/0/{}/questions", "/run/0/{}/history", "/compare?side=0/{}&only=changed", "/trends")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no Chromium")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def viewer(*folders: Path) -> Iterator[str]:
    """The address of a viewer in a process of its own."""
    command = [*MEMORYBENCH, "view", "--no-browser", "--port", "0", "--json", "--results", *map(str, folders)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield str(json.loads(process.stdout.readline())["url"]).rstrip("/")
        process.send_signal(signal.SIGINT)
        process.wait(60)


@contextmanager
def opened(browser: Any, **options: Any) -> Iterator[tuple[Any, list[str]]]:
    """A page, and what went wrong on it: errors, refused resources, dialogs, requests to other hosts."""
    context = browser.new_context(**options)
    context.set_default_timeout(30_000)
    page, problems = context.new_page(), []

    def look(request: Any) -> None:
        if urlsplit(request.url).hostname != "127.0.0.1":
            problems.append(f"request to {request.url}")

    page.on("request", look)
    page.on("pageerror", lambda error: problems.append(f"error: {error}"))
    page.on("dialog", lambda dialog: (problems.append("dialog"), dialog.dismiss()))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    yield page, problems
    context.close()


def goto(page: Any, address: str) -> None:
    """Open a page and wait until its figures are ready."""
    page.goto(address)
    until(page, lambda: (title := page.title()) and not title.startswith("Reading the run"))
    page.wait_for_load_state()


def until(page: Any, is_so: Callable[[], object]) -> None:
    """Wait until something is so. Playwright's own waits evaluate texts, which the policy of the pages forbids."""
    for _ in range(1200):
        with suppress(api.Error):  # the page was just replaced
            if is_so():
                return
        page.wait_for_timeout(100)
    raise AssertionError(f"timed out on {page.url}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280, 1920])
def test_every_page_is_clean_and_accessible(browser: Any, recorded: Path, width: int, scheme: str) -> None:
    size = {"width": width, "height": 900}
    with (
        viewer(recorded / "results", recorded / "audit-results") as address,
        opened(browser, color_scheme=scheme, viewport=size) as (page, problems),
    ):
        for path in [*(path.format("second") for path in PAGES), "/run/0/h", "/run/0/e", "/run/1/a"]:
            goto(page, address + path)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path
            _check_accessibility(page, path)
        goto(page, f"{address}/run/0/second/questions")
        page.locator("td.question a").first.click()
        until(page, lambda: "/question?" in page.url)
        _check_accessibility(page, "question")
    assert problems == []


def _check_accessibility(page: Any, path: str) -> None:
    if not AXE.exists():
        return
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run()")["violations"]
    serious = [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")]
    assert serious == [], path


def test_filters_and_keys(browser: Any, recorded: Path) -> None:
    with viewer(recorded / "results") as address, opened(browser) as (page, problems):
        goto(page, f"{address}/run/0/first/questions")
        every = page.locator("#list tbody tr").count()
        page.evaluate("window.notReloaded = true")
        page.select_option("select[name=right]", "oracle")
        until(page, lambda: "right=oracle" in page.url)
        page.select_option("select[name=wrong]", "none")
        until(page, lambda: "wrong=none" in page.url)
        until(page, lambda: page.locator("#list tbody tr").count() < every)
        assert page.evaluate("window.notReloaded")
        page.keyboard.press("Escape")
        page.locator("h1").click()
        page.keyboard.press("/")
        assert page.evaluate("document.activeElement.name") == "text"
        page.keyboard.press("Escape")
        page.locator("td.question a").first.click()
        until(page, lambda: "/question?" in page.url)
        first = page.url
        page.keyboard.press("j")
        until(page, lambda: page.url != first)
        page.keyboard.press("k")
        until(page, lambda: page.url == first)
    assert problems == []


def test_pages_work_without_javascript(browser: Any, recorded: Path) -> None:
    with viewer(recorded / "results") as address, opened(browser, java_script_enabled=False) as (page, problems):
        page.goto(f"{address}/?q=first")
        assert page.locator("td.name a").first.inner_text() == "first"
        page.goto(f"{address}/run/0/first/questions?right=oracle&wrong=none")
        page.locator("td.question a").first.click()
        assert page.locator(".mem, .hint").count()
    assert problems == []


def test_hostile_texts_run_nothing(browser: Any, recorded: Path, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    shutil.copytree(recorded / "results", folder)
    make_hostile(folder, "second")
    with viewer(folder) as address, opened(browser) as (page, problems):
        for path in PAGES:
            goto(page, address + path.format("second"))
        goto(page, f"{address}/run/0/second/questions")
        links = page.eval_on_selector_all("td.question a", "all => all.map(one => one.href)")
        for link in links:
            goto(page, f"{link}&full=1")
            for summary in page.locator("summary").all():
                summary.click()
        assert links
    assert problems == []


def test_progress_of_a_run_that_is_killed_and_resumed(browser: Any, tmp_path: Path) -> None:
    run = [*MEMORYBENCH, "eval", "--providers", "bm25", "--run-id", "live"]
    environment = {**os.environ, "COLUMNS": "100"}
    with viewer(tmp_path / "results") as address, opened(browser) as (page, problems):
        with subprocess.Popen(run, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL) as process:
            while not (tmp_path / "results" / "live" / ".lock").exists():
                process.poll()
            _wait_for(page, address, "running")
            process.send_signal(signal.SIGSTOP)
            goto(page, f"{address}/run/0/live")
            page.wait_for_selector("#live")
            process.kill()
        until(page, lambda: "has ended" in page.locator("#live").inner_text())
        _wait_for(page, address, "partial")
        resumed = [*MEMORYBENCH, "eval", "--resume", "live"]
        assert subprocess.run(resumed, cwd=tmp_path, env=environment, capture_output=True, check=False).returncode == 0
        _wait_for(page, address, "complete")
    assert problems == []


def _wait_for(page: Any, address: str, status: str) -> None:
    """Open the list of runs until one has this status."""
    for _ in range(200):
        page.goto(f"{address}/?q=live")
        if page.locator("td .badge", has_text=status).count():
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"no run became {status}")
