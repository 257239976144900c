"""Rows of /proc/diskstats for the simulated devices (Documentation/admin-guide/iostats.rst)."""

from __future__ import annotations

from collections.abc import Sequence

from zconsole.sim.disk import Leaf

SECTOR = 512
_FORMAT = "%d %d %s %d 0 %d %d %d 0 %d %d %d %d %d 0 0 0 0"


def rows(leaves: Sequence[Leaf]) -> list[list[str]]:
    """One row a device that is there."""
    return [_row(leaf, i) for i, leaf in enumerate(leaves) if _present(leaf)]


def devices(leaves: Sequence[Leaf]) -> dict[str, tuple[str, ...]]:
    """Leaf path to the name of its row."""
    return {leaf.path: (leaf.device,) for leaf in leaves if _present(leaf)}


def _present(leaf: Leaf) -> bool:
    return leaf.kind == "disk" and leaf.state not in (3, 4)


def _row(leaf: Leaf, index: int) -> list[str]:
    number = (8 + index // 16, index % 16 * 16 + 1, leaf.device)
    reads = (leaf.reads.ops, leaf.reads.bytes / SECTOR, leaf.reads.time * 1000)
    writes = (leaf.writes.ops, leaf.writes.bytes / SECTOR, leaf.writes.time * 1000)
    waited = (leaf.reads.time + leaf.writes.time) * 1000
    now = (round(leaf.in_flight), leaf.busy_time * 1000, waited)
    return (_FORMAT % (*number, *reads, *writes, *now)).split()
