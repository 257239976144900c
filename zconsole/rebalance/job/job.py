"""A job at work, its free space, what others ask of it, and what a journal says of it."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from math import inf
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from zconsole.errors import NotUnderstoodError, ZconsoleError
from zconsole.pool.allocator import Space
from zconsole.rebalance.backend import JobStatus
from zconsole.rebalance.engine.directories import Directories
from zconsole.rebalance.engine.item import FileOutcome, StopJobError
from zconsole.rebalance.engine.journal import Journal, State
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.engine.workplace import JobClocks
from zconsole.rebalance.job.job_store import NAME
from zconsole.rebalance.planning.settings import FLOOR, Settings
from zconsole.system.records import from_json, parse_json
from zconsole.system.state_dir import read_private
from zconsole.units import duration, size

WALKING = "counting files"
"""What a job says that is still being planned by the process that will run it."""
_OUTCOMES = {State.SKIPPED: "skipped", State.FAILED: "failed"}


MOST_BYTES = 1 << 16
"""Of a request."""


class Request(NamedTuple):
    """What an operator asked of a job since it began; its status tells what it obeys."""

    order: str = "run"
    """run, pause or stop."""
    limits: Mapping[str, Any] = {}
    """Those that were changed."""

    def encoded(self) -> bytes:
        """What its file holds."""
        return json.dumps(self._asdict()).encode()


def request_file(journal: Path) -> Path:
    """Where a job is asked."""
    return journal.with_name(f"{journal.name}.request")


def requested(journal: Journal) -> Request:
    """The newest request. Raises NotUnderstoodError, StateError."""
    file = request_file(journal.path)
    with suppress(FileNotFoundError), understood(file):
        data = parse_json(read_private(file, MOST_BYTES))
        return Request(data.get("order", "run"), data.get("limits") or {})
    return Request()


class Floor(NamedTuple):
    """What of a filesystem's free space is not for a job, bytes; and the size its share is of."""

    reserve: int
    size: float


@dataclass(frozen=True, slots=True)
class JobTerms:
    """What a journal says about the job it belongs to."""

    name: str
    settings: Settings
    engines: Mapping[str, str]
    """Engine by root path."""
    spaces: tuple[Space, ...]
    """The vdevs when the job began."""
    raw_factor: float
    """Raw bytes that an allocated byte of its files takes where they lay."""
    floors: Mapping[str, Floor]
    """By root path."""
    created: float | None = None
    """When its walk was over, epoch seconds."""
    rooms: Mapping[str, int] = field(default_factory=dict)
    """Bytes of free space that the plan saw for the job, by root path."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Mount options of when it was planned, by root path."""
    stored: float = 1.0
    """Allocated bytes a byte of a file takes: less with compression and holes."""
    source: Sequence[float] | None = None
    """Share of the bytes to move that lay on each vdev; None where that was not known."""
    pinned: float = 0.0
    """Share of them whose old blocks stay."""

    def document(self) -> dict[str, Any]:
        """What ``terms_of`` reads: the format of journals."""
        fields = attrgetter("name", "size", "alloc", "weight", "data")
        spaces = [list(fields(each)) for each in self.spaces]
        return {**asdict(self), "spaces": spaces}

    def reserves_at(self, min_free: float | None) -> dict[str, int]:
        """Bytes of each root's free space that are not for this job, at another floor."""
        usual = FLOOR if self.spaces else 0.0
        shares = (self.settings.limits.min_free, min_free)
        before, now = (usual if share is None else share for share in shares)
        return {
            root: max(0, round(floor.reserve + (now - before) * floor.size))
            for root, floor in self.floors.items()
        }


PUBLISH = 1.0
"""Seconds between two updates of the status document."""


