"""The flow of adding to a pool: what, which devices, then its plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

from textual.binding import BindingType

from zconsole.actions.add import meaning, permanent, plan_add, removable
from zconsole.actions.candidates import Candidate, judge_new
from zconsole.actions.facts import with_temperatures
from zconsole.actions.layout import Layout, layouts, member_bytes, wanted_shift
from zconsole.actions.plan import Situation
from zconsole.hardware.device import Device
from zconsole.ui.actions.plan_lines import candidate_about, candidate_lines, wrapped
from zconsole.ui.actions.replace_flow import OTHER, ask_path
from zconsole.ui.actions.session import FlowSession, PickList
from zconsole.ui.dialogs.screens import PickScreen
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.keys import bindings
from zconsole.ui.widgets.draw import Line, Span
from zconsole.units import counted, size

MARK = "x"
SMALL = 0.9
"""Share of the pool's disks below which a disk is said to be smaller."""


async def add_flow(ui: FlowSession, _: str) -> bool:
    """Pick what to add to the pool on show, mark its devices, then confirm the plan."""
    situation = await ui.situation_now()
    found = layouts(situation)
    choice = _layouts(ui, situation, found)
    while (picked := await ui.pick(choice)) is not None:
        layout, count = found[picked]
        marking = await _marking(ui, situation, layout, count)
        while devices := await _devices(ui, marking):  # others where a plan is only read
            plan = partial(plan_add, layout=layout, devices=devices)
            if await ui.confirm(plan, paths=devices):
                return True
    return False


def layout_text(layout: Layout, count: int, free: int) -> str:
    """One line of the menu: ``special mirror of 3 disks``, ``hot spares``.

    ``free`` is how many disks there are to be used.
    """
    if layout.vclass == "normal":
        least = f", at least {layout.least}" if layout.least < count else ""
        return f"{layout.kind} of {count} disks like the others{least}; {free} free"
    if count:
        return f"{layout.vclass}: a mirror of {count} disks"
    return {"log": "log: single disks", "cache": "cache: single disks"}.get(
        layout.vclass, "hot spare"
    )


def _layouts(
    ui: FlowSession, situation: Situation, found: Sequence[tuple[Layout, int]]
) -> PickList:
    look = ui.look
    lacking = [why_not(situation, *each) for each in found]

    def _about(index: int, width: int) -> tuple[Line, ...]:
        layout, why = found[index][0], lacking[index]
        said = (*meaning(layout), permanent(situation, layout) or removable(situation, layout))
        head = wrapped(f"Not now: {why}", "warning", look, width, " ") if why else ()
        return (*head, *(line for text in said for line in wrapped(text, "", look, width, " ")))

    near = member_bytes(situation)
    judged = _judged(situation, Layout("normal"), situation.facts.devices)
    free = sum(each.usable and not _is_small(each.device, near) for each in judged)
    texts = [layout_text(*each, free) for each in found]

    def _lines(width: int) -> tuple[Line, ...]:
        return tuple(  # grey, with the reason, where it cannot be added now
            look.crop((Span(f"  {text}: {why}", "dim") if why else Span(f"  {text}"),), width)
            for text, why in zip(texts, lacking, strict=True)
        )

    return PickList(f"ADD TO {look.text(situation.pool.name)}", _lines, about=_about)


def why_not(situation: Situation, layout: Layout, count: int) -> str | None:
    """Why this cannot be added with the disks there are; None where it can.

    Asked of the disks that fit best: with a device that is typed it may be possible all the same.
    """
    judged = _judged(situation, layout, situation.facts.devices)
    paths = tuple(each.device.path for each in judged if each.usable)
    least = layout.least if layout.vclass == "normal" else count or layout.least
    if len(paths) < least:
        are = {0: "is none", 1: "is one"}.get(len(paths), f"are {len(paths)}")
        return f"needs {counted(least, 'free disk')}, there {are}"
    return plan_add(situation, layout, paths[: count or layout.least]).refused


