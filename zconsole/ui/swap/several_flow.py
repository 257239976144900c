"""Several disks to swap: which first, or all by one resilver with a checklist for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from zconsole.actions.executor import ExecutionEvent
from zconsole.actions.target import Swap, Target
from zconsole.diagnosis.device_errors.faults import SUSPECTS
from zconsole.swap.backend import SwapBackend
from zconsole.swap.cause import cable_advice
from zconsole.swap.checklist import Checklist
from zconsole.swap.disk import disk_of_leaf
from zconsole.swap.names import is_being_replaced
from zconsole.swap.several import (
    SwapOrder,
    assigned,
    orders,
    urgent_first,
)
from zconsole.swap.stage import sentence
from zconsole.swap.store import SwapStore
from zconsole.swap.together import begin_adopted, begin_replaced
from zconsole.swap.view import MachineView
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.system.state_dir import StateError
from zconsole.ui.actions.context import FlowContext
from zconsole.ui.actions.wizards import replace_together


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
    v: MachineView, found: Sequence[Target], seconds: Mapping[str, float | None]
) -> OrderChoices:
    """A row for each device, and one for all, with what each choice costs.

    ``seconds``: what a resilver of each is predicted to take.
    """
    keys = [target.key for target in found]
    targets = urgent_first(v, keys)
    ways = {order.together: order for order in orders(v, keys, seconds)}
    new = [target for target in found if not is_being_replaced(target)]
    advice = [cable_advice(v, t) for t in targets]
    rows = [_row(v, t, cabled=bool(said)) for t, said in zip(targets, advice, strict=True)]
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


def _row(v: MachineView, target: Target, cabled: bool) -> str:
    """A device to swap; ``cabled``: its cable is the likely cause."""
    disk = disk_of_leaf(v.situation, target.vdev, target.key)
    what = f"{disk.words} of {target.top.name}: {_state(target)}"
    return f"{sentence(SUSPECTS['cable'])}: {what}" if cabled else f"Swap {what}"


def _state(target: Target) -> str:
    return (
        f"{target.vdev.state}, being replaced" if is_being_replaced(target) else target.vdev.state
    )


def _order_text(order: SwapOrder) -> tuple[str, ...]:
    return (*order.text, *((f"Not now: {order.refused}",) if order.refused else ()))


async def begin_together(
    context: FlowContext, backend: SwapBackend, v: MachineView, targets: Sequence[Target]
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
        await _begin(partial(begin_replaced, v, swaps, events))

    if new:
        where, chosen = v.situation.pool.name, assigned(v, new)
        if not await replace_together(context, new, where, chosen, _ran):
            return None
    if adopted and not context.denied:
        await _begin(partial(begin_adopted, v, adopted))
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
