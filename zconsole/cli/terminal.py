"""Opening the console on a terminal, with any feed."""

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
    """Return whether a console can be drawn: all standard streams are a TTY that is not dumb.

    Textual draws on stderr, so that must be a TTY, too.
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
    """Run the console on a feed until the operator quits; return its exit code.

    It is read-only without ``make_backend``, and if the configuration has a ``fault``. Without
    ``swap`` it offers no guided disk swap; without ``saves`` it never changes the configuration.
    ``host`` is the machine's name in the header, None for this one.
    """
    # lazy: many callers of this module only call has_terminal()
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