@dataclass(slots=True)
class Marking:
    """The machine's devices, and those marked for what is to be added."""

    title: str
    count: int
    """How many it takes to be like the pool's own; 0: any number."""
    least: int
    """The fewest it can be made of."""
    listed: list[Candidate]
    marked: dict[str, None] = field(default_factory=dict)
    """Paths, in the order they were marked."""

    def mark(self, index: int) -> None:
        """Mark a device that can be used, or unmark it."""
        if index >= len(self.listed) or not self.listed[index].usable:
            return
        path = self.listed[index].device.path
        if path in self.marked:
            del self.marked[path]
        else:
            self.marked[path] = None

    def add(self, path: str) -> None:
        """Mark a device that was typed."""
        if all(each.device.path != path for each in self.listed):
            self.listed.append(Candidate(Device(path), cautions=("not examined yet",)))
        self.marked[path] = None

    def lines(self, look: DisplayFormat, width: int) -> tuple[Line, ...]:
        """One line per device, the marked ones with a mark, and one to type another path."""
        shown: list[Line] = []
        for each, line in zip(self.listed, candidate_lines(self.listed, look, width), strict=True):
            first, *rest = line
            if each.device.path in self.marked:
                first = first._replace(text=f"{MARK} {first.text[2:]}")
            shown.append((first, *rest))
        return (*shown, (Span(f"  {OTHER}", "key"),))

    @property
    def head(self) -> str:
        """What is chosen for, and how far that is."""
        wanted = f" of {self.count}" if self.count else ""
        least = f", at least {self.least}" if self.least < self.count else ""
        return f"{self.title}: {len(self.marked)}{wanted} marked{least}"


class DevicesScreen(PickScreen):
    """The devices to mark; Enter goes on with them, or with the one at the cursor."""

    groups = ("Menu", "Devices")
    BINDINGS: ClassVar[list[BindingType]] = bindings("Devices")

    def __init__(self, marking: Marking, look: DisplayFormat, start: int) -> None:
        self.marking, self._look = marking, look
        super().__init__(
            marking.title,
            lambda width: marking.lines(look, width),
            start=start,
            wide=True,
            about=lambda index, width: candidate_about(marking.listed, index, look, width),
        )

    def title_line(self, _: int) -> Line:
        """What is chosen for, and how many are marked."""
        return (Span(f" {self._look.text(self.marking.head)}", "title"),)

    def action_mark(self) -> None:
        """Mark the device at the cursor, or unmark it, and go to the next."""
        self.marking.mark(self.view.cursor)
        self.update()
        self.view.move(1)


async def _marking(ui: FlowSession, situation: Situation, layout: Layout, count: int) -> Marking:
    """The machine's devices: those that can be used first, of them those of the pool's size."""
    warm = await with_temperatures(ui.backend.runner, situation.facts.devices)
    judged = _judged(situation, layout, warm)
    near = _wanted_bytes(situation, layout)

    def _order(each: Candidate) -> tuple[bool, int, str, str]:
        device = each.device
        return not each.usable, abs((device.size or 0) - near), device.bay, device.path

    judged.sort(key=_order)
    return Marking(f"ADD {layout.name} TO {situation.pool.name}", count, layout.least, judged)


def _wanted_bytes(situation: Situation, layout: Layout) -> int:
    """The size of the pool's own disks, where a new one should have it; else 0."""
    return member_bytes(situation) if layout.vclass in ("normal", "spare") else 0


def _is_small(device: Device, near: int) -> bool:
    return device.size is not None and device.size < near * SMALL


def _judged(situation: Situation, layout: Layout, devices: Iterable[Device]) -> list[Candidate]:
    """What speaks against each device there; that it is much smaller than the pool's disks, too."""
    near, judged = _wanted_bytes(situation, layout), []
    for device in devices:
        each = judge_new(situation.pool, device, wanted_shift(situation, layout))
        if _is_small(device, near):
            small = f"smaller than the pool's disks ({size(near)})"
            each = replace(each, cautions=(*each.cautions, small))
        judged.append(each)
    return judged


async def _devices(ui: FlowSession, marking: Marking) -> tuple[str, ...]:
    """The paths of the devices chosen; none when left."""
    row = 0
    while (chosen := await ui.show(DevicesScreen(marking, ui.look, row))) is not None:
        if chosen < len(marking.listed):
            return tuple(marking.marked) or (marking.listed[chosen].device.path,)
        if (path := await ask_path(ui)) is not None:
            marking.add(path)
        row = len(marking.listed)
    return ()
