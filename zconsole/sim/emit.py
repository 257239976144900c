"""The raw form of a simulated pool: OpenZFS 2.3's config nvlist as JSON, and diskstats rows.

As in a recording, the nvlist has only the names that are read (``zfs.sources.kernel.nvlist``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from zconsole.sim.disk import CANT_OPEN, DEGRADED, ONLINE, Leaf
from zconsole.sim.state import (
    DAY,
    FINISHED,
    SCRUB,
    ErrorScrub,
    PoolState,
    Relocation,
    SimulatedScan,
)
from zconsole.sim.topology import Group, Member, Rebuild, Top
from zconsole.zfs.raw import QUEUES

STATS = 48
"""Entries of vdev_stat_t since 2.3 (include/sys/fs/zfs.h)."""

_POOL_AGE = 400 * DAY
"""Seconds from a pool's creation to the beginning of its story."""
_IDLE: dict[str, Any] = {name: 0 for pair in QUEUES.values() for name in pair}
NO_REPLICAS, SPARED = 3, 10
"""vdev_aux_t (include/sys/fs/zfs.h)."""


def config(pool: PoolState) -> dict[str, Any]:
    """Return the current config of a pool as ``zpool_get_config`` returns it."""
    found: dict[str, Any] = {
        "name": pool.name,
        "pool_guid": pool.guid,
        "vdev_tree": _root(pool),
        "error_count": int(pool.data_errors),
    }
    if pool.version < "0.8":
        _before_0_8(found["vdev_tree"])
    if pool.suspended:
        found["suspended"] = 0
    return found


def _before_0_8(config: dict[str, Any]) -> None:
    """Cut the arrays to their layouts in 0.7 (include/sys/fs/zfs.h @0.7.13)."""
    stats = config["vdev_stats"]
    # vs_initialize_errors (index 23) came with 0.8.
    config["vdev_stats"] = [*stats[:23], *stats[24:28]]
    if "scan_stats" in config:
        config["scan_stats"] = config["scan_stats"][:13]
    config.pop("org.openzfs:rebuild_stats", None)
    for key in ("children", "spares", "l2cache"):
        for child in config.get(key, ()):
            _before_0_8(child)


def _root(pool: PoolState) -> dict[str, Any]:
    children = [_top(pool, top, index) for index, top in enumerate(pool.tops)]
    root: dict[str, Any] = {
        "type": "root",
        "id": 0,
        "guid": pool.guid,
        "vdev_stats": _root_stats(pool, children),
        "children": children,
    }
    if pool.scan is not None:
        root["scan_stats"] = scan_stats(pool.scan, pool.error_scrub)
    if pool.removal is not None:
        root["removal_stats"] = _relocation(pool.removal)
    if pool.expansion is not None:
        root["raidz_expand_stats"] = _relocation(pool.expansion)
    if (taken := pool.checkpoint) is not None:
        root["checkpoint_stats"] = [taken.state, int(taken.start), int(taken.space)]
    if pool.spares:
        used = pool.in_vdevs()
        root["spares"] = [_spare(pool, leaf, leaf in used) for leaf in pool.spares]
    if pool.cache:
        root["l2cache"] = [_leaf(pool, leaf) for leaf in pool.cache]
    return root


def scan_stats(scan: SimulatedScan, errors: ErrorScrub | None = None) -> list[int]:
    """Return pool_scan_stat_t as 2.2 and later report it (22 entries)."""
    examined = min(scan.examined, scan.total - scan.short)
    head = [scan.function, scan.state, int(scan.start), int(scan.end), int(scan.total)]
    counts = [int(examined), int(scan.skipped), int(scan.processed), int(scan.errors)]
    passed = [int(scan.pass_examined), int(scan.pass_start), int(scan.paused_since)]
    rest = [int(scan.spent_paused), int(scan.pass_issued), int(scan.issued)]
    scrub = [0] * 7
    if errors is not None:  # function 3 is ERRORSCRUB (pool_scan_func_t)
        blocks = [int(errors.done), int(errors.total) - int(errors.done)]
        times = [int(errors.start), int(errors.end)]
        scrub = [3, errors.state, *times, *blocks, int(errors.paused_since)]
    return head + counts + passed + rest + scrub


def history(pool: PoolState) -> dict[str, Any]:
    """Return the scrubs that ``zpool history`` tells of, in the raw form of ``PastScrubs``."""
    scrubs: list[dict[str, Any]] = []
    if (scan := pool.scan) is not None and scan.function == SCRUB:
        scrubs.append(_past(scan.start, scan.end if scan.state == FINISHED else None, scan.full))
    if pool.scrubbed is not None:
        scrubs.append(_past(pool.scrubbed - DAY / 2, pool.scrubbed))
    return {"created": pool.start - _POOL_AGE, "scrubs": scrubs}


def _past(start: float, end: float | None, full: bool = True) -> dict[str, Any]:
    return {"start": int(start), "end": None if end is None else int(end), "full": full}


