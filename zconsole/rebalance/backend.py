"""Interface of rebalance for a console: directories with sizes, plans, and control of jobs.

It has two implementations: this machine (``live_backend``) and a simulated pool (in ``sim``).
"""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from zconsole.units import parse_size, size

if TYPE_CHECKING:
    from zconsole.rebalance.planning.plan_document import PlanDocument
    from zconsole.rebalance.planning.settings import Limits, Settings

RUNNING = ("running", "paused", "waiting")
"""States in which a process works on the job, or waits to."""
INTERRUPTED = ("dead", "planned")
"""States of a job that a crash or reboot interrupted; it can be resumed."""
TERMINATED, HUNG_UP = "terminated", "hung up"
"""Reasons of a job that was stopped by a shutdown, or by the end of its terminal."""

REPLACED = "replaced since the walk"
"""Reason of a skipped file that another job or program has rewritten: it need not move."""
TOTAL_CHANGED = "total now "
"""Prefix of the note that explains why the total has changed."""


@dataclass(frozen=True, slots=True)
class Counted:
    """Progress of a plan: files counted so far, their bytes, and the current directory."""

    files: int = 0
    bytes: int = 0
    where: str = ""


class EndedFile(NamedTuple):
    """Outcome of one name of a file, as ``rebalance run --json`` prints it."""

    path: str
    bytes: int
    """Bytes moved; for a file with several names, counted under the first."""
    engine: str
    outcome: str
    """``moved``, ``skipped`` or ``failed``."""
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus:
    """Progress of a job: the event that its run emits, for output, journal and screen.

    The journal keeps the newest as the job's status document. Times in seconds, sizes in bytes.
    """

    state: str = "planned"
    """``running``, ``paused``, ``waiting``, ``finished``, ``stopped``, ``dead``, or ``planned``.

    A job is planned before its first run.
    """
    why: str | None = None
    limits: Limits | None = None
    """Limits that it obeys; None before its run."""
    files_done: int | None = None
    files_total: int | None = None
    files_skipped: int | None = None
    """Skipped files among ``files_done``, without names that the walk left out."""
    files_failed: int | None = None
    bytes_done: int | None = None
    """Bytes of finished files."""
    bytes_handled: int = 0
    """Bytes processed, unfinished files included."""
    bytes_total: int | None = None
    """Bytes of all files."""
    bytes_goal: int | None = None
    """Bytes predicted until its end: fewer than the total with a byte limit or a wanted spread."""
    rate: float | None = None
    mean_rate: float | None = None
    """Bytes/s since its process began, without waits; None during the first seconds of work."""
    eta_seconds: float | None = None
    current: str | None = None
    """Path of the file in progress."""
    vdevs: Sequence[Mapping[str, Any]] | None = None
    """Allocation of each vdev before and as of the last check (``JobAccounts._vdevs``)."""
    notes: Sequence[str] = ()
    pid: int | None = None
    """Process that emitted the event."""
    t: float | None = None
    """Time of the event, epoch seconds."""
    ended_files: Sequence[EndedFile] = ()
    """Files finished since the previous event; the journal keeps the outcome of every file."""
    summary: Mapping[str, Any] | None = None
    """Summary of the whole job, with the last event of a run; for output."""

    def document(self) -> dict[str, Any]:
        """Return the status document for the journal, without the fields that are only printed."""
        told = asdict(replace(self, ended_files=(), summary=None))
        del told["ended_files"], told["summary"]
        return told


_JSON = (
    "job", "state", "why", "dirs", "engine", "files_done", "files_total", "files_skipped",
    "files_failed", "bytes_done", "bytes_handled", "bytes_total", "bytes_goal", "rate", "mean_rate",
    "eta_seconds", "current", "vdevs", "journal", "accept_races", "notes", "days",
)  # fmt: skip
"""Fields of a job and of its settings in its JSON object."""


