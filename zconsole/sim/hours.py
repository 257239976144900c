"""A simulated scrub that is kept to some hours of the day."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from datetime import UTC, datetime

from zconsole.sim import commands
from zconsole.sim.state import PoolState
from zconsole.system.day_hours import day_hours


def keep_hours(pool: PoolState) -> None:
    """Start, pause or resume the scrub, as the hours want it now; forget them at its end."""
    hours = pool.hours
    if hours is None:
        return
    local = datetime.fromtimestamp(pool.now, UTC).astimezone()
    inside = day_hours(hours.hours).includes(local)
    scan = pool.scan if pool.scan is not None and pool.scan.active else None
    with contextlib.suppress(commands.CommandError):  # a resilver is in the way
        if scan is None and hours.begun:
            pool.hours = None
        elif scan is None and inside:
            commands.scrub(pool, "start")
            pool.hours = replace(hours, begun=True)
        elif scan is not None and not scan.paused_since and not inside:
            commands.scrub(pool, "pause")
            pool.hours = replace(hours, begun=True, paused=True)
        elif scan is not None and scan.paused_since and inside and hours.paused:
            commands.scrub(pool, "start")
            pool.hours = replace(hours, paused=False)
