"""Lines of text with roles: the result of every drawing function, painted by every widget.

A role is the meaning of a piece (``warning``, ``dim``); a theme gives it a look. Nothing here
depends on colors, widgets or the time of day.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from textwrap import wrap
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size

ROLES = (
    "",
    "dim",
    "bold",
    "good",
    "notice",
    "warning",
    "error",
    "key",
    "spark",
    "bar",
    "track",
    "title",
    "focus",
    "tab",
    "badge-notice",
    "badge-warning",
    "badge-error",
)
"""Every role a span may have, one per meaning; a theme gives each a look.

``good`` is restored or finished well, ``notice`` under way, ``warning`` wants attention, ``error``
is danger; ``key`` reacts to keys, ``spark`` is the past, ``bar`` and ``track`` are progress. What
is normal has no role: a healthy idle pool stays neutral.
"""

GROUNDS = ("", "cursor", "rest", "tint")
"""Backgrounds of lines: page, cursor, cursor of a pane without focus, and limiting device.

``tint`` marks the device that limits a scan.
"""

_FILLER = "\0"
_REMEMBERED = 256
_SOLID = frozenset({"title", "focus", "tab", "badge-notice", "badge-warning", "badge-error"})
"""Roles that are visible on blanks."""


class Span(NamedTuple):
    """A piece of a line."""

    text: str
    role: str = ""
    action: str = ""
    """App action run by a click on it; empty for none."""


Line = tuple[Span, ...]
"""One line of the screen, left to right."""


def width_of(line: Sequence[Span]) -> int:
    """Return the terminal cells of a line."""
    text = "".join([span.text for span in line])
    if text.isascii() and text.isprintable():
        return len(text)
    return sum(cell_len(span.text) for span in line)


def fit(text: str, width: int, *, right: bool = False, ellipsis: str = "…") -> str:
    """Return ``text`` in exactly ``width`` cells: padded, or cut at its end with ``ellipsis``."""
    length = cell_len(text)
    if length == width:
        return text
    if length < width:
        pad = " " * (width - length)
        return pad + text if right else text + pad
    if width <= cell_len(ellipsis):
        return set_cell_size(text, max(0, width))
    return set_cell_size(text, width - cell_len(ellipsis)) + ellipsis


def crop(line: Line, width: int, ellipsis: str = "…") -> Line:
    """Return a line in at most ``width`` cells."""
    if width_of(line) <= width:
        return line
    out: list[Span] = []
    left = width
    for span in line:
        length = cell_len(span.text)
        if length >= left:
            text = fit(span.text, left, ellipsis=ellipsis) if length > left else span.text
            out.append(span._replace(text=text))
            break
        out.append(span)
        left -= length
    return tuple(out)


def action_at(line: Line, x: int) -> str:
    """Return the action at ``x`` cells from the left; empty if there is none."""
    for span in line:
        x -= cell_len(span.text)
        if x < 0:
            return span.action
    return ""


def at_most(most: int, lines: Sequence[Line], ellipsis: str = "…") -> Sequence[Line]:
    """Return the first ``most`` lines, with an ellipsis if others are left out."""
    if len(lines) <= most:
        return lines
    return (*lines[: most - 1], (*lines[most - 1], Span(ellipsis, "dim")))


@lru_cache(maxsize=_REMEMBERED)
def broken(text: str, width: int) -> tuple[str, ...]:
    """Return text wrapped to lines of at most ``width`` cells; at least one line.

    Results are cached: advice is wrapped again with every sample, mostly with the same words.
    """
    if cell_len(text) <= width:
        return (text.rstrip(),)
    # textwrap counts characters, not cells: add a filler after each wide one.
    double = text
    if not text.isascii():
        double = "".join(c + _FILLER * (cell_len(c) - 1) for c in text)
    lines = wrap(double, max(1, width - (double != text)), break_on_hyphens=False)
    return tuple(line.replace(_FILLER, "") for line in lines) or ("",)


def beside(head: Span, text: str, width: int, role: str = "") -> tuple[Line, ...]:
    """Wrap text to lines of ``width`` cells: ``head`` before the first, then blanks."""
    return indented(head, ((Span(t, role),) for t in broken(text, width - cell_len(head.text))))


def indented(head: Span, lines: Iterable[Line]) -> tuple[Line, ...]:
    """Return lines with ``head`` before the first and equally wide blanks before the others."""
    blank = Span(" " * cell_len(head.text))
    return tuple((blank if number else head, *line) for number, line in enumerate(lines))


def spread(left: Line, right: Line, width: int, ellipsis: str = "…") -> Line:
    """Return a line with ``left`` and ``right`` at its edges; ``left`` is cropped if needed."""
    room = width - width_of(right)
    if room < 1:
        return crop(right, width, ellipsis)
    left = crop(left, room - 1, ellipsis) if width_of(left) > room - 1 else left
    return (*left, Span(" " * (room - width_of(left))), *right)


def ruled(left: str, right: str, rule: str, width: int) -> Line:
    """Return the title of a pane as a thin rule between it and the pane above."""
    fill = rule * max(0, width - 2 * cell_len(rule) - cell_len(left) - cell_len(right))
    return (Span(set_cell_size(f"{rule}{left}{fill}{right}{rule}", width), "title"),)


def merged(line: Line) -> Line:
    """Return the line in as few spans as look the same: each costs some 40 bytes to send.

    A blank takes the role of its neighbor, unless that role colors blanks.
    """
    out: list[Span] = []
    for span in line:
        if not span.text:
            continue
        if out and (role := _common(out[-1], span)) is not None:
            out[-1] = Span(out[-1].text + span.text, role)
        else:
            out.append(span)
    return tuple(out)


def _common(before: Span, after: Span) -> str | None:
    """Return the role in which both spans can be shown as one; None if there is none."""
    if before.role == after.role:
        return before.role
    if not after.text.strip() and {before.role, after.role}.isdisjoint(_SOLID):
        return before.role
    if not before.text.strip() and {before.role, after.role}.isdisjoint(_SOLID):
        return after.role
    return None


def joined(parts: Sequence[Line], gap: str, width: int) -> tuple[Line, ...]:
    """Join parts with ``gap`` between them, wrapped to lines of at most ``width`` cells."""
    lines: list[Line] = []
    current: list[Span] = []
    used = 0
    for part in parts:
        size = width_of(part)
        if current and used + len(gap) + size > width:
            lines.append(tuple(current))
            current, used = [], 0
        if current:
            current.append(Span(gap))
            used += len(gap)
        current.extend(part)
        used += size
    if current:
        lines.append(tuple(current))
    return tuple(lines)
