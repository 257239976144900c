"""Settings of a job: kept in its journal, so that resuming needs nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, NamedTuple

FLOOR = 0.05
"""Share of a pool that stays free by default; ZFS slows down when nearly full."""


class Floor(NamedTuple):
    """Bytes of free space that a job must not use, and the total of which min_free is a share."""

    reserve: int
    size: float


EVEN = 0.05
"""Spread at which the vdevs count as evenly filled."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits that may be changed while a job runs. Rates in bytes/s, times in seconds."""

    rate: float | None = None
    max_latency: float | None = None
    window: str | None = None
    """Hours of the day, such as ``22:00-06:00``, in the format of ``day_hours``."""
    max_bytes: int | None = None
    until_spread: float | None = None
    min_free: float | None = None
    """Share of the pool (0…1) to keep free; None: ``FLOOR``."""

    @property
    def floor(self) -> float:
        """Share of the pool to keep free."""
        return FLOOR if self.min_free is None else self.min_free

    def changed(self, wanted: Mapping[str, Any]) -> Limits:
        """Return these limits with some replaced; unknown names are ignored."""
        known = {f.name for f in fields(self)}
        return replace(self, **{k: v for k, v in wanted.items() if k in known})


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of one job."""

    dirs: tuple[str, ...]
    engine: str = "auto"
    aim: str = "balance"
    accept_races: bool = False
    allow_non_zfs: bool = False
    during_scan: bool = False
    fill_new: bool = False
    """Whether vdevs that are too full take no new writes while the job runs (``fill_new``)."""
    rewrite_options: str = ""
    """Option letters of ``zfs rewrite``: P, S and C (``engine_choice.FLAGS``)."""
    limits: Limits = Limits()

    def as_json(self) -> dict[str, Any]:
        """Return a JSON object that ``records.from_json`` can read."""
        return asdict(self)


HELP = {
    "engine": "copy files, rewrite them in place, or choose",
    "aim": "what to gain: even fill (default); data-to-parity ratio after an expansion; "
    "new compression or checksum; new recordsize",
    "rewrite_options": "options of zfs rewrite: P keeps incremental sends from growing (OpenZFS"
    " 2.4); S and C leave alone what snapshots hold and what was cloned (2.5)",
    "accept_races": "copy even where another program's write could be lost: directories shared"
    " over NFS or SMB, or before OpenZFS 2.2",
    "fill_new": "keep new writes off vdevs that are too full while the job runs, so that less moves"
    " (allocating=off, OpenZFS 2.2); zfs list shows less available meanwhile",
    "during_scan": "don't wait for scans to end",
    "rate": "move at most this much per second",
    "max_latency": "throttle while the latency of the disks is above this",
    "max_bytes": "never move more than this in total; larger files stay where they are",
    "until_spread": "stop when the fills of the vdevs differ by no more than this",
    "min_free": "keep this share of the pool free",
    "window": "work only in these hours of the day",
}
"""Help texts by the name of the setting."""
