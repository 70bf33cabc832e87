"""Programs as extractors, through real processes."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from memorybench.core.errors import BadInput, Malformed, ServiceError, Transient
from memorybench.extractors.command import OUTPUT_CAP, CommandExtractor, split_command
from memorybench.extractors.config import ExtractorConfig
from memorybench.extractors.plugin import OpenContext
from memorybench.secrets.redaction import Redactor
from tests.doubles.refusals import refused
from tests.extractors.conversation import CONVERSATION, EXISTING, LEARNED, MESSAGES, ask

SECRET = "sk-plum-kettle-7741"
LEARN = """
import json, sys
request = json.load(sys.stdin)
request["existing_memory"]["pets"] = ["Has a dog named Biscuit"]
print(json.dumps(request["existing_memory"]))
"""


def open_command(
    command: Sequence[str], environment: Mapping[str, str], folder: Path, *, timeout: int = 120_000
) -> AbstractAsyncContextManager[CommandExtractor]:
    config = ExtractorConfig(name="ours", type="command", command=shlex.join(command), timeout=timeout)
    redactor = Redactor([SECRET])
    context = SimpleNamespace(name="ours", config=config, folder=folder, environment=environment, redactor=redactor)
    return CommandExtractor.open(cast(OpenContext, context))


def python(
    script: str, environment: Mapping[str, str] | None = None, **options: Any
) -> AbstractAsyncContextManager[CommandExtractor]:
    return open_command([sys.executable, "-c", script], environment or {}, Path.cwd(), **options)


def test_a_program_reads_json_and_writes_the_new_memory() -> None:
    assert ask(python(LEARN)) == LEARNED


def test_a_program_gets_a_private_home_that_is_removed(tmp_path: Path) -> None:
    script = "import os, pathlib; h = pathlib.Path.home(); (h / 'x').touch(); print(__import__('json').dumps([str(h)]))"
    environment = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path), "MY_KEY": "k"}
    [home] = ask(python(script, environment))
    assert list(tmp_path.iterdir()) == []
    assert not Path(home).exists()


def test_function_gets_existing_memory_and_messages(tmp_path: Path) -> None:
    input_file = tmp_path / "input.json"
    script = f"import sys; open({str(input_file)!r}, 'w').write(sys.stdin.read()); print('[]')"
    ask(python(script))
    assert json.loads(input_file.read_text()) == {"existing_memory": EXISTING, "conversation": MESSAGES}


def test_a_command_line_is_split_without_a_shell(tmp_path: Path) -> None:
    words = split_command(f"{sys.executable} -c 'print(\"[]\")' '; touch hacked' $HOME", "--extractor-command")
    assert words[-2:] == ("; touch hacked", "$HOME")
    assert ask(open_command(words, {}, tmp_path)) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["python 'x", "  "])
def test_invalid_command_line_is_an_error(command: str) -> None:
    assert refused(split_command, command, "--extractor-command").where == "--extractor-command"


def test_missing_program_is_an_error_at_opening() -> None:
    with pytest.raises(BadInput, match="the program was not found"):
        ask(open_command(["no-such-extractor"], {"PATH": os.defpath}, Path.cwd()))


def test_a_script_is_found_in_the_folder_it_runs_in(tmp_path: Path) -> None:
    script = tmp_path / "extract.sh"
    script.write_text("#!/bin/sh\necho '[\"noted\"]'\n")
    script.chmod(0o755)
    assert ask(open_command(["./extract.sh"], {}, tmp_path)) == ["noted"]


def test_program_gets_only_the_given_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOT_FOR_IT", "1")
    script = "import json, os; print(json.dumps([os.environ['FOR_IT'], str('NOT_FOR_IT' in os.environ)]))"
    assert ask(python(script, {"FOR_IT": "yes"})) == ["yes", "False"]


def test_failed_program_is_quoted_without_secrets() -> None:
    script = f"import sys; print('loading', file=sys.stderr); sys.exit('bad key {SECRET}')"
    with pytest.raises(ServiceError, match=r"status 1.*loading bad key \[redacted\]$"):
        ask(python(script))


def test_only_the_end_of_long_output_is_quoted() -> None:
    script = "import sys; sys.stderr.write('noise ' * 100000); sys.exit('the end')"
    with pytest.raises(ServiceError) as raised:
        ask(python(script))
    assert str(raised.value).endswith("the end")
    assert len(str(raised.value)) < 400


def test_failed_program_without_output_is_reported() -> None:
    with pytest.raises(ServiceError, match="signal 9"):
        ask(python("import os, signal; os.kill(os.getpid(), signal.SIGKILL)"))


def test_output_of_a_failed_program_is_not_read_as_memory() -> None:
    with pytest.raises(ServiceError, match="ended with status 3"):
        ask(python("print('{}', flush=True); raise SystemExit(3)"))


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("pass", "the output is empty"),
        ("print('Loading model…')", "invalid JSON at column 1"),
        ("print('{}'); print('{}')", "extra data after the value"),
        ("print('{\"pets\": [')", "truncated JSON"),
        ('print(\'{"pets": [], "pets": []}\')', 'duplicate key "pets"'),
        ("print('{\"weight\": NaN}')", "NaN is not a finite number"),
        ("print('[' * 100000)", "nested too deeply"),
        ("print('null')", "invalid memory null"),
        ("import sys; sys.stdout.buffer.write(b'\\xff\\xfe')", "is not UTF-8"),
    ],
)
def test_invalid_output_is_shown_in_the_error(script: str, complaint: str) -> None:
    with pytest.raises(Malformed) as raised:
        ask(python(script))
    assert complaint in str(raised.value)


def test_endless_output_is_limited() -> None:
    with pytest.raises(Malformed, match=f"{OUTPUT_CAP:,} bytes"):
        ask(python("while True: print('x' * 10000)"))


def test_a_secret_that_comes_back_is_redacted() -> None:
    assert ask(python(f'print(\'{{"keys": ["{SECRET}"]}}\')')) == {"keys": ["[redacted]"]}


def test_a_program_need_not_read_its_input() -> None:
    conversation = [replace(turn, content="x" * 1_000_000) for turn in CONVERSATION]
    assert ask(python("import sys; sys.stdin.close(); print('[]')"), conversation=conversation) == []


def test_slow_program_is_stopped_and_may_be_retried() -> None:
    with pytest.raises(Transient) as raised:
        ask(python("import time; time.sleep(600)", timeout=200))
    assert raised.value.uncertain


@pytest.mark.slow
def test_detached_child_process_does_not_block(tmp_path: Path) -> None:
    """The child keeps the pipes open and runs in another session."""
    begun = tmp_path / "begun"
    os.mkfifo(begun)
    script = f"""
