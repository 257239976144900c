"""The vigil's options, and the vigil they ask for."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zconsole.vigil.wake import Wake

SLIP, FLOOR, STALLED = 0.25, 0.05, 600.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``watch`` and the console."""
    group = parser.add_argument_group(
        "vigil",
        "Told once each: finished and safe, finished but not restored, restarted, stalled, ETA "
        "slipped, new device error, no redundancy left, suspended, too little free.",
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
        help="seconds without progress (default %(default)g)",
    )  # fmt: skip
    group.add_argument(
        "--slip", type=_share, default=SLIP, metavar="SHARE",
        help="share of the expected time by which the end may move (default %(default)g)",
    )  # fmt: skip
    group.add_argument(
        "--free-floor", type=_share, default=FLOOR, metavar="SHARE",
        help="share of the pool to stay free (default %(default)g)",
    )  # fmt: skip


def _seconds(word: str) -> float:
    value = float(word)
    if not 0 < value < float("inf"):
        raise ValueError(word)
    return value


def _share(word: str) -> float:
    value = float(word.removesuffix("%")) / (100 if word.endswith("%") else 1)
    if not 0 <= value <= 10:
        raise ValueError(word)
    return value


def wake_of(args: argparse.Namespace, complain: Callable[[str], None]) -> Wake | None:
    """The vigil the options ask for; None when nobody wants to be woken.

    ``complain`` is told of hooks that fail. Raises UsageError for a hook that is no command.
    """
    if not (args.hook is not None or args.bell or args.notify):
        return None
    from zconsole.sources.runner import ProcessRunner
    from zconsole.vigil.alerts import Rules
    from zconsole.vigil.notify import hook_argv
    from zconsole.vigil.wake import Wake, Ways

    rules = Rules(args.stalled_after, args.slip, args.free_floor)
    hook = () if args.hook is None else hook_argv(args.hook)
    return Wake(rules, Ways(hook, args.bell, args.notify), ProcessRunner(), complain)
