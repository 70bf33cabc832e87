"""The house is in order: what is committed speaks of the project alone, and its documents lead somewhere."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_constraints_hold_versions_and_nothing_else() -> None:
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        assert re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line), line


def test_links_of_the_documentation_lead_somewhere() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_no_committed_file_names_a_home_folder_or_a_registry() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    private = re.compile(r"/(?:root|home)/[a-z]|pypi\.org|registry\.npmjs")
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if name.startswith("tests/test_house") or not path.is_file():
            continue
        text = path.read_bytes().decode("utf-8", "replace")
        found = private.search(text)
        assert found is None, f"{name}: {found and found[0]}"
