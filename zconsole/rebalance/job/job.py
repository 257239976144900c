"""A running job, its free space, requests to it, and the terms in its journal."""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from functools import partial
from math import inf
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
from zconsole.rebalance.planning.engine_choice import READ_ONLY
from zconsole.rebalance.planning.facts import FactsReader, JobDirectory
from zconsole.rebalance.planning.settings import FLOOR, Floor, Settings
from zconsole.system.patient import Patient
from zconsole.system.records import from_json, parse_json
from zconsole.system.safe_path import StateError
from zconsole.system.state_dir import read_private
from zconsole.units import duration, size

WALKING = "counting files"
"""Reason in the status of a job that is still being planned by the process that will run it."""
_OUTCOMES = {State.SKIPPED: "skipped", State.FAILED: "failed"}


MOST_BYTES = 1 << 16
"""Most bytes of a request file."""


class Request(NamedTuple):
    """An operator's newest request to a job; the job's status tells what it obeys."""

    order: str = "run"
    """``run``, ``pause`` or ``stop``."""
    limits: Mapping[str, Any] = {}
    """Limits changed since the job began."""

    def encoded(self) -> bytes:
        """Return the content of the request file."""
        return json.dumps(self._asdict()).encode()


def request_file(journal: Path) -> Path:
    """Return the path of a job's request file."""
    return journal.with_name(f"{journal.name}.request")


def requested(journal: Path) -> Request:
    """Read the newest request to a journal's job. Raises NotUnderstoodError, StateError."""
    file = request_file(journal)
    with suppress(FileNotFoundError), understood(file):
        data = parse_json(read_private(file, MOST_BYTES))
        return Request(data.get("order", "run"), data.get("limits") or {})
    return Request()


@dataclass(frozen=True, slots=True)
class JobTerms:
    """Terms of a job, as its journal keeps them: ``asdict`` writes them, ``terms_of`` reads."""

    name: str
    settings: Settings
    engines: Mapping[str, str]
    """Engine by root path."""
    spaces: tuple[Space, ...]
    """Vdevs when the job was planned."""
    raw_factor: float
    """Raw bytes per allocated byte of its files, on the vdevs where they were."""
    floors: Mapping[str, Floor]
    """Free space to leave, by root path."""
    created: float | None = None
    """End of its walk, epoch seconds."""
    rooms: Mapping[str, int] = field(default_factory=dict)
    """Bytes of free space for the job when it was planned, by root path."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Mount options when it was planned, by root path."""
    stored: float = 1.0
    """Allocated bytes per byte of a file: fewer with compression and holes."""
    source: tuple[float, ...] | None = None
    """Share of the bytes to move that was on each vdev; None if unknown."""
    pinned: float = 0.0
    """Share of the bytes to move whose old blocks stay allocated."""
    grown: Mapping[str, float] = field(default_factory=dict)
    """Bytes that blocks take once written anew for each byte before, by root path."""

    def reserves_at(self, min_free: float | None) -> dict[str, int]:
        """Return the bytes to leave free by root path, if the floor changes to ``min_free``."""
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
    """A running job: owns its journal, clocks, directories, free space and current limits."""

    def __init__(
        self,
        journal: Journal,
        terms: JobTerms,
        clocks: JobClocks,
        reader: FactsReader,
        places: Sequence[JobDirectory],
    ) -> None:
        self.journal, self.terms, self.clocks = journal, terms, clocks
        self.reader, self.places = reader, places
        self.pool = places[0].dataset.pool if places[0].dataset else None
        """Name of the pool, which all its directories share; None without ZFS."""
        self.stop: str | None = None
        """Reason to stop, set by a signal handler."""
        self.limits = terms.settings.limits.changed(requested(journal.path).limits)
        """Current limits."""
        self.space = FreeSpace(self)
        self._kept: tuple[Any, ...] = ()
        self._noted = -inf

    def keep(self, event: JobStatus) -> None:
        """Store an event as the status document.

        A change of state, reason or limits is stored durably. Other events are stored at most every
        PUBLISH seconds, and a power cut may undo them.
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
        """Obey signals and requests: return ``paused`` or None, or raise StopJobError."""
        if self.stop:
            raise StopJobError(self.stop)
        try:
            order, changed = requested(self.journal.path)
        except (ZconsoleError, OSError) as error:  # the request may be to stop
            raise StopJobError(str(error)) from error
        self.limits = self.terms.settings.limits.changed(changed)
        if order == "stop":
            raise StopJobError("stop")
        return "paused" if order == "pause" else None


WINDOW = 900.0
"""Seconds of history."""
STEP = 15.0
"""Seconds between two samples."""
TREND_SECONDS = 120.0
"""Seconds of samples needed for a trend."""
FAR = 86400.0
"""Seconds to the floor beyond which it is not mentioned."""
SPACE_INTERVAL = 0.5
LEAST_ROOM = 16 << 20
"""Bytes above the floor needed to begin a portion: twice the smallest portion.

