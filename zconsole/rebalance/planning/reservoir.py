"""A fair sample of files out of a walk whose length nobody knows before its end."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import NamedTuple

from zconsole.rebalance.planning.walk import Found

_TINY = 1e-15
"""Keeps logarithms finite."""


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
    """Every file offered is in it with the same chance, SIZE / files.

    Skips ahead to the next file that is taken, so that a million files cost a few thousand
    draws (Li, Reservoir-Sampling Algorithms of Time Complexity O(n(1 + log(N/n))), 1994).
    """

    size: int
    _chance: Random = field(default_factory=lambda: Random(1))
    files: list[Taken] = field(default_factory=list)
    _offered: int = 0
    _next: int = 0
    _weight: float = 1.0

    def offer(self, files: Sequence[Found], directory: int = -1) -> None:
        """Take some of these files of an open directory, perhaps in the place of earlier ones."""
        begin, self._offered = self._offered, self._offered + len(files)
        while self._next < self._offered:
            entry = _taken(files[self._next - begin], directory)
            if len(self.files) < self.size:
                self.files.append(entry)
            else:
                self.files[self._chance.randrange(self.size)] = entry
            self._next += 1
            if len(self.files) == self.size:
                self._skip()

    def inodes(self, most: int) -> list[int]:
        """Inode numbers of some of the files taken: up to ``most`` blocks, and one file more."""
        found: list[int] = []
        for file in self._chance.sample(self.files, len(self.files)):
            if most <= 0:
                break
            most -= max(1, file.size // (file.block or 1))
            found.append(file.inode)
        return found

    def _skip(self) -> None:
        draw = self._chance.random
        self._weight *= math.exp(math.log(max(draw(), _TINY)) / self.size)
        stays = math.log1p(-min(self._weight, 1.0 - _TINY))
        self._next += math.floor(math.log(max(draw(), _TINY)) / stays)


def _taken(file: Found, directory: int) -> Taken:
    name, status = file
    path = b""
    with contextlib.suppress(OSError):  # no path is longer than PATH_MAX, trees are
        path = os.fsencode(Path(f"/proc/self/fd/{directory}").readlink()) if directory >= 0 else b""
    blocks = status.st_blocks * 512
    return Taken(status.st_ino, status.st_size, blocks, status.st_blksize, path, name)
