"""Menu of scrubs and resilvers, and the questions behind some of its entries."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

from zconsole.actions.plan import Situation
from zconsole.actions.scrub import (
    EXAMPLE,
    ScrubDates,
    plan_resilver,
    plan_scrub,
    plan_scrub_dates,
    plan_scrub_new,
    plan_stop_resilver,
    read_dates,
)
from zconsole.actions.scrub_window import (
    plan_beside_window,
    plan_pause_beside_window,
    plan_stop_beside_window,
    plan_window,
    plan_window_off,
    read_hours,
    window_of,
)
from zconsole.errors import ZconsoleError
from zconsole.pool.scrub_window import ScrubWindow
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.ui.actions.menu import Entry, run_menu
from zconsole.ui.actions.plan_lines import said_lines
from zconsole.ui.actions.session import FlowSession
from zconsole.ui.dialogs.screens import TextQuestion
from zconsole.ui.widgets.draw import Span

_DATES = (
    Span("Blocks written in this time are read, in the time zone of this machine.", "dim"),
    Span("The first or the last date may be left out: 2026-11-01, to 2026-11-20", "dim"),
)
_HOURS = (
    Span("The scrub runs between these times of the day, and is paused outside them.", "dim"),
    Span("For one scrub: it starts if none runs; at its end the hours are dropped.", "dim"),
    Span('Its progress is kept. In the time zone of this machine; "off" drops the hours.', "dim"),
)


async def scans_flow(ui: FlowSession, key: str) -> None:
    """Show the actions for the scans of the pool on show, and carry out the chosen one."""
    await run_menu(ui, "Scrub and resilver", lambda now: scan_entries(now, ui.windows), key)


def scan_entries(situation: Situation, windows: tuple[ScrubWindow, ...] = ()) -> tuple[Entry, ...]:
    """Return the actions for scrubs and resilvers in fixed order; ``windows``: scrub hours set."""
    window = window_of(situation, windows)
    hours = f" (set: {window.hours})" if window else ""
    begin = partial(plan_beside_window, windows=windows)
    pause = partial(plan_pause_beside_window, windows=windows)
    stop = partial(plan_stop_beside_window, windows=windows)
    again = not situation.active("resilver") and plan_resilver(situation).refused is None
    entries = [
        # The cursor starts here, possible or not, so that S and Enter never pause or stop a scrub;
        # only devices that wait for a resilver move it, to the restart of one.
        Entry("Start or resume a scrub", (begin,), wanted=not again),
        Entry("Pause the scrub", (pause,)),
        Entry("Stop the scrub", (stop,)),
        Entry("Scrub only known errors", (lambda s: plan_scrub(s, errors_only=True),)),
        Entry("Scrub only what is new", (plan_scrub_new,)),
        Entry("Scrub a range of dates", (plan_scrub_dates,), dates_flow),
        Entry(f"Scrub only in some hours{hours}", (plan_window,), window_flow),
        Entry("Scrub at any hour again", (partial(plan_window_off, windows=windows),)),
        Entry("Restart the resilver", (plan_resilver,), wanted=again),
        Entry("Pause or stop the resilver", (plan_stop_resilver,)),
    ]
    return tuple(entry.judged(situation) for entry in entries)


async def dates_flow(ui: FlowSession, _: str) -> bool:
    """Ask for the dates of a scrub, then show the plan; return False if the question was left."""
    lines = partial(said_lines, _DATES)
    question = TextQuestion("SCRUB WHAT WAS WRITTEN FROM … TO", lines, EXAMPLE)

    def _read(answer: str) -> ScrubDates:
        return read_dates(answer, datetime.fromtimestamp(ui.backend.clock(), UTC))

    while (dates := await ui.ask(question, _read)) is not None:
        if await ui.confirm(partial(plan_scrub_dates, dates=dates)):
            return True
    return False


async def window_flow(ui: FlowSession, _: str) -> bool:
    """Ask for the hours of a scrub, then show the plan; return False if the question was left."""
    guid = ui.frame.guid if ui.frame else None
    now = next((window.hours for window in ui.windows if window.guid == guid), "")
    said = Span(f"Set now: {now}" if now else "No hours are set now.", "bold")
    lines = partial(said_lines, (said, *_HOURS))
    question = TextQuestion("SCRUB ONLY IN THESE HOURS", lines, "for example 22:00-06:00")

    def _read(answer: str) -> str:
        return "" if answer == "off" else read_hours(answer)

    while (hours := await ui.ask(question, _read)) is not None:
        plan = partial(plan_window, hours=hours)
        if not hours:
            try:
                windows = await in_daemon_thread(ui.backend.windows.windows)
            except (OSError, ZconsoleError) as error:
                ui.show_error(error)
                continue
            plan = partial(plan_window_off, windows=windows)
        if await ui.confirm(plan):
            return True
    return False
