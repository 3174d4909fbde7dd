"""Files are whole or not there, whatever happens while they are written."""

import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from redraft.errors import OutputError
from redraft.files import replacing
from tests.full_disk import file_limit


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with file_limit(1000):
        with pytest.raises(OutputError, match=r"cannot write .*file: File too large"), replacing(path) as partial:
            partial.write_text("x" * 2000)
        with pytest.raises(OutputError, match="cannot write"), replacing(path) as partial:
            save_file({"x": torch.zeros(1000)}, partial)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OutputError, match="Is a directory"), replacing(tmp_path / "folder") as partial:
        partial.write_text("x")


def test_what_killed_writers_left_is_cleared(tmp_path: Path) -> None:
    old, new, other = (tmp_path / name for name in (".a.1.partial", ".a.2.partial", ".b.1.partial"))
    for path in (old, new, other):
        path.write_text("half")
    for path in (old, other):
        os.utime(path, (0, 0))
    with replacing(tmp_path / "a") as partial:
        partial.write_text("whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".a.2.partial", ".b.1.partial", "a"]
