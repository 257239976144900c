"""Entry into a swap: continue an open one, or choose the disk and the way; then show its screen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from zconsole.actions.executor import ExecutionEvent
from zconsole.actions.plan import Situation
from zconsole.actions.target import Swap, Target, doubts
from zconsole.diagnosis.device_errors.faults import SUSPECTS
from zconsole.errors import ZconsoleError
from zconsole.hardware.location import PARTITION
from zconsole.pool.model import Vdev
from zconsole.scan_report.resilver_time import member_duration
from zconsole.swap.choice import SwapChoice, SwapWay, cable_advice, choose
from zconsole.swap.disk import (
    Checklist,
    MachineView,
    SwapDisk,
    free_to_go,
    is_being_replaced,
    proposed,
    sentence,
)
from zconsole.swap.report import time_words
from zconsole.swap.several import (
    SwapOrder,
    assigned,
    begin_adopted,
    begin_replaced,
    in_turn,
    started,
    together,
    urgent_first,
)
from zconsole.swap.steps import STEPS, WAYS
from zconsole.swap.store import Guide, SwapStore
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.system.state_dir import StateError
from zconsole.timeline.eta.estimate import Estimate
from zconsole.timeline.frame import Frame
from zconsole.ui.actions.replace_flow import replace_together
from zconsole.ui.actions.session import FlowSession
from zconsole.ui.dialogs.confirm import Confirmation, question
from zconsole.ui.swap.swap_lines import choice_lines
from zconsole.ui.swap.swap_screen import DemoSwapScreen, SwapScreen, text_list


async def swap_flow(ui: FlowSession, key: str) -> None:
    """Lead through a swap of the row's device, or continue an open one. Raises ZconsoleError."""
    frame = ui.frame_shown()
    if pools := ui.app.view_state.options.pools:
        # A disk may hold other pools too, and a wrong disk be one of theirs.
        raise ZconsoleError(
            "a swap looks at every pool of the machine: start zconsole without pool names, or run"
            f" zconsole swap {pools[0]}"
        )
    await ui.swaps.look()
    await SwapFlow(ui, frame, key).run()


