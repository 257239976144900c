"""Acting on the simulated pools: the same plans, with facts, kernel and zpool simulated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import PurePath
from typing import TYPE_CHECKING

from zconsole.actions.backend import ActionBackend
from zconsole.actions.plan import Facts, LightOrder
from zconsole.diagnosis.device_errors.faults import ProbeResults, SmartCounts
from zconsole.errors import NotFoundError, UsageError, ZconsoleError
from zconsole.hardware import light
from zconsole.hardware.device import Contents, Device
from zconsole.hardware.location import PARTITION
from zconsole.pool.chassis import LeafDisk, SlotKey
from zconsole.pool.model import Pool, Version, parse_version
from zconsole.pool.scrub_window import ScrubWindow
from zconsole.sim import commands, lifecycle
from zconsole.sim.backends.autopilot import OWNER, SimulatedAutopilots
from zconsole.sim.commands import CommandError
from zconsole.sim.disk import Leaf
from zconsole.sim.places import places
from zconsole.sim.simulation import keep_hours
from zconsole.sim.source import World, clock
from zconsole.sim.state import DISCARDING, PoolState
from zconsole.system.audit import MemoryLog
from zconsole.system.process import Completed
from zconsole.timeline.devices import described
from zconsole.timeline.frame import Pairs
from zconsole.tunables.control import Control
from zconsole.tunables.parameters import Parameters
from zconsole.tunables.store import TunableStore

if TYPE_CHECKING:
    from zconsole.rebalance.backend import RebalanceBackend

DEMO, GUARD = "demo", "guard"
"""Marks of the console and of its guards, in place of those of processes."""
COUNTING = 0.05
"""Seconds that a step of making a simulated plan takes."""
FEATURES = (
    "resilver_defer",
    "device_rebuild",
    "head_errlog",
    "raidz_expansion",
    "allocation_classes",
    "device_removal",
)
"""What a simulated pool from 0.8 on has enabled; a plan asks for the version besides."""


class SimulatedParameters(Parameters):
    """The module parameters of a simulated world."""

    def __init__(self, world: World) -> None:
        self._world = world

    @property
    def era(self) -> str:
        """See Parameters.era."""
        return f"demo:{self._world.scenario.name}"

    @property
    def version(self) -> Version:
        """See Parameters.version."""
        return parse_version(self._world.pools[0].version)

    def path(self, name: str) -> str:
        """See Parameters.path."""
        return f"demo:{name}"

    def read(self, name: str) -> int | None:
        """See Parameters.read."""
        return self._world.pools[0].tunables.get(name)

    def write(self, name: str, value: int) -> None:
        """See Parameters.write."""
        if self.read(name) is None:
            raise ZconsoleError(f"{name}={value}: refused: No such file or directory")
        for pool in self._world.pools:
            pool.tunables[name] = value


class SimulatedFacts:
    """The facts about a simulated machine, which has only a shelf of spare disks."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def __call__(self, pool: Pool, suspended: bool, paths: tuple[str, ...] = ()) -> Facts:
        """See Asker."""
        del paths  # a simulated machine has no disks but its own
        state = next((p for p in self._world.pools if p.name == pool.name), self._world.pools[0])
        enabled = "disabled" if state.one_stage else "enabled"
        return Facts(
            version=parse_version(state.version),
            features=dict.fromkeys(FEATURES, enabled),
            properties={
                "autoexpand": "on" if state.autoexpand else "off",
                "guid": str(state.guid),
                "last_scrubbed_txg": str(state.scrubbed_txg),
            },
            parameters=dict(state.tunables),
            devices=_devices(self._world.pools, state),
            labels=_labels(state) if suspended else {},
        )

    async def guid(self, pool: str) -> str | None:
        """See Asker.guid."""
        return next((str(p.guid) for p in self._world.pools if p.name == pool), None)


