"""What a job was asked to do: kept in its journal, so that resuming needs nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

FLOOR = 0.05
"""Share of a pool that stays free by default; ZFS slows down when nearly full."""

EVEN = 0.05
"""Spread at which the vdevs count as evenly filled."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What may be changed while a job runs. Rates in bytes/s, times in seconds."""

    rate: float | None = None
    max_latency: float | None = None
    window: str | None = None
    """See ``day_hours``."""
    max_bytes: int | None = None
    until_spread: float | None = None
    min_free: float | None = None
    """A share of the pool."""

    def changed(self, wanted: Mapping[str, Any]) -> Limits:
        """These limits with some replaced; unknown names are ignored."""
        known = {f.name for f in fields(self)}
        return replace(self, **{k: v for k, v in wanted.items() if k in known})


@dataclass(frozen=True, slots=True)
class Settings:
    """One job's orders."""

    dirs: tuple[str, ...]
    engine: str = "auto"
    aim: str = "balance"
    accept_races: bool = False
    allow_non_zfs: bool = False
    during_scan: bool = False
    rewrite_options: str = ""
    """Letters of ``zfs rewrite``: P, S and C (``rewrite_options.FLAGS``)."""
    limits: Limits = Limits()

    def as_json(self) -> dict[str, Any]:
        """A JSON object that ``records.from_json`` reads."""
        return asdict(self)
