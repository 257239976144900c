"""The scan pane: how far, how fast, how long still, and on what that rests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from zconsole import units
from zconsole.history.views import ScanView
from zconsole.monitor.facts import Fact, result_facts, seconds_taken, work_name
from zconsole.monitor.frame import DONE, Frame
from zconsole.pool.model import Scan
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.panes.activities import activity_entries
from zconsole.ui.panes.scan_parts import (
    LABEL,
    Ink,
    barred,
    eta_line,
    machine,
    packed,
    subject,
    zpool_says,
)
from zconsole.ui.widgets.draw import Line, Span, crop, width_of
from zconsole.ui.widgets.short_names import middle
from zconsole.ui.widgets.spark import markline, scale, sparkline

if TYPE_CHECKING:
    from zconsole.diagnosis.device_errors.faults import DeviceFault

_HEAD = 11
_STAGE = 9
_TREND_FROM = 100
_SURE = 0.5
_PAST_SHOWN = 2
_TROUBLES_ROOMY = 3
_TROUBLE_LINES = 2
_NAME = 22


def scan_lines(
    frame: Frame,
    look: DisplayFormat,
    width: int,
    *,
    compact: bool = False,
    roomy: bool = False,
    room: int | None = None,
) -> tuple[Line, ...]:
    """Every running scan in full, then activities, then a line for each of the newest past ones.

    ``compact`` leaves out a finished first stage and what is nice to know; ``roomy`` is for
    screens where advice may take several lines. ``room`` is how many lines there are, if not
    enough: what runs and does not fit in them is counted in the last one.
    """
    ink = Ink(look, width, frame.t, frame, compact, roomy)
    running = [_running(view, ink) for view in frame.scans if view.scan.active]
    entries = [*running, *activity_entries(frame.activities, ink)]
    past = [v for v in frame.scans if not v.scan.active and v.scan.function != "none"]
    lines = _counted(entries, room)
    for view in past[: 1 if running else _PAST_SHOWN]:
        lines.extend(_past(view, ink))
    if not lines:
        known = "no scan has run on this pool" if frame.rows else "not sampled yet"
        lines = [(Span(f" {known}", "dim"),)]
    lines.extend(_troubles(ink))
    return tuple(crop(line, width, look.glyphs.ellipsis) for line in lines)


def _counted(entries: Sequence[list[Line]], room: int | None) -> list[Line]:
    """The lines of as many entries as fit whole, the first at any rate, and how many more."""
    lines = [line for entry in entries for line in entry]
    if room is None or len(lines) <= room or len(entries) < 2:
        return lines
    ends = list(accumulate(len(entry) for entry in entries))
    fitting = max(1, sum(end < room for end in ends))
    shown = lines[: min(ends[fitting - 1], room - 1)]
    return [*shown, (Span(f" +{len(entries) - fitting} more", "dim"),)]


def _running(view: ScanView, ink: Ink) -> list[Line]:
    lines = [_progress(view, ink)]
    if _has_first_stage(view.scan) and (not ink.compact or view.stage == "scanning"):
        lines.append(_first_stage(view, ink))
    if ink.compact:
        lines.extend(packed([*_estimate(view, ink), *_facts(view, ink)], ink))
    else:
        lines.extend(packed(_estimate(view, ink), ink))
        if ink.roomy and ink.width < _TREND_FROM:
            lines.extend(line for why in _basis(view) for line in ink.paragraph("based on", why))
        lines.extend(packed(_facts(view, ink), ink))
    if (ink.roomy or ink.width >= _TREND_FROM) and not ink.compact:
        lines.extend(_trend(view, ink))
    lines.extend(_notes(view, ink))
    if view is ink.frame.scan:
        lines.extend(_limit(ink))
        if ink.roomy and not ink.frame.problem:
            lines.extend(_surroundings(ink))
    return lines


def _has_first_stage(scan: Scan) -> bool:
    """A rebuild has none: the bytes it scans are its progress."""
    return scan.two_stage and scan.scanned_bytes is not None and scan.function != "rebuild"


def _progress(view: ScanView, ink: Ink) -> Line:
    """``resilver  issuing 38.2 % ████····  4.93T of 12.9T``."""
    scan = view.scan
    done, total = scan.progress_bytes
    word = subject(scan.function, scan.vdev, _STAGE + 2, total, ink)
    stage = view.stage or ("" if scan.function == "rebuild" else "running")
    stage = "PAUSED" if scan.state == "paused" else ink.look.text(stage)
    head: Line = (
        Span(f" {word:<{_HEAD - 2}} ", "bold"),
        Span(f"{stage:<{_STAGE}}", "notice" if scan.state == "paused" else ""),
    )
    return barred(head, view.percent, done, total, ink)


def _first_stage(view: ScanView, ink: Ink) -> Line:
    """How much of the metadata has been walked so far."""
    scan = view.scan
    percent = None
    if scan.total_bytes and scan.scanned_bytes is not None:
        percent = 100.0 * scan.scanned_bytes / scan.total_bytes
    head: Line = (Span(" " * _HEAD), Span(f"{'metadata':<{_STAGE}}", "dim"))
    return barred(head, percent, scan.scanned_bytes, scan.total_bytes, ink, thin=True)


def _estimate(view: ScanView, ink: Ink) -> list[Line]:
    """``ETA 17h52m  tomorrow 06:33  (16h10m to 21h40m)``, zpool's own and what ours rests on."""
    parts: list[Line] = [eta_line("ETA", view.estimate, ink)]
    if view.full is not None and view.full != view.estimate:
        parts.append(eta_line("full redundancy", view.full, ink))
    parts.extend(zpool_says(view.scan.zpool_eta))
    if ink.width >= _TREND_FROM:
        parts.extend((Span(ink.look.text(reason), "dim"),) for reason in _basis(view))
    return parts


