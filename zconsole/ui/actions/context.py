"""What every flow of actions works with, and what quitting amid them would leave behind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from zconsole.actions.backend import ActionBackend
from zconsole.actions.plan import ActionPlan
from zconsole.actions.scrub_window import hours_words
from zconsole.errors import ZconsoleError
from zconsole.pool.model import Activity
from zconsole.pool.scrub_window import ScrubWindow
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.timeline.feed import Feed
from zconsole.timeline.frame import AUTOPILOT, ActivityView, Frame
from zconsole.tunables.autopilot import Status
from zconsole.tunables.control import Past
from zconsole.tunables.holds import Scans, Setter, autopilot_promise, grouped, restored_later
from zconsole.ui.actions.follow_up import FollowUp
from zconsole.ui.display_format import DisplayFormat, percent
from zconsole.ui.swap.swap_watch import SwapWatch
from zconsole.ui.themed_app import ThemedApp
from zconsole.ui.widgets.draw import Span
from zconsole.units import counted, latency

_REACHED = 6
"""Cells of a latency."""


@dataclass(slots=True)
class UnderWay:
    """A plan that is being carried out, and how many of its commands have begun."""

    plan: ActionPlan
    begun: int = 0


def _of_plan(each: UnderWay) -> Iterator[Span]:
    yield Span(f"{each.plan.title} is running.", "bold")
    steps = each.plan.steps
    if each.begun:
        yield Span(f"$ {steps[each.begun - 1].command}", "bold")
        yield Span("It continues without the console; you won't be notified when it finishes.")
    rest = steps[each.begun :]
    if rest:
        yield Span(f"Won't run; run by hand ({len(rest)}):", "warning")
        yield from (Span(f"$ {step.command}", "bold") for step in rest)


@dataclass(slots=True)
class FlowContext:
    """The app that shows a flow's screens, and what acts on the pools it shows."""

    app: ThemedApp
    feed: Feed
    backend: ActionBackend
    watch: FollowUp
    why_denied: Callable[[], str]
    swaps: SwapWatch
    """The open checklists of disk swaps."""
    under_way: list[UnderWay] = field(default_factory=list)
    """Plans being carried out now."""
    told: dict[tuple[str, str], str] = field(default_factory=dict)
    """How the last one ended, in the words that were said, by pool and action."""
    past: Past = field(default_factory=Past)
    """What was set from consoles, as of the newest reading."""

    windows: tuple[ScrubWindow, ...] = ()
    """The hours of scrubs, as of the newest reading."""

    held: Status | None = None
    """What the autopilot does, as of the newest reading."""

    async def read_windows(self) -> None:
        """Read the hours of scrubs again; those of before where that cannot be."""
        with suppress(OSError, ZconsoleError):
            self.windows = await in_daemon_thread(self.backend.windows.windows)

    def hours_shown(self, frame: Frame) -> tuple[ActivityView, ...]:
        """The hours that a pool's scrub is kept to, among the work on the pool."""
        return tuple(
            ActivityView(Activity("scrub hours", window.hours, note=hours_words(window)))
            for window in self.windows
            if window.guid == frame.guid
        )

    async def read_held(self) -> None:
        """Read what the autopilot of the machine does; nothing where none runs."""
        with suppress(OSError, ZconsoleError):
            self.held = await self.backend.autopilots.status()

    def held_shown(self, frame: Frame) -> tuple[ActivityView, ...]:
        """The autopilot that steers the scan of a pool, among the work on it."""
        held = self.held
        if held is None or (held.pools and frame.seen.name not in held.pools):
            return ()
        waits, pace = self.watch.waits(), held.pace
        if held.misses(waits, frame.t):
            lost = self.lost(frame)
            pace = f"unreachable, rate -{percent(lost, 0)}" if lost else "scan can't go slower"
        note = f"{pace}; {self.look.keys.way('tunables', 'hold-latency')} stops it"
        # In a fixed width, so that what stands behind it does not move.
        reached = "few requests" if waits is None else f"{latency(waits):<{_REACHED}}"
        state = f"target {held.held}, now {reached}"
        return (ActivityView(Activity(AUTOPILOT, state, note=note), flag="AUTOPILOT"),)

    def lost(self, frame: Frame) -> float | None:
        """The share of its fastest rate that the scan of a pool lacks now; None where unknown."""
        now, best = frame.scan.issue_rate if frame.scan else None, self.watch.best_rate(frame)
        return None if now is None or best is None or now >= best else 1.0 - now / best

    def set_shown(self) -> tuple[str, ...]:
        """The flag of tunables that are set; what an autopilot sets has its own."""
        holds = self.past.holds
        count = sum(holds[name].by is not Setter.AUTOPILOT for name in self.past.in_place)
        return (f"{counted(count, 'tunable').upper()} SET",) if count else ()

    async def read_past(self) -> None:
        """Read what was set from consoles, again."""
        self.past = await in_daemon_thread(self.backend.control.past)

    def show_swaps(self) -> None:
        """Show the open checklists of swaps as they are now, without waiting for a sample."""
        state = self.app.view_state
        if (update := self.feed.joined()) is not None:
            state.latest = state.listed(update)
        self.app.paint()

    @property
    def denied(self) -> str:
        """Why nothing may be changed now; empty when it may."""
        return self.why_denied()

    @property
    def frame(self) -> Frame | None:
        """The newest frame of the pool on show."""
        return self.app.view_state.frame

    def frame_of(self, pool: str) -> Frame | None:
        """The newest frame of a pool."""
        return next((frame for frame in self.app.view_state.frames if frame.pool == pool), None)

    @property
    def look(self) -> DisplayFormat:
        """How sizes and times are written now."""
        return self.app.view_state.look

    def then(self, in_demo: str, otherwise: str) -> str:
        """What becomes of something when the console ends: a demo's machine ends with it."""
        source = self.app.view_state.source
        return in_demo if source is not None and "DEMO" in source.flags else otherwise

    def scans(self, ended: Iterable[str] = ()) -> Scans:
        """What the newest round shows of scans; ``ended``: pools whose scan was seen to end.

        A pool that does not answer may scan, and so may one that was not asked for.
        """
        state = self.app.view_state
        known = {
            frame.guid or frame.pool: frame
            for frame in state.frames
            if frame.absent or not frame.problem
        }
        active = {
            key: any(view.scan.active for view in frame.scans) and not frame.absent
            for key, frame in known.items()
        }
        return Scans(
            {key: known[key].pool for key, runs in active.items() if runs},
            {key: known[key].pool for key, runs in active.items() if not runs},
            tuple(key for key in ended if not active.get(key)),
            whole=not state.options.pools and len(known) == len(state.frames),
        )

    def left_behind(self) -> tuple[Span, ...]:
        """What quitting now means for plans under way, an autopilot, and tunables set from here.

        Empty when nothing is left behind.
        """
        said = [line for each in self.under_way for line in _of_plan(each)]
        if self.held is not None:
            then = autopilot_promise(bool(self.held.watch))
            said.append(Span(f"The autopilot (latency target {self.held.held}) {then}."))
        own = {name: self.past.holds[name] for name in self.past.own}
        for later, names in grouped(own, self.scans(), restored_later).items():
            said.extend(self._kept(later, names, any(own[name].until for name in names)))
        return tuple(said)

    def _kept(self, later: str, names: Sequence[str], at_end: bool) -> Iterator[Span]:
        """Tunables that this console holds and leaves in place when it ends."""
        one, way = len(names) == 1, self.look.keys.way
        stays = f"{counted(len(names), 'tunable')} set here stay{'s' * one} changed; {later}"
        yield Span(self.then(f"{stays} (not in this demo: it ends)", stays) + ".", "warning")
        at_end_too = f" when the scan ends: {way('tunables', 'restore-at-end')};" * (not at_end)
        yield Span(
            f"To restore {'it' if one else 'them'}: {way('tunables', 'restore')};{at_end_too}"
            " later: zconsole tunables restore."
        )
        yield Span(", ".join(names))

    def complain(self, problem: Exception | str) -> None:
        """Show what went wrong, as it is."""
        self.app.notify(str(problem), severity="error", markup=False)
