"""Recognizing the kind of a config file."""

from pathlib import Path

import pytest

from memorybench.catalog.files import recognise
from memorybench.files.yaml_file import load_yaml

FILES = {
    "agent": 'name: mine\ntype: command\ncommand: [my-agent, "${prompt}", "${serverUrl}"]\n',
    "extractor": "name: mine\ntype: command\ncommand: my-extractor --json\n",
    "store": 'name: mine\ntype: command\ncommand: {run: [my-store, "${folder}"]}\n',
    "provider": "name: mine\ntype: local\nadapter: ./mine.py:Mine\n",
}


@pytest.mark.parametrize("kind", FILES)
def test_short_file_is_recognized(kind: str, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(FILES[kind])
    assert recognise(load_yaml(tmp_path / "mine.yaml")) == kind


@pytest.mark.parametrize("kind", FILES)
def test_keys_take_precedence_over_the_name_of_the_folder(kind: str, tmp_path: Path) -> None:
    checkout = tmp_path / "benchmarks"
    checkout.mkdir()
    (checkout / "mine.yaml").write_text(FILES[kind])
    assert recognise(load_yaml(checkout / "mine.yaml")) == kind


def test_the_folder_decides_where_the_keys_do_not(tmp_path: Path) -> None:
    for folder, kind in (("stores", "store"), ("extractors", "extractor")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.yaml").write_text("name: x\ntype: reference\n")
        assert recognise(load_yaml(tmp_path / folder / "x.yaml")) == kind
