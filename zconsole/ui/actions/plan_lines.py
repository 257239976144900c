"""Plans and candidate disks as lines of the screen; text from outside is escaped first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich.cells import cell_len

from zconsole.actions.candidates import Candidate
from zconsole.actions.plan import ActionPlan
from zconsole.actions.target import Target
from zconsole.pool.chassis import LeafDisk
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.widgets.draw import Line, Lines, Span, fit, short_names


def plan_lines(plan: ActionPlan, denied: str, look: DisplayFormat, width: int) -> Lines:
    """Return the lines of a plan: objections, commands, effects, and what can't be undone."""
    refused = plan.refused is not None
    heading = "Would run" if refused else "To run by hand" if denied else "Will run"
    blocks = [
        ("Unavailable", [plan.refused or ""], "error"),
        ("Instead", plan.alternatives if refused else (), ""),
        ("Check first", plan.doubts, "warning"),
        (heading, [step.command for step in plan.steps], "bold"),
        ("Where the disks are", plan.where, "bold"),
        ("What it would do" if refused else "What it does", plan.consequences, ""),
        ("Cannot be undone", plan.not_undone, "warning"),
        ("Known bugs of this OpenZFS", plan.hazards, "error"),
        ("Warnings", plan.warnings, "warning"),
        ("Unavailable", [denied], "error"),
    ]
    return block_lines(blocks, look, width)


def block_lines(
    blocks: Iterable[tuple[str, Sequence[str], str]], look: DisplayFormat, width: int
) -> Lines:
    """Return blocks of texts, each with its heading and role; those without text are left out."""
    lines: list[Line] = []
    for title, texts, role in blocks:
        if any(texts):
            lines.append((Span(f" {title}", "bold"),))
            lines += (line for text in texts for line in look.wrapped(text, width, role, "  "))
    return tuple(lines)


def said_lines(said: Iterable[Span], look: DisplayFormat, width: int) -> Lines:
    """Return text from outside, escaped and wrapped to the width, each part in its role."""
    return tuple(line for s in said for line in look.wrapped(s.text, width, s.role, "  "))


def part(title: str, texts: Iterable[str], role: str) -> list[Span]:
    """Return texts under a heading, for ``said_lines``; empty without texts."""
    found = [Span(f"  {text}", role) for text in texts if text]
    return [Span(title, "bold"), *found] if found else []


def candidate_lines(candidates: Sequence[Candidate], look: DisplayFormat, width: int) -> Lines:
    """Return one line per device: what it is, and any objections to it."""
    names = _names(candidates, look, width)
    lines: list[Line] = []
    for candidate in candidates:
        start = _start(candidate, names, look)
        shown = look.cut(_said(candidate), max(4, width - cell_len(start)))
        doubtful = candidate.usable and candidate.cautions
        name = Span(start, "" if candidate.usable else "dim")
        lines.append((name, Span(shown, "warning" if doubtful else "dim")))
    return tuple(lines)


COLUMNS = "name, size, sectors (logical/physical bytes), serial number, device, model"
"""The columns of ``candidate_lines``, from left to right."""


def candidate_about(
    candidates: Sequence[Candidate], index: int, look: DisplayFormat, width: int
) -> Lines:
    """Return the path of a device and its full description, if its line had to be cut.

    Below it are the names of the columns, which have no headings. Empty for an index after the last
    device.
    """
    if index >= len(candidates):
        return ()
    candidate = candidates[index]
    device, said = candidate.device, look.text(_said(candidate))
    name = look.text(device_name(device.path))
    start = _start(candidate, _names(candidates, look, width), look)
    told = tuple(look.wrapped(COLUMNS, width, "dim"))
    if name in start and cell_len(start + said) <= width:
        return told
    return (*look.wrapped(device.path, width, "bold"), *look.wrapped(said, width), *told)


def swap_lines(
    swaps: Sequence[tuple[Target, str | None]], look: DisplayFormat, width: int
) -> Lines:
    """Return one line per device: its state, and the path of its replacement."""
    room = max(12, width // 3)
    short = short_names([look.text(old.name) for old, _ in swaps], room, look.glyphs.ellipsis)
    lines: list[Line] = []
    for old, new in swaps:
        start = f"  {fit(short[look.text(old.name)], room)} "
        state = f"{fit(old.vdev.state, 9)} {look.glyphs.arrow} "
        left = max(4, width - cell_len(start + state) - 1)
        said = look.middle(device_name(new) if new else "stays", left)
        lines.append((Span(start), Span(state, "dim"), Span(said, "bold" if new else "dim")))
    return tuple(lines)


def device_name(path: str) -> str:
    """Return the name of a device for people: without its /dev/disk/by-* directory."""
    return path.rpartition("/")[2] if "/by-" in path else path


def _names(candidates: Sequence[Candidate], look: DisplayFormat, width: int) -> Mapping[str, str]:
    """Return the shortened name of each device by path; all have one width, and stay distinct."""
    shown = {c.device.path: look.text(device_name(c.device.path)) for c in candidates}
    longest = max(map(cell_len, shown.values()), default=0)
    room = max(16, min(44, width // 2, longest))
    short = short_names(list(shown.values()), room, look.glyphs.ellipsis)
    return {path: fit(short[name], room) for path, name in shown.items()}


def _said(candidate: Candidate) -> str:
    device = candidate.device
    heat = f"{device.temperature:.0f}C" if device.temperature is not None else ""
    name, node = device_name(device.path), device.node.rpartition("/")[2]
    bay = "" if device.bay == name else LeafDisk(bay=device.bay).words()
    facts = "  ".join(filter(None, (bay, device.serial, node, heat, device.model)))
    return "; ".join((*candidate.problems, *candidate.cautions)) or facts


def _start(candidate: Candidate, names: Mapping[str, str], look: DisplayFormat) -> str:
    device = candidate.device
    known = device.kind == "disk" and (device.logical or device.physical)
    sectors = f"{device.logical or '?'}/{device.physical or '?'}" if known else ""
    size = fit(look.size(device.size), 6, right=True)
    return f"  {names[device.path]} {size} {fit(sectors, 9)} "
