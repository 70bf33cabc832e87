"""Take the screenshots of docs/images: `make screenshots`, or `make screenshots NAMES="run compare"` for some.

It needs Chromium. The runs are made in a temporary folder, with models of a local stub: the starter benchmark without
and with answers that have a price, samples of it, a run whose judge accepts two of three wrong answers, an audit, an
extractor that forgets and invents, and a hygiene run. Pillow makes the files small.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any
from zlib import crc32

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import yaml  # noqa: E402
from aiohttp import web  # noqa: E402
from PIL import Image  # noqa: E402
from playwright.sync_api import Page, sync_playwright  # noqa: E402

from memorybench.cli.main import main as memorybench  # noqa: E402
from memorybench.core.conversation import Turn  # noqa: E402
from memorybench.models import rehearsal  # noqa: E402
from memorybench.suites.stored_run import open_stored_run  # noqa: E402
from tests.cli.test_judge_checks import CANARIES, knowing, saying  # noqa: E402
from tests.doubles.stub import Call, Stub, completion  # noqa: E402
from tests.real.test_viewer import find_browser, goto, viewer  # noqa: E402

IMAGES = ROOT / "docs" / "images"
BEST = "right=hybrid&wrong=bm25"
PRICES = {"small": (0.4, 1.6), "referee": (2, 8), "lenient": (2, 8)}
"""Of the models of the stub: dollars per million tokens of prompts and of replies."""
SAMPLES = ("--providers", "bm25", "--limit", "120")
"""A run of every night; the last one has other questions."""
EXTRACTOR = """
def careless(existing_memory, messages):
    if "dentists" not in str(messages):
        return existing_memory
    segments, channels = ["Dentists in rural areas"], ["Fairs of the dental trade"]
    return {**existing_memory, "customer_segments": segments, "channels": channels, "constraints": ["No weekend work"]}
