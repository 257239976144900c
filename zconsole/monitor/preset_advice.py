"""Chooses the preset that lifts the limit of the running scan."""

from __future__ import annotations

from zconsole.monitor.frame import Frame

_LIFTED = {"foreground": "txg-time", "random": "scan-reads", "memory": "memory"}
"""Maps a verdict's cause to a key of ``presets.LIMITS``."""

OUT_OF_REACH = ("new-disk", "slow-disk", "bus", "smr", "cpu", "disks", "metadata")
"""Causes that no tunable lifts."""


def likely_limit(frame: Frame) -> str | None:
    """A key of ``presets.LIMITS``; None when nothing is clear, or no tunable would help."""
    scan = frame.scan.scan if frame.scan else None
    if scan is None or scan.state != "running" or frame.limit is None:
        return None
    if frame.limit.cause != "throttle":
        return _LIFTED.get(frame.limit.cause)
    if scan.function == "rebuild":
        return "rebuild"
    writes = "zfs_vdev_async_write_min_active" in frame.limit.advice
    return "new-disk-writes" if writes else "scan-reads"


def hopeless(frame: Frame) -> str | None:
    """Why no tunable would make the scan faster; None when one might."""
    if frame.limit is None or frame.limit.cause not in OUT_OF_REACH:
        return None
    return f"{frame.limit.text}: no tunable helps"
