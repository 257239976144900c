"""What a console asks of rebalance: directories with sizes, plans, and jobs to watch and steer.

The seam has two sides: this machine (``live_backend``) and a simulated pool (in ``sim``).
"""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from zconsole.rebalance.planning.plan_document import PlanDocument
    from zconsole.rebalance.planning.settings import Limits, Settings

RUNNING = ("running", "paused", "waiting")
"""States in which a process works at the job, or would."""
INTERRUPTED = ("dead", "planned")
"""States of a job that a death or a reboot left; a resume goes on with it."""
TERMINATED, HUNG_UP = "terminated", "hung up"
"""Why a job stopped that a shutdown or the end of its terminal ended."""

REPLACED = "replaced since the walk"
"""Why a file is left that another job or program wrote anew: it needs no move any more."""
TOTAL_CHANGED = "total now "
"""How the note begins that says why what is to do in all is another than before."""


@dataclass(frozen=True, slots=True)
class Counted:
    """How far the making of a plan is: files seen so far, their bytes, and where it is."""

    files: int = 0
    bytes: int = 0
    where: str = ""


class EndedFile(NamedTuple):
    """What became of one name of a file, as ``rebalance run --json`` prints it."""

    path: str
    bytes: int
    """Moved; of a file of several names, under the first of them."""
    engine: str
    outcome: str
    """moved, skipped or failed."""
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus:
    """How far a job is: the event that its run emits, which is printed, kept and drawn.

    The journal keeps the newest as the job's status document. Times in seconds, sizes in bytes.
    """

    state: str = "planned"
    """running, paused, waiting, finished, stopped, dead, or planned before its first run."""
    why: str | None = None
    limits: Limits | None = None
    """Those that it obeys; None before its run."""
    files_done: int | None = None
    files_total: int | None = None
    files_skipped: int | None = None
    """Of those done, as is the next; without names that were left out before they were counted."""
    files_failed: int | None = None
    bytes_done: int | None = None
    """Of files that are finished."""
    bytes_handled: int = 0
    """With those of files that are not."""
    bytes_total: int | None = None
    """Of all files."""
    bytes_goal: int | None = None
    """After how many it ends, as predicted: fewer with a byte limit or a wanted spread."""
    rate: float | None = None
    mean_rate: float | None = None
    """Bytes a second since its process began, without waits; None before there is enough of it."""
    eta_seconds: float | None = None
    current: str | None = None
    """The path of the file that is worked on."""
    vdevs: Sequence[Mapping[str, Any]] | None = None
    """Allocation of each, before and as of the last look: see ``JobAccounts._vdevs``."""
    notes: Sequence[str] = ()
    pid: int | None = None
    """Of the process that emitted it."""
    t: float | None = None
    """When, epoch seconds."""
    ended_files: Sequence[EndedFile] = ()
    """Those that have ended since the event before; the journal has every file's result itself."""
    summary: Mapping[str, Any] | None = None
    """What the whole job came to, with the last event of a run; to be printed."""

    def document(self) -> dict[str, Any]:
        """The status document that the journal keeps: all but what is only printed."""
        kept = (each.name for each in fields(JobStatus) if each.name not in _PRINTED)
        limits = asdict(self.limits) if self.limits else None
        return {**{name: getattr(self, name) for name in kept}, "limits": limits}


