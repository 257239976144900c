"""Several disks replaced at once: a checklist for each, that leads on to its pull."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from zconsole.actions.executor import ExecutionEvent
from zconsole.actions.target import Swap
from zconsole.swap.checklist import REPLACE_FIRST, Checklist
from zconsole.swap.choice import SwapChoice, SwapWay, choose
from zconsole.swap.disk import SwapDisk, disk_of
from zconsole.swap.guide import started
from zconsole.swap.store import SwapStore
from zconsole.swap.view import MachineView

TOGETHER = "replaced together with others, by one resilver"


def begin_replaced(
    v: MachineView,
    swaps: Sequence[Swap],
    events: Sequence[ExecutionEvent],
    store: SwapStore,
    now: float,
) -> tuple[Checklist, ...]:
    """Begin a checklist for each replace of a batch that was carried out.

    ``v`` is how the machine was before. Raises StateError where the store doesn't answer.
    """
    return tuple(
        _begun(choice, _disk(v, swap.new), v, store, now, command)
        for swap, command in _carried_out(swaps, events)
        if (choice := choose(v, swap.old)) is not None and choice.refusal is None
    )


def begin_adopted(
    v: MachineView, keys: Sequence[str], store: SwapStore, now: float
) -> tuple[Checklist, ...]:
    """Begin a checklist for each of these devices, whose replace runs already."""
    found: list[Checklist] = []
    for key in keys:
        choice = choose(v, key)
        way = choice.way if choice is not None else None
        if choice is None or way is None or way.new is None:
            continue
        guide = started(choice, way, v, store, now)
        if guide.checklist.begun == now:
            guide.note(now, "replace", f"started elsewhere: {way.new.words} takes the place")
        found.append(guide.checklist)
    return tuple(found)


def _carried_out(
    swaps: Sequence[Swap], events: Sequence[ExecutionEvent]
) -> Iterator[tuple[Swap, str]]:
    """The replaces that ended well, each with its command; the last one begun may have failed."""
    begun = [event.text for event in events if event.kind == "begun"]
    failed = any(event.kind == "failed" for event in events)
    yield from zip(swaps, begun[: len(begun) - failed], strict=False)


def _begun(
    choice: SwapChoice,
    new: SwapDisk,
    v: MachineView,
    store: SwapStore,
    now: float,
    command: str,
) -> Checklist:
    guide = started(choice, SwapWay(REPLACE_FIRST, TOGETHER, new), v, store, now)
    guide.note(now, "replace", f"{new.words} takes the place, {TOGETHER}", command, "started")
    return guide.checklist


def _disk(v: MachineView, path: str) -> SwapDisk:
    device = v.situation.facts.device(path)
    return SwapDisk(path, whole=path) if device is None else disk_of(device)
