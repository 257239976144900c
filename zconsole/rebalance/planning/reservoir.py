"""A fair sample of files out of a walk whose length nobody knows before its end."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import NamedTuple

from zconsole.rebalance.planning.walk import Found


class Taken(NamedTuple):
    """A file of the sample. Bytes: its length, what its blocks take, and one of its blocks."""

    inode: int
    size: int
    allocated: int
    block: int
    directory: bytes
    """The path it had; empty where nobody knows it."""
    name: bytes


@dataclass(slots=True)
class Reservoir:
    """Every file offered is in it with the same chance, size / files.

    Each takes the place of another with the chance that it would have among all up to it
    (Knuth, The Art of Computer Programming, 3.4.2, algorithm R).
    """

    size: int
    _chance: Random = field(default_factory=lambda: Random(1))
    files: list[Taken] = field(default_factory=list)
    _offered: int = 0

    def offer(self, files: Sequence[Found], directory: int = -1) -> None:
        """Take some of these files of an open directory, perhaps in the place of earlier ones."""
        draw = self._chance.random  # for every file: a third of the time of ``randrange``
        for offered, file in enumerate(files, self._offered + 1):
            if offered <= self.size:
                self.files.append(_taken(file, directory))
            elif (place := int(draw() * offered)) < self.size:
                self.files[place] = _taken(file, directory)
        self._offered += len(files)

    def inodes(self, most: int) -> list[int]:
        """Inode numbers of some of the files taken: up to ``most`` blocks, and one file more."""
        found: list[int] = []
        for file in self._chance.sample(self.files, len(self.files)):
            if most <= 0:
                break
            most -= max(1, file.size // (file.block or 1))
            found.append(file.inode)
        return found


def _taken(file: Found, directory: int) -> Taken:
    name, status = file
    path = b""
    with contextlib.suppress(OSError):  # no path is longer than PATH_MAX, trees are
        path = os.fsencode(Path(f"/proc/self/fd/{directory}").readlink()) if directory >= 0 else b""
    blocks = status.st_blocks * 512
    return Taken(status.st_ino, status.st_size, blocks, status.st_blksize, path, name)
