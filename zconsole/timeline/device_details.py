"""Facts of one device beyond its samples: serial, model, sector sizes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from zconsole.diagnosis.device_errors.faults import SmartCounts
from zconsole.diagnosis.device_errors.probes import signs_of
from zconsole.hardware.enclosures import lights
from zconsole.pool.chassis import Lights
from zconsole.system.async_process import ProcessRunner
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.system.host import is_root
from zconsole.timeline.feed import Pairs
from zconsole.units import size
from zconsole.zfs.sources.blockdev import device_facts

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
"""Short enough for their column."""


async def machine_details(path: str) -> Pairs:
    """Facts from /sys and udev about the device at ``path``; empty if they take too long."""
    try:
        async with asyncio.timeout(DEADLINE):
            facts = described(await in_daemon_thread(device_facts, path))
    except (TimeoutError, OSError):
        facts = ()
    return (*facts, *await _signs(path))


async def machine_lights() -> Lights:
    """The lights of this machine's slots; empty if the enclosures take too long."""
    try:
        async with asyncio.timeout(LIGHTS_DEADLINE):
            return await in_daemon_thread(lights)
    except (TimeoutError, OSError):
        return {}


async def _signs(path: str) -> Pairs:
    """Facts from SMART and the kernel's log; needs root."""
    if not is_root() or not path.startswith("/"):
        return ()
    found = await signs_of(ProcessRunner(), path, 0.0)
    return (*_smart(found.smart), *(("kernel", line) for line in found.kernel))


def _smart(found: SmartCounts | None) -> Pairs:
    if found is None:
        return ()
    heat = () if found.temperature is None else (("temp", f"{found.temperature:.0f}C"),)
    return (*heat, *((("SMART", found.words()),) if found.words() else ()))


def described(facts: Mapping[str, str]) -> Pairs:
    """Facts as ``device_facts`` gives them, in words."""
    return tuple((LABELS[key], _worded(key, facts[key])) for key in LABELS if key in facts)


def _worded(key: str, value: str) -> str:
    if key == "size" and value.isdigit():
        return size(int(value))
    if key == "rotational":
        return "rotating disk" if "1" in value else "solid state"
    return f"sectors of {value} bytes" if key.endswith("sector") else value
