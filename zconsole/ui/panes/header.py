"""The first lines of the screen: is it all right, and what must not be touched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from zconsole.monitor.frame import Frame
from zconsole.pool.redundancy import Redundancy
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.widgets.draw import Line, Span, crop, hung, joined, spread, width_of
from zconsole.ui.widgets.short_names import middle, short_names

_FRESH = 2.0
_DISK = 16
_NAME = 24
_GONE_SHOWN = 2


class HeaderStatus(NamedTuple):
    """What the header says beside the pool itself."""

    host: str = ""
    flags: tuple[str, ...] = ()
    interval: float = 1.0
    """Seconds between samples; 0 when the source has its own pace."""
    age: float | None = 0.0
    """Seconds since the last good sample; None where there never was one."""
    now: float = 0.0
    """Epoch seconds, as the source counts them."""


def header_lines(
    frame: Frame, status: HeaderStatus, look: DisplayFormat, width: int, reason_lines: int = 2
) -> tuple[Line, ...]:
    """Health and identity; then why, where there is anything; then the redundancy left."""
    lines = [_first(frame, status, look, width)]
    reasons = _reasons(frame, look)
    if reasons:
        role = "" if frame.health.severity == "ok" else frame.health.severity
        dot = f" {look.glyphs.dot} "
        parts: list[Line] = [(Span(reason, role),) for reason in reasons]
        lines.extend(_counted(Span(" "), parts, dot, width, reason_lines, role))
    lines.extend(redundancy_lines(frame, look, width))
    return tuple(crop(line, width, look.glyphs.ellipsis) for line in lines)


def health_word(frame: Frame, look: DisplayFormat) -> Line:
    """The word of the pool's health, dressed by how bad it is."""
    role = {"ok": "bold"}.get(frame.health.severity, f"badge-{frame.health.severity}")
    word = look.text(frame.health.word)
    return (Span(f" {word} ", role),)


def _first(frame: Frame, status: HeaderStatus, look: DisplayFormat, width: int) -> Line:
    """Word, pool and flags at the left; age, interval and clock at the right as they fit."""
    left: list[Span] = [*health_word(frame, look), Span(f" {look.text(frame.pool)}", "bold")]
    flags: list[Span] = []
    for flag in dict.fromkeys((*frame.flags, *status.flags)):
        flags += [Span(" "), Span(f" {look.text(flag)} ", "badge-notice")]
    host = [Span(f" on {look.text(status.host)}", "dim")] if status.host else []
    right = _right(status, look)
    while len(right) > 1 and width_of((*left, *flags, *_row(right))) + 2 > width:
        right.pop(1)  # the interval goes first, then the clock, the age never
    if width_of((*left, *host, *flags, *_row(right))) + 2 > width:
        host = []
    return spread((*left, *host, *flags), _row(right), width, look.glyphs.ellipsis)


def _right(status: HeaderStatus, look: DisplayFormat) -> list[Span]:
    facts = [_age(status)]
    if status.interval:
        facts.append(Span(f"every {status.interval:g}s", "dim"))
    return [*facts, Span(look.clock(status.now), "")]


def _age(status: HeaderStatus) -> Span:
    if status.age is None:
        return Span("never seen", "warning")
    late = status.age >= max(3 * status.interval, _FRESH)
    age = "age <2s" if status.age < _FRESH else f"age {_whole(status.age)}"
    return Span(age, "warning" if late else "dim")


def _row(facts: Sequence[Span]) -> Line:
    out: list[Span] = []
    for fact in facts:
        out += [Span("  "), fact]
    return (*out, Span(" "))


def _whole(seconds: float) -> str:
    whole = int(seconds)
    if whole < 100:
        return f"{whole}s"
    return f"{whole // 60}m{whole % 60:02d}s" if whole < 3600 else f"{whole // 3600}h"


def _reasons(frame: Frame, look: DisplayFormat) -> list[str]:
    reasons = [look.text(reason) for reason in frame.health.reasons]
    if frame.problem and look.text(frame.problem) not in reasons:
        reasons.insert(0, look.text(frame.problem))
    more = _gone(frame, look)
    if frame.kstat and (frame.problem or frame.kstat not in ("ONLINE", frame.state)):
        more.append(f"kernel says {look.text(frame.kstat)}")
    reasons[1:1] = more  # its age, which comes next, stands in the first line as well
    if not reasons and frame.health.severity != "ok" and frame.seen.message:
        reasons.append(look.text(frame.seen.message))
    return reasons


def _gone(frame: Frame, look: DisplayFormat) -> list[str]:
    """The devices that left after the last answer, and when."""
    gone = [row for row in frame.rows if row.gone] if frame.problem else []
    said = [
        f"{middle(look.text(row.vdev.name), _NAME, look.glyphs.ellipsis)} gone since "
        f"{look.when(row.missing_since or 0.0, frame.t)}"
        for row in gone[:_GONE_SHOWN]
    ]
    rest = len(gone) - len(said)
    return [*said, f"{rest} more gone"] if rest else said


def _counted(
    head: Span, parts: Sequence[Line], gap: str, width: int, most: int, role: str
) -> tuple[Line, ...]:
    """Parts after ``head`` on at most ``most`` lines; those left out are counted at the end."""
    room = width - width_of((head,)) - 1
    for kept in range(len(parts), 0, -1):
        rest = len(parts) - kept
        tail: list[Line] = [(Span(f"+{rest} more", role),)] if rest else []
        lines = joined([*parts[:kept], *tail], gap, room)
        if len(lines) <= most:
            break
    return hung(head, lines[:most])


def redundancy_lines(frame: Frame, look: DisplayFormat, width: int) -> tuple[Line, ...]:
    """How many more devices may fail; at 0, which must not be touched; the worst first."""
    if not frame.redundancy:
        return ()
    ordered = sorted(frame.redundancy, key=lambda r: r.left)
    if len(ordered) > 1 and ordered[0].left == ordered[-1].left > 0:
        text = f"every vdev can lose {ordered[0].left} more"
        return ((Span(" Redundancy left: ", "dim"), Span(text)),)
    alarming = frame.health.severity != "ok"
    parts = [part for entry in ordered for part in _parts(entry, look, alarming)]
    return _counted(Span(" Redundancy left: ", "dim"), parts, "  ", width, 2, "dim")


def _parts(entry: Redundancy, look: DisplayFormat, alarming: bool) -> list[Line]:
    """What is left of one vdev, then each device not to be touched, so that lines can break."""
    name = look.text(entry.vdev)
    if entry.left > 0:
        return [(Span(f"{name} can lose {entry.left} more"),)]
    if not alarming:
        return [(Span(f"{name} none"),)]
    disks = tuple(look.text(disk) for disk in entry.untouchable)
    short = short_names(disks, _DISK, look.glyphs.ellipsis)
    what = ": do not remove" if disks else ""
    first: Line = (Span(f"{name} NONE{what}", "error"),)
    return [first, *((Span(short[disk], "error"),) for disk in disks)]
