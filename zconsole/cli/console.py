"""``zconsole [POOL…]``: the console itself; a plain status report where there is no terminal."""

from __future__ import annotations

import argparse
import contextlib
import sys
from functools import partial
from typing import TYPE_CHECKING

from zconsole.cli import local, status
from zconsole.cli.alert_options import wake_of
from zconsole.cli.remote import fleet_of
from zconsole.cli.terminal import has_terminal, open_console
from zconsole.monitor.alerts.alerting_feed import AlertingFeed
from zconsole.monitor.device_details import machine_details
from zconsole.monitor.feed import Feed
from zconsole.monitor.fleet import FleetFeed
from zconsole.monitor.session_feed import SessionFeed
from zconsole.units import clean
from zconsole.zfs.sources.live import LiveSource
from zconsole.zfs.sources.remote import hosts_of, socket_directory

if TYPE_CHECKING:
    from zconsole.actions.backend import ActionBackend


def run(args: argparse.Namespace) -> int:
    """Open the console over live pools, or print a status report; returns the exit code."""
    if not has_terminal():
        args.saved, args.json, args.exit_status = None, False, False
        return status.run(args)
    return _live(args)


def _live(args: argparse.Namespace) -> int:
    complaints: list[str] = []
    wake = wake_of(args, complaints.append)
    with contextlib.ExitStack() as stack:
        feed = _feed(args, stack)
        if wake is not None:
            feed = AlertingFeed(feed, wake)
        make_backend = partial(_backend, args.read_only) if args.host is None else None
        code = open_console(
            args, feed, None, host=args.host, make_backend=make_backend, past=local.past
        )
    for complaint in dict.fromkeys(complaints):
        print(f"zconsole: {clean(complaint)}", file=sys.stderr)
    return code


def _backend(read_only: bool) -> ActionBackend:
    from zconsole.actions.backend import live_backend

    return live_backend(read_only)


def _feed(args: argparse.Namespace, stack: contextlib.ExitStack) -> Feed:
    """Of this machine's pools, or those of the hosts named, which are only watched."""
    if args.host is not None:
        hosts_of(args.host)
        sockets = stack.enter_context(socket_directory())
        fleet = fleet_of(args.host, args.pools, args.interval, sockets)
        return FleetFeed(fleet, args.interval)
    source = LiveSource(args.pools)
    return SessionFeed(source, local.session(), args.interval, machine_details, local.signs())
