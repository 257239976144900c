"""What to do about a suspended pool, in the words and with the keys of the console."""

from __future__ import annotations

from rich.cells import cell_len

from zconsole.pool.model import MULTIHOST
from zconsole.timeline.frame import Frame
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.widgets.short_names import in_runs, middle

_NAME = 17
_NAMED = 2
"""Devices without a bay that are named; the others are counted."""


def way_out(frame: Frame, look: DisplayFormat, room: int) -> str:
    """``reconnect Slot 04, then clear the pool (A)``; empty for a pool that is not suspended.

    Where the names take more than ``room`` cells, the disks are counted: what to press is not cut.
    """
    if not frame.suspended:
        return ""
    if frame.seen.suspension == MULTIHOST:
        ways = [
            "make sure no other host has the pool, then reboot and import it; do not clear it",
            "no other host has it? then reboot and import",
            "reboot, then import",
        ]
        return next((way for way in ways if cell_len(way) <= room), ways[-1])
    key, disks = look.keys.way("actions"), [row.vdev for row in frame.missing_devices]
    if not disks:
        there = "its disks are there:" if frame.has_every_device else "once its disks are back,"
        return f"{there} clear the pool ({key})"
    bays = [look.text(vdev.disk.bay) for vdev in disks if vdev.disk and vdev.disk.bay]
    bare = [look.text(vdev.name) for vdev in disks if not (vdev.disk and vdev.disk.bay)]
    names = [middle(name, _NAME, look.glyphs.ellipsis) for name in bare[:_NAMED]]
    more = [f"{len(bare) - _NAMED} more"] if len(bare) > _NAMED else []
    listed = [*in_runs(bays), *names, *more]
    *first, last = listed
    said = f"{', '.join(first)} and {last}" if first else last
    counts = f"{len(disks)} disks" if first else "the disk"
    ways = [f"reconnect {each}, then clear the pool ({key})" for each in (said, counts)]
    return ways[0] if cell_len(ways[0]) <= room else ways[1]
