"""Plans and candidates as lines of the screen; all outside text is made safe first."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len

from zconsole.actions.candidates import Candidate
from zconsole.actions.plan import Plan
from zconsole.ui.draw import Line, Span, fit
from zconsole.ui.look import Look


def plan_lines(plan: Plan, denied: str, look: Look, width: int) -> tuple[Line, ...]:
    """What will run, what it will do, what it will not undo."""
    lines: list[Line] = []
    if plan.refused is not None:
        lines += _block("Not possible now", (plan.refused,), "error", look, width)
        lines += _block("Instead", plan.alternatives, "", look, width)
    heading = "Would run" if plan.refused else "To run by hand" if denied else "Will run"
    commands = tuple(step.command for step in plan.steps)
    lines += _block(heading, commands, "accent", look, width)
    lines += _block("What will happen", plan.consequences, "", look, width)
    lines += _block("What cannot be undone", plan.not_undone, "warning", look, width)
    lines += _block("Look twice", plan.warnings, "warning", look, width)
    checked = tuple(p.text for p in plan.preconditions)
    if plan.refused is None:
        lines += _block("Checked now, and again before it runs", checked, "dim", look, width)
    if denied:
        lines += _block("Not from here", (denied,), "error", look, width)
    return tuple(lines)


def wrapped(text: str, role: str, look: Look, width: int, indent: str = "  ") -> Iterator[Line]:
    """Outside text, safe and wrapped to the width."""
    room = max(20, width - len(indent) - 1)
    for line in textwrap.wrap(look.text(text), room, break_on_hyphens=False) or [""]:
        yield (Span(indent + line, role),)


def candidate_lines(candidates: Sequence[Candidate], look: Look, width: int) -> tuple[Line, ...]:
    """A line a device: what it is, and what stands against it."""
    longest = max((cell_len(look.text(_name(each))) for each in candidates), default=0)
    names = max(16, min(44, width // 2, longest))
    return tuple(_candidate(candidate, names, look, width) for candidate in candidates)


def _name(candidate: Candidate) -> str:
    path = candidate.device.path
    return path.rpartition("/")[2] if "/by-" in path else path


def _candidate(candidate: Candidate, names: int, look: Look, width: int) -> Line:
    device = candidate.device
    heat = f"{device.temperature:.0f}C" if device.temperature is not None else ""
    known = device.kind == "disk" and (device.logical or device.physical)
    sectors = f"{device.logical or '?'}/{device.physical or '?'}" if known else ""
    facts = "  ".join(filter(None, (device.node.rpartition("/")[2], device.serial, heat)))
    doubts = (*candidate.problems, *candidate.cautions)
    said = "; ".join(doubts) if doubts else f"{device.model}  {facts}"
    start = (
        f"  {fit(look.text(_name(candidate)), names, ellipsis=look.glyphs.ellipsis)} "
        f"{fit(look.size(device.size), 6, right=True)} {fit(sectors, 9)} "
    )
    room = max(4, width - len(start))
    shown = fit(look.text(said), room, ellipsis=look.glyphs.ellipsis).rstrip()
    if not candidate.usable:
        return (Span(f"{start}{shown}", "dim"),)
    return (Span(start), Span(shown, "warning" if candidate.cautions else "dim"))


def _block(title: str, texts: Iterable[str], role: str, look: Look, width: int) -> list[Line]:
    found = [line for text in texts for line in wrapped(text, role, look, width)]
    return [(Span(f" {title}", "bold"),), *found] if found else []
