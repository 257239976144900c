"""One module parameter of OpenZFS, as far as an operator needs to know it."""

from __future__ import annotations

from dataclasses import dataclass

from zconsole.pool.version import Version

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Tunable:
    """A parameter in /sys/module/zfs/parameters."""

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
    never: str = ""
    """Why it is shown but not written; empty when it may be."""
    guarded: bool = False
    """Whether it may only be written under a guard process that puts it back."""

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
        return f"{self.name}={value} is out of range: {self.low} to {self.high} {self.unit}".strip()
