"""``zconsole [POOL…]``: the console, or a plain status report if there is no terminal."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from zconsole.cli import local, status
from zconsole.cli.config import fault_of
from zconsole.cli.output import say
from zconsole.cli.remote import opened
from zconsole.cli.terminal import has_terminal, open_console
from zconsole.zfs.sources.remote import hosts_of

if TYPE_CHECKING:
    from zconsole.actions.backend import ActionBackend
    from zconsole.swap.store import SwapBackend


def run(args: argparse.Namespace) -> int:
    """Open the console on live pools, or print a status report; return the exit code."""
    if not has_terminal():
        args.saved, args.json, args.exit_status = None, False, False
        return status.run(args)
    fault = fault_of(args)
    read_only = args.read_only or bool(fault)
    make_backend = partial(_backend, read_only) if args.host is None else None
    hosts = hosts_of(args.host) if args.host is not None else (None,)
    alerts = args.hook is not None or args.bell or args.notify
    with opened(args, at_once=True, alerts=alerts) as feed:
        code = open_console(
            args,
            feed,
            None,
            # The header names the machine; with several, the name of each pool has its host.
            host=hosts[0] if len(hosts) == 1 else "",
            make_backend=make_backend,
            past=local.past,
            fault=fault,
            swap=_swap,
        )
    for note in dict.fromkeys(feed.alerts.take_notes() if feed.alerts else ()):
        say(note)
    return code


def _backend(read_only: bool) -> ActionBackend:
    from zconsole.actions.backend import live_backend  # lazy: keeps the first paint fast

    return live_backend(read_only)


def _swap() -> SwapBackend:
    from zconsole.swap.store import live_swap  # lazy: wanted when a disk has failed

    return live_swap()
