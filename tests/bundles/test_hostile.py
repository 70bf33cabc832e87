"""Bundles from strangers: refused, or harmless."""

from __future__ import annotations

import json
import re
import stat
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from memorybench.bundles.archive import CONTENT
from tests.bundles.editing import as_lines, read_files, rows_of, write_files
from tests.cli.command import Command, Said

MakeBundle = Callable[..., Path]


@pytest.fixture
def files(bundle: MakeBundle) -> dict[str, bytes]:
    return read_files(bundle("hygiene"))


def verify(command: Command, path: Path) -> Said:
    """Verify a bundle. Nothing is written, and an error is one line."""
    before = {one: one.stat().st_mtime_ns for one in command.folder.rglob("*")}
    said = command("verify", str(path), "--json")
    assert said.err.count("\n") == (said.code == 2)
    assert "Traceback" not in said.err
    assert {one: one.stat().st_mtime_ns for one in command.folder.rglob("*")} == before
    return said


@pytest.mark.parametrize(
    "name",
    [
        *(
            "../evil.py",
            "/tmp/evil.py",
            "..\\evil.py",
            "C:\\evil.py",
            "run.json/../../evil",
            "evil.py",
            "steps.jsonl\0.py",
        ),
        *("STEPS.JSONL", "a/" * 500, "‮nosj.troper", "\x1b[31mred", "results.db", "steps.jsonl/"),
    ],
)
def test_a_file_of_another_name_is_refused(command: Command, files: dict[str, bytes], name: str) -> None:
    path = command.folder / "hostile.mbz"
    with zipfile.ZipFile(path, "w") as archive:
        for one, content in files.items():
            archive.writestr(one, content)
        info = zipfile.ZipInfo("x")
        info.filename = name
        archive.writestr(info, b"import os")
    said = verify(command, path)
    assert said.code == 2
    assert "\x1b" not in said.err
    assert "‮" not in said.err


def test_a_file_that_occurs_twice_is_refused(command: Command, files: dict[str, bytes]) -> None:
    path = write_files(command.folder / "hostile.mbz", files)
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("run.json", files["run.json"])
    assert verify(command, path).code == 2


def test_a_missing_file_is_refused(command: Command, files: dict[str, bytes]) -> None:
    path = command.folder / "hostile.mbz"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            if name != "report.json":
                archive.writestr(name, content)
    assert verify(command, path).code == 2


def test_a_link_is_refused(command: Command, files: dict[str, bytes]) -> None:
    path = command.folder / "hostile.mbz"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = ((stat.S_IFLNK if name == "run.json" else stat.S_IFREG) | 0o777) << 16
            archive.writestr(info, b"/etc/passwd" if name == "run.json" else content)
    assert verify(command, path).code == 2


@pytest.mark.slow
def test_a_bomb_is_refused_before_it_is_unpacked(command: Command, files: dict[str, bytes]) -> None:
    path = command.folder / "hostile.mbz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in files.items():
            if name != "steps.jsonl":
                archive.writestr(name, content)
        with archive.open("steps.jsonl", "w") as file:
            for _ in range(300):
                file.write(bytes(1024 * 1024))
    assert path.stat().st_size < 1024 * 1024
    assert verify(command, path).code == 2


@pytest.mark.slow
def test_a_size_that_is_too_small_in_the_directory_is_detected(command: Command, files: dict[str, bytes]) -> None:
    """The declared size of a bomb is a lie: no more than it is unpacked, and its checksum is wrong."""
    path = command.folder / "hostile.mbz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in files.items():
            archive.writestr(name, bytes(80 * 1024 * 1024) if name == "notes.jsonl" else content)
    content = bytearray(path.read_bytes())
    large = struct.pack("<L", 80 * 1024 * 1024)
    while (place := content.find(large)) >= 0:
        content[place : place + 4] = struct.pack("<L", 10)
    path.write_bytes(content)
    assert verify(command, path).code == 2


@pytest.mark.parametrize("size", [0, 1, 100, 5000])
def test_half_a_file_is_refused(command: Command, bundle: MakeBundle, size: int) -> None:
    path = bundle("hygiene")
    path.write_bytes(path.read_bytes()[:size])
    assert verify(command, path).code == 2


def test_something_else_is_refused(command: Command) -> None:
    (command.folder / "text.mbz").write_text("hello")
    assert verify(command, command.folder / "text.mbz").code == 2
    assert verify(command, command.folder / "missing.mbz").code == 2
    assert verify(command, command.folder).code == 2


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("steps.jsonl", b"[" * 100_000 + b"\n"),
        ("steps.jsonl", b'{"key": 1}\n'),
        ("steps.jsonl", b"not json\n"),
        ("steps.jsonl", b"\xff\xfe\n"),
        ("outcomes.jsonl", b'{"trial":"x","ordinal":1e400,"finished":"","body":{}}\n'),
        ("notes.jsonl", b'{"kind":"a","text":"b","code":"import os"}\n'),
        ("attempts.jsonl", b"null\n"),
    ],
)
def test_rows_of_another_form_are_refused(command: Command, files: dict[str, bytes], name: str, line: bytes) -> None:
    path = write_files(command.folder / "hostile.mbz", {**files, name: files[name] + line})
    assert verify(command, path).code == 2


