"""Menu of the actions on a row: each with the plan behind it, or the reason it is unavailable."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from rich.cells import cell_len

from zconsole.actions.checkpoint import plan_discard
from zconsole.actions.clear import plan_clear
from zconsole.actions.conditions import ANSWERING
from zconsole.actions.growth import plan_autoexpand, plan_expand
from zconsole.actions.locate import plan_lights_off, plan_locate
from zconsole.actions.offline import plan_detach, plan_offline, plan_online
from zconsole.actions.plan import Situation
from zconsole.actions.remove import plan_cancel, plan_remove
from zconsole.actions.replace import plan_replace
from zconsole.actions.sit_out import has_parity, plan_autosit, plan_sit_out
from zconsole.actions.target import Swap, Target, failed, find, key_of
from zconsole.actions.trim import CHANGES, plan_work
from zconsole.pool.model import APART, MULTIHOST
from zconsole.pool.spares import spares, unfit_spare
from zconsole.ui.actions.add_flow import add_flow
from zconsole.ui.actions.remove_flow import remove_flow
from zconsole.ui.actions.replace_flow import attach_flow, batch_flow, replace_flow, replace_with
from zconsole.ui.actions.session import FlowSession, Planner
from zconsole.ui.dialogs.screens import PickList
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.widgets.draw import Line, Lines, Span, fit

Flow = Callable[[FlowSession, str], Awaitable[bool]]
"""Asks the operator for details before a plan is made; returns False if it was left."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the menu: planners that make its plan, or a flow that asks for details first.

    With both, the planners tell whether the action is possible, and the flow carries it out.
    """

    text: str
    planners: tuple[Planner, ...] = ()
    flow: Flow | None = None
    refused: str | None = None
    about: str = ""
    """What the action would do, if it is possible."""
    commands: tuple[str, ...] = ()
    """The commands that the action would run."""
    wanted: bool = False
    """Whether the pool's state calls for this action, even if another has to come first."""

    @property
    def unjudged(self) -> Entry:
        """Copy of the entry without the verdict on whether it is possible."""
        return replace(self, refused=None, about="", commands=()) if self.planners else self

    def judged(self, situation: Situation) -> Entry:
        """Return the entry with its effect and commands, or with the reason it is impossible."""
        if not self.planners:
            return self
        plans = [planner(situation) for planner in self.planners]
        able = next((plan for plan in plans if plan.refused is None), None)
        if able is None:
            return replace(self, refused=plans[0].refused)
        commands = tuple(step.command for step in able.steps)
        about = ". ".join((*able.consequences[:1], f"Runs: {'; '.join(commands)}"))
        return replace(self, about=about, commands=commands)


async def actions_flow(ui: FlowSession, key: str) -> None:
    """Show the actions for the row with this key, and carry out the chosen one."""
    await run_menu(ui, "ACTIONS", lambda now: row_entries(now, key), key, folds=True)


async def run_menu(
    ui: FlowSession,
    title: str,
    entries: Callable[[Situation], tuple[Entry, ...]],
    key: str,
    *,
    folds: bool = False,
) -> None:
    """Show a menu and carry out the chosen entries; ``key`` is the row that their flows act on.

    The menu opens at once, and shows which entries are possible once the machine has answered. With
    ``folds``, impossible entries are hidden behind one line. A plan that is left without being run
    leads back to the menu.
    """
    picked: int | None = None
    while True:
        if (chosen := await _pick_entry(ui, title, entries, picked, folds)) is None:
            return
        picked, entry = chosen
        if await (entry.flow(ui, key) if entry.flow else ui.confirm(*entry.planners)):
            return


