"""The way into a swap: continue an open one, else choose the disk and the way; then its screen."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from zconsole.actions.doubts import doubts
from zconsole.actions.executor import ExecutionEvent
from zconsole.actions.plan import Situation
from zconsole.actions.target import Swap, Target, find
from zconsole.diagnosis.device_errors.faults import SUSPECTS
from zconsole.errors import ZconsoleError
from zconsole.hardware.links import PARTITION
from zconsole.pool.redundancy import REPAIRS
from zconsole.scan_report.report import ScanReport
from zconsole.scan_report.resilver_time import pace_of_past, pace_of_running
from zconsole.swap.checklist import REPLACE_FIRST, TITLES, WAYS, Checklist, sentence
from zconsole.swap.choice import (
    FAILED_HEADING,
    FIRST_HEADING,
    WAYS_HEADING,
    WRONG_HEADING,
    SwapChoice,
    SwapWay,
    cable_advice,
    choose,
    explained,
    time_words,
)
from zconsole.swap.disk import (
    MachineView,
    SwapDisk,
    disk_of_leaf,
    free_to_go,
    is_being_replaced,
    proposed,
)
from zconsole.swap.session import SwapSession
from zconsole.swap.several import (
    SwapOrder,
    assigned,
    begin_adopted,
    begin_replaced,
    estimated,
    orders,
    seconds_of,
    urgent_first,
)
from zconsole.swap.steps import COSTS
from zconsole.swap.store import SwapBackend, SwapStore
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.system.state_dir import StateError
from zconsole.timeline.eta.estimate import Estimate
from zconsole.timeline.frame import Frame
from zconsole.ui.actions.context import FlowContext
from zconsole.ui.actions.plan_lines import wrapped
from zconsole.ui.actions.wizards import replace_together
from zconsole.ui.dialogs.confirm import Confirmation, ConfirmScreen
from zconsole.ui.dialogs.screens import PickScreen
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.swap.followed import FollowedSwap, peeked, session_of
from zconsole.ui.swap.swap_lines import STEP_WORDS
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
        mine = next(
            (swap for swap in known if swap.old.key == self.key or self._fills(swap)),
            None,
        )
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
        rows = [f"Continue: {swaps.alarm(swap) or _where(swap)}" for swap in known]
        rows += [f"Begin another: {leaf}"] if leaf else []
        start = 0
        while (picked := await self._pick("SWAP", rows, start=start)) is not None:
            start = picked
            made = known[picked] if picked < len(known) else await self._new()
            if made is not None:
                return made
        return None

    def _fills(self, swap: Checklist) -> bool:
        """Whether the device at the cursor is the new disk of a checklist."""
        vdev = next((row.vdev for row in self.frame.rows if row.key == self.key), None)
        if swap.new is None or vdev is None or vdev.children:
            return False
        serial = vdev.disk.serial if vdev.disk else ""
        return (
            PARTITION.sub("", vdev.path or "") == swap.new.whole or serial == swap.new.serial != ""
        )

    def _leaf(self) -> str | None:
        """The name of the device at the cursor; None where the row is none."""
        vdevs = (row.vdev for row in self.frame.rows if row.key == self.key)
        return next((vdev.name for vdev in vdevs if not vdev.children), None)

    async def _new(self) -> Checklist | None:
        """Choose the device, then the way. Raises ZconsoleError where there is none to choose."""
        session = session_of(self.context, self.backend)
        while await self._proposed(session) and self.listed and self.begun is None:
            pass  # Esc on the plan: the list again
        return self.begun

    async def _proposed(self, session: SwapSession) -> bool:
        """Plan the swap of a device; False where none was chosen."""
        view = await session.view(partial(_is_named, self.frame.pool))
        if view is None:
            raise ZconsoleError(f"{self.frame.pool} is not imported")
        reports = await self._reports(view)
        key = await self._device(view, reports)
        if key is None:
            return False
        target = find(view.situation.pool, key)
        seen = await session.view(
            partial(_is_named, self.frame.pool),
            disk_of_leaf(view.situation, target.vdev, key) if target else None,
        )
        choice = choose(seen or view, key)
        if choice is None:
            raise ZconsoleError("select a device of the pool first")
        await self._begin(session, choice, seen or view, reports)
        return True

    async def _reports(self, view: MachineView) -> Sequence[ScanReport]:
        past, guid = self.context.app.view_state.options.past, view.situation.pool.guid
        return await past(guid) if past is not None and guid else ()

    def _estimated(
        self, view: MachineView, keys: Sequence[str], reports: Sequence[ScanReport]
    ) -> Mapping[str, Estimate | None]:
        """How long a resilver of each device takes, also by scans seen in this session."""
        frame, root = self.frame, view.situation.pool.root
        running = (pace_of_running(root, view.scan, frame.t, view.left) for view in frame.scans)
        past = (pace_of_past(root, scan) for scan in frame.past)
        return estimated(view, keys, reports, filter(None, (*running, *past)))

    async def _device(self, view: MachineView, reports: Sequence[ScanReport]) -> str | None:
        """The device at the cursor, else the one that failed, else one of several."""
        target = find(view.situation.pool, self.key)
        found = proposed(view)
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
            free = free_to_go(view)
            more = f" (not in use: {free})" if free else ""
            raise ZconsoleError(f"none has failed: select the disk to change{more}")
        if len(found) == 1:
            return found[0].key
        return await self._one_of(view, found, reports, before or self.key)

    async def _one_of(
        self, view: MachineView, found: Sequence[Target], reports: Sequence[ScanReport], before: str
    ) -> str | None:
        """Several have failed: which first, or all at once, with what each costs.

        ``before``: the one to begin at. None where all are swapped together: the first of their
        checklists is begun then.
        """
        keys = [target.key for target in found]
        choices = order_choices(view, found, seconds_of(self._estimated(view, keys, reports)))
        here = [target.key for target in choices.targets]
        start = here.index(before) if before in here else 0
        title = f"SWAP  {len(found)} devices {'have errors' if choices.doubtful else 'need it'}"
        barred = {len(here): choices.refused} if choices.refused else {}
        while self.begun is None:
            picked = await self._pick(title, choices.rows, choices.abouts, start, barred)
            if picked is None or picked < len(here):
                self.listed = None if picked is None else here[picked]
                return self.listed
            self.begun = await begin_together(self.context, self.backend, view, choices.targets)
            start = picked
        return None

    async def _begin(
        self,
        session: SwapSession,
        choice: SwapChoice,
        view: MachineView,
        reports: Sequence[ScanReport],
    ) -> None:
        """Show each way with its consequences, and begin the one that is confirmed."""
        estimate = self._estimated(view, [choice.old.key], reports).get(choice.old.key)
        scan = self.frame.scan
        if scan is not None and scan.scan.active and scan.scan.function in REPAIRS:
            choice = choice.with_left(scan.left)
        notes = doubts(view.situation.pool, choice.old.key, view.faulty)
        if choice.refusal is not None and choice.refusal.title:  # whichever device it is
            notes = ()
        ways = [way for way in choice.ways if not way.refused]
        made = [self._way(session, choice, way, view, estimate, notes) for way in (ways or (None,))]
        await self.context.app.push_screen_wait(ConfirmScreen(made, self.context.look))

    def _way(
        self,
        session: SwapSession,
        choice: SwapChoice,
        way: SwapWay | None,
        view: MachineView,
        estimate: Estimate | None,
        notes: Sequence[str],
    ) -> Confirmation:
        denied, look = self.context.denied, self.context.look

        def _body(width: int) -> tuple[Line, ...]:
            return choice_lines(choice, way, estimate, notes, denied, look, width)

        async def _run(_: str | None) -> AsyncIterator[Span]:
            if way is not None:
                start = partial(self._started, session, choice, way, view, estimate)
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
        view: MachineView,
        estimate: Estimate | None,
    ) -> Checklist:
        """Begin the checklist; whoever opens it next leads it."""
        store = self.backend.make_store(True)
        try:
            return session.begin(choice, way, view, store, estimate).checklist
        finally:
            store.close()

    async def _follow(self, swap: Checklist) -> SwapDisk | None:
        """Show the checklist until it is left; then others may lead it.

        Returns the device of another pool whose swap is to be begun next.
        """
        store = await in_daemon_thread(self.backend.make_store, not self.context.denied)
        try:
            followed = FollowedSwap(self.context, self.backend, swap, store)
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


def _where(swap: Checklist) -> str:
    """Which disk a checklist is about, and its step."""
    return f"{swap.old.words}, {TITLES[swap.at].lower()}"


def _is_named(pool: str, situation: Situation) -> bool:
    return situation.pool.name == pool


@dataclass(frozen=True, slots=True)
class OrderChoices:
    """What is asked where several devices need a swap; the last row takes all."""

    targets: tuple[Target, ...]
    """The devices, the most urgent first."""
    rows: tuple[str, ...]
    abouts: tuple[tuple[str, ...], ...]
    """What each row costs."""
    refused: str
    """Why not all at once; empty where that can be."""
    doubtful: bool = False
    """Whether the cable of some is the likely cause, and a new disk no help."""


def order_choices(
    view: MachineView, found: Sequence[Target], seconds: Mapping[str, float | None]
) -> OrderChoices:
    """A row for each device, and one for all, with what each choice costs.

    ``seconds``: what a resilver of each is predicted to take.
    """
    keys = [target.key for target in found]
    targets = urgent_first(view, keys)
    ways = {order.together: order for order in orders(view, keys, seconds)}
    new = [target for target in found if not is_being_replaced(target)]
    advice = [cable_advice(view, t) for t in targets]
    rows = [_row(view, t, cabled=bool(said)) for t, said in zip(targets, advice, strict=True)]
    each = _order_text(ways[False])
    about = tuple((sentence(said), *each) if said else each for said in advice)
    if new:
        can = ": not now" if ways[True].refused else ", with a checklist for each"
        doubt = ": not advised" if ways[True].doubtful else can
        every = f"all {len(new)} at once"
        rest = f"the {len(new)} not being replaced yet"
        rows.append(f"Replace {every if len(new) == len(found) else rest}{doubt}")
        return OrderChoices(
            targets,
            tuple(rows),
            (*about, _order_text(ways[True])),
            ways[True].refused,
            ways[True].doubtful,
        )
    rows.append(f"Begin a checklist for each of the {len(found)} that are being replaced")
    last = ("each leads on to the pull of its old disk, once the resilver is done",)
    return OrderChoices(targets, tuple(rows), (*(() for _ in targets), last), "")


def _row(view: MachineView, target: Target, cabled: bool) -> str:
    """A device to swap; ``cabled``: its cable is the likely cause."""
    disk = disk_of_leaf(view.situation, target.vdev, target.key)
    what = f"{disk.words} of {target.top.name}: {_state(target)}"
    return f"{sentence(SUSPECTS['cable'])}: {what}" if cabled else f"Swap {what}"


def _state(target: Target) -> str:
    return (
        f"{target.vdev.state}, being replaced" if is_being_replaced(target) else target.vdev.state
    )


def _order_text(order: SwapOrder) -> tuple[str, ...]:
    return (*order.text, *((f"Not now: {order.refused}",) if order.refused else ()))


async def begin_together(
    context: FlowContext, backend: SwapBackend, view: MachineView, targets: Sequence[Target]
) -> Checklist | None:
    """Replace all that are not being replaced yet by one plan, and begin a checklist for each.

    The free disks are chosen already, and can be changed. Returns the first checklist; None
    where the plan was left.
    """
    adopted = [target.key for target in targets if is_being_replaced(target)]
    new = [target for target in targets if target.key not in adopted]
    begun: list[Checklist] = []

    async def _begin(make: Callable[[SwapStore, float], tuple[Checklist, ...]]) -> None:
        try:
            begun.extend(await in_daemon_thread(_stored, context, backend, make))
        except StateError as error:
            context.complain(f"no checklist was started: {error}")

    async def _ran(swaps: tuple[Swap, ...], events: Sequence[ExecutionEvent]) -> None:
        await _begin(partial(begin_replaced, view, swaps, events))

    if new:
        where, chosen = view.situation.pool.name, assigned(view, new)
        if not await replace_together(context, new, where, chosen, _ran):
            return None
    if adopted and not context.denied:
        await _begin(partial(begin_adopted, view, adopted))
    return begun[0] if begun else None


def _stored(
    context: FlowContext,
    backend: SwapBackend,
    make: Callable[[SwapStore, float], tuple[Checklist, ...]],
) -> tuple[Checklist, ...]:
    store = backend.make_store(True)
    try:
        return make(store, context.backend.clock())
    finally:
        store.close()


_APART = (FIRST_HEADING, WAYS_HEADING, "Not guided")
"""Parts of the explanation that are shown in another way here."""
_ROLES = {FAILED_HEADING: "warning", WRONG_HEADING: "warning", "Must stay": "error"}


def choice_lines(
    choice: SwapChoice,
    way: SwapWay | None,
    estimate: Estimate | None,
    notes: Sequence[str],
    denied: str,
    look: DisplayFormat,
    width: int,
) -> tuple[Line, ...]:
    """Why it can't be, else what the way does and costs; then everything to know.

    ``estimate``: what a resilver of this device is predicted to take; ``notes`` are warnings.
    """
    parts = explained(choice)
    first = [text for part in parts if part.heading == FIRST_HEADING for text in part.lines]
    lines = _block(FIRST_HEADING, first, "warning", look, width)
    lines += _block("Check first", notes, "warning", look, width)
    if denied:
        lines += _block("Unavailable", (denied,), "error", look, width)
    if way is None:
        lines += _refused(choice, look, width)
    else:
        lines += _block("This way", tuple(_costs(way, estimate)), "", look, width)
    for part in parts:
        if part.heading not in _APART:
            lines += _block(part.heading, part.lines, _ROLES.get(part.heading, ""), look, width)
    if way is not None:
        lines += _block("Steps", tuple(_steps(choice, way)), "", look, width)
    others = [each for each in choice.ways if each is not way]
    lines += _block("Other ways", tuple(map(_other, others)), "dim", look, width)
    return tuple(lines)


def _refused(choice: SwapChoice, look: DisplayFormat, width: int) -> Iterator[Line]:
    """Why no swap can be begun, and the steps that do it by hand."""
    yield from _block("Not guided", (choice.refused,), "error", look, width)
    manual = choice.refusal.manual if choice.refusal else ()
    steps = tuple(f"{number}. {text}" for number, text in enumerate(manual, 1))
    yield from _block("By hand", steps, "bold", look, width)


def _costs(way: SwapWay, estimate: Estimate | None) -> Iterator[str]:
    yield way.why
    yield time_words(way, estimate)
    if way.mode == REPLACE_FIRST:
        yield "Pull the old disk once the resilver is done"


def _steps(choice: SwapChoice, way: SwapWay) -> Iterator[str]:
    """The steps in order, as the checklist lists them; those that can't be undone say so."""
    for number, step in enumerate(choice.steps(way), 1):
        brief = COSTS[step].brief if step in COSTS else ""
        cost = f" ({brief})" if brief else ""
        yield f"{number}. {STEP_WORDS[step]}{cost}"


def _other(way: SwapWay) -> str:
    return f"{WAYS[way.mode]}: {f'not now: {way.refused}' if way.refused else way.why}"


def _block(
    title: str, texts: Sequence[str], role: str, look: DisplayFormat, width: int
) -> list[Line]:
    found = [line for text in texts for line in wrapped(text, role, look, width)]
    return [(Span(f" {title}", "bold"),), *found] if found else []
