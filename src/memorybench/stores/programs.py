"""Programs that keep a memory in a folder they are told."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memorybench.core.errors import BadInput
from memorybench.files.bodies import BodyTemplate
from memorybench.files.located import Document
from memorybench.mcp.stdio_transport import child_environment

from .config_reading import FOLDER, variables_in


@dataclass(frozen=True, slots=True)
class Program:
    """A command and its environment, in which `${folder}` may stand."""

    template: BodyTemplate
    where: str

    @classmethod
    def parse(cls, command: Sequence[str], env: Mapping[str, str], where: str) -> Program:
        return cls(BodyTemplate.parse(Document(where, {"command": [*command], "env": {**env}}), FOLDER), where)

    @property
    def in_folder(self) -> bool:
        """It is told the folder; one that is not keeps its memory elsewhere, or nowhere."""
        return "folder" in variables_in(self.template.root)

    def prepared(
        self, folder: Path, environment: Mapping[str, str], *, install: str = ""
    ) -> tuple[list[str], dict[str, str]]:
        """Command and environment for that folder, which is there from now on."""
        made = self.template.render({"folder": str(folder.absolute())})
        env = child_environment(environment, made["env"])
        if shutil.which(made["command"][0], path=env.get("PATH")) is None:
            raise BadInput(
                self.where,
                f'no program "{made["command"][0]}" is found',
                remedy=f"install it: {install}" if install else "install it, or name its path",
            )
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return made["command"], env