"""
"""Of a conversation about dentists it stores one fact, one in other words and one that nobody said, and forgets one."""
LONG = 20_000
"""Characters of a prompt in which a small model overlooks things."""


def make_runs() -> None:
    for number, seed in enumerate((1, 1, 2), 1):
        memorybench(["eval", *SAMPLES, "--sample-seed", str(seed), "--run-id", f"nightly-{number}"])
    memorybench(["eval", "--run-id", "search"])
    with open_stored_run(["search"], [Path("results")]) as stored:
        run_reader, run = stored.parts[0]
        cases = {body["question"]: body for _, _, body in run_reader.cases(run.id)}
    with Stub() as stub:
        address = f"{stub.url}/v1"
        os.environ |= {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": address}
        cards = [
            {"name": name, "baseUrl": address, "price": {"input": tokens_in, "output": tokens_out}}
            for name, (tokens_in, tokens_out) in PRICES.items()
        ]
        Path("models.yaml").write_text(yaml.safe_dump({"models": cards}), encoding="utf-8")
        stub.always(reply_with(lambda prompt: judge(prompt) if "<response " in prompt else answer(prompt, cases)))
        judged = ["--answering-model", "small", "--judge-model", "referee", "--canaries", "120"]
        memorybench(["eval", *judged, "--tag", "nightly", "--run-id", "answers"])
        saying(stub, lambda prompt: "yes" if knowing(prompt) == "yes" or crc32(prompt.encode()) % 3 else "no")
        judged = ["--answering-model", "scripted/quote", "--judge-model", "lenient", "--canaries", "120"]
        memorybench(["eval", "--providers", "bm25", "dense", "hybrid", *judged, "--run-id", "lenient-judge"])
    memorybench(["report", "answers", "--format", "html", "--output", "answers.html"])
    scripted = ["--model", "scripted/quote", "--judge-model", "scripted/judge", "--canaries", "24"]
    memorybench(["audit", str(ROOT / "data" / "sample-dataset.json"), *scripted, "--run-id", "audit"])
    Path("extractor.py").write_text(EXTRACTOR, encoding="utf-8")
    careless = ["--extractor", "extractor.py:careless", "--allow-code", "--no-targets"]
    memorybench(["extraction", "run", *careless, "--run-id", "extraction"])
    memorybench(["hygiene", "run", "--run-id", "hygiene", "--output", "stores"])


def reply_with(rule: Callable[[str], str]) -> Callable[[web.BaseRequest, Call], Awaitable[web.StreamResponse]]:
    """Return a model of the stub that follows a rule, and reports its tokens."""

    def behave(request: web.BaseRequest, call: Call) -> Awaitable[web.StreamResponse]:
        prompt = str(call.json["messages"][-1]["content"])
        return completion(rule(prompt), model="", tokens=(len(prompt) // 4, 20))(request, call)

    return behave


def answer(prompt: str, cases: Mapping[str, Any]) -> str:
    """Answer correctly if the evidence is in the prompt; overlook a third of it in a long one."""
    case = cases[prompt.split("Question: ", 1)[1].split("\n", 1)[0]]
    has_evidence = all(turn["content"] in prompt for turn in case["evidence"])
    is_overlooked = len(prompt) > LONG and crc32(case["id"].encode()) % 3 == 0
    return case["answers"][0] if case["answers"] and has_evidence and not is_overlooked else "I don't know."


def judge(prompt: str) -> str:
    """Judge canaries correctly, and other answers by their words."""
    response = prompt.split("<response ")[1].split(">\n", 1)[1].split("\n</response ")[0]
    return CANARIES.get(response) or rehearsal.judge([Turn(role="user", content=prompt)])


def take(page: Page, site: str) -> None:
    def shoot(name: str, path: str, height: int, width: int = 1280, scheme: str = "light") -> None:
        if sys.argv[1:] and name not in sys.argv:
            return
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": height})
        goto(page, path if "://" in path else site + path)
        image = Image.open(BytesIO(page.screenshot()))
        image.quantize(128, dither=Image.Dither.NONE).save(IMAGES / f"{name}.png", optimize=True)

    run, questions = "/run/0/answers", f"/run/0/answers/questions?{BEST}"
    shoot("runs", "/", 800)
    shoot("run", run, 1500)
    shoot("run-dark", run, 1500, scheme="dark")
    shoot("run-wide", run, 1080, 1920)
    shoot("run-wide-dark", run, 1080, 1920, "dark")
    shoot("run-narrow", run, 1400, 360)
    shoot("run-dark-narrow", run, 1400, 360, "dark")
    shoot("questions", questions, 700)
    shoot("questions-narrow", questions, 1000, 360, "dark")
    goto(page, f"{site}{questions}&provider=bm25&outcome=not-retrieved")
    links = [link.get_attribute("href") or "" for link in page.locator("td.question a").all()]
    for number, link in enumerate(links[:3], 1):
        shoot(f"question-{number}", link, 1150)
    shoot("judge", "/run/0/lenient-judge", 1000)
    shoot("compare", "/compare?side=0/answers", 1000)
    shoot("compare-narrow", "/compare?side=0/answers", 1400, 360)
    shoot("trends", "/trends?benchmark=starter&provider=bm25&measure=recall@5", 700)
    shoot("audit", "/run/2/audit", 1250)
    shoot("extraction", "/run/0/extraction/question?benchmark=memory_test_cases&case=test_005", 1150)
    shoot("history", "/run/0/answers/history?cluster=amara&case=amara-q01", 1000)
    shoot("residue", "/run/1/hygiene/question?benchmark=scenarios&case=memory-deletion-on-request", 1130)
    report = Path("answers.html").absolute().as_uri()
    shoot("report", report, 1100)
    shoot("report-dark", report, 1100, scheme="dark")
    shoot("report-narrow", report, 1400, 360)


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        make_runs()
        with viewer(Path("results"), Path("stores"), Path("audit-results")) as site, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
            take(browser.new_page(), site)
            browser.close()
        os.chdir(ROOT)


if __name__ == "__main__":
    main()
