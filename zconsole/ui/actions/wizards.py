"""Flows that ask before there is a plan: which device, for which place, which part of a scrub."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from zconsole.actions.candidates import Candidate, order, ranked, spares, unfit_spare
from zconsole.actions.executor import ExecutionEvent
from zconsole.actions.facts import with_temperatures
from zconsole.actions.follow import leftover
from zconsole.actions.growth import plan_attach
from zconsole.actions.plan import Situation
from zconsole.actions.replace import being_replaced, plan_batch, plan_replace
from zconsole.actions.scrub import EXAMPLE, plan_scrub_dates, read_dates
from zconsole.actions.scrub_window import plan_window, plan_window_off, read_hours
from zconsole.actions.target import Swap, Target, failed, find, key_of
from zconsole.errors import ZconsoleError
from zconsole.hardware.device import Device
from zconsole.pool.topology import FAILED
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.ui.actions.asking import (
    Planner,
    ask,
    confirm,
    picked,
    situation_now,
    situation_shown,
)
from zconsole.ui.actions.context import FlowContext
from zconsole.ui.actions.plan_lines import (
    candidate_about,
    candidate_lines,
    said_lines,
    swap_lines,
)
from zconsole.ui.dialogs.screens import AskScreen, PickScreen
from zconsole.ui.panes.reasons import way_out
from zconsole.ui.widgets.draw import Line, Span

BatchRan = Callable[[tuple[Swap, ...], Sequence[ExecutionEvent]], Awaitable[None]]
"""Takes the replaces of a plan, and what carrying it out gave, however it ended."""

OTHER = "other: type the path of a file or device"


async def replace_flow(context: FlowContext, key: str) -> bool:
    """Pick the new device for a place, then its plan, healing or sequential.

    Like every flow it goes back a step where a plan is only read; False when its first is left.
    """
    situation = situation_shown(context)
    target = _device(context, situation, key)

    def _ways(new: str) -> list[Planner]:
        swap = Swap(target.key, new)
        return [partial(plan_replace, swap=swap, sequential=q) for q in (False, True)]

    title = f"REPLACE {_taken(situation, target, key)} WITH"
    return await _for_device(context, target, title, _ways)


def _taken(situation: Situation, target: Target, key: str) -> str:
    """The device that is replaced; why that one, where the cursor is on another row."""
    if target.key == key:
        return target.name
    row = find(situation.pool, key)
    where = row.name if row is not None else situation.pool.name
    return f"{target.name} ({target.vdev.state}: the failed device of {where})"


async def attach_flow(context: FlowContext, key: str) -> bool:
    """Pick the device to add to a mirror, a disk or a raidz."""
    _, target = _vdev(context, key)

    def _ways(new: str) -> list[Planner]:
        return [lambda s: plan_attach(s, key, new)]

    return await _for_device(context, target, f"ATTACH TO {target.name}", _ways)


async def _for_device(
    context: FlowContext,
    target: Target,
    title: str,
    ways: Callable[[str], list[Planner]],
) -> bool:
    """Pick a device and confirm its plan; another one where that is only read."""
    while (new := await _pick_device(context, target, title)) is not None:
        if await confirm(context, ways(new), (new,)):
            return True
    return False


async def batch_flow(context: FlowContext, key: str) -> bool:
    """Give the devices of a vdev their new ones, one after another, then one plan for all."""
    situation, target = _vdev(context, key)
    pool = situation.pool
    keys = [key_of(pool, leaf) for leaf in target.top.leaves()]
    olds = [old for key in keys if key and (old := find(pool, key)) is not None]
    return await replace_together(context, olds, target.top.name, {})


async def replace_together(
    context: FlowContext,
    olds: Sequence[Target],
    where: str,
    chosen: dict[str, str],
    ran: BatchRan | None = None,
) -> bool:
    """Choose a new device for each of these, then one plan for all; False when it is left.

    ``where`` they are, for the title; ``chosen``: the new devices by key, where some are chosen
    already. ``ran`` is told what the plan did.
    """
    look, row = context.look, len(olds) if chosen else 0

    def _lines(width: int) -> tuple[Line, ...]:
        rows = swap_lines([(old, chosen.get(old.key)) for old in olds], look, width)
        return (*rows, (Span(f"  Plan these {len(chosen)}", "bold"),))

    while True:
        title = f"REPLACE DEVICES OF {look.text(where)}  Enter chooses"
        screen = PickScreen(title, _lines, start=row, wide=True)
        picked = await context.app.push_screen_wait(screen)
        if picked is None:
            return False
        row = picked
        if picked == len(olds):
            swaps = tuple(Swap(old, new) for old, new in chosen.items())
            ways = [partial(plan_batch, swaps=swaps, sequential=q) for q in (False, True)]
            told = None if ran is None else partial(ran, swaps)
            if await confirm(context, ways, tuple(chosen.values()), told):
                return True
            continue
        old = olds[picked]
        taken = frozenset(new for key, new in chosen.items() if key != old.key)
        new = await _pick_device(context, old, f"REPLACE {old.name} WITH", taken)
        if new is not None:
            chosen[old.key] = new
            row = min(picked + 1, len(olds))


async def _pick_device(
    context: FlowContext,
    target: Target,
    title: str,
    taken: frozenset[str] = frozenset(),
) -> str | None:
    """The path of the device chosen from the machine's, the pool's spares, or typed.

    The machine's disks, and how warm they are, are asked for while the list is shown.
    """
    listed: list[Candidate] | None = None
    look, row = context.look, 0

    def _lines(width: int) -> tuple[Line, ...]:
        if listed is None:
            return ()
        return (*candidate_lines(listed, look, width), (Span(f"  {OTHER}", "key"),))

    def _about(index: int, width: int) -> tuple[Line, ...]:
        return candidate_about(listed or (), index, look, width)

    async def _fill() -> int:
        nonlocal listed
        if listed is None:
            listed = await _candidates(context, await situation_now(context), target, taken)
        return row

    def _unusable() -> list[int]:
        return [n for n, each in enumerate(listed or ()) if not each.usable]

    while True:
        screen = PickScreen(
            look.text(title),
            _lines,
            start=row,
            wide=True,
            about=_about,
            fill=_fill,
            behind=_unusable,
            rest="that can't be used here",
        )
        chosen = await picked(context, screen)
        if chosen is None or listed is None:
            return None
        if chosen < len(listed):
            return listed[chosen].device.path
        if path := await ask_path(context):
            return path
        row = chosen


async def _candidates(
    context: FlowContext, situation: Situation, target: Target, taken: frozenset[str]
) -> list[Candidate]:
    """The machine's devices, then the pool's spares; what cannot be used comes last."""
    warm = await with_temperatures(context.backend.runner, situation.facts.devices)
    free = spares(situation.pool)
    listed = [
        candidate
        for candidate in ranked(situation.pool, target, replace(situation.facts, devices=warm))
        if candidate.device.path not in taken and candidate.device.path not in free
    ]
    listed += [
        Candidate(
            Device(path, model="hot spare of this pool", size=spare.size_bytes),
            (problem,) if (problem := unfit_spare(spare, target)) else (),
        )
        for path, spare in free.items()
    ]
    return sorted(listed, key=order)


async def ask_path(context: FlowContext) -> str | None:
    """The path typed, None when left. Raises ZconsoleError for one that is not absolute."""
    asked = Span("Absolute path of a file or device, for a disk /dev/disk/by-id/…", "dim")
    lines = partial(said_lines, [asked], context.look)
    path = await context.app.push_screen_wait(AskScreen("PATH", lines))
    if path is not None and not path.startswith("/"):
        raise ZconsoleError(f"{path}: not an absolute path")
    return path


def _vdev(context: FlowContext, key: str) -> tuple[Situation, Target]:
    """The pool on show, and its vdev at the cursor. Raises ZconsoleError without."""
    situation = situation_shown(context)
    target = find(situation.pool, key)
    if target is None:
        raise ZconsoleError("select a vdev of the pool first")
    return situation, target


def _device(context: FlowContext, situation: Situation, key: str) -> Target:
    """The device a replace is about: the one at the cursor, or the only failed one below it.

    Of a spare or replacing group it is the one that failed.
    """
    target = find(situation.pool, key)
    if target is not None and target.vdev.children and leftover(target.vdev):
        first = key_of(situation.pool, target.vdev.children[0])
        target = find(situation.pool, first) if first else None
    if target is not None and not target.vdev.children:
        return target
    return _only_failed(context, situation, target)


def _only_failed(context: FlowContext, situation: Situation, below: Target | None) -> Target:
    """The one failed device of a vdev or the pool. Raises ZconsoleError unless it is one."""
    found = failed(situation.pool, below.key if below else None)
    if len(found) == 1:
        return found[0]
    if not found:
        raise ZconsoleError(_why_none(context, situation, below))
    names = ", ".join(target.name for target in found)
    raise ZconsoleError(f"{names} have failed: select one of them")


def _why_none(context: FlowContext, situation: Situation, below: Target | None) -> str:
    """Why no failed device waits for a replacement, and what to do instead."""
    if context.frame is not None and (way := way_out(context.frame, context.look, 80)):
        return f"{situation.pool.name} is suspended: {way}"
    where, root = (below.name, below.vdev) if below else (situation.pool.name, situation.pool.root)
    lost = [leaf for leaf in root.leaves() if leaf.state in FAILED]
    groups = [
        v for v in root.walk() if v.kind == "replacing" and any(x in lost for x in v.leaves())
    ]
    if said := "; ".join(being_replaced(situation, group) for group in groups):
        way = context.look.keys.way("swap")
        return f"{said}. {way} follows it; to replace another, select a device"
    what = f"has failed{' without a replacement' * bool(lost)}"
    return f"no device of {where} {what}. Select a device to replace"


_DATES = (
    Span("Blocks written in this time are read, in the time zone of this machine.", "dim"),
    Span("The first or the last date may be left out: 2026-11-01, to 2026-11-20", "dim"),
)
_HOURS = (
    Span("The scrub runs between these times of the day, and is paused outside them.", "dim"),
    Span('Its progress is kept. In the time zone of this machine; "off" drops the hours.', "dim"),
)


async def dates_flow(context: FlowContext, _: str) -> bool:
    """Ask for the dates of a scrub, then show its plan; False when left."""

    async def _read(answer: str) -> Planner:
        dates = read_dates(answer, datetime.fromtimestamp(context.backend.clock(), UTC))
        return partial(plan_scrub_dates, dates=dates)

    title, lines = "SCRUB WHAT WAS WRITTEN FROM … TO", partial(said_lines, _DATES, context.look)
    return await ask(context, title, lines, EXAMPLE, _read, lambda way: confirm(context, [way]))


async def window_flow(context: FlowContext, _: str) -> bool:
    """Ask for the hours of a scrub, then show the plan; False when left."""
    frame = context.frame
    hours = next((w.hours for w in context.windows if frame and w.guid == frame.guid), "")
    now = Span(f"Set now: {hours}" if hours else "No hours are set now.", "bold")

    async def _read(answer: str) -> Planner:
        if answer != "off":
            return partial(plan_window, hours=read_hours(answer))
        windows = await in_daemon_thread(context.backend.windows.windows)
        return partial(plan_window_off, windows=windows)

    title, lines = "SCRUB ONLY IN THESE HOURS", partial(said_lines, (now, *_HOURS), context.look)
    example = "for example 22:00-06:00"
    return await ask(context, title, lines, example, _read, lambda way: confirm(context, [way]))
