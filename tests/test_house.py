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
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_no_committed_file_names_a_home_folder_or_a_registry() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if tracked.returncode != 0:
        pytest.skip("not a git checkout")
    private = re.compile(r"/(?:root|home)/[a-z]|pypi\.org|registry\.npmjs")
    for name in tracked.stdout.splitlines():
        path = ROOT / name
        if name.startswith("tests/test_house") or not path.is_file():
            continue
        text = path.read_bytes().decode("utf-8", "replace")
        match = private.search(text)
        assert match is None, f"{name}: {match and match[0]}"
