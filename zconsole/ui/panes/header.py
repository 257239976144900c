"""Header of the screen: health, progress, and the disks that must not be removed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain, product

from zconsole import units
from zconsole.pool.redundancy import Redundancy
from zconsole.timeline.frame import Frame
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.panes.headline import clickable, fill_words, headline, shown_work
from zconsole.ui.panes.pane import COMPACT, TALL
from zconsole.ui.panes.reasons import all_reasons, bays_of
from zconsole.ui.view_state import FRESH, HeaderStatus
from zconsole.ui.widgets.draw import (
    Line,
    Span,
    broken,
    formerly,
    in_runs,
    indented,
    joined,
    short_names,
    spread,
    width_of,
)
from zconsole.units import percent

_REASONS = "screen.show_pane('events')"
"""Action of a click on the health: its causes are among the events."""
_WHERE = ": Enter on the pool's row"
"""Points to the details of the pool, which have all reasons."""
_STAY = ("Do not pull any other disk of", "Pull no other disk of")
"""Text before the disks that must stay, and a shorter one."""
_DISKS = (16, 12, 9, 7)
"""Cells of the name of a disk that must stay; later values if its line would be too long."""
_MESSAGES = {TALL: 3, COMPACT: 2, 0: 1}
"""Lines reserved for messages, by the least height of the screen."""
_BOXED = 100
_WORD = 17
"""Columns of the health in a frame, and of the free space: ``9.31T raw free``."""


def header_lines(
    frame: Frame,
    status: HeaderStatus,
    look: DisplayFormat,
    width: int,
    height: int = 24,
    *,
    brief: bool = False,
) -> tuple[Line, ...]:
    """Return identity, health, the headline's cells, then reasons and disks that must stay.

    The number of lines depends on the screen's size only, so that an alarm moves nothing. ``brief``
    gives as few lines as on a low screen.
    """
    said = 1 if brief else next(rows for least, rows in _MESSAGES.items() if height >= least)
    first = first_line(frame, status, look, width, height)
    if width < _BOXED or height < TALL:
        lines = (*headline(frame, look, width, 2), *_messages(frame, look, width, said))
        return (first, *(look.crop(line, width) for line in lines))
    # A thin frame around a third row of cells, too.
    box, rule, inner = look.glyphs.box, look.glyphs.rule, width - 2
    heads: list[Line] = [clickable(health_word(frame, look), _REASONS), (), ()]
    # Fill and free space stand below the health, unless a cell of the headline has them.
    full, free = fill_words(frame, look)
    if full and shown_work(frame) is not None:
        heads[1:] = [(Span(f" {text}", "dim"),) for text in (f"{full} full", free)]
    rows = zip(heads, headline(frame, look, inner - _WORD, 3), strict=True)
    inside = [(*head, Span(" " * (_WORD - width_of(head))), *cells) for head, cells in rows]
    side = Span(box[4], "track")
    framed: list[Line] = []
    for row in (*inside, *_messages(frame, look, inner - 1, said)):
        shown = look.crop(row, inner)
        framed.append((side, *shown, Span(" " * (inner - width_of(shown))), side))
    return (first, *framed, (Span(box[3] + rule * inner + box[2], "track"),))


def first_line(
    frame: Frame, status: HeaderStatus, look: DisplayFormat, width: int, height: int = 24
) -> Line:
    """Return pool and flags, age, interval and clock: everything from ``status``."""
    if width >= _BOXED and height >= TALL:
        box, rule, inner = look.glyphs.box, look.glyphs.rule, width - 4
        left, right = _identity(frame, status, look, inner)
        between = Span(rule * (inner - width_of((*left, *right)) - 1), "track")
        ends = Span(box[0] + rule, "track"), Span(rule + box[1], "track")
        line = (ends[0], *left, Span(" "), between, *right, ends[1])
    else:
        word = clickable(health_word(frame, look), _REASONS)
        left, right = _identity(frame, status, look, width - width_of(word))
        line = spread((*word, *left), right, width, look.glyphs.ellipsis)
    return look.crop(line, width)


def notice_line(frame: Frame, look: DisplayFormat, width: int) -> Line:
    """Return the essential numbers on one line, for a terminal too small for panes."""
    spans = [*health_word(frame, look), Span(f" {look.text(frame.pool)}", "bold")]
    view = frame.scan
    if view is not None and view.scan.active:
        share = None if view.percent is None else view.percent / 100
        spans.append(Span(f" {percent(share, 1)} {units.duration(view.estimate.eta)}"))
    return look.crop(tuple(spans), width)


def health_word(frame: Frame, look: DisplayFormat) -> Line:
    """Return the pool's health as a word, in a role by its severity."""
    role = {"ok": "bold"}.get(frame.health.severity, f"badge-{frame.health.severity}")
    word = look.text(frame.health.word)
    return (Span(f" {word} ", role),)


