"""Lines of text with roles, the result of every drawing function, and texts fitted to cells.

A role is the meaning of a piece (``warning``, ``dim``); a theme gives it a look. Long names of
devices have short forms that stay distinct. Nothing here depends on colors, widgets or the time of
day.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from os.path import commonprefix
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
Lines = tuple[Line, ...]


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
        if not out:
            out.append(span)
            continue
        before = out[-1]
        shows_no_blank = before.role not in _SOLID and span.role not in _SOLID
        if before.role == span.role or (shows_no_blank and not span.text.strip()):
            out[-1] = Span(before.text + span.text, before.role)
        elif shows_no_blank and not before.text.strip():
            out[-1] = Span(before.text + span.text, span.role)
        else:
            out.append(span)
    return tuple(out)


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


Shortener = Callable[[str], str]
_NUMBERED = re.compile(r"(.*?)([0-9]{1,9})")
_PLACES = ("slot", "bay")
_FORMER = re.compile(r"\bwas (?P<path>/[^\s)]+)")
"""The words of zpool about a device that is not found any more."""
_SERIAL = 8
"""Cells that are kept of such a name: enough for a serial number."""


def short_names(names: Sequence[str], width: int, ellipsis: str = "…") -> dict[str, str]:
    """Return each name in at most ``width`` cells; different names stay different.

    Names that fit stay whole. The others lose their beginning, which names of one maker share; if
    that makes two alike, a common ending (``-part1``) is dropped first, then the middle.
    """
    long = sorted({name for name in names if cell_len(name) > width})
    whole = {name: name for name in names if cell_len(name) <= width}
    if not long:
        return whole
    # Each way is tried until all names differ.
    for shorten in _shorteners(long, width, ellipsis):
        short = {name: shorten(name) for name in long}
        if len({*short.values(), *whole.values()}) == len(short) + len(set(whole)):
            return whole | short
    numbered = {name: _numbered(name, i, width, ellipsis) for i, name in enumerate(long, 1)}
    return whole | numbered


def middle(name: str, width: int, ellipsis: str = "…") -> str:
    """Return a name in at most ``width`` cells, with its middle left out."""
    if cell_len(name) <= width:
        return name
    if width <= 1:
        return name[: max(0, width)]
    head = (width - 1) // 3
    return _cells(name, head) + ellipsis + _cells(name, width - 1 - head, from_end=True)


def in_runs(names: Sequence[str]) -> list[str]:
    """Group names that differ only in their final number: ``Slots 01-06``, ``09``."""
    numbers: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        found = _NUMBERED.fullmatch(name)
        start, number = found.groups() if found else (name, "")
        numbers.setdefault(start, []).append(number)
    return [part for start, ends in numbers.items() for part in _runs(start, ends)]


def _runs(start: str, numbers: Sequence[str]) -> list[str]:
    """Return the names that begin with ``start``, as ranges of their numbers."""
    if len(numbers) == 1:
        return [start + numbers[0]]
    ordered = sorted(numbers, key=int)
    runs = [[ordered[0]]]
    for before, number in pairwise(ordered):
        if int(number) == int(before) + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    place = start.rstrip()
    several = place != start and place.lower().endswith(_PLACES)
    said = [run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    return [f"{place}s {said[0]}", *said[1:]] if several else [start + each for each in said]


def _shorteners(long: Sequence[str], width: int, ellipsis: str) -> tuple[Shortener, ...]:
    ending = _shared([name[::-1] for name in long])
    start = _shared(long)
    room = max(1, width - 1)

    def _tail(name: str) -> str:
        return ellipsis + _cells(name, room, from_end=True)

    def _core(name: str) -> str:
        kept = name[: len(name) - ending] or name
        return ellipsis + _cells(kept, max(1, width - 2), from_end=True) + ellipsis

    def _different(name: str) -> str:
        return ellipsis + _cells(name[start:], room)

    return (_tail, _core, lambda name: middle(name, width, ellipsis), _different)


def _shared(names: Sequence[str]) -> int:
    """Return the length of the common beginning of the names; 0 for a single name."""
    return len(commonprefix(names)) if len(names) > 1 else 0  # noqa: RUF071 - characters it is


def _numbered(name: str, index: int, width: int, ellipsis: str) -> str:
    mark = f"#{index}"
    return _cells(name, max(0, width - len(mark) - 1)) + ellipsis + mark


def _cells(text: str, width: int, *, from_end: bool = False) -> str:
    """Return as many characters of ``text`` as fit in ``width`` cells, from its start or end."""
    if text.isascii():
        return text[-width:] if from_end and width else text[:width]
    kept = ""
    for char in reversed(text) if from_end else text:
        if cell_len(kept + char) > width:
            break
        kept = char + kept if from_end else kept + char
    return kept


def formerly(text: str, width: int, ellipsis: str = "…") -> str:
    """Shorten a text with ``was /dev/…`` to ``width`` cells, first by its directory.

    Next goes the beginning of the name, as its end has the serial number.
    """
    found = _FORMER.search(text)
    if found is None or cell_len(text) <= width:
        return text
    name = found["path"].rpartition("/")[2].removesuffix("-part1")
    spare = width - cell_len(text) + cell_len(found["path"])
    if cell_len(name) > max(spare, _SERIAL):
        name = ellipsis + _cells(name, max(_SERIAL, spare) - 1, from_end=True)
    return text[: found.start("path")] + name + text[found.end("path") :]
