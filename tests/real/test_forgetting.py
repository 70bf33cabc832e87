"""The certificate of deletion on real memories: what they leave behind is found, with its place."""

from __future__ import annotations

import asyncio
import shutil
from functools import partial
from importlib.util import find_spec

import pytest

from memorybench.suites.hygiene.forgetting import Certificate, Procedure, check_forgetting
from tests.real.test_hygiene_stores import libsql, opened, server

pytestmark = pytest.mark.real


def states(certificate: Certificate) -> dict[str, str]:
    return {check.step: check.state for check in certificate.checks}


def certify(name: str) -> Certificate:
    return asyncio.run(check_forgetting(partial(opened, name), Procedure(seed=1)))


def test_the_npm_memory_server_forgets_in_all_steps_that_can_tell() -> None:
    if shutil.which("node") is None or not server().exists():
        pytest.skip("node or npm package @modelcontextprotocol/server-memory is not installed")
    found = states(certify("mcp-memory"))
    assert {step for step, state in found.items() if state == "cannot tell"} == {"history", "curation", "other-user"}
    assert "fail" not in found.values()


@pytest.mark.skipif(find_spec("mem0") is None, reason="mem0ai is not installed")
def test_mem0_keeps_deleted_facts_in_its_history() -> None:
    certificate = certify("mem0-oss")
    assert {step for step, state in states(certificate).items() if state == "fail"} == {"history", "files"}
    (files,) = (check for check in certificate.checks if check.step == "files")
    assert all(one.file.endswith("history.db") and one.offset is not None for one in files.leftovers)


def test_libsql_keeps_deleted_text_in_unused_bytes() -> None:
    if shutil.which("node") is None or not libsql().exists():
        pytest.skip("node or npm package mcp-memory-libsql is not installed")
    certificate = certify("mcp-memory-libsql")
    found = states(certificate)
    assert {step for step, state in found.items() if state == "fail"} == {"free-pages"}
    assert {step for step, state in found.items() if state == "cannot tell"} == {
        "get", "history", "curation", "other-user",
    }  # fmt: skip
    (pages,) = (check for check in certificate.checks if check.step == "free-pages")
    assert {one.file for one in pages.leftovers} == {"memory.db"}
    assert all(one.offset is not None for one in pages.leftovers)
