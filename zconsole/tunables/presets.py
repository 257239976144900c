"""Presets: sets of values that aim at what limits the scan now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from zconsole.tunables.catalog import BY_NAME, TUNABLES
from zconsole.tunables.parameters import Parameters

NAMES = ("faster-resilver", "gentle", "default")

_USUAL = ("new-disk-writes", "txg-time", "scan-reads", "rebuild")
"""What the faster preset lifts where no limit is known: not memory, which others may need."""


def _values(column: str) -> Mapping[str, int]:
    return {each.name: each.presets[column] for each in TUNABLES if column in each.presets}


LIMITS = {limit: _values(limit) for limit in (*_USUAL, "memory")}
"""What limits a scan, to the values that lift that limit and touch nothing else."""

_GENTLE = _values("gentle")

_WARNED = ("zfs_resilver_min_time_ms", "zfs_scan_vdev_limit")
"""Those whose note is to be read before they are raised."""


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
    warned = _WARNED if name == "faster-resilver" else ()
    warnings = tuple(f"{n}: {BY_NAME[n].note}" for n in warned if n in values)
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
    _, usual = BY_NAME[name].defaults[-1]
    return live <= wanted if wanted < usual else live >= wanted