@dataclass(frozen=True, slots=True)
class SwapFlow:
    """The dialogs behind one key press, for the pool that was shown at that time."""

    ui: FlowSession
    frame: Frame
    key: str
    """Key of the row at the cursor."""

    async def run(self) -> None:
        """Find or begin the checklist, then show its screen."""
        swaps = self.ui.swaps
        known = (*swaps.of(self.frame), *swaps.unfiled(self.frame))
        mine = next((s for s in known if s.old.key == self.key or self._fills(s)), None)
        if mine is None:
            mine = await (self._open_or_new(known) if known else self._new())
        then = None if mine is None else await self._follow(mine)
        frame = None if then is None else self.ui.frame_of(then.pool)
        if then is not None and frame is not None:
            await SwapFlow(self.ui, frame, then.key).run()

    @property
    def _vdev(self) -> Vdev | None:
        """The vdev at the cursor."""
        return next((row.vdev for row in self.frame.rows if row.key == self.key), None)

    def _fills(self, swap: Checklist) -> bool:
        """Return whether the device at the cursor is the new disk of a checklist."""
        vdev = self._vdev
        if swap.new is None or vdev is None or vdev.children:
            return False
        whole, serial = PARTITION.sub("", vdev.path or ""), vdev.disk.serial if vdev.disk else ""
        return whole == swap.new.whole or serial == swap.new.serial != ""

    async def _open_or_new(self, known: Sequence[Checklist]) -> Checklist | None:
        """Return one of the open checklists, or a new one for the device at the cursor."""
        vdev = self._vdev
        leaf = vdev.called if vdev is not None and not vdev.children else ""
        if len(known) == 1 and not leaf:
            return known[0]
        rows = []
        for swap in known:
            where = f"{swap.old.words}, {STEPS[swap.at].title.lower()}"
            rows.append(f"Continue: {self.ui.swaps.alarm(swap) or where}")
        rows += [f"Begin another: {leaf}"] if leaf else []
        choice = text_list("SWAP", rows, abouts=())
        while (picked := await self.ui.pick(choice)) is not None:
            made = known[picked] if picked < len(known) else await self._new()
            if made is not None:
                return made
        return None

    async def _new(self) -> Checklist | None:
        """Choose the device and the way, and begin; None if the operator leaves.

        Raises ZconsoleError if there is no device to choose.
        """
        chosen = self.key
        view_of = self.ui.swaps.session.view
        while True:
            view = await view_of(self._is_shown)
            if view is None:
                raise ZconsoleError(f"{self.frame.pool} is not imported")
            found = self._devices(view)
            if len(found) > 1:
                made = await self._one_of(view, found, chosen)
                if not isinstance(made, str):
                    return made
                chosen = made
            else:
                chosen = found[0].key
            target = view.target(chosen)
            # Read again: SMART counts of the disk are only now asked for.
            seen = await view_of(self._is_shown, view.disk(target) if target else None) or view
            choice = choose(seen, chosen)
            if choice is None:
                raise ZconsoleError("select a device of the pool first")
            begun = await self._begin(choice, seen)
            if begun is not None or len(found) == 1:
                return begun
            # Esc on the plan leads back to the list.

    def _is_shown(self, situation: Situation) -> bool:
        """Return whether it is the pool shown at the key press."""
        return situation.pool.name == self.frame.pool

    def _devices(self, view: MachineView) -> tuple[Target, ...]:
        """Return the device at the cursor, or all that failed if it is one of several."""
        target, found = view.target(self.key), proposed(view)
        keys = {each.key for each in found}
        if target is not None and not target.vdev.children:
            # The cursor may be on the new disk of a replace; it stands for the old one.
            if target.key not in keys and (pair := target.group) is not None:
                target = next((each for each in found if each.parent is pair), target)
            if keys <= {target.key} or target.key not in keys:
                return (target,)
        if not found:
            free = free_to_go(view)
            more = f" (not in use: {free})" if free else ""
            raise ZconsoleError(f"none has failed: select the disk to change{more}")
        return found

    async def _estimated(self, targets: Sequence[Target]) -> Mapping[str, Estimate | None]:
        """Estimate each device's resilver duration, also from scans seen in this session."""
        known = await self.ui.paces(self.frame)
        return {target.key: member_duration(target.top, known) for target in targets}

    async def _one_of(
        self, view: MachineView, found: Sequence[Target], start: str
    ) -> str | Checklist | None:
        """Ask which device to swap first, or all at once, with what each choice costs.

        ``start``: key of the row to start at. Returns a device's key, the first checklist if
        several were begun together, or None if the list was left.
        """
        targets = urgent_first(view, found)
        estimates = await self._estimated(targets)
        rows, abouts, order = several_rows(view, targets, estimates)
        here = [target.key for target in targets]
        at = here.index(start) if start in here else 0
        title = f"SWAP  {len(found)} devices {'have errors' if order.doubtful else 'need it'}"
        barred = {len(here): order.refused} if order.refused else {}
        choice = text_list(title, rows, at, abouts, barred)
        while (picked := await self.ui.pick(choice)) is not None:
            if picked < len(here):
                return here[picked]
            # Esc on the plan for all leads back to this list.
            if (begun := await self._together(view, targets)) is not None:
                return begun
        return None

    async def _together(self, view: MachineView, targets: Sequence[Target]) -> Checklist | None:
        """Replace all devices not being replaced yet by one plan, with a checklist for each.

        Free disks are preselected and can be changed. Returns the first checklist; None if the plan
        was left.
        """
        adopted = [target.key for target in targets if is_being_replaced(target)]
        new = [target for target in targets if target.key not in adopted]
        begun: list[Checklist] = []

        async def _begin(make: Callable[[SwapStore, float], tuple[Checklist, ...]]) -> None:
            try:
                begun.extend(await in_daemon_thread(self._stored, make))
            except StateError as error:
                self.ui.show_error(f"no checklist was started: {error}")

        async def _ran(swaps: tuple[Swap, ...], events: Sequence[ExecutionEvent]) -> None:
            await _begin(partial(begin_replaced, view, swaps, events))

        if new:
            chosen = assigned(view, new)
            if not await replace_together(self.ui, new, view.pool.name, chosen, _ran):
                return None
        if adopted and not self.ui.denied:
            await _begin(partial(begin_adopted, view, adopted))
        return begun[0] if begun else None

    def _stored(
        self, make: Callable[[SwapStore, float], tuple[Checklist, ...]]
    ) -> tuple[Checklist, ...]:
        """Begin checklists in the store; each is led by the process that opens it next."""
        store = self.ui.swaps.backend.make_store(True)
        try:
            return make(store, self.ui.backend.clock())
        finally:
            store.close()

    async def _begin(self, choice: SwapChoice, view: MachineView) -> Checklist | None:
        """Show each way with its consequences, and begin the one that is confirmed."""
        key = choice.old.key
        estimate = (await self._estimated([*filter(None, [view.target(key)])])).get(key)
        notes = doubts(view.pool, key, view.faulty)
        title = choice.refusal.title if choice.refusal else ""
        if title:  # the problem is the pool's, not the device's
            notes = ()
        begun: list[Checklist] = []

        def _confirmation(way: SwapWay | None) -> Confirmation:
            def _make(store: SwapStore, now: float) -> tuple[Checklist, ...]:
                found = () if way is None else (started(choice, way, store, now, estimate),)
                return tuple(guide.checklist for guide in found)

            async def _start() -> None:
                begun.extend(await in_daemon_thread(self._stored, _make))

            what = WAYS[way.mode].title if way else "not guided"
            time = "" if way is None else time_words(view.situation, way, estimate)
            denied = self.ui.denied
            asked = question(
                title or f"SWAP {choice.old.words}: {what}",
                (),
                _start,
                verb="Begin",
                barred=way is None or bool(denied),
                commands=choice.refusal.commands if choice.refusal and way is None else (),
            )
            return replace(asked, body=partial(choice_lines, choice, way, time, notes, denied))

        ways = [way for way in choice.ways if not way.refused]
        made = [_confirmation(way) for way in (ways or (None,))]
        await self.ui.confirmed(*made)
        return begun[0] if begun else None

    async def _follow(self, swap: Checklist) -> SwapDisk | None:
        """Show the checklist until the screen is left; then release it for others to lead.

        Returns the device of another pool to swap next, if chosen.
        """
        backend, may_lead = self.ui.swaps.backend, not self.ui.denied
        store = await in_daemon_thread(backend.make_store, may_lead)
        try:
            guide = await in_daemon_thread(partial(Guide, swap, store, may_lead))
            screen = SwapScreen(self.ui, guide)
            if backend.hands is not None:
                screen = DemoSwapScreen(self.ui, guide, backend.hands)
            then = await self.ui.show(screen)
            self.ui.swaps.left(screen.checklist, screen.filed)
            self.ui.show_swaps()
            return then
        finally:
            await in_daemon_thread(store.close)


