"""Where in a recording a time is, found by halving: nothing of it is kept in memory."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import BinaryIO

from zconsole.zfs.sources.open_text import GZIP, LONGEST_LINE, STDIN, UTF_16
from zconsole.zfs.sources.samples import NoSampleError, sample_of

_NEAR = 2**16
"""Bytes between two places that need not be told apart."""
_TRIED = 100
"""Lines that are looked at for one that is a sample."""
_TAILS = tuple(2**n for n in range(16, 26, 3))
"""Bytes of the end in which the last sample is looked for."""


def span_of(path: str) -> tuple[float, float] | None:
    """The times of the first and last sample; None of what has no places: a pipe, a packed file."""
    if path == STDIN:
        return None
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):
            return None
        with Path(path).open("rb") as file:
            head = file.read(2)
            if head == GZIP or head in UTF_16:
                return None
            first, last = _sample_from(file, 0), _last(file)
    except OSError:
        return None
    return None if first is None or last is None else (first[1], max(first[1], last))


def place_of(path: str, t: float) -> int:
    """The offset of a line shortly before the first sample at ``t`` or later. Raises OSError."""
    with Path(path).open("rb") as file:
        low, high = 0, file.seek(0, 2)
        while high - low > _NEAR:
            middle = (low + high) // 2
            found = _sample_from(file, middle)
            if found is None or found[0] >= high or found[1] >= t:
                high = middle
            else:
                low = found[0]
    return low


def _sample_from(file: BinaryIO, offset: int) -> tuple[int, float] | None:
    """Offset and time of the first sample that begins after ``offset``, or at 0."""
    file.seek(offset)
    if offset:
        file.readline(LONGEST_LINE)
    for _ in range(_TRIED):
        start = file.tell()
        line = file.readline(LONGEST_LINE)
        if not line:
            return None
        if (t := _time(line)) is not None:
            return start, t
    return None


def _last(file: BinaryIO) -> float | None:
    size = file.seek(0, 2)
    for tail in _TAILS:
        file.seek(max(0, size - tail))
        for line in reversed(file.read(tail).splitlines()[-_TRIED:]):
            if (t := _time(line)) is not None:
                return t
        if tail >= size:
            break
    return None


def _time(line: bytes) -> float | None:
    try:
        raw, _ = sample_of(line.decode("utf-8-sig", "surrogateescape").replace("\0", ""))
    except NoSampleError:
        return None
    return float(raw["t"])