SHORT = 0.999
"""Most progress of a job that left files out: beside their number, 100 % would be wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView(JobStatus):
    """Snapshot of one job: its status, and further data from its journal."""

    job: str
    settings: Settings
    limits: Limits
    """Limits that it obeys now: those of its settings, with changes since."""
    engine: str
    journal: str = ""
    """Path of its journal."""
    before: Mapping[str, float] = field(default_factory=dict)
    """Fill of each vdev when the job began, 0…1."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    failed: Mapping[str, int] = field(default_factory=dict)
    left_out: tuple[Mapping[str, Any], ...] = ()
    """The first failed and skipped files, failed ones first (``job.left_out``)."""
    days: tuple[Mapping[str, Any], ...] = ()
    pools: frozenset[str] = frozenset()
    began: float | None = None
    """End of the walk that counted its files, epoch seconds."""
    agreed: bool = True
    """False until the operator has confirmed its plan, or asked to resume it."""

    @property
    def ended(self) -> float | None:
        """When it finished or was stopped, epoch seconds; None if it is active or died."""
        return self.t if self.state in ("finished", "stopped") else None

    @property
    def live(self) -> bool:
        """Whether a process is working on it."""
        return self.state in RUNNING

    @property
    def files_moved(self) -> int:
        """Number of files moved: those done, without skipped and failed ones."""
        return (self.files_done or 0) - (self.files_skipped or 0) - (self.files_failed or 0)

    @property
    def replaced(self) -> int:
        """Number of files that need not move any more, because others have rewritten them."""
        return self.skipped.get(REPLACED, 0)

    @property
    def unmoved(self) -> Mapping[str, int]:
        """Skipped files whose blocks are where they were, by reason."""
        return {why: files for why, files in self.skipped.items() if why != REPLACED}

    @property
    def files_unmoved(self) -> int:
        """Number of skipped files whose blocks are where they were."""
        return sum(self.unmoved.values())

    @property
    def interrupted(self) -> bool:
        """Whether it ended without an order to stop."""
        cut_off = self.state == "stopped" and self.why in (TERMINATED, HUNG_UP)
        return cut_off or self.state in INTERRUPTED

    @property
    def share(self) -> float | None:
        """Progress 0…1, by bytes; by files if all are empty. Less than 1 if files were left out."""
        if self.goal:
            is_short = self.whole and (self.files_unmoved or any(self.failed.values()))
            return min(SHORT if is_short else 1.0, self.bytes_handled / self.goal)
        return (self.files_done or 0) / self.files_total if self.files_total else None

    @property
    def goal(self) -> int | None:
        """Bytes of files to process until its end."""
        return self.bytes_total if self.bytes_goal is None else self.bytes_goal

    @property
    def whole(self) -> bool:
        """Whether it goes on to its last file: neither a limit nor a wanted spread ends it."""
        return self.goal == self.bytes_total

    @property
    def total_changed(self) -> tuple[str, ...]:
        """The note, if any, that explains why ``goal`` has changed."""
        return tuple(note for note in self.notes if note.startswith(TOTAL_CHANGED))

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object of the job, without the files left out."""
        owner = {"dirs": self.settings, "accept_races": self.settings}
        return {name: getattr(owner.get(name, self), name) for name in _JSON}

    def left_as_json(self) -> dict[str, Any]:
        """Return the JSON object of files left out: counts by reason, and the first files."""
        return {"skipped": self.skipped, "failed": self.failed, "left_out": self.left_out}


_ADDED_UP = ("moved_bytes", "files_done", "files_skipped", "files_replaced", "files_failed")
_TRIED_AGAIN = ("files_skipped", "files_failed")


def own_days(days: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the days of a job with each day's own work; a journal keeps running totals."""
    before: Mapping[str, Any] = {}
    for day in days:
        own = {key: day[key] - before.get(key, 0) for key in _ADDED_UP if key in day}
        # A resumed job retries failed and skipped files, which were counted as done before.
        if "files_done" in own:
            own["files_done"] -= sum(min(0, own.get(key, 0)) for key in _TRIED_AGAIN)
        yield {**day, **{key: max(0, number) for key, number in own.items()}}
        before = day


@dataclass(frozen=True, slots=True)
class DirectoryListing:
    """Names of the subdirectories of a directory, or the reason why they can't be listed."""

    path: str
    names: tuple[str, ...] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """Totals of a directory tree; ``done`` when the count is complete."""

    path: str
    bytes: int | None
    files: int = 0
    done: bool = True
    old: int | None = None
    """Bytes in files older than the pool's newest vdev; None if unknown."""


