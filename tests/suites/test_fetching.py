"""Data that is fetched before a run begins."""

from pathlib import Path

import pytest

from memorybench.core.errors import ServiceError
from memorybench.suites.fetching import fetched


def test_a_failed_fetch_leaves_nothing_and_shows_its_own_error(tmp_path: Path) -> None:
    folder = tmp_path / "results" / "run"

    async def fetch() -> None:
        (folder / "part.jsonl").write_text("{}\n")
        raise ServiceError("the service ended the connection")

    with pytest.raises(ServiceError):
        fetched(fetch(), folder)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("names", [[], ["notes.txt"]])
def test_a_failed_fetch_keeps_a_folder_that_existed(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        (tmp_path / name).write_text("mine")

    async def fetch() -> None:
        raise ServiceError("the service ended the connection")

    with pytest.raises(ServiceError):
        fetched(fetch(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == names
