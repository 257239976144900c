"""Rows of /proc/diskstats for the simulated devices (Documentation/admin-guide/iostats.rst)."""

from __future__ import annotations

from collections.abc import Sequence

from zconsole.sim.disk import Leaf

SECTOR = 512


def rows(leaves: Sequence[Leaf]) -> list[list[str]]:
    """One row a device that is there."""
    return [_row(leaf, i) for i, leaf in enumerate(leaves) if _present(leaf)]


def devices(leaves: Sequence[Leaf]) -> dict[str, tuple[str, ...]]:
    """Leaf path to the name of its row."""
    return {leaf.path: (leaf.device,) for leaf in leaves if _present(leaf)}


def _present(leaf: Leaf) -> bool:
    return leaf.kind == "disk" and leaf.state not in (3, 4)


def _row(leaf: Leaf, index: int) -> list[str]:
    waited = leaf.read_time + leaf.write_time
    return (
        f"{8 + index // 16} {index % 16 * 16 + 1} {leaf.device}"
        f" {leaf.read_ops:.0f} 0 {leaf.read_bytes / SECTOR:.0f} {leaf.read_time * 1000:.0f}"
        f" {leaf.write_ops:.0f} 0 {leaf.write_bytes / SECTOR:.0f} {leaf.write_time * 1000:.0f}"
        f" {leaf.in_flight:.0f} {leaf.busy_time * 1000:.0f} {waited * 1000:.0f} 0 0 0 0"
    ).split()
