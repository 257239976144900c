"""A plan as lines: what moves, where the data will lie, how long, and what is in the way."""

from __future__ import annotations

from collections.abc import Iterator

from zconsole import units
from zconsole.rebalance.backend import Counted, DirectoryView, PlanView, VdevFill
from zconsole.rebalance.job.duration_estimate import JobPace
from zconsole.rebalance.planning import hot_directories
from zconsole.rebalance.planning.plan_text import is_alike, size_line
from zconsole.rebalance.planning.pool_text import looked_words
from zconsole.ui.actions.plan_lines import wrapped
from zconsole.ui.display_format import DisplayFormat, percent
from zconsole.ui.rebalance.options import AIMS
from zconsole.ui.widgets.bars import bar
from zconsole.ui.widgets.draw import Line, Span, crop, fit
from zconsole.ui.widgets.short_names import middle

PINS = {
    "snapshots": "snapshots",
    "clones": "clones",
    "checkpoint": "the checkpoint",
    "dedup": "dedup",
    "block_clones": "block clones",
}
_NAME = 15


def counting_lines(
    counted: Counted, silent: float, look: DisplayFormat, width: int
) -> tuple[Line, ...]:
    """While a plan is made: how far it is; ``silent`` seconds without a sign are told."""
    lines: list[Line] = [
        (
            Span(" looking at the files: ", "dim"),
            Span(f"{counted.files} files, {look.size(counted.bytes)}", "bold"),
        )
    ]
    if counted.where:
        where = middle(look.text(counted.where), max(8, width - 4), look.glyphs.ellipsis)
        lines.append((Span(f"   {where}", "dim"),))
    if silent >= 10:
        lines.append((Span(f" nothing heard for {silent:.0f} s", "warning"),))
    return tuple(crop(line, width, look.glyphs.ellipsis) for line in lines)


def plan_lines(
    proposal: PlanView,
    pace: JobPace | None,
    by_hand: str,
    denied: str,
    look: DisplayFormat,
    width: int,
) -> tuple[Line, ...]:
    """The whole plan."""
    lines = _all(proposal, pace, by_hand, denied, look, width)
    return tuple(crop(line, width, look.glyphs.ellipsis) for line in lines)


def _all(
    proposal: PlanView,
    pace: JobPace | None,
    by_hand: str,
    denied: str,
    look: DisplayFormat,
    width: int,
) -> Iterator[Line]:
    if proposal.refused is not None:
        yield (Span(" Not possible", "bold"),)
        yield from wrapped(proposal.refused, "error", look, width)
    yield from _moves(proposal, look, width)
    if proposal.vdevs:
        yield from _fills(proposal, look, width)
    yield from _costs(proposal, pace, look, width)
    if proposal.notes:
        yield (Span(" Look twice", "bold"),)
        for note in proposal.notes:
            yield from wrapped(note, "warning", look, width)
    yield (
        Span(" To run by hand" if denied else " Will run, and go on without this console", "bold"),
    )
    yield from wrapped(by_hand, "accent", look, width)
    if denied:
        yield (Span(" Not from here", "bold"),)
        yield from wrapped(denied, "error", look, width)


def _moves(proposal: PlanView, look: DisplayFormat, width: int) -> Iterator[Line]:
    yield (Span(" What moves  ", "bold"), Span(f"to {AIMS[proposal.settings.aim]}", "dim"))
    for part in proposal.parts:
        yield from _part(part, look, width)
        yield from _size(part, proposal.settings.aim, look, width)


def _part(part: DirectoryView, look: DisplayFormat, width: int) -> Iterator[Line]:
    figures = f"{part.files} files  {look.size(part.bytes)}  {part.engine or 'no engine'}"
    room = max(8, width - len(figures) - 5)
    name = middle(look.text(part.dir), room, look.glyphs.ellipsis)
    yield (Span(f"  {name}  "), Span(figures, "accent"))
    yield from wrapped(part.why, "dim", look, width, "    ")
    for reason, files in part.skipped.items():
        yield from wrapped(f"{files} skipped: {reason}", "warning", look, width, "    ")
    if looked := looked_words(part.sampled, part.engine):
        yield from wrapped(looked, "warning", look, width, "    ")
    if best := hot_directories.words(part.below, part.old, look.size, str):
        yield from wrapped(best, "notice", look, width, "    ")