async def _pick_entry(
    ui: FlowSession,
    title: str,
    make: Callable[[Situation], tuple[Entry, ...]],
    picked: int | None,
    folds: bool,
) -> tuple[int, Entry] | None:
    """Show the menu once, with the cursor on the entry picked before; return the one picked now.

    An answer that comes late changes these entries only.
    """
    shown = ui.situation_shown()
    first = make(shown)
    # No entry is called impossible before the machine has answered.
    entries = [entry.unjudged for entry in first]
    behind = out_of_reach(first) if folds else []

    async def _judge() -> int:
        now, _ = await asyncio.gather(ui.situation_now(shown=shown), ui.read_windows())
        entries[:] = make(now)
        behind[:] = out_of_reach(entries) if folds else []
        return first_entry(entries)

    menu = PickList(
        title,
        partial(menu_lines, entries),
        start=first_entry(first),
        about=lambda index, look, width: entry_about(entries[index], look, width),
        fill=_judge,
        offers=lambda index: [("command", text) for text in entries[index].commands],
        behind=lambda: behind,
        rest="that are not possible now",
        picked=picked,
    )
    picked = await ui.pick(menu)
    return None if picked is None else (picked, entries[picked])


def first_entry(entries: Sequence[Entry]) -> int:
    """Return the index of the wanted entry, else of the first possible one, else 0."""
    wanted = (index for index, entry in enumerate(entries) if entry.wanted)
    able = (index for index, entry in enumerate(entries) if entry.refused is None)
    return (*wanted, *able, 0)[0]


def out_of_reach(entries: Sequence[Entry]) -> list[int]:
    """Return the indexes of impossible entries, except those that the pool's state calls for."""
    return [n for n, each in enumerate(entries) if each.refused and not each.wanted]


def row_entries(situation: Situation, key: str) -> tuple[Entry, ...]:
    """Return the actions for a vdev and its pool; their order does not depend on what is running.

    If the pool is suspended, the pool's actions come first, with the one that resumes it.
    """
    target = find(situation.pool, key)
    of_row = _of_vdev(situation, target) if target is not None else []
    of_pool = _of_pool(situation)
    found = (*of_pool, *of_row) if situation.suspended else (*of_row, *of_pool)
    return tuple(entry.judged(situation) for entry in found)


