"""List of a pool's jobs, and a screen for one of them, both with keys that control a job.

The screen shows progress, pace, the current file, the fill of the vdevs, and the files left out. It
is refreshed twice a second; leaving it changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from rich.cells import cell_len
from textual import events
from textual.screen import ScreenResultType

from zconsole import units
from zconsole.errors import ZconsoleError
from zconsole.rebalance.backend import REPLACED, JobView, own_days
from zconsole.ui.actions.session import FlowSession
from zconsole.ui.dialogs.confirm import question
from zconsole.ui.dialogs.screens import Dialog, Offers, PickList, PickScreen
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.keys import keys_of
from zconsole.ui.panes.help import help_key, key_row, short_key
from zconsole.ui.rebalance.job_watch import reason
from zconsole.ui.rebalance.options import (
    LIMITS,
    MIN_FREE,
    RATE,
    TARGET,
    Limit,
    ask_limit,
    dirs_text,
)
from zconsole.ui.themed_app import begin
from zconsole.ui.widgets.draw import Line, Lines, Span, fit, indented, joined, width_of
from zconsole.ui.widgets.graph import bar
from zconsole.units import counted, percent

NEW = "New job: choose directories, see the plan, run it"
_BAR = 12
_BARS_FROM = 96
"""Smallest screen width in cells with bars: the directories need the room on narrower ones."""
_LEAST_DIRS = 12
"""Least cells for the directories, unless other facts leave no room."""
ROLES = {
    "running": "notice",
    "waiting": "warning",
    "paused": "notice",
    "dead": "warning",
    "planned": "warning",
}


def _state_word(job: JobView) -> str:
    if job.state == "planned":
        return "not started"
    return "interrupted" if job.interrupted else job.state


def job_rows(jobs: Sequence[JobView], look: DisplayFormat, width: int) -> Lines:
    """Return a line for a new job, then one line per job."""
    new = look.crop((Span(f"  {NEW}", "key"),), width)
    return (new, *(_row(job, look, width) for job in jobs))


def _row(job: JobView, look: DisplayFormat, width: int) -> Line:
    word = _state_word(job)
    head: list[Span] = [
        Span(f"  {fit(job.job, 6)}  ", "dim"),
        Span(f"{fit(word, 11)} ", ROLES.get(job.state, "")),
        Span(f"{percent(job.share, 1):>7}  "),
    ]
    if width >= _BARS_FROM:
        head += [*bar(job.share, _BAR, look.glyphs), Span("  ")]
    head.append(Span(f"{look.size(job.goal):>6} logical  "))
    facts = [f"ETA {units.duration(job.eta_seconds)}"] if job.eta_seconds else []
    if job.state in ("waiting", "finished", "stopped") and reason(job):
        facts.append(look.text(reason(job)))
    if why := _why_short(job):
        facts.append(why)
    said = "".join(f"{fact}  " for fact in facts)
    room = max(1, width - width_of(head))
    dirs = look.middle(" ".join(job.settings.dirs), max(_LEAST_DIRS, room - cell_len(said)))
    said = look.cut(said + dirs, room)
    return (*head, Span(said, "" if job.live or job.interrupted else "dim"))


_NAME = 15
_DAYS = 14
"""Number of days shown, the newest ones."""

Fills = Mapping[str, float | None]
"""Fill of each vdev now, 0…1, by name."""


def job_title(job: JobView, look: DisplayFormat) -> Line:
    """Return the title: the job, its engine and its directories."""
    dirs = dirs_text(job.settings, look)
    return (Span(f" REBALANCE  {job.job}  {job.engine}  {dirs}", "title"),)


def job_lines(
    job: JobView, now: float, fills: Fills, look: DisplayFormat, width: int
) -> Sequence[Line]:
    """Return all lines about a job; ``now`` in epoch seconds."""
    lines = [
        *_progress(job, now, look, width),
        *_pace(job, now, look, width),
        *_moved(job, fills, look, width),
        *_left_out("Need no move", "dim", {REPLACED: job.replaced}, look, width),
        *_left_out("Skipped", "warning", job.unmoved, look, width),
        *_left_out("Failed", "error", job.failed, look, width),
        *_retry_hints(job, look, width),
        *_days(job, fills, look, width),
        *((Span(f" {look.text(note)}", "warning"),) for note in job.notes),
        *_named(job, look, width),
    ]
    return tuple(look.crop(line, width) for line in lines)


def _progress(job: JobView, now: float, look: DisplayFormat, width: int) -> Iterator[Line]:
    word = _state_word(job)
    tail = "   "
    if job.goal is not None:
        moved = f"{look.size(job.bytes_handled)} of {look.size(job.goal)} logical"
        tail = f"  {', '.join(filter(None, (moved, _why_short(job))))} "
    head = (
        Span(f" {fit(word, 11)} ", ROLES.get(job.state, "bold")),
        Span(f"{percent(job.share, 1):>7}  "),
    )
    room = max(0, width - 22 - len(tail))
    yield (*head, *bar(job.share, room, look.glyphs), Span(tail))
    why = reason(job)
    if why and why != word:
        yield from look.wrapped(why, width, ROLES.get(job.state, ""))
    if job.ended is not None:
        said = f" Ended {look.when(job.ended, now)}"
        if job.began is not None:  # includes pauses
            said += f", {units.duration(job.ended - job.began)} after it began"
        yield (Span(said),)
    if job.state == "finished" and not job.whole and job.bytes_total is not None:
        left = f"{look.size(job.bytes_total - job.bytes_handled)} of {look.size(job.bytes_total)}"
        yield (Span(f" Stays where it is: {left} logical in these directories"),)
    if rest := _rest(job, look):
        yield from look.wrapped(rest, width, "bold")


def _rest(job: JobView, look: DisplayFormat) -> str:
    """Describe what a job that isn't running has left to do, and the key that resumes it.

    Empty for a running or finished job.
    """
    if job.state != "paused" and (job.live or job.state == "finished"):
        return ""
    way = f"{look.keys.shown('hold')} resumes the job."
    if job.goal is None or job.files_total is None:
        return way
    size = look.size(max(0, job.goal - job.bytes_handled))
    files = f" in {counted(job.files_total - (job.files_done or 0), 'file')}" * job.whole
    return f"{size} logical{files} left. {way}"


def _pace(job: JobView, now: float, look: DisplayFormat, width: int) -> Iterator[Line]:
    parts: list[Line] = []
    if job.state == "running":
        parts.append((Span("at ", "dim"), Span(look.rate(job.rate))))
        eta: Line = (Span("none yet"),)
        if job.eta_seconds is not None:
            when = look.when(now + job.eta_seconds, now)
            eta = (Span(units.duration(job.eta_seconds), "bold"), Span(f"  {when}"))
        parts.append((Span("ETA ", "dim"), *eta))
    if job.files_total is not None:
        parts.append((Span(_files(job)),))
    for limit in LIMITS:
        if getattr(job.limits, limit.name) is not None:
            label = f"{limit.label[0].lower()}{limit.label[1:]} "
            parts.append((Span(label, "dim"), Span(limit.shown(job.limits, look), "bold")))
        elif limit is TARGET and job.settings.aim == "balance" and job.ended is None:
            # Jobs of this aim usually have a target.
            parts.append((Span("until all files are done", "bold"),))
    yield from ((Span(" "), *line) for line in joined(parts, "   ", width - 2))
    if job.current and job.state == "running":
        path = look.middle(job.current, max(8, width - 7))
        yield (Span(" now  ", "dim"), Span(path))


def _files(job: JobView) -> str:
    """Return the numbers of files moved, needing no move, skipped and failed.

    It is unknown how many files will move if the job ends before its last one.
    """
    done = f"{job.files_moved:,}{f' of {job.files_total:,}' * job.whole} files moved"
    if job.replaced:
        done += f", {job.replaced:,} need no move"
    return ", ".join(filter(None, (done, _left_behind(job))))


def _left_behind(job: JobView) -> str:
    """Return ``704 skipped, 2 failed``; empty if there are none."""
    but = ((job.files_unmoved, "skipped"), (sum(job.failed.values()), "failed"))
    return ", ".join(f"{n:,} {word}" for n, word in but if n)


def _why_short(job: JobView) -> str:
    """Return why a job that has finished is not at 100 %; empty otherwise."""
    return _left_behind(job) if job.state == "finished" and job.whole else ""


def _moved(job: JobView, fills: Fills, look: DisplayFormat, width: int) -> Iterator[Line]:
    """Yield the fill of each vdev as a bar, with its fill before the job and the difference."""
    if not job.before:
        return
    spread = max(job.before.values()) - min(job.before.values())
    head = f" Vdevs: spread {percent(spread, 1)} at the start"
    if (now := _spread_now(job, fills)) is not None:
        at_end = None if job.live or not job.days else job.days[-1].get("spread")
        if at_end is not None and percent(at_end, 1) != percent(now, 1):  # others write, too
            head += f", {percent(at_end, 1)} at its end"
        head += f", {percent(now, 1)} now"
    yield (Span(head, "bold"),)
    room = max(4, width - _NAME - 34)
    for name, before in job.before.items():
        fill = fills.get(name)
        change = "" if fill is None else f"{round(fill * 100, 1) - round(before * 100, 1):+z.1f}"
        yield (
            Span(f"  {fit(look.middle(name, _NAME), _NAME)} "),
            *bar(before if fill is None else fill, room, look.glyphs),
            Span(f" {percent(fill, 1):>8}"),
            Span(f"  was {percent(before, 1):>7}", "dim"),
            Span(f" {change:>6}"),
        )


def _spread_now(job: JobView, fills: Fills) -> float | None:
    """Return the present spread of the job's vdevs; None without all of their fills."""
    known = [fill for name in job.before if (fill := fills.get(name)) is not None]
    return max(known) - min(known) if known and len(known) == len(job.before) else None


