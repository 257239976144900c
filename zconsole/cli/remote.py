"""Opening the machines that ``--host`` names: console, ``watch``, ``status`` and ``export``."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

from zconsole.cli import event_loop, local
from zconsole.errors import ZconsoleError
from zconsole.monitor.fleet import Fleet, Member
from zconsole.monitor.frame import Frame
from zconsole.zfs.sources.live import LiveSource
from zconsole.zfs.sources.remote import RemoteSource, hosts_of, socket_directory


def fleet_of(words: str, pools: Sequence[str], interval: float, sockets: Path) -> Fleet:
    """A member for each host; with several, pools carry their host's name.

    Raises UsageError for what is no ssh destination.
    """
    hosts = hosts_of(words)
    return Fleet(
        [
            Member(
                host,
                RemoteSource(host, pools, interval, sockets),
                local.session(),
                prefix=len(hosts) > 1,
            )
            for host in hosts
        ]
    )


def sampled(args: argparse.Namespace, needed: bool = False) -> AsyncGenerator[list[Frame], None]:
    """Rounds of the pools of this machine, or of those that ``--host`` names.

    With ``needed`` the first round raises as this machine's does: NotFoundError for a pool that
    no host has, UnavailableError where no host shows any.
    """
    if args.host is not None:
        hosts_of(args.host)
        return rounds(args.host, args.pools, args.interval, needed)
    return event_loop.rounds(LiveSource(args.pools), local.session(), args.interval, local.signs())


async def rounds(
    words: str, pools: Sequence[str], interval: float, needed: bool
) -> AsyncGenerator[list[Frame], None]:
    """Frames of all machines, ``interval`` seconds from start to start."""
    loop = asyncio.get_running_loop()
    with socket_directory() as sockets:
        fleet = fleet_of(words, pools, interval, sockets)
        try:
            while True:
                due = loop.time() + interval
                frames = await fleet.frames()
                event_loop.complain(fleet.take_notes())
                if needed:
                    fleet.check()
                    needed = False
                yield list(frames)
                await asyncio.sleep(max(0.0, due - loop.time()))
        finally:
            await fleet.aclose()


async def once(
    words: str, pools: Sequence[str]
) -> tuple[tuple[Frame, ...], tuple[ZconsoleError, ...]]:
    """One frame a pool of all machines, and what is not to be had."""
    with socket_directory() as sockets:
        fleet = fleet_of(words, pools, 1.0, sockets)
        try:
            return await fleet.pools(), fleet.failures()
        finally:
            await fleet.aclose()
