"""Scrubs, error scrubs and resilver restarts (zpool-scrub(8), zpool-resilver(8))."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from zconsole.actions import conditions as must
from zconsole.actions.follow import scan_ended, when
from zconsole.actions.plan import ActionPlan, Precondition, Situation, Step, decide, refuse
from zconsole.actions.running_scans import discarded, progress
from zconsole.errors import ZconsoleError
from zconsole.keyed_text import KeyedText
from zconsole.pool.model import Scan
from zconsole.pool.scan_outcome import has_checkpoint, left_behind
from zconsole.timeline.scans import WORDS
from zconsole.units import duration

NO_WAY_TO_STOP = (
    "detach the new device: ends the replace, the old disk stays as it was; the scan itself may"
    " continue",
    "freeze all scans of all pools with zfs_scan_suspend_progress ("
    + KeyedText("zconsole tunables set", "{keys}", "tunables")
    + "); redundancy stays reduced meanwhile",
    "slow it down: preset gentle ("
    + KeyedText("zconsole tunables preset gentle", "{keys}", "tunables", "gentle")
    + ")",
)
"""Alternatives to stopping a resilver, and what they cost."""
_LAST_TXG = "last_scrubbed_txg"
"""The pool property with the newest TXG read by a completed scrub (zpoolprops(7), 2.3)."""
SINCE_DATES = (2, 4)
STARTABLE = (must.ANSWERING, must.nothing_runs("scrub", "resilver", "rebuild", "errorscrub"))
"""Preconditions of every scrub that is started."""
_OF_ERROR_SCRUB = (
    must.feature("head_errlog", "an error scrub", (2, 2)),
    Precondition(
        "the pool has known errors",
        lambda now: "the pool has no known errors" if now.pool.error_count == 0 else None,
    ),
)
"""Preconditions of an error scrub: a release that has it, and an error list not known empty."""
_NO_REPAIR = must.nothing_runs("resilver", "rebuild")
NO_RESILVER = "no resilver is running"


def plan_scrub(situation: Situation, errors_only: bool = False) -> ActionPlan:
    """Plan to start or resume a scrub; ``errors_only`` reads only blocks known to be bad."""
    word = "errorscrub" if errors_only else "scrub"
    options = ("-e",) if errors_only else ()
    if is_paused(situation.active(word)):
        return _resume(situation, word, options)
    plan = ActionPlan(
        action="scrub",
        title=f"Scrub {'only the known errors of ' if errors_only else ''}{situation.pool.name}",
        steps=(Step(situation.zpool("scrub", *options), "start it"),),
        consequences=_scrub_consequences(situation, errors_only),
        warnings=_scrub_warnings(situation),
        preconditions=(*STARTABLE, *(_OF_ERROR_SCRUB * errors_only)),
        alternatives=_instead(situation),
        follow=scan_ended(situation, word),
        begins="scrub",
    )
    return decide(plan, situation)


def plan_scrub_new(situation: Situation) -> ActionPlan:
    """Plan to scrub only what was written since the last completed scrub (``-C``, 2.3)."""
    last = situation.facts.properties.get(_LAST_TXG)
    moved = "a scrub by dates, if that was the last to complete, decides where this one starts"
    return _plan_part(
        situation,
        ("-C",),
        f"what is new in {situation.pool.name}",
        f"since the last completed scrub{f' (after TXG {last})' if last else ''}",
        (moved,) * (situation.facts.version >= SINCE_DATES),
        (
            must.release("a scrub of what is new (-C)", (2, 3)),
            *STARTABLE,
            Precondition("a scrub has completed before", _no_last_txg),
        ),
    )


def plan_scrub_dates(situation: Situation, dates: ScrubDates | None = None) -> ActionPlan:
    """Plan to scrub only what was written between two dates (``-S``, ``-E``, 2.4).

    ``dates`` None: not yet asked for.
    """
    span = dates or ScrubDates()
    return _plan_part(
        situation,
        span.options,
        f"{situation.pool.name}: {span.words}",
        span.words,
        (
            "a later scrub of what is new (-C) starts where this one ends, although older blocks"
            " were not checked",
            "ZFS keeps dates coarsely, and none from before OpenZFS 2.4: it may read more",
        ),
        (must.release("a scrub by dates (-S, -E)", SINCE_DATES), *STARTABLE),
    )


def _plan_part(
    situation: Situation,
    options: tuple[str, ...],
    what: str,
    written: str,
    warnings: tuple[str, ...],
    needs: tuple[Precondition, ...],
) -> ActionPlan:
    """Plan to scrub a part; ``what`` and ``written`` describe it in words."""
    plan = ActionPlan(
        action="scrub",
        title=f"Scrub {what}",
        steps=(Step(situation.zpool("scrub", *options), "start it"),),
        consequences=(
            f"reads only blocks written {written}",
            "does not count as a full scrub: other blocks are not checked",
            "a replace, attach or resilver that starts meanwhile discards it",
        ),
        warnings=(*warnings, *_scrub_warnings(situation)),
        preconditions=needs,
        alternatives=_instead(situation) or ("scrub the whole pool",),
        follow=scan_ended(situation, "scrub"),
    )
    return decide(plan, situation)


def _no_last_txg(situation: Situation) -> str | None:
    """Return why everything would be read: no scrub has completed; None otherwise or if unknown."""
    if situation.facts.properties.get(_LAST_TXG) not in ("0", "-"):
        return None
    return "no scrub has completed on OpenZFS 2.3 or later: scrub the whole pool first"


_STOP = "stop it first (" + KeyedText("", "{keys}, ", "scans") + "Stop the scrub)"


def _instead(situation: Situation) -> tuple[str, ...]:
    """Return alternatives while a scan is in the way; a paused one never ends by itself."""
    if situation.repairing:
        return ("wait for the resilver",)
    paused = next((scan for scan in situation.running if scan.state == "paused"), None)
    if paused is None:
        return ("wait for the scrub, or " + _STOP,) if situation.running else ()
    word = WORDS.get(paused.function, paused.function)
    return (f"resume the {word} and wait for it, or " + _STOP,)


def plan_pause(situation: Situation) -> ActionPlan:
    """Plan to pause the scrub; it stays paused over a reboot."""
    title = f"Pause the scrub of {situation.pool.name}"
    if situation.repairing:
        why = "resilver running: ZFS cannot pause it"
        return refuse("scrub", title, situation, why, *NO_WAY_TO_STOP)

    def _not_running(now: Situation) -> str | None:
        scan = _scrub(now)
        if scan is None:
            return "there is no scrub to pause"
        return "the scrub is paused already" if is_paused(scan) else None

    return decide(
        ActionPlan(
            action="scrub",
            title=title,
            steps=(Step(situation.zpool("scrub", "-p"), "pause it"),),
            consequences=(
                "it keeps its progress, also over a reboot; a replace discards a paused scrub",
            ),
            preconditions=(
                must.ANSWERING,
                Precondition("a scrub is running", _not_running),
                _NO_REPAIR,
            ),
            follow=when(
                lambda now: is_paused(_scrub(now)), f"the scrub of {situation.pool.name} is paused"
            ),
        ),
        situation,
    )


def plan_stop(situation: Situation) -> ActionPlan:
    """Plan to cancel the scrub; its progress is lost."""
    title = f"Stop the scrub of {situation.pool.name}"
    if situation.repairing:
        why = "resilver running: ZFS cannot cancel it"
        return refuse("scrub", title, situation, why, *NO_WAY_TO_STOP)
    scan = _scrub(situation)
    at = progress(scan) if scan else "0 %"
    some = Precondition(
        "a scrub is running or paused",
        lambda now: "there is no scrub to stop" if _scrub(now) is None else None,
    )
    return decide(
        ActionPlan(
            action="scrub",
            title=title,
            steps=(Step(situation.zpool("scrub", "-s"), "stop it"),),
            consequences=(f"stops at {at}; the next scrub starts from 0",),
            not_undone=("loses its progress; pause it to keep that",),
            preconditions=(must.ANSWERING, some, _NO_REPAIR),
            follow=when(
                lambda now: _scrub(now) is None, f"the scrub of {situation.pool.name} is stopped"
            ),
            supersedes=True,
        ),
        situation,
    )


def plan_resilver(situation: Situation) -> ActionPlan:
    """Plan to restart the resilver from the beginning, including the devices that wait."""
    scan = situation.active("resilver")
    waiting = ", ".join(leaf.called for leaf in situation.waiting)
    lost = (
        (f"the running resilver restarts from 0 ({progress(scan)} lost)",)
        if scan
        else discarded(situation)
    )
    which = f"the waiting devices: {waiting}" if waiting else "the incomplete devices"
    return decide(
        ActionPlan(
            action="resilver",
            title=f"Restart the resilver of {situation.pool.name}",
            steps=(Step(situation.zpool("resilver"), "restart it"),),
            doubts=must.checkpoint_doubt(situation),
            consequences=(*lost, f"fills {which}"),
            not_undone=(f"discards the progress of the {'resilver' if scan else 'scrub'}",)
            if lost
            else (),
            warnings=(
                "otherwise the waiting devices get a second full pass; a restart is worth it while"
                " little is done",
            )
            * bool(scan and waiting),
            preconditions=(
                must.ANSWERING,
                must.same_scans(situation),
                must.feature("resilver_defer", "restarting a resilver", (0, 8)),
                must.nothing_runs("rebuild"),
                Precondition("there is something to resilver", _nothing_to_resilver),
            ),
            needs_typed=situation.pool.name if scan and (scan.percent or 0.0) >= COSTLY else None,
            follow=scan_ended(situation, "resilver"),
            begins="resilver",
        ),
        situation,
    )


def _nothing_to_resilver(situation: Situation) -> str | None:
    """Return why a resilver has nothing new to do; None if a device waits or lacks data.

    A running resilver fills all devices except those that wait.
    """
    if situation.active("resilver"):
        return None if situation.waiting else "no device waits for a resilver"
    failed = any(scan.function == "resilver" and scan.errors for scan in situation.pool.scans)
    unfilled = any(leaf.unfilled or leaf.resilvering for leaf in situation.pool.root.leaves())
    if failed or unfilled or left_behind(situation.pool.root):
        return None
    return "no resilver runs or waits"


COSTLY = 10.0
"""Percent of a resilver from which discarding it requires typing the pool's name."""


