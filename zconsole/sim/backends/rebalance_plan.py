"""Directories of the simulated pools, and the facts of plans for them."""

from __future__ import annotations

import os

from zconsole.pool.allocator import Space
from zconsole.pool.version import parse_version
from zconsole.rebalance.backend import Measured
from zconsole.rebalance.planning import forecast, plan
from zconsole.rebalance.planning.engine_choice import COPIES, choose
from zconsole.rebalance.planning.facts import Dataset, Mount, PoolFacts
from zconsole.rebalance.planning.hot_directories import Below, Held
from zconsole.rebalance.planning.plan_document import PlanDocument
from zconsole.rebalance.planning.plan_model import DirectoryPlan, JobDirectory, Sizes
from zconsole.rebalance.planning.settings import Settings
from zconsole.rebalance.planning.survey import Ages, Survey
from zconsole.sim.directories import SimulatedDirectory
from zconsole.sim.disk import ONLINE
from zconsole.sim.emit import pool_state
from zconsole.sim.rewrite import scanning
from zconsole.sim.state import PoolState
from zconsole.sim.topology import top_name


def _factor(pool: PoolState) -> float:
    """Allocated bytes a byte of a file takes."""
    tops = pool.normal_tops()
    return sum(t.alloc for t in tops) / (sum(t.alloc / t.inflation for t in tops) or 1.0)


def _spaces(pool: PoolState) -> tuple[Space, ...]:
    """The normal-class vdevs as the prediction takes them."""
    even = pool.version >= "2.4"
    return tuple(
        Space(
            top_name(top, index),
            int(top.space),
            top.alloc,
            float((1 if even else top.groups) * top.allocating),
        )
        for index, top in enumerate(pool.tops)
        if top in pool.normal_tops()
    )


def children(pools: tuple[PoolState, ...], path: str) -> tuple[str, ...]:
    """Names of the directories in one, sorted."""
    paths = [each.path for pool in pools for each in below(pool, path) if each.path != path]
    return tuple(sorted({name[len(path) + 1 :].split("/")[0] for name in paths}))


def measured(pools: tuple[PoolState, ...], path: str) -> Measured:
    """What a directory holds, with everything below it, in bytes of its files."""
    found = [(_factor(pool), below(pool, path)) for pool in pools]
    size = sum(d.size / factor for factor, held in found for d in held)
    return Measured(path, round(size), sum(d.files for _, held in found for d in held))


def below(pool: PoolState, *roots: str) -> list[SimulatedDirectory]:
    """The directories that are one of these or inside one."""
    inside = tuple(f"{root}/" for root in roots)
    return [each for each in pool.directories if f"{each.path}/".startswith(inside)]


def propose(pool: PoolState, settings: Settings) -> PlanDocument:
    """The plan of a job on a simulated pool: the real one's, of simulated facts."""
    facts = _facts(pool)
    plans = [_directory(pool, facts, root, settings) for root in settings.dirs]
    made = plan.judged(plans, facts, settings, [])
    made.notes += [COPIES] if any(each.choice.engine == "copy" for each in plans) else []
    return made.document()


def _facts(pool: PoolState) -> PoolFacts:
    spaces = _spaces(pool)
    health = "ONLINE" if pool_state(pool) == ONLINE else "DEGRADED"
    free, size = round(sum(s.free for s in spaces)), sum(s.size for s in spaces)
    return PoolFacts(
        name=pool.name,
        properties={"health": health, "free": str(free), "size": str(size)},
        spaces=spaces,
        version=parse_version(pool.version),
        fragmentation=max((top.frag for top in pool.normal_tops()), default=None),
        scanning=scanning(pool) or None,
        used=round(sum(top.alloc / top.inflation for top in pool.normal_tops())),
    )


def _directory(pool: PoolState, facts: PoolFacts, root: str, settings: Settings) -> DirectoryPlan:
    mount, dataset = Mount("zfs", pool.name, f"/{pool.name}"), Dataset(pool.name, {})
    found = _survey(pool, root, round(forecast.above_floor(facts, settings.limits)))
    made = DirectoryPlan(
        JobDirectory(os.fsencode(root), mount, dataset),
        found,
        choose(settings, mount, dataset, facts.version, exported=""),
        found.files,
        found.bytes,
        {"snapshots": found.snapshot_allocated},
    )
    made.sizes = Sizes(found.allocated, found.allocated, "simulated: written as before")
    return made


def _survey(pool: PoolState, root: str, room: int) -> Survey:
    """What a walk of a simulated directory would have found."""
    held, factor = below(pool, root), _factor(pool)
    size = round(sum(d.size for d in held) / factor)
    pinned = round(sum(d.size * d.pinned for d in held) / factor)
    found = Survey(
        os.fsencode(root), Ages(), max(0, room),
        files=sum(d.files for d in held), bytes=size, allocated=size,
        snapshot_allocated=pinned, snapshot_bytes=pinned,
    )  # fmt: skip
    for name in children((pool,), root):
        inside = measured((pool,), f"{root}/{name}")
        found.below.note(Below(0, os.fsencode(name), Held(inside.files, inside.bytes or 0)))
    return found
