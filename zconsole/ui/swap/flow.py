"""The way into a swap: continue an open one, else choose the disk and the way; then its screen."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from zconsole.actions.doubts import doubts
from zconsole.actions.plan import Situation
from zconsole.actions.target import Target, find
from zconsole.errors import ZconsoleError
from zconsole.hardware.links import PARTITION
from zconsole.pool.redundancy import REPAIRS
from zconsole.scan_report.report import ScanReport
from zconsole.scan_report.resilver_time import pace_of_past, pace_of_running
from zconsole.swap.backend import SwapBackend
from zconsole.swap.checklist import TITLES, WAYS, Checklist
from zconsole.swap.choice import SwapChoice, SwapWay, choose
from zconsole.swap.disk import SwapDisk, disk_of_leaf
from zconsole.swap.names import free_to_go, proposed
from zconsole.swap.session import SwapSession
from zconsole.swap.several import estimated, seconds_of
from zconsole.swap.view import MachineView
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.timeline.eta.estimate import Estimate
from zconsole.timeline.frame import Frame
from zconsole.ui.actions.context import FlowContext
from zconsole.ui.actions.plan_lines import wrapped
from zconsole.ui.dialogs.confirm import Confirmation, ConfirmScreen
from zconsole.ui.dialogs.screens import PickScreen
from zconsole.ui.swap.choice_lines import choice_lines
from zconsole.ui.swap.followed import FollowedSwap, peeked, session_of
from zconsole.ui.swap.several_flow import begin_together, order_choices
from zconsole.ui.swap.swap_screen import DemoSwapScreen, SwapScreen
from zconsole.ui.widgets.draw import Line, Span, crop


async def swap_flow(context: FlowContext, key: str) -> None:
    """Lead through the swap of the device of a row, or go on with one. Raises ZconsoleError."""
    frame = context.frame
    if frame is None:
        raise ZconsoleError("no pool was sampled yet; try again in a moment")
    if pools := context.app.view_state.options.pools:
        # A disk may hold other pools too, and a wrong disk be one of theirs.
        raise ZconsoleError(
            "a swap looks at every pool of the machine: start zconsole without pool names, or run"
            f" zconsole swap {pools[0]}"
        )
    await context.swaps.look(partial(peeked, context))
    await SwapFlow(context, context.swaps.backend, frame, key).run()


@dataclass(slots=True)
class SwapFlow:
    """Everything behind one key press, on the pool that is shown then."""

    context: FlowContext
    backend: SwapBackend
    frame: Frame
    key: str
    begun: Checklist | None = field(default=None, init=False)
    """The checklist that was begun here."""
    listed: str | None = field(default=None, init=False)
    """The device that was chosen from a list, which Esc goes back to."""

    async def run(self) -> None:
        """Find the checklist that is meant, or begin one; then its screen."""
        swaps = self.context.swaps
        known = (*swaps.of(self.frame), *swaps.unfiled(self.frame))
        mine = next((c for c in known if c.old.key == self.key or self._fills(c)), None)
        if mine is None and known:
            mine = await self._open_or_new(known)
        elif mine is None:
            mine = await self._new()
        then = None if mine is None else await self._follow(mine)
        frame = None if then is None else self.context.frame_of(then.pool)
        if then is not None and frame is not None:
            await SwapFlow(self.context, self.backend, frame, then.key).run()

    async def _open_or_new(self, known: Sequence[Checklist]) -> Checklist | None:
        """One of those that are open, or a new one for the row at the cursor."""
        leaf = self._leaf()
        if len(known) == 1 and leaf is None:
            return known[0]
        swaps = self.context.swaps
        rows = [f"Continue: {swaps.alarm(c) or _where(c)}" for c in known]
        rows += [f"Begin another: {leaf}"] if leaf else []
        start = 0
        while (picked := await self._pick("SWAP", rows, start=start)) is not None:
            start = picked
            made = known[picked] if picked < len(known) else await self._new()
            if made is not None:
                return made
        return None

    def _fills(self, c: Checklist) -> bool:
        """Whether the device at the cursor is the new disk of a checklist."""
        vdev = next((row.vdev for row in self.frame.rows if row.key == self.key), None)
        if c.new is None or vdev is None or vdev.children:
            return False
        serial = vdev.disk.serial if vdev.disk else ""
        return PARTITION.sub("", vdev.path or "") == c.new.whole or serial == c.new.serial != ""

    def _leaf(self) -> str | None:
        """The name of the device at the cursor; None where the row is none."""
        vdevs = (row.vdev for row in self.frame.rows if row.key == self.key)
        return next((vdev.name for vdev in vdevs if not vdev.children), None)

    async def _new(self) -> Checklist | None:
        """Choose the device, then the way. Raises ZconsoleError where there is none to choose."""
        session = session_of(self.context, self.backend)
        await self._propose(session)
        while self.listed and self.begun is None:  # Esc on the plan: the list again
            await self._propose(session)
        return self.begun

    async def _propose(self, session: SwapSession) -> None:
        """Plan the swap of a device, if one is chosen."""
        v = await session.view(partial(_is_named, self.frame.pool))
        if v is None:
            raise ZconsoleError(f"{self.frame.pool} is not imported")
        reports = await self._reports(v)
        key = await self._device(v, reports)
        if key is None:
            return
        target = find(v.situation.pool, key)
        seen = await session.view(
            partial(_is_named, self.frame.pool),
            disk_of_leaf(v.situation, target.vdev, key) if target else None,
        )
        choice = choose(seen or v, key)
        if choice is None:
            raise ZconsoleError("select a device of the pool first")
        await self._begin(session, choice, seen or v, reports)

    async def _reports(self, v: MachineView) -> Sequence[ScanReport]:
        past, guid = self.context.app.view_state.options.past, v.situation.pool.guid
        return await past(guid) if past is not None and guid else ()

    def _estimated(
        self, v: MachineView, keys: Sequence[str], reports: Sequence[ScanReport]
    ) -> Mapping[str, Estimate | None]:
        """How long a resilver of each device takes, also by scans seen in this session."""
        frame, root = self.frame, v.situation.pool.root
        running = (pace_of_running(root, view.scan, frame.t, view.left) for view in frame.scans)
        past = (pace_of_past(root, scan) for scan in frame.past)
        return estimated(v, keys, reports, filter(None, (*running, *past)))

    async def _device(self, v: MachineView, reports: Sequence[ScanReport]) -> str | None:
        """The device at the cursor, else the one that failed, else one of several."""
        target = find(v.situation.pool, self.key)
        found = proposed(v)
        before, self.listed = self.listed, None
        if target is not None and not target.vdev.children:
            # A disk that is to take another's place, which the cursor goes to, stands for that one.
            pair = target.group
            replaced = next((e for e in found if pair is not None and e.parent is pair), target)
            target = target if target.key in {each.key for each in found} else replaced
            beside = [each for each in found if each.key != target.key]
            if target.key not in {each.key for each in found} or not beside:
                return target.key
        if not found:
            free = free_to_go(v)
            more = f" (not in use: {free})" if free else ""
            raise ZconsoleError(f"none has failed: select the disk to change{more}")
        if len(found) == 1:
            return found[0].key
        return await self._one_of(v, found, reports, before or self.key)

    async def _one_of(
        self, v: MachineView, found: Sequence[Target], reports: Sequence[ScanReport], before: str
    ) -> str | None:
        """Several have failed: which first, or all at once, with what each costs.

        ``before``: the one to begin at. None where all are swapped together: the first of their
        checklists is begun then.
        """
        keys = [target.key for target in found]
        choices = order_choices(v, found, seconds_of(self._estimated(v, keys, reports)))
        here = [target.key for target in choices.targets]
        start = here.index(before) if before in here else 0
        title = f"SWAP  {len(found)} devices {'have errors' if choices.doubtful else 'need it'}"
        barred = {len(here): choices.refused} if choices.refused else {}
        while self.begun is None:
            picked = await self._pick(title, choices.rows, choices.abouts, start, barred)
            if picked is None or picked < len(here):
                self.listed = None if picked is None else here[picked]
                return self.listed
            self.begun = await begin_together(self.context, self.backend, v, choices.targets)
            start = picked
        return None

    async def _begin(
        self,
        session: SwapSession,
        choice: SwapChoice,
        v: MachineView,
        reports: Sequence[ScanReport],
    ) -> None:
        """Show each way with its consequences, and begin the one that is confirmed."""
        estimate = self._estimated(v, [choice.old.key], reports).get(choice.old.key)
        scan = self.frame.scan
        if scan is not None and scan.scan.active and scan.scan.function in REPAIRS:
            choice = choice.with_left(scan.left)
        notes = doubts(v.situation.pool, choice.old.key, v.faulty)
        if choice.refusal is not None and choice.refusal.title:  # whichever device it is
            notes = ()
        ways = [way for way in choice.ways if not way.refused]
        made = [self._way(session, choice, way, v, estimate, notes) for way in (ways or (None,))]
        await self.context.app.push_screen_wait(ConfirmScreen(made, self.context.look))

    def _way(
        self,
        session: SwapSession,
        choice: SwapChoice,
        way: SwapWay | None,
        v: MachineView,
        estimate: Estimate | None,
        notes: Sequence[str],
    ) -> Confirmation:
        denied, look = self.context.denied, self.context.look

        def _body(width: int) -> tuple[Line, ...]:
            return choice_lines(choice, way, estimate, notes, denied, look, width)

        async def _run(_: str | None) -> AsyncIterator[Span]:
            if way is not None:
                start = partial(self._started, session, choice, way, v, estimate)
                self.begun = await in_daemon_thread(start)
            yield Span("")

        what = WAYS[way.mode] if way else "not guided"
        commands = choice.refusal.commands if choice.refusal and way is None else ()
        first = choice.refusal.title if choice.refusal else ""
        return Confirmation(
            first or f"SWAP {choice.old.words}: {what}",
            _body,
            _run,
            barred=way is None or bool(denied),
            verb="Begin",
            commands=commands,
            leaves=True,
        )

    def _started(
        self,
        session: SwapSession,
        choice: SwapChoice,
        way: SwapWay,
        v: MachineView,
        estimate: Estimate | None,
    ) -> Checklist:
        """Begin the checklist; whoever opens it next leads it."""
        store = self.backend.make_store(True)
        try:
            return session.begin(choice, way, v, store, estimate).checklist
        finally:
            store.close()

    async def _follow(self, c: Checklist) -> SwapDisk | None:
        """Show the checklist until it is left; then others may lead it.

        Returns the device of another pool whose swap is to be begun next.
        """
        store = await in_daemon_thread(self.backend.make_store, not self.context.denied)
        try:
            followed = FollowedSwap(self.context, self.backend, c, store)
            hands = self.backend.hands
            screen = (
                SwapScreen(self.context, followed)
                if hands is None
                else DemoSwapScreen(self.context, followed, hands)
            )
            then = await self.context.app.push_screen_wait(screen)
            self.context.swaps.left(followed.checklist, screen.filed)
            self.context.show_swaps()
            return then
        finally:
            await in_daemon_thread(store.close)

    async def _pick(
        self,
        title: str,
        rows: Sequence[str],
        abouts: Sequence[Sequence[str]] = (),
        start: int = 0,
        barred: Mapping[int, str] | None = None,
    ) -> int | None:
        look = self.context.look

        def _lines(width: int) -> tuple[Line, ...]:
            made = ((Span(f"  {look.text(row)}"),) for row in rows)
            return tuple(crop(line, width, look.glyphs.ellipsis) for line in made)

        def _about(index: int, width: int) -> tuple[Line, ...]:
            texts = (rows[index], *(abouts[index] if abouts else ()))
            return tuple(line for text in texts for line in wrapped(text, "", look, width, " "))

        screen = PickScreen(title, _lines, start=start, wide=True, about=_about, barred=barred)
        return await self.context.app.push_screen_wait(screen)


def _where(c: Checklist) -> str:
    """Which disk a checklist is about, and its step."""
    return f"{c.old.words}, {TITLES[c.at].lower()}"


def _is_named(pool: str, s: Situation) -> bool:
    return s.pool.name == pool
