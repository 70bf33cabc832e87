"""`memorybench` without arguments."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys

import pytest

from memorybench.cli.main import main, verb_parser

IMPORTED = "import json, sys; from memorybench.cli.main import main; code = main([]); print(json.dumps([*sys.modules]))"


def test_without_arguments_standard_error_has_a_few_commands_to_begin_with(capsys: pytest.CaptureFixture[str]) -> None:
    code = main([])
    shown = capsys.readouterr()
    lines = shown.err.splitlines()
    commands = [re.split(r" {2,}", line.strip())[0] for line in lines if line.startswith("  memorybench ")]
    assert (code, shown.out) == (2, "")
    assert 2 <= len(commands) <= 3
    for _, verb, *options in map(shlex.split, commands):
        verb_parser("memorybench", verb).parse_args(options)  # raises BadInput if an argument is unknown
    assert "memorybench --help" in shown.err
    assert len(lines) <= 12
    assert max(map(len, lines)) <= 80


def test_without_arguments_nothing_is_imported_that_help_does_not_import() -> None:
    ended = subprocess.run([sys.executable, "-c", IMPORTED], check=True, capture_output=True, text=True)
    modules = set(json.loads(ended.stdout))
    assert not modules & {"rich", "pydantic", "numpy", "memorybench.catalog", "memorybench.engine"}
