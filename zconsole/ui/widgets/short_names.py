"""Short forms of long device names that stay distinct."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from os.path import commonprefix

from rich.cells import cell_len

Shortener = Callable[[str], str]
_NUMBERED = re.compile(r"(.*?)([0-9]{1,9})")
_PLACES = ("slot", "bay")
_FORMER = re.compile(r"\bwas (?P<path>/[^\s)]+)")
"""The words of zpool about a device that is not found any more."""
_SERIAL = 8
"""Cells that are kept of such a name: enough for a serial number."""


def short_names(names: Sequence[str], width: int, ellipsis: str = "…") -> dict[str, str]:
    """Return each name in at most ``width`` cells; different names stay different.

    Names that fit stay whole. The others lose their beginning, which names of one maker share; if
    that makes two alike, a common ending (``-part1``) is dropped first, then the middle.
    """
    long = sorted({name for name in names if cell_len(name) > width})
    whole = {name: name for name in names if cell_len(name) <= width}
    if not long:
        return whole
    # Each way is tried until all names differ.
    for shorten in _shorteners(long, width, ellipsis):
        short = {name: shorten(name) for name in long}
        if len({*short.values(), *whole.values()}) == len(short) + len(set(whole)):
            return whole | short
    numbered = {name: _numbered(name, i, width, ellipsis) for i, name in enumerate(long, 1)}
    return whole | numbered


def middle(name: str, width: int, ellipsis: str = "…") -> str:
    """Return a name in at most ``width`` cells, with its middle left out."""
    if cell_len(name) <= width:
        return name
    if width <= 1:
        return name[: max(0, width)]
    head = (width - 1) // 3
    return _cells(name, head) + ellipsis + _cells(name, width - 1 - head, from_end=True)


def in_runs(names: Sequence[str]) -> list[str]:
    """Group names that differ only in their final number: ``Slots 01-06``, ``09``."""
    numbers: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        found = _NUMBERED.fullmatch(name)
        start, number = found.groups() if found else (name, "")
        numbers.setdefault(start, []).append(number)
    return [part for start, ends in numbers.items() for part in _runs(start, ends)]


def _runs(start: str, numbers: Sequence[str]) -> list[str]:
    """Return the names that begin with ``start``, as ranges of their numbers."""
    if len(numbers) == 1:
        return [start + numbers[0]]
    ordered = sorted(numbers, key=int)
    runs = [[ordered[0]]]
    for before, number in pairwise(ordered):
        if int(number) == int(before) + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    place = start.rstrip()
    several = place != start and place.lower().endswith(_PLACES)
    said = [run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    return [f"{place}s {said[0]}", *said[1:]] if several else [start + each for each in said]


def _shorteners(long: Sequence[str], width: int, ellipsis: str) -> tuple[Shortener, ...]:
    ending = _shared([name[::-1] for name in long])
    start = _shared(long)
    room = max(1, width - 1)

    def _tail(name: str) -> str:
        return ellipsis + _cells(name, room, from_end=True)

    def _core(name: str) -> str:
        kept = name[: len(name) - ending] or name
        return ellipsis + _cells(kept, max(1, width - 2), from_end=True) + ellipsis

    def _different(name: str) -> str:
        return ellipsis + _cells(name[start:], room)

    return (_tail, _core, lambda name: middle(name, width, ellipsis), _different)


def _shared(names: Sequence[str]) -> int:
    """Return the length of the common beginning of the names; 0 for a single name."""
    return len(commonprefix(names)) if len(names) > 1 else 0  # noqa: RUF071 - characters it is


def _numbered(name: str, index: int, width: int, ellipsis: str) -> str:
    mark = f"#{index}"
    return _cells(name, max(0, width - len(mark) - 1)) + ellipsis + mark


def _cells(text: str, width: int, *, from_end: bool = False) -> str:
    """Return as many characters of ``text`` as fit in ``width`` cells, from its start or end."""
    if text.isascii():
        return text[-width:] if from_end and width else text[:width]
    kept = ""
    for char in reversed(text) if from_end else text:
        if cell_len(kept + char) > width:
            break
        kept = char + kept if from_end else kept + char
    return kept


def formerly(text: str, width: int, ellipsis: str = "…") -> str:
    """Shorten a text with ``was /dev/…`` to ``width`` cells, first by its directory.

    Next goes the beginning of the name, as its end has the serial number.
    """
    found = _FORMER.search(text)
    if found is None or cell_len(text) <= width:
        return text
    name = found["path"].rpartition("/")[2].removesuffix("-part1")
    spare = width - cell_len(text) + cell_len(found["path"])
    if cell_len(name) > max(spare, _SERIAL):
        name = ellipsis + _cells(name, max(_SERIAL, spare) - 1, from_end=True)
    return text[: found.start("path")] + name + text[found.end("path") :]
