"""The tunables that matter for a resilver, scrub, rebuild or rebalance: ``share/tunables.json``.

Presets are sets of values that aim at what limits the scan now.
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
TABLE = Path(__file__).parents[1] / "share" / "tunables.json"


class Tunable(NamedTuple):
    """A parameter in /sys/module/zfs/parameters, as far as an operator needs to know it."""

    name: str
    meaning: str
    unit: str
    low: int
    high: int
    defaults: tuple[tuple[Version, int], ...]
    """From which OpenZFS version on which default holds, oldest first; empty: it depends."""
    affects: str
    """resilver, scrub, rebuild, scans, writes or everything."""
    running_scan: bool = True
    """Whether a change acts on a scan that runs."""
    note: str = ""
    note_on: str = ""
    """Which change the note warns of: ``raising`` or ``lowering`` it; empty for either."""
    never: str = ""
    """Why it is shown but not written; empty when it may be."""
    guarded: bool = False
    """Whether it may only be written under a guard process that puts it back."""
    presets: Mapping[str, int] = MappingProxyType({})
    """Its value in the gentle preset, and in the faster one under the limit that it lifts."""

    def default(self, version: Version) -> int | None:
        """The source default of this OpenZFS version; None for an unknown or older one."""
        value: int | None = None
        for since, default in self.defaults:
            if version and version >= since:
                value = default
        return value

    def problem(self, value: int) -> str | None:
        """Why a value is refused before the kernel sees it; None when it is in range."""
        if self.low <= value <= self.high:
            return None
        low, high = map(self.rounded, (self.low, self.high))
        return f"{self.name}={value} is out of range: {low} to {high} {self.unit}".strip()

    def number(self, text: str) -> int | None:
        """The value written as ``3000``, or for bytes as ``16M`` or ``1.5G``; None for others.

        A suffix means n·1024^k, as zpool prints it.
        """
        whole = parse_whole(text)
        if whole is not None or self.unit != BYTES:
            return whole
        return parse_size(text.upper().replace("I", "i"))

    def warning(self, before: int | None, after: int) -> str:
        """What to know before this change; empty where the note is about the other direction."""
        change = "lowering" if before is not None and after < before else "raising"
        return self.note if self.note_on in ("", change) else ""

    @property
    def kind(self) -> str:
        """What ``number`` reads, for people."""
        return "a size such as 16M" if self.unit == BYTES else "a whole number"

    def rounded(self, value: int) -> str:
        """A value for a column: bytes with their suffix, at most five characters."""
        return size(value) if self.unit == BYTES else str(value)

    def exact(self, value: int | None) -> str:
        """A value to read or to type again: bytes in full, too, where a suffix would round them."""
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
        defaults=tuple((parse_version(version), _number(value)) for version, value in since),
        presets={preset: _number(value) for preset, value in row.get("presets", {}).items()},
        **{key: value for key, value in row.items() if key not in read},
    )


def _number(value: int | str) -> int:
    return value if isinstance(value, int) else parse_size(value) or 0


_TABLE = json.loads(TABLE.read_text("utf-8"))

HISTORICAL: Mapping[str, Mapping[str, Any]] = _TABLE["historical"]
"""Names from old guides: what each was, and what stands for it ``now``."""

TUNABLES = tuple(_tunable(*row) for row in _TABLE["tunables"].items())
"""Every known tunable, those one reaches for first at the top."""

BY_NAME = {tunable.name: tunable for tunable in TUNABLES}


def named(name: str) -> Tunable:
    """The tunable of this name. Raises UsageError that explains an old or foreign one."""
    tunable = BY_NAME.get(name)
    if tunable is None:
        raise UsageError(explain(name) or f"no tunable {name!r}; see zconsole tunables list")
    return tunable


def exact(name: str, value: int | None) -> str:
    """`Tunable.exact`; of one that another version has set, the number as it is."""
    tunable = BY_NAME.get(name)
    return str(value) if tunable is None else tunable.exact(value)


def explain(name: str) -> str | None:
    """What an old or FreeBSD name was and what to use; None for a name that is neither."""
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
    """Module parameters that differ from this OpenZFS's default: the value and the default."""
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
