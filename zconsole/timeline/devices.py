"""Data about devices beyond the samples: probes of devices in trouble, details on request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from zconsole.diagnosis.device_errors.faults import (
    DeviceFault,
    ProbeResults,
    with_common_causes,
)
from zconsole.diagnosis.device_errors.probes import signs_of
from zconsole.hardware.location import device_facts, lights
from zconsole.pool.chassis import Lights
from zconsole.system.async_process import ProcessRunner
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.system.host import is_due, is_root
from zconsole.system.patient import NotAskedError
from zconsole.timeline.frame import Frame, Pairs
from zconsole.units import size

Ask = Callable[[str, float], Awaitable[ProbeResults]]
"""Function that probes a leaf's path, with messages since an epoch second."""

AGAIN = 300.0
"""Seconds a result is kept while nothing new happens to the device."""
SOONEST = 60.0
"""Seconds a result is kept at least, even if something new happens."""
HOUR = 3600.0
AT_ONCE = 4
"""Devices probed at the same time: a failing shelf must not start forty smartctl processes."""


class DeviceProber:
    """Probes devices in trouble; results appear in a later round than they were requested in."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._known: dict[str, ProbeResults] = {}
        self._asked: dict[str, float] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def look(self, frame: Frame) -> Frame:
        """Return the frame with its troubles judged by all results so far; never waits."""
        if not frame.troubles:
            return frame
        paths = {row.key: row.vdev.path for row in frame.rows}
        found = []
        for trouble in frame.troubles:
            path = paths.get(trouble.key)
            if path is not None and not frame.problem:
                self._begin(path, trouble, frame.t)
            signs = self._known.get(path or "")
            found.append(trouble._replace(signs=signs) if signs else trouble)
        return replace(frame, troubles=with_common_causes(found))

    async def aclose(self) -> None:
        """Cancel running probes."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _begin(self, path: str, trouble: DeviceFault, now: float) -> None:
        asked = self._asked.get(path, float("-inf"))
        wait = SOONEST if trouble.last > asked else AGAIN
        if not is_due(now, asked, wait) or len(self._tasks) >= AT_ONCE:
            return
        self._asked[path] = now
        task = asyncio.create_task(self._take(path, now - HOUR - (trouble.returned_ago or 0.0)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _take(self, path: str, since: float) -> None:
        signs = await self._ask(path, since)
        old = self._known.get(path)
        # The first SMART values of this run, to compare later ones with.
        before = old.before if old is not None else signs.smart
        smart = signs.smart or (old.smart if old is not None else None)
        self._known[path] = ProbeResults(smart, signs.kernel, before or signs.smart)


DEADLINE = 2.0
"""Seconds; /sys and udev's database answer at once or not at all."""
LIGHTS_DEADLINE = 10.0
"""Seconds; enclosures answer slot by slot."""
LABELS = {
    "device": "device",
    "disks": "on",
    "model": "model",
    "serial": "serial",
    "size": "capacity",
    "rotational": "kind",
    "logical_sector": "logical",
    "physical_sector": "physical",
}
"""Labels of the facts, short enough for their column."""


async def machine_details(path: str) -> Pairs:
    """Return facts about the device at ``path`` from /sys and udev, SMART and the kernel's log.

    Sources that take too long are left out.
    """
    try:
        async with asyncio.timeout(DEADLINE):
            facts = described(await in_daemon_thread(device_facts, path))
    except (TimeoutError, OSError, NotAskedError):
        facts = ()
    if not is_root() or not path.startswith("/"):
        return facts
    # SMART and the kernel's log need root.
    found = await signs_of(ProcessRunner(), path, 0.0)
    rows = list(facts)
    if (smart := found.smart) is not None:
        heat = "" if smart.temperature is None else f"{smart.temperature:.0f}C"
        rows += [row for row in (("temp", heat), ("SMART", smart.words())) if row[1]]
    return (*rows, *(("kernel", line) for line in found.kernel))


async def machine_lights() -> Lights:
    """Return the lights of this machine's slots; empty if the enclosures take too long."""
    try:
        async with asyncio.timeout(LIGHTS_DEADLINE):
            return await in_daemon_thread(lights)
    except (TimeoutError, OSError, NotAskedError):
        return {}


def described(facts: Mapping[str, str]) -> Pairs:
    """Return facts from ``device_facts`` as labels and words."""
    return tuple((LABELS[key], _worded(key, facts[key])) for key in LABELS if key in facts)


def _worded(key: str, value: str) -> str:
    if key == "size" and value.isdigit():
        return size(int(value))
    if key == "rotational":
        return "rotating disk" if "1" in value else "solid state"
    return f"sectors of {value} bytes" if key.endswith("sector") else value
