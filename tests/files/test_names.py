from __future__ import annotations

from pathlib import Path

import pytest

from memorybench.files.names import inside, safe_name, safe_run_id
from memorybench.text.spelling import camel, join_names, nearest, suggestion
from tests.doubles.refusals import refused


@pytest.mark.parametrize("name", ["mem0", "supermemory-v4", "a_b", "0", "x" * 64])
def test_a_valid_name_is_returned(name):
    assert safe_name(name, "p.yaml:1: name") == name


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("My Provider!", '"my-provider"'),
        ("../etc", '"etc"'),
        ("x" * 65, '"' + "x" * 64 + '"'),
        ("a\n", '"a"'),
    ],
)
def test_an_invalid_name_is_refused_with_a_valid_suggestion(name, remedy):
    error = refused(safe_name, name, "p.yaml:1: name")
    assert error.where == "p.yaml:1: name"
    assert error.remedy.endswith(remedy)


@pytest.mark.parametrize("name", ["", "!!", "é"])
def test_a_name_without_a_valid_character_is_refused_without_a_suggestion(name):
    assert not refused(safe_name, name, "p").remedy


@pytest.mark.parametrize("run", ["run-1", "2026-11-15T03.12_A", "a.b.c", "x" * 64])
def test_a_valid_run_id_is_returned(run):
    assert safe_run_id(run, "--resume") == run


@pytest.mark.parametrize(
    "run", ["../x", "a/../b", "%2F", "..%2Fx", ".hidden", "a..b", "", "a/b", "a\\b", "a\0", "a\n", "x" * 65, "é"]
)
def test_a_run_id_that_could_be_a_path_is_refused(run):
    assert refused(safe_run_id, run, "--resume").where == "--resume"


@pytest.mark.parametrize("run", ["../x", "..%2Fx", "a..b", ".hidden"])
def test_the_suggested_run_id_is_valid(run):
    suggested = refused(safe_run_id, run, "--resume").remedy.split('"')[1]
    assert safe_run_id(suggested, "--resume") == suggested


def test_a_path_inside_its_folder_is_resolved(tmp_path):
    assert inside(tmp_path, "a/../b.json", "x") == tmp_path.resolve() / "b.json"
    assert inside(tmp_path, tmp_path / "c", "x") == tmp_path.resolve() / "c"


@pytest.mark.parametrize("path", ["../x", "a/../../x", "/etc/passwd", Path("/"), "a\0b"])
def test_a_path_outside_its_folder_is_refused(path, tmp_path):
    assert refused(inside, tmp_path, path, "c.yaml:2: data.path").where == "c.yaml:2: data.path"


def test_a_link_to_outside_its_folder_is_refused(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path)
    assert refused(inside, folder, "link/x", "c.yaml:2: data.path").where == "c.yaml:2: data.path"


def test_a_folder_with_a_similar_name_is_outside(tmp_path):
    assert refused(inside, tmp_path / "a", "../ab/x", "x").where == "x"


def test_the_nearest_name_ignores_case_and_hyphens():
    assert nearest("BM-25", ["dense", "bm25"]) == "bm25"
    assert nearest("mem0x", ["mem0", "zep"]) == "mem0"
    assert nearest("zebra", ["mem0", "bm25"]) is None
    assert suggestion("zebra", ["mem0"]) == ""


def test_a_long_list_of_names_is_cut():
    assert join_names([f"n{i:02}" for i in range(33)]).endswith("n29 and 3 more")


def test_camel_case_is_made_of_snake_case():
    assert [camel(name) for name in ("name", "display_name", "recall_at_5")] == ["name", "displayName", "recallAt5"]
