"""A scrub that runs only in certain hours of the day and is paused outside them.

ZFS keeps the progress of a paused scrub over a reboot (zpool-scrub(8), ``-p``). The keeper
(``window_keeper``) checks every half minute and runs the plan that ``due`` returns.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

from zconsole.actions import conditions as must
from zconsole.actions.plan import ActionPlan, Precondition, Situation, Step, decide
from zconsole.actions.running_scans import progress
from zconsole.actions.scrub import is_paused, plan_pause, plan_scrub, plan_stop
from zconsole.errors import UsageError
from zconsole.keyed_text import KeyedText
from zconsole.pool.model import Activity
from zconsole.pool.scrub_window import NAME, ScrubWindow
from zconsole.system import keeper
from zconsole.system.day_hours import day_hours, local_time
from zconsole.system.record_file import LockedRecord
from zconsole.system.state_dir import state_dir
from zconsole.timeline.frame import SCRUB_HOURS, ActivityView, Additions, Frame, seconds_taken
from zconsole.units import days, duration

NO_GUID = "the GUID of the pool is unknown; it may be another pool tomorrow"
LOOK = 30.0
"""Seconds between checks of the clock and the scrub."""


class Due(NamedTuple):
    """The action due for a window, and the state of the window after it."""

    window: ScrubWindow
    plan: ActionPlan | None = None
    over: bool = False


def due(window: ScrubWindow, situation: Situation, local: datetime) -> Due:
    """Return the action due for a window now; ``local`` is the machine's local time."""
    scan, inside = situation.active("scrub"), day_hours(window.hours).includes(local)
    if scan is None:
        # ZFS keeps only the newest scrub or resilver: a resilver here has discarded the scrub.
        if any(found.function == "resilver" for found in situation.pool.scans):
            window = replace(window, begun=False, paused=False)
        if window.begun:
            return Due(window, over=True)
        return Due(window, plan_scrub(situation) if inside else None)
    if scan.state == "paused":
        # Only a pause by the window is ended: a pause by the operator stays.
        seen = replace(window, begun=True)
        return Due(seen, plan_scrub(situation) if inside and window.paused else None)
    # ``paused`` is recorded before pausing: a crash in between must not leave the scrub paused.
    seen = replace(window, begun=True, paused=not inside)
    return Due(seen, None if inside else plan_pause(situation))


def read_hours(text: str) -> str:
    """Return the typed hours in normal form, like ``22:00-06:00``. Raises UsageError."""
    try:
        hours = day_hours(text)
    except ValueError:
        raise UsageError(f"{text}: not hours. Example: 22:00-06:00") from None
    if hours.start == hours.end:
        raise UsageError(f"{text} is the whole day: a scrub without hours runs all day")
    return str(hours)


def hours_words(window: ScrubWindow, state: str, local: datetime) -> str:
    """Return how the window's scrub fares, as a phrase.

    ``state`` is that of the scrub, empty if there is none that is running or paused; ``local`` is
    the machine's local time.
    """
    inside = day_hours(window.hours).includes(local)
    if not state and window.begun:
        return "its scrub has ended"
    if not state:  # inside, something may keep it from starting
        return "not started" if inside else f"starts at {window.begins}"
    if state != "paused" and not inside:
        return "outside its hours, will be paused"
    if state != "paused":
        return f"may run until {window.ends}"
    if not window.paused:
        return "paused by hand, stays paused"
    return "resumes now" if inside else f"paused until {window.begins}"


def hours_added(frame: Frame, window: ScrubWindow) -> Additions:
    """Return what a window adds to its pool's frame: the hours, and a line on how its scrub fares.

    A scrub that was paused by hand is not kept to the hours.
    """
    scrubs = (view.scan for view in frame.scans if view.scan.function == "scrub")
    state = next((scan.state for scan in scrubs if scan.active), "")
    words = hours_words(window, state, local_time(frame.t))
    by_hand = state == "paused" and not window.paused
    row = ActivityView(Activity(SCRUB_HOURS, window.hours, note=words))
    return Additions((row,), hours="" if by_hand else window.hours)


