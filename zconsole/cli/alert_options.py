"""The vigil's options, and the vigil they ask for."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable
from typing import TYPE_CHECKING

from zconsole.errors import NotFoundError

if TYPE_CHECKING:
    from zconsole.monitor.alerts.dispatcher import AlertDispatcher

SLIP, FLOOR, STALLED = 0.25, 0.05, 600.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``watch`` and the console."""
    group = parser.add_argument_group(
        "vigil",
        # The console's help, with its table of commands, is printed as it stands here.
        "Told once each: finished and safe, finished but not restored, restarted,\n"
        "stalled, ETA slipped, new device error, no redundancy left, suspended, too\n"
        "little free.",
    )
    group.add_argument(
        "--hook", metavar="CMD", help="run CMD (no shell) for each alert, JSON on its stdin"
    )
    group.add_argument("--bell", action="store_true", help="ring the terminal's bell")
    group.add_argument(
        "--notify",
        action="store_true",
        help="desktop notification through the terminal (OSC 9, 777)",
    )
    group.add_argument(
        "--stalled-after", type=_seconds, default=STALLED, metavar="S",
        help="seconds without progress (default %(default)g, never before 60)",
    )  # fmt: skip
    group.add_argument(
        "--slip", type=_slip, default=SLIP, metavar="SHARE",
        help="share of the expected time by which the end may move (default %(default)g)",
    )  # fmt: skip
    group.add_argument(
        "--free-floor", type=_floor, default=FLOOR, metavar="SHARE",
        help="share of the pool to stay free (default %(default)g)",
    )  # fmt: skip


def _seconds(word: str) -> float:
    value = _number(word)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{word!r} is no number of seconds above 0")
    return value


def _slip(word: str) -> float:
    value = _share(word)
    if not 0 < value <= 10:
        raise argparse.ArgumentTypeError(f"{word!r} is no share above 0: 0.25 or 25%")
    return value


def _floor(word: str) -> float:
    value = _share(word)
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"{word!r} is no share of a pool: 0.05 or 5%")
    return value


def _share(word: str) -> float:
    return _number(word.removesuffix("%")) / (100 if word.endswith("%") else 1)


def _number(word: str) -> float:
    """NaN, which is in no range, for what is no number."""
    try:
        return float(word)
    except ValueError:
        return float("nan")


def wake_of(args: argparse.Namespace, complain: Callable[[str], None]) -> AlertDispatcher | None:
    """The vigil the options ask for; None when nobody wants to be woken.

    ``complain`` is told of hooks that fail. Raises UsageError or NotFoundError for a hook that is
    no command: whoever goes to sleep must not learn that from silence.
    """
    if not (args.hook is not None or args.bell or args.notify):
        return None
    from zconsole.monitor.alerts.channels import hook_argv
    from zconsole.monitor.alerts.dispatcher import AlertChannels, AlertDispatcher
    from zconsole.monitor.alerts.rules import AlertThresholds
    from zconsole.system.async_process import ProcessRunner

    rules = AlertThresholds(args.stalled_after, args.slip, args.free_floor)
    hook = () if args.hook is None else hook_argv(args.hook)
    if hook and shutil.which(hook[0]) is None:
        raise NotFoundError(f"--hook: there is no command {hook[0]!r}")
    return AlertDispatcher(
        rules, AlertChannels(hook, args.bell, args.notify), ProcessRunner(), complain
    )
