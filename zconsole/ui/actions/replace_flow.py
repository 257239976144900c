"""Flows that replace one or several devices or attach one, and the choice of the new device."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from zconsole.actions.candidates import Candidate, order, ranked
from zconsole.actions.executor import ExecutionEvent
from zconsole.actions.facts import with_smart
from zconsole.actions.follow import leftover
from zconsole.actions.growth import plan_attach
from zconsole.actions.plan import Situation
from zconsole.actions.replace import being_replaced, plan_batch, plan_replace
from zconsole.actions.target import Swap, Target, failed, find, key_of
from zconsole.errors import ZconsoleError
from zconsole.hardware.device import Device
from zconsole.pool.model import FAILED
from zconsole.pool.spares import spares, unfit_spare
from zconsole.scan_report.resilver_time import longest
from zconsole.timeline.eta.estimate import Estimate
from zconsole.ui.actions.plan_lines import (
    candidate_about,
    candidate_lines,
    said_lines,
    swap_lines,
)
from zconsole.ui.actions.session import FlowSession
from zconsole.ui.dialogs.screens import PickList, TextQuestion
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.panes.reasons import resume_advice
from zconsole.ui.widgets.draw import Lines, Span

BatchRan = Callable[[tuple[Swap, ...], Sequence[ExecutionEvent]], Awaitable[None]]
"""Called with the swaps of a plan and the events of its execution, even if that failed."""

NONE_FITS = "No disk of this machine fits here: insert one, then open this list again"
STANDS_IN = "A hot spare stands in for now; a new disk takes the place for good."
OTHER = "other: type the path of a file or device"


async def replace_flow(ui: FlowSession, key: str) -> bool:
    """Choose the new device, then confirm the plan, with healing or sequential resilver.

    A plan that is only read leads back one step, as in every flow. Return False if the first step
    was left.
    """
    situation = ui.situation_shown()
    target = _device(ui, situation, key)
    title = f"REPLACE {_taken(situation, target, key)} WITH"
    stands_in = STANDS_IN if spares(situation.pool) else ""
    while (new := await _pick_device(ui, target, title, note=stands_in)) is not None:
        if await replace_with(ui, target.key, new):
            return True
    return False


async def replace_with(ui: FlowSession, key: str, new: str) -> bool:
    """Confirm the plan that replaces a device by a chosen one; return False if it was left."""
    _, target = _vdev(ui, key)
    time, swap = await _estimate(ui, (target,)), Swap(key, new)
    ways = (
        partial(plan_replace, swap=swap, sequential=sequential, estimate=time)
        for sequential in (False, True)
    )
    return await ui.confirm(*ways, paths=(new,))


async def attach_flow(ui: FlowSession, key: str) -> bool:
    """Choose the device to attach to a mirror, a single disk or a raidz."""
    _, target = _vdev(ui, key)
    time = await _estimate(ui, (target,))
    while (new := await _pick_device(ui, target, f"ATTACH TO {target.name}")) is not None:
        if await ui.confirm(partial(plan_attach, key=key, new=new, estimate=time), paths=(new,)):
            return True
    return False


async def batch_flow(ui: FlowSession, key: str) -> bool:
    """Choose new devices for the disks of a vdev, then confirm one plan for all of them."""
    situation, target = _vdev(ui, key)
    pool = situation.pool
    keys = [key_of(pool, leaf) for leaf in target.top.leaves()]
    olds = [old for key in keys if key and (old := find(pool, key)) is not None]
    return await replace_together(ui, olds, target.top.name, {})


async def replace_together(
    ui: FlowSession,
    olds: Sequence[Target],
    where: str,
    chosen: dict[str, str],
    ran: BatchRan | None = None,
) -> bool:
    """Choose a new device for each of ``olds``, then confirm one plan; return False if left.

    ``where`` names their location in the title. ``chosen`` maps keys to new devices, and may
    already hold some. ``ran`` is called with the results of the plan.
    """

    def _lines(look: DisplayFormat, width: int) -> Lines:
        rows = swap_lines([(old, chosen.get(old.key)) for old in olds], look, width)
        return (*rows, (Span(f"  Plan these {len(chosen)}", "bold"),))

    title = f"REPLACE DEVICES OF {ui.look.text(where)}  Enter chooses"
    places = PickList(title, _lines, start=len(olds) if chosen else 0)
    while (row := await ui.pick(places)) is not None:
        if row == len(olds):
            swaps = tuple(Swap(old, new) for old, new in chosen.items())
            time = await _estimate(ui, [old for old in olds if old.key in chosen])
            ways = (
                partial(plan_batch, swaps=swaps, sequential=sequential, estimate=time)
                for sequential in (False, True)
            )
            told = None if ran is None else partial(ran, swaps)
            if await ui.confirm(*ways, paths=tuple(chosen.values()), ran=told):
                return True
            continue
        old = olds[row]
        taken = frozenset(new for key, new in chosen.items() if key != old.key)
        new = await _pick_device(ui, old, f"REPLACE {old.name} WITH", taken)
        if new is not None:
            chosen[old.key] = new
            places.picked = row + 1
    return False


async def _estimate(ui: FlowSession, targets: Iterable[Target]) -> Estimate:
    """Estimate the resilver that fills new devices in these places, or say why it is unknown."""
    known = await ui.paces(ui.frame) if ui.frame is not None else ()
    return longest([target.top for target in targets], known)


def _taken(situation: Situation, target: Target, key: str) -> str:
    """Name of the device to replace; with the reason if the cursor is on another row.

    Also with the replace that it is a part of already.
    """
    group = target.group
    if group is not None and group.kind == "replacing":
        is_old = target.vdev in group.children[0].walk()
        return f"{target.name} ({'already being replaced' if is_old else 'it replaces another'})"
    if target.key == key:
        return target.name
    row = find(situation.pool, key)
    where = row.name if row is not None else situation.pool.name
    return f"{target.name} ({target.vdev.state}: the failed device of {where})"


async def _pick_device(
    ui: FlowSession,
    target: Target,
    title: str,
    taken: frozenset[str] = frozenset(),
    note: str = "",
) -> str | None:
    """Return the path of the chosen device: a disk of the machine, a spare, or one typed.

    ``note`` is shown below each device. The disks and their temperatures are read while the list
    is already shown.
    """
    listed: list[Candidate] = []

    def _lines(look: DisplayFormat, width: int) -> Lines:
        other = ((Span(f"  {OTHER}", "key"),),) if devices.fill is None else ()
        return (*candidate_lines(listed, look, width), *other)

    async def _fill() -> int:
        listed.extend(await _candidates(ui, await ui.situation_now(), target, taken))
        devices.fill = None
        return 0 if _any_fits() else len(listed)

    def _any_fits() -> bool:
        return any(each.usable for each in listed)

    def _about(index: int, look: DisplayFormat, width: int) -> Lines:
        if index == len(listed) and devices.fill is None and not _any_fits():
            return tuple(look.wrapped(NONE_FITS, width))
        about = candidate_about(listed, index, look, width)
        return (*about, *look.wrapped(note, width)) if about and note else about

    devices = PickList(
        ui.look.text(title),
        _lines,
        about=_about,
        fill=_fill,
        behind=lambda: [n for n, each in enumerate(listed) if not each.usable],
        rest="that can't be used here",
    )
    while (row := await ui.pick(devices)) is not None:
        if row < len(listed):
            return listed[row].device.path
        if path := await ask_path(ui):
            return path
    return None


async def _candidates(
    ui: FlowSession, situation: Situation, target: Target, taken: frozenset[str]
) -> list[Candidate]:
    """Return the disks of the machine, then the pool's spares; unusable ones come last."""
    warm = await with_smart(ui.backend.runner, situation.facts.devices)
    free = spares(situation.pool)
    listed = [
        candidate
        for candidate in ranked(situation.pool, target, replace(situation.facts, devices=warm))
        if candidate.device.path not in taken and candidate.device.path not in free
    ]
    listed += [
        Candidate(
            Device(path, model="hot spare of this pool", size=spare.size_bytes),
            (problem,) if (problem := unfit_spare(spare, target.vdev, target.top)) else (),
        )
        for path, spare in free.items()
    ]
    return sorted(listed, key=order)