def objsets(pool: PoolState) -> list[dict[str, str]]:
    """Return ``objsets`` of ``zfs/raw.py``: the I/O of each dataset that the scenario names."""
    return [
        {
            "crtime": "1",
            "snaptime": f"{pool.t * 1e9:.0f}",
            "dataset_name": dataset.name,
            "writes": f"{dataset.written / pool.load.size:.0f}",
            "nwritten": f"{dataset.written:.0f}",
            "reads": f"{dataset.read / pool.load.size:.0f}",
            "nread": f"{dataset.read:.0f}",
        }
        for dataset in pool.datasets
    ]


def _rebuild(rebuild: Rebuild | None) -> list[int]:
    if rebuild is None:
        return [0] * 13
    ms, scanned = int(rebuild.elapsed * 1000), int(rebuild.scanned)
    issued = int(rebuild.scanned * rebuild.needed)
    head = [rebuild.state, int(rebuild.start), int(rebuild.end), ms, scanned, issued]
    tail = [int(rebuild.rebuilt), int(rebuild.estimate), 0, ms, scanned, issued]
    skipped = scanned - issued
    return [*head, *tail, skipped]


def _relocation(moving: Relocation) -> list[int]:
    times = [int(moving.start), int(moving.end)]
    return [moving.state, moving.vdev, *times, int(moving.total), int(moving.moved), 0]


def _top(pool: PoolState, top: Top, index: int) -> dict[str, Any]:
    if len(top.members) == 1 and top.kind == "disk":
        node = _leaf(pool, next(top.leaves()))
    else:
        node = _inner(pool, top, top.members, top_state(top))
        if top.kind != "draid":
            node["vdev_stats"][26] = 0
        if not top.members:
            del node["children"]
    _space(node["vdev_stats"], top)
    node |= {"id": index, "ashift": top.ashift}
    node["is_log"] = int(top.vclass == "log")
    node["org.openzfs:rebuild_stats"] = _rebuild(top.rebuild)
    if top.kind in ("raidz", "draid"):
        node["nparity"] = top.nparity
    if top.kind == "draid":
        node["draid_ndata"], node["draid_nspares"] = top.data_disks, top.spares
    if top.vclass != "normal":
        node["alloc_bias"] = top.vclass
    return node


def _space(stats: list[int], top: Top) -> None:
    inflation = top.inflation
    stats[3], stats[4] = int(top.synced), int(top.space)
    stats[5], stats[6] = int(top.space / inflation), int(top.space)
    stats[25], stats[27] = int(top.removing), round(top.frag * 100)
    stats[42] = stats[43] = stats[44] = top.ashift
    stats[45] = int(not top.allocating)


def _member(pool: PoolState, member: Member, index: int) -> dict[str, Any]:
    if isinstance(member, Leaf):
        return _leaf(pool, member) | {"id": index}
    node = _inner(pool, member, member.children, member_state(member))
    stats = node["vdev_stats"]
    stats[42] = stats[43] = stats[44] = 12
    return node | {"id": index}


def _inner(
    pool: PoolState, vdev: Top | Group, members: Sequence[Member], state: tuple[int, int]
) -> dict[str, Any]:
    """Return a vdev with its members; ``state`` is its state and aux."""
    children = [_member(pool, member, i) for i, member in enumerate(members)]
    stats = _sum(children, *state, pool)
    return {"type": vdev.kind, "guid": vdev.guid, "vdev_stats": stats, "children": children}


def member_state(member: Member) -> tuple[int, int]:
    """Return state and aux of a leaf or group (vdev_mirror_state_change)."""
    if isinstance(member, Leaf):
        return member.state, member.aux
    return _joint_state(member.children, len(member.children) - 1)


def top_state(top: Top) -> tuple[int, int]:
    """Return state and aux of a top-level vdev (vdev_propagate_state)."""
    return _joint_state(top.members, top.tolerance)


def _joint_state(members: Sequence[Member], tolerance: int) -> tuple[int, int]:
    states = [member_state(member)[0] for member in members]
    bad = sum(state < DEGRADED for state in states)
    if bad > tolerance:
        return CANT_OPEN, NO_REPLICAS
    return (DEGRADED if bad or DEGRADED in states else ONLINE), 0


def pool_state(pool: PoolState) -> int:
    """Return the state of the root vdev."""
    states = [top_state(top)[0] for top in pool.tops if top.members]
    if any(state == CANT_OPEN for state in states):
        return CANT_OPEN
    return DEGRADED if DEGRADED in states else ONLINE


def _sum(children: Sequence[Mapping[str, Any]], state: int, aux: int, pool: PoolState) -> list[int]:
    """Return the stats of an interior vdev, summed (vdev_get_stats_ex_impl, vdev.c)."""
    stats = [0] * STATS
    stats[0], stats[1], stats[2] = int((pool.t + 3600.0) * 1e9), state, aux
    for child in children:
        below = child["vdev_stats"]
        for i in (9, 10, 15, 16, 26, 41):
            stats[i] += below[i]
    return stats


