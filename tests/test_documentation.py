"""The documentation is true: generated pages match the code, and the tutorial's commands work."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import sys
from itertools import chain
from pathlib import Path

import pytest
import yaml

from memorybench.cli.main import main, whole_parser

ROOT = Path(__file__).parents[1]
TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_generated_pages_match_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "scripts")
    import reference

    for name, text in reference.pages().items():
        assert (ROOT / "docs" / name).read_text(encoding="utf-8") == text, "run: python scripts/reference.py"


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "zensical.toml").read_text(encoding="utf-8")
    for page in (ROOT / "docs").glob("*.md"):
        assert f'"{page.name}"' in navigation, page.name


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for page in (ROOT / "docs").glob("*.*"):
        assert page.name == "index.md" or f"({page.name})" in index, page.name


@pytest.mark.slow
def test_the_commands_of_the_tutorial_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("wordllama", reason="the providers dense and hybrid need the extra `embed`")
    monkeypatch.chdir(tmp_path)
    configs = tmp_path / "providers" / "configs"
    configs.mkdir(parents=True)
    for language, name in (("yaml", "recent.yaml"), ("python", "recent.py")):
        block = re.search(rf"```{language}\n(.*?)```", TUTORIAL, re.DOTALL)
        assert block is not None
        (configs / name).write_text(block[1], encoding="utf-8")
    commands = re.findall(r"^\$ memorybench (.*)$", TUTORIAL, re.MULTILINE)
    assert len(commands) >= 6
    for command in commands:
        command = re.sub(r"--limit \d+", "--end 12", command.partition(" > ")[0])
        arguments = command.replace("=0.4", "=0.0").split()
        assert main(arguments) == 0, (command, capsys.readouterr())


@pytest.mark.slow
def test_the_commands_and_cards_of_the_models_page_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    cards = re.search(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert cards is not None
    (tmp_path / "models.yaml").write_text(cards[1], encoding="utf-8")
    commands = re.findall(r"^\$ memorybench (.*)$", page, re.MULTILINE)
    assert len(commands) >= 6
    for command in commands:
        assert main(command.split()) == 0, (command, capsys.readouterr())


@pytest.mark.slow
def test_the_example_of_the_audit_page_gives_the_probes_that_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8")
    dataset = re.search(r"```json\n(.*?)```", page, re.DOTALL)
    shown = re.search(r"```\n…\n(ana/.*?)```", page, re.DOTALL)
    assert dataset is not None
    assert shown is not None
    monkeypatch.chdir(tmp_path)
    Path("ana.json").write_text(dataset[1], encoding="utf-8")
    assert main(["audit", "probes", "ana.json"]) == 0
    printed = capsys.readouterr().out
    for part in shown[1].split("…\n"):
        assert part in printed


@pytest.mark.slow
def test_the_example_of_the_extraction_page_gives_the_result_that_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs" / "extraction.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for language, name in (("json", "cases.json"), ("python", "my_extractor.py")):
        block = re.search(rf"```{language}\n(.*?)```", page, re.DOTALL)
        assert block is not None
        Path(name).write_text(block[1], encoding="utf-8")
    line = shlex.join([sys.executable, "my_extractor.py"])
    assert main(["extraction", "run", "cases.json", "--extractor-command", line, "--json"]) == 3
    result, *_ = json.loads(capsys.readouterr().out)["results"]  # then those of parts, such as scenarios
    measures = {measure["name"]: measure for measure in result["measures"]}
    shown = re.findall(r"^│ (precision|recall|f1) +│ +([\d.]+) to ([\d.]+)%", page, re.MULTILINE)
    assert len(shown) == 3
    for name, low, high in shown:
        assert measures[name]["value"] is None
        ends = [f"{100 * measures[name][end]:.1f}" for end in ("low", "high")]
        assert ends == [low, high]


@pytest.mark.slow
def test_the_store_of_the_forgetting_page_fails_the_step_that_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs" / "command-stores.md").read_text(encoding="utf-8")
    config, program = (re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)[0] for language in ("yaml", "python"))
    page = (ROOT / "docs" / "forgetting.md").read_text(encoding="utf-8")
    backup = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert backup is not None
    *lines, last_but_one, last = program.splitlines(keepends=True)
    script = tmp_path / "notes.py"
    script.write_text("".join([*lines, backup[1], last_but_one, last]), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    _write_config("stores", "notes", config.replace("/srv/notes.py", str(script)))
    (command,) = (line for line in _commands(page) if "notes" in line)
    assert main([*command, "--json"]) == 3
    steps = json.loads(capsys.readouterr().out)["certificate"]["steps"]
    failed = {step["step"]: [place["file"] for place in step["places"]] for step in steps if step["state"] == "fail"}
    assert failed == {"backups": ["notes.bak"]}


@pytest.mark.slow
def test_the_agent_of_the_agents_page_has_the_verdicts_that_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("mcp", reason="agents need the extra `mcp`")
    page = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8").replace("\\\n", "")
    program = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert program is not None
    script = tmp_path / "diary.py"
    script.write_text(program[1], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    agent, store, *_ = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    _write_config("agents", "diary", agent.replace("/srv/diary.py", str(script)))
    _write_config("stores", "diary", store)
    command, *_ = _commands(page)
    assert main([*command, "--json"]) == 3
    outcomes = json.loads(capsys.readouterr().out)["scenarios"]
    assert {one["scenario"]: one["verdict"] for one in outcomes} == dict.fromkeys(
        re.findall(r"^│ (\S+) +│ ✗ fail", page, re.MULTILINE), "fail"
    )


@pytest.mark.slow
def test_a_scan_of_the_memory_on_the_scanning_page_finds_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("wordllama", reason="comparing statements needs the extra `embed`")
    page = (ROOT / "docs" / "scanning.md").read_text(encoding="utf-8")
    memory = re.search(r"```markdown\n(.*?)```", page, re.DOTALL)
    shown = re.search(r"^\$ memorybench (hygiene scan notes)\n(.*?)```", page, re.DOTALL | re.MULTILINE)
    assert memory is not None
    assert shown is not None
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "MEMORY.md").write_text(memory[1], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(shown[1].split()) == 3
    assert capsys.readouterr().out == shown[2]


def _write_config(kind: str, name: str, text: str) -> None:
    folder = Path(kind, "configs")
    folder.mkdir(parents=True)
    (folder / f"{name}.yaml").write_text(text.replace("[python,", f"[{sys.executable},"), encoding="utf-8")


def _commands(page: str) -> list[list[str]]:
    """Return the arguments of each command that a page shows."""
    return [shlex.split(line) for line in re.findall(r"^\$ memorybench (.*)$", page, re.MULTILINE)]


@pytest.mark.slow
def test_the_code_of_the_python_page_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wordllama", reason="the provider hybrid needs the extra `embed`")
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) >= 3
    for block in blocks:
        if "to_pandas" not in block or importlib.util.find_spec("pandas"):
            exec(compile(block, "python.md", "exec"), {})
    assert "docs/glossary.md" in (tmp_path / "somewhere" / "report.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_every_command_of_the_readme_exits_with_0(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("wordllama", reason="the providers dense and hybrid need the extra `embed`")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for variable in ("OPENAI_API_KEY", "MEMORYBENCH_MODEL", "MEMORYBENCH_JUDGE"):
        monkeypatch.delenv(variable, raising=False)
    for folder in ("data", "examples"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    in_blocks = re.findall(r"^\$ memorybench(.*)$", readme, re.MULTILINE)
    in_text = [text for text in re.findall(r"`memorybench ([^`]+)`", readme) if "…" not in text]
    assert len(in_blocks) >= 10
    assert len(in_text) >= 4
    for command in dict.fromkeys([*in_blocks, *in_text]):
        if command == "view":  # serves pages until it is stopped
            continue
        arguments = shlex.split(command.replace("--limit 100", "--end 12"), comments=True)
        if arguments == ["eval"]:
            arguments += ["--end", "12"]  # a minute otherwise
        assert main(arguments) == 0, (command, capsys.readouterr())


def test_the_commands_of_the_examples_for_many_machines_exist() -> None:
    folder = ROOT / "examples/many-machines"
    services = yaml.safe_load((folder / "compose.yaml").read_text())["services"]
    assert services["worker"]["deploy"]["replicas"] == 3
    commands = [service["command"] for service in services.values() if "command" in service]
    for job in yaml.safe_load_all((folder / "kubernetes.yaml").read_text()):
        commands += [container["args"] for container in job["spec"]["template"]["spec"]["containers"]]
    assert sorted(command[0] for command in commands) == ["eval", "eval", "worker", "worker"]
    for command in commands:
        whole_parser("memorybench").parse_args(command)  # raises for an unknown flag
    copied = [
        line.split()[1:-1] for line in (folder / "Dockerfile").read_text().splitlines() if line.startswith("COPY")
    ]
    for path in chain.from_iterable(copied):
        assert path != ".", "a checkout has keys and results, too"
        assert (ROOT / path).exists()
