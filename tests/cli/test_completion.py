"""`memorybench completion`: the scripts work in the shells that they are for."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from memorybench.cli.main import VERBS
from tests.cli.command import Command

SYNTAX_CHECK = {"bash": "-n", "zsh": "-n", "fish": "--no-execute"}
TRY = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
function_name=$(complete -p "$1" | sed 's/.*-F \\([^ ]*\\).*/\\1/')
"$function_name"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def script(command: Command) -> Path:
    path = command.folder / "script.bash"
    path.write_text(command("completion", "bash").out, encoding="utf-8")
    return path


def completed(script: Path, words: Sequence[str]) -> list[str]:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    return subprocess.run(
        [bash, "-c", TRY, "bash", str(script), *words], capture_output=True, text=True, check=True
    ).stdout.split()


@pytest.mark.parametrize("shell", SYNTAX_CHECK)
@pytest.mark.parametrize("program", ["memorybench", "memaudit"])
def test_a_script_has_the_syntax_of_its_shell(command: Command, shell: str, program: str) -> None:
    said = command("completion", shell, "--program", program)
    assert said.code == 0
    assert "--judge-model" in said.out or "judge-model" in said.out
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not installed")
    path = command.folder / "script"
    path.write_text(said.out, encoding="utf-8")
    assert subprocess.run([found, SYNTAX_CHECK[shell], str(path)], check=False).returncode == 0


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["ev"], {"eval"}),
        (["eval", "--prov"], {"--providers"}),
        (["eval", "--providers", "bm"], {"bm25"}),
        (["eval", "--providers", "bm25", "full"], {"full-context"}),
        (["eval", "--benchmarks", "start"], {"starter"}),
        (["export", "r", "--format", "l"], {"latex"}),
        (["hygiene", "rec"], {"record"}),
        (["hygiene", "run", "--store", "ref"], {"reference"}),
        (["show", "r", "q", "--provider", "or"], {"oracle"}),
        (["describe", "mem"], {"mem0"}),
        (["data", "pull", "loc"], {"locomo"}),
        (["completion", "f"], {"fish"}),
    ],
)
def test_bash_completes_verbs_flags_choices_and_names(script: Path, words: list[str], expected: set[str]) -> None:
    assert expected <= set(completed(script, ["memorybench", *words]))


def test_bash_completes_every_verb(script: Path) -> None:
    assert set(VERBS) <= set(completed(script, ["memorybench", ""]))


def test_bash_completes_paths(script: Path) -> None:
    (script.parent / "table.tex").touch()
    assert completed(script, ["memorybench", "export", "r", "--output", f"{script.parent}/tab"]) == [
        f"{script.parent}/table.tex"
    ]


def test_help_does_not_load_the_library_that_writes_the_scripts() -> None:
    program = "import sys; from memorybench.cli.main import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    check = "sys.exit('shtab' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", program + check], stdout=subprocess.DEVNULL, check=False).returncode == 0
    )


def test_an_unknown_shell_is_refused_with_the_known_ones(command: Command) -> None:
    said = command("completion", "zhs")
    assert said.code == 2
    assert "zsh" in said.err


def test_a_missing_shell_is_no_misspelled_flag(command: Command) -> None:
    said = command("completion")
    assert (said.code, "bash, zsh or fish" in said.err, "did you mean" in said.err) == (2, True, False)
