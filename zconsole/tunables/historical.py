"""Names from old guides and other systems: what they were, and what stands for them now."""

from __future__ import annotations

from dataclasses import dataclass

from zconsole.tunables.catalog import BY_NAME


@dataclass(frozen=True, slots=True)
class Historical:
    """A name that is explained and never written."""

    name: str
    explanation: str
    successors: tuple[str, ...]


HISTORICAL: tuple[Historical, ...] = (
    Historical(
        "zfs_scrub_delay",
        "up to 0.7 it held each scrub I/O back by some ticks; 0.8 sorts scans instead of delaying",
        ("zfs_vdev_scrub_max_active", "zfs_scrub_min_time_ms"),
    ),
    Historical(
        "zfs_resilver_delay",
        "up to 0.7 it held each resilver I/O back by some ticks; 0.8 sorts scans instead",
        ("zfs_resilver_min_time_ms", "zfs_vdev_scrub_max_active"),
    ),
    Historical(
        "zfs_scan_idle",
        "up to 0.7 it said how long a pool must be quiet for scans not to be delayed",
        ("zfs_vdev_nia_delay", "zfs_vdev_nia_credit"),
    ),
    Historical(
        "zfs_top_maxinflight",
        "up to 0.7 it limited scan I/Os in flight for a vdev, by count",
        ("zfs_scan_vdev_limit",),
    ),
    Historical(
        "zfs_scan_min_time_ms",
        "renamed in 0.8",
        ("zfs_scrub_min_time_ms",),
    ),
)

_BY_NAME = {entry.name: entry for entry in HISTORICAL}


def explain(name: str) -> str | None:
    """What an old or FreeBSD name was and what to use; None for a name that is neither."""
    if name in _BY_NAME:
        entry = _BY_NAME[name]
        return f"{name}: {entry.explanation}; now: {', '.join(entry.successors)}"
    return _freebsd(name) if name.startswith("vfs.zfs.") else None


def _freebsd(name: str) -> str:
    """FreeBSD drops ``zfs_`` and puts ``vfs.zfs.`` first, with a dot for some prefixes."""
    words = name.removeprefix("vfs.zfs.").replace(".", "_")
    for linux in (f"zfs_{words}", words):
        if linux in _BY_NAME:
            return f"{name} is FreeBSD's name of {explain(linux)}"
        if linux in BY_NAME:
            return f"{name} is a FreeBSD sysctl; on Linux it is {linux}"
    return f"{name} is a FreeBSD sysctl; on Linux it has no counterpart known here"
