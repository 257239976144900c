"""Fresh readings for a plan: a new sample of the pool, and facts about its machine.

The facts are read from zpool, /sys and the machine's devices.
"""

from __future__ import annotations

import asyncio
import dataclasses
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial

from zconsole.actions.plan import Facts, Situation, zpool
from zconsole.actions.target import key_of
from zconsole.diagnosis.device_errors.probes import smart_of
from zconsole.errors import UnavailableError
from zconsole.hardware.device import Device
from zconsole.pool.model import Pool
from zconsole.pool.redundancy import REPAIRS
from zconsole.system.async_process import CommandRunner
from zconsole.system.patient import begun
from zconsole.system.process import DeadlineError
from zconsole.timeline.feed import Feed
from zconsole.timeline.frame import Frame
from zconsole.tunables.parameters import Parameters

ANSWER = 10.0
"""Seconds zpool or zdb may take to answer a question."""

DISKS = 30.0
"""Seconds for reading the machine's disks.

It takes a few milliseconds unless the disks or the processors are busy.
"""

AT_ONCE = 32
"""Labels read at the same time.

The labels of a shelf that is gone then time out together, not one after another.
"""

DECIDING = (
    "zfs_resilver_defer_percent",
    "zfs_resilver_disable_defer",
    "zfs_rebuild_scrub_enabled",
)
"""Module parameters that decide what happens to a running resilver, or after a rebuild."""


class MachineFacts:
    """Reader of the facts about a pool's machine, fresh at each call."""

    def __init__(
        self,
        runner: CommandRunner,
        parameters: Parameters,
        find: Callable[[tuple[str, ...]], tuple[Device, ...]],
    ) -> None:
        """``find`` returns the machine's disks, and the files it is given (as ``devices`` does)."""
        self._runner = runner
        self._parameters = parameters
        self._find = find
        self._reading: Future[tuple[Device, ...]] | None = None
        """The latest read of the machine's disks; no other one starts while it hangs."""

    async def __call__(self, pool: Pool, suspended: bool, paths: tuple[str, ...] = ()) -> Facts:
        """Return all facts that are available now; the others stay unknown, and nothing raises.

        ``paths`` are files or devices the operator named, in addition to the machine's disks. A
        suspended pool is asked nothing, since it would not answer; its devices' labels are read
        instead.
        """
        files = (v.path for v in pool.root.leaves() if v.kind == "file" and v.path)
        found = await self._devices(tuple(dict.fromkeys((*files, *paths))))
        properties = {} if suspended else await _properties(self._runner, pool.name)
        return Facts(
            version=self._parameters.version,
            features={
                name.removeprefix("feature@"): value
                for name, value in properties.items()
                if name.startswith("feature@")
            },
            properties=properties,
            parameters={
                name: value
                for name in DECIDING
                if (value := self._parameters.read(name)) is not None
            },
            devices=found,
            labels=await _labels(self._runner, pool) if suspended else {},
        )

    async def _devices(self, files: tuple[str, ...]) -> tuple[Device, ...]:
        """Read the machine's disks and these files; empty if /sys or a server does not answer."""
        try:
            async with asyncio.timeout(DISKS):
                while self._reading is not None and not self._reading.done():
                    # Wait for it, but do not use it: its result may be older than this question.
                    await asyncio.wait((asyncio.wrap_future(self._reading),))
                reading = self._reading = begun(partial(self._find, files))
                return await asyncio.wrap_future(reading)
        except TimeoutError:
            return ()

    async def guid(self, pool: str) -> str | None:
        """Return the GUID of the pool that has this name now; None without an answer in time."""
        argv = zpool("get", "-Hp", "-o", "value", operands=("guid", pool))
        return (await _ask(self._runner, argv) or "").strip() or None


async def with_smart(runner: CommandRunner, devices: tuple[Device, ...]) -> tuple[Device, ...]:
    """Return the devices with temperature and failure from smartctl, where available."""

    async def _warm(device: Device) -> Device:
        found = await smart_of(runner, device.path) if device.kind == "disk" else None
        if found is None:
            return device
        fails = f"fails by its own SMART: {found.words()}" if found.passed is False else ""
        failure = device.failure or fails
        return replace(device, temperature=found.temperature, failure=failure)

    return tuple(await asyncio.gather(*map(_warm, devices)))


def with_failures(facts: Facts, frames: Iterable[Frame]) -> Facts:
    """Mark the devices that failed in any of these pools and have left it since."""
    known = {
        serial: f"failed in {frame.pool}: {how}"
        for frame in frames
        for serial, how in frame.failed_disks.items()
    }

    def _marked(device: Device) -> Device:
        how, parts = known.get(device.serial), tuple(map(_marked, device.parts))
        return device if how is None else replace(device, failure=how, parts=parts)

    return replace(facts, devices=tuple(map(_marked, facts.devices))) if known else facts


async def mapping_memory(runner: CommandRunner, pool: str, vdev: str) -> int | None:
    """Return the bytes of memory for the table of a removed vdev's blocks, None if unknown.

    ``zpool remove -n`` only estimates; it changes nothing and needs no root.
    """
    said = await _ask(runner, zpool("remove", "-np", operands=(pool, vdev)))
    match = re.search(r" (\d+)$", (said or "").rstrip())
    return int(match[1]) if match else None


