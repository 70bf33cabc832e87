"""Any command-line agent: one process for each prompt, in a home of its own."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from memorybench.core.agents import AgentReply, Workplace
from memorybench.core.errors import BadInput, ServiceError
from memorybench.core.records import digest
from memorybench.core.spending import charge
from memorybench.core.trials import Subject
from memorybench.files.names import inside
from memorybench.files.templates import Template
from memorybench.mcp.stdio_transport import child_environment
from memorybench.processes.programs import Finished, quoted, run_program
from memorybench.secrets.redaction import Redactor

from .config import AgentConfig, Word
from .config_reading import VARIABLES
from .output import Printed

OUTPUT_CAP = 32 * 2**20

AT_HOME: Mapping[str, str] = {
    "HOME": "",
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
    "XDG_CACHE_HOME": ".cache",
    "CLAUDE_CONFIG_DIR": ".claude",
    "CODEX_HOME": ".codex",
    "HERMES_HOME": ".hermes",
}
"""Where agents keep what they know: by variable, the place in the home they are given."""


class CommandAgent:
    """Opened by `opening.open_agent`."""

    def __init__(
        self, config: AgentConfig, model: str | None, environment: Mapping[str, str], redactor: Redactor
    ) -> None:
        self.subject = Subject(
            role="agent",
            name=config.name,
            settings={"model": model, "config": digest(config.model_copy(update={"model": model}))},
        )
        self._config = config
        self._model = model
        self._environment = environment
        self._redactor = redactor
        self._where = f"agent {config.name}"

    async def turn(self, prompt: str, place: Workplace, *, session: int, max_turns: int) -> AgentReply:
        home = place.home / ("kept" if self._config.following else f"session-{session}")
        values = self._values(prompt, place, home, session, max_turns)
        self._furnish(values, home, place.folder)
        finished = await run_program(
            self._words(values, session),
            stdin=self._filled(self._config.stdin or "", values).encode("utf-8", "replace"),
            env=self._env(values, home, place.environment),
            cwd=Path(self._filled(self._config.working_folder, values)),
            deadline=self._config.timeout / 1000,
            output_cap=OUTPUT_CAP,
            where=self._where,
        )
        return self._reply(finished)

    def _reply(self, finished: Finished) -> AgentReply:
        """What it said; whatever does not look like an agent at work raises."""
        transcript = self._redactor.clean(finished.output.decode("utf-8", "replace"))
        if finished.status != 0 and not transcript.strip():
            raise self._dead(finished)
        printed = Printed(self._config.output, transcript, self._where)
        spent = printed.spent
        charge(spent)  # also where it failed
        if not printed.out_of_turns:
            if finished.status != 0:
                raise self._dead(finished, printed.failure)
            if printed.failure:
                raise ServiceError(f"{self._where}: it failed: {printed.failure}")
            if not printed.text:
                raise ServiceError(f"{self._where}: it said nothing")
        return AgentReply(
            text=printed.text,
            transcript=transcript,
            ended="max_turns" if printed.out_of_turns else "answered",
            spent=spent,
            tool_calls=printed.tool_calls,
        )

    def _dead(self, finished: Finished, failure: str = "") -> ServiceError:
        words = self._redactor.clean(finished.last_words.decode("utf-8", "replace"))
        return ServiceError(f"{self._where}: {finished.ending}{f': {failure}' if failure else quoted(words)}")

    def _values(self, prompt: str, place: Workplace, home: Path, session: int, max_turns: int) -> dict[str, str | None]:
        program, *arguments = place.server_command
        servers = {"mcpServers": {"memory": {"type": "http", "url": place.server_url}}}
        return {
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
            "mcpConfig": json.dumps(servers),
        }

    def _words(self, values: Mapping[str, str | None], session: int) -> list[str]:
        words = self._config.following if self._config.following and session > 1 else self._config.command
        return [self._filled(part, values) for word in words if _known(word, values) for part in _parts(word)]

    def _furnish(self, values: Mapping[str, str | None], home: Path, folder: Path) -> None:
        for variable in AT_HOME:
            (home / AT_HOME[variable]).mkdir(parents=True, exist_ok=True, mode=0o700)
        for name, text in self._config.files.items():
            within = home if name.startswith("${home}") else folder
            path = inside(within, self._filled(name, values), f"{self._where}: files")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self._filled(text, values), encoding="utf-8")

    def _env(self, values: Mapping[str, str | None], home: Path, told: Mapping[str, str]) -> dict[str, str]:
        at_home = {variable: str(home / place) for variable, place in AT_HOME.items()}
        passed = {name: self._environment[name] for name in self._config.pass_env if name in self._environment}
        own = {name: self._filled(text, values) for name, text in self._config.env.items()}
        return child_environment(self._environment, {**at_home, **passed, **told, **own})

    def _filled(self, text: str, values: Mapping[str, str | None]) -> str:
        return Template.parse(text, VARIABLES, self._where).render(values)


def check_program(config: AgentConfig, environment: Mapping[str, str]) -> None:
    """That there is such a program: said before anything is paid for."""
    program = str(config.command[0])
    if "${" not in program and shutil.which(program, path=environment.get("PATH", os.defpath)) is None:
        raise BadInput(
            f'agent "{config.name}"',
            f'no program "{program}" is found',
            remedy=f"install it: {config.install}" if config.install else "install it, or name its path",
        )


def _parts(word: Word) -> Sequence[str]:
    return (word,) if isinstance(word, str) else word


def _known(word: Word, values: Mapping[str, str | None]) -> bool:
    """Whether all that an optional group needs has a value; a word that stands by itself is always said."""
    if isinstance(word, str):
        return True
    names = (name for part in word for name in Template.parse(part, VARIABLES, "").names)
    return all(values[name] is not None for name in names)
