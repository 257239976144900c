"""Opening the console on a terminal, over any feed."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from datetime import tzinfo
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zconsole.actions.backend import ActionBackend
    from zconsole.swap.store import SwapBackend
    from zconsole.timeline.feed import Feed
    from zconsole.ui.console_options import Past


def has_terminal() -> bool:
    """Whether a console can be drawn here: on a TTY that is not dumb.

    Textual paints on stderr: redirected to a file, the console would be invisible.
    """
    ttys = all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))
    return ttys and os.environ.get("TERM") != "dumb"


def open_console(
    args: argparse.Namespace,
    feed: Feed,
    zone: tzinfo | None,
    host: str | None,
    make_backend: Callable[[], ActionBackend] | None = None,
    past: Past | None = None,
    fault: str = "",
    swap: Callable[[], SwapBackend] | None = None,
    saves: bool = True,
) -> int:
    """Run the console over a feed until the operator quits; returns its exit code.

    Without ``make_backend`` it is read-only, and with a ``fault`` of the configuration; without
    ``swap`` it leads through no disk swap; without ``saves`` it leaves the configuration as it is.
    """
    # lazy: most callers of this module only ask for a terminal, and find none
    from zconsole.ui.console_options import ConsoleOptions
    from zconsole.ui.start import run_console

    options = ConsoleOptions(
        host=os.uname().nodename if host is None else host,
        pools=tuple(getattr(args, "pools", ())),
        theme=args.theme,
        config=args.config,
        saves=saves,
        ascii=args.ascii,
        mouse=not args.no_mouse,
        read_only=args.read_only,
        fault=fault,
        zone=zone,
        past=past,
        swap=swap,
        swap_at=getattr(args, "swap_at", None),
    )
    return run_console(feed, options, make_backend)