def _root_stats(pool: PoolState, children: Sequence[Mapping[str, Any]]) -> list[int]:
    stats = _sum(children, pool_state(pool), 0, pool)
    counted = list(pool.data_tops())
    stats[3] = int(sum(top.synced for top in counted))
    stats[4] = int(sum(top.space for top in counted))
    stats[5] = int(sum(top.space / top.inflation for top in counted))
    stats[26] = stats[41] = 0
    return stats


def _leaf(pool: PoolState, leaf: Leaf) -> dict[str, Any]:
    node: dict[str, Any] = {
        "type": leaf.kind,
        "guid": leaf.guid,
        "path": leaf.path,
        "vdev_stats": leaf_stats(pool, leaf),
        "vdev_stats_ex": _extended(leaf),
    }
    if leaf.kind == "disk":
        # zpool shows whole disks without -part1, so that their names differ from their paths.
        whole = not leaf.path.endswith(f"/{leaf.name}")
        node["whole_disk"], node["devid"] = int(whole), f"{leaf.devid}-part1"
    if leaf.state == CANT_OPEN:
        node["not_present"] = 1
    if leaf.dtl > 0.0 and leaf.online:
        node["rebuild_txg" if leaf.rebuilding else "resilver_txg"] = pool.txg
    return node


def leaf_stats(pool: PoolState, leaf: Leaf) -> list[int]:
    """Return vdev_stat_t of a leaf as an array of 48."""
    stats = [0] * STATS
    # vs_timestamp counts from the opening of the vdev, an hour before the story.
    stats[0], stats[1], stats[2] = int((pool.t - leaf.opened + 3600.0) * 1e9), leaf.state, leaf.aux
    stats[6] = leaf.model.size
    stats[9], stats[10] = int(leaf.reads.ops), int(leaf.writes.ops)
    stats[15], stats[16] = int(leaf.reads.bytes), int(leaf.writes.bytes)
    stats[20], stats[21] = int(leaf.reads.errors), int(leaf.writes.errors)
    stats[22], stats[26] = int(leaf.cksum_errors), int(leaf.scan_processed)
    stats[33], stats[34] = int(leaf.deferred), int(leaf.slow_ios)
    stats[36] = int(not leaf.model.flash)
    stats[41], stats[46] = int(leaf.rebuild_processed), leaf.model.size
    stats[42] = stats[43] = stats[44] = 12
    for at, kind in ((28, "initialize"), (37, "trim")):
        if job := leaf.jobs.get(kind):
            stats[at : at + 4] = int(job.done), int(job.total), job.state, int(job.time)
    return stats


def _extended(leaf: Leaf) -> dict[str, Any]:
    """Return queues and latency histograms under the names of spa_add_vdev_stats_ex."""
    found = dict(_IDLE)
    for kind, (pending, active) in leaf.queues.items():
        pend_name, active_name = QUEUES[kind]
        found[pend_name], found[active_name] = int(pending), round(active)
    found["vdev_disk_r_lat_histo"] = leaf.reads.waits.counts[:]
    found["vdev_disk_w_lat_histo"] = leaf.writes.waits.counts[:]
    found["vdev_sync_r_lat_histo"] = leaf.sync_r.counts[:]
    found["vdev_sync_w_lat_histo"] = leaf.sync_w.counts[:]
    return found


def _spare(pool: PoolState, leaf: Leaf, used: bool) -> dict[str, Any]:
    node = _leaf(pool, leaf)
    if used:
        # A spare in use reports this state (spa_add_spares, spa.c).
        node["vdev_stats"] = stats = [0] * STATS
        stats[1], stats[2] = CANT_OPEN, SPARED
        stats[6] = stats[46] = leaf.model.size
    return node


SECTOR = 512
_FORMAT = "%d %d %s %d 0 %d %d %d 0 %d %d %d %d %d 0 0 0 0"


def diskstats_of(leaves: Sequence[Leaf]) -> list[list[str]]:
    """Return one row for each device that is present."""
    return [_row(leaf, i) for i, leaf in enumerate(leaves) if leaf.kind == "disk" and leaf.present]


def _row(leaf: Leaf, index: int) -> list[str]:
    number = (8 + index // 16, index % 16 * 16 + 1, leaf.device)
    reads = (leaf.reads.ops, leaf.reads.bytes / SECTOR, leaf.reads.time * 1000)
    writes = (leaf.writes.ops, leaf.writes.bytes / SECTOR, leaf.writes.time * 1000)
    waited = (leaf.reads.time + leaf.writes.time) * 1000
    now = (round(leaf.in_flight), leaf.busy_time * 1000, waited)
    return (_FORMAT % (*number, *reads, *writes, *now)).split()
