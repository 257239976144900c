"""How alerts are sent: the terminal's bell and notifications, and a command of their own."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict

from zconsole.errors import UsageError
from zconsole.monitor.alerts.rules import Alert
from zconsole.system.async_process import ProcessRunner
from zconsole.system.printable import clean
from zconsole.system.process import DeadlineError

HOOK_DEADLINE = 60.0
"""Seconds a hook may take before it is ended. What is to outlive it must let go of its output."""

BELL = "\a"


def notification(alert: Alert) -> str:
    """OSC 9 and OSC 777, two dialects of one desktop notification, with text made harmless.

    A terminal that knows neither ignores both (iTerm2 and ConEmu for 9, rxvt for 777).
    """
    body = clean(f"{alert.pool}: {alert.text}").replace(";", ",")
    return f"\x1b]9;zconsole {body}\x1b\\\x1b]777;notify;zconsole;{body}\x1b\\"


def hook_argv(command: str) -> tuple[str, ...]:
    """The words of a hook command, split as a shell splits them but never given to one.

    Raises UsageError for an empty command or an unclosed quote.
    """
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise UsageError(f"--hook: {error}") from None
    if not words or not words[0]:
        raise UsageError("--hook needs a command")
    return words


def hook_input(alert: Alert) -> str:
    """What a hook reads on its standard input: the alert as one JSON line."""
    return json.dumps({"version": 1, **asdict(alert)}) + "\n"


async def run_hook(runner: ProcessRunner, argv: Sequence[str], alert: Alert) -> str | None:
    """Run the hook for one alert; returns in words what went wrong with it, or None."""
    try:
        done = await runner.tell(argv, hook_input(alert), HOOK_DEADLINE)
    except DeadlineError:
        return f"the hook {argv[0]} did not end in {HOOK_DEADLINE:g} s"
    except OSError as error:
        return f"the hook {argv[0]} cannot be run: {error.strerror or error}"
    if not done.returncode:
        return None
    last = done.stderr.strip().rpartition("\n")[2]
    return f"the hook {argv[0]} exited {done.returncode}{f': {last}' if last else ''}"
