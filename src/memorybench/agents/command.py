"""Any command-line agent: one process per prompt, in a separate home folder."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from memorybench.core.agents import AgentReply, Workplace
from memorybench.core.errors import ServiceError
from memorybench.core.records import digest
from memorybench.core.spending import charge
from memorybench.core.trials import Subject
from memorybench.files.names import inside
from memorybench.files.templates import Template
from memorybench.processes.programs import (
    CompletedProgram,
    check_program,
    child_environment,
    describe_exit,
    quote_stderr,
    run_program,
)
from memorybench.secrets.redaction import Redactor

from .config import AgentConfig
from .config_reading import VARIABLES
from .output import AgentOutput

OUTPUT_CAP = 32 * 2**20

HOME_FOLDERS: Mapping[str, str] = {"CLAUDE_CONFIG_DIR": ".claude", "CODEX_HOME": ".codex", "HERMES_HOME": ".hermes"}
"""Maps environment variables that name the folder of an agent's settings and memory to the name of this folder in the
private home."""

Values = Mapping[str, str | None]


class CommandAgent:
    def __init__(
        self, config: AgentConfig, model: str | None, environment: Mapping[str, str], redactor: Redactor
    ) -> None:
        self.subject = Subject(
            role="agent",
            name=config.name,
            settings={"model": model, "config": digest(config.model_copy(update={"model": model}))},
        )
        self.has_own_memory = config.memory == "files"
        self._config = config
        self._model = model
        self._environment = environment
        self._redactor = redactor
        self._where = f"agent {config.name}"

    async def turn(self, prompt: str, place: Workplace, *, session: int, max_turns: int) -> AgentReply:
        home = place.home / ("kept" if self._config.following else f"session-{session}")
        if self.has_own_memory:
            home = place.home
        program, *arguments = place.server_command or ("",)
        servers = {"memory": {"type": "http", "url": place.server_url}} if place.server_url else {}
        values = {
            "prompt": prompt,
            "folder": str(place.folder),
            "home": str(home),
            "model": self._model,
            "maxTurns": str(max_turns),
            "session": str(session),
            "serverUrl": place.server_url,
            "serverCommand": shlex.join(place.server_command),
            "serverProgram": program,
            "serverArguments": json.dumps(arguments),
            "mcpConfig": json.dumps({"mcpServers": servers}),
        }
        self._write_files(values, home, place.folder)
        completed = await run_program(
            self._command(values, session),
            stdin=self._fill(self._config.stdin or "", values).encode("utf-8", "replace"),
            env=self._env(values, home, place.environment),
            cwd=Path(self._fill(self._config.working_folder, values)),
            deadline=self._config.timeout / 1000,
            output_cap=OUTPUT_CAP,
            where=self._where,
        )
        return self._read_reply(completed)

    def _read_reply(self, completed: CompletedProgram) -> AgentReply:
        """Return the reply that the agent printed. Raise ServiceError if the agent failed or gave no answer.

        An agent that took too many turns has not failed.
        """
        transcript = self._redactor.clean(completed.output.decode("utf-8", "replace"))
        if completed.status != 0 and not transcript.strip():
            raise self._exit_error(completed)
        output = AgentOutput(self._config.output, transcript, self._where)
        spent = output.spent
        charge(spent)  # before the checks, because a failed agent costs as much
        if not output.is_out_of_turns:
            if completed.status != 0:
                raise self._exit_error(completed, output.failure)
            if output.failure:
                raise ServiceError(f"{self._where}: the agent reported a failure: {output.failure}")
            if not output.text:
                raise ServiceError(
                    f"{self._where}: the agent ended without an answer; if it gave one, correct its output.text"
                )
        return AgentReply(
            text=output.text,
            transcript=transcript,
            ended="max_turns" if output.is_out_of_turns else "answered",
            spent=spent,
            tool_calls=output.tool_calls,
            memory_writes=output.memory_writes,
        )

    def _exit_error(self, completed: CompletedProgram, failure: str = "") -> ServiceError:
        stderr = self._redactor.clean(completed.stderr.decode("utf-8", "replace"))
        reason = f": {failure}" if failure else quote_stderr(stderr)
        return ServiceError(f"{self._where}: {describe_exit(completed.status)}{reason}")

    def _command(self, values: Values, session: int) -> list[str]:
        words = self._config.following if self._config.following and session > 1 else self._config.command
        command: list[str] = []
        for word in words:
            if isinstance(word, str):
                command.append(self._fill(word, values))
                continue
            # an optional group is left out where one of its variables has no value
            names = {name for part in word for name in Template.parse(part, VARIABLES, self._where).names}
            if all(values[name] is not None for name in names):
                command += [self._fill(part, values) for part in word]
        return command

    def _write_files(self, values: Values, home: Path, folder: Path) -> None:
        for place in HOME_FOLDERS.values():
            (home / place).mkdir(parents=True, exist_ok=True, mode=0o700)
        for name, text in self._config.files.items():
            root = home if name.startswith("${home}") else folder
            path = inside(root, self._fill(name, values), f"{self._where}: files")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self._fill(text, values), encoding="utf-8")

    def _env(self, values: Values, home: Path, attempt: Mapping[str, str]) -> dict[str, str]:
        folders = {variable: str(home / place) for variable, place in HOME_FOLDERS.items()}
        passed = {name: self._environment[name] for name in self._config.pass_env if name in self._environment}
        own = {name: self._fill(text, values) for name, text in self._config.env.items()}
        return child_environment(self._environment, {**folders, **passed, **attempt, **own}, home)

    def _fill(self, text: str, values: Values) -> str:
        return Template.parse(text, VARIABLES, self._where).render(values)


def check_agent_program(config: AgentConfig, environment: Mapping[str, str]) -> None:
    """Raise BadInput if the agent's program is not installed. A name with a placeholder is not checked."""
    program = str(config.command[0])
    if "${" not in program:
        path = environment.get("PATH", os.defpath)
        check_program(program, f'agent "{config.name}"', path=path, install=config.install)
