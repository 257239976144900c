"""Labeled texts of the scan pane: the limit of the scan, a suggestion, and devices in trouble."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from zconsole.pool.model import HostLoad
from zconsole.timeline.frame import AUTOPILOT, Frame
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.panes.pane import Ink
from zconsole.ui.panes.reasons import as_called, resume_advice
from zconsole.ui.widgets.draw import Line, Span, at_most, beside
from zconsole.units import percent

if TYPE_CHECKING:
    from zconsole.diagnosis.bottleneck.finding import Suggestion
    from zconsole.diagnosis.device_errors.faults import DeviceFault

_SURE = 0.5
"""Certainty (0 to 1) below which the limit is called "perhaps" one."""
_NAME = 22
"""Cells of a device's name in a text that takes more lines than there are."""
_BLANK: list[Line] = [()]


def advice_lines(ink: Ink, *, running: int) -> list[Line]:
    """Return lines on the limit of the running scan, a suggestion, and devices in trouble.

    The number of lines does not depend on what there is to say. On a low screen there are only one
    or two lines, with several ``running`` scans just one.
    """
    is_running = running > 0
    if ink.compact:
        said, rows = _low(ink, is_running), 1 + (running == 1)
        return [*said[-rows:], *_BLANK * (rows - len(said))]
    most = 2 if ink.roomy else 1
    if not is_running:
        told = ink.frame.troubles and not ink.frame.problem
        return _troubles(most, ink) if told else _BLANK * most
    if ink.frame.problem:
        said = fixed("slowed by", "unknown while the pool does not answer", 1, ink, "dim")
        return [*said, *_BLANK * (2 * most + 2 * ink.roomy)]
    lines = _limited(most, ink)
    if not ink.roomy:
        return lines
    # Lazy: the default screen size, which has no room for this, paints faster without it.
    from zconsole.tunables.catalog import BY_NAME, unusual

    found = unusual(ink.frame.tunables, ink.frame.version)
    shown = ((BY_NAME[name].rounded, name, *both) for name, both in found.items())
    values = ", ".join(
        f"{name}={show(now)} (default {show(usual)})" for show, name, now, usual in shown
    )
    if ink.frame.tunables and not values:
        values = "defaults"
    load = machine(ink.frame.host, ink.look)
    return [*lines, *fixed("tunables", values, 1, ink), *fixed("machine", load, 1, ink)]


def _low(ink: Ink, is_running: bool) -> list[Line]:
    """Return the lines for a low screen: the limit, then the worst trouble, else a suggestion."""
    if ink.frame.suspended:
        return fixed("try", resume_advice(ink.frame, ink.look, ink.width - LABEL - 2), 1, ink)
    if ink.frame.problem:
        return []
    troubles = _troubles(1, ink) if ink.frame.troubles else []
    if not is_running:
        return troubles
    return [*_limit(ink, 1), *(troubles or _suggestion(1, ink))]


def _limit(ink: Ink, rows: int) -> list[Line]:
    """Return lines on what the running scan waits for: one, or as many as needed of ``rows``."""
    limit, scan = ink.frame.limit, ink.frame.scan
    if limit is None or limit.cause == "unclear":
        is_paused = scan is not None and scan.scan.state == "paused"
        return fixed("slowed by", "" if is_paused else "not known yet", 1, ink, "dim")
    doubt = "perhaps " if limit.sure < _SURE else ""
    told = as_called(limit.text, ink.names)
    text = _with_short_names("slowed by", f"{doubt}{ink.look.rates(told)}", 1, ink)
    lines = fixed("slowed by", text, rows, ink)
    return [line for number, line in enumerate(lines) if line or not number]


def _limited(most: int, ink: Ink) -> list[Line]:
    """Return a line for the limit, and ``most`` lines each for suggestion and troubles.

    A long limit or suggestion also gets the lines of parts that have nothing to say.
    """
    told = ink.frame.troubles
    advice = _suggestion(most if told else 2 * most, ink)
    if not told and any(advice[most:]):
        return [*_limit(ink, 1), *advice]
    if advice and told:
        return [*_limit(ink, 1), *advice[:most], *_troubles(most, ink)]
    # The lines below must not move for a longer limit; the zoomed pane shows all of it.
    limits = _limit(ink, 1 if advice and not ink.whole else 1 + most)
    rest = most + 1 - len(limits)
    if not advice:
        return [*limits, *_BLANK * rest, *_troubles(most, ink)]
    troubles = _troubles(max(1, rest), ink) if rest or ink.whole else []
    return [*limits, *advice[:most], *troubles]


def suggested(frame: Frame) -> Suggestion | None:
    """Return the suggestion on the limit; None if there is none, or the limit is unclear.

    While an autopilot runs, None also for starting it, and for setting a tunable that it sets, as
    that would end it.
    """
    if frame.limit is None or frame.limit.cause == "unclear" or not frame.limit.advice:
        return None
    found = frame.limit.suggestion
    if any(view.activity.kind == AUTOPILOT for view in frame.activities):
        # Lazy import: mostly no autopilot runs, and the first paint waits for all that is imported.
        from zconsole.tunables.hold_latency import LEVERS

        if found.act == "hold" or found.tunable in LEVERS:
            return None
    return found


