"""Data comes whole and checked, or not at all; and only when it is asked for."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from memorybench.core.errors import BadInput, Malformed, MemorybenchError, RunConflict, ServiceError
from memorybench.datasets.locating import source_of
from memorybench.datasets.pulling import pull
from memorybench.datasets.sources import Piece, Source, state, verify_files
from memorybench.secrets.redaction import Redactor
from tests.datasets.described import bundled, config, item
from tests.doubles.refusals import refused
from tests.doubles.stub import Behaviour, Call, Stub, redirect, reset, status

CONTENT = bytes(range(256)) * 4096
SHA256 = hashlib.sha256(CONTENT).hexdigest()
NAME = "/datasets/owner/name/resolve/main/deep/data.json"


@pytest.fixture
def stub(stub: Stub) -> Stub:
    stub.always(serving(CONTENT))
    return stub


def serving(content: bytes, *, stops_after: int | None = None, etag: str = '"one"') -> Behaviour:
    """A file as file stores serve it, with ranges; `stops_after` so many bytes the line goes dead."""

    async def behave(request: web.BaseRequest, call: Call) -> web.StreamResponse:
        begin = 0
        asked = re.fullmatch(r"bytes=(\d+)-", call.headers.get("Range", ""))
        if asked and call.headers.get("If-Range") == etag:
            begin = int(asked[1])
        headers = {"ETag": etag, "Content-Length": str(len(content) - begin)}
        if begin >= len(content):
            return web.Response(status=416, headers={"Content-Range": f"bytes */{len(content)}"})
        if begin:
            headers["Content-Range"] = f"bytes {begin}-{len(content) - 1}/{len(content)}"
        response = web.StreamResponse(status=206 if begin else 200, headers=headers)
        await response.prepare(request)
        await response.write(content[begin : begin + (stops_after or len(content))])
        if stops_after is not None:
            assert request.transport is not None
            request.transport.abort()
        return response

    return behave


def on_hub(stub: Stub, cache: Path, **data: Any) -> Source:
    described = config(data={"type": "huggingface", "path": "owner/name/deep/data.json", "licence": "MIT", **data})
    return source_of(described, beside=None, cache=cache, hub=stub.url)


def fetch(source: Source, **options: Any) -> None:
    asyncio.run(pull(source, Redactor([]), **options))


def test_a_file_of_the_hub_is_downloaded_into_the_cache(stub: Stub, tmp_path: Path) -> None:
    source = on_hub(stub, tmp_path)
    assert not source.present
    told: list[tuple[int, int | None]] = []
    fetch(source, progress=lambda piece: lambda done, total: told.append((done, total)))
    assert [call.path for call in stub.calls] == [NAME]
    assert (tmp_path / "owner/name/deep/data.json").read_bytes() == CONTENT
    assert told[-1] == (len(CONTENT), len(CONTENT))
    assert (source.present, source.pinned, source.size) == (True, False, len(CONTENT))
    pulled = source.pieces[0].read_record()
    assert pulled is not None
    assert (pulled.sha256, pulled.size, pulled.url) == (SHA256, len(CONTENT), stub.url + NAME)
    assert verify_files(source) == SHA256
    assert sorted(os.listdir(tmp_path / "owner/name/deep")) == [".data.json.lock", "data.json", "data.json.pull.json"]


def test_a_present_file_is_not_downloaded_again(stub: Stub, tmp_path: Path) -> None:
    source = on_hub(stub, tmp_path)
    fetch(source)
    fetch(source)
    assert len(stub.calls) == 1


def test_an_interrupted_download_is_continued(stub: Stub, tmp_path: Path) -> None:
    source = on_hub(stub, tmp_path, sha256=SHA256)
    stub.next(serving(CONTENT, stops_after=300_000))
    with pytest.raises(ServiceError, match=r"download http://.* and put it at .*data.json"):
        fetch(source)
    assert not source.present
    fetch(source)
    first, second = stub.calls
    assert "Range" not in first.headers
    assert int(re.sub(r"\D", "", second.headers["Range"])) > 0
    assert source.pieces[0].file.read_bytes() == CONTENT


def test_a_file_that_changed_during_a_download_is_downloaded_from_the_start(stub: Stub, tmp_path: Path) -> None:
    source = on_hub(stub, tmp_path)
    stub.next(serving(CONTENT, stops_after=300_000), serving(CONTENT[::-1], etag='"two"'))
    with pytest.raises(ServiceError):
        fetch(source)
    fetch(source)
    assert source.pieces[0].file.read_bytes() == CONTENT[::-1]


def test_a_complete_partial_file_is_used(stub: Stub, tmp_path: Path) -> None:
    source = on_hub(stub, tmp_path)
    file = source.pieces[0].file
    file.parent.mkdir(parents=True)
    (file.parent / ".data.json.part").write_bytes(CONTENT)
    (file.parent / ".data.json.part.etag").write_text('"one"')
    fetch(source)
    assert file.read_bytes() == CONTENT


def test_a_file_with_another_checksum_than_pinned_is_rejected(stub: Stub, tmp_path: Path) -> None:
    source = on_hub(stub, tmp_path, sha256="0" * 64)
    error = refused(fetch, source)
    assert SHA256 in error.problem
    assert error.expected == "0" * 64
    assert "data.sha256" in error.remedy, "there is no file to delete"
    assert not source.present
    assert not source.pieces[0].record.exists()


@pytest.mark.parametrize(("size", "cap"), [(1000, 10**9), (None, 1000)])
def test_a_download_larger_than_expected_is_stopped(stub: Stub, tmp_path: Path, size: int | None, cap: int) -> None:
    source = on_hub(stub, tmp_path, **({"size": size} if size else {}))
    with pytest.raises(Malformed):
        fetch(source, cap=cap)
    assert not source.present


def test_redirects_to_storage_hosts_are_followed_up_to_a_limit(stub: Stub, tmp_path: Path) -> None:
    with Stub() as store:
        store.always(serving(CONTENT))
        stub.next(redirect(f"{store.url}/blob?signature=1"))
        fetch(on_hub(stub, tmp_path / "a"))
        assert [call.path for call in store.calls] == ["/blob"]
        stub.always(redirect(f"{stub.url}{NAME}"))
        with pytest.raises(ServiceError):
            fetch(on_hub(stub, tmp_path / "b"))
        stub.always(redirect("http://169.254.169.254/latest"))
        with pytest.raises(BadInput):
            fetch(on_hub(stub, tmp_path / "c"))


@pytest.mark.parametrize("code", [404, 401])
def test_status_of_a_failed_download_is_reported(stub: Stub, tmp_path: Path, code: int) -> None:
    stub.always(status(code))
    with pytest.raises(ServiceError) as failed:
        fetch(on_hub(stub, tmp_path))
    assert failed.value.status == code


def test_errors_of_missing_files_name_url_and_path(stub: Stub, tmp_path: Path) -> None:
    source = on_hub(stub, tmp_path)
    with pytest.raises(BadInput) as caught:
        verify_files(source)
    url, file = stub.url + NAME, tmp_path / "owner/name/deep/data.json"
    remedy = f"run `memorybench data pull sample`, or download {url} and put it at {file}"
    assert (caught.value.where, caught.value.remedy) == ('benchmark "sample"', remedy)
    stub.always(reset())
    with pytest.raises(MemorybenchError, match=f"download {url} yourself and put it at {file}"):
        fetch(source)
    assert state(source) == "missing"


def test_a_manually_downloaded_file_is_recorded(stub: Stub, tmp_path: Path) -> None:
    source = on_hub(stub, tmp_path)
    source.pieces[0].file.parent.mkdir(parents=True)
    source.pieces[0].file.write_bytes(b"mine")
    fetch(source)
    assert not stub.calls
    assert state(source) == "present"
    source.pieces[0].file.write_bytes(b"changed")
    assert state(source) == "changed"
    assert "memorybench data pull sample" in refused(verify_files, source).remedy


def test_two_processes_do_not_write_one_draft(stub: Stub, tmp_path: Path) -> None:
    source = on_hub(stub, tmp_path)
    source.pieces[0].file.parent.mkdir(parents=True)
    held = os.open(source.pieces[0].file.with_name(".data.json.lock"), os.O_RDWR | os.O_CREAT)
    fcntl.flock(held, fcntl.LOCK_EX)
    with pytest.raises(RunConflict):
        fetch(source)
    os.close(held)
    fetch(source)


def test_where_files_are_looked_for(tmp_path: Path) -> None:
    folder = tmp_path / "benchmarks/configs"
    (tmp_path / "benchmarks/datasets").mkdir(parents=True)
    folder.mkdir()
    there = tmp_path / "benchmarks/datasets/mine.json"
    there.write_text("[]")
    local = config(data={"type": "local", "path": "./datasets/mine.json"})
    assert source_of(local, beside=folder, cache=tmp_path).pieces == (Piece(there),)
    kept = config(data={"type": "huggingface", "path": "owner/name", "localPath": "./datasets/file.json"})
    (piece,) = source_of(kept, beside=folder, cache=tmp_path).pieces
    assert piece.file == folder / "datasets/file.json"
    assert piece.url == "https://huggingface.co/datasets/owner/name/resolve/main/file.json"
    url = config(data={"type": "url", "path": "https://example.org/a/../b/data.json?x=1"})
    (piece,) = source_of(url, beside=folder, cache=tmp_path).pieces
    assert re.fullmatch(r"example.org/[0-9a-f]{12}/a/b/data.json", str(piece.file.relative_to(tmp_path)))


def test_a_config_of_others_writes_nowhere_else(tmp_path: Path) -> None:
    kept = config(data={"type": "url", "path": "https://example.org/x", "localPath": "../../.bashrc"})
    assert refused(source_of, kept, beside=tmp_path, cache=tmp_path).where.endswith("data.localPath")
    no_file = config(data={"type": "huggingface", "path": "owner/name"})
    assert refused(source_of, no_file, beside=tmp_path, cache=tmp_path).where.endswith("data.path")


def test_longmemeval_variants_share_files_and_every_source_has_a_licence(tmp_path: Path) -> None:
    sources = {
        name: source_of(bundled(name), beside=None, cache=tmp_path)
        for name in ("locomo", "longmemeval", "longmemeval-s", "longmemeval-m", "longmemeval-oracle", "nolima")
    }
    assert sources["locomo"].pinned
    assert sources["longmemeval"].pieces == sources["longmemeval-s"].pieces
    assert len(sources["nolima"].pieces) == 6
    assert all(source.licence and source.remote for source in sources.values())
    assert len({source.pieces[0].file for source in sources.values()}) == 5


FILES = {"questions.json": [item()], "more/notes.json": [{"text": "x"}]}


def written_files(folder: Path) -> dict[str, str]:
    """Write the files, and return the checksum of each."""
    sums = {}
    for name, rows in FILES.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(rows))
        sums[name] = hashlib.sha256(file.read_bytes()).hexdigest()
    return sums


JOINED = {"files": ["questions.json"], "join": {"notes": {"file": "more/notes.json"}}}
LOCAL = [
    {"path": ".", **JOINED},
    {"path": ".", "files": ["*.json", "*/*.json"]},
    {"path": ".", "files": list(FILES)},
]


@pytest.mark.parametrize("data", LOCAL)
@pytest.mark.parametrize("name", FILES)
def test_each_file_may_have_its_own_checksum(tmp_path: Path, data: dict[str, Any], name: str) -> None:
    sums = written_files(tmp_path)

    def source(sha256: dict[str, str]) -> Source:
        described = config(data={"type": "local", "sha256": sha256, **data})
        return source_of(described, beside=tmp_path, cache=tmp_path / "cache")

    verify_files(source(sums))
    assert source(sums).pinned
    assert not source({name: sums[name]}).pinned, "the other file is not pinned"
    (tmp_path / name).write_text("[]")
    error = refused(verify_files, source({name: sums[name]}))
    assert (Path(error.where), error.expected.count(sums[name])) == (tmp_path / name, 1)
    verify_files(source({other: sums[other] for other in FILES if other != name}))
    assert "data.sha256" in refused(source, {"questons.json": sums[name]}).where


def test_files_of_the_hub_may_each_have_a_checksum(stub: Stub, tmp_path: Path) -> None:
    names = ["deep/data.json", "deep/more.json"]
    described = {"path": "owner/name", "files": names, "sha256": dict.fromkeys(names, SHA256)}
    source = on_hub(stub, tmp_path / "right", **described)
    fetch(source)
    assert (source.pinned, source.present) == (True, True)
    wrong = on_hub(stub, tmp_path / "wrong", **described | {"sha256": {names[1]: "0" * 64}})
    with pytest.raises(BadInput, match="checksum"):
        fetch(wrong)
    assert not wrong.pieces[1].file.exists()


@pytest.mark.parametrize(
    "data",
    [
        {"type": "huggingface", "path": "a/b", "files": ["x.json", "y.json"], "sha256": {"z.json": SHA256}},
        {"type": "huggingface", "path": "a/b", "files": ["x.json", "y.json"], "sha256": SHA256},
        {"type": "huggingface", "path": "a/b/x.json", "sha256": {"x.json": SHA256}},
        {"type": "url", "path": "https://example.org/x.json", "sha256": {"x.json": SHA256}},
        {"type": "local", "path": "x.zip", "sha256": {"x.json": SHA256}},
        {"type": "local", "path": ".", "files": ["x.json"], "sha256": {"x.json": "1234"}},
    ],
)
def test_checksums_that_fit_no_file_are_refused(data: dict[str, Any]) -> None:
    assert "data.sha256" in refused(config, data=data).where


@pytest.mark.parametrize("files", [["a*.json", "*.json", "a.json"], ["a.json", "b.json", "a.json"]])
def test_a_file_that_several_names_and_patterns_match_is_read_once(tmp_path: Path, files: list[str]) -> None:
    """Without ids, its questions were counted twice."""
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text("[]")
    described = config(data={"type": "local", "path": str(tmp_path), "files": files})
    located = source_of(described, beside=None, cache=tmp_path)
    assert [piece.file.name for piece in located.pieces] == ["a.json", "b.json"]
