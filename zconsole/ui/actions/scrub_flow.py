"""What a scrub of a part needs to be asked first."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

from zconsole.actions.scrub import EXAMPLE, plan_scrub_dates, read_dates
from zconsole.actions.scrub_window import plan_window, plan_window_off, read_hours
from zconsole.errors import ZconsoleError
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.ui.actions.asking import Planner, confirm
from zconsole.ui.actions.context import FlowContext
from zconsole.ui.actions.plan_lines import said_lines
from zconsole.ui.dialogs.screens import AskScreen
from zconsole.ui.widgets.draw import Span

_ASKED = (
    Span("Blocks written in this time are read, in the time zone of this machine.", "dim"),
    Span("The first or the last date may be left out: 2026-11-01, to 2026-11-20", "dim"),
)


async def dates_flow(context: FlowContext, key: str) -> bool:
    """Ask for the dates, again where they are none, then show the plan; False when left."""
    del key  # it is about the whole pool
    lines, typed = partial(said_lines, _ASKED, context.look), ""
    while True:
        screen = AskScreen("SCRUB WHAT WAS WRITTEN FROM … TO", lines, EXAMPLE, typed)
        answer = await context.app.push_screen_wait(screen)
        if answer is None:
            return False
        typed = answer
        try:
            dates = read_dates(answer, datetime.fromtimestamp(context.backend.clock(), UTC))
        except ZconsoleError as error:
            context.complain(error)
            continue
        if await confirm(context, [partial(plan_scrub_dates, dates=dates)]):
            return True


_HOURS = (
    Span("The scrub runs between these times of the day, and is paused outside them.", "dim"),
    Span('Its progress is kept. In the time zone of this machine; "off" drops the hours.', "dim"),
)


async def window_flow(context: FlowContext, key: str) -> bool:
    """Ask for the hours, again where they are none, then show the plan; False when left."""
    del key
    frame = context.frame
    hours = next((w.hours for w in context.windows if frame and w.guid == frame.guid), "")
    now = Span(f"Set now: {hours}" if hours else "No hours are set now.", "bold")
    lines, typed = partial(said_lines, (now, *_HOURS), context.look), ""
    while True:
        screen = AskScreen("SCRUB ONLY IN THESE HOURS", lines, "for example 22:00-06:00", typed)
        answer = await context.app.push_screen_wait(screen)
        if answer is None:
            return False
        typed = answer
        try:
            planner = await _of_hours(context, answer)
        except (OSError, ZconsoleError) as error:
            context.complain(error)
            continue
        if await confirm(context, [planner]):
            return True


async def _of_hours(context: FlowContext, answer: str) -> Planner:
    """What plans it. Raises ZconsoleError for no hours, OSError."""
    if answer != "off":
        return partial(plan_window, hours=read_hours(answer))
    windows = await in_daemon_thread(context.backend.windows.windows)
    return partial(plan_window_off, windows=windows)