With a few KB left, one file after another would be skipped as too large while somebody else fills
the pool.
"""
SLOW_DISKS = "disk latency is high"
AT_FLOOR = "no free space beyond what is kept free"
NO_SPACE = "No space left on device"
QUOTA = "Disk quota exceeded"
NO_WRITING = "Read-only file system"
MOST = 3
"""Consecutive batches without space after which the job stops."""


@dataclass(slots=True)
class Trend:
    """Trend of the free space above the floor. Times are of a monotonic clock.

    Copies take space until their originals are removed. So the trend compares the maximum of the
    earlier half of the samples with that of the later half.
    """

    _seen: deque[tuple[float, int]] = field(default_factory=deque)

    def note(self, now: float, room: int) -> None:
        """Add a sample of the bytes that may be written; within a STEP, the maximum is kept."""
        if self._seen and now - self._seen[-1][0] < STEP:
            self._seen[-1] = (self._seen[-1][0], max(room, self._seen[-1][1]))
            return
        self._seen.append((now, room))
        while now - self._seen[0][0] > WINDOW:
            self._seen.popleft()

    def outlook(self) -> str | None:
        """Predict when the floor will be reached, as a sentence; None if not within a day."""
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
        ends = f"only what is kept free is left in {duration(left)}"
        return f"free space falls by {size(falls * 60)} a minute: {ends}"


@dataclass(slots=True)
class FreeSpace:
    """Free space that a job may use; makes it wait while free space is at the floor."""

    job: Job
    """The job, whose directories may be on several filesystems or datasets with quotas."""
    _reserves: Mapping[str, int] = field(default_factory=dict)
    _looked: float | None = None
    is_tight: bool = False
    """Whether hardly any space is left, though the plan found more: no portion begins then."""
    _rooms: Mapping[int, int] = field(default_factory=dict)
    """Bytes that may be written, by device."""
    _full: int = 0
    """Consecutive batches that found a filesystem full."""
    trend: Trend = field(default_factory=Trend)
    _patients: defaultdict[str, Patient] = field(default_factory=lambda: defaultdict(Patient))
    """By root path: one that gives no answer must not keep the others from being asked."""
    _found: dict[str, tuple[int, int] | None] = field(default_factory=dict)
    """Newest answer by root path: device and free bytes, None if it is gone."""

    def room(self, device: int | None = None, fresh: bool = False) -> int:
        """Return the bytes that may be written before the floor is reached; cached for 0.5 seconds.

        On the filesystem of ``device``, or the least of all. Raises StopJobError if all directories
        of the job are gone.
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
            self.trend = Trend()  # the samples are relative to the old floor
        rooms: dict[int, int] = {}
        self.is_tight = False
        for root, reserve in reserves.items():
            if (found := self._newest(root)) is None:
                continue
            device, room = found[0], found[1] - reserve
            rooms[device] = min(room, rooms.get(device, room))
            self.is_tight |= room <= min(LEAST_ROOM, self.job.terms.rooms.get(root, 0) // 4)
        if not rooms:
            raise StopJobError("its directories are gone")
        return rooms

    def _newest(self, root: str) -> tuple[int, int] | None:
        """Return device and free bytes of a directory, None if it is gone.

        Where its path gives no answer, as one that somebody has led to a dead server, the figures
        before count. Without any, the first answer is waited for: a disk may have to spin up.
        Raises StopJobError if the operator stops the job meanwhile.
        """
        while True:
            with suppress(StateError):
                self._found[root] = self._patients[root].call(partial(_asked, root))
            if root in self._found:
                return self._found[root]
            self.job.obey()
            self.job.clocks.sleep(SPACE_INTERVAL)

    def why(self, between: bool) -> str | None:
        """Reason why the job must not write now, or None.

        ``between`` portions, hardly any space is a reason, too. Within one it is not: the space may
        be taken by copies in flight.
        """
        return AT_FLOOR if self.room() <= 0 or (between and self.is_tight) else None

    def is_taken_by(self, in_flight: int) -> bool:
        """Whether there would be free space without ``in_flight`` bytes of copies."""
        return min(self._rooms.values()) + in_flight > 0

    def judge(self, outcomes: Sequence[FileOutcome]) -> None:
        """Check the outcomes of a batch; stop the job after MOST consecutive ones without space.

        An exceeded quota of a user, group or project does not count: the files of others still have
        space. Raises StopJobError.
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


def _asked(root: str) -> tuple[int, int] | None:
    """Return device and free bytes of a directory, None if it is gone."""
    try:
        device, status = Path(root).stat().st_dev, os.statvfs(root)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return device, status.f_bavail * status.f_frsize


@contextmanager
def understood(file: Path) -> Iterator[None]:
    """Raise NotUnderstoodError if the data of a file does not have the expected shape.

    The file is damaged, or of another version.
    """
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        text = f"{file} says what this version does not understand: {error!r}"
        raise NotUnderstoodError(text) from error


def terms_of(journal: Journal) -> JobTerms:
    """Read the terms of a job from its journal.

    Raises NotUnderstoodError, also if the walk was not finished.
    """
    data = journal.get("job")
    if data is None:
        raise NotUnderstoodError(f"{journal.path}: the walk was not finished; delete it")
    with understood(journal.path):
        if not NAME.fullmatch(data["name"]):  # names of files are made of it
            raise ValueError(f"{data['name']!r} is not a job's id")
        known = {each.name: data[each.name] for each in fields(JobTerms) if each.name in data}
        known["spaces"] = [list(Space(*each)) for each in data["spaces"]]  # some have fewer figures
        return from_json(JobTerms, {**known, "stored": data.get("stored") or 1.0})


def parse_key(key: str) -> tuple[str, str, str]:
    """Split a ``JobDirectory.key`` into type, source and guid of the filesystem."""
    kind, _, rest = key.partition(":")
    source, _, guid = rest.rpartition(":")
    return kind, source, guid


def walking_settings(journal: Journal, alive: bool) -> Settings | None:
    """Read the settings of a job whose walk is running or will be resumed; None for any other."""
    asked = journal.get("walking") or {}
    if not asked or not (asked["agreed"] or alive):
        return None
    return from_json(Settings, asked["settings"])


def skipped_files(journal: Journal) -> dict[str, int]:
    """Count skipped files by reason, including names that the walk left out."""
    return Counter(journal.get("walk_skipped", dict) or {}) + Counter(
        journal.reasons(State.SKIPPED)
    )


def left_out(journal: Journal, most: int) -> list[dict[str, Any]]:
    """List the first ``most`` failed and skipped files, failed ones first, with reasons."""
    directories = Directories(Sys(), journal.directory)
    return [
        {
            "path": os.fsdecode(b"%b/%b" % (directories.path(number), name)),
            "outcome": _OUTCOMES[state],
            "reason": reason,
        }
        for number, name, state, reason in journal.left_out(most)
    ]