def _left_out(
    word: str, role: str, reasons: Mapping[str, int], look: DisplayFormat, width: int
) -> Iterator[Line]:
    total = sum(reasons.values())
    if not total:
        return
    ordered = sorted(reasons.items(), key=lambda pair: -pair[1])
    several = len(ordered) > 1
    parts = [(Span(f"{n:,} " * several + look.text(why), role),) for why, n in ordered]
    head = f" {word} {total:,}: "
    yield from indented(Span(head, "bold"), joined(parts, ", ", width - len(head) - 1))


def _retry_hints(job: JobView, look: DisplayFormat, width: int) -> Iterator[Line]:
    """Explain how to retry files that were left out; failed ones only once the job has finished."""
    if job.state == "finished" and any(job.failed.values()):
        yield (Span(f" {look.keys.shown('hold')} tries the failed files again", "dim"),)
    if job.files_unmoved:
        if "changed" in job.unmoved:
            changed = "Changed: others wrote, replaced or removed them meanwhile"
            yield from look.wrapped(changed, width, "dim")
        again = "Only a new job tries skipped files again; it also moves all others again"
        yield from look.wrapped(again, width, "dim")


def _named(job: JobView, look: DisplayFormat, width: int) -> Iterator[Line]:
    """List the skipped and failed files with full paths, for comparison, and reasons."""
    if not job.left_out:
        return
    yield (Span(" Skipped or failed", "bold"),)
    for file in job.left_out:
        role = "error" if file["outcome"] == "failed" else "dim"
        text = f"{file['outcome']}: {file['path']}: {file['reason'] or ''}"
        yield from look.wrapped(text, width, role, "  ")
    more = sum(job.failed.values()) + job.files_unmoved - len(job.left_out)
    if more > 0:
        way = f"{look.keys.shown('copy')} copies the command that lists more"
        yield (Span(f"  and {more:,} more; {way}", "dim"),)