def _identity(
    frame: Frame, status: HeaderStatus, look: DisplayFormat, width: int
) -> tuple[Line, Line]:
    """Return pool, host and flags, and age, interval and clock, as far as they fit."""
    pool = Span(f" {look.text(frame.pool)}", "bold")
    flags: list[Span] = []
    for flag in dict.fromkeys((*frame.flags, *status.flags)):
        flags += [Span(" "), Span(f" {look.text(flag)} ", "badge-notice")]
    host = [Span(f" on {look.text(status.host)}", "dim")] if status.host else []
    right = [_age(status)] if status.live or not status.fresh else []
    if status.interval:
        right.append(Span(f"every {status.interval:g}s", "dim"))
    right.append(Span(look.clock(status.now), ""))
    while len(right) > 1 and width_of((pool, *flags, *_row(right))) + 2 > width:
        right.pop(1)  # the interval goes first, then the clock, the age never
    if width_of((pool, *host, *flags, *_row(right))) + 2 > width:
        host = []
    return (pool, *host, *flags), _row(right)


def late_age(status: HeaderStatus) -> Line:
    """Return the age of a late sample, for lists that cover the header; else empty."""
    age = _age(status)
    return (age, Span(" ")) if age.role == "warning" else ()


def _age(status: HeaderStatus) -> Span:
    if status.age is None:
        return Span("never seen", "warning")
    late = status.age >= max(3 * status.interval, FRESH)
    whole = int(status.age)
    age = f"{whole}s" if whole < 100 else f"{whole // 60}m{whole % 60:02d}s"
    age = "<2s" if status.fresh else age if whole < 3600 else f"{whole // 3600}h"
    return Span(f"age {age}", "warning" if late else "dim")


def _row(facts: Sequence[Span]) -> Line:
    out: list[Span] = []
    for fact in facts:
        out += [Span("  "), fact]
    return (*out, Span(" "))


def _counted(
    parts: Sequence[Sequence[Line]], gap: str, width: int, most: int, role: str, where: str = ""
) -> tuple[Line, ...]:
    """Return parts on at most ``most`` lines; the number of those left out is added at the end.

    A part consists of pieces between which lines may break. ``where`` is added if it fits, and says
    where all parts are shown.
    """
    head = Span(" ")
    room = width - width_of((head,)) - 1
    # Prefer more parts to telling where the others are.
    for kept, told in product(range(len(parts), 0, -1), (where, "")):
        rest = len(parts) - kept
        tail: list[Line] = [(Span(f"+{rest} more{told}", role),)] if rest else []
        lines = joined([*chain(*parts[:kept]), *tail], gap, room)
        if len(lines) <= most:
            break
    return indented(head, lines[:most])


def _messages(frame: Frame, look: DisplayFormat, width: int, rows: int) -> tuple[Line, ...]:
    """Return reasons for the health, then disks that must stay, in exactly ``rows`` lines.

    If these are too few, the disks come first, with reasons beside them only if all fit.
    """
    severity = frame.health.severity
    role = "" if severity == "ok" else severity
    kept = _untouchable(frame, look, width, rows)
    left = rows - len(kept)
    short = (
        formerly(reason, width - 2, look.glyphs.ellipsis)
        for reason in all_reasons(frame, look, width - 2)
    )
    parts: list[list[Line]] = []
    for reason in short:
        lines = broken(reason, width - 2)  # wrapped, or whole and cut later
        parts.append([(Span(each, role),) for each in (lines if len(lines) <= left else (reason,))])
    dot = f" {look.glyphs.dot} "
    if not left:
        beside = joined([kept[-1][1:], *chain(*parts)], dot, width - 2)
        return indented(Span(" "), beside) if rows == 1 == len(beside) else kept
    reasons = _counted(parts, dot, width, left, role, _WHERE) if parts else ()
    blank: Line = ()
    return (*reasons, *kept, *[blank] * (left - len(reasons)))


def _untouchable(frame: Frame, look: DisplayFormat, width: int, rows: int) -> tuple[Line, ...]:
    """Return lines on the disks that must stay, for each vdev without redundancy.

    Names are shortened before another of the ``rows`` lines is used.
    """
    bare = [entry for entry in frame.redundancy if not entry.left]
    if frame.health.severity == "ok" or not bare:
        return ()
    gone, bays = {row.vdev.name for row in frame.rows if row.gone}, bays_of(frame)
    ways = [
        [part for entry in bare for part in _parts(entry, gone, bays, look, longest, stay)]
        for longest in _DISKS
        for stay in _STAY
    ]
    # Shorter names before another line.
    for taken in range(1, rows + 1):
        for parts in ways:
            if len(joined(parts, " ", width - 2)) <= taken:
                return _counted([[part] for part in parts], " ", width, taken, "error")
    return _counted([[part] for part in ways[-1]], " ", width, rows, "error")


def _parts(
    entry: Redundancy,
    gone: Collection[str],
    bays: Mapping[str, str],
    look: DisplayFormat,
    longest: int,
    stay: str,
) -> list[Line]:
    """Return the vdev, then the place of each disk that must stay, as breakable pieces."""
    disks = [disk for disk in entry.untouchable if disk not in gone]
    if not disks:
        return [(Span(f"{look.text(entry.vdev)}: no redundancy left", "error"),)]
    placed = in_runs([look.text(bays[disk]) for disk in disks if disk in bays])
    named = [look.text(disk) for disk in disks if disk not in bays]
    short = short_names(named, longest, look.glyphs.ellipsis)
    listed = [*placed, *(short[name] for name in named)]
    alone = disks == [entry.vdev]
    first = "Do not pull" if alone else f"{stay} {look.text(entry.vdev)}:"
    texts = [first, *(f"{each}," for each in listed[:-1]), listed[-1]]
    return [(Span(text, "error"),) for text in texts]