def simulated_backend(world: World) -> ActionBackend:
    """The backend of simulated pools: its commands, tunables and log stay in this process."""
    parameters, log, store = SimulatedParameters(world), MemoryLog(), TunableStore(None, OWNER)
    control = Control(parameters, store, log, DEMO, _lives)
    pilots = Control(parameters, store, log, OWNER, _lives)
    guards = Control(parameters, store, log, GUARD, _lives)

    async def _freeze(name: str, value: int) -> None:
        guards.set({name: value}, world.pools[0].now, guard=True)

    runner = SimulatedRunner(world)
    return ActionBackend(
        runner,
        runner,
        SimulatedFacts(world),
        log,
        parameters,
        control,
        _freeze,
        SimulatedAutopilots(world, pilots, parameters, log),
        clock=lambda: world.pools[0].now,
        steady=lambda: clock(world.pools[0]),
        rebalance_backend=lambda: _rebalance_backend(world, log),
        lights=SimulatedLights(world),
        windows=SimulatedWindows(world),
    )


def _lives(_mark: str) -> bool:
    """Whether the process of a mark runs: all that is simulated is in this one."""
    return True


def _rebalance_backend(world: World, log: MemoryLog) -> RebalanceBackend:
    from zconsole.sim.backends.rebalance import SimulatedRebalance

    return SimulatedRebalance(world, COUNTING, log)


def _devices(pools: Sequence[PoolState], first: PoolState) -> tuple[Device, ...]:
    """What is plugged in: the shelf, then what is in a pool and so has its label.

    The pool that asks comes first. A disk with partitions of several pools is one device.
    """
    found: dict[str, Device] = {}
    for state in sorted(pools, key=lambda pool: pool is not first):
        label, disks = Contents(zfs_pool=state.name), places(state).disks
        devices = [_device(leaf, disks) for leaf in state.host.shelf]
        inside = (leaf for leaf in state.leaves() if leaf.present)
        devices += [replace(_device(leaf, disks), contents=label) for leaf in inside]
        for device in devices:
            known = found.setdefault(device.path, device)
            aliases = tuple(dict.fromkeys((*known.aliases, *device.aliases)))
            found[device.path] = replace(known, aliases=aliases)
    return tuple(found.values())


def _device(leaf: Leaf, disks: Mapping[str, LeafDisk]) -> Device:
    where = disks.get(leaf.path, LeafDisk())
    whole = PARTITION.sub("", leaf.path)
    node = f"/dev/{leaf.disk}"
    return Device(
        whole,
        node,
        (leaf.path, f"/dev/{leaf.device}"),
        size=leaf.model.size,
        model=leaf.model.name.partition("-")[2],
        serial=leaf.serial,
        wwn=where.wwn,
        logical=512,
        physical=4096,
        locate=locate_of(leaf, disks),
        enclosure=where.enclosure,
        slot=where.slot,
        bay=where.bay,
        port=where.port,
    )


def _labels(state: PoolState) -> dict[str, str]:
    return {str(leaf.guid): str(state.guid) if leaf.present else "" for leaf in state.leaves()}


@dataclass(frozen=True, slots=True)
class Words:
    """The words after a command's name: option letters, then operands without the pool."""

    options: frozenset[str]
    operands: Sequence[str]

    def __getitem__(self, number: int) -> str:
        """The operand of that number. Raises CommandError without it."""
        if number >= len(self.operands):
            raise CommandError("missing device specification", 2)
        return self.operands[number]


Command = Callable[[PoolState, Words], str | None]
"""Carries a command out; returns what it prints. Raises CommandError."""


class SimulatedRunner:
    """Runs ``zpool …`` argument vectors on a world; nothing leaves the process."""

    def __init__(self, world: World) -> None:
        """``world`` is what the commands act on, at the moment it has come to."""
        self.world = world

    async def run(self, argv: Sequence[str], deadline: float) -> Completed:
        """See CommandRunner.run. Raises FileNotFoundError for any program but zpool."""
        del deadline  # a simulated machine answers at once
        if not argv or argv[0].rsplit("/", 1)[-1] != "zpool":
            program = argv[0] if argv else "program"
            raise FileNotFoundError(f"the simulated machine has no {program}")
        return execute(self.world.pools, argv)


def execute(pools: Sequence[PoolState], argv: Sequence[str]) -> Completed:
    """Carries out a ``zpool`` command line (zpool(8), 2.3)."""
    try:
        return Completed(tuple(argv), 0, _execute(pools, argv[1:]) or "", "")
    except CommandError as error:
        return Completed(tuple(argv), error.status, "", str(error))


