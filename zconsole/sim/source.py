"""The simulated pool as a source of samples."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from threading import RLock
from typing import Any

from zconsole.errors import UnavailableError
from zconsole.pool.chassis import SlotKey
from zconsole.pool.model import Sample, parse_version
from zconsole.sim import emit, simulation, zpool_text
from zconsole.sim.disk import CANT_OPEN, FAULTED, OFFLINE, REMOVED
from zconsole.sim.places import places
from zconsole.sim.scenarios import DEFAULT, find
from zconsole.sim.state import PoolState
from zconsole.sim.topology import top_name
from zconsole.zfs.decode import decode
from zconsole.zfs.decode.builders import disk_form, enclosure_form
from zconsole.zfs.raw import Raw
from zconsole.zfs.sources.base import Capabilities
from zconsole.zfs.sources.replay import next_speed
from zconsole.zfs.zpool_output import SINCE_BOOT, ZpoolOutput, zpool_output

EPOCH = 1_795_000_000.0
"""Simulated epoch seconds of the first sample, unless given otherwise."""
_WARM_UP = 5000
"""Steps times leaves that may be spent on simulating the time before the first sample."""
_MOST_STEPS, _FEWEST_STEPS = 64, 12

TABLE = Path(__file__).parents[1] / "share" / "status_messages.json"
_TEXTS: Mapping[str, Any] = json.loads(TABLE.read_text("utf-8"))
_URL = "https://openzfs.github.io/openzfs-docs/msg/"


class World:
    """The pools of one scenario at one moment; time only moves forward."""

    def __init__(self, scenario: str, seed: int, start: float = EPOCH) -> None:
        """Simulate ``scenario`` up to its first sample, which is taken at ``start``.

        Raises NotFoundError for a scenario that does not exist.
        """
        chosen = find(scenario)
        self.scenario = chosen
        self.pools = chosen.build(seed, start - chosen.age)
        """Pools in a fixed order."""
        self.lit = set[SlotKey]()
        """Slots whose locate light is on."""
        self.skipped = 0.0
        """Simulated seconds that were skipped on request."""
        self.lock = RLock()
        """Held for each step, change and sample, as the demo's keeper runs in its own thread."""
        self.is_over = False
        """Whether the demo has ended."""
        for pool in self.pools:
            pool.incidents.sort(key=lambda incident: incident.t)
            leaves = sum(1 for _ in pool.leaves())
            steps = max(_FEWEST_STEPS, min(_MOST_STEPS, _WARM_UP // leaves))
            simulation.advance(pool, chosen.age, steps)

    def advance(self, elapsed: float) -> None:
        """Advance to ``elapsed`` simulated seconds after the first sample, plus ``skipped``."""
        with self.lock:
            for pool in self.pools:
                simulation.advance(pool, self.scenario.age + self.skipped + elapsed)

    def raws(self) -> tuple[Raw, ...]:
        """Return one raw form per pool, with the events since the last call."""
        with self.lock:
            return tuple(raw(pool) for pool in self.pools)

    def zpool_outputs(self, name: str) -> tuple[ZpoolOutput, ...]:
        """Return what zpool would say about a pool. Raises UnavailableError if it would hang."""
        with self.lock:
            state = next(pool for pool in self.pools if pool.name == name)
            seen = decode(snapshot(state))[0]
            happened = tuple(state.happened)
        if not isinstance(seen, Sample):
            raise UnavailableError(seen.text)
        return (
            zpool_output(f"zpool status -v {name}", zpool_text.status(seen.pool)),
            zpool_output(f"zpool iostat -v {name}", zpool_text.iostat(seen.pool), SINCE_BOOT),
            zpool_output(f"zpool events {name}", zpool_text.events(happened)),
        )


def raw(pool: PoolState) -> Raw:
    """Return the current raw form of ``pool`` and clear its events."""
    found, pool.events = snapshot(pool), []
    return found


def snapshot(pool: PoolState) -> Raw:
    """Return the current raw form of ``pool``, leaving its events for the next sample."""
    leaves = list(pool.leaves())
    found: Raw = {
        "t": pool.now,
        "clock": clock(pool),
        "began": clock(pool),
        "boot": f"demo-{pool.guid:x}",
        "source": "demo",
        "pool": pool.name,
        "version": pool.version,
        "host": _host(pool),
        "diskstats": emit.diskstats_of(leaves),
        "devices": {x.path: (x.device,) for x in leaves if x.kind == "disk" and x.present},
        "events": [event._asdict() for event in pool.events],
        "tunables": dict(pool.tunables),
    }
    where, mine = places(pool), {leaf.path for leaf in leaves}
    disks = where.disks.items()
    found["disks"] = {path: disk_form(disk) for path, disk in disks if path in mine}
    found["enclosures"] = [enclosure_form(each) for each in where.enclosures]
    # Nothing but the kstat of a suspended pool can be read: zpool would hang.
    if pool.suspended:
        found["kstat"] = "SUSPENDED"
        found["problem"] = "the pool is suspended: zpool would hang"
        return found
    found["kstat"] = "DEGRADED" if emit.pool_state(pool) < 7 else "ONLINE"
    found["libzfs"] = emit.config(pool)
    found["names"] = {leaf.path: leaf.name for leaf in leaves}
    found["message"] = _message(pool)
    sitting = [leaf for leaf in leaves if leaf.sitting_out]
    found["sitting_out"] = [{"guid": str(x.guid), "path": x.path, "name": x.name} for x in sitting]
    found["autosit"] = _autosit(pool)
    found["history"] = emit.history(pool)
    if pool.volumes is not None:
        found["volumes"] = asdict(pool.volumes)
    if pool.datasets:
        found["objsets"] = emit.objsets(pool)
    return found


def _autosit(pool: PoolState) -> list[dict[str, str]]:
    if parse_version(pool.version) < (2, 4):
        return []
    tops = [(i, top) for i, top in enumerate(pool.tops) if top.kind in ("raidz", "draid")]
    return [
        {"guid": str(top.guid), "name": top_name(top, i), "value": "on" if top.autosit else "off"}
        for i, top in tops
    ]


def clock(pool: PoolState) -> float:
    """Return the simulated machine's monotonic clock in seconds; it booted at ``t`` = -1 day."""
    return pool.t + 86400.0


def _host(pool: PoolState) -> dict[str, float]:
    memory = pool.host.memory
    return {
        "cpu": pool.host.cpu,
        "memory_total": memory,
        "memory_available": memory // 2,
        "arc_bytes": memory * 3 // 8,
        **({} if pool.host.zed is None else {"zed": pool.host.zed}),
    }


def _message(pool: PoolState) -> dict[str, Any]:
    """Return the raw form's ``message``: status, action, see and names of damaged files."""
    texts = dict(_TEXTS.get(_reason(pool), {}))
    if "see" in texts:
        texts["see"] = _URL + texts["see"]
    return {"errors": list(pool.damaged), "destroyed": dict(pool.destroyed), **texts}


def _reason(pool: PoolState) -> str:
    """Return the first reason that applies, in check_status order (lib/libzfs/libzfs_status.c)."""
    leaves = pool.in_vdevs()
    states = {leaf.state for leaf in leaves}
    if pool.suspended:
        return "suspended"
    if pool.resilvering or pool.rebuilding:
        return "resilvering"
    if int(pool.data_errors):
        return "corrupt"
    words = {FAULTED: "faulted", CANT_OPEN: "missing", OFFLINE: "offline", REMOVED: "removed"}
    if found := next((word for state, word in words.items() if state in states), None):
        return found
    if any(int(x.reads.errors) + int(x.writes.errors) + int(x.cksum_errors) for x in leaves):
        return "errors"
    return ""


class SimulatedSource:
    """A source over a simulated world whose time follows ``clock``, ``speed`` times as fast."""

    def __init__(
        self,
        scenario: str = DEFAULT,
        seed: int = 1,
        speed: float = 1.0,
        start: float = EPOCH,
        clock: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """Simulate ``scenario``; ``clock`` gives monotonic seconds.

        Raises NotFoundError for an unknown scenario.
        """
        self.world = World(scenario, seed, start)
        self._speed = speed
        self._clock = clock
        self._began: float | None = None
        """Clock reading at which the present speed began."""
        self._passed = 0.0
        """Simulated seconds up to that reading."""

    @property
    def capabilities(self) -> Capabilities:
        """A live demo that allows actions on the simulated pool."""
        version = self.world.pools[0].version
        fast = () if self._speed == 1.0 else (f"{self._speed:g}x",)
        return Capabilities("demo", version=version, flags=("DEMO", *fast))

    def faster(self, step: int) -> float:
        """Switch to the next higher or lower speed, without a leap of time, and return it."""
        if self._began is not None:
            now = self._clock()
            self._passed += (now - self._began) * self._speed
            self._began = now
        self._speed = next_speed(self._speed, step)
        return self._speed

    async def sample(self) -> tuple[Raw, ...] | None:
        """Return every pool at the current simulated time."""
        now = self._clock()
        if self._began is None:
            self._began = now
        self.world.advance(self._passed + (now - self._began) * self._speed)
        return self.world.raws()

    async def zpool_outputs(self, pool: str) -> tuple[ZpoolOutput, ...]:
        """Return what zpool would say about a simulated pool. Raises UnavailableError."""
        return self.world.zpool_outputs(pool)

    async def aclose(self) -> None:
        """End the demo, and with it the keeper's thread."""
        self.world.is_over = True


def samples(
    scenario: str, seed: int, interval: float, count: int | None
) -> Iterator[tuple[Raw, ...]]:
    """Yield samples every ``interval`` simulated seconds, without waiting between them.

    Raises NotFoundError for an unknown scenario.
    """
    world = World(scenario, seed)
    taken = 0
    while count is None or taken < count:
        world.advance(taken * interval)
        yield world.raws()
        taken += 1
