"""Where the choices of an experiment come from: chance, all of them in turn, or a list.

An experiment asks for numbers; what it was given is what repeats it. 0 is always the simplest.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

Choose = Callable[[int], int]
"""Given the largest number that is possible, returns one from 0 to that."""


@dataclass(slots=True)
class ChoicesTaken:
    """Notes what was chosen."""

    choose: Choose
    taken: list[int] = field(default_factory=list)

    def __call__(self, most: int) -> int:
        """One choice; nothing is asked where there is none."""
        if most <= 0:
            return 0
        self.taken.append(self.choose(most))
        return self.taken[-1]


def by_chance(source: random.Random) -> Choose:
    """Any number."""
    return lambda most: source.randrange(most + 1)


def given(numbers: Sequence[int]) -> Choose:
    """These numbers, as far as they are possible, then zeros."""
    left = iter(numbers)
    return lambda most: next(left, 0) % (most + 1) if most > 0 else 0


@dataclass(slots=True)
class EveryChoice:
    """All possible choices, one experiment after the other: ``while every.next(): …``."""

    _path: list[tuple[int, int]] = field(default_factory=list)
    """Chosen and largest number of each choice of the last experiment."""
    _at: int = 0
    _begun: bool = False

    def __call__(self, most: int) -> int:
        """The next choice of this experiment."""
        if self._at == len(self._path):
            self._path.append((0, most))
        self._at += 1
        return self._path[self._at - 1][0]

    def next(self) -> bool:
        """Begin with the next experiment; False when all were."""
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