def _execute(pools: Sequence[PoolState], words: Sequence[str]) -> str | None:
    name, *rest = words or [""]
    command = _COMMANDS.get(name)
    if command is None:
        raise CommandError(f"unrecognized command '{name}'", 2)
    options = frozenset(letter for word in rest if _is_option(word) for letter in word[1:])
    operands = [word for word in rest if not _is_option(word)]
    if name == "set":  # the pool stands between the property and a vdev
        operands = [*operands[1:2], *operands[:1], *operands[2:]]
    if name == "scrub":  # the one that names the pool last: dates stand before it
        operands = operands[::-1]
    if name == "add" and "o" in options:  # what -o sets comes before the pool
        operands = operands[1:]
    if not operands:
        raise CommandError("missing pool name argument", 2)
    pool = next((p for p in pools if p.name == operands[0]), None)
    if pool is None:
        raise CommandError(f"cannot open '{operands[0]}': no such pool")
    if pool.suspended and name != "clear":
        raise CommandError(f"cannot {name} '{pool.name}': pool I/O is currently suspended")
    return command(pool, Words(options, operands[1:]))


def _is_option(word: str) -> bool:
    return word.startswith("-") and word != "-"


def _scrub(pool: PoolState, words: Words) -> None:
    action = "stop" if "s" in words.options else "pause" if "p" in words.options else "start"
    commands.scrub(pool, action, errors="e" in words.options, txgs=_txgs(pool, words))


def _txgs(pool: PoolState, words: Words) -> tuple[int, int] | None:
    """What the options -C, -S and -E (2.3, 2.4) leave to a scrub; None: everything."""
    if "C" in words.options:
        return pool.scrubbed_txg, pool.txg
    if not words.options & {"S", "E"}:
        return None
    try:
        dates = [datetime.fromisoformat(date).timestamp() for date in reversed(words.operands)]
    except ValueError:
        raise CommandError("Failed to parse the date.", 2) from None
    first = dates[0] if "S" in words.options else 0.0
    last = dates[-1] if "E" in words.options else pool.now
    return pool.txg_at(first), pool.txg_at(last)


def _job(kind: str) -> Command:
    def _change(pool: PoolState, words: Words) -> None:
        action = (
            "cancel" if "c" in words.options else "suspend" if "s" in words.options else "start"
        )
        commands.change(pool, kind, action, next(iter(words.operands), None))

    return _change


def _set(pool: PoolState, words: Words) -> None:
    name, _, value = words[0].partition("=")
    if name in ("sit_out", "autosit") and value in ("on", "off"):
        commands.sit_out(pool, name, words[1], on=value == "on")
        return
    if name != "autoexpand" or value not in ("on", "off"):
        raise CommandError(f"cannot set property for '{pool.name}': invalid property '{name}'")
    pool.autoexpand = value == "on"


def _checkpoint(pool: PoolState, words: Words) -> None:
    """Only discards one, as spa_checkpoint_discard does."""
    if "d" not in words.options or pool.checkpoint is None:
        raise CommandError(f"cannot discard checkpoint in '{pool.name}': no checkpoint exists")
    pool.checkpoint.state = DISCARDING
    pool.note("history_event", "the checkpoint is being discarded", "notice")


_COMMANDS: dict[str, Command] = {
    "add": lambda pool, words: commands.add(pool, words.operands),
    "replace": lambda pool, words: commands.replace(pool, words[0], words[1], "s" in words.options),
    "attach": lambda pool, words: commands.attach(pool, words[0], words[1]),
    "detach": lambda pool, words: commands.detach(pool, words[0]),
    "offline": lambda pool, words: commands.offline(pool, words[0]),
    "online": lambda pool, words: commands.online(pool, words[0], "e" in words.options),
    "clear": lambda pool, words: commands.clear(pool, next(iter(words.operands), None)),
    "scrub": _scrub,
    "resilver": lambda pool, _: lifecycle.resilver_all(pool),
    "trim": _job("trim"),
    "initialize": _job("initialize"),
    "set": _set,
    "checkpoint": _checkpoint,
}


async def probe_results_of(world: World, path: str, _since: float) -> ProbeResults:
    """The counts of the leaf at ``path``; nothing for one that is not there.

    Damaged transfers count as CRC errors, failed requests as sectors replaced or pending.
    """
    leaf = _there(world, path)
    return ProbeResults() if leaf is None else ProbeResults(smart_counts(leaf))


