"""A process that holds a stack open, to be interrupted or killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from memorybench.files.yaml_file import load_yaml
from memorybench.providers.config.reading import read_provider
from memorybench.providers.http.docker import open_docker
from memorybench.secrets.redaction import Redactor


@contextmanager
def stack_process(config: Path, environment: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Has the stack of `config` open, for the run "run_1". Whoever opens this ends it, too: it is only awaited."""
    # in a session of its own, as a shell would start it: Ctrl-C in the terminal goes to all of it
    with subprocess.Popen(
        [sys.executable, __file__, str(config), json.dumps(dict(environment))],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"open\n"
        yield process


async def _hold(path: Path, environment: Mapping[str, str]) -> None:
    async with open_docker(
        read_provider(load_yaml(path), environment),
        run="run_1",
        config_file=path,
        environment=environment,
        redactor=Redactor([]),
        report_leak=print,
    ):
        print("open", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    # whoever was started in the background by a shell ignores it otherwise, and so would all that it starts
    signal.signal(signal.SIGINT, signal.default_int_handler)
    asyncio.run(_hold(Path(sys.argv[1]), json.loads(sys.argv[2])))