class Job:
    """A job at work: it owns its journal, its clocks, its free space, and what it may do now."""

    def __init__(self, journal: Journal, terms: JobTerms, clocks: JobClocks) -> None:
        self.journal, self.terms, self.clocks = journal, terms, clocks
        self.stop: str | None = None
        """Why to stop, as a signal handler says."""
        self.limits = terms.settings.limits.changed(requested(journal).limits)
        """As they are now; another object once they have changed."""
        self.space = FreeSpace(self)
        self._kept: tuple[Any, ...] = ()
        self._noted = -inf

    def keep(self, event: JobStatus) -> None:
        """Keep an event as the status document.

        Durably where the state has changed; else at most every PUBLISH seconds, as a power cut may
        undo it.
        """
        now, told = self.clocks.monotonic(), (event.state, event.why, event.limits)
        if told != self._kept:
            self.journal.set("status", event.document())
        elif now - self._noted >= PUBLISH:
            self.journal.jot("status", event.document())
        else:
            return
        self._kept, self._noted = told, now

    def obey(self) -> str | None:
        """Heed signals, and what other processes ask; whether that is to pause.

        Raises StopJobError.
        """
        if self.stop:
            raise StopJobError(self.stop)
        try:
            order, changed = requested(self.journal)
        except (ZconsoleError, OSError) as error:  # nobody knows what is asked
            raise StopJobError(str(error)) from error
        limits = self.terms.settings.limits.changed(changed)
        self.limits = self.limits if limits == self.limits else limits
        if order == "stop":
            raise StopJobError("stop")
        return "paused" if order == "pause" else None


WINDOW = 900.0
"""Seconds looked back."""
STEP = 15.0
"""Seconds between two figures that are kept."""
TREND_SECONDS = 120.0
"""Seconds of figures that make a trend."""
FAR = 86400.0
"""Seconds from which on the floor is too far to be spoken of."""
SPACE_INTERVAL = 0.5
LEAST_ROOM = 16 << 20
"""Bytes free above the floor with which a portion is begun: two of the smallest. With a few KB one
file after the other would be skipped as too large while somebody else fills the pool."""
SLOW_DISKS = "disk latency is high"
AT_FLOOR = "free space is at the floor"
NO_SPACE = "No space left on device"
QUOTA = "Disk quota exceeded"
NO_WRITING = "Read-only file system"
READ_ONLY = "mounted read-only"
MOST = 3
"""Batches in a row without space before the job stops."""


@dataclass(slots=True)
class Trend:
    """How fast the room above the floor falls. Times are of a clock that never jumps.

    Copies take room until their originals are gone: what counts is the most there was in the
    earlier and in the later half of the figures.
    """

    _seen: deque[tuple[float, int]] = field(default_factory=deque)

    def note(self, now: float, room: int) -> None:
        """Take in the bytes that may be written now; within a STEP, the most there were."""
        if self._seen and now - self._seen[-1][0] < STEP:
            self._seen[-1] = (self._seen[-1][0], max(room, self._seen[-1][1]))
            return
        self._seen.append((now, room))
        while now - self._seen[0][0] > WINDOW:
            self._seen.popleft()

    def outlook(self) -> str | None:
        """When the floor will be reached if it goes on like that; None when not within a day."""
        seen = list(self._seen)
        if len(seen) < 2 or seen[-1][0] - seen[0][0] < TREND_SECONDS:
            return None
        half = len(seen) // 2
        halves = seen[:half], seen[half:]
        (before, then), (after, now) = (max(part, key=lambda seen: seen[1]) for part in halves)
        falls = (then - now) / (after - before) if after > before else 0.0
        left = now / falls if falls > 0 else FAR
        if left >= FAR:
            return None
        return f"free space falls by {size(falls * 60)} a minute: at the floor in {duration(left)}"