_PRINTED = ("ended_files", "summary")
_FIGURES = (
    "files_done", "files_total", "files_skipped", "files_failed",
    "bytes_done", "bytes_total", "bytes_goal", "rate", "mean_rate",
    "eta_seconds", "current", "vdevs",
)  # fmt: skip
"""Fields of its status that a job's JSON object has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView(JobStatus):
    """What is known of one job now: its status, and what else its journal says."""

    job: str
    settings: Settings
    limits: Limits
    """Those that it obeys now: of its settings, with what was changed since."""
    engine: str
    journal: str = ""
    """The path of its journal."""
    before: Mapping[str, float] = field(default_factory=dict)
    """Fill of each vdev when the job began, 0…1."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    failed: Mapping[str, int] = field(default_factory=dict)
    left_out: tuple[Mapping[str, Any], ...] = ()
    """The first of those files, failed ones before skipped ones: see ``job.left_out``."""
    days: tuple[Mapping[str, Any], ...] = ()
    pools: frozenset[str] = frozenset()
    began: float | None = None
    """When its files were counted, epoch seconds."""
    agreed: bool = True
    """False until the operator has said yes to its plan, or asked for it to be resumed."""

    @property
    def ended(self) -> float | None:
        """When it finished or was stopped; None for one that is at work or died."""
        return self.t if self.state in ("finished", "stopped") else None

    @property
    def live(self) -> bool:
        """Whether a process works at it."""
        return self.state in RUNNING

    @property
    def files_moved(self) -> int:
        """Files that lie anew, of those that are done."""
        left = ((self.files_skipped, self.skipped), (self.files_failed, self.failed))
        named = (sum(by.values()) if count is None else count for count, by in left)
        return (self.files_done or 0) - sum(named)

    @property
    def replaced(self) -> int:
        """Files that need no move any more: others wrote them anew since they were counted."""
        return self.skipped.get(REPLACED, 0)

    @property
    def unmoved(self) -> Mapping[str, int]:
        """Skipped files that lie as before, by reason."""
        return {why: files for why, files in self.skipped.items() if why != REPLACED}

    @property
    def files_unmoved(self) -> int:
        """How many those are."""
        return sum(self.unmoved.values())

    @property
    def interrupted(self) -> bool:
        """Whether it ended without an order to stop."""
        cut_off = self.state == "stopped" and self.why in (TERMINATED, HUNG_UP)
        return cut_off or self.state in INTERRUPTED

    @property
    def share(self) -> float | None:
        """How much of its bytes is done, 0…1; of its files where they are all empty."""
        if self.goal:
            return min(1.0, self.bytes_handled / self.goal)
        return (self.files_done or 0) / self.files_total if self.files_total else None

    @property
    def goal(self) -> int | None:
        """Bytes of files that it is to work through until its end."""
        return self.bytes_total if self.bytes_goal is None else self.bytes_goal

    @property
    def total_changed(self) -> tuple[str, ...]:
        """The note that says why ``goal`` is another than before."""
        return tuple(note for note in self.notes if note.startswith(TOTAL_CHANGED))

    def as_json(self) -> dict[str, Any]:
        """The object of the contract, but for the files that were left out."""
        return {
            **{name: getattr(self, name) for name in ("job", "state", "why")},
            "dirs": list(self.settings.dirs),
            **{name: getattr(self, name) for name in ("engine", *_FIGURES, "journal")},
            "accept_races": self.settings.accept_races,
            "notes": list(self.notes),
            "days": [dict(day) for day in self.days],
        }

    def left_as_json(self) -> dict[str, Any]:
        """Files that were left out, by reason, and the first of them."""
        return {"skipped": self.skipped, "failed": self.failed, "left_out": self.left_out}


_ADDED_UP = ("moved_bytes", "files_done", "files_skipped", "files_replaced", "files_failed")
_TRIED_AGAIN = ("files_skipped", "files_failed")