async def ask_path(ui: FlowSession) -> str | None:
    """Ask for a path; None if the question was left."""

    def _absolute(path: str) -> str:
        if not path.startswith("/"):
            raise ZconsoleError(f"{path}: not an absolute path")
        return path

    asked = Span("Absolute path of a file or device, for a disk /dev/disk/by-id/…", "dim")
    return await ui.ask(TextQuestion("PATH", partial(said_lines, [asked])), _absolute)


def _vdev(ui: FlowSession, key: str) -> tuple[Situation, Target]:
    """Return the pool on show and the vdev at the cursor. Raises ZconsoleError without a vdev."""
    situation = ui.situation_shown()
    target = find(situation.pool, key)
    if target is None:
        raise ZconsoleError("select a vdev of the pool first")
    return situation, target


def _device(ui: FlowSession, situation: Situation, key: str) -> Target:
    """Return the device to replace: the one at the cursor, or the only failed one below it.

    For a spare or replacing group with a leftover, it is the group's first child. Raises
    ZconsoleError if none or several failed.
    """
    target = find(situation.pool, key)
    if target is not None and target.vdev.children and leftover(target.vdev):
        first = key_of(situation.pool, target.vdev.children[0])
        target = find(situation.pool, first) if first else None
    if target is not None and not target.vdev.children:
        return target
    found = failed(situation.pool, target.key if target else None)
    if len(found) == 1:
        return found[0]
    if not found:
        raise ZconsoleError(_why_none(ui, situation, target))
    names = ", ".join(target.name for target in found)
    raise ZconsoleError(f"{names} have failed: select one of them")


def _why_none(ui: FlowSession, situation: Situation, below: Target | None) -> str:
    """Explain why no failed device needs a replacement, and what to do instead."""
    if ui.frame is not None and ui.frame.suspended:
        return f"{situation.pool.name} is suspended: {resume_advice(ui.frame, ui.look, 80)}"
    where, root = (below.name, below.vdev) if below else (situation.pool.name, situation.pool.root)
    lost = [leaf for leaf in root.leaves() if leaf.state in FAILED]
    groups = [
        v for v in root.walk() if v.kind == "replacing" and any(x in lost for x in v.leaves())
    ]
    if said := "; ".join(being_replaced(situation, group) for group in groups):
        way = ui.look.keys.shown("swap")
        return f"{said}. {way} follows it; to replace another, select a device"
    what = f"has failed{' without a replacement' * bool(lost)}"
    return f"no device of {where} {what}. Select a device to replace"
