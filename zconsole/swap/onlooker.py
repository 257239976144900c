"""Seeing all that a swap is judged by: the pools of a round of frames, and the machine's disks."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from zconsole.actions.facts import Asker
from zconsole.actions.plan import Facts, Situation
from zconsole.actions.refresh import situation_of
from zconsole.diagnosis.device_errors.faults import SmartCounts
from zconsole.errors import ZconsoleError
from zconsole.hardware.device import Device
from zconsole.swap.disk import SwapDisk, device_of
from zconsole.swap.view import MachineView
from zconsole.timeline.frame import Frame

AGE = 120.0
"""Seconds for which what a disk said of itself is not asked again."""

LOOKING = 60.0
"""Seconds for one look in all: each question has a deadline, but several may hang in turn."""

SmartOf = Callable[[str], Awaitable[SmartCounts | None]]
"""What the disk at a device node says of itself; None where it says nothing in time."""


class Onlooker:
    """Makes a ``MachineView`` of frames; asks the machine for the rest."""

    def __init__(
        self, ask: Asker, smart_of: SmartOf, boot: str = "", patience: float = LOOKING
    ) -> None:
        """``boot`` is the id of this boot; ``patience``: seconds that one look may take in all."""
        self._ask = ask
        self._patience = patience
        self._smart_of = smart_of
        self._boot = boot
        self._smart: dict[tuple[str, str], tuple[float, SmartCounts | None]] = {}
        """By path and serial number: a path may name a bay, with another disk in it by now."""

    async def look(
        self,
        frames: Sequence[Frame],
        pool: Callable[[Situation], bool],
        disk: SwapDisk | None = None,
    ) -> MachineView | None:
        """What there is to see now; None while no frame has the pool.

        ``pool`` tells the pool from others; the SMART counts of ``disk``, and of disks that hold
        nothing, are asked for. Raises ZconsoleError where the machine doesn't answer in time.
        """
        try:
            async with asyncio.timeout(self._patience):
                return await self._look(frames, pool, disk)
        except TimeoutError:
            what = f"zpool or the machine's disks did not answer within {self._patience:g} s"
            raise ZconsoleError(f"{what}; what is shown may be old. Looking again") from None

    async def _look(
        self,
        frames: Sequence[Frame],
        pool: Callable[[Situation], bool],
        disk: SwapDisk | None,
    ) -> MachineView | None:
        bare = [(frame, s) for frame in frames if (s := _situation(frame)) is not None]
        own = next(((frame, s) for frame, s in bare if pool(s)), None)
        if own is None:
            return None
        frame, mine = own
        facts = await self._ask(mine.pool, mine.suspended)
        rest = [s for _, s in bare if s is not mine]
        others = await asyncio.gather(*(self._other(s, facts) for s in rest))
        return MachineView(
            dataclasses.replace(mine, facts=facts),
            tuple(others),
            frame.troubles,
            await self._asked(_of_interest(facts.devices, disk), frame.t),
            boot=self._boot,
        )

    async def _other(self, s: Situation, facts: Facts) -> Situation:
        """Another pool, with the same disks; its labels are read only while it is suspended."""
        if s.suspended:
            return dataclasses.replace(s, facts=await self._ask(s.pool, suspended=True))
        shared = Facts(version=facts.version, parameters=facts.parameters, devices=facts.devices)
        return dataclasses.replace(s, facts=shared)

    async def _asked(self, devices: Iterable[Device], now: float) -> Mapping[str, SmartCounts]:
        """The counts of these disks by path, not older than ``AGE``."""
        wanted = {(device.path, device.serial): device for device in devices if device.node}
        due = [disk for disk in wanted if not self._is_fresh(disk, now)]
        found = await asyncio.gather(*(self._smart_of(wanted[disk].node) for disk in due))
        self._smart.update(zip(due, ((now, counts) for counts in found), strict=True))
        known = ((disk[0], self._smart[disk][1]) for disk in wanted)
        return {path: counts for path, counts in known if counts is not None}

    def _is_fresh(self, disk: tuple[str, str], now: float) -> bool:
        """Whether what a disk said last still counts; not after the clock was set back."""
        return disk in self._smart and 0.0 <= now - self._smart[disk][0] < AGE


def _situation(frame: Frame) -> Situation | None:
    try:
        return None if frame.absent else situation_of(frame, Facts())
    except ZconsoleError:
        return None


MOST_ASKED = 4
"""Disks that hold nothing and are asked for their SMART counts: more are not for one swap."""


def _of_interest(devices: Sequence[Device], disk: SwapDisk | None) -> tuple[Device, ...]:
    """The disk of the swap, and disks that could be new."""
    old = device_of(disk, devices) if disk is not None else None
    empty = [
        d for d in devices if d.kind == "disk" and d.contents.zfs_pool is None and not d.mounted
    ]
    return (*((old,) if old else ()), *(empty if len(empty) <= MOST_ASKED else ()))