def _suggestion(rows: int, ink: Ink) -> list[Line]:
    """Return the suggestion in exactly ``rows`` lines; no lines if there is none."""
    found = suggested(ink.frame)
    if found is None:
        return []
    text = as_called(ink.look.said(found.text), ink.names)
    return fixed("try", _with_short_names("try", text, rows, ink), rows, ink)


def _with_short_names(label: str, text: str, rows: int, ink: Ink) -> str:
    """Shorten long device names in a text that would take more than ``rows`` lines."""
    if not ink.whole and len(paragraph(label, text, ink.look, ink.width)) > rows:
        for row in ink.frame.rows:
            name = row.vdev.name
            if len(name) > _NAME and name in text:
                text = text.replace(name, ink.look.middle(name, _NAME))
    return text


def _troubles(rows: int, ink: Ink) -> list[Line]:
    """Return lines on devices with new errors or flaps, the worst first, with the likely cause."""
    found = ink.frame.troubles
    if not found:
        since = ink.frame.quiet_since
        none = "none" if since is None else f"none since {ink.look.when(since, ink.frame.t)}"
        return fixed("new errors", none, rows, ink, "dim")
    if len(found) == 1 or (rows == 1 and not ink.whole):
        return _trouble(found[0], rows, ink)
    shown = found if ink.whole else found[:rows]
    return [line for trouble in shown for line in _trouble(trouble, 1, ink)]


def _trouble(trouble: DeviceFault, rows: int, ink: Ink) -> list[Line]:
    """Return a trouble in full if it fits, else its first clauses; the row's details have all."""
    text = as_called(trouble.text, ink.names)
    if ink.whole or len(paragraph(trouble.label, text, ink.look, ink.width)) <= rows:
        return fixed(trouble.label, text, rows, ink, "warning")
    name = ink.names.get(trouble.name) or ink.look.middle(trouble.name, _NAME)
    said = trouble.text.removeprefix(f"{trouble.name}: ").partition(" (")[0]
    return fixed(trouble.label, f"{name}: {said}", rows, ink, "warning")


LABEL = 12
"""Cells of the label before a paragraph."""


def fixed(label: str, text: str, rows: int, ink: Ink, role: str = "") -> list[Line]:
    """Return a labeled text in exactly ``rows`` lines, filled with blank ones.

    Clauses that do not fit are omitted in full, then phrases of the first clause; what still does
    not fit is cut.
    """
    lines = paragraph(label, text, ink.look, ink.width)
    for shorter in () if ink.whole or len(lines) <= rows else _shorter(text):
        cut = shorter + ink.look.glyphs.ellipsis
        lines = paragraph(label, cut, ink.look, ink.width)
        if len(lines) <= rows:
            break
    shown = lines if ink.whole else at_most(rows, lines, ink.look.glyphs.ellipsis)
    blank: Line = ()
    return [  # all but the label in the role
        *((head, *(Span(span.text, role or span.role) for span in said)) for head, *said in shown),
        *[blank] * (rows - len(shown)),
    ]


def _shorter(text: str) -> Iterator[str]:
    """Yield ever shorter versions: without the last aside or clause, then without phrases.

    The last version is the whole text again, to be cut.
    """
    clauses = text.split("; ")
    for kept in range(len(clauses), 0, -1):
        said = "; ".join(clauses[:kept])
        if kept < len(clauses):
            yield f"{said}; "
        if said.endswith(")"):
            yield said.rpartition("(")[0]
    phrases = clauses[0].split(", ")
    for kept in range(len(phrases) - 1, 0, -1):
        said = ", ".join(phrases[:kept])
        if said.count("(") == said.count(")"):
            yield f"{said}, "
    yield text


def paragraph(label: str, text: str, look: DisplayFormat, width: int) -> list[Line]:
    """Return text from outside, wrapped beside its label; empty without text."""
    if not text:
        return []
    head = Span(f" {label:<{LABEL}}", "dim")
    return [*beside(head, look.text(text), max(LABEL + 11, width - 1))]


def machine(host: HostLoad | None, look: DisplayFormat) -> str:
    """Return ``processor 34 %, memory 5.10G of 16.0G used, ARC 3.20G``; empty if unknown."""
    if host is None:
        return ""
    known = [] if host.cpu is None else [f"processor {percent(host.cpu)}"]
    if host.memory_total is not None and host.memory_available is not None:
        used = look.size(host.memory_total - host.memory_available)
        known.append(f"memory {used} of {look.size(host.memory_total)} used")
    if host.arc_bytes is not None:
        known.append(f"ARC {look.size(host.arc_bytes)}")
    return ", ".join(known)
