"""`--ray`: what is refused before Ray is imported. tests/real/test_ray.py has runs on a real cluster."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from memorybench import api
from memorybench.core.errors import BadInput
from memorybench.suites.spec import RunOptions, check_ray, unsaved_values
from tests.cli.command import Command

JOURNAL = "postgresql://tester@127.0.0.1:1/results"
EVAL = ("eval", "--providers", "bm25", "--limit", "1")


@pytest.fixture
def is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray looks installed; importing it would fail."""
    found = type(sys)("ray")
    found.__spec__ = ModuleSpec("ray", None)
    monkeypatch.setitem(sys.modules, "ray", found)


@pytest.mark.parametrize(
    ("options", "where"),
    [
        ({"workers": 2}, "--workers"),
        ({"cpus_per_worker": 1}, "--cpus-per-worker"),
        ({"ray_files": ("models.yaml",)}, "--ray-files"),
        ({"ray_env": ("ACME_KEY",)}, "--ray-env"),
        ({"ray": "local", "workers": 2}, "--ray"),
        ({"ray": "local", "journal": JOURNAL}, "--workers"),
        ({"ray": "local", "journal": JOURNAL, "workers": 2, "cpus_per_worker": 1.5}, "--cpus-per-worker"),
        ({"ray": "local", "journal": "postgresql://a:secret@127.0.0.1/b", "workers": 2}, "--journal"),
        ({"ray": "local", "journal": "postgresql://a:my#secret@127.0.0.1/b", "workers": 2}, "--journal"),
        ({"ray": "local", "journal": "postgresql://a:my?secret@127.0.0.1/b", "workers": 2}, "--journal"),
        ({"ray": "local", "journal": "postgresql://h/b?p%61ssword=secret", "workers": 2}, "--journal"),
    ],
)
def test_options_that_do_not_fit_together_are_refused(is_installed: None, options: dict, where: str) -> None:
    with pytest.raises(BadInput) as refused:
        check_ray(RunOptions(**options))
    assert refused.value.where == where
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("verb", [EVAL, ("audit", "x"), ("extraction", "run"), ("hygiene", "run", "x"), ("score", "x")])
def test_every_verb_that_runs_refuses_ray_without_a_database(
    command: Command, is_installed: None, verb: tuple[str, ...]
) -> None:
    refused = command(*verb, "--ray", "local", "--workers", "2")
    assert (refused.code, refused.err.count("\n")) == (2, 1), refused.err
    assert refused.err.startswith("memorybench: --ray: ")
    assert list(command.folder.iterdir()) == []


def test_python_refuses_the_same(is_installed: None) -> None:
    with pytest.raises(BadInput) as refused:
        api.evaluate(providers="bm25", limit=1, ray="local", workers=2)
    assert refused.value.where == "--ray"


def test_without_ray_one_line_names_the_package(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    refused = command(*EVAL, "--ray", "local", "--workers", "2", "--journal", JOURNAL)
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "memorybench[ray]" in refused.err


@pytest.mark.parametrize("value", ["0", "-1", "many"])
def test_a_number_of_workers_must_be_positive(command: Command, value: str) -> None:
    refused = command(*EVAL, "--ray", "local", "--workers", value, "--journal", JOURNAL)
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "--workers" in refused.err


def test_files_of_workers_must_be_in_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from memorybench.workers.ray_cluster import copy_files

    here, copy = tmp_path / "here", tmp_path / "copy"
    (here / "providers/configs").mkdir(parents=True)
    (here / "providers/configs/acme.yaml").write_text("name: acme")
    (here / "models.yaml").write_text("{}")
    (tmp_path / "outside.json").write_text("[]")
    copy.mkdir()
    monkeypatch.chdir(here)
    copy_files(["providers", "models.yaml", str(here / "models.yaml")], copy)
    copied = sorted(str(path.relative_to(copy)) for path in copy.rglob("*") if path.is_file())
    assert copied == ["models.yaml", "providers/configs/acme.yaml"]
    for path in ("missing.json", "../outside.json", "."):
        with pytest.raises(BadInput) as refused:
            copy_files([path], copy)
        assert refused.value.where == "--ray-files"


def test_workers_get_what_the_run_does_not_save() -> None:
    from memorybench.suites.hygiene.spec import HygieneSpec

    spec = HygieneSpec(store="reference", allow_code=True, agent_turn=True)
    assert unsaved_values(spec) == {"allow_code": True, "agent_turn": True}