def _basis(view: ScanView) -> list[str]:
    """What the estimates rest on."""
    said = [each for each in (view.estimate, view.full) if each and each.eta is not None]
    return [each.reason for each in said if each.reason]


def _facts(view: ScanView, ink: Ink) -> list[Line]:
    """Rates, repaired bytes, errors, restarts, how long it has run."""
    scan, look = view.scan, ink.look
    parts = [*_rates(view, look)]
    for label, value, severity in result_facts(scan, look.size):
        if not ink.compact or label == "skipped" or severity:
            parts.append((Span(f"{label} ", "dim"), Span(value, severity)))
    if view.restarts:
        parts.append((Span(f"restarts {view.restarts}", "warning"),))
    if scan.start is not None and not ink.compact:
        parts.append((Span("since ", "dim"), Span(look.when(scan.start, ink.now))))
    return parts


def _rates(view: ScanView, look: DisplayFormat) -> list[Line]:
    over = "pass average" if view.window is None else _window(view.window)
    parts: list[Line] = []
    if view.issue_rate is not None:
        rate = look.rate(view.issue_rate)
        parts.append((Span("rate ", "dim"), Span(rate), Span(f" ({over})", "dim")))
    if view.scan_rate is not None and view.stage == "scanning" and view.scan.two_stage:
        walked = "scanned" if view.scan.function == "rebuild" else "metadata"
        parts.append((Span(f"{walked} at ", "dim"), Span(look.rate(view.scan_rate))))
    return parts


