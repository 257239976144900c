"""Files that the copy engine accepts, and the reasons for those it refuses."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import cast

import pytest

from zconsole.rebalance.engine.admission import Admission, Policy
from zconsole.rebalance.engine.directories import Directories, OpenDirectory
from zconsole.rebalance.engine.item import SkipError
from zconsole.rebalance.engine.journal import FileRow
from zconsole.rebalance.engine.metadata import Abilities
from zconsole.rebalance.engine.syscalls import Sys


class Opened:
    """A single open directory."""

    def __init__(self, directory: OpenDirectory) -> None:
        self._directory = directory

    def get(self, _number: int) -> OpenDirectory:
        return self._directory


class Bare(Sys):
    """A filesystem without flags, projects and DOS attributes."""

    def ioctl(self, fd: int, request: int, value: bytes) -> bytes:  # type: ignore[misc]
        raise OSError(errno.ENOTTY, os.strerror(errno.ENOTTY))


@pytest.mark.parametrize("same", [True, False])
def test_a_file_that_another_filesystem_was_mounted_over_has_changed(
    tmp_path: Path, same: bool
) -> None:
    """Otherwise it would count as a replaced file that needs no move, whatever its number there."""
    file = tmp_path / "file"
    file.write_bytes(b"x")
    number = file.stat().st_ino + (not same)
    row = FileRow(1, 1, b"file", number, 1, 1)
    fd = os.open(tmp_path, os.O_RDONLY)
    below = OpenDirectory(1, fd, tmp_path.stat().st_dev + 1, 0, 0)
    abilities = Abilities()
    opened = cast("Directories", Opened(below))
    admission = Admission(Bare(), opened, Policy(accept_races=True), lambda _: abilities)
    with pytest.raises(SkipError, match=r"^changed$"):
        admission.open([row])
    os.close(fd)
    assert abilities == Abilities(), "what the other filesystem lacks was learned of this one"