def own_days(days: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The days of a job, with what was done on each; a journal keeps the totals at their ends."""
    before: Mapping[str, Any] = {}
    for day in days:
        own = {key: day[key] - before.get(key, 0) for key in _ADDED_UP if key in day}
        if "files_done" in own:  # what was left out and is tried again was done before, too
            own["files_done"] -= sum(min(0, own.get(key, 0)) for key in _TRIED_AGAIN)
        yield {**day, **{key: max(0, number) for key, number in own.items()}}
        before = day


@dataclass(frozen=True, slots=True)
class DirectoryListing:
    """The directories inside one, or why they cannot be listed."""

    path: str
    names: tuple[str, ...] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """What a directory holds, everything below it included; ``done`` once that is all."""

    path: str
    bytes: int | None
    files: int = 0
    done: bool = True
    old: int | None = None
    """Bytes in files older than the pool's newest vdev; None where nobody knows of one."""


class Explorer(Protocol):
    """Looks into directories on demand, beside whoever asks; answers come as they are known."""

    def open(self, path: str) -> None:
        """Ask for a directory's listing, and then the sizes of what is in it, before others."""

    def used(self, path: str) -> None:
        """Ask what the whole filesystem mounted at a path uses."""

    async def next(self) -> DirectoryListing | Measured | None:
        """The next answer; None once there will be no more. Raises ZconsoleError."""

    def close(self) -> None:
        """Look no further; never waits, not even for a directory that does not answer."""


class RebalanceBackend(Protocol):
    """Rebalance for a console. Nothing here waits longer than a few seconds for anything."""

    @property
    def command(self) -> str:
        """What to type before ``rebalance`` for the same by hand."""

    async def jobs(self, pool: str | None) -> tuple[JobView, ...]:
        """The jobs on a pool (None: anywhere), newest first. Raises ZconsoleError."""

    def roots(self, pool: str) -> Mapping[str, str]:
        """The datasets of a pool by where they are mounted, sorted."""

    async def explore(self) -> Explorer:
        """An explorer of its own. Raises ZconsoleError."""

    def plan(self, settings: Settings) -> AsyncIterator[Counted | PlanDocument]:
        """Make a plan; counts on the way, the plan last. Closing it ends the work.

        Raises ZconsoleError.
        """

    async def start(self, settings: Settings) -> str:
        """Start a job that outlives this process; returns its id. Raises ZconsoleError."""

    async def order(
        self, job: str, order: str | None, limits: Mapping[str, Any] | None = None
    ) -> None:
        """``pause`` or ``stop`` a running job (None: as it is), and change its limits.

        Raises ZconsoleError.
        """

    async def resume(self, job: str) -> None:
        """Go on with a paused, stopped or dead job. Raises ZconsoleError."""

    def last_words(self, job: str) -> str:
        """What a job started here and gone since has said last; empty when nothing is known."""


def by_hand(rebalance_backend: RebalanceBackend, settings: Settings) -> str:
    """The command line that runs a job with these settings, for a shell to read."""
    return " ".join([rebalance_backend.command, "rebalance run", *map(quoted, run_words(settings))])


def run_words(settings: Settings) -> list[str]:
    """The words after ``zconsole rebalance run``."""
    return [*(["--during-scan"] if settings.during_scan else []), *plan_words(settings)]


def plan_words(settings: Settings) -> list[str]:
    """The words after ``zconsole rebalance plan``, directories last."""
    limits = settings.limits
    valued: Sequence[tuple[str, Any, Any]] = (
        ("engine", settings.engine, "auto"),
        ("aim", settings.aim, "balance"),
        ("rewrite-options", settings.rewrite_options, ""),
        ("limit-rate", None if limits.rate is None else round(limits.rate), None),
        ("max-latency", limits.max_latency, None),
        ("max-bytes", limits.max_bytes, None),
        ("until-spread", limits.until_spread, None),
        ("min-free", limits.min_free, None),
        ("window", limits.window, None),
    )
    words = [f"--{name}={value}" for name, value, usual in valued if value != usual]
    words += ["--accept-races"] if settings.accept_races else []
    words += ["--allow-non-zfs"] if settings.allow_non_zfs else []
    return [*words, *settings.dirs]


def quoted(word: str) -> str:
    r"""A word as a shell takes it; bytes that cannot be shown in ``$'\xNN'`` (bash, zsh)."""
    if word.isprintable():
        return shlex.quote(word)
    shown = "".join(
        chr(byte) if 0x20 <= byte < 0x7F and byte not in b"'\\" else f"\\x{byte:02x}"
        for byte in word.encode("utf-8", "surrogateescape")
    )
    return f"$'{shown}'"
