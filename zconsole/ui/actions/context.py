"""What every flow of actions works with, and what quitting amid them would leave behind."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace

from zconsole.actions.backend import ActionBackend
from zconsole.actions.plan import ActionPlan
from zconsole.actions.scrub_window import hours_words
from zconsole.errors import ZconsoleError
from zconsole.eta.estimate import nothing
from zconsole.history.views import ActivityView
from zconsole.monitor.frame import AUTOPILOT, Frame
from zconsole.pool.model import Activity
from zconsole.pool.scrub_window import ScrubWindow
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.tunables.autopilot import Status
from zconsole.tunables.control import Past
from zconsole.tunables.hold_latency import LEVERS
from zconsole.ui.actions.follow_up import FollowUp
from zconsole.ui.display_format import DisplayFormat
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
    backend: ActionBackend
    watch: FollowUp
    why_denied: Callable[[], str]
    swaps: SwapWatch = field(default_factory=SwapWatch)
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
        found = (window for window in self.windows if window.guid == frame.guid)
        return tuple(
            ActivityView(Activity("scrub hours", w.hours, note=hours_words(w)), None, nothing(""))
            for w in found
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
        waits = self.watch.waits()
        pace = "scan can't go slower" if held.misses(waits, frame.t) else held.pace
        note = f"{pace}; {self.look.keys.way('tunables', 'hold-latency')} stops it"
        # In a fixed width, so that what stands behind it does not move.
        reached = "few requests" if waits is None else f"{latency(waits):<{_REACHED}}"
        state = f"target {held.held}, now {reached}"
        return (ActivityView(Activity(AUTOPILOT, state, note=note), None, nothing("")),)

    def set_shown(self) -> tuple[str, ...]:
        """The flag of tunables that are set; what an autopilot sets has its own."""
        steered = LEVERS if self.held is not None else ()
        count = sum(name not in steered for name in self.past.in_place)
        return (f"{counted(count, 'tunable').upper()} SET",) if count else ()

    async def read_past(self) -> None:
        """Read what was set from consoles, again."""
        self.past = await in_daemon_thread(self.backend.control.past)

    def show_swaps(self) -> None:
        """Show the open checklists of swaps as they are now, without waiting for a sample."""
        state = self.app.view_state
        if state.latest is not None:
            frames = tuple(map(self.swaps.anew, state.latest.frames))
            state.latest = replace(state.latest, frames=frames)
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

    def left_behind(self) -> tuple[Span, ...]:
        """What quitting now means for plans under way, an autopilot, and tunables set from here.

        Empty when nothing is left behind.
        """
        said = [line for each in self.under_way for line in _of_plan(each)]
        if self.held is not None:
            ends = "ends with the console that started it, and restores the original values"
            goes_on = "goes on until the scans end, and restores the original values then"
            then = ends if self.held.watch else goes_on
            said.append(Span(f"The autopilot (latency target {self.held.held}) {then}."))
        frames = self.app.view_state.frames
        due = [name for frame in frames for name in self.past.due(frame.guid)]
        said.extend(self._kept(due))
        if names := ", ".join(due):
            said.append(
                Span(
                    f"{names}: restored at the end of the scan by a console that runs then;"
                    " without one, the value stays until the next console offers to restore it"
                    f" ({self.look.keys.way('tunables', 'restore')} does it now)",
                    "warning",
                )
            )
        return tuple(said)

    def _kept(self, due: Collection[str]) -> Iterator[Span]:
        """What was set from here and nothing restores; ``due`` goes back with a scan's end."""
        names = [name for name in self.past.own if name not in due]
        if not names:
            return
        one, way = len(names) == 1, self.look.keys.way
        what = f"{counted(len(names), 'tunable')} set here stay{'s' * one} changed"
        stays = f"{what} until the next boot"
        yield Span(self.then(f"{stays} (not in this demo: it ends)", stays) + ".", "warning")
        yield Span(
            f"To restore {'it' if one else 'them'}: {way('tunables', 'restore')}; when the scan"
            f" ends: {way('tunables', 'restore-at-end')}; later: zconsole tunables restore."
        )
        yield Span(", ".join(names))

    def complain(self, problem: Exception | str) -> None:
        """Show what went wrong, as it is."""
        self.app.notify(str(problem), severity="error", markup=False)