def plan_stop_resilver(situation: Situation) -> ActionPlan:
    """Return a refused plan: a resilver can't be paused or canceled, but there are alternatives."""
    title = f"Stop the resilver of {situation.pool.name}"
    if not situation.repairing:
        return refuse("resilver", title, situation, NO_RESILVER)
    why = "ZFS cannot pause or stop it"
    return refuse("resilver", title, situation, why, *NO_WAY_TO_STOP)


def _resume(situation: Situation, word: str, options: tuple[str, ...]) -> ActionPlan:
    """Plan to resume a paused scrub or error scrub."""
    paused = Precondition(
        "the scrub is paused",
        lambda now: None if is_paused(now.active(word)) else "no scrub is paused",
    )
    return decide(
        ActionPlan(
            action="scrub",
            title=f"Resume the scrub of {situation.pool.name}",
            steps=(Step(situation.zpool("scrub", *options), "resume it"),),
            consequences=("continues where it was paused",),
            preconditions=(
                must.ANSWERING,
                paused,
                _NO_REPAIR,
                must.nothing_runs("scrub", "errorscrub", paused=False),
            ),
            follow=scan_ended(situation, word),
            begins="scrub",
        ),
        situation,
    )


def is_paused(scan: Scan | None) -> bool:
    """Return whether there is a scan and it is paused."""
    return scan is not None and scan.state == "paused"