class Explorer(Protocol):
    """Lists and measures directories in the background; answers come as they are ready."""

    def open(self, path: str) -> None:
        """Ask for a directory's listing, then for its subdirectories' sizes, before other work."""

    def used(self, path: str) -> None:
        """Ask for the bytes used on the filesystem mounted at a path."""

    async def next(self) -> DirectoryListing | Measured | None:
        """Return the next answer; None when there will be no more. Raises ZconsoleError."""

    def close(self) -> None:
        """Stop the work; never waits, not even for a directory that does not answer."""


class RebalanceBackend(Protocol):
    """Rebalance for a console. No method waits longer than a few seconds."""

    @property
    def command(self) -> str:
        """Command to type before ``rebalance`` to do the same in a shell."""

    async def jobs(self, pool: str | None) -> tuple[JobView, ...]:
        """Return the jobs on a pool (None: anywhere), newest first. Raises ZconsoleError."""

    def roots(self, pool: str) -> Mapping[str, str]:
        """Map mount points to the datasets of a pool, sorted."""

    async def explore(self) -> Explorer:
        """Start a new explorer. Raises ZconsoleError."""

    def plan(self, settings: Settings) -> AsyncIterator[Counted | PlanDocument]:
        """Make a plan: yields its progress, then the plan. Closing the iterator ends the work.

        Raises ZconsoleError.
        """

    async def start(self, settings: Settings) -> str:
        """Start a job that outlives this process; return its id. Raises ZconsoleError."""

    async def order(
        self, job: str, order: str | None, limits: Mapping[str, Any] | None = None
    ) -> None:
        """Order a running job to ``pause`` or ``stop`` (None: neither), and change its limits.

        Raises ZconsoleError.
        """

    async def resume(self, job: str) -> None:
        """Go on with a paused, stopped or dead job. Raises ZconsoleError."""

    def last_words(self, job: str) -> str:
        """Return the last output of a job started here that has ended; empty if unknown."""


def by_hand(rebalance_backend: RebalanceBackend, settings: Settings) -> str:
    """Return the shell command that runs a job with these settings."""
    return " ".join([rebalance_backend.command, "rebalance run", *map(quoted, run_words(settings))])


def run_words(settings: Settings) -> list[str]:
    """Return the arguments of ``zconsole rebalance run``."""
    return [*(["--during-scan"] if settings.during_scan else []), *plan_words(settings)]


def plan_words(settings: Settings) -> list[str]:
    """Return the arguments of ``zconsole rebalance plan``, directories last."""
    limits = settings.limits
    valued: Sequence[tuple[str, Any, Any]] = (
        ("engine", settings.engine, "auto"),
        ("aim", settings.aim, "balance"),
        ("rewrite-options", settings.rewrite_options, ""),
        ("limit-rate", _size_word(limits.rate), None),
        ("max-latency", limits.max_latency, None),
        ("max-bytes", _size_word(limits.max_bytes), None),
        ("until-spread", limits.until_spread, None),
        ("min-free", limits.min_free, None),
        ("window", limits.window, None),
    )
    words = [f"--{name}={value}" for name, value, usual in valued if value != usual]
    words += ["--accept-races"] if settings.accept_races else []
    words += ["--allow-non-zfs"] if settings.allow_non_zfs else []
    words += ["--fill-new"] if settings.fill_new else []
    return [*words, *settings.dirs]


def _size_word(number: float | None) -> str | None:
    """Return the shortest size that an option reads as just this many bytes; None for None."""
    if number is None:
        return None
    said = size(number)
    return said if parse_size(said) == number else str(round(number))


def quoted(word: str) -> str:
    r"""Quote a word for a shell; unprintable bytes as ``$'\xNN'`` (bash, zsh)."""
    if word.isprintable():
        return shlex.quote(word)
    shown = "".join(
        chr(byte) if 0x20 <= byte < 0x7F and byte not in b"'\\" else f"\\x{byte:02x}"
        for byte in word.encode("utf-8", "surrogateescape")
    )
    return f"$'{shown}'"