def plan_window(situation: Situation, hours: str | None = None) -> ActionPlan:
    """Plan to scrub only in these hours; None if the operator has not typed them yet."""
    shown = hours or "HH:MM-HH:MM"
    order = None if hours is None else opened(situation, hours)
    by_hand = ("zconsole", "scrub", "window", situation.pool.name, shown)
    plan = ActionPlan(
        action="scrub-window",
        title=f"Scrub {situation.pool.name} only in the hours {shown}",
        steps=(Step(by_hand, "keep to these hours", window=order),),
        consequences=(
            *(() if hours is None else (_now(situation, hours), *_takes(situation, hours))),
            "paused outside the hours; keeps its progress, also over a reboot",
            "a background process does it until this scrub ends; after a reboot, the next console"
            " starts that again, or the unit that resumes rebalances does, which keeps the hours,"
            " too (zconsole export --print rebalance-unit)",
        ),
        warnings=(
            "a replace, attach or resilver discards the scrub, also while it is paused",
            "a scrub resumed by hand outside the hours is paused again; scrub at any hour first",
        ),
        preconditions=(
            must.ANSWERING,
            must.release("pausing a scrub", (0, 8)),
            must.nothing_runs("resilver", "rebuild", "errorscrub"),
            Precondition(
                "the GUID of the pool is known",
                lambda now: None if now.guid else NO_GUID,
            ),
        ),
    )
    return decide(plan, situation)


def window_of(situation: Situation, windows: Iterable[ScrubWindow]) -> ScrubWindow | None:
    """Return the scrub window of the pool, or None."""
    return next((window for window in windows if window.guid in situation.guids), None)


def plan_beside_window(situation: Situation, windows: tuple[ScrubWindow, ...] = ()) -> ActionPlan:
    """Plan to start or resume a scrub, with a warning if a window would pause it."""
    made, window = plan_scrub(situation), window_of(situation, windows)
    if window is None:
        return made
    said = f"hours are set ({window.hours}): "
    is_inside = day_hours(window.hours).includes(local_time(situation.t))
    first, *rest = made.consequences
    pauses = f"at {window.ends}" if is_inside else "again"
    first = f"{first}; the hours set ({window.hours}) pause it {pauses}"
    if is_inside:
        said += f"the scrub runs until {window.ends}, then is paused until {window.begins}"
    else:
        said += "outside them the scrub is paused again; to scrub now,"
        said += " choose Scrub at any hour again first ("
        by_hand = shlex.join(("zconsole", "scrub", "off", situation.pool.name))
        said += KeyedText(by_hand, "{keys}", "scans") + ")"
    return replace(made, consequences=(first, *rest), warnings=(said, *made.warnings))


def plan_pause_beside_window(
    situation: Situation, windows: tuple[ScrubWindow, ...] = ()
) -> ActionPlan:
    """Plan to pause the scrub; say that a window does not resume it, if there is one."""
    made, window = plan_pause(situation), window_of(situation, windows)
    if window is None:
        return made
    stays = f"the hours set ({window.hours}) don't resume it: it stays paused until you do"
    return replace(made, consequences=(*made.consequences, stays))


def plan_stop_beside_window(
    situation: Situation, windows: tuple[ScrubWindow, ...] = ()
) -> ActionPlan:
    """Plan to cancel the scrub, and its hours, if any are set: they end with it."""
    made, window = plan_stop(situation), window_of(situation, windows)
    if window is None or made.refused is not None or situation.active("scrub") is None:
        return made
    drops = f"its hours ({window.hours}) are dropped, too"
    # Once stopped, it isn't paused any more.
    order = replace(window, pool=situation.pool.name, hours="", paused=False)
    return replace(
        made,
        steps=(*made.steps, _step_off(order, "drop its hours")),
        consequences=(*made.consequences, drops),
    )


def plan_window_off(situation: Situation, windows: tuple[ScrubWindow, ...]) -> ActionPlan:
    """Plan to let the scrub run at any hour again."""
    set_now = window_of(situation, windows)
    none = None if set_now else "no hours are set for its scrub"
    stays = "as it is"
    if is_paused(situation.active("scrub")):
        stays = "paused: resume it" + KeyedText("", " ({keys})", "scans")
    plan = ActionPlan(
        action="scrub-window",
        title=f"Scrub {situation.pool.name} at any hour again",
        steps=(_step_off(opened(situation, ""), "scrub at any hour again"),),
        consequences=(
            f"drops the hours{f' {set_now.hours}' if set_now else ''}; the scrub stays " + stays,
        ),
        preconditions=(Precondition("hours are set for its scrub", lambda _: none),),
    )
    return decide(plan, situation)