def _scrub(situation: Situation) -> Scan | None:
    """Return the running or paused scrub or error scrub; None without one."""
    return situation.active("scrub") or situation.active("errorscrub")


def _scrub_consequences(situation: Situation, errors_only: bool) -> tuple[str, ...]:
    if errors_only:
        return ("reads only blocks on the error list again, and clears those that are good",)
    scrubs = (scan for scan in situation.pool.scans if scan.function == "scrub")
    took = (scan.duration for scan in scrubs if scan.state == "finished")
    return (
        "reads and checks every block, and repairs what has a good copy",
        "a replace, attach or resilver that starts meanwhile discards it",
        *(f"the last scrub took {duration(seconds)}" for seconds in took if seconds),
    )


def _scrub_warnings(situation: Situation) -> tuple[str, ...]:
    if has_checkpoint(situation.pool):
        return ("does not scrub blocks that only the checkpoint refers to",)
    return ()


EXAMPLE = "2026-11-01 to 2026-11-20 18:00"
_DATE = r"\d{4}-\d\d-\d\d(?: \d\d:\d\d)?"
_SPAN = re.compile(
    rf"(?:from |since )?(?P<start>{_DATE})?\s*(?:(?:to|until|till|\.\.)\s*(?P<end>{_DATE}))?"
)
_FIRST = "1970-01-02"
"""The first date accepted: ZFS takes none before the epoch (zpool_main.c, date_string_to_sec)."""


