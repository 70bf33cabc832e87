"""Files that a command writes for the user."""

from pathlib import Path

from memorybench.core.errors import BadInput
from memorybench.files.writing import replacing
from tests.doubles.refusals import refused


def write(path: Path) -> None:
    with replacing(path) as file:
        file.write("text")


def test_a_folder_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("kept")
    error = refused(write, tmp_path)
    assert isinstance(error, BadInput)
    assert (error.where, error.expected) == (str(tmp_path), "a file")
    assert (tmp_path / "old").read_text() == "kept"
