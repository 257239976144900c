"""What can be done with a row: every action with the plan behind it, or why not now."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
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
from zconsole.actions.sit_out import has_parity, plan_autosit, plan_sit_out
from zconsole.actions.target import Target, find, key_of
from zconsole.actions.trim import CHANGES, plan_work
from zconsole.pool.model import MULTIHOST
from zconsole.ui.actions.add_flow import add_flow
from zconsole.ui.actions.plan_lines import wrapped
from zconsole.ui.actions.replace_flow import attach_flow, batch_flow, replace_flow
from zconsole.ui.actions.session import FlowSession, PickList, Planner
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.widgets.draw import Line, Span, fit

Flow = Callable[[FlowSession, str], Awaitable[bool]]
"""What the console asks, about the row of a key, before there is a plan; False when it was left."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the menu: ``planners`` to plan it, or a flow that asks more first.

    With both, the planners tell whether it can be done, and the flow does it.
    """

    text: str
    planners: tuple[Planner, ...] = ()
    flow: Flow | None = None
    refused: str | None = None
    about: str = ""
    """What it would do, when it can be done."""
    commands: tuple[str, ...] = ()
    """What that runs."""
    wanted: bool = False
    """Whether the state of the pool asks for it, be it that something else has to come first."""

    @property
    def unjudged(self) -> Entry:
        """The entry before it is known whether it can be done."""
        return replace(self, refused=None, about="", commands=()) if self.planners else self

    def judged(self, situation: Situation) -> Entry:
        """The entry with the reason why it cannot be done now, if there is one."""
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
    """List what can be done with the row of this key, and do it."""
    await run_menu(ui, "ACTIONS", lambda now: row_entries(now, key), key, folds=True)


async def run_menu(
    ui: FlowSession,
    title: str,
    entries: Callable[[Situation], tuple[Entry, ...]],
    key: str,
    *,
    folds: bool = False,
) -> None:
    """List entries and do what is picked; ``key`` is of the row that their flows are about.

    They are shown at once, and which of them can be done once the machine has answered. Where it
    ``folds``, what can't be done stands behind one line. What is left without having been run leads
    back here.
    """
    look = ui.look
    found: tuple[Entry, ...] = ()
    behind: tuple[int, ...] = ()

    async def _judge() -> int:
        nonlocal found, behind
        now, _ = await asyncio.gather(ui.situation_now(shown=shown), ui.read_windows())
        found = entries(now)
        behind = out_of_reach(found) if folds else ()
        return first_entry(found)

    choice = PickList(
        title,
        lambda width: menu_lines(found, look, width),
        about=lambda index, width: entry_about(found, index, look, width),
        fill=_judge,
        offers=lambda index: [("command", text) for text in found[index].commands],
        behind=lambda: behind,
        rest="that are not possible now",
    )
    while True:
        shown = ui.situation_shown()
        found = entries(shown)
        choice.start = first_entry(found)
        behind = out_of_reach(found) if folds else ()
        found = tuple(entry.unjudged for entry in found)
        if (picked := await ui.pick(choice)) is None:
            return
        entry = found[picked]
        if await (entry.flow(ui, key) if entry.flow else ui.confirm(*entry.planners)):
            return


def first_entry(entries: Sequence[Entry]) -> int:
    """The index of what is wanted, else of what can be done at all; 0 where nothing can."""
    wanted = (index for index, entry in enumerate(entries) if entry.wanted)
    able = (index for index, entry in enumerate(entries) if entry.refused is None)
    return (*wanted, *able, 0)[0]


def out_of_reach(entries: Sequence[Entry]) -> tuple[int, ...]:
    """The indexes of what can't be done now, but for what the pool's state asks for."""
    return tuple(n for n, each in enumerate(entries) if each.refused and not each.wanted)


def row_entries(situation: Situation, key: str) -> tuple[Entry, ...]:
    """What can be done with one vdev and with the pool, in one order whatever runs.

    Of a suspended pool, what resumes it comes first.
    """
    target = find(situation.pool, key)
    of_row = _of_vdev(situation, target) if target is not None else []
    of_pool = _of_pool(situation)
    found = (*of_pool, *of_row) if situation.suspended else (*of_row, *of_pool)
    return tuple(entry.judged(situation) for entry in found)


def menu_lines(entries: Sequence[Entry], look: DisplayFormat, width: int) -> tuple[Line, ...]:
    """The menu; what cannot be done now is grey, with the reason."""
    refused = (cell_len(entry.text) for entry in entries if entry.refused is not None)
    # Cells before the reasons: half of them, where a text takes more.
    column = min(max(refused, default=0), width // 2) + 2
    return tuple(_line(entry, column, look, width) for entry in entries)


def entry_about(
    entries: Sequence[Entry], index: int, look: DisplayFormat, width: int
) -> tuple[Line, ...]:
    """What the entry would do, or the whole reason why it cannot be done now."""
    entry = entries[index]
    said = entry.refused or entry.about
    return tuple(wrapped(f"{entry.text}: {said}", "", look, width, " ")) if said else ()


def _line(entry: Entry, column: int, look: DisplayFormat, width: int) -> Line:
    text = look.text(entry.text)
    if entry.refused is None:
        return (Span(f"  {text}"),)
    head = fit(text, max(column, cell_len(text) + 2))
    room = max(8, width - cell_len(head) - 4)
    reason = look.text(entry.refused)
    # Where it has to be cut, after its first clause if that fits.
    clause = reason.partition(":")[0] + look.glyphs.ellipsis
    is_clause = cell_len(reason) > room >= cell_len(clause)
    return (Span(f"  {head}{clause if is_clause else look.cut(reason, room)}", "dim"),)


def _of_vdev(situation: Situation, target: Target) -> list[Entry]:
    key, vdev = target.key, target.vdev
    group = vdev if vdev.kind == "spare" and vdev.children else target.group
    entries: list[Entry] = []
    if not vdev.children and vdev.vclass not in ("spare", "cache"):
        entries += _of_leaf(key)
        if has_parity(target.top):
            ways = tuple(partial(plan_sit_out, key=key, on=on) for on in (True, False))
            entries.append(Entry("Let reads go around it, or use it again (sit out)", ways))
    if group is not None and group.kind == "spare":
        failed, spare = (key_of(situation.pool, group.children[i]) or "" for i in (0, -1))
        entries += [
            Entry("Return the spare: replace the failed device", flow=replace_flow, about=_REPLACE),
            Entry("Make the spare permanent", (partial(plan_detach, key=failed),)),
            Entry("Return the spare: the device is fine again", (partial(plan_detach, key=spare),)),
        ]
    if has_parity(target.top):
        ways = tuple(partial(plan_autosit, key=key, on=on) for on in (True, False))
        entries.append(Entry(f"Switch autosit of {target.top.name} (go around slow disks)", ways))
    return [
        *entries,
        Entry(
            f"Replace several devices of {target.top.name} at once",
            flow=batch_flow,
            about="Asks for the new device of each; one resilver fills them all",
        ),
        Entry(
            "Attach a device",
            flow=attach_flow,
            about="Asks for the device: a further side of a mirror, or a wider raidz",
        ),
        Entry(
            f"Expand {target.top.name} to the full size of its disks",
            (lambda s: plan_expand(s, key),),
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


async def change_disk(ui: FlowSession, key: str) -> bool:
    """The guided swap; its screens are loaded once they are wanted."""
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
    clear = Entry("Clear the errors of the pool, or resume it", (plan_clear,), wanted=resumes)
    others = [
        Entry(
            "Add a vdev, log, cache, hot spare or special vdev",
            flow=add_flow,
            refused=ANSWERING.check(situation),
            about="Asks what to add and which devices; shows what the pool is like afterwards",
        ),
        Entry("Discard the checkpoint", (plan_discard,)),
        Entry("Switch autoexpand on", (lambda s: plan_autoexpand(s, on=True),)),
        Entry("Switch autoexpand off", (lambda s: plan_autoexpand(s, on=False),)),
        Entry("Switch off every light lit from here", (plan_lights_off,)),
    ]
    # It forgets what is damaged: not what the cursor begins on, unless the pool waits for it.
    return [clear, *others] if situation.suspended else [*others, clear]
