"""Plan of a rebalance: makes, shows and confirms it; Cancel has the focus.

It shows what moves, the predicted layout, the duration, and any obstacles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Button

from zconsole import units
from zconsole.errors import ZconsoleError
from zconsole.pool.balance import Balance, move_share
from zconsole.rebalance.backend import Counted, JobView, by_hand
from zconsole.rebalance.planning.plan_document import (
    PlanDocument,
    PredictedFill,
    cost_sentences,
    file_sentences,
    fill_new_words,
    lands_again,
    target_of,
)
from zconsole.rebalance.planning.settings import EVEN, Limits, Settings
from zconsole.timeline.frame import Frame
from zconsole.ui.actions.plan_lines import block_lines
from zconsole.ui.actions.session import FlowSession
from zconsole.ui.dialogs.confirm import ButtonScreen, ChoiceButton
from zconsole.ui.dialogs.screens import Offers
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.panes.help import titled_keys
from zconsole.ui.rebalance.options import AIMS, BEYOND, FULL, TARGET, NewJob
from zconsole.ui.themed_app import begin
from zconsole.ui.widgets.draw import Line, Lines, Span, fit, width_of
from zconsole.ui.widgets.graph import bar
from zconsole.ui.widgets.lines_view import FooterView, LinesView
from zconsole.units import percent

_NAME = 15

JobPace = tuple[float, str]
"""Logical bytes per second, and what the figure is based on."""


def pace_of(
    plan: PlanDocument,
    limit: float | None,
    jobs: Sequence[JobView],
    scan_rate: float | None,
    found: Balance,
) -> JobPace | None:
    """Return the pace to expect of a job in bytes/s; None if unknown.

    The pace of a job that is running takes precedence, then the mean of the last job with the same
    engine and no rate limit, then the mean rate of the pool's last scan (allocated bytes/s). Of a
    scan's rate a rewrite gets at most half, as it writes what it reads, and a copy a third, as it
    is read back; both get less if one vdev of the pool ``found`` gets most of the writes. The rate
    limit ``limit`` caps all of these. ``jobs`` are sorted, newest first.
    """
    engine = ",".join(sorted({part.engine for part in plan.directories if part.engine}))
    # The rate of a limited job says nothing about the disks.
    alike = [job for job in jobs if job.engine == engine and job.limits.rate is None]
    pace: JobPace | None = None
    if rates := [job.rate for job in jobs if job.rate]:
        pace = rates[0], "pace of another job"
    elif means := [job.mean_rate for job in alike if job.mean_rate]:
        pace = means[0], "as the last job did"
    elif scan_rate:
        share = move_share(found, 1 if engine == "rewrite" else 2)
        words = "half" if share == 0.5 else f"{percent(share)} of"
        pace = scan_rate * share / (plan.raw_factor or 1.0), f"{words} the last scan's rate"
    if limit is not None and (pace is None or limit < pace[0]):
        return limit, "the rate limit"
    return pace


def scan_pace(frame: Frame) -> float | None:
    """Return the mean rate of the newest finished scan of at least 10 s, in allocated bytes/s."""
    for view in frame.scans:
        scan = view.scan
        if scan.state != "finished" or scan.start is None or scan.end is None:
            continue
        took, issued = scan.end - scan.start, scan.issued_bytes or scan.scanned_bytes
        if took >= 10 and issued:
            return issued / took
    return None


def counting_lines(counted: Counted, silent: float, look: DisplayFormat, width: int) -> Lines:
    """Return the progress of planning; ``silent`` seconds without progress are shown from 10 on."""
    lines: list[Line] = [
        (
            Span(" counting files: ", "dim"),
            Span(f"{counted.files} files, {look.size(counted.bytes)}", "bold"),
        )
    ]
    if counted.where:
        where = look.middle(counted.where, max(8, width - 4))
        lines.append((Span(f"   {where}", "dim"),))
    if silent >= 10:
        lines.append((Span(f" no progress for {silent:.0f} s", "warning"),))
    return tuple(look.crop(line, width) for line in lines)


def plan_lines(
    plan: PlanDocument,
    settings: Settings,
    pace: JobPace | None,
    by_hand: str,
    denied: str,
    look: DisplayFormat,
    width: int,
) -> Lines:
    """Return all lines of the plan."""
    size = plan.bytes_within(settings.limits)
    head = "To run by hand" if denied else "Runs in the background"
    if plan.refused:
        head = "Would run"
    first = [
        ("Not possible", [plan.refused or ""], "error"),
        ("Nothing to move", [_idle(plan, settings.limits)], "notice"),
        (head, [by_hand] * bool(size), "bold"),
    ]
    last = [("Warnings", plan.notes, "warning"), ("Unavailable", [denied], "error")]
    lines = [
        *block_lines(first, look, width),
        *_moves(plan, settings.aim, look, width),
        *_fills(plan, settings.limits, look, width),
        *(_costs(plan, size, pace, settings.limits.window, look, width) if size else ()),
        *block_lines(last, look, width),
    ]
    return tuple(look.crop(line, width) for line in lines)


def _idle(plan: PlanDocument, limits: Limits) -> str:
    """Explain why no file moves, and what to set to move some anyway; empty if some do."""
    if plan.refused or plan.bytes_within(limits):
        return ""
    if not plan.bytes:
        return "no data to move in these directories"
    spread, wanted = percent(plan.spread_before, 1), percent(plan.target_spread, 1)
    return (
        f"the pool is even already: its spread is {spread}, the job stops at {wanted}."
        f' To move the files anyway, set "{TARGET.label}" to none'
    )


def _moves(plan: PlanDocument, aim: str, look: DisplayFormat, width: int) -> Iterator[Line]:
    yield (Span(" What moves  ", "bold"), Span(f"to {AIMS[aim]}", "dim"))
    for part in plan.directories:
        files = units.counted(part.files, "file")
        figures = f"{files}  {look.size(part.bytes)} logical  {part.engine or 'no engine'}"
        room = max(8, width - len(figures) - 5)
        name = look.middle(part.dir, room)
        yield (Span(f"  {name}  "), Span(figures, "bold"))
        yield from look.wrapped(part.why, width, "dim", "    ")
        for text, role in file_sentences(part, look.size):
            yield from look.wrapped(text, width, role, "    ")


def _fills(plan: PlanDocument, limits: Limits, look: DisplayFormat, width: int) -> Iterator[Line]:
    if not plan.vdevs:
        return
    before, after = percent(plan.spread_before, 1), percent(plan.spread_after, 1)
    head = Span(f" Predicted layout  spread {before}, then {after}  ", "bold")
    basis = Span(f"({look.text(plan.estimate)})", "dim")
    if width_of((head, basis)) <= width:
        yield (head, basis)
    else:
        yield (head,)
        yield from look.wrapped(basis.text, width, "dim", "  ")
    for fill in (*plan.vdevs, *(plan.special or ())):
        yield from fill_lines(fill, look, width)
    if plan.spread_before is None or plan.target_spread is None:
        return
    needs, wanted = plan.bytes_to_target, target_of(plan)
    if needs:
        size = f"{look.size(needs)} logical"
        less = needs < plan.bytes_within(limits) and limits.until_spread is None
        if limits.until_spread is not None:
            text = f"stop at a spread of {TARGET.shown(limits, look)}: needs {size}"
        elif less:
            fewer = f'set "{TARGET.label}" to {plan.target_spread * 100:g}'
            text = f"{wanted} needs only {size}; {fewer}"
        else:
            text = f"{wanted} needs {size}"
        text += lands_again(plan)
        yield from look.wrapped(text, width, "notice" * less, "  ")
    elif plan.spread_before > plan.target_spread:
        even = plan.target_spread == EVEN
        short = BEYOND if even else f"these directories hold too little for {wanted}"
        free = limits.until_spread is None and limits.max_bytes is None
        end = ": all their files move" * free
        yield from look.wrapped(short + end, width, "notice" if free else "dim", "  ")
    if words := fill_new_words(plan, look.size, f'set "{FULL.label}"'):
        yield from look.wrapped(words, width, "notice", "  ")


def fill_lines(fill: PredictedFill, look: DisplayFormat, width: int) -> Iterator[Line]:
    """Yield two bars for a vdev: its fill before and after."""
    name = fit(look.middle(fill.name, _NAME), _NAME)
    room = max(4, width - _NAME - 20)
    rows = ((name, "now", fill.fill_before), (" " * _NAME, "then", fill.fill_after))
    for label, word, share in rows:
        yield (
            Span(f"  {label} "),
            Span(f"{word:<5}", "dim"),
            *bar(share, room, look.glyphs, "track" if word == "now" else "bar"),
            Span(f" {percent(share, 1):>8}"),
        )


def _costs(
    plan: PlanDocument,
    size: int,
    pace: JobPace | None,
    window: str | None,
    look: DisplayFormat,
    width: int,
) -> Iterator[Line]:
    yield (Span(" What it takes", "bold"),)
    if pace is None:
        time = "duration unknown until it runs"
    else:
        rate, basis = pace
        hours = f" within {window}" if window else ""
        time = f"about {units.duration(size / rate)}{hours} at {look.rate(rate)} ({basis})"
    yield from look.wrapped(f"{look.size(size)} logical to move, {time}", width, "", "  ")
    for text, role in cost_sentences(plan, look.size):
        yield from look.wrapped(text, width, role, "  ")


class PlanScreen(ButtonScreen[bool | None]):
    """Screen of a plan; returns whether to run it, or None if left, which ends the planning."""

    def __init__(self, ui: FlowSession, pool: str, new: NewJob) -> None:
        super().__init__()
        self._ui = ui
        self._clock = ui.app.view_state.options.clock
        self.new = new
        self._pool = pool
        self._denied = ui.denied
        self._counted = Counted()
        self._heard = self._clock()
        self._problem = ""

    def compose(self) -> ComposeResult:
        """Yield the plan, two buttons and the footer."""
        yield LinesView(id="text", focusable=True)
        with Horizontal(id="choice"):
            yield ChoiceButton("Cancel", id="cancel")
            yield ChoiceButton("Run", id="run")
        yield FooterView(id="keys")

    def on_mount(self) -> None:
        """Draw, and start the planning."""
        self.watch(self.text, "scroll_y", self.update, init=False)
        begin(self, self._make, group="plan", exit_on_error=False)
        self.set_interval(1.0, self._tick)

    async def _make(self) -> None:
        await self.make()
        # Cancel, so that an Enter typed ahead runs nothing.
        self.set_focus(self.query_one("#cancel", Button))

    async def make(self) -> None:
        """Make the plan, and show its progress."""
        try:
            async for counted in self.new.planned(self._ui.jobs.rebalance_backend):
                self._counted, self._heard = counted, self._clock()
                self.update()
        except ZconsoleError as error:
            self._problem = str(error)
        self.update()

    def _tick(self) -> None:
        if self.new.plan is None and not self._problem:
            self.update()

    def copies(self) -> Offers:
        """Return the command of the plan."""
        return (("command", self._command),)

    @property
    def _command(self) -> str:
        """Command that runs the plan in a shell."""
        return by_hand(self._ui.jobs.rebalance_backend, self.new.settings)

    @property
    def ready(self) -> bool:
        """Whether the plan can be run: it moves something, and nothing forbids it."""
        made = self.new.plan
        if made is None or made.refused is not None or self._denied:
            return False
        return made.bytes_within(self.new.settings.limits) > 0

    def draw(self) -> None:
        """Draw the plan, or the progress of planning."""
        made = self.new.plan
        over = made is not None or bool(self._problem)
        self.query_one("#choice").display = over
        self.query_one("#run", Button).display = self.ready
        title = " REBALANCE  the plan" if made else " REBALANCE  making the plan"
        self.text.show(self.lines(self.app.size.width), (Span(title, "title"),))
        key = partial(titled_keys, self.look)
        more = [key("down", "more")] if self.text.has_more else []
        keys = [*more, key("previous-button next-button", "buttons"), key("press-button")]
        self.show_keys([*(keys if over else ()), key("back", "cancel")])

    def lines(self, width: int) -> Sequence[Line]:
        """Return the lines of the plan, of the progress of its making, or why there is none."""
        look, made, settings = self._ui.look, self.new.plan, self.new.settings
        if self._problem:
            return tuple(look.wrapped(self._problem, width, "error"))
        if made is not None:
            frame, jobs = self._ui.frame_of(self._pool), self._ui.jobs.of(self._pool)
            scan_rate, found = (scan_pace(frame), frame.balance) if frame else (None, Balance())
            pace = pace_of(made, settings.limits.rate, jobs, scan_rate, found)
            return plan_lines(made, settings, pace, self._command, self._denied, look, width)
        silent = self._clock() - self._heard
        return counting_lines(self._counted, silent, look, width)

    def on_button_pressed(self, message: Button.Pressed) -> None:
        """Close the screen with the answer of the button."""
        message.stop()
        self.dismiss(message.button.id == "run")
