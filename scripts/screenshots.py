"""Take the screenshots of docs/images: `.venv-real/bin/python scripts/screenshots.py [NAME …]`, after `make test-real`.

It needs Chromium and `pip install pillow`, which makes the files small. The runs are made in a temporary folder: the
starter benchmark, a run whose judge, a local stand-in, accepts two of three wrong answers, and a hygiene run.
"""

from __future__ import annotations

import os
import sys
import tempfile
from io import BytesIO
from itertools import count
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from PIL import Image  # noqa: E402
from playwright.sync_api import Page, sync_playwright  # noqa: E402

from memorybench.cli.main import main as memorybench  # noqa: E402
from tests.cli.test_judge_checks import knowing, saying  # noqa: E402
from tests.doubles.stub import Stub  # noqa: E402
from tests.real.test_viewer import find_browser, goto, viewer  # noqa: E402

IMAGES = ROOT / "docs" / "images"
BEST = "right=hybrid&wrong=bm25"


def make_runs() -> None:
    calls = count()
    with Stub() as stub:
        os.environ |= {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": f"{stub.url}/v1"}
        saying(stub, lambda prompt: "yes" if knowing(prompt) == "yes" or next(calls) % 3 else "no")
        judged = ["--answering-model", "scripted/quote", "--judge-model", "gpt-4o", "--canaries", "120"]
        memorybench(["eval", *judged, "--run-id", "judged"])
    memorybench(["eval", "--run-id", "starter"])
    memorybench(["report", "starter", "--format", "html", "--output", "starter.html"])
    memorybench(["hygiene", "run", "--run-id", "hygiene", "--output", "stores"])


def take(page: Page, site: str) -> None:
    def shoot(name: str, path: str, height: int, width: int = 1280) -> None:
        if sys.argv[1:] and name not in sys.argv:
            return
        page.set_viewport_size({"width": width, "height": height})
        goto(page, path if "://" in path else site + path)
        image = Image.open(BytesIO(page.screenshot()))
        image.quantize(256, dither=Image.Dither.NONE).save(IMAGES / f"{name}.png", optimize=True)

    shoot("runs", "/", 420)
    shoot("run", "/run/0/starter", 1100)
    shoot("judge", "/run/0/judged", 1000)
    shoot("questions", f"/run/0/starter/questions?{BEST}", 700)
    shoot("compare", "/compare?side=0/starter", 1000)
    shoot("question", f"/run/0/starter/question?benchmark=starter&case=amara-q05&{BEST}", 1000)
    shoot("history", "/run/0/starter/history?cluster=amara&case=amara-q01", 1000)
    shoot("residue", "/run/1/hygiene/question?benchmark=scenarios&case=memory-deletion-on-request", 1130)
    shoot("run-wide", "/run/0/starter", 1080, 1920)
    shoot("report", Path("starter.html").absolute().as_uri(), 1100)
    page.emulate_media(color_scheme="dark")
    shoot("run-dark-narrow", "/run/0/starter", 900, 360)


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        make_runs()
        with viewer(Path("results"), Path("stores")) as site, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
            take(browser.new_page(), site)
            browser.close()
        os.chdir(ROOT)


if __name__ == "__main__":
    main()
