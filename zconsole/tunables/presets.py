"""Presets: sets of values that aim at what limits the scan now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from zconsole.tunables.catalog import BY_NAME
from zconsole.tunables.parameters import Parameters
from zconsole.tunables.tunable import MIB

NAMES = ("faster-resilver", "gentle", "default")

LIMITS: Mapping[str, Mapping[str, int]] = {
    "new-disk-writes": {"zfs_vdev_async_write_min_active": 8},
    "txg-time": {"zfs_resilver_min_time_ms": 6000, "zfs_scrub_min_time_ms": 3000},
    "scan-reads": {
        "zfs_vdev_scrub_min_active": 4,
        "zfs_vdev_scrub_max_active": 10,
        "zfs_vdev_nia_delay": 2,
        "zfs_vdev_nia_credit": 12,
        "zfs_scan_vdev_limit": 64 * MIB,
    },
    "rebuild": {
        "zfs_vdev_rebuild_min_active": 4,
        "zfs_vdev_rebuild_max_active": 8,
        "zfs_rebuild_vdev_limit": 256 * MIB,
    },
    "memory": {"zfs_scan_mem_lim_fact": 10},
}
"""What limits a scan, to the values that lift that limit and touch nothing else."""

_USUAL = ("new-disk-writes", "txg-time", "scan-reads", "rebuild")
"""What the faster preset lifts where no limit is known: not memory, which others may need."""

_SMALLER_IS_FASTER = ("zfs_vdev_nia_delay", "zfs_scan_mem_lim_fact")

_GENTLE: Mapping[str, int] = {
    "zfs_resilver_min_time_ms": 750,
    "zfs_scrub_min_time_ms": 300,
    "zfs_vdev_scrub_min_active": 1,
    "zfs_vdev_scrub_max_active": 1,
    "zfs_vdev_nia_delay": 10,
    "zfs_vdev_nia_credit": 1,
    "zfs_scan_vdev_limit": 4 * MIB,
    "zfs_vdev_rebuild_min_active": 1,
    "zfs_vdev_rebuild_max_active": 1,
    "zfs_rebuild_vdev_limit": 16 * MIB,
}

_WARNINGS = {
    "zfs_resilver_min_time_ms": "zfs_resilver_min_time_ms stretches every transaction group:"
    " synchronous writes of every pool on this machine wait longer",
    "zfs_scan_vdev_limit": "scan reads in flight take up to a quarter of the largest ARC",
}


@dataclass(frozen=True, slots=True)
class Preset:
    """Values to write on this kernel, with what to know before."""

    name: str
    values: Mapping[str, int]
    warnings: tuple[str, ...]
    missing: tuple[str, ...] = ()
    """What the preset would set but this kernel does not have."""


def preset(name: str, parameters: Parameters, limit: str | None = None) -> Preset:
    """A preset for this kernel; ``limit`` (a key of LIMITS) narrows the faster one to it.

    Without a known limit the faster preset lifts the usual ones. ``default`` is this version's
    defaults of everything the other two touch. Raises KeyError for a name or limit that is none.
    """
    wanted = _wanted(name, parameters, limit)
    live = {n: parameters.read(n) for n in wanted}
    values = {n: v for n, v in wanted.items() if live[n] is not None}
    if name == "faster-resilver":
        values = {n: v for n, v in values.items() if not _is_faster(n, live[n], v)}
    warnings = tuple(
        text for n, text in _WARNINGS.items() if n in values and name == "faster-resilver"
    )
    return Preset(name, values, warnings, tuple(n for n in wanted if live[n] is None))


def _wanted(name: str, parameters: Parameters, limit: str | None) -> dict[str, int]:
    if name == "gentle":
        return dict(_GENTLE)
    lifted = _USUAL if limit is None else (limit,)
    every = {n: v for each in lifted for n, v in LIMITS[each].items()}
    if name == "faster-resilver":
        return every
    if name != "default":
        raise KeyError(name)
    touched = {**{n: v for values in LIMITS.values() for n, v in values.items()}, **_GENTLE}
    known = {n: BY_NAME[n].default(parameters.version) for n in touched}
    return {n: value for n, value in known.items() if value is not None}


def _is_faster(name: str, live: int | None, wanted: int) -> bool:
    """Whether the live value goes further already: a preset never slows what it is to speed up."""
    if live is None:
        return False
    return live <= wanted if name in _SMALLER_IS_FASTER else live >= wanted
