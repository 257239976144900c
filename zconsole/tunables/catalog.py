"""The tunables that matter for a resilver, scrub, rebuild or rebalance (``share/tunables.json``).

Presets are sets of values; the faster one aims at what limits the scan now.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from zconsole.errors import UsageError
from zconsole.pool.model import Version, parse_version
from zconsole.tunables.parameters import Parameters
from zconsole.units import parse_size, parse_whole, size

BYTES = "bytes"
"""The unit of a value that is shown and read with a suffix."""
SHARE = "1/N"
"""The unit of a value that divides a whole: 20 means 1/20."""
TABLE = Path(__file__).parents[1] / "share" / "tunables.json"


class Tunable(NamedTuple):
    """A parameter in /sys/module/zfs/parameters, as far as an operator needs to know it."""

    name: str
    meaning: str
    unit: str
    low: int
    high: int
    defaults: tuple[tuple[Version, int | None], ...]
    """Defaults, each with the first OpenZFS version that has it, oldest first.

    Empty if there is no fixed default; None from the version that no longer has the tunable.
    """
    affects: str
    """resilver, scrub, rebuild, scans, writes or everything."""
    running_scan: bool = True
    """Whether a change affects a scan that is running."""
    note: str = ""
    """Warning or hint, for people."""
    note_on: str = ""
    """The change that the note warns of: ``raising`` or ``lowering``; empty for either."""
    never: str = ""
    """Why it is shown but not written; empty when it may be."""
    guarded: bool = False
    """Whether it may only be written under a guard process that restores it."""
    presets: Mapping[str, int] = MappingProxyType({})
    """Values by preset: ``gentle``, or the limit of a scan (key of LIMITS) that it lifts."""

    def default(self, version: Version) -> int | None:
        """Return the source default of this OpenZFS version; None if unknown, or it has none."""
        value: int | None = None
        for since, default in self.defaults:
            if version and version >= since:
                value = default
        return value

    def problem(self, value: int) -> str | None:
        """Return why a value is refused before the kernel sees it; None if it is in range."""
        if self.low <= value <= self.high:
            return None
        low, high = map(self.rounded, (self.low, self.high))
        return f"{self.name}={value} is out of range: {low} to {high} {self.unit}".strip()

    def number(self, text: str) -> int | None:
        """Parse a value such as ``3000``, or for bytes ``16M`` or ``1.5G``; None if it is invalid.

        A suffix means n·1024^k, as zpool prints it. A share of N may be written ``1/N``.
        """
        whole = parse_whole(text.removeprefix("1/") if self.unit == SHARE else text)
        if whole is not None or self.unit != BYTES:
            return whole
        return parse_size(text.upper().replace("I", "i"))

    def warning(self, before: int | None, after: int) -> str:
        """Return the note on this change; empty if the note is about the other direction."""
        change = "lowering" if before is not None and after < before else "raising"
        return self.note if self.note_on in ("", change) else ""

    @property
    def kind(self) -> str:
        """The form of a value that ``number`` accepts, for people."""
        return "a size such as 16M" if self.unit == BYTES else "a whole number"

    def rounded(self, value: int) -> str:
        """Return a value for a column: bytes with a suffix, in at most five characters."""
        return size(value) if self.unit == BYTES else str(value)

    def exact(self, value: int | None) -> str:
        """Return a value in full: bytes are added in brackets if a suffix would round them."""
        if value is None:
            return "-"
        said = self.rounded(value)
        return said if self.number(said) == value else f"{said} ({value} bytes)"


def _tunable(name: str, row: Mapping[str, Any]) -> Tunable:
    read = {"range", "defaults", "presets"}
    low, high = map(_number, row["range"])
    since = row.get("defaults", {}).items()
    return Tunable(
        name,
        low=low,
        high=high,
        defaults=tuple(
            (parse_version(version), None if value is None else _number(value))
            for version, value in since
        ),
        presets={preset: _number(value) for preset, value in row.get("presets", {}).items()},
        **{key: value for key, value in row.items() if key not in read},
    )


def _number(value: int | str) -> int:
    return value if isinstance(value, int) else parse_size(value) or 0


_TABLE = json.loads(TABLE.read_text("utf-8"))

HISTORICAL: Mapping[str, Mapping[str, Any]] = _TABLE["historical"]
"""Names in old guides, removed in 0.8: an ``explanation`` of each, and its successors (``now``)."""

TUNABLES = tuple(_tunable(*row) for row in _TABLE["tunables"].items())
"""Every known tunable, the most useful first."""

BY_NAME = {tunable.name: tunable for tunable in TUNABLES}


def named(name: str) -> Tunable:
    """Return the tunable of this name. Raises UsageError, which explains an old or FreeBSD name."""
    tunable = BY_NAME.get(name)
    if tunable is None:
        raise UsageError(explain(name) or f"no tunable {name!r}; see zconsole tunables list")
    return tunable


def exact(name: str, value: int | None) -> str:
    """Return a value as ``Tunable.exact``, or the plain number if this version has no such name."""
    tunable = BY_NAME.get(name)
    return str(value) if tunable is None else tunable.exact(value)


def explain(name: str) -> str | None:
    """Explain an old or FreeBSD name, and name its successor; None for a name that is neither."""
    if entry := HISTORICAL.get(name):
        return f"{name}: {entry['explanation']}; now: {', '.join(entry['now'])}"
    if not name.startswith("vfs.zfs."):
        return None
    # FreeBSD drops zfs_ and puts vfs.zfs. first, with a dot for some prefixes.
    words = name.removeprefix("vfs.zfs.").replace(".", "_")
    for linux in (f"zfs_{words}", words):
        if linux in HISTORICAL:
            return f"{name} is FreeBSD's name of {explain(linux)}"
        if linux in BY_NAME:
            return f"{name} is a FreeBSD sysctl; on Linux it is {linux}"
    return f"{name} is a FreeBSD sysctl; on Linux it has no counterpart known here"


def unusual(tunables: Mapping[str, int], version: str | None) -> Mapping[str, tuple[int, int]]:
    """Return the parameters that differ from this version's default: (value, default) by name."""
    running = parse_version(version)
    found = {}
    for name, value in sorted(tunables.items()):
        usual = BY_NAME[name].default(running) if name in BY_NAME else None
        if usual is not None and value != usual:
            found[name] = (value, usual)
    return found


