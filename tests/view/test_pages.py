"""Every page shows what the command line shows, in whatever state the results are."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import sys
from contextlib import closing
from html import unescape
from pathlib import Path
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from memorybench.charts import rendering
from memorybench.cli.main import main
from memorybench.core.report_sections import Table
from memorybench.journal.checksums import update_statements
from memorybench.journal.lock import RunLock
from memorybench.journal.places import journal_of
from memorybench.reporting.formatting import cell_text, with_interval
from memorybench.reporting.progress import FILE_NAME as PROGRESS
from memorybench.reporting.progress import Block, Snapshot
from memorybench.suites.failures import find_failures
from memorybench.suites.gate import report_of
from memorybench.suites.stored_run import open_stored_run
from memorybench.view.index import Filter
from memorybench.view.jobs import Jobs, Pending
from memorybench.view.results import Results
from tests.cli.command import Command
from tests.view.conftest import get, opened
from tests.view.hostile import MARKER, STRINGS, Markup, copy_hostile, make_hostile, storable, write_row

PAGES = (
    "/",
    "/run/0/{}",
    "/run/0/{}/charts",
    "/run/0/{}/questions",
    "/run/0/{}/history",
    "/compare?side=0/{}",
    "/compare?side=0/{}&only=changed",
    "/trends",
)
TAGS = """html head meta title link script body a header b nav main footer h1 h2 h3 p div span section article form
    label input select option button table thead tbody tr th td dl dt dd pre code details summary svg path circle kbd
    br progress g line text tspan noscript ol li"""
ATTRIBUTES = """charset name content rel href type src defer class id lang aria-label aria-current aria-sort aria-hidden
    aria-live focusable role tabindex scope title value selected placeholder method action width height viewbox d cx cy
    r fill stroke stroke-width stroke-dasharray stroke-linejoin stroke-miterlimit opacity fill-opacity font-size
    font-weight text-anchor transform display pointer-events x y x2 y2 dy
    max open data-label hx-get hx-target hx-select hx-swap hx-push-url hx-sync hx-trigger"""


@pytest.mark.slow
@pytest.mark.parametrize(("place", "run"), [(0, "first"), (0, "second"), (0, "h"), (0, "e"), (1, "a")])
def test_a_run_page_has_every_section_of_its_report(recorded: Path, client: TestClient, place: int, run: str) -> None:
    folder = (recorded / "results", recorded / "audit-results")[place]
    text = " ".join(Markup(get(client, f"/run/{place}/{run}")).text.split())
    with open_stored_run([run], [folder]) as stored:
        report = report_of(stored)
    for section in report.sections:
        if isinstance(section, Table):
            for row in (*section.rows, *section.detail_rows):
                for cell, column in zip(row, section.columns, strict=True):
                    shown = cell_text(cell, column.shows if not isinstance(cell, tuple) else "value").partition(" [")[0]
                    assert " ".join(shown.split(", ")[0].split()) in text
    for warning in report.warnings:
        assert " ".join(warning.split()) in text


def test_the_list_of_runs_filters_searches_and_sorts(client: TestClient) -> None:
    def ids(query: str) -> list[str]:
        return re.findall(r'<td class="name"><a href="/run/\d+/([^"]+)"', get(client, f"/?{query}"))

    assert set(ids("")) == {"first", "second", "h", "e", "a"}
    assert ids("suite=hygiene") == ["h"]
    assert ids("tag=paper") == ["first"]
    assert ids("q=ORACLE+starter&sort=run") == ["first", "second"]
    assert ids("q=ORACLE+starter&sort=run&order=desc") == ["second", "first"]
    assert ids("status=partial") == []
    assert ids("sort=nothing&offset=x") == ids("")


@pytest.mark.slow
def test_the_marks_are_those_of_results_failures(recorded: Path) -> None:
    results = Results([recorded / "results"])
    try:
        for run in ("first", "second", "h", "e"):
            with results.open(0, run) as stored:
                number = results.questions(0, stored)
                failures = find_failures(stored, {one.trial.subject.name for one in stored.outcomes()}).trials
            counted = set(results.index.reasons(number).items())
            found = {}
            for failure in failures:
                (question,) = [
                    one
                    for one in results.index.page(number, Filter(), 0, 1000)
                    if (one.benchmark, one.case_id) == (failure.trial.benchmark, failure.trial.case_id)
                ]
                (mark,) = [one for one in question.marks if one.trial == failure.trial.key]
                found[mark.subject, mark.reason] = found.get((mark.subject, mark.reason), 0) + 1
            assert set(found.items()) == counted
    finally:
        results.close()


@pytest.mark.slow
def test_questions_are_filtered_searched_and_paged(recorded: Path, client: TestClient) -> None:
    def cases(query: str) -> list[str]:
        return re.findall(r"case=([^&\"]+)", get(client, f"/run/0/first/questions?{query}"))

    every = cases("")
    assert len(every) == 12
    right, wrong = set(cases("right=oracle&wrong=none")), set(cases("provider=none&outcome=wrong"))
    assert right
    assert right <= wrong
    assert not cases("right=none&wrong=oracle")
    (one,) = cases(f"text={every[3]}")
    assert one == every[3]
    assert cases("text=%25") == []  # a percent sign is not a pattern
    assert cases("offset=99") == []
    results = Results([recorded / "results"])
    with results.open(0, "first") as stored:
        number = results.questions(0, stored)
    pages = [results.index.page(number, Filter(), offset, 5) for offset in (0, 5, 10)]
    assert [one.case_id for page in pages for one in page] == every
    results.close()


@pytest.mark.slow
def test_keys_lead_through_the_questions_of_a_filter(client: TestClient) -> None:
    listed = get(client, "/run/0/first/questions?right=oracle&wrong=none")
    addresses = [one.replace("&amp;", "&") for one in re.findall(r'href="([^"]*/question\?[^"]+)"', listed)]
    seen, address = [], addresses[0]
    while address:
        seen.append(address)
        page = get(client, address)
        following = re.search(r'rel="next" href="([^"]+)"', page)
        address = following[1].replace("&amp;", "&") if following else ""
    assert seen == addresses


def test_a_question_page_has_what_show_has(command: Command, recorded: Path, client: TestClient) -> None:
    address = re.search(r'href="([^"]*/question\?[^"]+)"', get(client, "/run/0/second/questions"))
    assert address is not None
    case = re.search(r"case=([^&\"]+)", address[1])
    assert case is not None
    shown = command("show", "second", case[1], "--json", "--full", "--results", str(recorded / "results")).json
    text = " ".join(Markup(get(client, address[1].replace("&amp;", "&") + "&full=1")).text.split())
    assert " ".join(shown["case"]["question"].split()) in text
    for turn in shown["gold"]:
        assert " ".join(turn["content"].split()) in text
    for trial in shown["trials"]:
        for memory in trial["memories"] or ():
            assert " ".join(memory["content"].split()) in text
        for step in trial["steps"]:
            for text_of in ("prompt",):
                if isinstance(step["inputs"], dict) and text_of in step["inputs"]:
                    assert " ".join(step["inputs"][text_of].split()) in text


@pytest.mark.slow
def test_a_memory_of_a_gold_session_is_not_marked_like_one_of_a_gold_turn(recorded: Path, client: TestClient) -> None:
    addresses = re.findall(r'href="([^"]*/question\?[^"]+)"', get(client, "/run/0/first/questions"))
    pages = [get(client, address.replace("&amp;", "&")) for address in addresses]
    marked = [
        re.findall(r'<div class="mem ?(hit|near|)[^"]*">.*?(?:gold (turn|session)|<p>)', page, re.DOTALL)
        for page in pages
    ]
    assert {one for own in marked for one in own} == {("hit", "turn"), ("near", "session"), ("", "")}
    for page, own in zip(pages, marked, strict=True):
        assert ("Green line: " in page) == any(kind == "near" for kind, _ in own)
        assert ("Green: " in page) == any(kind == "hit" for kind, _ in own)


def test_the_list_of_questions_says_what_right_means(client: TestClient) -> None:
    assert "a gold session is among the first five sessions found, with or without the gold turn" in get(
        client, "/run/0/first/questions"
    )


@pytest.mark.parametrize(
    ("run", "noun"), [("0/first", "question"), ("1/a", "question"), ("0/h", "scenario"), ("0/e", "case")]
)
def test_the_cases_of_a_suite_have_its_name_and_what_right_means_there(
    client: TestClient, recorded: Path, tmp_path: Path, run: str, noun: str
) -> None:
    listed = get(client, f"/run/{run}/questions")
    assert f"<h1>{noun.capitalize()}s</h1>" in listed
    assert re.search(rf"\b\d+ {noun}s</span>", listed)
    assert f">all {noun}s</a>" in get(client, f"/run/{run}")
    first = unescape(re.findall(r'href="([^"]*/question\?[^"]+)"', listed)[0])
    assert re.search(rf">\d+ {noun}s</a>", get(client, first))
    folder = recorded / ("audit-results" if run.startswith("1/") else "results")
    assert (
        main(["report", run[2:], "--results", str(folder), "--format", "html", "--output", f"{tmp_path}/r.html"]) == 0
    )
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert f"<h2>{noun.capitalize()}s</h2>" in page
    (right,) = re.findall(r">(Right: [^<]+)</p>", listed)
    assert right in page
    assert ("the first five" in right) == (run == "0/first")


@pytest.mark.parametrize(("run", "heading"), [("0/h", "Assertions"), ("0/e", "Memory after"), ("1/a", "Judge")])
def test_suites_show_their_own_sections(client: TestClient, run: str, heading: str) -> None:
    addresses = re.findall(r'href="([^"]*/question\?[^"]+)"', get(client, f"/run/{run}/questions"))
    assert addresses
    pages = [get(client, address.replace("&amp;", "&")) for address in addresses[:3]]
    assert any(heading in page or "Scores" in page for page in pages)


@pytest.mark.slow
def test_a_comparison_equals_that_of_the_command_line(command: Command, recorded: Path, client: TestClient) -> None:
    said = command("compare", "first:oracle", "first:none", "--json", "--results", str(recorded / "results")).json
    text = Markup(get(client, "/compare?side=0/first:oracle&side=0/first:none&only=wins")).text
    pair = said["comparisons"][0]
    assert f"{pair['wins']} / {pair['losses']} / {pair['ties']}" in text
    assert client.get("/compare?side=0/first:oracle&side=0/first:oracle").status_code in (422, 202)


@pytest.mark.slow
def test_without_a_choice_the_newest_run_is_compared(client: TestClient) -> None:
    page = get(client, "/compare")
    assert re.findall(r'<option value="(0/[^"]+)" selected', page) == ["0/second:bm25", "0/second:oracle"]
    assert "oracle is better in accuracy" in page or "no significant difference" in page


@pytest.mark.slow
def test_without_a_choice_all_providers_are_compared_not_the_best_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    providers = ("bm25", "bm25(around_weight=0)", "bm25(around_weight=2.0)")
    assert main(["eval", "--providers", *providers, "--end", "8", "--run-id", "three"]) == 0
    with opened(tmp_path / "results") as client:
        page = get(client, "/compare")
        assert re.findall(r'<option value="(0/[^"]+)" selected', page) == ["0/three"]
        assert "3 tests" in Markup(page).text
        assert "among those compared" in page
        assert "<h1>Comparison of bm25, bm25(around_weight=0) and bm25(around_weight=2)</h1>" in page


def test_a_run_with_one_provider_does_not_offer_to_compare_providers(client: TestClient) -> None:
    assert "/compare?side=" not in get(client, "/run/0/first")


@pytest.mark.slow
def test_the_charts_of_a_run_are_drawn_after_its_page(client: TestClient) -> None:
    pytest.importorskip("vl_convert")
    drawn = get(client, "/run/0/second/charts")
    while "hx-get" in drawn:
        drawn = get(client, "/run/0/second/charts")
    assert drawn.count('<svg role="img"') >= 4
    assert drawn.strip() in get(client, "/run/0/second")
    compared = get(client, "/compare?side=0/first:bm25&side=0/first:oracle")
    assert compared.count('<svg role="img"') == 2, "one is for narrow pages"


@pytest.mark.slow
def test_trends_have_a_row_per_run(client: TestClient) -> None:
    page = Markup(get(client, "/trends?benchmark=starter&provider=oracle&measure=recall@5")).text
    assert "first" in page
    assert "second" in page
    assert re.search(r"<h1>\S+ of \S+ on starter</h1>", get(client, "/trends"))  # the benchmark with most runs
    assert "<h1>recall@5 of bm25 on starter</h1>" in get(client, "/trends?provider=bm25")  # and the measure


@pytest.mark.parametrize(
    ("folder", "run", "some"),
    [
        (
            "results",
            "second",
            {"provider", "case", "score.reason", "answer.result.text", "search.result.memories.content"},
        ),
        ("results", "h", {"provider", "claim", "phase.result.findings.found", "phase.result.findings.places.file"}),
        ("results", "e", {"provider", "case.conversation.content", "extract.result.memory.goals", "score.reason"}),
        ("audit-results", "a", {"provider", "case.gold_context.content", "answer.result.text", "judge.result.reason"}),
    ],
)
def test_every_field_of_the_hostile_run_has_had_every_string(
    recorded: Path, tmp_path: Path, folder: str, run: str, some: set[str]
) -> None:
    shutil.copytree(recorded / folder, tmp_path / folder)
    fields = make_hostile(tmp_path / folder, run)
    assert some <= fields.keys()
    assert {field: len(strings) for field, strings in fields.items() if len(strings) < len(STRINGS)} == {}


@pytest.mark.slow
@pytest.mark.parametrize(("place", "run"), [(0, "second"), (0, "h"), (0, "e"), (1, "a")])
def test_hostile_texts_stay_text_on_every_page(recorded: Path, tmp_path: Path, place: int, run: str) -> None:
    with opened(*copy_hostile(recorded, tmp_path)) as client:
        paths = [path.format(run).replace("/0/", f"/{place}/").replace("=0/", f"={place}/") for path in PAGES]
        if run != "second":  # one subject, which cannot be compared
            paths = [path for path in paths if "/compare" not in path]
        pages = [get(client, path) for path in paths if not path.endswith("/e/history")]
        listed = get(client, f"/run/{place}/{run}/questions")
        addresses = {one.replace("&amp;", "&") for one in re.findall(r'href="([^"]*/question\?[^"]+)"', listed)}
        assert addresses
        trials = [get(client, f"{address}&full=1") for address in sorted(addresses)]
        assert all(page.count(MARKER) > 200 for page in trials)
        pages += trials
        for text in map(storable, STRINGS):
            query = {"text": text, "provider": text, "right": text}
            reply = client.get(f"/run/{place}/{run}/questions", params=query)
            pages += [reply.text, client.get("/", params={"q": text, "sort": text}).text]
            query = {"case": text, "benchmark": text, "cluster": text}
            pages.append(client.get(f"/run/{place}/{run}/question", params=query).text)
            pages.append(client.get(f"/run/{place}/{run}/history", params=query).text)
            pages.append(client.get("/compare", params={"side": f"{place}/{run}:{text}"}).text)
            pages.append(client.get("/trends", params={"measure": text, "benchmark": text}).text)
        assert get(client, f"/run/{place}/{run}/questions?text=%ED%A0%BD&type=%FF%00")
    assert sum(MARKER in page for page in pages) > 50
    for page in pages:
        markup = Markup(page)
        assert markup.tags <= set(TAGS.split())
        assert markup.attributes.keys() <= set(ATTRIBUTES.split())
        assert not "".join(markup.scripts).strip()
        assert markup.attributes.get("src", set()) <= {"/static/htmx.min.js", "/static/view.js"}
        for name in ("href", "action", "hx-get"):
            for address in markup.attributes.get(name, ()):
                assert address.startswith(("/", "#"))
                assert not address.startswith("//")
        assert "\u202e" not in page
        assert "\x1b" not in page
        assert "49" + MARKER not in page  # an evaluated template


def test_a_run_that_is_running_shows_its_progress(recorded: Path, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    shutil.copytree(recorded / "results", folder)
    with closing(sqlite3.connect(folder / "results.db")) as db:
        db.execute("UPDATE runs SET status = 'running', finished = NULL, state_crc = NULL WHERE id = 'first'")
        db.execute("DELETE FROM outcomes WHERE run = 'first' AND ordinal > 20")
        db.commit()
    with opened(folder) as client:
        assert "partial" in get(client, "/?q=first")
        assert "--resume first" in get(client, "/run/0/first")
        lock = RunLock(folder / "first", "first")
        block = Block(benchmark="starter", subject="bm25", state="working", done=7, total=12, eta=90.0)
        snapshot = Snapshot(blocks=(block,), done=21, total=36, eta=95.0)
        (folder / "first" / PROGRESS).write_text(snapshot.model_dump_json())
        page = get(client, "/run/0/first")
        assert 'hx-trigger="every 2s"' in page
        assert "of 36 trials" in " ".join(Markup(page).text.split())
        assert "starter × bm25" in get(client, "/run/0/first/progress")
        assert 'hx-trigger="every 3s"' in get(client, "/")
        lock.release()
        assert "every" not in get(client, "/run/0/first/progress")


def test_a_run_that_is_not_complete_names_no_best_provider(recorded: Path, tmp_path: Path) -> None:
    """Its questions are asked in the order of the benchmark, so its figures are not those of a random sample."""
    folder = tmp_path / "results"
    shutil.copytree(recorded / "results", folder)
    with opened(folder) as client:
        headline = re.findall(r'class="headline"[^>]*>(.*?)</td>', get(client, "/?q=first"), re.DOTALL)
        assert any("%" in text for text in headline)
    with closing(sqlite3.connect(folder / "results.db")) as db:
        db.execute("UPDATE runs SET status = 'partial', finished = NULL, state_crc = NULL WHERE id = 'first'")
        db.commit()
    with opened(folder) as client:
        headline = re.findall(r'class="headline"[^>]*>(.*?)</td>', get(client, "/?q=first"), re.DOTALL)
        assert headline
        assert not any("%" in text for text in headline)


def test_new_outcomes_of_a_run_appear(recorded: Path, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    shutil.copytree(recorded / "results", folder)
    with closing(sqlite3.connect(folder / "results.db")) as db:
        db.execute("CREATE TABLE aside AS SELECT * FROM outcomes WHERE run = 'first'")
        db.execute("DELETE FROM outcomes WHERE run = 'first' AND ordinal > 10")
        db.execute("UPDATE runs SET status = 'running', finished = NULL, state_crc = NULL WHERE id = 'first'")
        db.commit()
        with opened(folder) as client:
            few = get(client, "/run/0/first/questions").count("badge")
            db.execute("INSERT OR REPLACE INTO outcomes SELECT * FROM aside")
            db.commit()
            assert get(client, "/run/0/first/questions").count("badge") > few


@pytest.mark.parametrize(
    "content",
    [b"", b"not a database", b"SQLite format 3\x00" + b"\xff" * 4000, None],
    ids=["empty", "text", "torn", "x"],
)
def test_a_damaged_results_file_gives_a_clear_page(recorded: Path, tmp_path: Path, content: bytes | None) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    if content is None:
        with closing(sqlite3.connect(folder / "results.db")) as db:
            db.execute("CREATE TABLE other (id)")
            db.commit()
    else:
        (folder / "results.db").write_bytes(content)
    before = (folder / "results.db").read_bytes()
    with opened(folder, recorded / "results") as client:
        page = get(client, "/")
        assert "results.db" in page
        assert "/run/1/first" in page  # other folders are shown
        reply = client.get("/run/0/first")
        assert reply.status_code == 422
        assert "Traceback" not in reply.text
    assert (folder / "results.db").read_bytes() == before


def test_a_changed_row_is_named(recorded: Path, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    shutil.copytree(recorded / "results", folder)
    with closing(sqlite3.connect(folder / "results.db")) as db:
        db.execute("UPDATE outcomes SET body = replace(body, 'recall', 'Recall') WHERE run = 'first'")
        db.commit()
    with opened(folder) as client:
        reply = client.get("/run/0/first")
        while reply.status_code == 202:
            reply = client.get("/run/0/first")
        assert reply.status_code == 422
        assert "is damaged" in reply.text


@pytest.mark.parametrize(
    ("path", "header", "value"),
    [
        ("/run/0/first/questions?type=x", "hx-redirect", "/run/0/first/questions?type=x"),
        ("/run/0/first/charts", "hx-refresh", "true"),
    ],
)
def test_a_page_that_is_not_ready_is_opened_instead_of_swapped_in(
    recorded: Path, monkeypatch: pytest.MonkeyPatch, path: str, header: str, value: str
) -> None:
    def not_ready(*_: object) -> None:
        raise Pending

    with opened(recorded / "results") as client:
        monkeypatch.setattr(Jobs, "get", not_ready)
        assert client.get(path, headers={"HX-Request": "true"}).headers[header] == value
        assert client.get(path).headers["refresh"] == "1"


@pytest.mark.parametrize(
    ("path", "header", "value"),
    [
        ("/run/0/deleted/questions?type=x", "hx-redirect", "/run/0/deleted/questions?type=x"),
        ("/run/0/deleted/progress", "hx-refresh", "true"),
        ("/run/0/deleted/charts", "hx-refresh", "true"),
    ],
)
def test_an_error_is_opened_instead_of_swapped_in(client: TestClient, path: str, header: str, value: str) -> None:
    reply = client.get(path, headers={"HX-Request": "true"})
    assert (reply.status_code, reply.headers[header]) == (404, value)
    assert header not in client.get(path).headers


def test_a_renderer_that_fails_costs_the_charts_only(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("vl_convert")
    monkeypatch.setattr(rendering, "COMMAND", (sys.executable, "-c", "import os; os._exit(9)"))
    part = get(client, "/run/0/first/charts")
    assert Markup(part).tags == {"p", "a"}
    assert 'href="/run/0/first"' in part
    for path in (
        "/run/0/first",
        "/compare?side=0/first:bm25&side=0/first:oracle",
        "/trends?benchmark=starter&provider=bm25",
    ):
        assert "<table" in get(client, path)


def test_no_results_folder_yet(tmp_path: Path) -> None:
    with opened(tmp_path / "results") as client:
        assert "memorybench eval" in get(client, "/")
        assert get(client, "/trends")


def test_the_first_page_is_that_of_the_named_run(recorded: Path) -> None:
    from memorybench.cli.view import _start

    folders = [recorded / "results"]
    assert _start(["first"], folders)[1] == "/run/0/first"
    assert _start(["first", "second"], folders)[1] == "/compare?side=0/first&side=0/second"
    assert _start([], folders) == (folders, "/")
    assert json.dumps(_start([str(recorded / "audit-results" / "a")], folders)[1]) == '"/run/1/a"'


@pytest.mark.slow
def test_a_damaged_run_does_not_hide_the_others(recorded: Path, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    shutil.copytree(recorded / "results", folder)
    with closing(sqlite3.connect(folder / "results.db")) as db:
        db.execute("UPDATE runs SET spec = 'nonsense' WHERE id = 'second'")
        db.commit()
    with opened(folder) as client:
        for path in ("/", "/trends", "/compare"):
            assert get(client, path)
        page = get(client, "/")
        assert 'href="/run/0/first"' in page
        assert 'href="/run/0/second"' not in page
        assert "second" in Markup(page).text


def overwrite(folder: Path, table: str, condition: str, changes: dict[str, object]) -> None:
    """Change rows as a faulty program would, with the right checksums."""
    with closing(journal_of(folder).open_for_writing()) as db, db.transaction():
        for sql, values in update_statements(db, table, condition, (), changes):
            db.execute(sql, values)


@pytest.mark.slow
@pytest.mark.parametrize("spec", ["[]", "{}", '{"benchmarks": 5, "providers": 7}'])
def test_a_spec_of_another_form_does_not_hide_the_other_runs(recorded: Path, tmp_path: Path, spec: str) -> None:
    folder = tmp_path / "results"
    shutil.copytree(recorded / "results", folder)
    overwrite(folder, "runs", "id = 'second'", {"spec": spec})
    (folder / "second" / "report.json").unlink()
    with opened(folder) as client:
        for path in ("/", "/trends", "/compare"):
            assert 'href="/run/0/first"' in get(client, path) or path != "/"


def test_an_outcome_of_another_form_is_named(recorded: Path, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    shutil.copytree(recorded / "results", folder)
    overwrite(folder, "outcomes", "run = 'second'", {"body": "{}"})
    with opened(folder) as client:
        reply = client.get("/run/0/second")
        assert (reply.status_code, "run second" in reply.text) == (422, True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [{"results": [{}]}, {"results": [None]}, {"results": 5}, {"judge_checks": 5}, {"results": [{"group": ""}]}, None],
)
def test_a_report_of_another_form_is_made_again(
    recorded: Path, tmp_path: Path, changes: dict[str, object] | None
) -> None:
    folder = tmp_path / "results"
    shutil.copytree(recorded / "results", folder)
    with opened(folder) as client:
        whole = get(client, "/")
    path = folder / "first" / "report.json"
    path.write_text("[" * 200_000 if changes is None else json.dumps({**json.loads(path.read_text()), **changes}))
    with opened(folder) as client:
        assert get(client, "/") == whole
        assert get(client, "/trends")


@pytest.mark.slow
def test_a_report_that_is_a_link_to_another_folder_is_not_shown(recorded: Path, tmp_path: Path) -> None:
    folder, outside = tmp_path / "results", tmp_path / "report.json"
    shutil.copytree(recorded / "results", folder)
    report = folder / "first" / "report.json"
    outside.write_text(report.read_text().replace('"bm25"', '"elsewhere"'))
    report.unlink()
    report.symlink_to(outside)
    with opened(folder) as client:
        assert "elsewhere" not in get(client, "/")
        assert "elsewhere" not in get(client, "/trends")


CITIES = """
name: cities
data: {type: local, path: ./cities.json}
schema:
  itemId: id
  question: question
  answer: answer
  evidence: evidence
  evidenceLevel: turn
  context: {field: $.turns, itemSchema: {role: role, text: text, dialogId: id}}
