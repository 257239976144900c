"""What acts on the pools a console shows: it asks, plans, has confirmed, runs and follows.

It takes as long to load as all that only looks, so the console loads it after its first paint.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from zconsole.actions.growth import plan_expand, space_gained
from zconsole.actions.plan import ActionOutcome, ActionPlan, Situation
from zconsole.actions.target import key_of
from zconsole.errors import ExitCode, ZconsoleError
from zconsole.pool.model import Activity
from zconsole.pool.topology import data_vdevs
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.timeline.feed import Update
from zconsole.timeline.frame import OUTCOME, SET_HERE, ActivityView, Additions, Frame
from zconsole.tunables.control import Past, Restored
from zconsole.tunables.holds import LEFT_BY, Hold, Scans, grouped, is_due
from zconsole.tunables.pilot import scanning
from zconsole.ui.actions.asking import (
    confirm,
    executor_of,
    frame_look,
    picked,
    situation_now,
    situation_shown,
)
from zconsole.ui.actions.context import FlowContext
from zconsole.ui.actions.log_flow import log_flow
from zconsole.ui.actions.menu import (
    Entry,
    change_disk,
    entry_about,
    first_entry,
    menu_lines,
    out_of_reach,
    row_entries,
    scan_entries,
)
from zconsole.ui.actions.plan_lines import said_lines
from zconsole.ui.actions.tunables_flow import tunables_flow
from zconsole.ui.actions.wizards import replace_flow
from zconsole.ui.background import begin, begin_next
from zconsole.ui.dialogs.confirm import Confirmation, ConfirmScreen
from zconsole.ui.dialogs.screens import PickScreen
from zconsole.ui.rebalance.job_watch import JobWatch, News, told_of
from zconsole.ui.widgets.draw import Span

if TYPE_CHECKING:
    from textual.notifications import SeverityLevel

    from zconsole.ui.rebalance.flow import RebalanceFlow


ALL_POOLS_SECONDS = 60.0
"""How often a console of some pools asks for the scans of others before it restores tunables."""
LOOK_SECONDS = 5.0
"""How often it looks for what other consoles set, and for jobs, while it knows of none at work."""
READ_SECONDS = 60.0
"""How often it reads all of that though no change was seen: a read may have failed, and files that
are written in place show none."""


class LeaveScreen(ConfirmScreen):
    """Asks whether to quit, and says what goes on then, and what does not."""


class ActionController:
    """Acts for one console, with the backend of its machine."""

    def __init__(self, context: FlowContext) -> None:
        self.context = context
        self.jobs = JobWatch(context.backend.rebalance_backend, self._keep)
        self._looked = self._read = float("-inf")
        """When it last looked, and last read everything, in steady seconds."""
        self._mark: object = None
        """What told changes when it last read everything."""
        self._asked_all = float("-inf")
        """When it last asked for all pools, in steady seconds."""
        self._ended: set[str] = set()
        """Pools whose scan has ended since the tunables were looked at."""
        self._told_left = ""
        """What was said last of tunables that were to be restored and are not."""

    def take(self, update: Update) -> None:
        """See a round before it is shown: report what ended, look at what consoles and jobs do."""
        app, watch = self.context.app, self.context.watch
        watch.take(update)
        for plan, outcome in watch.ended():
            self._report(plan, outcome)
        if over := [frame.guid or frame.pool for frame in watch.scans_over()]:
            self._ended.update(over)
            begin_next(app, self.look_at_tunables, "tuned")
        if self._is_time():
            if self.context.backend.change_mark is None:
                self._read_kept(update)
            else:
                begin_next(app, partial(self._look, update), "look")

    def additions(self, frame: Frame) -> Additions:
        """What consoles and jobs do to a pool, for its frame."""
        context = self.context
        jobs, swaps = self.jobs.shown(frame.pool), context.swaps.shown(frame)
        hours, held = context.hours_shown(frame), context.held_shown(frame)
        return Additions(
            activities=(*jobs, *swaps, *hours, *held, *self._set_here(frame)),
            events=tuple(context.watch.events(frame, context.past.changes)),
            flags=context.set_shown(),
            pulled=context.swaps.pulled(frame.pool),
        )

    def _is_time(self) -> bool:
        """Whether to look now: each look costs as much as a sample, and mostly finds nothing."""
        now = self.context.backend.steady()
        idle = self.context.app.main_on_top and not self.jobs.live
        if idle and 0 <= now - self._looked < LOOK_SECONDS:
            return False
        self._looked = now
        return True

    async def _look(self, update: Update) -> None:
        """Read what is kept where it may have changed, else only what changes by itself.

        On most machines nothing is kept: one thread asks for the times of a few directories.
        """
        backend = self.context.backend
        mark = await in_daemon_thread(backend.change_mark) if backend.change_mark else None
        now = backend.steady()
        changed = mark is None or mark != self._mark or now - self._read >= READ_SECONDS
        if changed and self.context.app.main_on_top:  # else not all of it is read
            self._mark, self._read = mark, now
        self._read_kept(update, changed)

    def _read_kept(self, update: Update, changed: bool = True) -> None:
        """Read what consoles and jobs left; without a change only of what they know something."""
        app, context = self.context.app, self.context
        if changed or context.past != Past():
            begin_next(app, self.look_at_tunables, "tuned")
        if changed or context.held is not None:
            begin_next(app, context.read_held, "autopilot")
        if changed or self.jobs.may_change({frame.pool for frame in update.frames}):
            begin_next(app, partial(self._look_at_jobs, update), "jobs")
        if app.main_on_top:  # the one place that shows them
            if changed or context.swaps.may_change:
                begin_next(app, self._look_at_swaps, "swaps")
            if changed:
                begin_next(app, context.read_windows, "windows")

    async def _look_at_jobs(self, update: Update) -> None:
        for frame in update.frames:
            for news in await self.jobs.look(frame.pool):
                self.context.app.notify(news.text, severity=news.severity, timeout=15, markup=False)

    def _keep(self, pool: str, news: News) -> None:
        """Put what happened to a job among the events of its pool."""
        severity = "warning" if news.severity == "warning" else "notice"
        now = self.context.backend.clock()
        self.context.watch.did(pool, now, news.text, OUTCOME, severity)

    async def _look_at_swaps(self) -> None:
        if text := await self.context.swaps.look():
            said = self.context.look.said(text)
            self.context.app.notify(said, severity="warning", timeout=15, markup=False)

    def _set_here(self, frame: Frame) -> tuple[ActivityView, ...]:
        """The tunables that were set, while no scan tells of them."""
        names = self.context.past.in_place
        if not names or any(view.scan.active for view in frame.scans):
            return ()
        note = f"{len(names)} ({self.context.look.keys.way('tunables')} lists them)"
        return (ActivityView(Activity("tunables", SET_HERE, note=note)),)

    async def look_at_tunables(self) -> None:
        """Restore tunables that are due, and say so; say what a console left that is gone."""
        context, backend = self.context, self.context.backend
        await context.read_past()
        ended, scans, holds = set(self._ended), context.scans(self._ended), context.past.holds
        left = {name: hold for name, hold in holds.items() if hold.is_left}
        if left and context.app.view_state.options.pools and not context.denied:
            scans = await self._of_all(scans)
        due = [name for name, hold in holds.items() if is_due(hold, scans)]
        if not context.denied and (due or left):
            try:
                done = await in_daemon_thread(
                    partial(backend.control.settle, backend.clock(), scans)
                )
            except (OSError, ZconsoleError) as error:
                keys = context.look.keys.way("tunables", "restore")
                self._tell_left(f"{', '.join(due)} not restored: {error}. To retry: {keys}.", True)
                return
            await context.read_past()
            if said := _settled(done, holds):
                context.app.notify(said, timeout=20, markup=False)
            left = {name: hold for name, hold in left.items() if name in context.past.holds}
        stays = [f"{', '.join(names)}: {text}" for text, names in grouped(left, scans).items()]
        if stays and context.denied:
            by_hand = "To restore now: zconsole tunables restore"
            stays.append(f"not by this console ({context.denied}). {by_hand}")
        self._tell_left("; ".join(stays))
        self._ended -= ended

    async def _of_all(self, scans: Scans) -> Scans:
        """What is known of scans once this console of some pools has asked about the others."""
        now = self.context.backend.steady()
        if scans.running or 0 <= now - self._asked_all < ALL_POOLS_SECONDS:
            return scans
        self._asked_all = now
        pools, whole = await self.context.backend.every_pool()
        return replace(scans, whole=True) if whole and not scanning(pools) else scans

    def _tell_left(self, text: str, failed: bool = False) -> None:
        """Tell of tunables that are not restored; once, not at every look."""
        if text and text != self._told_left:
            severity: SeverityLevel = "error" if failed else "warning"
            self.context.app.notify(text, severity=severity, timeout=20, markup=False)
        self._told_left = text

    async def tidy_lights(self) -> None:
        """Put back lights whose time is over, light the others again after a reboot; say which."""
        if self.context.denied:
            return
        try:
            said = await in_daemon_thread(self.context.backend.lights.tidy)
        except (OSError, ZconsoleError) as error:
            said = (f"lights of bays: {error}",)
        try:
            await in_daemon_thread(self.context.backend.windows.resume)
        except (OSError, ZconsoleError) as error:
            said = (*said, f"hours of scrubs: {error}")
        for text in said:
            self.context.app.notify(text, timeout=15, markup=False)

    # Flows

    async def run(self, flow: str, key: str) -> None:
        """Go through one flow, about the row of this key. Raises ZconsoleError."""
        context = self.context
        flows: dict[str, Callable[[], Awaitable[object]]] = {
            "actions": partial(
                self._menu, "ACTIONS", partial(row_entries, key=key), key, folds=True
            ),
            "scans": partial(
                self._menu, "Scrub and resilver", lambda s: scan_entries(s, context.windows)
            ),
            "replace": partial(replace_flow, context, key),
            "tunables": partial(tunables_flow, context),
            "rebalance": self._rebalance,
            "swap": partial(change_disk, context, key),
            "log": partial(log_flow, context),
        }
        try:
            await flows[flow]()
        finally:
            self._looked = self._read = float("-inf")  # what it did is to be seen at once

    async def _rebalance(self) -> None:
        """Rebalance the pool on show: its jobs, and new ones."""
        flow = await in_daemon_thread(_rebalance_flow)
        if (frame := self.context.frame) is not None:
            await flow(self.context, self.jobs, frame.pool).run()

    def asks_to_leave(self, code: ExitCode) -> bool:
        """Ask whether to quit, with ``code``, where something is left behind; whether it does.

        Over the question itself it doesn't: whoever presses the keys again means it.
        """
        context = self.context
        behind, look = (*context.left_behind(), *self._jobs_behind()), context.look
        if not behind or isinstance(context.app.screen, LeaveScreen):
            return False

        async def _quit(_: str | None) -> AsyncIterator[Span]:
            context.app.exit(return_code=code)
            yield Span("")

        body = partial(said_lines, behind, look)
        confirmation = Confirmation("Quit?", body, _quit, verb="Quit")
        context.app.push_screen(LeaveScreen([confirmation], look))
        return True

    def _jobs_behind(self) -> Iterator[Span]:
        """What becomes of the jobs at work when the console ends."""
        for job in self.jobs.live:
            goes_on = "goes on in the background"
            then = self.context.then(f"ends with this demo; a real one {goes_on}", goes_on)
            yield Span(
                f"{told_of(job.job)}is {job.state}; it {then}. B shows it, X there stops it."
            )

    # Inside

    async def _menu(
        self,
        title: str,
        entries: Callable[[Situation], tuple[Entry, ...]],
        key: str = "",
        folds: bool = False,
    ) -> None:
        """List what can be done; ``key`` is of the row that its flows are about.

        What is left without having been run leads back here.
        """
        row: int | None = None
        while (chosen := await self._pick(title, entries, row, folds)) is not None:
            row, entry = chosen
            if entry.flow is not None:
                is_done = await entry.flow(self.context, key)
            else:
                is_done = await confirm(self.context, entry.planners)
            if is_done:
                return

    async def _pick(
        self,
        title: str,
        entries: Callable[[Situation], tuple[Entry, ...]],
        row: int | None,
        folds: bool,
    ) -> tuple[int, Entry] | None:
        """Show the entries at once, and which of them can be done once the machine has answered.

        Where it ``folds``, what can't be done stands behind one line.
        """
        context, look = self.context, self.context.look
        shown = situation_shown(context)
        found = entries(shown)
        start = first_entry(found) if row is None else row
        behind = out_of_reach(found) if folds else ()
        found = tuple(entry.unjudged for entry in found)

        async def _judge() -> int:
            nonlocal found, behind
            asked = situation_now(context, shown=shown)
            now, _ = await asyncio.gather(asked, context.read_windows())
            found = entries(now)
            behind = out_of_reach(found) if folds else ()
            return first_entry(found) if row is None else row

        screen = PickScreen(
            title,
            lambda width: menu_lines(found, look, width),
            start=start,
            wide=True,
            about=lambda index, width: entry_about(found, index, look, width),
            fill=_judge,
            offers=lambda index: [("command", text) for text in found[index].commands],
            behind=lambda: behind,
            rest="that are not possible now",
        )
        index = await picked(context, screen)
        return None if index is None else (index, found[index])

    def _report(self, plan: ActionPlan, outcome: ActionOutcome) -> None:
        executor_of(self.context).ended(plan, outcome)
        said = outcome.text if outcome.ok else f"{plan.title}: {outcome.text}"
        if plan.action == "scrub":  # of devices, what became of one goes on being true
            self.context.told[plan.pool, plan.action] = said
        self._tell(plan.pool, said, ok=outcome.ok)
        if outcome.ok and plan.action == "replace":
            offer = partial(self._offer_growth, plan.pool)
            begin(self.context.app, offer, group="growth", exit_on_error=False)

    def _tell(self, pool: str, text: str, *, ok: bool = True) -> None:
        """Say it now, and keep it among the events for who looks later."""
        severity = "notice" if ok else "error"
        self.context.watch.did(pool, self.context.backend.clock(), text, OUTCOME, severity)
        self.context.app.notify(
            text, timeout=20, markup=False, severity="information" if ok else "error"
        )

    async def _offer_growth(self, pool: str) -> None:
        """After the last disk of a vdev was replaced by a larger one: say what it could gain."""
        situation = await frame_look(self.context)(pool, self.context.backend.steady())
        for top in data_vdevs(situation.pool.root):
            key = key_of(situation.pool, top)
            plan = plan_expand(situation, key) if key else None
            if plan is not None and plan.refused is None and space_gained(situation, top):
                key = self.context.look.keys.way("actions")
                gain = f"{plan.title}: {plan.consequences[0]}. Select it, then press {key}."
                self._tell(pool, gain)


def _settled(restored: Sequence[Restored], before: Mapping[str, Hold]) -> str:
    """What was restored, in one message."""
    own = [each for each in restored if before[each.name].own]
    lines = [f"{each.name} {each.text}" for each in own]
    for gone in dict.fromkeys(LEFT_BY.values()):
        left = [r for r in restored if r not in own and LEFT_BY[before[r.name].by] == gone]
        texts = ", ".join(f"{each.name} {each.text}" for each in left)
        lines += [f"Left by {gone} that is gone: {texts}"] if left else []
    return "\n".join(lines)


def _rebalance_flow() -> type[RebalanceFlow]:
    """The screens of a rebalance; they take a moment to load."""
    from zconsole.ui.rebalance.flow import RebalanceFlow

    return RebalanceFlow
