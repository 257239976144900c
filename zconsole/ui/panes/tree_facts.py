"""What the device list needs of all vdevs of a pool, also of those out of sight."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from rich.cells import cell_len

from zconsole.timeline.events import BROKEN
from zconsole.timeline.frame import Frame
from zconsole.ui.panes.device_cells import bay_words


class TreeFacts(NamedTuple):
    """Of the vdevs of one frame; widths in cells."""

    longest: int = 8
    """The longest name with its indent."""
    names: tuple[str, ...] = ()
    """Those of the leaves, each once."""
    longest_leaf: int = 0
    """The longest of them."""
    deepest: int = 0
    """The largest indent of a leaf."""
    bays: Mapping[str, str] = {}
    """Leaf name to its bay; empty where the name tells it."""
    widest_bay: int = 0
    errors: bool = False
    """Whether an error counter of any row is not 0."""
    filled: frozenset[str] = frozenset()
    """The keys of the disks that are being filled, or wait until the metadata is scanned."""


def tree_facts(frame: Frame) -> TreeFacts:
    """The facts of a frame."""
    leaves = [row for row in frame.rows if not row.vdev.children]
    bays = {row.vdev.name: bay_words(row) for row in leaves}
    return TreeFacts(
        longest=max((cell_len(row.vdev.name) + row.depth for row in frame.rows), default=8),
        names=tuple(bays),
        longest_leaf=max(map(cell_len, bays), default=0),
        deepest=max((row.depth for row in leaves), default=0),
        bays=bays,
        widest_bay=max(map(cell_len, bays.values()), default=0),
        errors=any(row.vdev.errors.total for row in frame.rows),
        filled=frozenset(
            row.key for row in frame.rows if row.vdev.resilvering or row.vdev.unfilled
        ),
    )


def has_failed(frame: Frame) -> bool:
    """Whether a device has failed or counted errors."""
    leaves = (row.vdev for row in frame.rows if not row.vdev.children)
    return any(leaf.state in BROKEN or leaf.errors.total for leaf in leaves)