@dataclass(frozen=True, slots=True)
class ScrubDates:
    """The first and last date of a scrub, in local time; empty means open."""

    start: str = ""
    end: str = ""
    """A day or minute is included as a whole."""

    @property
    def options(self) -> tuple[str, ...]:
        """The options for zpool-scrub(8)."""
        pairs = (("-S", self.start), ("-E", self.end))
        if not (self.start or self.end):
            return ("-S", "FROM", "-E", "TO")  # placeholders for display until dates are given
        return tuple(word for option, date in pairs if date for word in (option, date))

    @property
    def words(self) -> str:
        """The dates in words: ``from 2026-11-01 to 2026-11-20``."""
        if not self.end:
            return f"since {self.start}" if self.start else "between two dates"
        return f"from {self.start} to {self.end}" if self.start else f"until {self.end}"


def read_dates(text: str, now: datetime) -> ScrubDates:
    """Parse typed dates: ``2026-11-01``, ``2026-11-01 to 2026-11-20 18:00``, ``to 2026-11-20``.

    ``now`` is the machine's local time. Raises ZconsoleError for text that has no dates, for dates
    in the wrong order, and for a start in the future.
    """
    match = _SPAN.fullmatch(" ".join(text.split()))
    found = ScrubDates(match["start"] or "", match["end"] or "") if match else ScrubDates()
    if found == ScrubDates():
        raise ZconsoleError(f"{text}: not dates. Example: {EXAMPLE}")
    for date in filter(None, (found.start, found.end)):
        _check(date)
    if found.start and _moment(found.start) > now:
        raise ZconsoleError(f"{found.start} is in the future: nothing was written then")
    if found.start and found.end and _moment(found.start) > _moment(found.end, last=True):
        raise ZconsoleError(f"{found.end} is before {found.start}")
    return found


def _check(date: str) -> None:
    """Check a date. Raises ZconsoleError for a day or time that does not exist."""
    try:
        _moment(date)
    except ValueError:
        raise ZconsoleError(f"{date}: no such day or time") from None
    if date < _FIRST:
        raise ZconsoleError(f"{date}: too early")


def _moment(date: str, *, last: bool = False) -> datetime:
    """Return the first moment of a date, or the ``last``. Raises ValueError for an invalid one."""
    time = "" if " " in date else " 23:59" if last else " 00:00"
    return datetime.fromisoformat(f"{date}{time}").astimezone()