@pytest.mark.parametrize("name", [*CONTENT, "manifest.json"])
def test_a_key_that_occurs_twice_is_refused(command: Command, files: dict[str, bytes], name: str) -> None:
    """Of two equal keys, programs read different ones: a reader could see other figures than `verify` checked."""
    text = files[name].decode() or '{"kind": "a", "text": "b"}\n'
    twice = re.sub(r'\{(\s*"[^"]+":)', r"{\1 null, \1", text, count=1)
    path = write_files(command.folder / "hostile.mbz", {**files, name: twice.encode()}, repair=name != "manifest.json")
    assert verify(command, path).code == 2


@pytest.mark.parametrize("run_id", ["../../evil", "/etc", "", "a/b", "x" * 65, ".hidden"])
def test_a_run_id_that_is_a_path_is_refused(command: Command, files: dict[str, bytes], run_id: str) -> None:
    run = {**json.loads(files["run.json"]), "id": run_id}
    assert (
        verify(
            command, write_files(command.folder / "hostile.mbz", {**files, "run.json": json.dumps(run).encode()})
        ).code
        == 2
    )


def test_settings_that_name_files_and_code_are_inert(
    command: Command, bundle: MakeBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bundle that names code, configs and files of this machine makes nothing of it read or run."""
    mark = command.folder / "harm"
    (command.folder / "evil.py").write_text(f"open({str(mark)!r}, 'w')\ndef score(*_): return 1.0\n")
    path = bundle("judged")
    files = read_files(path)
    run = json.loads(files["run.json"])
    text = run["fingerprints"]["config of starter"]["text"].replace(
        '"method": "exact-match"', '"method": "custom",\n  "custom_evaluator": "./evil.py:score"'
    )
    run["fingerprints"]["config of starter"] = {"digest": "0" * 32, "text": text}
    run["spec"] |= {
        "config_dirs": [str(command.folder)],
        "data_files": {"starter": "/etc/passwd"},
        "answer_prompt": "/etc/passwd",
        "gate": {"run": "x", "folder": "/etc"},
    }
    files["run.json"] = json.dumps(run).encode()
    said = command("verify", str(write_files(path, files)), "--json")
    assert said.code == 1
    assert "root:" not in said.out
    assert not mark.exists()


def test_texts_of_a_bundle_cannot_control_the_terminal(command: Command, files: dict[str, bytes]) -> None:
    rows = rows_of(files, "outcomes.jsonl")
    rows[0]["body"]["trial"]["case_id"] = "\x1b]0;owned\x07\x1b[31m‮evil"
    path = write_files(command.folder / "hostile.mbz", {**files, "outcomes.jsonl": as_lines(rows)})
    said = command("verify", str(path))
    assert said.code == 1
    assert "\x1b]" not in said.out
    assert "‮" not in said.out
    assert "\x07" not in said.out


@pytest.mark.parametrize(
    ("key", "value"),
    [("shard", 1), ("started_with", 3), ("benchmarks", {"a": [None]}), ("thresholds", "x"), ("mode", [])],
)
def test_settings_of_another_form_are_contradicted_or_refused(
    command: Command, files: dict[str, bytes], key: str, value: object
) -> None:
    run = json.loads(files["run.json"])
    run["spec"][key] = value
    path = write_files(command.folder / "hostile.mbz", {**files, "run.json": json.dumps(run).encode()})
    said = command("verify", str(path), "--json")
    assert said.code in (1, 2), said.out
    assert "unexpected" not in said.err


def test_a_number_that_json_does_not_have_is_not_accepted(command: Command, files: dict[str, bytes]) -> None:
    line = b'{"benchmark":"b","id":"c","body":{"x":NaN}}\n'
    path = write_files(command.folder / "hostile.mbz", {**files, "cases.jsonl": files["cases.jsonl"] + line})
    said = command("verify", str(path), "--json")
    assert said.code in (1, 2)
    assert "unexpected" not in said.err


@pytest.mark.parametrize("place", ["before", "after", "between", "comment", "another bundle before"])
def test_bytes_outside_the_files_are_refused(command: Command, bundle: MakeBundle, place: str) -> None:
    """A program that reads from the beginning would find other files than `verify` checked."""
    content = bundle("hygiene").read_bytes()
    other = bundle("plain").read_bytes()
    path = command.folder / "hostile.mbz"
    changed = {
        "before": b"#!/bin/sh\n" + content,
        "after": content + b"more",
        "another bundle before": other + content,
        "comment": content[:-2] + struct.pack("<H", 4) + b"more",
    }
    if place == "between":
        with zipfile.ZipFile(path, "w") as archive:
            for name, text in read_files(bundle("hygiene")).items():
                archive.writestr(name, text)
                archive.fp.write(b"more")  # type: ignore[union-attr]
                archive.start_dir = archive.fp.tell()  # type: ignore[union-attr]
    else:
        path.write_bytes(changed[place])
    assert verify(command, path).code == 2


@pytest.mark.slow
def test_a_huge_note_is_shortened_on_the_terminal(command: Command, bundle: MakeBundle) -> None:
    """Laying out a note of 30 MB took half an hour."""
    path = bundle("plain")
    note = json.dumps({"kind": "remark", "text": "y" * 300_000}).encode() + b"\n"
    said = command("results", str(write_files(path, {**read_files(path), "notes.jsonl": note})))
    assert said.code == 0
    assert "yyy" in said.out
    assert said.out.count("y") < 20_000