_DAY_COLUMNS = {
    "Day": 12, "moved": 8, "files": 10, "skipped": 8, "spread": 9, "frag": 7, "raw free": 10,
}  # fmt: skip
"""Columns of the table of days, with their widths; only the first is left-aligned."""
_FRAG_FROM = 72
"""Smallest screen width in cells with all columns."""


def _days(job: JobView, fills: Fills, look: DisplayFormat, width: int) -> Iterator[Line]:
    if not job.days:
        return
    sizes = {t: n for t, n in _DAY_COLUMNS.items() if t != "frag" or width >= _FRAG_FROM}
    days = [_day(day, look) for day in list(own_days(job.days))[-_DAYS:]]
    if job.live and (now := _spread_now(job, fills)) is not None:
        days[-1]["spread"] = percent(now, 1)  # as above; its last check was earlier
    for role, cells in (("bold", {title: title for title in sizes}), *(("", day) for day in days)):
        row = (fit(cells[t], n, right=t != "Day") for t, n in sizes.items())
        yield (Span(" " + "".join(row), role),)


def _day(day: Mapping[str, Any], look: DisplayFormat) -> dict[str, str]:
    """Return the cells of a day: its own figures, and the state of the pool at its end.

    Files are counted as in ``_files``.
    """
    moved = skipped = "-"
    if "files_done" in day:
        left_out = (day.get(name) or 0 for name in ("files_skipped", "files_failed"))
        moved = f"{day['files_done'] - sum(left_out):,}"
    if "files_skipped" in day:
        skipped = f"{max(0, day['files_skipped'] - day.get('files_replaced', 0)):,}"
    return {
        "Day": look.text(str(day.get("day", ""))),
        "moved": look.size(day.get("moved_bytes")),
        "files": moved,
        "skipped": skipped,
        "spread": percent(day.get("spread"), 1),
        "frag": percent(day.get("fragmentation")),
        "raw free": look.size(day.get("free_bytes")),
    }


