"""Pools to plan on: saved outputs, texts in this directory, and scenarios of the simulator."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from zconsole.actions.plan import Facts, Situation
from zconsole.errors import NotUnderstoodError
from zconsole.hardware.device import Contents, Device
from zconsole.pool.model import Pool, Sample, parse_version, placed
from zconsole.sim.backends.actions import simulated_facts
from zconsole.sim.scenarios import names
from zconsole.sim.source import World, clock, snapshot
from zconsole.sim.state import PoolState
from zconsole.zfs.decode.decoder import decode
from zconsole.zfs.raw import Raw

FIXTURES = Path(__file__).parents[2] / "fixtures"
TEXTS = Path(__file__).parent / "pools"
NOW = 1_795_000_000.0
"""The time at which saved outputs are read: 2026-11-18, five hours after midnight UTC."""
TIB = 1 << 40
DISKS = "/dev/disk/by-id/"
GOOD, BETTER, SMALL, SECTORS = (f"{DISKS}{name}" for name in ("NEW0", "NEW1", "SMALL", "4KN"))
MOUNTED, FOREIGN, FILLED, ODD = (f"{DISKS}{name}" for name in ("HOME", "OTHER", "EXT4", "-f x"))
UNKNOWN = "/dev/nothing"
FREE = (GOOD, BETTER, *(f"{DISKS}NEW{number}" for number in range(2, 8)))
FEATURES = ("resilver_defer", "device_rebuild", "head_errlog", "raidz_expansion")
VERSIONS = ("2.1.11", "2.2.2", "2.3.9", "2.4.1", "2.4.4", "0.8.6", "")
LIKE_OTHERS = frozenset(
    ("straggler", "shingled", "random", "few-requests", "shared-bus", "cpu", "foreground")
)
"""Scenarios whose pools differ from others only in what makes them slow."""
CHANGING = ("second-replace", "flaky", "suspended", "not-restored", "nvme", "trim", "removal")
"""Scenarios in which the situation is different a quarter of an hour later."""


@dataclass(frozen=True, slots=True)
class Moment:
    """One or more pools at one moment, and the same pools some time later."""

    name: str
    now: Callable[[], tuple[Situation, ...]]
    later: Callable[[], tuple[Situation, ...]] | None = None
    plans: bool = True
    """Whether plans here differ from those at every other moment."""


def moments() -> Iterator[Moment]:
    """Yield every moment: of saved outputs, of the texts in this directory, of scenarios."""
    yield from _captured()
    for number, file in zip(count(), sorted((FIXTURES / "corpus" / "status").glob("*.txt"))):
        version = VERSIONS[number % len(VERSIONS)]
        yield Moment(f"corpus/{file.stem}", _reading(file, version))
    for file in sorted((FIXTURES / "corpus" / "json").glob("*status*[!t].json")):
        if not file.name.endswith(".expect.json"):
            yield Moment(f"corpus/{file.stem}", _reading(file, "2.3.9"))
    for file in sorted(TEXTS.glob("*.txt")):
        yield Moment(f"made/{file.stem}", _reading(file, file.stem.rpartition("_")[2]))
    for name in names():
        if name != "thousand":
            yield Moment(
                f"demo/{name}", _playing(name, 0), _playing(name, 3600), name not in LIKE_OTHERS
            )
    for name in CHANGING:
        yield Moment(f"demo/{name}-later", _playing(name, 900), _playing(name, 930))


def _captured() -> Iterator[Moment]:
    for place in sorted((FIXTURES / "captures").glob("*/*")):
        version = place.parent.name
        saved = place / "status.json"
        chosen = saved if saved.exists() else place / "status-P.txt"
        yield Moment(f"captures/{version}-{place.name}", _reading(chosen, version))


def _reading(file: Path, version: str) -> Callable[[], tuple[Situation, ...]]:
    return lambda: read(file.read_text("utf-8", "surrogateescape"), version)


def read(text: str, version: str, t: float = NOW) -> tuple[Situation, ...]:
    """Return the situations of the pools in a saved output."""
    raw = Raw(t=t, place="saved", source="text", text=text)
    if text.startswith("{"):
        raw = Raw(t=t, place="saved", source="json", status=json.loads(text))
    try:
        samples = decode(raw)
    except NotUnderstoodError:
        return ()
    pools = [sample.pool for sample in samples if isinstance(sample, Sample)]
    return tuple(
        Situation(pool, _facts(pool, version), t, pool.state == "SUSPENDED") for pool in pools
    )


def _facts(pool: Pool, version: str) -> Facts:
    """Return facts of a faked machine: the disks of the pool, and more to choose from."""
    words = parse_version(version)
    leaves = [place for place in placed(pool.root) if not place.vdev.children]
    return Facts(
        version=words,
        features=dict.fromkeys(FEATURES, "enabled" if words > (2, 1) else "disabled"),
        properties={
            "guid": pool.guid or "77",
            "autoexpand": "off",
            "ashift": "13" if version == "2.2.2" else "0",
            "last_scrubbed_txg": "0" if version == "2.3.9" else "4711",
        },
        parameters={"zfs_resilver_defer_percent": 10, "zfs_resilver_disable_defer": 0}
        if words >= (2, 3)
        else {"zfs_resilver_disable_defer": 0},
        devices=_devices(pool),
        labels={
            place.key: "" if place.vdev.state in ("UNAVAIL", "REMOVED") else pool.guid or "77"
            for place in leaves
        }
        if pool.state == "SUSPENDED"
        else {},
    )


def _devices(pool: Pool) -> tuple[Device, ...]:
    """Return the disks of a pool, and others to choose from that are not in a pool yet."""
    leaves = enumerate(pool.root.leaves())
    own = [_member(pool, leaf.path or "", leaf.state, number) for number, leaf in leaves]
    paths = {device.path for device in own}
    free = (device for device in _candidates() if device.path not in paths)
    return (*(device for device in own if device.path.startswith("/")), *free)


def _member(pool: Pool, path: str, state: str, number: int) -> Device:
    """Return the disk of a leaf; a disk that is gone has no readable contents."""
    whole = path.removesuffix("-part1")
    size = 20 * TIB if whole in FREE else (4 + number % 2) * TIB
    label = Contents() if state in ("UNAVAIL", "REMOVED") else Contents(zfs_pool=pool.name)
    return Device(
        whole,
        f"/dev/sd{chr(ord('a') + number % 26)}",
        (path,),
        size=size,
        serial=f"S{number:03d}",
        logical=512,
        physical=4096,
        contents=label,
        bay=f"Bay {number:02d}",
        locate=f"/sys/class/enclosure/0/{number}/locate" if number % 2 else None,
    )


def _candidates() -> Iterator[Device]:
    for number, path in enumerate(FREE):
        yield Device(path, f"/dev/sdz{number}", size=20 * TIB, logical=512, physical=4096)
    yield Device(SMALL, "/dev/sdy", size=1 << 29, logical=512, physical=512)
    yield Device(SECTORS, "/dev/sdx", size=20 * TIB, logical=16384, physical=16384)
    yield Device(MOUNTED, "/dev/sdw", size=20 * TIB, mounted=("/home",), swap=True)
    yield Device(FOREIGN, "/dev/sdv", size=20 * TIB, contents=Contents(zfs_pool="other"))
    yield Device(FILLED, "/dev/sdu", size=20 * TIB, contents=Contents(("ext4",)), holders=("md0",))
    yield Device(ODD, "/dev/sdt", size=20 * TIB, read_only=True, contents=Contents(unread=True))


def _playing(name: str, seconds: float) -> Callable[[], tuple[Situation, ...]]:
    def _at() -> tuple[Situation, ...]:
        world = World(name, 7)
        seen: dict[str, Situation] = {}
        # A suspended pool keeps its last situation on the screen.
        for elapsed in (0.0, seconds / 2, seconds):
            world.advance(elapsed)
            for state in world.pools:
                found = simulated(world, state, seen.get(state.name))
                seen |= {} if found is None else {state.name: found}
        return tuple(seen.values())

    return _at


def simulated(world: World, state: PoolState, before: Situation | None = None) -> Situation | None:
    """Return the situation of a simulated pool; a suspended pool keeps its previous one."""
    pool = None if before is None else before.pool
    if not state.suspended:
        (sample,) = decode(snapshot(state))
        assert isinstance(sample, Sample)
        pool = sample.pool
    if pool is None:
        return None
    facts = asyncio.run(simulated_facts(world)(pool, state.suspended))
    return Situation(pool, facts, state.now, state.suspended, clock(state))