def label_of(text: str) -> str:
    """Return the pool GUID in ``zdb -l`` output; empty if no label was read."""
    match = re.search(r"^[ \t]*pool_guid: (\d+)$", text, re.MULTILINE)
    return match[1] if match else ""


async def _properties(runner: CommandRunner, pool: str) -> dict[str, str]:
    """Return all properties of a pool by name; empty without an answer."""
    argv = ("zpool", "get", "-Hp", "-o", "property,value", "all", pool)
    rows = (line.split("\t") for line in (await _ask(runner, argv) or "").splitlines())
    return {row[0]: row[1] for row in rows if len(row) == 2}


async def _labels(runner: CommandRunner, pool: Pool) -> dict[str, str]:
    """Return the pool GUID on each leaf's label by leaf key; empty when not readable.

    Leaves for which zdb gave no answer are left out: zdb is missing or timed out.
    """
    paths = {
        key_of(pool, leaf) or leaf.path: leaf.path
        for leaf in pool.root.leaves()
        # A pool resumes without its cache devices.
        if leaf.path and leaf.vclass != "cache"
    }
    turn = asyncio.Semaphore(AT_ONCE)

    async def _label(path: str) -> str | None:
        async with turn:
            said = await _ask(runner, ("zdb", "-l", path))
            return None if said is None else label_of(said)

    labels = await asyncio.gather(*map(_label, paths.values()))
    pairs = zip(paths, labels, strict=True)
    return {key: label for key, label in pairs if label is not None}


async def _ask(runner: CommandRunner, argv: tuple[str, ...]) -> str | None:
    """Return a command's output; None if it is missing or does not answer in time."""
    try:
        return (await runner.run(argv, ANSWER)).stdout
    except (OSError, DeadlineError):
        return None


def situation_of(frame: Frame, facts: Facts) -> Situation:
    """Return the situation for plans from a frame, or from the last good sample of a stuck pool.

    Raises UnavailableError if the pool was never sampled.
    """
    if frame.sample is None:
        raise UnavailableError(f"{frame.pool}: {frame.problem or 'not sampled yet'}")
    return Situation(
        frame.sample.pool,
        facts,
        frame.t,
        frame.suspended,
        frame.looked,
        frame.problem,
        next((v.left for v in frame.scans if v.scan.active and v.scan.function in REPAIRS), None),
    )


PATIENCE = 15.0
"""Seconds to wait for a sample younger than the question.

A read that hangs is abandoned after five seconds, and so is the next one.
"""


def is_answer(looked: float | None, problem: str | None, suspended: bool, since: float) -> bool:
    """Return whether a sample begun at ``looked`` shows the pool after ``since``.

    For a suspended pool, being suspended is all that a sample can tell.
    """
    return looked is not None and looked > since and (problem is None or suspended)


Frames = Callable[[], Awaitable[Sequence[Frame]]]
"""Returns the newest frame of every pool."""
FreshFrame = Callable[[str, float], Awaitable[Frame]]
"""Returns a pool's first frame sampled after a time, in seconds of the steady clock."""


class Refresher:
    """A reader that combines a fresh frame of the console's feed with fresh facts."""

    def __init__(self, fresh: FreshFrame, ask: MachineFacts, paths: tuple[str, ...] = ()) -> None:
        """``paths`` are devices the operator named, whose facts are read, too."""
        self._fresh = fresh
        self._ask = ask
        self._paths = paths

    async def __call__(self, pool: str, since: float) -> Situation:
        """Return the pool's situation from a sample begun after ``since``, if one comes in time.

        ``since`` is in seconds of the steady clock; ``looked`` and ``problem`` of the result tell
        whether it did. Raises UnavailableError if the pool is not imported.
        """
        now = situation_of(await self._fresh(pool, since), Facts())
        facts = await self._ask(now.pool, now.suspended, self._paths)
        return dataclasses.replace(now, facts=facts)

    async def guid(self, pool: str) -> str | None:
        """Return the GUID of the pool that has this name now; None without an answer in time."""
        return await self._ask.guid(pool)


class RoundsOnDemand:
    """The frames of a feed, sampled on demand."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed

    async def frames(self) -> Sequence[Frame]:
        """Sample all pools now. Raises UnavailableError without ZFS."""
        update = await self._feed.sample()
        return update.frames if update is not None else ()

    async def fresh(self, pool: str, since: float) -> Frame:
        """Return a frame of the pool sampled after ``since``, or the newest one after a timeout.

        Raises UnavailableError when the pool is not imported.
        """
        frame: Frame | None = None
        loop = asyncio.get_running_loop()
        until = loop.time() + PATIENCE
        while loop.time() < until:
            found = await self.frames()
            frame = next((f for f in found if f.pool == pool and not f.absent), None)
            if frame is None:
                break
            if is_answer(frame.looked, frame.problem, frame.suspended, since):
                break
            await asyncio.sleep(0.2)
        if frame is None:
            raise UnavailableError(f"{pool} is no longer imported")
        return frame
