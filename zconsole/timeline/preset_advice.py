"""Chooses the preset that lifts the limit of the running scan."""

from __future__ import annotations

from zconsole.timeline.frame import AUTOPILOT, Frame
from zconsole.tunables.hold_latency import LEVERS

_LIFTED = {"foreground": "txg-time", "random": "scan-reads", "memory": "memory"}
"""Maps a verdict's cause to a key of ``presets.LIMITS``."""

OUT_OF_REACH = ("new-disk", "slow-disk", "bus", "smr", "cpu", "disks", "metadata")
"""Causes that no tunable lifts."""
_NO_DISK = ("cpu", "metadata")
"""Those of them for which it doesn't matter how many requests the disks have at once."""


def likely_limit(frame: Frame) -> str | None:
    """A key of ``presets.LIMITS``; None when nothing is clear, or no tunable would help."""
    scan = frame.scan.scan if frame.scan else None
    if scan is None or scan.state != "running" or frame.limit is None:
        return None
    if frame.limit.cause != "throttle":
        return _LIFTED.get(frame.limit.cause)
    if scan.function == "rebuild":
        return "rebuild"
    writes = frame.limit.tunable == "zfs_vdev_async_write_min_active"
    return "new-disk-writes" if writes else "scan-reads"


def hopeless(frame: Frame) -> str | None:
    """Why tunables make the scan hardly faster, and what they cost; None when one might help."""
    if frame.limit is None or frame.limit.cause not in OUT_OF_REACH:
        return None
    disks = frame.limit.cause not in _NO_DISK
    more = "little to gain, and latency rises" if disks else "no tunable helps"
    return f"{frame.limit.text}: {more}"


def suggested(frame: Frame) -> tuple[str, str]:
    """The tunable that the suggestion on the screen is about, and what to do with it; else empty.

    None that an autopilot sets: setting it would end that.
    """
    limit = frame.limit
    if limit is None or limit.cause == "unclear":
        return "", ""
    held = any(view.activity.kind == AUTOPILOT for view in frame.activities)
    name = limit.tunable
    if not name or (held and name in LEVERS):
        return "", ""
    return name, _about_it(limit.advice, name)


def _about_it(advice: str, name: str) -> str:
    """What a suggestion says to do, where it is clear which tunable it is about."""
    told = advice.replace("zconsole tunables set ", "set ").replace(f"set {name}=", "set it to ")
    told = told.replace(f"zconsole tunables restore {name}", "restore it")
    return (
        told.replace(" (zconsole tunables set)", "").replace(f"{name}=", "").replace(name, "it", 1)
    )
