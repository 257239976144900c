"""``zpool iostat`` output: plain, ``-v``, ``-l``, ``-q``, ``-H`` and ``-p``.

Source: print_iostat_header, print_vdev_stats and the tables of columns in
cmd/zpool/zpool_main.c (0.7 to 2.4). ``-l`` follows the six plain columns, ``-q`` follows ``-l``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from zconsole.errors import NotUnderstoodError
from zconsole.pool.model import IoRates
from zconsole.units import parse_size
from zconsole.zfs.decode.values import is_cell, unspaced
from zconsole.zfs.raw import QUEUES

_GROUPS = frozenset({"logs", "cache", "special", "dedup"})
_PLAIN = 6
_EXTRAS = {
    9: (9, 0),
    10: (10, 0),
    11: (11, 0),
    12: (0, 6),
    14: (0, 7),
    19: (9, 5),
    22: (10, 6),
    25: (11, 7),
}
"""Number of columns after the plain six to (waits, queues): 0.7, 0.8 to 2.1, 2.2+."""
_DISK_WAITS = slice(2, 4)
"""``disk_wait`` of reads and of writes, among the columns of waits."""

_TIME = re.compile(r"(\d+(?:[.,]\d+)?)(ns|us|ms|s)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


@dataclass(frozen=True, slots=True)
class IostatRow:
    """One row; None where a dash is printed."""

    name: str
    indent: int | None
    """Blanks before the name; None with -H, which prints none."""
    rates: IoRates
    """Latency is what a request took in the device, reads and writes together, by their number."""
    queues: Mapping[str, tuple[int, int]]


def samples_of(text: str) -> tuple[tuple[IostatRow, ...], ...]:
    """The rows of each sample, in file order. Raises NotUnderstoodError for other text."""
    samples = tuple(tuple(rows) for rows in _samples(unspaced(text).splitlines()) if rows)
    if not samples:
        raise NotUnderstoodError("not `zpool iostat` output")
    return samples


def latest(text: str, pool: str) -> tuple[IostatRow, ...]:
    """The newest sample's rows of one pool; () when the pool is not among them."""
    try:
        rows = samples_of(text)[-1]
    except NotUnderstoodError:
        return ()
    start = next((i for i, row in enumerate(rows) if row.name == pool and not row.indent), None)
    if start is None:
        return ()
    end = next((i for i in range(start + 1, len(rows)) if rows[i].indent == 0), len(rows))
    return rows[start:end]


def _samples(lines: Sequence[str]) -> Iterator[list[IostatRow]]:
    """A heading, a time stamp or the first pool's next row begins a new sample."""
    rows: list[IostatRow] = []
    queues_only = False
    for line in lines:
        words = line.split()
        if words and (_is_heading(words) or _is_stamp(words, line)):
            queues_only = queues_only or ("pend" in words and "wait" not in words)
            if rows:
                yield rows
            rows = []
        elif words and not set(line) <= set(" -"):
            row = _row(line, queues_only)
            if row.name in _GROUPS and row.rates.read_ops is row.rates.write_ops is None:
                continue
            if rows and row.name == rows[0].name and not row.indent:
                yield rows
                rows = []
            rows.append(row)
    yield rows


def _is_heading(words: Sequence[str]) -> bool:
    return words[0] == "capacity" or (words[0] == "pool" and {"read", "write"} <= set(words))


def _is_stamp(words: Sequence[str], line: str) -> bool:
    """``-T u``: epoch seconds alone; ``-T d``: a date."""
    return (len(words) == 1 and words[0].isdigit() and "\t" not in line) or bool(
        re.match(r"[A-Z][a-z]{2} [A-Z]?[a-z]*\s?\d{1,2} .*\d\d:\d\d:\d\d", line)
    )


def _row(line: str, queues_only: bool) -> IostatRow:
    bare = "\t" in line
    if bare:
        name, *cells = line.strip().split("\t")
    else:
        name, *cells = line.split()
        while cells and not is_cell(cells[0]):
            name = f"{name} {cells.pop(0)}"
    plain = [parse_size(cell) for cell in cells[:_PLAIN]] + [None] * _PLAIN
    _, _, read_ops, write_ops, read, write = plain[:_PLAIN]
    waits, queues = _extras(cells[_PLAIN:], queues_only)
    wait = _mean_wait(waits[_DISK_WAITS], (read_ops, write_ops))
    return IostatRow(
        name=name,
        indent=None if bare else len(line) - len(line.lstrip(" ")),
        rates=IoRates(read, write, read_ops, write_ops, wait),
        queues=queues,
    )


def _mean_wait(waits: Sequence[str], operations: Sequence[float | None]) -> float | None:
    pairs = zip(map(_seconds, waits), operations, strict=False)
    known = [(wait, ops or 0.0) for wait, ops in pairs if wait is not None]
    total = sum(ops for _, ops in known)
    if not total:
        return max((wait for wait, _ in known), default=None)
    return sum(wait * ops for wait, ops in known) / total


def _extras(
    cells: Sequence[str], queues_only: bool
) -> tuple[Sequence[str], dict[str, tuple[int, int]]]:
    """The columns of waits as printed, and the depths of queues."""
    waits, queues = _EXTRAS.get(len(cells), (0, 0))
    if queues_only and len(cells) == 10:
        waits, queues = 0, 5
    depths = [parse_size(cell) or 0 for cell in cells[waits : waits + 2 * queues]]
    pairs = zip(depths[::2], depths[1::2], strict=False)
    return cells[:waits], dict(zip(QUEUES, pairs, strict=False))


def _seconds(cell: str) -> float | None:
    """A wait: nanoseconds with -p, else ``730us``; None for a dash."""
    if cell.isdigit():
        return int(cell) / 1e9
    match = _TIME.fullmatch(cell)
    return float(match[1].replace(",", ".")) * _SECONDS[match[2]] if match else None
