"""Rules for committed files: pinned versions, working links, no private paths."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_constraints_only_pin_versions() -> None:
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        assert re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line), line


def test_links_in_the_documentation_point_to_files() -> None:
    names = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
    pages = [*(ROOT / name for name in names), *(ROOT / "docs").glob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def committed() -> list[Path]:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if tracked.returncode != 0:
        pytest.skip("not a git checkout")
    return [path for name in tracked.stdout.splitlines() if (path := ROOT / name).is_file()]


def test_no_committed_file_is_a_journal_or_large() -> None:
    found = [path.name for path in committed() if path.suffix in (".db", ".mbz") or path.stat().st_size > 1_000_000]
    assert found == []


def test_no_committed_file_names_a_home_folder_or_a_registry() -> None:
    private = re.compile(r"/(?:root|home)/[a-z]|pypi\.org|registry\.npmjs")
    for path in committed():
        if path == Path(__file__):
            continue
        match = private.search(path.read_bytes().decode("utf-8", "replace"))
        assert match is None, f"{path.name}: {match and match[0]}"