def _size(part: DirectoryView, aim: str, look: DisplayFormat, width: int) -> Iterator[Line]:
    """What the files take afterwards, where that is the aim or something changes."""
    line = size_line(part.allocated, part.after, part.sizes_from, look.size)
    if line and (aim != "balance" or not is_alike(part.allocated, part.after)):
        yield from wrapped(line, "accent", look, width, "    ")


def _fills(proposal: PlanView, look: DisplayFormat, width: int) -> Iterator[Line]:
    before, after = percent(proposal.spread_before), percent(proposal.spread_after)
    yield (
        Span(" Where it will lie  ", "bold"),
        Span(f"spread {before}, then {after}", "accent"),
        Span(f"  ({look.text(proposal.estimate)})", "dim"),
    )
    for fill in (*proposal.vdevs, *proposal.special):
        yield from fill_lines(fill, look, width)
    goal, needs = f"a spread of {percent(proposal.target, 0)} takes", proposal.bytes_to_target
    if needs:
        less = needs < proposal.bytes and proposal.settings.limits.until_spread is None
        hint = (
            f" of it: stop at a spread of {proposal.target * 100:g} to move no more" if less else ""
        )
        yield from wrapped(f"{goal} {look.size(needs)}{hint}", "notice" * less, look, width)
    elif proposal.spread_before is not None and proposal.spread_before > proposal.target:
        yield from wrapped(f"{goal} more than these directories hold", "dim", look, width)


def fill_lines(fill: VdevFill, look: DisplayFormat, width: int) -> Iterator[Line]:
    """A vdev before and after: two bars below each other."""
    name = fit(middle(look.text(fill.name), _NAME, look.glyphs.ellipsis), _NAME)
    room = max(4, width - _NAME - 20)
    for label, word, share in ((name, "now", fill.before), (" " * _NAME, "then", fill.after)):
        yield (
            Span(f"  {label} "),
            Span(f"{word:<5}", "dim"),
            *bar(share, room, look.glyphs, "track" if word == "now" else "bar"),
            Span(f" {percent(share):>8}"),
        )


def _costs(
    proposal: PlanView, pace: JobPace | None, look: DisplayFormat, width: int
) -> Iterator[Line]:
    yield (Span(" What it takes", "bold"),)
    if pace is None:
        time = "time unknown until it runs"
    else:
        took = units.duration(proposal.bytes / pace.rate)
        time = f"about {took} at {look.rate(pace.rate)} ({pace.basis})"
    yield from wrapped(f"{look.size(proposal.bytes)} to move, {time}", "", look, width)
    pinned = {
        words: sum(part.pinned.get(cause) or 0 for part in proposal.parts)
        for cause, words in PINS.items()
    }
    for words, held in pinned.items():
        if held:
            text = f"{look.size(held)} of old blocks stay, held by {words}"
            yield from wrapped(text, "warning", look, width)
    sent = sum(part.incremental or 0 for part in proposal.parts)
    if sent:
        text = f"the next incremental send grows by {look.size(sent)}"
        yield from wrapped(text, "warning", look, width)
    if proposal.order:
        yield from wrapped(f"order of files: {proposal.order}", "dim", look, width)
    if proposal.available is not None:
        floor = f"{look.size(proposal.available)} may be used before the free-space floor"
        yield from wrapped(floor, "dim", look, width)
    if proposal.fragmentation is not None:
        yield from wrapped(
            f"the pool's free space is {percent(proposal.fragmentation, 0)} fragmented",
            "dim",
            look,
            width,
        )