@dataclass(slots=True)
class FreeSpace:
    """How much a job may write now; holds it up while free space is at the floor."""

    job: Job
    """Its directories may be on filesystems, or datasets with quotas, of which one is full long
    before another."""
    _reserves: Mapping[str, int] = field(default_factory=dict)
    _looked: float | None = None
    is_tight: bool = False
    """Whether there is hardly any room where the plan saw more: no portion is begun then."""
    _rooms: Mapping[int, int] = field(default_factory=dict)
    """By device."""
    _full: int = 0
    """Batches in a row that met a full filesystem."""
    trend: Trend = field(default_factory=Trend)

    def room(self, device: int | None = None, fresh: bool = False) -> int:
        """Bytes that may be written before the floor is reached, as of half a second ago.

        On the filesystem of ``device``, or on each. Raises StopJobError when all of the job's
        directories are gone.
        """
        now = self.job.clocks.monotonic()
        if fresh or self._looked is None or now - self._looked >= SPACE_INTERVAL:
            self._looked = now
            self._rooms = self._look(self.job.terms.reserves_at(self.job.limits.min_free))
            self.trend.note(now, min(self._rooms.values()))
        least = min(self._rooms.values())
        return max(0, least if device is None else self._rooms.get(device, least))

    def _look(self, reserves: Mapping[str, int]) -> Mapping[int, int]:
        if reserves != self._reserves:
            self._reserves = reserves
            self.trend = Trend()  # what was seen is of another floor
        rooms: dict[int, int] = {}
        self.is_tight = False
        for root, reserve in reserves.items():
            with suppress(FileNotFoundError, NotADirectoryError):
                device, status = Path(root).stat().st_dev, os.statvfs(root)
                room = status.f_bavail * status.f_frsize - reserve
                rooms[device] = min(room, rooms.get(device, room))
                self.is_tight |= room <= min(LEAST_ROOM, self.job.terms.rooms.get(root, 0) // 4)
        if not rooms:
            raise StopJobError("its directories are gone")
        return rooms

    def why(self, between: bool) -> str | None:
        """Why the job must not write now; ``between`` two portions, hardly above the floor, too.

        Not in the midst of a portion: what is in flight may be what took the room.
        """
        return AT_FLOOR if self.room() <= 0 or (between and self.is_tight) else None

    def is_taken_by(self, in_flight: int) -> bool:
        """Whether there would be room again without copies of so many bytes."""
        return min(self._rooms.values()) + in_flight > 0

    def judge(self, outcomes: Sequence[FileOutcome]) -> None:
        """Take in what became of a batch: after MOST in a row without space the job stops.

        A quota of one user, group or project is none: the files of others still have room. Raises
        StopJobError.
        """
        if any(NO_WRITING in (done.reason or "") for done in outcomes):
            raise StopJobError(READ_ONLY)
        over = [done.row.size for done in outcomes if done.reason == QUOTA]
        full = any(done.reason == NO_SPACE for done in outcomes)
        if full or (over and self.room(fresh=True) < max(over)):
            self._full += 1
            if self._full >= MOST:
                raise StopJobError("no space left")
        elif outcomes:
            self._full = 0


@contextmanager
def understood(file: Path) -> Iterator[None]:
    """Raises NotUnderstoodError where what a file says does not have this version's shape.

    It is damaged, or of another version.
    """
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        text = f"{file} says what this version does not understand: {error!r}"
        raise NotUnderstoodError(text) from error


def terms_of(journal: Journal) -> JobTerms:
    """What a journal says about its job. Raises NotUnderstoodError, for an unfinished walk too."""
    data = journal.get("job")
    if data is None:
        raise NotUnderstoodError(f"{journal.path}: the walk was not finished; delete it")
    with understood(journal.path):
        if not NAME.fullmatch(data["name"]):  # names of files are made of it
            raise ValueError(f"{data['name']!r} is not a job's id")
        return JobTerms(
            name=data["name"],
            settings=from_json(Settings, data["settings"]),
            engines=data["engines"],
            spaces=tuple(Space(*space) for space in data["spaces"]),
            raw_factor=data["raw_factor"],
            floors={root: Floor(*floor) for root, floor in data["floors"].items()},
            created=data.get("created"),
            options=dict(data.get("options", {})),
            rooms=dict(data["rooms"]),
            stored=data.get("stored") or 1.0,
            source=data.get("source"),
            pinned=data.get("pinned", 0.0),
        )


def of_key(key: str) -> tuple[str, str, str]:
    """Type, source and guid of a filesystem, by its ``JobDirectory.key``."""
    kind, _, rest = key.partition(":")
    source, _, guid = rest.rpartition(":")
    return kind, source, guid


def walking_settings(journal: Journal, alive: bool) -> Settings | None:
    """The settings of a job that counts its files, or will when it is resumed."""
    asked = journal.get("walking") or {}
    if not asked or not (asked["agreed"] or alive):
        return None
    return from_json(Settings, asked["settings"])


def skipped_files(journal: Journal) -> dict[str, int]:
    """Skipped files by reason, names that the walk left out included."""
    found = dict(journal.get("walk_skipped", dict) or {})
    for reason, files in journal.reasons(State.SKIPPED).items():
        found[reason] = found.get(reason, 0) + files
    return found


def left_out(journal: Journal, most: int) -> list[dict[str, Any]]:
    """The first files, failed ones before skipped ones, with their reasons."""
    directories = Directories(Sys(), journal.directory)
    return [
        {
            "path": os.fsdecode(b"%b/%b" % (directories.path(number), name)),
            "outcome": _OUTCOMES[state],
            "reason": reason,
        }
        for number, name, state, reason in journal.left_out(most)
    ]
