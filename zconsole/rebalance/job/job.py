"""What a running job is told: its part of the journal, and where time comes from."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from zconsole.errors import NotUnderstoodError, ZconsoleError
from zconsole.pool.allocator import Space
from zconsole.rebalance.engine.directories import open_path
from zconsole.rebalance.engine.journal import Journal
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.job.job_store import NAME
from zconsole.rebalance.planning.plan_model import FLOOR, JobDirectory
from zconsole.rebalance.planning.settings import Settings


@dataclass(frozen=True, slots=True)
class JobClocks:
    """Where time comes from."""

    monotonic: Callable[[], float] = time.monotonic
    epoch: Callable[[], float] = time.time
    booted: Callable[[], float] = lambda: time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    """When this machine was started, epoch seconds."""
    sleep: Callable[[float], None] = time.sleep
    local: Callable[[], datetime] = datetime.now


class Floor(NamedTuple):
    """What of a filesystem's free space is not for a job, bytes; and the size its share is of."""

    reserve: int
    size: float


def floors(data: Mapping[str, Any]) -> dict[str, Floor]:
    """Those a journal tells, by root; journals of before knew one filesystem only."""
    if "floors" in data:
        return {root: Floor(*floor) for root, floor in data["floors"].items()}
    size = sum(size for _, size, *_ in data["spaces"]) / data["raw_factor"]
    return {data["settings"]["dirs"][0]: Floor(data["reserve"], size)}


def is_same_filesystem(one: str, other: str) -> bool:
    """Whether the keys of two places (planned.Place.key) mean the same: a dataset that was renamed
    keeps its guid, which others have none of."""
    return one == other or one.rpartition(":")[2] == other.rpartition(":")[2] != ""


@dataclass(frozen=True, slots=True)
class Job:
    """What a journal says about the job it belongs to."""

    name: str
    settings: Settings
    engines: Mapping[str, str]
    """Engine by root path."""
    spaces: tuple[Space, ...]
    """The vdevs when the job began."""
    raw_factor: float
    floors: Mapping[str, Floor]
    """By root path."""
    bytes_to_target: int | None
    rooms: Mapping[bytes, int] = field(default_factory=dict)
    """Bytes of free space that the plan saw for the job, by root path; none in older journals."""

    def reserves_at(self, min_free: float | None) -> dict[bytes, int]:
        """Bytes of each root's free space that are not for this job, at another floor."""
        usual = FLOOR if self.spaces else 0.0
        shares = (self.settings.limits.min_free, min_free)
        before, now = (usual if share is None else share for share in shares)
        return {
            os.fsencode(root): max(0, round(floor.reserve + (now - before) * floor.size))
            for root, floor in self.floors.items()
        }


@contextmanager
def understood(journal: Journal) -> Iterator[None]:
    """Raises NotUnderstoodError where what the journal says has not the shape this version gives
    it: it is damaged, or of another version."""
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        text = f"{journal.path} says what this version does not understand: {error!r}"
        raise NotUnderstoodError(text) from error


def job_of(journal: Journal) -> Job:
    """What a journal says about its job. Raises NotUnderstoodError, for an unfinished walk too."""
    data = journal.get("job")
    if data is None:
        raise NotUnderstoodError(f"{journal.path}: the walk was not finished; delete it")
    with understood(journal):
        return Job(
            name=_named(data["name"]),
            settings=Settings.from_json(data["settings"]),
            engines=data["engines"],
            spaces=tuple(Space(*space) for space in data["spaces"]),
            raw_factor=data["raw_factor"],
            floors=floors(data),
            bytes_to_target=data["bytes_to_target"],
            rooms={os.fsencode(root): room for root, room in data.get("rooms", {}).items()},
        )


def _named(name: str) -> str:
    """A job's id: names of files are made of it. Raises ValueError for what is none."""
    if not NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a job's id")
    return name


def adopt_devices(sys: Sys, journal: Journal, places: Sequence[JobDirectory]) -> None:
    """Find the roots again, by filesystem and inode; device numbers may be new.

    Raises ZconsoleError where one is not what it was, OSError.
    """
    changes = {}
    by_root = {place.root: place for place in places}
    keys = journal.get("keys", dict) or {}
    for row in journal.roots():
        place = by_root.get(row.name)
        fd = open_path(sys, row.name)
        status = sys.fstat(fd)
        sys.close(fd)
        known = keys.get(os.fsdecode(row.name), "")
        same = place is not None and is_same_filesystem(known, place.key)
        if not same or status.st_ino != row.ino:
            raise ZconsoleError(f"{os.fsdecode(row.name)} is not what it was when walked")
        if status.st_dev != row.dev:
            changes[row.dev] = status.st_dev
    if changes:
        journal.change_devices(changes)