# Presets

NAMES = ("faster-resilver", "gentle", "default")

_USUAL = ("new-disk-writes", "txg-time", "scan-reads", "rebuild")
"""Limits that the faster preset lifts if none is known: not memory, which others may need."""


def _values(column: str) -> Mapping[str, int]:
    return {each.name: each.presets[column] for each in TUNABLES if column in each.presets}


LIMITS = {limit: _values(limit) for limit in (*_USUAL, "memory")}
"""By limit of a scan, the values that lift that limit and change nothing else."""

_GENTLE = _values("gentle")

_WARNED = ("zfs_resilver_min_time_ms", "zfs_scan_vdev_limit")
"""Tunables whose note people should read before the faster preset raises them."""


@dataclass(frozen=True, slots=True)
class Preset:
    """Values to write on this kernel, with warnings."""

    values: Mapping[str, int]
    warnings: tuple[str, ...]


def preset(name: str, parameters: Parameters, limit: str | None = None) -> Preset:
    """Return a preset for this kernel; ``limit`` (a key of LIMITS) narrows the faster one to it.

    Without a known limit the faster preset lifts the usual ones. ``default`` has this version's
    defaults for everything that the other two set. Raises KeyError for an unknown name or limit.
    """
    wanted = _wanted(name, parameters, limit)
    live = {n: now for n in wanted if (now := parameters.read(n)) is not None}
    if name != "faster-resilver":
        return Preset({n: wanted[n] for n in live}, ())
    values = {n: wanted[n] for n, now in live.items() if not _is_faster(n, now, wanted[n])}
    return Preset(values, tuple(f"{n}: {BY_NAME[n].note}" for n in _WARNED if n in values))


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


def _is_faster(name: str, live: int, wanted: int) -> bool:
    """Whether the live value is at least as fast as wanted: the faster preset must not slow it."""
    known = [usual for _, usual in BY_NAME[name].defaults if usual is not None]
    if not known:
        return False
    usual = known[-1]  # the newest default: below it, less is faster
    return live <= wanted if wanted < usual else live >= wanted
