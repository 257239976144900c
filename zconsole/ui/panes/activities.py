"""The lines about work on a pool other than scans."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from zconsole import units
from zconsole.pool.model import Activity
from zconsole.timeline.frame import ActivityView
from zconsole.ui.panes.scan_parts import Ink, barred, eta_line, packed, subject, zpool_says
from zconsole.ui.widgets.draw import Line, Span, beside, width_of
from zconsole.ui.widgets.short_names import middle

_TOGETHER = 3
"""From so many devices on that do the same, one entry tells of all of them."""
_LAST_NAME = 24
"""Cells of the name of the one that ends last."""


def activity_entries(views: Sequence[ActivityView], ink: Ink) -> Iterator[list[Line]]:
    """The lines of each activity; of many devices at the same work together, unless roomy."""
    at_work: defaultdict[str, list[ActivityView]] = defaultdict(list)
    for view in () if ink.roomy else filter(_is_at_work, views):
        at_work[view.activity.kind].append(view)
    for view in views:
        fellows = at_work.get(view.activity.kind, [])
        if len(fellows) < _TOGETHER or not _is_at_work(view):
            yield activity_lines(view, ink)
        elif view is fellows[0]:
            yield _together(fellows, ink)


def _is_at_work(view: ActivityView) -> bool:
    activity = view.activity
    counted = activity.done_bytes is not None and activity.total_bytes is not None
    return activity.state == "running" and counted


def _together(views: Sequence[ActivityView], ink: Ink) -> list[Line]:
    """What all of them did, and when the last one ends."""
    kind = views[0].activity.kind
    done = sum(view.activity.done_bytes or 0 for view in views)
    total = sum(view.activity.total_bytes or 0 for view in views)
    head: Line = (Span(f" {kind} of {len(views)} devices ", "bold"), Span("running "))
    lines = [barred(head, 100.0 * done / total if total else None, done, total, ink)]
    last = max(views, key=lambda view: (view.estimate.eta is None, view.estimate.eta or 0.0))
    name = middle(ink.look.text(last.activity.vdev or ""), _LAST_NAME, ink.look.glyphs.ellipsis)
    parts: list[Line] = [eta_line("slowest ETA", last.estimate, ink)]
    rates = [view.rate for view in views if view.rate is not None]
    if rates:
        parts.append((Span("at ", "dim"), Span(ink.look.rate(sum(rates)))))
    return [*lines, *packed([*parts, (Span("last ", "dim"), Span(name))], ink)]


def activity_lines(view: ActivityView, ink: Ink) -> list[Line]:
    """A removal, an expansion, a checkpoint, trim, initialize, or a rebalance."""
    activity, look = view.activity, ink.look
    if activity.discarding:
        left = f"discarding, {look.size(activity.total_bytes)} remaining"
        return [(Span(f" {activity.kind} ", "bold"), Span(left))]
    state = look.text(activity.state)
    name = subject(activity.kind, activity.vdev, len(state) + 3, activity.total_bytes, ink)
    role = "" if activity.state == "running" else "notice"
    head: Line = (Span(f" {name} ", "bold"), Span(f"{state} ", role))
    if activity.state not in ("running", "paused", "waiting"):
        return _ended(head, view, ink)
    percent = _percent(activity)
    if percent is None and activity.total_bytes is None:
        return [(*head, Span(look.text(activity.note)))]
    line = barred(head, percent, activity.done_bytes, activity.total_bytes, ink)
    return [line, *packed(_told(view, ink), ink)]


def _percent(activity: Activity) -> float | None:
    """How far it is: as the source says, else by its bytes."""
    if activity.percent is None and activity.total_bytes and activity.done_bytes is not None:
        return 100.0 * activity.done_bytes / activity.total_bytes
    return activity.percent


def _told(view: ActivityView, ink: Ink) -> list[Line]:
    """When it ends, how fast it goes and what is noted of it; or that it is stuck."""
    activity, look = view.activity, ink.look
    if view.stalled is not None:
        stuck = f"STUCK: no progress for {units.duration(view.stalled)}"
        return [(Span(stuck, "error"),), (Span(f"  {look.text(view.advice)}"),)]
    parts = [eta_line("ETA", view.estimate, ink), *zpool_says(activity.zpool_eta)]
    if view.rate is not None:
        parts.append((Span("at ", "dim"), Span(look.rate(view.rate))))
    return [*parts, *((Span(look.text(t), "dim"),) for t in (activity.note, view.advice) if t)]


def _ended(head: Line, view: ActivityView, ink: Ink) -> list[Line]:
    activity, look = view.activity, ink.look
    facts: list[str] = []
    moment = activity.end if activity.end is not None else activity.start
    if moment is not None:
        facts.append(
            f"{'since ' if activity.state == 'exists' else ''}{look.when(moment, ink.now)}"
        )
    moved = activity.total_bytes if activity.done_bytes is None else activity.done_bytes
    if moved is not None:
        facts.append(look.size(moved))
    if activity.note:
        facts.append(look.text(activity.note))
    text = "  ".join(facts)
    line: Line = (*head, Span(text))
    if width_of(line) <= ink.width:
        return [line]
    return [head, *beside(Span("  "), text, ink.width - 1)]