Steering = Callable[[JobView], Coroutine[Any, Any, None]]
LOOK = 0.5
"""Seconds between two refreshes of the job."""
KEYS = keys_of("Job")
ASKED = {limit.name: limit for limit in (RATE, TARGET, MIN_FREE)}
"""Limits that can be changed while the job runs."""


class SteeringScreen(Dialog[ScreenResultType], groups=("Job",)):
    """A screen with keys that control a job."""

    _no_job = "this job is unknown"
    """What is said of a key without a job."""
    _reply = ""

    def __init__(self, ui: FlowSession, pool: str, *args: Any, **options: Any) -> None:
        """Pass ``args`` and ``options`` to the screen that this is besides."""
        super().__init__(*args, **options)
        self._ui = ui
        self._pool = pool

    @property
    def job(self) -> JobView | None:
        """The job that the keys control, as of the last refresh; None if there is none."""
        raise NotImplementedError

    async def _refresh(self) -> None:
        for news in await self._ui.jobs.look(self._pool):
            self.app.notify(news.text, severity=news.severity, about=news.job)
        self.update()

    def _hint(self) -> Lines:
        """Return what the last key led to, and the keys."""
        problem = self._reply or self._ui.jobs.problem
        said = self.look.wrapped(problem, self.app.size.width, "warning") if problem else ()
        if reason := self._ui.denied:
            head = f" {self.look.text(reason)}:"
            return (*said, (Span(head, "warning"), *self._keys(frozenset(), len(head))))
        return (*said, self._keys(possible_actions(self.job)))

    def _keys(self, offers: frozenset[str], room: int = 0) -> Line:
        job, keys = self.job, self.look.keys
        others = (key for group in self.groups if group != "Job" for key in keys.of(group))
        parts = [short_key(key) for key in others if key.short]
        for key in keys.of("Job"):
            on = key.action in offers
            if on or job is None or job.live:
                word = "resume" if key.action == "hold" and job and _resumes(job) else key.short
                parts.append(short_key(key, word, *(("key", "dim") if on else ("track", "track"))))
        back = short_key(keys.titled("back"), "back")
        ends = (*help_key(self.look), Span("  "), *back)
        return key_row(parts, ends, self.app.size.width - room)

    def action_hold(self) -> None:
        """Pause or resume the job."""
        self._steer("hold", self._hold)

    def action_stop(self) -> None:
        """Ask, then stop the job."""
        self._steer("stop", self._ask_stop)

    def action_limit(self, name: str) -> None:
        """Ask for a new limit, and set it."""
        self._steer(f"limit('{name}')", partial(self._ask, ASKED[name]))

    def _steer(self, action: str, steering: Steering) -> None:
        """Carry out a key's request, or show why it isn't possible now."""
        job = self.job
        idle = self._no_job if job is None else f"the job is {job.state}"
        self._reply = self._ui.denied or ("" if action in possible_actions(job) else idle)
        if job is None or self._reply:
            self.update()
            return
        begin(self, partial(self._do, steering, job), group="steer", exit_on_error=False)

    async def _do(self, steering: Steering, job: JobView) -> None:
        self._ui.app.withdraw(job.job)  # such as that it stopped
        try:
            await steering(job)
        except ZconsoleError as error:
            self._reply = str(error)
        await self._refresh()

    async def _hold(self, job: JobView) -> None:
        backend = self._ui.jobs.rebalance_backend
        await (backend.resume(job.job) if _resumes(job) else backend.order(job.job, "pause"))

    async def _ask_stop(self, job: JobView) -> None:
        backend, look = self._ui.jobs.rebalance_backend, self.look
        command = f"{backend.command} rebalance stop {job.job}"
        ends = (
            "The job ends, and its process with it. Files moved so far keep their new place."
            f" {look.keys.shown('hold')} resumes the rest at any time, also after a reboot."
        )
        leave = look.keys.shown("back", "hold")
        pause = f"Only for a while? {leave}: a paused job keeps its process, which waits."
        said = [Span(ends), *[Span(pause)] * (job.state != "paused"), Span(f"$ {command}", "key")]
        stop, title = partial(backend.order, job.job, "stop"), f"Stop rebalance job {job.job}?"
        await self._ui.confirmed(question(title, said, stop, verb="Stop", commands=(command,)))

    async def _ask(self, limit: Limit, job: JobView) -> None:
        if changed := await ask_limit(self._ui, limit, job.limits):
            await self._ui.jobs.rebalance_backend.order(job.job, None, changed)


