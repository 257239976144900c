"""A suspended pool: which devices took it down, and so have to come back."""

from __future__ import annotations

from zconsole.pool.topology import data_vdevs
from zconsole.timeline.frame import Frame, VdevRow

_TOGETHER = 60.0
"""Seconds within which devices that leave one after another are one incident: a shelf, a cable."""
_AWAY = frozenset({"UNAVAIL", "REMOVED", "FAULTED"})


def missing_devices(frame: Frame) -> tuple[VdevRow, ...]:
    """The devices a suspended pool waits for; none where none was seen to leave.

    Those that left last: one that is away for longer did not suspend the pool. Where the pool
    still answers and nobody saw them leave, all that are away.
    """
    if not frame.suspended:
        return ()
    leaves = [row for row in frame.rows if not row.vdev.children]
    away = [row for row in leaves if row.gone or row.vdev.state in _AWAY]
    seen = [row.missing_since for row in away if row.missing_since is not None]
    if seen:
        begun = max(seen) - _TOGETHER
        return tuple(row for row in away if (row.missing_since or 0.0) >= begun)
    return () if frame.problem else tuple(away)


def are_there(frame: Frame) -> bool:
    """Whether the machine has every device that was ONLINE when the pool answered last.

    Where a whole vdev was away then, others of its devices have to come back.
    """
    if frame.root is None or any(top.state in _AWAY for top in data_vdevs(frame.root)):
        return False
    leaves = [row for row in frame.rows if not row.vdev.children and row.vdev.state == "ONLINE"]
    return bool(leaves) and all(row.vdev.block and not row.gone for row in leaves)