def menu_lines(entries: Sequence[Entry], look: DisplayFormat, width: int) -> Lines:
    """Return the lines of the menu; an impossible entry is dim and has its reason."""
    refused = (cell_len(entry.text) for entry in entries if entry.refused is not None)
    # Align the reasons, at most at half the width: a longer text pushes its own reason right.
    column = min(max(refused, default=0), width // 2) + 2
    return tuple(_line(entry, column, look, width) for entry in entries)


def entry_about(entry: Entry, look: DisplayFormat, width: int) -> Lines:
    """Return the effect of an entry, or the full reason why it can't be done now."""
    said = entry.refused or entry.about
    return tuple(look.wrapped(f"{entry.text}: {said}", width)) if said else ()


def _line(entry: Entry, column: int, look: DisplayFormat, width: int) -> Line:
    text = look.text(entry.text)
    if entry.refused is None:
        return (Span(f"  {text}"),)
    head = fit(text, max(column, cell_len(text) + 2))
    room = max(8, width - cell_len(head) - 4)
    reason = look.text(entry.refused)
    # A reason that does not fit is cut after its first clause, if that fits.
    clause = reason.partition(":")[0] + look.glyphs.ellipsis
    is_clause = cell_len(reason) > room >= cell_len(clause)
    return (Span(f"  {head}{clause if is_clause else look.cut(reason, room)}", "dim"),)


def _of_vdev(situation: Situation, target: Target) -> list[Entry]:
    key, vdev = target.key, target.vdev
    group = vdev if vdev.kind == "spare" and vdev.children else target.group
    entries: list[Entry] = []
    if not vdev.children and vdev.vclass not in APART:
        entries += _of_leaf(key)
        if has_parity(target.top):
            ways = tuple(partial(plan_sit_out, key=key, on=on) for on in (True, False))
            entries.append(Entry("Let reads go around it, or use it again (sit out)", ways))
    if group is not None and group.kind == "spare":
        # A spare group has the failed device first, and the spare last.
        failed, spare = (key_of(situation.pool, group.children[i]) or "" for i in (0, -1))
        entries += [
            Entry("Return the spare: replace the failed device", flow=replace_flow, about=_REPLACE),
            Entry("Make the spare permanent", (partial(plan_detach, key=failed),)),
            Entry("Return the spare: the device is fine again", (partial(plan_detach, key=spare),)),
        ]
    if has_parity(target.top):
        ways = tuple(partial(plan_autosit, key=key, on=on) for on in (True, False))
        entries.append(Entry(f"Switch autosit of {target.top.name} (go around slow disks)", ways))
    if target.top.children:
        text = f"Replace several devices of {target.top.name} at once"
        about = "Asks for the new device of each; one resilver fills them all"
        entries.append(Entry(text, flow=batch_flow, about=about))
    if vdev.vclass not in APART:
        about = "Asks for the device: a further side of a mirror, or a wider raidz"
        entries.append(Entry("Attach a device", flow=attach_flow, about=about))
    return [
        *entries,
        Entry(
            f"Expand {target.top.name} to the full size of its disks",
            (lambda s: plan_expand(s, key),),
        ),
        Entry(
            f"Remove {target.top.called} from the pool",
            (partial(plan_remove, key=key),),
            remove_flow,
        ),
    ]


_REPLACE = "Asks for the new device, then shows the plan; the old device may stay until the end"


def _of_leaf(key: str) -> list[Entry]:
    return [
        Entry(
            "Change this disk, step by step (guided swap)",
            flow=change_disk,
            about="Leads from finding the disk in its bay to its resilver; asks before each step",
        ),
        Entry("Light its bay", (lambda s: plan_locate(s, key, on=True),)),
        Entry("Switch its light off", (lambda s: plan_locate(s, key, on=False),)),
        Entry("Replace this device", flow=replace_flow, about=_REPLACE),
        Entry(
            "Take it offline",
            (
                lambda s: plan_offline(s, key),
                lambda s: plan_offline(s, key, temporary=True),
            ),
        ),
        Entry("Put it online", (lambda s: plan_online(s, key),)),
        Entry("Detach it", (lambda s: plan_detach(s, key),)),
        Entry("Clear its errors", (lambda s: plan_clear(s, key),)),
        *_work("trim", key),
        *_work("initialize", key),
    ]


def _of_spares(situation: Situation) -> Iterator[Entry]:
    """Yield an entry for each failed device that a free hot spare fits."""
    free = spares(situation.pool)
    for old in failed(situation.pool):
        fitting = (p for p, v in free.items() if unfit_spare(v, old.vdev, old.top) is None)
        if (path := next(fitting, None)) is not None:

            async def _use(ui: FlowSession, _: str, key: str = old.key, new: str = path) -> bool:
                return await replace_with(ui, key, new)

            text = f"Let hot spare {free[path].called} stand in for {old.name}"
            yield Entry(text, (partial(plan_replace, swap=Swap(old.key, path)),), _use)


async def change_disk(ui: FlowSession, key: str) -> bool:
    """Run the guided swap; its screens are imported on demand."""
    from zconsole.ui.swap.flow import swap_flow

    await swap_flow(ui, key)
    return True


def _work(verb: str, key: str) -> list[Entry]:
    return [
        Entry(f"{change.capitalize()} {verb}", (partial(plan_work, verb, key=key, change=change),))
        for change in CHANGES
    ]


def _of_pool(situation: Situation) -> list[Entry]:
    resumes = situation.suspended and situation.pool.suspension != MULTIHOST
    resume = "Resume the pool, and clear its errors"
    title = resume if situation.suspended else "Clear the errors of the pool"
    clear = Entry(title, (plan_clear,), wanted=resumes)
    others = [
        *_of_spares(situation),
        Entry(
            "Add a vdev, log, cache, hot spare or special vdev",
            flow=add_flow,
            refused=ANSWERING.check(situation),
            about="Asks what to add and which devices; shows what the pool is like afterwards",
        ),
        Entry("Cancel the removal of a vdev", (plan_cancel,)),
        Entry("Discard the checkpoint", (plan_discard,)),
        Entry("Switch autoexpand on", (lambda s: plan_autoexpand(s, on=True),)),
        Entry("Switch autoexpand off", (lambda s: plan_autoexpand(s, on=False),)),
        Entry("Switch off every light lit from here", (plan_lights_off,)),
    ]
    # zpool clear resets the counters that tell what is damaged: the cursor doesn't start on it,
    # unless the pool is suspended and needs it.
    return [clear, *others] if situation.suspended else [*others, clear]