def _window(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _trend(view: ScanView, ink: Ink) -> list[Line]:
    """The issue rate over as many samples as fit, from 0 up; below it what was done meanwhile.

    No lines for a scan that has no rate (an error scrub).
    """
    head = f" {'rate':<{_HEAD - 1}}"
    tail = ink.frame.series.tail(view.key, "issue_rate", max(1, ink.width - 30))
    if all(rate is None for rate in tail):
        return []
    top = scale(tail)
    label = f" {ink.look.glyphs.spark[-1]}={ink.look.rate(top)} "
    width = min(ink.width - len(head) - len(label), 120)
    line: Line = (
        Span(head, "dim"),
        Span(sparkline(tail, width, top, ink.look.glyphs), "spark"),
        Span(label, "dim"),
    )
    acts = (event for event in ink.frame.events if event.name == DONE)
    since = [(ink.frame.series.since(act.t), ink.look.text(act.text)) for act in acts]
    marks = [(ago, text) for ago, text in since if ago is not None]
    done = markline(marks, width, ink.look.glyphs)
    return [line, (Span(" " * len(head)), Span(done, "notice"))] if done else [line]


def _limit(ink: Ink) -> list[Line]:
    """What the running scan waits for, how fast it could go, and what could be done.

    Advice is never cut short: without room for all of it, it is left out. How fast it could go
    takes a line of its own only where there is no advice.
    """
    limit, ceiling = ink.frame.limit, ink.frame.ceiling
    if limit is None or limit.cause == "unclear" or ink.compact or ink.frame.problem:
        return []
    doubt = "perhaps " if limit.sure < _SURE else ""
    lines = ink.paragraph("limit", f"{doubt}{limit.text}")
    advice = ink.paragraph("advice", limit.advice)
    if ceiling is not None:
        share = "" if ceiling.share is None else f", now {ceiling.share:.0%} of it"
        said = f"at most {ink.look.rate(ceiling.rate)} here{share}"
        if width_of(lines[-1]) + 3 + len(said) < ink.width:
            lines[-1] = (*lines[-1], Span(f"   {said}", "dim"))
        elif ink.roomy or (len(lines) == 1 and not advice):
            lines.append((Span(" " * (LABEL + 1)), Span(said, "dim")))
    return [*lines, *advice] if ink.roomy or len(advice) == 1 else lines


def _surroundings(ink: Ink) -> list[Line]:
    """Module parameters that are not as the running version sets them, and the machine's load.

    What knows the parameters is loaded for that only: the design size has no room.
    """
    from zconsole.scan_report.statistics import unusual

    found = unusual(ink.frame.tunables, ink.frame.version)
    said = ", ".join(f"{name}={value} (default {usual})" for name, (value, usual) in found.items())
    load = machine(ink.frame.host, ink.look)
    return [*ink.paragraph("tunables", said), *ink.paragraph("machine", load)]


def _troubles(ink: Ink) -> list[Line]:
    """Devices with new errors or flaps, the worst first, and what that speaks for."""
    if ink.compact or ink.frame.problem:
        return []
    worst = ink.frame.troubles[: _TROUBLES_ROOMY if ink.roomy else 1]
    lines = [line for trouble in worst for line in _trouble(trouble, ink)]
    return [(head, Span(text.text, "warning")) for head, text in lines]


def _trouble(trouble: DeviceFault, ink: Ink) -> list[Line]:
    """In full where there is room, else in two lines: the detail of its row has the rest."""
    whole = ink.paragraph("trouble", trouble.text)
    most = _TROUBLE_LINES
    if ink.roomy or len(whole) <= most:
        return whole
    name = middle(ink.look.text(trouble.name), _NAME, ink.look.glyphs.ellipsis)
    said = trouble.text.removeprefix(f"{trouble.name}: ").partition(" (")[0].split("; ")
    while len(said) > 1 and len(ink.paragraph("trouble", f"{name}: {'; '.join(said)}")) > most:
        said.pop()
    return ink.paragraph("trouble", f"{name}: {'; '.join(said)}")[:most]


def _notes(view: ScanView, ink: Ink) -> list[Line]:
    lines: list[Line] = []
    if ink.frame.problem and ink.frame.stale_seconds is not None and view.scan.active:
        ago = units.duration(ink.frame.stale_seconds)
        lines.append((Span(f" stale: {ago} old", "warning"),))
    if view.stalled is not None:
        lines.append((Span(f" STALLED: no progress for {units.duration(view.stalled)}", "error"),))
    if view.scan.state == "paused" and view.scan.paused_since is not None:
        when = ink.look.when(view.scan.paused_since, ink.now)
        lines.append((Span(f" paused since {when}", "notice"),))
    lines.extend((Span(f" {ink.look.text(note)}", "notice"),) for note in view.notes)
    return lines


def _past(view: ScanView, ink: Ink) -> list[Line]:
    """``scrub finished Sun 03:12, after 4h12m, repaired 0, errors 0``."""
    scan, look = view.scan, ink.look
    when = "" if scan.end is None else f" {look.when(scan.end, ink.now)}"
    name = look.text(work_name(scan.function, scan.vdev))
    took = seconds_taken(scan)
    after = "" if took is None else f", after {units.duration(took)}"
    head = (Span(f" {name} ", "bold"), Span(f"{look.text(scan.state)}{when}{after}"))
    facts = [fact for fact in result_facts(scan, look.size) if fact.label != "skipped"]
    if width_of(_listed(head, facts)) > ink.width:
        facts = [fact for fact in facts if fact.label == "errors"]
    return [_listed(head, facts), *_notes(view, ink)]


def _listed(head: Line, facts: Iterable[Fact]) -> Line:
    said = ((Span(", "), Span(f"{fact.label} {fact.value}", fact.severity)) for fact in facts)
    return (*head, *(span for spans in said for span in spans))