def several_rows(
    view: MachineView, targets: Sequence[Target], estimates: Mapping[str, Estimate | None]
) -> tuple[list[str], list[tuple[str, ...]], SwapOrder]:
    """Return rows for each device and for all at once, their costs, and the order for all."""
    each, every = in_turn(view, targets, estimates), together(view, targets, estimates)
    rows, abouts = [], []
    for target in targets:
        state, advice = target.vdev.state, cable_advice(view, target)
        if is_being_replaced(target):
            state = f"{state}, being replaced"
        what = f"{view.disk(target).words} of {target.top.name}: {state}"
        rows.append(f"{sentence(SUSPECTS['cable'])}: {what}" if advice else f"Swap {what}")
        abouts.append((sentence(advice), *each.text) if advice else each.text)
    new = [target for target in targets if not is_being_replaced(target)]
    if not new:
        rows.append(f"Begin a checklist for each of the {len(targets)} that are being replaced")
        last = ("each leads on to the pull of its old disk, once the resilver is done",)
        return rows, [*(() for _ in targets), last], SwapOrder(last)
    can = ": not now" if every.refused else ", with a checklist for each"
    doubt = ": not advised" if every.doubtful else can
    all_new = f"all {len(new)} at once"
    many = len(new) > 1
    rest = f"the {len(new)} not being replaced yet" if many else "the one not being replaced yet"
    rows.append(f"Replace {all_new if len(new) == len(targets) else rest}{doubt}")
    refused = (f"Not now: {every.refused}",) if every.refused else ()
    return rows, [*abouts, (*every.text, *refused)], every