async def details_of(world: World, path: str) -> Pairs:
    """Model, serial, size and sectors of the leaf at ``path``; nothing for one not there."""
    leaf = _there(world, path)
    return () if leaf is None or leaf.kind != "disk" else described(_facts(leaf))


def _there(world: World, path: str) -> Leaf | None:
    leaves = (leaf for pool in world.pools for leaf in pool.leaves())
    return next((leaf for leaf in leaves if leaf.path == path and leaf.present), None)


def _facts(leaf: Leaf) -> dict[str, str]:
    """See ``zconsole.hardware.identity.device_facts``."""
    _, mark, serial = leaf.devid.rpartition("_")
    return {
        "device": leaf.device,
        "model": leaf.model.name.partition("-")[2] or leaf.model.name,
        **({"serial": serial} if mark else {}),
        "size": str(leaf.model.size),
        "rotational": str(int(not leaf.model.flash)),
        "logical_sector": "512",
        "physical_sector": "4096",
    }


def smart_counts(disk: Leaf) -> SmartCounts:
    """What a simulated disk says of itself, by its errors: bad sectors, or a bad cable."""
    bad, damaged = int(disk.reads.errors + disk.writes.errors), int(disk.cksum_errors)
    if damaged > 3 * bad:
        return SmartCounts(passed=True, reallocated=0, pending=0, uncorrectable=0, crc=damaged)
    if disk.model.flash:
        return SmartCounts(passed=True, uncorrectable=bad)
    return SmartCounts(passed=True, reallocated=bad, pending=bad // 8, uncorrectable=0, crc=0)


# Lights of bays, and hours of scrubs


def locate_of(leaf: Leaf, disks: Mapping[str, LeafDisk]) -> str | None:
    """The LED file of a disk's slot, by where the disks are; flash sits in slots without."""
    where = disks.get(leaf.path)
    if where is None or leaf.kind != "disk" or leaf.model.flash or not leaf.present:
        return None
    return f"/sys/class/enclosure/{where.enclosure}/{where.slot}/locate"


def _slot_of(device: Device) -> SlotKey:
    """The slot of a device's light. Raises UsageError where it has none."""
    if device.locate is None:
        raise UsageError(f"{device.path} has no bay with a light")
    enclosure, slot = PurePath(device.locate).parts[-3:-1]
    return enclosure, slot


@dataclass(slots=True)
class SimulatedLights:
    """Switches the lights of a world's bays; see LightSwitch."""

    world: World

    def switch(self, order: LightOrder) -> str:
        """See LightSwitch.switch."""
        self.tidy()
        if order.device is None:
            self.world.lit.clear()
            return "every light is off"
        device, slot = order.device, _slot_of(order.device)
        name = device.bay or slot[1]
        name = f"{name} (serial {device.serial})" if device.serial else name
        if not order.on:
            return f"the light of {name} {'is' if self.world.lit.pop(slot, None) else 'was'} off"
        self.world.lit[slot] = self.world.pools[0].now + light.LASTING
        return f"the light of {name} is on"

    def tidy(self) -> tuple[str, ...]:
        """See LightSwitch.tidy."""
        now = self.world.pools[0].now
        self.world.lit = {bay: until for bay, until in self.world.lit.items() if until > now}
        return ()


@dataclass(slots=True)
class SimulatedWindows:
    """See WindowSwitch. What keeps to the hours is part of the simulated pool."""

    world: World

    def switch(self, order: ScrubWindow) -> str:
        """See WindowSwitch.switch."""
        pool = next((p for p in self.world.pools if str(p.guid) == order.guid), None)
        if pool is None:
            raise NotFoundError(f"no pool {order.pool}")
        pool.hours = order if order.hours else None
        if pool.hours is not None:
            keep_hours(pool)
        return order.ordered

    def windows(self) -> tuple[ScrubWindow, ...]:
        """See WindowSwitch.windows."""
        return tuple(pool.hours for pool in self.world.pools if pool.hours is not None)

    def resume(self) -> None:
        """See WindowSwitch.resume: a simulated machine never reboots."""
