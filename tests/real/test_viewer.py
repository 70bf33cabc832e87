"""The viewer and the HTML report in a real Chromium: pages, filters, keys, progress, hostile texts, accessibility."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest

api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("jinja2")

from memorybench.cli.main import main  # noqa: E402
from memorybench.journal.lock import RunLock  # noqa: E402
from tests.doubles.stub import Stub, after, completion  # noqa: E402
from tests.view.conftest import recorded as recorded  # noqa: E402
from tests.view.hostile import MARKER, STRINGS, copy_hostile, storable  # noqa: E402

api.expect.set_options(timeout=60_000)
pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
AXE = Path(sys.prefix) / "node_modules" / "axe-core" / "axe.min.js"
MEMORYBENCH = [sys.executable, "-m", "memorybench"]
RUNS = {"first": "0/first", "second": "0/second", "hygiene": "0/h", "extraction": "0/e", "audit": "1/a"}
HOSTILE = {"second": 8, "hygiene": 2, "extraction": 4, "audit": 8}
"""Questions of the runs whose every text is hostile."""
PAGES = (
    "/",
    "/run/0/first",
    "/run/0/second/history",
    "/compare",
    "/compare?side=0/second:bm25&side=0/second:oracle&only=changed",
    "/compare?side=0/first:bm25&side=0/second:bm25",
    "/trends",
    *(f"/run/{run}{page}" for run in RUNS.values() for page in ("", "/questions")),
)
FITS = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
WATCH_SHIFTS = """
window.shift = 0;
new PerformanceObserver((list) => list.getEntries().forEach((one) => {
    if (!one.hadRecentInput) window.shift += one.value;
})).observe({type: "layout-shift", buffered: true});
"""


def find_browser() -> str | None:
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    found = find_browser()
    if found is None:
        pytest.skip("no Chromium")
    # evil.example is this machine: what refuses its requests is the viewer
    options = ["--no-sandbox", "--host-resolver-rules=MAP evil.example 127.0.0.1"]
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=options)
        yield browser
        browser.close()


@contextmanager
def viewer(*folders: Path) -> Iterator[str]:
    """The address of a viewer in a process of its own."""
    command = [*MEMORYBENCH, "view", "--no-browser", "--port", "0", "--json", "--results", *map(str, folders)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield str(json.loads(process.stdout.readline())["url"]).rstrip("/")
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def site(recorded: Path) -> Iterator[str]:
    with viewer(recorded / "results", recorded / "audit-results") as address:
        yield address


@contextmanager
def opened(browser: Any, expected_errors: tuple[str, ...] = (), **options: Any) -> Iterator[Any]:
    """A page; at the end nothing has gone wrong on it: no error, refused resource, dialog or request elsewhere."""
    context = browser.new_context(**options)
    context.set_default_timeout(60_000)
    page, problems = context.new_page(), []

    def look(request: Any) -> None:
        address = urlsplit(request.url)
        if address.hostname != "127.0.0.1" and not (address.scheme == "file" and request.is_navigation_request()):
            problems.append(f"request to {request.url}")

    def hear(message: Any) -> None:
        if message.type == "error" and not any(text in message.text for text in expected_errors):
            problems.append(message.text)

    context.on("request", look)
    context.on("page", lambda other: problems.append(f"opened {other.url}") if other != page else None)
    page.on("pageerror", lambda error: problems.append(f"error: {error}"))
    page.on("dialog", lambda dialog: (problems.append("dialog"), dialog.dismiss()))
    page.on("console", hear)
    try:
        yield page
    finally:
        context.close()
    assert problems == []


def goto(page: Any, address: str) -> Any:
    """Open a page and wait until its figures and charts are ready."""
    response = page.goto(address)
    api.expect(page).not_to_have_title("Reading the run · memorybench")
    api.expect(page.locator(".charts[hx-get]")).to_have_count(0)
    return response


def questions_of(page: Any, site: str, run: str) -> list[str]:
    goto(page, f"{site}/run/{run}/questions")
    return [f"{site}{link.get_attribute('href')}" for link in page.locator("td.question a").all()]


@pytest.mark.parametrize("width", [360, 1280, 1920])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_fits_is_stable_and_accessible(browser: Any, site: str, width: int, scheme: str) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not installed")
    # only here scripts of the test are allowed on the page
    options: dict[str, Any] = {"bypass_csp": True, "color_scheme": scheme}
    errors = ("status of 404",)
    with opened(browser, errors, viewport={"width": width, "height": 900}, **options) as page:
        page.context.add_init_script(WATCH_SHIFTS)
        page.context.add_init_script(path=AXE)
        questions = [questions_of(page, site, run)[0].removeprefix(site) for run in RUNS.values()]
        for path in (*PAGES, *questions, "/run/0/nothing"):
            goto(page, site + path)
            check_page(page, path)


def check_page(page: Any, name: str, *, is_accessible: bool = True) -> None:
    assert page.evaluate(FITS), name
    assert page.evaluate("window.shift") < 0.1, name
    found = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"] if is_accessible else []
    serious = [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")]
    assert serious == [], name


LABEL = "node => getComputedStyle(node, '::before').content"


def test_lists_need_no_sideways_scrolling_on_a_phone(browser: Any, site: str, recorded: Path) -> None:
    lists = {
        f"{site}/": ("headline", "cost", "providers"),
        f"{site}/run/0/first/questions": ("type", "bm25"),
        (recorded / "results" / "first" / "report.html").as_uri(): ("type", "bm25"),
    }
    with opened(browser, viewport={"width": 360, "height": 800}) as page:
        for address, labels in lists.items():
            goto(page, address)
            api.expect(page.locator("table.stack").first).to_be_visible()
            scrolls = page.locator(".scroll:has(table.stack)")
            assert scrolls.evaluate_all("all => all.every((one) => one.scrollWidth <= one.clientWidth)"), address
            for label in labels:
                assert page.locator(f"td[data-label='{label}']").first.evaluate(LABEL) == f'"{label}"'
        goto(page, site)
        page.locator("th a").first.click()
        page.wait_for_url("**sort=run**")


def test_no_page_needs_sideways_scrolling_on_a_phone(browser: Any, site: str, recorded: Path) -> None:
    files = [
        (recorded / folder / run / "report.html").as_uri() for folder, run in (("results", "h"), ("audit-results", "a"))
    ]
    wide = "nodes => nodes.filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.ariaLabel)"
    with opened(browser, viewport={"width": 360, "height": 800}) as page:
        for address in (*(site + path for path in PAGES), *files):
            goto(page, address)
            assert page.locator(".scroll").evaluate_all(wide) == [], address
        goto(page, f"{site}/run/0/h")
        phase = page.locator("td[data-label='violation']").first
        assert phase.evaluate(LABEL) == '"violation"'
        assert phase.bounding_box()["x"] < 60, "a block, not a column"


def test_print_is_light_on_a_dark_screen(browser: Any, site: str, recorded: Path) -> None:
    file = (recorded / "results" / "first" / "report.html").as_uri()
    with opened(browser, color_scheme="dark") as page:
        for address in (f"{site}/run/0/first", file):
            page.emulate_media(media="screen")
            goto(page, address)
            colors = (
                "[document.body, document.querySelector('.card')].map((one) => getComputedStyle(one).backgroundColor)"
            )
            assert set(page.evaluate(colors)) == {"rgb(20, 21, 23)", "rgb(27, 29, 32)"}
            page.emulate_media(media="print")
            assert set(page.evaluate(colors)) == {"rgb(255, 255, 255)"}
            assert page.evaluate("getComputedStyle(document.body).color") == "rgb(28, 30, 33)"


def test_the_widest_table_fits_a_printed_page(browser: Any, site: str) -> None:
    # A4 has 718 pixels within its margins, and Chromium makes a page smaller by up to a third
    with opened(browser, viewport={"width": 718, "height": 1000}) as page:
        goto(page, f"{site}/run/0/second")
        page.emulate_media(media="print")
        assert page.evaluate("document.documentElement.scrollWidth") <= 1.5 * 718


def test_long_names_hide_no_figures(browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    long = "bm25(around_turns=2,around_weight=0.25,around_words=120,b=0.6,k1=1.5)"
    assert main(["eval", "--providers", "bm25", long, "--end", "20", "--run-id", "r"]) == 0
    tables = ("Where they disagree", "Failures by reason")
    with viewer(tmp_path / "results") as site, opened(browser, viewport={"width": 1280, "height": 900}) as page:
        goto(page, f"{site}/run/0/r")
        for name in tables:
            region = page.get_by_role("region", name=name).filter(has=page.locator("table"))
            assert region.evaluate("node => node.scrollWidth <= node.clientWidth"), name
        for chart in page.locator(".chart .scroll").all():
            left = chart.evaluate("node => node.getBoundingClientRect().left")
            texts = chart.locator("svg:not(.slim) text").evaluate_all(
                "nodes => nodes.map((node) => node.getBoundingClientRect().left)"
            )
            assert min(texts) >= left


def test_what_every_step_of_a_trial_cost_is_in_sight(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Stub() as stub:
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        monkeypatch.setenv("OPENAI_BASE_URL", f"{stub.url}/v1")
        stub.always(completion("yes", tokens=(3_000, 20)))
        judged = ["--answering-model", "gpt-4o-mini", "--judge-model", "gpt-4o-mini", "--canaries", "off"]
        assert main(["eval", "--providers", "bm25", "none", "oracle", "--end", "1", *judged, "--run-id", "r"]) == 0
    with viewer(tmp_path / "results") as site, opened(browser, viewport={"width": 1280, "height": 900}) as page:
        goto(page, questions_of(page, site, "0/r")[0])
        page.locator("details").evaluate_all("nodes => nodes.forEach((node) => { node.open = true; })")
        steps = page.get_by_role("region", name="Steps")
        api.expect(steps).to_have_count(3)
        assert steps.first.locator("th").all_inner_texts()[-1] == "cost"
        assert steps.evaluate_all("nodes => nodes.every((node) => node.scrollWidth <= node.clientWidth)")


def test_a_table_that_goes_on_has_a_shadow_at_that_edge_and_its_names_stay_in_view(browser: Any, site: str) -> None:
    image = pytest.importorskip("PIL.Image")
    with opened(browser, viewport={"width": 800, "height": 900}) as page:
        goto(page, f"{site}/run/0/second")
        table = page.get_by_role("region", name="starter", exact=True)
        table.scroll_into_view_if_needed()

        def right_edge() -> float:
            shown = image.open(BytesIO(table.screenshot())).convert("L")
            return sum(shown.crop((shown.width - 2, 0, shown.width, shown.height)).tobytes()) / shown.height

        assert table.evaluate("node => node.scrollWidth > node.clientWidth + 100")
        before = right_edge()
        table.evaluate("node => { node.scrollLeft = node.scrollWidth; }")
        assert before < right_edge() - 10
        name, whole = table.locator("td.name").first.bounding_box(), table.bounding_box()
        assert name["x"] == whole["x"]


def test_the_list_of_runs_is_searched_filtered_and_sorted(browser: Any, site: str) -> None:
    with opened(browser) as page:
        goto(page, site)
        names = page.locator("td.name > a:first-child")
        api.expect(names).to_have_count(5)
        for control, value, left in (
            ("suite", "hygiene", ["h"]),
            ("status", "complete", None),
            ("tag", "paper", ["first"]),
        ):
            page.select_option(f"select[name={control}]", value)
            if left is not None:
                api.expect(names).to_have_text(left)
            page.select_option(f"select[name={control}]", "")
            api.expect(names).to_have_count(5)
        page.fill("input[name=q]", "oracle starter")
        api.expect(names).to_have_count(2)
        for order in (["first", "second"], ["second", "first"]):
            page.get_by_role("link", name="run", exact=False).and_(page.locator("th a")).first.click()
            api.expect(names).to_have_text(order)
        names.first.click()
        api.expect(page).to_have_url(f"{site}/run/0/second")


def test_questions_are_filtered_without_a_reload(browser: Any, site: str) -> None:
    with opened(browser) as page:
        goto(page, f"{site}/run/0/first/questions")
        rows = page.locator("#list tbody tr")
        api.expect(rows).to_have_count(12)
        page.locator("h1").evaluate("node => node.dataset.kept = 1")
        cases = {
            "type": page.locator("select[name=type] option").nth(1).inner_text(),
            "provider": "none",
            "outcome": "wrong",
            "right": "oracle",
            "wrong": "none",
        }
        for name, value in cases.items():
            page.select_option(f"select[name={name}]", value)
            page.wait_for_url(lambda url, name=name: f"{name}=" in url)
        found = rows.count()
        assert 0 < found < 12
        page.select_option("select[name=right]", "none")
        page.select_option("select[name=wrong]", "oracle")
        api.expect(rows).to_have_count(0)
        page.go_back()
        page.get_by_role("link", name="clear").click()
        api.expect(rows).to_have_count(12)


def test_keys_lead_through_the_questions(browser: Any, site: str) -> None:
    with opened(browser) as page:
        goto(page, f"{site}/run/0/first/questions?right=oracle&wrong=none")
        links = [f"{site}{link.get_attribute('href')}" for link in page.locator("td.question a").all()]
        assert len(links) > 2
        page.keyboard.press("/")
        page.keyboard.type("no such question")
        api.expect(page.locator("input[name=text]")).to_be_focused()
        api.expect(page.locator("td.question a")).to_have_count(0)
        page.keyboard.press("Escape")
        api.expect(page.locator("input[name=text]")).not_to_be_focused()
        page.goto(links[0])
        for key, place in (("j", 1), ("ArrowRight", 2), ("k", 1), ("ArrowLeft", 0)):
            page.keyboard.press(key)
            api.expect(page).to_have_url(links[place])
            page.wait_for_load_state()
        page.keyboard.press("Tab")
        api.expect(page.locator("a.skip")).to_be_focused()
        page.keyboard.press("Enter")
        api.expect(page).to_have_url(f"{links[0]}#main")
        page.locator("summary").first.focus()
        page.keyboard.press("Enter")
        api.expect(page.locator("details").first).to_have_attribute("open", "")


def test_compare_trends_and_history_follow_their_forms(browser: Any, site: str) -> None:
    with opened(browser) as page:
        goto(page, f"{site}/compare")
        api.expect(page.locator(".chart svg:visible")).to_have_count(1)
        for place, side in enumerate(("0/first:oracle", "0/first:bm25")):
            page.locator("select[name=side]").nth(place).select_option(side)
        page.select_option("select[name=only]", "wins")
        page.get_by_role("button", name="compare").click()
        api.expect(page.locator("td a[href*='/question?']").first).to_be_visible()
        page.locator("td a[href*='/question?']").first.click()
        api.expect(page.locator(".turn").first).to_be_visible()
        goto(page, f"{site}/trends")
        page.select_option("select[name=provider]", "oracle")
        page.wait_for_url("**provider=oracle**")
        api.expect(page.locator("h1")).to_contain_text("oracle")
        goto(page, f"{site}/run/0/first/history")
        page.locator(".turn a").first.click()
        page.wait_for_url("**/question?**")
        page.get_by_role("link", name="Show it in the conversation").click()
        page.wait_for_url("**/history?**#evidence")
        api.expect(page.locator("#evidence")).to_be_in_viewport()
        api.expect(page.locator(".turn .badge.live").first).to_contain_text("bm25")
        page.locator(".sessions a").last.click()
        api.expect(page.locator("section.card").last).to_be_in_viewport()
        page.select_option("select[name=case]", "")
        page.get_by_role("button", name="show").click()
        page.wait_for_url(lambda url: "case=&" in url or url.endswith("case="))
        assert page.locator(".turn:not(.other)").count() > 1


def test_every_choice_of_trends_and_history_changes_the_page(browser: Any, site: str) -> None:
    with opened(browser) as page:
        goto(page, f"{site}/trends")
        names = [one.get_attribute("name") for one in page.locator("form.filters select").all()]
        assert names == ["benchmark", "provider", "measure"]
        for name in names:
            value = page.locator(f"select[name={name}] option").last.get_attribute("value")
            page.select_option(f"select[name={name}]", value)
            page.get_by_role("button", name="show").click()
            page.wait_for_url(lambda url, name=name, value=value: parse_qs(urlsplit(url).query).get(name) == [value])
            assert page.locator(f"select[name={name}]").input_value() == value
        goto(page, f"{site}/run/0/first/history")
        for name in ("cluster", "case"):
            value = page.locator(f"select[name={name}] option").last.get_attribute("value")
            page.select_option(f"select[name={name}]", value)
            page.get_by_role("button", name="show").click()
            page.wait_for_url(lambda url, name=name, value=value: f"{name}={value}" in url)
            assert page.locator(f"select[name={name}]").input_value() == value


def test_numbers_lead_to_as_many_questions(browser: Any, site: str) -> None:
    with opened(browser) as page:
        goto(page, f"{site}/run/0/first")
        links = page.locator("td.n a[href*='/questions?']")
        assert links.count()
        for place in range(links.count()):
            shown = int(links.nth(place).inner_text())
            links.nth(place).click()
            page.wait_for_url("**/questions?**")
            api.expect(page.locator("#list tbody tr")).to_have_count(shown)
            goto(page, f"{site}/run/0/first")


def test_arrow_keys_scroll_a_table_that_has_the_focus(browser: Any, site: str) -> None:
    with opened(browser) as page:
        goto(page, f"{site}/run/0/first/questions")
        page.locator("td.question a").nth(1).click()
        page.wait_for_url("**/question?**")
        address = page.url
        page.locator("details").first.locator("summary").click()
        page.locator(".scroll").first.focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("/")  # the page has no search field
        api.expect(page).to_have_url(address)
        page.locator("h1").click()
        page.keyboard.press("k")
        page.wait_for_url(lambda url: url != address)


@pytest.mark.parametrize("java_script", [True, False])
def test_links_lead_through_all_pages_of_questions(browser: Any, tmp_path: Path, java_script: bool) -> None:
    with contextlib.chdir(tmp_path):
        assert main(["eval", "--providers", "bm25", "--end", "120", "--run-id", "long"]) == 0
    with viewer(tmp_path / "results") as site, opened(browser, java_script_enabled=java_script) as page:
        address = f"{site}/run/0/long/questions"
        page.goto(address)
        while page.title().startswith("Reading"):
            page.goto(address)
        seen = []
        for many, numbers in ((50, "1–50 of 120"), (50, "51–100 of 120"), (20, "101–120 of 120")):
            api.expect(page.locator(".pager").first).to_contain_text(numbers)
            links = page.locator("td.question a")
            api.expect(links).to_have_count(many)
            seen += [link.get_attribute("href") for link in links.all()]
            if many == 50:
                page.locator(".pager a[rel=next]").first.click()
        assert len(set(seen)) == 120
        assert page.locator(".pager a[rel=next]").count() == 0
        page.locator(".pager a[rel=prev]").first.click()
        api.expect(page.locator(".pager").first).to_contain_text("51–100 of 120")
        page.reload()
        api.expect(page.locator(".pager").first).to_contain_text("51–100 of 120")


def test_every_column_of_the_list_of_runs_sorts(browser: Any, site: str) -> None:
    with opened(browser) as page:
        goto(page, site)
        names = page.locator("td.name > a:first-child")
        api.expect(names).to_have_count(5)
        headings = [link.inner_text().strip() for link in page.locator("th a").all()]
        assert len(headings) > 3
        for place, heading in enumerate(headings):
            orders = []
            for _ in range(2):
                with page.expect_navigation():
                    page.locator("th a").nth(place).click()
                column = page.locator("th").filter(has=page.locator("a")).nth(place)
                orders.append((column.get_attribute("aria-sort"), names.all_inner_texts()))
            assert {order for order, _ in orders} == {"ascending", "descending"}, heading
            assert sorted(orders[0][1]) == sorted(orders[1][1])


def test_pages_work_without_javascript(browser: Any, site: str) -> None:
    with opened(browser, java_script_enabled=False) as page:
        page.goto(f"{site}/?q=first")
        assert page.locator("td.name a").first.inner_text() == "first"
        page.goto(f"{site}/run/0/first/questions?right=oracle&wrong=none")
        page.locator("td.question a").first.click()
        assert page.locator(".mem, .hint").count()
        page.goto(f"{site}/compare?side=0/first:bm25&side=0/first:oracle")
        api.expect(page.locator("table").first).to_be_visible()


@pytest.fixture(scope="module")
def hostile(recorded: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return copy_hostile(recorded, tmp_path_factory.mktemp("hostile"))


@pytest.mark.parametrize("run", HOSTILE)
def test_hostile_texts_run_nothing_in_the_viewer(browser: Any, hostile: list[Path], run: str) -> None:
    address = RUNS[run]
    with viewer(*hostile) as site, opened(browser, ("status of 4",)) as page:
        own = [f"/run/{address}{part}" for part in ("", "/questions", "/history", "/charts")]
        for path in (*own, *(PAGES if run == "second" else ())):
            goto(page, site + path)
        links = questions_of(page, site, address)
        for link in links:
            goto(page, f"{link}&full=1")
            assert page.content().count(MARKER) > 200
            for summary in page.locator("summary").all():
                summary.click()
            assert page.evaluate(FITS), link  # one of the strings is a word of 600 characters
        assert len(links) == HOSTILE[run]
        for history in page.locator("a[href*='/history']").all()[:1]:
            goto(page, site + str(history.get_attribute("href")))
        for text in map(storable, STRINGS):
            query = f"text={quote(text)}&provider={quote(text)}&right={quote(text)}"
            page.goto(f"{site}/run/{address}/questions?{query}")
            page.goto(f"{site}/run/{address}/question?case={quote(text)}&benchmark={quote(text)}")
            page.goto(f"{site}/run/{address}/history?case={quote(text)}&cluster={quote(text)}")


@pytest.mark.parametrize("run", HOSTILE)
def test_hostile_texts_run_nothing_in_a_report(browser: Any, hostile: list[Path], tmp_path: Path, run: str) -> None:
    place, _, name = RUNS[run].partition("/")
    file = tmp_path / "page.html"
    assert main(["report", str(hostile[int(place)] / name), "--format", "html", "--output", str(file)]) == 0
    with opened(browser) as page:
        page.goto(file.as_uri())
        assert page.locator("main").inner_text().count(MARKER) > 50
        for summary in page.locator("summary").all():
            summary.click()
        for text in map(storable, STRINGS):
            page.fill("input[name=text]", text.replace("\r", "").replace("\n", ""))
        page.fill("input[name=text]", "")
        api.expect(page.locator("#questions tbody tr:not([hidden])")).to_have_count(HOSTILE[run])


@pytest.fixture
def other_site(tmp_path: Path) -> Iterator[str]:
    """A web page that the user has open, from a site that wants to read results."""
    (tmp_path / "index.html").write_text("<title>evil</title><body></body>")

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://evil.example:{server.server_port}"
        server.shutdown()
        thread.join()


def test_another_site_reads_and_changes_nothing(browser: Any, site: str, other_site: str) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(other_site)
    read = """async (address) => {
        const load = (tag) => new Promise((resolve) => {
            const node = document.createElement(tag);
            node.onload = () => resolve(`${tag} loaded`);
            node.onerror = () => resolve("refused");
            node.src = address;
            document.body.append(node);
        });
        const ask = (options) => fetch(address, options).then((reply) => reply.text()).then(
            (text) => text ? "read" : "refused", () => "refused");
        return [await ask({}), await ask({mode: "no-cors"}), await ask({method: "POST", mode: "no-cors"}),
            await load("img"), await load("script")];
    }"""
    for path in ("/", "/run/0/first", "/static/view.js", "/static/icon.svg"):
        assert set(page.evaluate(read, site + path)) == {"refused"}, path
    page.evaluate(
        "address => { const f = document.createElement('iframe'); f.src = address; document.body.append(f); }", site
    )
    page.evaluate(
        """address => { const f = document.createElement('form'); f.action = address; f.method = 'post';
        document.body.append(f); f.submit(); }""",
        f"{site}/run/0/first",
    )
    page.wait_for_url(f"{site}/run/0/first")
    assert page.locator("td.name").count() == 0
    port = urlsplit(site).port
    assert page.goto(f"http://evil.example:{port}/").status == 421  # its name now leads here
    context.close()


@pytest.mark.parametrize("path", ["/run/0/..%2f..%2fetc%2fpasswd", "/static/..%2fapp.py", "/compare?side=0/../../etc"])
def test_no_address_leads_outside(browser: Any, site: str, path: str) -> None:
    with opened(browser, ("status of 404",)) as page:
        assert page.goto(site + path).status == 404
        assert "root:" not in page.content()
        assert page.get_by_role("navigation").get_by_role("link").first.is_visible(), "there is a way back"


@pytest.mark.parametrize("run", RUNS)
def test_a_report_opens_from_a_file(browser: Any, recorded: Path, tmp_path: Path, run: str) -> None:
    place, _, name = RUNS[run].partition("/")
    folder = recorded / ("results", "audit-results")[int(place)]
    file = tmp_path / "page.html"
    assert main(["report", str(folder / name), "--format", "html", "--output", str(file)]) == 0
    for width, scheme in ((360, "dark"), (1280, "light"), (1920, "light")):
        is_accessible = width != 1280 and AXE.exists()
        size = {"width": width, "height": 900}
        with opened(browser, bypass_csp=True, viewport=size, color_scheme=scheme) as page:
            page.context.add_init_script(WATCH_SHIFTS)
            if is_accessible:
                page.context.add_init_script(path=AXE)
            page.goto(file.as_uri())
            assert page.locator(".chart svg").count() > 0
            check_page(page, f"{run} at {width}", is_accessible=is_accessible)


def test_a_report_has_no_filters_without_javascript(browser: Any, recorded: Path) -> None:
    file = (recorded / "results" / "first" / "report.html").as_uri()
    for java_script in (True, False):
        with opened(browser, java_script_enabled=java_script) as page:
            page.goto(file)
            assert page.locator("form.filters").is_visible() is java_script


@pytest.mark.parametrize("width", [360, 1280])
def test_an_open_question_of_a_report_has_the_width_of_its_table(browser: Any, recorded: Path, width: int) -> None:
    with opened(browser, viewport={"width": width, "height": 900}) as page:
        page.goto((recorded / "results" / "first" / "report.html").as_uri())
        table = page.locator("#questions table").bounding_box()
        page.locator("td.question summary").first.click()
        more = page.locator("#questions .more").first.bounding_box()
        assert more["width"] > 0.9 * table["width"]
        assert more["x"] + more["width"] <= table["x"] + table["width"] + 1
        assert page.locator("#questions table").bounding_box()["width"] == table["width"]


def test_the_report_of_the_default_run_is_small_searchable_and_alone(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["eval", "--run-id", "r"]) == 0
    file = tmp_path / "results" / "r" / "report.html"
    assert file.stat().st_size <= 3_000_000
    with opened(browser) as page:
        page.goto(file.as_uri())
        assert page.locator(".chart svg").count() > 4
        rows = page.locator("#questions tbody tr:not([hidden])")
        api.expect(rows).to_have_count(360)
        asked = page.locator("#questions summary").nth(100).inner_text()
        page.fill("input[name=text]", asked)
        api.expect(rows).to_have_count(1)
        page.fill("input[name=text]", "")
        page.select_option("select[name=type]", "multi-hop")
        assert 0 < rows.count() < 360
        page.select_option("select[name=type]", "")
        page.select_option("select[data-column='2']", "wrong")
        page.select_option("select[data-column='3']", "right")
        assert 0 < rows.count() < 100
        page.emulate_media(media="print")
        assert page.locator("form.filters").is_hidden()


@contextmanager
def started(folder: Path, stub: Stub, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    environment = {**os.environ, "OPENAI_API_KEY": "sk-none", "OPENAI_BASE_URL": f"{stub.url}/v1", "COLUMNS": "100"}
    command = [*MEMORYBENCH, *arguments]
    with (
        (folder / "out").open("wb") as out,
        subprocess.Popen(command, cwd=folder, env=environment, stdout=out, stderr=out) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def test_progress_of_a_run_that_is_killed_and_resumed(browser: Any, tmp_path: Path) -> None:
    allowed = threading.Semaphore(0)

    async def turn() -> None:
        await asyncio.to_thread(allowed.acquire)

    run = ("eval", "--providers", "bm25", "--end", "20", "--answering-model", "gpt-4o", "--run-id", "live")
    with (
        Stub() as stub,
        viewer(tmp_path / "results") as site,
        opened(browser) as page,
        ExitStack() as cleanup,
    ):
        cleanup.callback(allowed.release, 1000)
        stub.always(after(turn, completion("ok")))
        done = page.locator("#live b")
        status = page.locator("td .badge:not(.plain)")
        with started(tmp_path, stub, *run) as process:
            until(page, lambda: bool(stub.calls) or process.poll() is not None)
            goto(page, f"{site}/run/0/live")
            api.expect(page.locator("#live h2")).to_have_text("Running")
            allowed.release(3)
            api.expect(done).to_have_text("3")
            page.goto(site)
            api.expect(status).to_have_text("running")
            page.goto(f"{site}/run/0/live")
            process.kill()
            api.expect(page.locator("main .facts .badge").first).to_have_text("partial")  # the page is loaded again
            page.goto(site)
            api.expect(status).to_have_text("partial")
        with started(tmp_path, stub, "eval", "--resume", "live") as process:
            api.expect(status).to_have_text("partial")
            asked = len(stub.calls)
            until(page, lambda: len(stub.calls) > asked or process.poll() is not None)
            page.goto(site)
            api.expect(status).to_have_text("running")
            allowed.release(1000)
            api.expect(status).to_have_text("complete")  # the list renews itself
            assert process.wait() == 0, (tmp_path / "out").read_text()
        goto(page, f"{site}/run/0/live")
        assert page.locator("#live").count() == 0


def test_a_list_that_renews_itself_keeps_the_focus_and_the_scroll_position(
    browser: Any, recorded: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "results"
    shutil.copytree(recorded / "results", folder)
    with closing(sqlite3.connect(folder / "results.db")) as db:
        db.execute("UPDATE runs SET status = 'running', finished = NULL, state_crc = NULL WHERE id = 'first'")
        db.commit()
    lock = RunLock(folder / "first", "first")
    with viewer(folder) as site, opened(browser, viewport={"width": 1280, "height": 240}) as page:
        goto(page, site)
        link = page.locator("td.name a[href='/run/0/first']")
        link.focus()
        scrolled = page.locator(".scroll").evaluate("node => { node.scrollTop = 40; return node.scrollTop; }")
        assert scrolled == 40
        assert main(["runs", "tag", str(folder / "h"), "new"]) == 0
        api.expect(page.locator("td.name a", has_text="new")).to_have_count(1)
        api.expect(link).to_be_focused()
        assert page.locator(".scroll").evaluate("node => node.scrollTop") == scrolled
    lock.release()


def test_a_filter_on_the_page_of_a_deleted_run_opens_an_error_page(
    browser: Any, recorded: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "results"
    shutil.copytree(recorded / "results", folder)
    with viewer(folder) as site, opened(browser, ("status of 404",)) as page:
        goto(page, f"{site}/run/0/first/questions")
        assert main(["runs", "delete", str(folder / "first"), "--yes"]) == 0
        page.select_option("select[name=provider]", "bm25")
        api.expect(page.locator(".card.warning")).to_contain_text("first")
        api.expect(page.get_by_role("link", name="All runs")).to_be_visible()


def until(page: Any, is_so: Callable[[], bool]) -> None:
    while not is_so():
        page.wait_for_timeout(50)


def test_damaged_and_foreign_databases_give_clear_pages(browser: Any, recorded: Path, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("text", "torn", "foreign")]
    for folder in folders:
        folder.mkdir()
    (folders[0] / "results.db").write_text("not a database")
    (folders[1] / "results.db").write_bytes((recorded / "results" / "results.db").read_bytes()[:5000])
    with closing(sqlite3.connect(folders[2] / "results.db")) as db:
        db.execute("CREATE TABLE other (id)")
    with viewer(*folders, recorded / "results") as site, opened(browser, ("status of 422",)) as page:
        goto(page, site)
        api.expect(page.locator(".card.warning")).to_have_count(3)
        api.expect(page.locator("td.name")).to_have_count(4)
        for place in range(3):
            assert page.goto(f"{site}/run/{place}/first").status == 422
            assert "Traceback" not in page.content()
            assert "results.db" in page.locator(".card.warning").inner_text()
