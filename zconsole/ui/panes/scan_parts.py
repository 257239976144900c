"""Parts of the lines about scans and activities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from zconsole import units
from zconsole.pool.model import HostLoad
from zconsole.timeline.eta.estimate import MEASURING, Estimate
from zconsole.timeline.frame import Frame, range_words, work_name
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.widgets.draw import Line, Span, at_most, beside, joined, width_of
from zconsole.ui.widgets.graph import bar
from zconsole.units import percent

LABEL = 12
"""Cells of the label before a paragraph."""
_BETWEEN = "   "
_PERCENT = 8
_AMOUNT = 16
_LEAST_NAME = 8
_LEAST_BAR = 4
"""Least cells of a bar that tells more than its percentage."""


class Ink(NamedTuple):
    """Settings and data for drawing the lines of scans and activities."""

    look: DisplayFormat
    width: int
    frame: Frame
    names: Mapping[str, str] = {}
    """Displayed names of devices, by name and path."""
    compact: bool = False
    """Whether dispensable facts are omitted."""
    roomy: bool = False
    """Whether advice and troubles may take several lines."""
    whole: bool = False
    """Whether nothing is cut, however many lines that takes."""


def subject(work: str, vdev: str | None, beside: int, total: int | None, ink: Ink) -> str:
    """Return ``rebuild of mirror-0``; a long name is cut so that the line's figures fit.

    ``beside``: cells of other text before the figures; ``total``: bytes in total.
    """
    if not vdev:
        return ink.look.text(work)
    widest = max(ink.look.number, len(ink.look.size(total)))
    amount = len(_amount("", "")) + 2 * widest
    room = ink.width - beside - _PERCENT - 2 - amount - len(f"{work} of ")
    name = ink.look.middle(vdev, max(_LEAST_NAME, room))
    return work_name(ink.look.text(work), name)


def barred(
    head: Line,
    percent: float | None,
    done: int | None,
    total: int | None,
    ink: Ink,
    *,
    thin: bool = False,
) -> Line:
    """Return ``head`` with a percentage, a bar, and the amounts at the right edge.

    An unknown percentage is calculated if both amounts are known.
    If narrow, the bar is dropped first, then the middle of the name in the head is cut
    (``subject``), then the total and the amount done are dropped: a cut number would be wrong.
    """
    look = ink.look
    if percent is None and total and done is not None:
        percent = 100.0 * done / total
    shown = "-" if percent is None else f"{percent:.1f} %"
    room = ink.width - width_of(head) - _PERCENT - 2
    known = done is not None or total is not None
    whole = f"{_amount(look.size(done), look.size(total)):>{_AMOUNT}}" if known else ""
    amount = next((said for said in (whole, f"  {look.size(done)} ") if len(said) <= room), "")
    share, cells = None if percent is None else percent / 100, max(0, room - len(amount))
    drawn = bar(share, cells, look.glyphs, thin=thin)
    if cells < _LEAST_BAR:
        drawn = (Span(" " * cells),)
    return (*head, Span(f"{shown:>{_PERCENT}}  "), *drawn, Span(amount))


def _amount(done: str, total: str) -> str:
    return f"  {done} of {total} "


def eta_line(label: str, estimate: Estimate, ink: Ink) -> Line:
    """Return ``ETA 17h52m  ends tomorrow 06:33  (16h10m to 21h40m)``, or why there is none."""
    if estimate.eta is None:
        why = ink.look.text(estimate.reason.removeprefix(f"{MEASURING}, "))
        return (Span(f"{label} ", "dim"), Span(f"{estimate.lacking}: {why}"))
    now = ink.frame.t
    spans = [
        Span(f"{label} ", "dim"),
        Span(units.duration(estimate.eta), "bold"),
        Span(f"  {'ends ' * (label == 'ETA')}{ink.look.when(now + estimate.eta, now)}"),
    ]
    if span := range_words(estimate):
        spans.append(Span(f"  {span}", "dim"))
    return tuple(spans)


def zpool_says(eta: float | None) -> Iterator[Line]:
    """Yield zpool's own estimate, if it prints one."""
    if eta is not None:
        yield (Span("zpool says ", "dim"), Span(units.duration(eta)))


def packed(parts: Sequence[Line], ink: Ink) -> list[Line]:
    """Join parts on as few lines as hold them."""
    return [(Span(" "), *line) for line in joined(parts, _BETWEEN, ink.width - 2)]


def one_line(parts: Sequence[Line], ink: Ink) -> list[Line]:
    """Return a line of the parts that fit in full; a blank line without parts."""
    if ink.whole:
        return packed(parts, ink) or [()]
    shown: list[Line] = []
    for part in parts:
        if not shown or len(joined([*shown, part], _BETWEEN, ink.width - 2)) == 1:
            shown.append(part)
    return packed(shown, ink)[:1] or [()]


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
