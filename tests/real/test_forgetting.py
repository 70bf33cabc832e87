"""The certificate of deletion on real memories: what they leave behind is found, with its place."""

from __future__ import annotations

import asyncio
import os
import shutil
from functools import partial
from importlib.util import find_spec

import pytest

from memorybench.files.yaml_file import parse_yaml
from memorybench.secrets.redaction import Redactor
from memorybench.stores.config_reading import read_store
from memorybench.stores.opening import open_store
from memorybench.suites.hygiene.forgetting import Certificate, Procedure, check_forgetting
from tests.real.test_hygiene_stores import opened, server

pytestmark = pytest.mark.real

LIBSQL = """\
name: libsql
type: mcp
mcp:
  command: ["{program}"]
  env: {{LIBSQL_URL: "file:${{folder}}/memory.db"}}
  operations:
    remember:
      calls:
        - tool: create_entities
          arguments: {{entities: [{{name: $.newId, entityType: fact, observations: [$.content]}}]}}
    forget: {{calls: [{{tool: delete_entity, arguments: {{name: $.id}}}}]}}
    recall:
      tool: search_nodes
      queryWords: true
      arguments: {{query: $.query}}
      facts: {{results: $.entities, id: $.name, content: "$.observations[*]"}}
    list: {{tool: read_graph, facts: {{results: $.entities, id: $.name, content: "$.observations[*]"}}}}
"""


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
    program = os.environ.get("MCP_MEMORY_LIBSQL") or shutil.which("mcp-memory-libsql")
    if program is None:
        pytest.skip("npm package mcp-memory-libsql is not installed (nor $MCP_MEMORY_LIBSQL set)")
    config = read_store(parse_yaml(LIBSQL.format(program=program), "libsql.yaml"), os.environ)
    open_libsql = partial(open_store, config, environment=os.environ, redactor=Redactor([]))
    certificate = asyncio.run(check_forgetting(open_libsql, Procedure(seed=1)))
    (pages,) = (check for check in certificate.checks if check.step == "free-pages")
    assert pages.state == "fail"
    assert {one.file for one in pages.leftovers} == {"memory.db"}