evaluation: {method: exact-match}
"""


def test_a_search_ignores_the_case_of_all_letters(command: Command, tmp_path: Path) -> None:
    texts = {"a": "МОСКВА или Größe?", "b": "Which city?"}
    items = [
        {
            "id": id,
            "question": text,
            "answer": "x",
            "evidence": [f"{id}1"],
            "turns": [{"id": f"{id}1", "role": "user", "text": text}],
        }
        for id, text in texts.items()
    ]
    configs = tmp_path / "benchmarks" / "configs"
    configs.mkdir(parents=True)
    (configs / "cities.yaml").write_text(CITIES, encoding="utf-8")
    (configs.parent / "cities.json").write_text(json.dumps(items), encoding="utf-8")
    assert command("eval", "--benchmarks", "cities", "--providers", "bm25", "--run-id", "r").code == 0
    with opened(tmp_path / "results") as client:
        for text, found in (("москва", ["a"]), ("GRÖ", ["a"]), ("CITY", ["b"]), ("ж", [])):
            page = get(client, f"/run/0/r/questions?text={quote(text)}")
            assert re.findall(r"case=([^&\"]+)", page) == found, text


def test_a_search_text_may_have_any_length(client: TestClient) -> None:
    assert get(client, f"/run/0/first/questions?text={'x' * 60_000}")


@pytest.mark.slow
@pytest.mark.parametrize("run", ["h", "e", "one"])
def test_a_page_without_a_comparison_leads_with_its_figures(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: str
) -> None:
    shutil.copytree(recorded / "results", tmp_path / "results")
    monkeypatch.chdir(tmp_path)
    if run == "one":
        assert main(["eval", "--providers", "bm25", "--limit", "20", "--run-id", "one"]) == 0
    with open_stored_run([run], [tmp_path / "results"]) as stored:
        summary = stored.summary
        (result,) = [one for one in summary.results if not one.group]
        names = {"h": (), "e": ("precision", "recall", "f1"), "one": ("recall@5",)}[run]
        wanted = [f"{name} {with_interval(measure)}" for name in names if (measure := result.measure(name)) is not None]
    wanted += ["0 of 2 scenarios failed"] if run == "h" else []
    with opened(tmp_path / "results") as client:
        lead = " ".join(re.findall(r'<p class="lead">(.*?)</p>', get(client, f"/run/0/{run}")))
    assert wanted
    for text in wanted:
        assert text in unescape(lead)


def test_scores_of_a_search_say_which_evidence_they_count(client: TestClient) -> None:
    page = get(client, "/run/0/first/question?benchmark=starter&case=amara-q01")
    assert "recall@5 of sessions" in page
    assert "recall@5 of turns" not in page


def test_the_list_of_runs_shows_the_n_of_the_headline(client: TestClient) -> None:
    row = get(client, "/").partition('href="/run/0/first"')[2].partition("</tr>")[0]
    assert re.search(r'<td class="n"[^>]* title="36/36 trials[^"]*"><div>12<', row)


@pytest.mark.slow
def test_residue_in_files_has_its_place_on_the_pages_and_in_the_report(command: Command, tmp_path: Path) -> None:
    run = command("hygiene", "run", "memory-deletion-on-request", "--run-id", "r", "--output", "results")
    assert run.code in (0, 3)
    (found,) = [one for one in command("results", "r", "--json").json["residue"] if one["phase"] == "violation"]
    assert re.search(r"\S+ at byte [\d,]+ \(plain\)", found["files"])
    report = (tmp_path / "results" / "r" / "report.html").read_text()
    with opened(tmp_path / "results") as client:
        run = get(client, "/run/0/r")
        trial = get(client, "/run/0/r/question?benchmark=scenarios&case=memory-deletion-on-request")
    for page in (report, run):
        assert found["files"] in page
    assert "Residue in files" in trial
    assert trial.index("well_behaved <span") < trial.index("violation <span") < trial.index("amnesiac <span")
    assert "byte offset" in trial


def end_without_score(results: Path, status: str, condition: str) -> int:
    """Give some trials of a run of scenarios another end; return how many."""
    with closing(sqlite3.connect(results / "results.db")) as db:
        db.row_factory = sqlite3.Row
        rows = db.execute(f"SELECT rowid, * FROM outcomes WHERE run = 'h' AND {condition}").fetchall()
        for row in rows:
            failure = {"kind": "Lacking", "message": "the store lacks it"}
            body = {**json.loads(row["body"]), "status": status, "scores": [], "failure": failure}
            write_row(db, "outcomes", {**dict(row), "status": status, "body": json.dumps(body)})
        db.commit()
    return len(rows)


@pytest.mark.slow
def test_a_list_of_questions_shows_failures_and_phases_before_mutants(recorded: Path, tmp_path: Path) -> None:
    shutil.copytree(recorded / "results", tmp_path / "results")
    end_without_score(tmp_path / "results", "failed", "json_extract(body, '$.trial.variant') = 'violation'")
    with opened(tmp_path / "results") as client:
        rows = get(client, "/run/0/h/questions").split('<td class="marks">')[1:]
    for row in rows:
        marks = re.findall(r'<span class="badge[^"]*" title="(\w+), (\w+)', row)
        assert marks[:2] == [("failed", "violation"), ("right", "well_behaved")]


def test_skipped_mutants_are_not_failures(recorded: Path, tmp_path: Path) -> None:
    shutil.copytree(recorded / "results", tmp_path / "results")
    mutants = "json_extract(body, '$.trial.variant') NOT IN ('violation', 'well_behaved')"
    skipped = end_without_score(tmp_path / "results", "skipped", mutants)
    with opened(tmp_path / "results") as client:
        page = get(client, "/run/0/h")
    assert skipped
    assert "Failures by reason" not in page
    assert re.search(rf">{skipped} trials of <a [^>]*>2 scenarios</a> were skipped", page)
