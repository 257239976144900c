"""Sources of the choices of an experiment: random, exhaustive, or a given list.

An experiment asks for numbers; the answers it was given are what repeats it. 0 is always the
simplest choice.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

Choose = Callable[[int], int]
"""Takes the largest possible number and returns one from 0 up to it."""


@dataclass(slots=True)
class ChoicesTaken:
    """Records the choices made."""

    choose: Choose
    taken: list[int] = field(default_factory=list)

    def __call__(self, most: int) -> int:
        """Make one choice; if only 0 is possible, nothing is asked or recorded."""
        if most <= 0:
            return 0
        self.taken.append(self.choose(most))
        return self.taken[-1]


def by_chance(source: random.Random) -> Choose:
    """Choose at random."""
    return lambda most: source.randrange(most + 1)


def given(numbers: Sequence[int]) -> Choose:
    """Return the given numbers, reduced to what is possible, then zeros."""
    left = iter(numbers)
    return lambda most: next(left, 0) % (most + 1) if most > 0 else 0


@dataclass(slots=True)
class EveryChoice:
    """All possible choices, one experiment after another: ``while every.next(): …``."""

    _path: list[tuple[int, int]] = field(default_factory=list)
    """Number chosen and largest possible number, for each choice of the last experiment."""
    _at: int = 0
    _begun: bool = False

    def __call__(self, most: int) -> int:
        """Return the next choice of this experiment."""
        if self._at == len(self._path):
            self._path.append((0, most))
        self._at += 1
        return self._path[self._at - 1][0]

    def next(self) -> bool:
        """Start the next experiment; returns False when all combinations were tried."""
        if not self._begun:
            self._begun = True
            return True
        while self._path and self._path[-1][0] == self._path[-1][1]:
            self._path.pop()
        if not self._path:
            return False
        chosen, most = self._path.pop()
        self._path.append((chosen + 1, most))
        self._at = 0
        return True
