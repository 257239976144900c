"""Feeds of the pools to sample: this machine's, or those of the machines in ``--host``."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from zconsole.cli import local
from zconsole.cli.config import scrub_overdue_after
from zconsole.diagnosis.device_errors.probes import signs_of
from zconsole.errors import ZconsoleError
from zconsole.hardware.located_source import LocatedSource
from zconsole.system.async_process import ProcessRunner
from zconsole.timeline.alerts.alerting import Alerting, hook_found
from zconsole.timeline.alerts.rules import AlertRules
from zconsole.timeline.devices import DeviceProber, machine_details, machine_lights
from zconsole.timeline.feed import Feed, SessionFeed
from zconsole.timeline.fleet import Fleet
from zconsole.timeline.frame import Frame
from zconsole.timeline.session import Session
from zconsole.zfs.sources.live import LiveSource
from zconsole.zfs.sources.remote import RemoteSource, hosts_of, socket_directory

DECODING = 2.0
"""Seconds of CPU time for decoding an answer of another machine, which may be malicious.

An answer with a thousand devices takes a tenth of this.
"""


@contextlib.contextmanager
def opened(
    args: argparse.Namespace,
    needed: bool = False,
    at_once: bool = False,
    alerts: bool = False,
) -> Iterator[Feed]:
    """Give the feed of a command for the time of a ``with`` block; the caller closes the feed.

    With ``needed`` the first round raises as it does without ``--host``: NotFoundError for a pool
    that no host has, UnavailableError if no host shows any. With ``at_once`` the first round does
    not wait for every host, but shows what has come by then. Raises UsageError for an invalid ssh
    destination, and with ``alerts`` UsageError or NotFoundError for a hook that is not a command.
    """
    session_of = partial(
        local.session,
        scrub_overdue_after=scrub_overdue_after(args),
        goes_on=getattr(args, "count", None) != 1,
    )
    with contextlib.ExitStack() as stack:
        if args.host is None:
            live = LiveSource(args.pools)
            prober = DeviceProber(partial(signs_of, ProcessRunner()))
            machine = machine_details, prober, machine_lights, live.zpool_outputs
            feed: Feed = SessionFeed(LocatedSource(live), session_of(), args.interval, *machine)
        else:
            fleet = _fleet(args.host, args.pools, session_of, args.interval, needed, at_once)
            feed = stack.enter_context(fleet)
        if alerts:
            rules = AlertRules(args.stalled_after, args.slip, args.free_floor)
            hook = () if args.hook is None else hook_found(args.hook)
            sent = local.sent_alerts(hook, args.host, args.pools) if hook else None
            feed.alerts = Alerting(rules, ProcessRunner(), hook, args.bell, args.notify, sent)
        yield feed


async def once(
    words: str, pools: Sequence[str], scrub_overdue_after: float
) -> tuple[tuple[Frame, ...], tuple[ZconsoleError, ...]]:
    """Return a frame for each pool of all machines, and the errors of those that failed.

    ``words`` are the machines as in ``--host``. ``scrub_overdue_after``: seconds.
    """
    session_of = partial(local.session, scrub_overdue_after=scrub_overdue_after)
    with _fleet(words, pools, session_of, 1.0) as fleet:
        try:
            return await fleet.pools(), fleet.failures()
        finally:
            await fleet.aclose()


@contextlib.contextmanager
def _fleet(
    words: str,
    pools: Sequence[str],
    session: Callable[..., Session],
    interval: float,
    needed: bool = False,
    at_once: bool = False,
) -> Iterator[Fleet]:
    hosts = hosts_of(words)
    with socket_directory() as sockets:
        sources = [RemoteSource(host, pools, interval, sockets) for host in hosts]
        yield Fleet(sources, partial(session, most_cpu=DECODING), interval, needed, at_once)
