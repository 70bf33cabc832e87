"""Commands and environments of programs, in which `${folder}` stands for the folder of a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from memorybench.files.bodies import BodyTemplate, names_in
from memorybench.files.located import Document
from memorybench.processes.programs import check_program, child_environment

from .config_reading import FOLDER

HOME = ".home"


class ProgramTemplate(Struct, frozen=True):
    """A command and its environment, for a program that stores its data in `${folder}`."""

    template: BodyTemplate
    where: str

    @classmethod
    def parse(cls, command: Sequence[str], env: Mapping[str, str], where: str) -> ProgramTemplate:
        return cls(BodyTemplate.parse(Document(where, {"command": [*command], "env": {**env}}), FOLDER), where)

    @property
    def uses_folder(self) -> bool:
        return "folder" in names_in(self.template.root)

    def render(
        self, folder: Path, environment: Mapping[str, str], *, install: str = ""
    ) -> tuple[list[str], dict[str, str]]:
        """Create `folder`, and return the command and the environment with its path in place of `${folder}`.

        The private home folder of the program is in `folder`, so that it still exists after a restart, and a copy of
        `folder` contains all data. Raise BadInput if the program is not installed; `install` says how to install it.
        """
        rendered = self.template.render({"folder": str(folder.absolute())})
        path = {**environment, **rendered["env"]}.get("PATH")
        check_program(rendered["command"][0], self.where, path=path, install=install)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return rendered["command"], child_environment(environment, rendered["env"], folder / HOME)