import subprocess
fled = subprocess.Popen(["sleep", "600"], start_new_session=True)
with open({str(begun)!r}, "w") as file:
    file.write(str(fled.pid))
"""

    async def cancel() -> int:
        async with python(script, {"PATH": os.defpath}) as extractor:
            working = asyncio.create_task(extractor.extract(EXISTING, CONVERSATION))
            fled = int(await asyncio.to_thread(begun.read_text))
            working.cancel()
            with pytest.raises(asyncio.CancelledError):
                await working
            return fled

    os.kill(asyncio.run(cancel()), signal.SIGKILL)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # a process whose parent does not care stays as a zombie unless it is adopted
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_cancelling_stops_the_program_and_its_children(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    os.mkfifo(begun)
    child = f"""
import os, time
with open({str(begun)!r}, "w") as file:
    file.write(f"{{os.getppid()}} {{os.getpid()}}")
time.sleep(600)
"""
    script = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"

    async def cancel() -> list[int]:
        async with python(script) as extractor:
            working = asyncio.create_task(extractor.extract(EXISTING, CONVERSATION))
            pids = [int(pid) for pid in (await asyncio.to_thread(begun.read_text)).split()]
            assert all(map(_exists, pids))
            working.cancel()
            with pytest.raises(asyncio.CancelledError):
                await working
            return pids

    program, started = asyncio.run(cancel())
    assert not _exists(program)
    while _exists(started):  # it was killed with the program; the kernel may still be clearing up
        os.sched_yield()


def test_polls_run_in_parallel() -> None:
    async def all_at_once() -> list[Any]:
        async with python(LEARN) as extractor:
            return await asyncio.gather(*(extractor.extract(EXISTING, CONVERSATION) for _ in range(8)))

    assert asyncio.run(all_at_once()) == [LEARNED] * 8


def test_subject_contains_the_command_without_secrets() -> None:
    async def settings() -> Any:
        command = [sys.executable, "--key", SECRET]
        async with open_command(command, {}, Path.cwd()) as extractor:
            return extractor.subject

    subject = asyncio.run(settings())
    assert subject.name == "ours"
    assert shlex.join(subject.settings["command"][1:]) == "--key '[redacted]'"
