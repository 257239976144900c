"""Directories of the simulated pools, and plans for them by the real one's arithmetic."""

from __future__ import annotations

from dataclasses import replace

from zconsole.pool import allocator
from zconsole.pool.allocator import Space
from zconsole.rebalance.backend import Measured
from zconsole.rebalance.planning.engine_choice import COPIES, Choice, choose
from zconsole.rebalance.planning.facts import Dataset, Mount
from zconsole.rebalance.planning.plan_document import PlanDocument, PlannedDirectory, PlannedPart
from zconsole.rebalance.planning.plan_model import FLOOR, TARGET, fills
from zconsole.rebalance.planning.settings import Settings
from zconsole.sim.directories import SimulatedDirectory
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
    """The plan of a job on a simulated pool, by the real one's arithmetic."""
    choice, limits = _choice(pool, settings), settings.limits
    directories = tuple(_directory(pool, root, choice) for root in settings.dirs)
    spaces, factor = _spaces(pool), _factor(pool)
    whole = sum(each.bytes for each in directories)
    target = TARGET if limits.until_spread is None else limits.until_spread
    most = min(whole, limits.max_bytes or whole) * factor
    raw = allocator.raw_to_target(spaces, target, most)
    moved = most if limits.until_spread is None or raw is None else raw
    pinned = _pinned(pool, settings)
    after = allocator.rewritten(spaces, moved, pinned=pinned)
    free = sum(space.free for space in spaces)
    floor = FLOOR if limits.min_free is None else limits.min_free
    made = PlanDocument(
        directories,
        pool=pool.name,
        spread_before=allocator.spread(spaces),
        spread_after=allocator.spread(after),
        target_spread=target,
        bytes_to_target=None if raw is None else round(raw / factor),
        available_bytes=max(0, round((free - floor * sum(s.size for s in spaces)) / factor)),
        fragmentation=max((top.frag for top in pool.normal_tops()), default=None),
        raw_factor=factor,
        vdevs=fills(spaces, after),
        estimate="all data alike",
        notes=_notes(pool, choice),
    )
    return replace(made, refused=_refusal(made, settings, choice, round(pinned * whole)))


def _choice(pool: PoolState, settings: Settings) -> Choice:
    version = tuple(int(part) for part in pool.version.split("."))
    mount = Mount("zfs", pool.name, f"/{pool.name}")
    return choose(settings, mount, Dataset(pool.name, {}), version, exported="")


def _directory(pool: PoolState, root: str, choice: Choice) -> PlannedDirectory:
    held = below(pool, root)
    factor = _factor(pool)
    pinned = round(sum(d.size * d.pinned for d in held) / factor)
    size = round(sum(d.size for d in held) / factor)
    return PlannedDirectory(
        dir=root,
        dataset=pool.name,
        files=sum(d.files for d in held),
        bytes=size,
        skipped={},
        sampled={},
        engine=choice.engine,
        why=choice.why,
        space_needed_bytes=pinned,
        pinned_bytes={"snapshots": pinned},
        next_incremental_bytes=pinned,
        allocated_bytes=size,
        allocated_after_bytes=size,
        sizes_from="simulated: written as before",
        old_bytes=None,
        below=_largest_first(pool, root),
    )


def _largest_first(pool: PoolState, root: str) -> tuple[PlannedPart, ...]:
    """The directories in a root, those that hold most first."""
    found = {name: measured((pool,), f"{root}/{name}") for name in children((pool,), root)}
    parts = [PlannedPart(name, held.files, held.bytes or 0, None) for name, held in found.items()]
    return tuple(sorted(parts, key=lambda part: (part.bytes, part.name), reverse=True))


def _pinned(pool: PoolState, settings: Settings) -> float:
    held = below(pool, *settings.dirs)
    size = sum(directory.size for directory in held)
    return sum(d.size * d.pinned for d in held) / size if size else 0.0


def _notes(pool: PoolState, choice: Choice) -> tuple[str, ...]:
    notes = [COPIES] if choice.engine == "copy" else []
    if len(pool.normal_tops()) == 1:
        notes.append("one vdev: there is nothing to balance")
    if running := scanning(pool):
        notes.append(f"a {running} is running: the job waits for its end")
    return tuple(notes)


def _refusal(made: PlanDocument, settings: Settings, choice: Choice, pinned: int) -> str | None:
    if choice.engine is None:
        return f"{settings.dirs[0]}: {choice.why}"
    if not made.files:
        return f"{settings.dirs[0]}: no files"
    if pinned > made.available_bytes:
        return f"needs {pinned} bytes and only {made.available_bytes} are free above the floor"
    goal, before, after = settings.limits.until_spread, made.spread_before, made.spread_after
    if settings.aim == "balance" and goal is not None and made.bytes_to_target is None:
        return f"a spread of {goal:g} cannot be reached: {before:.3f} to {after:.3f}"
    return None