def _step_off(order: ScrubWindow, why: str) -> Step:
    """Return the step that drops the hours of a pool's scrub."""
    return Step(("zconsole", "scrub", "off", order.pool), why, window=order)


def opened(situation: Situation, hours: str) -> ScrubWindow:
    """Return a new window; a scrub that is paused now will resume in its hours."""
    scan = situation.active("scrub")
    began, paused = scan is not None, is_paused(scan)
    return ScrubWindow(situation.pool.name, situation.guid or "", hours, began, paused)


def _now(situation: Situation, hours: str) -> str:
    """Return the immediate effect as a sentence."""
    scan = situation.active("scrub")
    inside = day_hours(hours).includes(local_time(situation.t))
    start = opened(situation, hours).begins
    if inside:
        if scan is None:
            return "a scrub starts now"
        return "the scrub resumes now" if scan.state == "paused" else "the scrub goes on"
    if scan is None:
        return f"a scrub starts at {start}"
    if scan.state == "paused":
        return f"the scrub resumes at {start}"
    return f"the scrub is paused now, at {progress(scan)}, and resumes at {start}"


def _takes(situation: Situation, hours: str) -> tuple[str, ...]:
    """Return how many days a scrub takes in these hours if it needs as long as the last one."""
    scrubs = (scan for scan in situation.pool.scans if scan.function == "scrub")
    last = next((scan for scan in scrubs if scan.state == "finished"), None)
    taken = seconds_taken(last) if last is not None else None
    if last is None or taken is None:
        return ()
    ran = taken - (last.pass_paused or 0.0)
    until = day_hours(hours).until_worked(ran, local_time(situation.t))
    if until < DAY:
        return ()
    return (f"in these hours it ends in about {days(until)}: the last scrub took {duration(ran)}",)


DAY = 86400.0
LOCK, KEEPER = "scrub-windows.lock", "scrub-windows.keeper"
PATIENCE = 10.0
"""Seconds to wait while another process changes the file."""

Windows = dict[str, ScrubWindow]
"""Scrub windows by the GUID of their pool."""


@dataclass(frozen=True, slots=True)
class _File:
    windows: tuple[ScrubWindow, ...]
    version: int = 1


class MachineWindows:
    """The scrub windows of a machine, enforced by the keeper; every method may take seconds."""

    def __init__(
        self, directory: Path | None = None, wake: Callable[[], object] | None = None
    ) -> None:
        """``directory`` keeps the file (default: the state directory).

        ``wake`` starts the keeper of a simulated machine; with it, windows stay in memory.
        """
        place = directory or state_dir(create=False)
        self._wake = wake or partial(keeper.wake, place, KEEPER)
        path = None if wake else place / NAME
        self._file = LockedRecord(_File(()), path, LOCK, PATIENCE)

    def windows(self) -> tuple[ScrubWindow, ...]:
        """Return the windows, without a lock. Raises StateError for a damaged file."""
        return self._file.read().windows

    @contextlib.contextmanager
    def open(self) -> Iterator[Windows]:
        """Lock the windows for changes; written at the end if changed. Raises StateError."""
        with self._file.open() as write:
            before = self.windows()
            windows = {window.guid: window for window in before}
            yield windows
            if (after := tuple(windows.values())) != before:
                write(_File(after))

    def switch(self, order: ScrubWindow) -> str:
        """Set or drop a window; return a sentence that says so. Raises ZconsoleError, OSError."""
        with self.open() as windows:
            known = windows.pop(order.guid, None)
            if order.hours:
                # A scrub that was paused for other hours resumes in the new ones.
                paused = order.paused or (known is not None and known.paused)
                windows[order.guid] = replace(order, paused=paused)
        if order.hours:
            self._wake()
        return order.ordered

    def resume(self) -> None:
        """Start the keeper for existing windows, after a reboot or a crash.

        Raises ZconsoleError, OSError.
        """
        if self.windows():
            self._wake()

    def replaced(self, before: ScrubWindow, after: ScrubWindow | None) -> bool:
        """Replace a window by another, or remove it; return False if it had changed meanwhile."""
        with self.open() as windows:
            if windows.get(before.guid) != before:
                return False
            if after is None:
                del windows[before.guid]
            else:
                windows[after.guid] = after
            return True
