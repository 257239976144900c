"""How redundant and wide vdevs are, compared as ``zpool add`` compares them without ``-f``.

get_replication and check_replication in cmd/zpool/zpool_vdev.c (2.2.11).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from zconsole.pool.model import Vdev
from zconsole.pool.redundancy import parity
from zconsole.pool.topology import data_vdevs, is_group
from zconsole.units import size

FUZZ = 16 * 1024**2
"""Bytes by which the devices of one vdev may differ in size (ZPOOL_FUZZ)."""


class Replication(NamedTuple):
    """The layout of a top-level vdev: ``raidz2`` is kind ``raidz`` with parity 2."""

    kind: str
    width: int
    parity: int = 0

    @property
    def survives(self) -> int:
        """How many of its devices may fail without losing data."""
        return max(0, self.width - 1) if self.kind == "mirror" else self.parity

    @property
    def words(self) -> str:
        """``raidz2 of 6 disks``, ``mirror of 2 disks``, ``single disk``."""
        if self.width == 1 and not self.survives:
            return "single disk"
        return f"{self.kind}{self.parity or ''} of {self.width} disks"


def replication_of(top: Vdev) -> Replication:
    """The layout of a top-level vdev."""
    if top.kind.startswith(("raidz", "draid")):
        return Replication(top.kind[:5], len(top.children), parity(top))
    return Replication(top.kind, max(1, len(top.children)))


def least_redundant(root: Vdev) -> int:
    """How many failures each redundant normal-class vdev survives when whole; at least 1.

    Vdevs without redundancy don't count: that one was added by mistake is no reason for another.
    """
    tops = (replication_of(v).survives for v in data_vdevs(root) if v.vclass == "normal")
    return min((count for count in tops if count), default=1)


def mismatch(root: Vdev, new: Replication, sizes: Iterable[int] = ()) -> str | None:
    """Why zpool would refuse to add a vdev of this layout unless forced; None where it would not.

    zpool compares with the last vdev, and only where the pool's own vdevs match each other.
    ``sizes``: bytes of the new devices, where known.
    """
    tops = data_vdevs(root)
    if not _is_consistent(tops):
        return None
    if (why := sizes_differ(sizes)) is not None:
        return why
    present = replication_of(tops[-1])
    if not _differ(present, new):
        return None
    return f"the pool has a {present.words}, this is a {new.words}"


def sizes_differ(sizes: Iterable[int]) -> str | None:
    """What zpool has against devices of one vdev that differ in size; None for alike ones."""
    known = list(sizes)
    if not known or max(known) - min(known) <= FUZZ:
        return None
    return f"its devices differ in size: {size(min(known))} to {size(max(known))}"


def _is_consistent(tops: tuple[Vdev, ...]) -> bool:
    """Whether the pool's vdevs match each other, so that zpool compares a new one with them."""
    layouts = [replication_of(top) for top in tops]
    alike = all(not _differ(a, b, among_present=True) for a, b in pairwise(layouts))
    return bool(tops) and alike and all(sizes_differ(_sizes(top)) is None for top in tops)


def _sizes(top: Vdev) -> list[int]:
    """Sizes of its devices; of a replacing or spare group that of the first."""
    leaves = (_first(member) for member in top.children)
    return [leaf.size_bytes for leaf in leaves if leaf.size_bytes]


def _first(member: Vdev) -> Vdev:
    return _first(member.children[0]) if is_group(member) else member


def _differ(a: Replication, b: Replication, among_present: bool = False) -> bool:
    """Whether two layouts count as different; raidz and mirror of equal redundancy do not."""
    kinds = {a.kind, b.kind}
    if "mirror" in kinds and kinds & {"raidz", "draid"}:
        return a.survives != b.survives
    if among_present and {a.kind, b.kind} <= {"raidz", "draid"}:
        return a.parity != b.parity
    return a != b
