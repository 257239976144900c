"""The screen of one job: looked at twice a second, steered by keys; leaving it changes nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial
from typing import Any, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType

from zconsole.errors import ZconsoleError
from zconsole.rebalance.backend import JobView
from zconsole.rebalance.planning.settings import Limits
from zconsole.ui.actions.context import FlowContext
from zconsole.ui.actions.plan_lines import said_lines, wrapped
from zconsole.ui.background import begin
from zconsole.ui.dialogs.confirm import Confirmation, ConfirmScreen
from zconsole.ui.dialogs.screens import Dialog, Offers
from zconsole.ui.keys import bindings, keys_of
from zconsole.ui.panes.help import help_key, key_row, short_key
from zconsole.ui.rebalance.job_lines import job_lines, job_title
from zconsole.ui.rebalance.job_watch import JobWatch, told_of
from zconsole.ui.rebalance.options import MIN_FREE, RATE, TARGET, Limit, ask_limit
from zconsole.ui.widgets.draw import Line, Span
from zconsole.ui.widgets.footer_view import FooterView
from zconsole.ui.widgets.lines_view import LinesView

Steering = Callable[[], Coroutine[Any, Any, None]]
LOOK = 0.5
"""Seconds between two refreshes of the job."""
KEYS = keys_of("Job")
STOP = (
    "The job ends, and its process with it. Files moved so far keep their new place. P resumes the"
    " rest at any time, also after a reboot."
)
PAUSE = "Only for a while? Esc, then P: a paused job keeps its process, which waits."
ASKED = {limit.name: limit for limit in (RATE, TARGET, MIN_FREE)}
"""Limits that can be set while it runs."""


class JobScreen(Dialog[None]):
    """One job, attached to; it goes on when the screen is left."""

    groups = ("Job",)
    BINDINGS: ClassVar[list[BindingType]] = bindings("Job")

    def __init__(self, context: FlowContext, pool: str, job: str, watch: JobWatch) -> None:
        super().__init__()
        self._flow = context
        self._look = context.look
        self._pool = pool
        self._job = job
        self._watch = watch
        self._said = ""

    def compose(self) -> ComposeResult:
        """The job, and the keys."""
        yield LinesView(id="job", focusable=True)
        yield FooterView(id="hint")

    def copies(self) -> Offers:
        """Its id, the command that shows it, its directories and its journal."""
        command = f"{self._watch.rebalance_backend.command} rebalance status {self._job}"
        offers = [("job", self._job), ("command", command)]
        if (job := self.job) is not None:
            offers += [("directory", path) for path in job.settings.dirs]
            offers += [("journal", job.journal)] * bool(job.journal)
        return tuple(offers)

    def on_mount(self) -> None:
        """Draw, and keep looking."""
        self.query_one("#job", LinesView).focus()
        self.set_interval(LOOK, self._again)
        self._again()

    @property
    def job(self) -> JobView | None:
        """The job as it was seen last."""
        return next((j for j in self._watch.jobs.get(self._pool, ()) if j.job == self._job), None)

    def _again(self) -> None:
        begin(self, self._refresh, group="job", exit_on_error=False)

    async def _refresh(self) -> None:
        for news in await self._watch.look(self._pool):
            self.app.notify(news.text, severity=news.severity, markup=False)
        self.update()

    def draw(self) -> None:
        """Draw what is known."""
        job, view, width = self.job, self.query_one("#job", LinesView), self.app.size.width
        if job is None:
            view.show(self._gone(width), (Span(f" REBALANCE  {self._job}", "title"),))
        else:
            frame = self._flow.frame_of(self._pool)
            fills = {vdev.name: vdev.fill for vdev in frame.balance.vdevs} if frame else {}
            lines = job_lines(job, frame.t if frame else 0.0, fills, self._look, width)
            view.show(lines, job_title(job, self._look))
        self.query_one("#hint", FooterView).show_below(view, self._hint(job))

    def _gone(self, width: int) -> tuple[Line, ...]:
        words = self._watch.rebalance_backend.last_words(self._job) or "no such job"
        return tuple(wrapped(words, "error", self._look, width, " "))

    def _hint(self, job: JobView | None) -> tuple[Line, ...]:
        problem = self._said or self._watch.problem
        said = wrapped(problem, "warning", self._look, self.app.size.width, " ") if problem else ()
        if reason := self._flow.denied:
            head = f" {self._look.text(reason)}:"
            return (*said, (Span(head, "warning"), *self._keys(frozenset(), len(head))))
        return (*said, self._keys(offered(job)))

    def _keys(self, offers: frozenset[str], room: int = 0) -> Line:
        over = self.job is not None and not self.job.live
        parts: list[Line] = []
        for key in self._look.keys.of("Job"):
            on = key.action in offers
            if on or not over:
                word = "resume" if key.action == "hold" and self._resumes else key.short
                parts.append(short_key(key, word, *(("key", "dim") if on else ("track", "track"))))
        back = short_key(self._look.keys.titled("back"), "back")
        ends = (*help_key(self._look), Span("  "), *back)
        return key_row(parts, ends, self.app.size.width - room)

    # Keys

    def on_key(self, event: events.Key) -> None:
        """Name the key that was meant: those that change something are capitals."""
        if self._flow.denied:
            return
        for key in self._look.keys.of("Job"):
            for letter in key.keys:
                if event.key != letter and event.key.upper() == letter:
                    self._said = f"Press {letter}, a capital, to {key.text}."
                    self.update()

    @property
    def _resumes(self) -> bool:
        """Whether the key that holds the job would resume it: paused, or ended before its time."""
        return self.job is not None and (not self.job.live or self.job.state == "paused")

    def action_hold(self) -> None:
        """Pause it, or resume it."""
        backend = self._watch.rebalance_backend
        resume = partial(backend.resume, self._job)
        pause = partial(backend.order, self._job, "pause")
        self._steer("hold", resume if self._resumes else pause)

    def action_stop(self) -> None:
        """Ask, then end it."""
        self._steer("stop", self._ask_stop)

    def action_limit(self, name: str) -> None:
        """Ask for a new limit, and set it."""
        self._steer(f"limit('{name}')", partial(self._ask, ASKED[name]))

    def _steer(self, action: str, steering: Steering) -> None:
        """Do what a key asks for, if it may be done now; else say why not."""
        job = self.job
        idle = "this job is unknown" if job is None else f"the job is {job.state}"
        self._said = self._flow.denied or ("" if action in offered(job) else idle)
        if self._said:
            self.update()
            return
        begin(self, partial(self._do, steering), group="steer", exit_on_error=False)

    async def _do(self, steering: Steering) -> None:
        self._flow.app.unsay(told_of(self._job))  # as that it stopped, which P undoes
        try:
            await steering()
        except ZconsoleError as error:
            self._said = str(error)
        await self._refresh()

    async def _ask_stop(self) -> None:
        backend, look = self._watch.rebalance_backend, self._look

        async def _stop(_: str | None) -> AsyncIterator[Span]:
            await backend.order(self._job, "stop")
            yield Span("Stopped.")

        command = f"{backend.command} rebalance stop {self._job}"
        held = self.job is not None and self.job.state == "paused"
        said = [Span(STOP), *[Span(PAUSE)] * (not held), Span(f"$ {command}", "key")]
        question = Confirmation(
            f"Stop rebalance job {self._job}?",
            partial(said_lines, said, look),
            _stop,
            verb="Stop",
            commands=(command,),
            leaves=True,
        )
        await self.app.push_screen_wait(ConfirmScreen([question], look))

    async def _ask(self, limit: Limit) -> None:
        now = self.job.limits if self.job is not None else Limits()
        if changed := await ask_limit(self._flow, limit, now):
            await self._watch.rebalance_backend.order(self._job, None, changed)


def offered(job: JobView | None) -> frozenset[str]:
    """The actions of keys that do something for a job in its present state."""
    if job is None:
        return frozenset()
    if job.live:
        return frozenset(key.action for key in KEYS)
    retry = job.state == "finished" and any(job.failed.values())
    return frozenset({"hold"}) if retry or job.state != "finished" else frozenset()
