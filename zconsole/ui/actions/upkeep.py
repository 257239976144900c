"""Recurring work of a console beside its flows: watches tunables, jobs, swaps and the autopilot.

It adds them to the frames, reports how actions ended, restores tunables that are due, and asks
before the console quits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from zconsole.actions.growth import plan_expand, space_gained
from zconsole.actions.scrub_window import hours_added
from zconsole.actions.target import key_of
from zconsole.errors import ExitCode, ZconsoleError
from zconsole.pool.model import Activity, data_vdevs
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.system.day_hours import day_hours, local_time
from zconsole.timeline.feed import Update
from zconsole.timeline.frame import AUTOPILOT, HELD_VDEVS, SET_HERE, ActivityView, Additions, Frame
from zconsole.tunables.control import Past, Restored
from zconsole.tunables.holds import (
    LEFT_BY,
    Hold,
    Scans,
    Setter,
    autopilot_promise,
    grouped,
    is_due,
    restored_later,
)
from zconsole.tunables.pilot import scanning
from zconsole.ui.actions.session import FlowSession, UnderWay
from zconsole.ui.dialogs.confirm import ConfirmScreen, question
from zconsole.ui.rebalance.job_watch import message_start
from zconsole.ui.themed_app import begin, begin_next
from zconsole.ui.widgets.draw import Span
from zconsole.units import counted, latency, percent

ALL_POOLS_SECONDS = 60.0
"""Seconds between two requests for all pools, for a console of some that would restore tunables."""
LOOK_SECONDS = 5.0
"""Seconds between two looks for tunables, jobs and swaps of other consoles, while idle."""
READ_SECONDS = 60.0
"""Seconds after which everything is reread without a sign of change: a read may have failed, and
files that are written in place do not change their directory."""
_REACHED = 6
"""Width of a latency in cells."""


class LeaveScreen(ConfirmScreen):
    """Asks whether to quit, and lists the work that goes on or ends then."""


class Upkeep(FlowSession):
    """The session of a console: beside its flows, it watches what is kept on this machine."""

    _looked = _read = float("-inf")
    """Times of the last look, and of the last full read (seconds of the steady clock)."""
    _mark: object = None
    """The change mark at the last full read."""
    _asked_all = float("-inf")
    """Time of the last request for all pools (seconds of the steady clock)."""
    _over: frozenset[str] = frozenset()
    """Pools whose scan has ended since the last look at the tunables."""
    _left_reported = ""
    """Last message about tunables that should have been restored."""

    def take(self, update: Update) -> None:
        """Process a round before it is shown: report ended plans, and look for changes if due."""
        self.follow_up.take(update)
        self.effects.take(update)
        for followed, outcome in self.follow_up.ended(self.under_way):
            self.ended(followed, outcome)
            if outcome.ok and followed.plan.action == "replace":
                offer = partial(self._offer_growth, followed.plan.pool)
                # The pool may be gone by then, which must not end the console.
                begin(self.app, offer, group="growth", exit_on_error=False)
        if over := [frame.guid or frame.pool for frame in self.follow_up.scans_over()]:
            self._over |= set(over)
            begin_next(self.app, self.look_at_tunables, "tuned")
        now, idle = self.backend.steady(), self.app.main_on_top and not self.jobs.live
        # A look costs as much as a sample, and finds little.
        if not idle or not 0 <= now - self._looked < LOOK_SECONDS:
            self._looked = now
            begin_next(self.app, partial(self._look, update), "look")

    # Additions to the frames

    def additions(self, frame: Frame) -> Additions:
        """Return the activities, events and flags of consoles and jobs for a pool's frame."""
        pool = frame.pool
        jobs, swaps = self.jobs.shown(pool, frame.t), self.swaps.shown(frame)
        scrub = self._scrub_hours(frame)
        set_here = self.effects.events(frame, self.past.changes)
        events = (*set_here, *self.follow_up.events(pool))
        holds = self.past.holds  # the autopilot has a flag of its own
        ours = [n for n in self.past.in_place if holds[n].by is not Setter.AUTOPILOT]
        return Additions(
            activities=(
                *jobs,
                *swaps,
                *scrub.activities,
                *self._held_vdevs(frame),
                *self._autopilot(frame),
                *self._set_here(frame),
            ),
            events=tuple(event for event in events if event.t <= frame.t),
            flags=(f"{counted(len(ours), 'tunable').upper()} SET",) if ours else (),
            pulled=self.swaps.pulled(pool),
            hours=scrub.hours,
            set_here=tuple(ours),
            predicted=self.follow_up.predicted(frame),
        )

    def _scrub_hours(self, frame: Frame) -> Additions:
        """Return the hours to which the pool's scrub keeps, and their line; nothing without any."""
        window = next((w for w in self.windows if w.guid == frame.guid), None)
        if window is None:
            return Additions()
        scrubs = (view.scan for view in frame.scans if view.scan.function == "scrub")
        since = next((scan.paused_since for scan in scrubs if scan.active), None)
        inside = day_hours(window.hours).includes(local_time(frame.t))
        # What pauses it is written before it is paused: only a later reading tells who did. ZFS
        # gives the time of the pause in whole seconds.
        if not inside and since is not None and self.windows_read < since + 1.0:
            window = replace(window, paused=True)
        return hours_added(frame, window)

    def _held_vdevs(self, frame: Frame) -> Iterator[ActivityView]:
        """Yield a line for each job that keeps full vdevs of this pool from new writes."""
        for held in self.held:
            if held.pool == frame.seen.name and held.ours:
                note = f"{', '.join(held.ours)} until job {held.job} ends, or pauses for an hour"
                yield ActivityView(Activity(HELD_VDEVS, "off", note=note))

    def _autopilot(self, frame: Frame) -> tuple[ActivityView, ...]:
        """Return the activity line of the autopilot, if it steers the scan of this pool."""
        held = self.autopilot
        if held is None or (held.pools and frame.seen.name not in held.pools):
            return ()
        waits, pace = self.effects.latency(), held.pace
        if held.misses(waits, frame.t):
            lost = self.effects.rate_lost(frame)
            pace = f"unreachable, rate -{percent(lost)}" if lost else "scan can't go slower"
        note = f"{pace}; {self.look.keys.shown('tunables', 'hold-latency')} stops it"
        # A fixed width keeps the text behind it from moving.
        reached = "few requests" if waits is None else f"{latency(waits):<{_REACHED}}"
        state = f"target {held.held}, now {reached}"
        return (ActivityView(Activity(AUTOPILOT, state, note=note), flag="AUTOPILOT"),)

    def _set_here(self, frame: Frame) -> tuple[ActivityView, ...]:
        """Return the activity line of tunables set from here, while no scan line mentions them."""
        names = self.past.in_place
        if not names or any(view.scan.active for view in frame.scans):
            return ()
        note = f"{len(names)} ({self.look.keys.shown('tunables')} lists them)"
        return (ActivityView(Activity("tunables", SET_HERE, note=note)),)

    # Looking

    def reread_soon(self) -> None:
        """Look at everything with the next round, as a flow may have changed it."""
        self._looked = self._read = float("-inf")

    async def _look(self, update: Update) -> None:
        """Reread everything if it may have changed, else only what is known already.

        On most machines nothing is kept, and this only stats a few directories in a thread.
        """
        backend = self.backend
        mark = await in_daemon_thread(backend.change_mark) if backend.change_mark else None
        now = backend.steady()
        changed = mark is None or mark != self._mark or now - self._read >= READ_SECONDS
        if changed and self.app.main_on_top:  # otherwise swaps and windows are not read
            self._mark, self._read = mark, now
        if changed or self.past != Past():
            begin_next(self.app, self.look_at_tunables, "tuned")
        if changed or self.autopilot is not None:
            begin_next(self.app, self.read_autopilot, "autopilot")
        if changed or self.jobs.may_change({frame.pool for frame in update.frames}):
            begin_next(self.app, partial(self._look_at_jobs, update), "jobs")
        if self.app.main_on_top:  # only the main screen shows them
            if changed or self.swaps.may_change:
                begin_next(self.app, self._look_at_swaps, "swaps")
            if changed:
                begin_next(self.app, self.read_windows, "windows")

    async def _look_at_jobs(self, update: Update) -> None:
        for frame in update.frames:
            for news in await self.jobs.look(frame.pool):
                self.app.notify(news.text, severity=news.severity, timeout=15, about=news.job)

    async def _look_at_swaps(self) -> None:
        if text := await self.swaps.look():
            self.app.notify(text, severity="warning", timeout=15)

    async def look_at_tunables(self) -> None:
        """Restore tunables that are due, and report them and those that a vanished console left."""
        await self.read_past()
        # More scans may end while this waits.
        over, scans, holds = self._over, self.scans(self._over), self.past.holds
        left = {name: hold for name, hold in holds.items() if hold.is_left}
        # A console of some pools does not see whether the others scan.
        if left and self.app.view_state.options.pools and not self.denied:
            scans = await self._with_every_pool(scans)
        due = [name for name, hold in holds.items() if is_due(hold, scans)]
        if not self.denied and (due or left):
            try:
                # This writes to the kernel, and may wait for a lock that another process holds.
                done = await in_daemon_thread(
                    partial(self.backend.control.settle, self.backend.clock(), scans)
                )
            except (OSError, ZconsoleError) as error:
                keys = self.look.keys.shown("tunables", "restore")
                self._report_left(
                    f"{', '.join(due)} not restored: {error}. To retry: {keys}.", True
                )
                return
            await self.read_past()
            if said := _settled(done, holds):
                self.app.notify(said, timeout=20)
            left = {name: hold for name, hold in left.items() if name in self.past.holds}
        stays = [f"{', '.join(names)}: {text}" for text, names in grouped(left, scans).items()]
        if stays and self.denied:
            by_hand = "To restore now: zconsole tunables restore"
            stays.append(f"not by this console ({self.denied}). {by_hand}")
        self._report_left("; ".join(stays))
        self._over -= over

    async def _with_every_pool(self, scans: Scans) -> Scans:
        """Return the scans with all pools taken into account, for a console that shows some."""
        now = self.backend.steady()
        if scans.running or 0 <= now - self._asked_all < ALL_POOLS_SECONDS:
            return scans
        self._asked_all = now
        pools, whole = await self.backend.every_pool()
        return replace(scans, whole=True) if whole and not scanning(pools) else scans

    def _report_left(self, text: str, failed: bool = False) -> None:
        """Report tunables that are not restored; the same message only once."""
        if text and text != self._left_reported:
            self.app.notify(text, severity="error" if failed else "warning", timeout=20)
        self._left_reported = text

    async def tidy_lights(self) -> None:
        """Switch off lights whose time is over, relight others after a reboot, and report it."""
        if self.denied:
            return
        try:
            said = await in_daemon_thread(self.backend.lights.tidy)
        except (OSError, ZconsoleError) as error:
            said = (f"lights of bays: {error}",)
        resumed = (
            ("hours of scrubs", self.backend.windows.resume),
            ("full vdevs", self.backend.holds.resume),
        )
        for what, resume in resumed:
            try:
                await in_daemon_thread(resume)
            except (OSError, ZconsoleError) as error:
                said = (*said, f"{what}: {error}")
        for text in said:
            self.app.notify(text, timeout=15)

    async def _offer_growth(self, pool: str) -> None:
        """After a vdev's last disk was replaced by a larger one, report the space it could gain."""
        situation = await self.refresher()(pool, self.backend.steady())
        for top in data_vdevs(situation.pool.root):
            key = key_of(situation.pool, top)
            plan = plan_expand(situation, key) if key else None
            if plan is not None and plan.refused is None and space_gained(situation, top):
                key = self.look.keys.shown("actions")
                gain = f"{plan.title}: {plan.consequences[0]}. Select it, then press {key}."
                self.report_outcome(pool, gain)

    # Quitting

    def asks_to_leave(self, code: ExitCode) -> bool:
        """Ask whether to quit with ``code`` if work would be left behind; return whether it asks.

        It doesn't ask again over its own question: pressing the keys twice confirms.
        """
        behind = self.left_behind()
        if not behind or isinstance(self.app.screen, LeaveScreen):
            return False

        async def _quit() -> None:
            self.app.exit(return_code=code)

        self.app.push_screen(LeaveScreen([question("Quit?", behind, _quit, verb="Quit")]))
        return True

    def left_behind(self) -> tuple[Span, ...]:
        """Return how quitting affects plans, an autopilot, tunables set here, jobs and swaps.

        Empty if nothing is left behind.
        """
        said = [line for each in self.under_way for line in _about_run(each)]
        if (held := self.autopilot) is not None:
            then = autopilot_promise(bool(held.watch))
            said.append(Span(f"The autopilot (latency target {held.held}) {then}."))
        own = {name: self.past.holds[name] for name in self.past.own}
        for later, names in grouped(own, self.scans(), restored_later).items():
            said.extend(self._kept(later, names, any(own[name].until for name in names)))
        shown = self.look.keys.shown
        for job in self.jobs.live:
            goes_on = "goes on in the background"
            then = self._then(f"ends with this demo; a real one {goes_on}", goes_on)
            text = f"{message_start(job.job)}is {job.state}; it {then}."
            text += f" {shown('rebalance')} lists it, {shown('stop')} stops it."
            said.append(Span(text))
        for swap in self.swaps.open:  # kept on disk, unless it is simulated
            ends = f"The swap of {swap.old.words} ends with this demo; a real one is kept, and"
            text = self._then(f"{ends} {shown('swap')} continues it in the next console.", "")
            said += [Span(text)] * bool(text)
        return tuple(said)

    def _kept(self, later: str, names: Sequence[str], at_end: bool) -> Iterator[Span]:
        """Yield lines on the tunables that this console holds and leaves changed when it ends."""
        one, way = len(names) == 1, self.look.keys.shown
        stays = f"{counted(len(names), 'tunable')} set here stay{'s' * one} changed; {later}"
        yield Span(self._then(f"{stays} (not in this demo: it ends)", stays) + ".", "warning")
        at_end_too = f" when the scan ends: {way('tunables', 'restore-at-end')};" * (not at_end)
        yield Span(
            f"To restore {'it' if one else 'them'}: {way('tunables', 'restore')};{at_end_too}"
            " later: zconsole tunables restore."
        )
        yield Span(", ".join(names))

    def _then(self, in_demo: str, otherwise: str) -> str:
        """Return the text that applies: in a demo, the simulated machine ends with the console."""
        source = self.app.view_state.source
        return in_demo if source is not None and "DEMO" in source.flags else otherwise


def _about_run(run: UnderWay) -> Iterator[Span]:
    """Yield lines on a plan that is being carried out, for the question before the console ends.

    The command that runs goes on; those after it, which the console would have begun, don't.
    """
    yield Span(f"{run.plan.title} is running.", "bold")
    steps = run.plan.steps
    if run.begun:
        yield Span(f"$ {steps[run.begun - 1].command}", "bold")
        yield Span("It continues without the console; you won't be notified when it finishes.")
    rest = steps[run.begun :]
    if rest:
        yield Span(f"Won't run; run by hand ({len(rest)}):", "warning")
        yield from (Span(f"$ {step.command}", "bold") for step in rest)


def _settled(restored: Sequence[Restored], before: Mapping[str, Hold]) -> str:
    """Return one message on all restored tunables."""
    own = [each for each in restored if before[each.name].own]
    lines = [f"{each.name} {each.text}" for each in own]
    for gone in dict.fromkeys(LEFT_BY.values()):
        left = [r for r in restored if r not in own and LEFT_BY[before[r.name].by] == gone]
        texts = ", ".join(f"{each.name} {each.text}" for each in left)
        lines += [f"Left by {gone} that is gone: {texts}"] if left else []
    return "\n".join(lines)
