"""Lines of the device list: the tree of vdevs, folded, filtered or sorted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple

from zconsole.pool.chassis import LeafDisk
from zconsole.timeline.frame import VdevRow

CLASS_TITLES = {
    "special": "special",
    "dedup": "dedup",
    "log": "logs",
    "cache": "cache",
    "spare": "spares",
}
"""Titles that ``zpool status`` prints above the vdevs of these classes (print_class_vdevs)."""

SORTS: dict[str, Callable[[VdevRow], float]] = {
    "tree": lambda _: 0.0,
    "latency": lambda row: -(row.rates.latency or 0.0),
    "busy": lambda row: -(row.rates.busy or 0.0),
    "read": lambda row: -(row.rates.read or 0.0),
    "write": lambda row: -(row.rates.write or 0.0),
    "errors": lambda row: -float(row.vdev.errors.total),
}
"""Orders that ``s`` cycles through; all except the tree list only leaves, the largest first."""


class TreeLine(NamedTuple):
    """A line of the list: a vdev, the title of a class, or a line of a vdev's details."""

    key: str
    depth: int
    row: VdevRow | None = None
    title: str = ""
    folded: int = 0
    """Number of rows hidden below a folded row."""
    detail: int | None = None
    """Index of a line of details; None for the row itself."""


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Arrangement of the list by the operator."""

    sort: str = "tree"
    filter: str = ""
    folded: frozenset[str] = frozenset()


def tree_height(rows: Sequence[VdevRow]) -> int:
    """Return the lines of the whole tree, including the titles of classes."""
    classes = {row.vdev.vclass for row in rows if row.depth == 1}
    return len(rows) + len(classes & CLASS_TITLES.keys())


def items(rows: Sequence[VdevRow], arrangement: Arrangement) -> tuple[TreeLine, ...]:
    """Return the lines for ``rows``, which are in tree order."""
    kept = rows if not arrangement.filter else _filtered(rows, arrangement.filter)
    if arrangement.sort != "tree":
        leaves = [row for row in kept if not row.vdev.children]
        leaves.sort(key=SORTS[arrangement.sort])
        return tuple(TreeLine(row.key, 0, row) for row in leaves)
    return _tree(kept, () if arrangement.filter else arrangement.folded)


def _tree(rows: Sequence[VdevRow], folded: Collection[str]) -> tuple[TreeLine, ...]:
    out: list[TreeLine] = []
    group = "normal"
    hiding: int | None = None
    for index, row in enumerate(rows):
        if hiding is not None and row.depth > hiding:
            continue
        hiding = None
        if row.depth == 1 and row.vdev.vclass != group:
            group = row.vdev.vclass
            if title := CLASS_TITLES.get(group):
                out.append(TreeLine(f"class:{group}", 0, title=title))
        below = _below(rows, index) if row.key in folded else 0
        if below:
            hiding = row.depth
        out.append(TreeLine(row.key, row.depth, row, folded=below))
    return tuple(out)


def _below(rows: Sequence[VdevRow], index: int) -> int:
    deeper = takewhile(lambda row: row.depth > rows[index].depth, rows[index + 1 :])
    return sum(1 for _ in deeper)


def _filtered(rows: Sequence[VdevRow], wanted: str) -> list[VdevRow]:
    """Return the matching rows and their ancestors, which keep each match's place in the tree."""
    needle = wanted.casefold()
    kept: set[int] = set()
    path: list[int] = []
    for index, row in enumerate(rows):
        path[row.depth :] = [index]
        if matches(row, needle):
            kept.update(path)
    return [rows[index] for index in sorted(kept)]


def matches(row: VdevRow, needle: str) -> bool:
    """Return whether a case-folded text occurs in a row's name, path, state, note or disk place."""
    vdev, disk = row.vdev, row.vdev.disk or LeafDisk()
    words = (vdev.name, vdev.path or "", vdev.state, vdev.note, vdev.kind, row.slow_sibling or "")
    places = (disk.bay, disk.slot, disk.serial, disk.wwn, disk.port, disk.model)
    return any(needle in word.casefold() for word in (*words, *places))