class JobListScreen(SteeringScreen[int | None], PickScreen, groups=("Menu", "Job")):
    """List of a pool's jobs; returns the index of the line chosen, 0 for a new job."""

    _no_job = "put the cursor on a job"

    def __init__(self, ui: FlowSession, pool: str, start: int) -> None:
        self.shown = ui.jobs.of(pool)
        """The jobs as drawn last."""
        title = f"REBALANCE  {ui.look.text(pool)}"
        super().__init__(ui, pool, PickList(title, self._rows, start))

    def _rows(self, look: DisplayFormat, width: int) -> Sequence[Line]:
        return job_rows(self.shown, look, width)

    @property
    def job(self) -> JobView | None:
        """The job at the cursor; None on the line for a new one."""
        line = self.view.cursor
        return self.shown[line - 1] if 0 < line <= len(self.shown) else None

    def draw(self) -> None:
        """Draw the jobs as they are now, with the cursor on the same one."""
        at, self.shown = self.job, self._ui.jobs.of(self._pool)
        if at is not None:
            ids = [job.job for job in self.shown]
            self.view.cursor = ids.index(at.job) + 1 if at.job in ids else 0
        super().draw()

    def show_keys(self) -> None:
        """Draw the keys that control the job at the cursor."""
        self.footer.show(self._hint())

    def _moved(self, line: int) -> None:
        super()._moved(line)
        self._reply = ""
        self.show_keys()


class JobScreen(SteeringScreen[None]):
    """Screen of one job; the job goes on when the screen is left."""

    def __init__(self, ui: FlowSession, pool: str, job: str) -> None:
        super().__init__(ui, pool)
        self._job = job

    def copies(self) -> Offers:
        """Return the job's id, status command, directories and journal."""
        command = f"{self._ui.jobs.rebalance_backend.command} rebalance status {self._job}"
        offers = [("job", self._job), ("command", command)]
        if (job := self.job) is not None:
            offers += [("directory", path) for path in job.settings.dirs]
            offers += [("journal", job.journal)] * bool(job.journal)
        return tuple(offers)

    def on_mount(self) -> None:
        """Draw the job, and start refreshing it."""
        self.set_interval(LOOK, self._begin_refresh)
        self._begin_refresh()

    @property
    def job(self) -> JobView | None:
        """The job as of the last refresh; None if it isn't known."""
        return next((j for j in self._ui.jobs.of(self._pool) if j.job == self._job), None)

    def on_key(self, event: events.Key) -> None:
        """Point to the capital letter if a key was pressed in lower case: changes need capitals."""
        keys = self.look.keys
        if self._ui.denied or any(event.key in k.keys for k in keys.looks if k.everywhere):
            return
        for key in keys.of("Job"):
            for letter in key.keys:
                if event.key != letter and event.key.upper() == letter:
                    event.stop()
                    self._reply = f"Press {letter}, a capital, to {key.text}."
                    self.update()

    def _begin_refresh(self) -> None:
        begin(self, self._refresh, group="job", exit_on_error=False)

    def draw(self) -> None:
        """Draw the job as of the last refresh."""
        job, look, width = self.job, self.look, self.app.size.width
        if job is None:
            words = self._ui.jobs.rebalance_backend.last_words(self._job) or "no such job"
            title: Line = (Span(f" REBALANCE  {self._job}", "title"),)
            self.text.show(tuple(look.wrapped(words, width, "error")), title)
        else:
            frame = self._ui.frame_of(self._pool)
            fills = {vdev.name: vdev.fill for vdev in frame.balance.vdevs} if frame else {}
            lines = job_lines(job, frame.t if frame else 0.0, fills, look, width)
            self.text.show(lines, job_title(job, look))
        self.footer.show_below(self.text, self._hint())


def _resumes(job: JobView) -> bool:
    """Return whether the pause key would resume a job: it is paused, or its process has ended."""
    return not job.live or job.state == "paused"


def possible_actions(job: JobView | None) -> frozenset[str]:
    """Return the actions whose keys do something for a job in its present state."""
    if job is None:
        return frozenset()
    if job.live:
        return frozenset(key.action for key in KEYS)
    retry = job.state == "finished" and any(job.failed.values())
    return frozenset({"hold"}) if retry or job.state != "finished" else frozenset()
