"""Numbers that follow each other, told by their first and last."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any


def ranges(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """First and last of every stretch of numbers without a gap, in order."""
    ordered = sorted(numbers)
    starts = [n for at, n in enumerate(ordered) if at == 0 or ordered[at - 1] != n - 1]
    ends = [n for at, n in enumerate(ordered, 1) if at == len(ordered) or ordered[at] != n + 1]
    return zip(starts, ends, strict=True)


def grouped(marked: Iterable[tuple[int, tuple[Any, ...]]]) -> Iterator[tuple[Any, ...]]:
    """What numbers are marked with, and first and last of every stretch that has it in common."""
    alike = defaultdict[tuple[Any, ...], list[int]](list)
    for number, mark in marked:
        alike[mark].append(number)
    for mark, numbers in alike.items():
        for run in ranges(numbers):
            yield *mark, *run
