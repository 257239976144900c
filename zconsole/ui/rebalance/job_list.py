"""The list of a pool's jobs, as lines."""

from __future__ import annotations

from collections.abc import Sequence

from zconsole import units
from zconsole.rebalance.backend import JobView
from zconsole.ui.display_format import DisplayFormat, percent
from zconsole.ui.rebalance.job_watch import reason
from zconsole.ui.widgets.bars import bar
from zconsole.ui.widgets.draw import Line, Span, crop, fit, width_of

NEW = "new: choose directories, see the plan, move their files"
_BAR = 12
_BARS_FROM = 76
ROLES = {
    "running": "notice",
    "waiting": "warning",
    "paused": "notice",
    "dead": "warning",
    "planned": "warning",
}
WORDS = {"dead": "interrupted", "planned": "not begun"}


def job_rows(jobs: Sequence[JobView], look: DisplayFormat, width: int) -> tuple[Line, ...]:
    """A line to begin a new job, then one for each there is."""
    new = crop((Span(f"  {NEW}", "accent"),), width, look.glyphs.ellipsis)
    return (new, *(_row(job, look, width) for job in jobs))


def _row(job: JobView, look: DisplayFormat, width: int) -> Line:
    word = WORDS.get(job.state, job.state)
    head: list[Span] = [
        Span(f"  {fit(job.job, 6)}  ", "dim"),
        Span(f"{fit(word, 11)} ", ROLES.get(job.state, "")),
        Span(f"{percent(job.share):>7}  "),
    ]
    if width >= _BARS_FROM:
        head += [*bar(job.share, _BAR, look.glyphs), Span("  ")]
    head.append(Span(f"{look.size(job.bytes_total):>6}  "))
    facts = [f"ETA {units.duration(job.eta_seconds)}"] if job.eta_seconds else []
    if job.state in ("waiting", "finished", "stopped") and reason(job):
        facts.append(look.text(reason(job)))
    facts.append(" ".join(look.text(path) for path in job.settings.dirs))
    room = max(1, width - width_of(head))
    text = fit("  ".join(facts), room, ellipsis=look.glyphs.ellipsis).rstrip()
    return (*head, Span(text, "" if job.live or job.interrupted else "dim"))
