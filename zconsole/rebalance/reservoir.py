"""A fair sample of files out of a walk whose length nobody knows before its end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from zconsole.rebalance.walk import Found

_TINY = 1e-15
"""Keeps logarithms finite."""


@dataclass(slots=True)
class Reservoir:
    """Every file offered is in it with the same chance, SIZE / files.

    Skips ahead to the next file that is taken, so that a million files cost a few thousand
    draws (Li, Reservoir-Sampling Algorithms of Time Complexity O(n(1 + log(N/n))), 1994).
    """

    size: int
    _chance: Random = field(default_factory=lambda: Random(1))
    _kept: list[tuple[int, int]] = field(default_factory=list)
    _offered: int = 0
    _next: int = 0
    _weight: float = 1.0

    def offer(self, files: Sequence[Found]) -> None:
        """Take some of these files, perhaps in the place of earlier ones."""
        begin, self._offered = self._offered, self._offered + len(files)
        while self._next < self._offered:
            status = files[self._next - begin][1]
            entry = (status.st_ino, status.st_size)
            if len(self._kept) < self.size:
                self._kept.append(entry)
            else:
                self._kept[self._chance.randrange(self.size)] = entry
            self._next += 1
            if len(self._kept) == self.size:
                self._skip()

    def inodes(self, most: int) -> list[int]:
        """Inode numbers of some of the files taken: up to ``most`` bytes, and one more."""
        found: list[int] = []
        for inode, size in self._chance.sample(self._kept, len(self._kept)):
            if most <= 0:
                break
            most -= size
            found.append(inode)
        return found

    def _skip(self) -> None:
        draw = self._chance.random
        self._weight *= math.exp(math.log(max(draw(), _TINY)) / self.size)
        stays = math.log1p(-min(self._weight, 1.0 - _TINY))
        self._next += math.floor(math.log(max(draw(), _TINY)) / stays)
