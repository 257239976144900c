"""Log of the commands that were run, with result and time, newest first."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from zconsole.actions.command_log import LoggedCommand, logged_commands
from zconsole.errors import ZconsoleError
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.ui.actions.plan_lines import wrapped
from zconsole.ui.actions.session import FlowSession
from zconsole.ui.dialogs.screens import Offers, PickScreen
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.widgets.draw import Line, Span, fit

PATIENCE = 3.0
"""Seconds to wait for the log: the file may be on a pool that hangs."""
_WHEN, _RESULT = 15, 7


async def log_flow(ui: FlowSession, _: str) -> None:
    """Show the log. Raises ZconsoleError if it can't be read."""
    try:
        async with asyncio.timeout(PATIENCE):
            records = await in_daemon_thread(ui.backend.log.recent)
    except TimeoutError:
        raise ZconsoleError(f"the audit log did not answer within {PATIENCE:g}s") from None
    except OSError as error:
        raise ZconsoleError(f"the audit log cannot be read: {error.strerror}") from error
    found = logged_commands(records)
    if not found:
        ui.app.notify("no command was run from a console yet", timeout=4)
        return
    await ui.show(LogScreen(found, ui.look, ui.backend.clock()))


class LogScreen(PickScreen):
    """List of commands, with the one at the cursor in full below it."""

    groups = ()

    def __init__(self, found: Sequence[LoggedCommand], look: DisplayFormat, now: float) -> None:
        self._found = found
        super().__init__(
            "COMMANDS RUN, newest first",
            lambda width: log_lines(found, look, now, width),
            wide=True,
            about=lambda index, width: log_about(found[index], look, width),
        )

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable Enter: the whole command is below the list already."""
        return action != "open" and super().check_action(action, parameters)

    def copies(self) -> Offers:
        """Return the command at the cursor."""
        return (("command", self._found[self.view.cursor].command),)


def log_lines(
    found: Sequence[LoggedCommand], look: DisplayFormat, now: float, width: int
) -> tuple[Line, ...]:
    """Return one line per command: when it ended, its result, and the command."""
    return tuple(look.crop(_line(each, look, now), width) for each in found)


def _line(each: LoggedCommand, look: DisplayFormat, now: float) -> Line:
    word, role = _word(each)
    return (
        Span(f" {fit(look.when(each.t, now), _WHEN)} ", "dim"),
        Span(fit(word, _RESULT), role),
        Span(f" {look.text(each.command)}"),
    )


def log_about(each: LoggedCommand, look: DisplayFormat, width: int) -> tuple[Line, ...]:
    """Return the whole command and its result, wrapped to the width."""
    by = f", by {each.user}" if each.user else ""
    return (
        *wrapped(f"$ {each.command}", "bold", look, width, " "),
        *wrapped(f"{each.result}{by}", _word(each)[1], look, width, " "),
    )


def _word(each: LoggedCommand) -> tuple[str, str]:
    if each.ok is None:
        return "begun", "notice"
    return ("done", "") if each.ok else ("failed", "error")
