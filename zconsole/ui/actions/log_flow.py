"""Log of the commands that were run, with result and time, newest first; from the audit log."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from zconsole.errors import ZconsoleError
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.ui.actions.session import FlowSession
from zconsole.ui.dialogs.screens import Offers, PickList, PickScreen
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.themed_app import FLOW
from zconsole.ui.widgets.draw import Line, Lines, Span, fit

AUTOPILOT = "autopilot"
"""The user shown for tunables set to hold a latency, and the first word of its entries."""


@dataclass(frozen=True, slots=True)
class LoggedCommand:
    """A command that was run, or a tunable that was set."""

    t: float
    """Epoch seconds of its end, or of its start if no end was logged."""
    command: str
    ok: bool | None
    """Whether it succeeded; None while unknown."""
    result: str
    user: str = ""
    """The user who ran it; with sudo, the original user."""


def logged_commands(records: Iterable[Mapping[str, Any]]) -> tuple[LoggedCommand, ...]:
    """Return commands, tunables and jobs, newest first; unfinished ones have no result yet."""
    found: list[LoggedCommand] = []
    open_at: dict[str, int] = {}
    for record in records:
        command = _command(record)
        event = record.get("event")
        if not command or event not in ("begun", "ended"):
            continue
        if event == "ended" and (at := open_at.pop(command, None)) is not None:
            del found[at]
            # The entries behind the deleted one have moved up.
            open_at = {each: n - (n > at) for each, n in open_at.items()}
        elif event == "begun":
            open_at[command] = len(found)
        found.append(_logged(record, command, ended=event == "ended"))
    return tuple(reversed(found))


def _logged(record: Mapping[str, Any], command: str, *, ended: bool) -> LoggedCommand:
    ok = record.get("ok") is True if ended else None
    if record.get("kind") == "autopilot":  # each record of an autopilot is an entry of its own
        ok = not str(record.get("result", "")).startswith("failed")
        return LoggedCommand(float(record["t"]), command, ok, AUTOPILOT)
    result = str(record.get("result", "")) if ended else "no result yet"
    who = record.get("who")
    who = who if isinstance(who, Mapping) else {}
    user = str(who.get("sudo_user") or who.get("user") or "")
    if command.startswith(AUTOPILOT):
        user = AUTOPILOT
    return LoggedCommand(float(record["t"]), command, ok, result, user)


def _command(record: Mapping[str, Any]) -> str:
    """Return the command quoted for a shell; for tunables, the command that would set them."""
    kind, argv, values = record.get("kind"), record.get("argv"), record.get("values")
    if kind == AUTOPILOT:
        if record.get("event") == "begun":
            return f"{AUTOPILOT} started: target {record.get('target', 'unknown')}"
        return f"{AUTOPILOT} ended: {record.get('result', '')}"
    if kind == "tunable" and isinstance(values, list):
        pairs = (v for v in values if isinstance(v, Mapping))
        pairs_text = " ".join(f"{v.get('name')}={v.get('new')}" for v in pairs)
        steered = str(record.get("action", "")).startswith("hold-latency")
        return f"{AUTOPILOT if steered else 'zconsole tunables'} set {pairs_text}"
    if kind == "job" and (order := _order(record)):
        return order
    if kind in ("command", "job") and isinstance(argv, list):
        words = [str(word) for word in argv]
        if kind == "job":  # a console starts it as a python module
            words[:1] = ["zconsole"]
        return shlex.join(words)
    return ""


def _order(record: Mapping[str, Any]) -> str:
    """Return the command given to a running job; empty for the record of its own run."""
    action, job = record.get("action"), record.get("job")
    if not isinstance(job, str):
        return ""
    if action in ("pause", "stop", "resume"):
        return f"zconsole rebalance {action} {shlex.quote(job)}"
    return f"limits of job {job} changed" if action == "limits" else ""


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
        ui.app.notify("no command was run from a console yet", timeout=4, about=FLOW)
        return
    await ui.show(LogScreen(found, ui.backend.clock()))


class LogScreen(PickScreen, groups=()):
    """List of commands, with the one at the cursor in full below it."""

    def __init__(self, found: Sequence[LoggedCommand], now: float) -> None:
        self._found = found
        lines, about = partial(log_lines, found, now), partial(log_about, found)
        super().__init__(PickList("COMMANDS RUN, newest first", lines, about=about))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable Enter: the whole command is below the list already."""
        return action != "open" and super().check_action(action, parameters)

    def copies(self) -> Offers:
        """Return the command at the cursor."""
        return (("command", self._found[self.view.cursor].command),)


def log_lines(found: Sequence[LoggedCommand], now: float, look: DisplayFormat, width: int) -> Lines:
    """Return one line per command: when it ended, its result, and the command."""
    lines: list[Line] = []
    for each in found:
        word, role = _word(each)
        when = Span(f" {fit(look.when(each.t, now), _WHEN)} ", "dim")
        lines.append((when, Span(fit(word, _RESULT), role), Span(f" {look.text(each.command)}")))
    return tuple(look.crop(line, width) for line in lines)


def log_about(found: Sequence[LoggedCommand], index: int, look: DisplayFormat, width: int) -> Lines:
    """Return the whole command and its result, wrapped to the width."""
    each = found[index]
    by = f", by {each.user}" if each.user else ""
    return (
        *look.wrapped(f"$ {each.command}", width, "bold"),
        *look.wrapped(f"{each.result}{by}", width, _word(each)[1]),
    )


def _word(each: LoggedCommand) -> tuple[str, str]:
    if each.ok is None:
        return "begun", "notice"
    return ("done", "") if each.ok else ("failed", "error")
