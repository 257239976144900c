"""The lines about what runs on a pool and is no scan."""

from __future__ import annotations

from zconsole.frame import ActivityView
from zconsole.ui.draw import Line, Span
from zconsole.ui.scanparts import Ink, barred, eta_line, packed, subject, zpool_says


def activity_lines(view: ActivityView, ink: Ink) -> list[Line]:
    """A removal, an expansion, a checkpoint, trim, initialize, or a rebalance."""
    activity, look = view.activity, ink.look
    if activity.discarding:
        left = f"discarding, {look.size(activity.total_bytes)} remaining"
        return [(Span(f" {activity.kind} ", "bold"), Span(left))]
    beside = len(activity.state) + 3
    name = subject(activity.kind, activity.vdev, beside, activity.total_bytes, ink)
    head: Line = (
        Span(f" {name} ", "bold"),
        Span(f"{look.text(activity.state)} ", "" if activity.state == "running" else "notice"),
    )
    if activity.state not in ("running", "paused", "waiting"):
        return _ended(head, view, ink)
    percent = activity.percent
    if percent is None and activity.total_bytes and activity.done_bytes is not None:
        percent = 100.0 * activity.done_bytes / activity.total_bytes
    if percent is None and activity.total_bytes is None:
        note = look.text(activity.note)
        return [(*head, Span(note))]
    lines = [barred(head, percent, activity.done_bytes, activity.total_bytes, ink)]
    parts = [eta_line("ETA", view.estimate, ink), *zpool_says(activity.zpool_eta)]
    if view.rate is not None:
        parts.append((Span("at ", "dim"), Span(look.rate(view.rate))))
    if activity.note:
        parts.append((Span(look.text(activity.note), "dim"),))
    return [*lines, *packed(parts, ink)]


def _ended(head: Line, view: ActivityView, ink: Ink) -> list[Line]:
    activity, look = view.activity, ink.look
    facts: list[str] = []
    moment = activity.end if activity.end is not None else activity.start
    if moment is not None:
        facts.append(
            f"{'since ' if activity.state == 'exists' else ''}{look.when(moment, ink.now)}"
        )
    if activity.total_bytes is not None:
        facts.append(look.size(activity.total_bytes))
    if activity.note:
        facts.append(look.text(activity.note))
    return [(*head, Span("  ".join(facts)))]
