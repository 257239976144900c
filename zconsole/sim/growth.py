"""``zpool add`` on the simulated pool, with its refusals (zpool_vdev.c, spa_vdev_add in spa.c)."""

from __future__ import annotations

from collections.abc import Sequence

from zconsole.sim.commands import CommandError, loose
from zconsole.sim.disk import Leaf
from zconsole.sim.state import PoolState
from zconsole.sim.topology import Member, Top, top_name

LABELS = 4 << 20
"""What labels and the boot block take of a device (VDEV_LABEL_START_SIZE and two end labels)."""
_CLASSES = ("special", "dedup", "log", "cache", "spare")
_FORCE = "invalid vdev specification\nuse '-f' to override the following errors:\n"


def add(pool: PoolState, words: Sequence[str]) -> None:
    """``zpool add POOL [special|dedup|log|cache|spare] [mirror|raidzN] DEVICE…``."""
    left = list(words)
    vclass = left.pop(0) if left and left[0] in _CLASSES else "normal"
    kind = left.pop(0) if left and left[0].startswith(("mirror", "raidz")) else "disk"
    if not left:
        raise CommandError("missing vdev specification", 2)
    fresh = [loose(pool, device) for device in left]
    if vclass in ("cache", "spare"):
        (pool.cache if vclass == "cache" else pool.spares).extend(fresh)
    else:
        _add_tops(pool, vclass, kind, fresh)
    pool.host.shelf = [leaf for leaf in pool.host.shelf if leaf not in fresh]
    for leaf in fresh:
        leaf.dtl, leaf.opened = 0.0, pool.t
        pool.note("vdev_add", f"{leaf.name} added", vdev=leaf.path)


def _add_tops(pool: PoolState, vclass: str, kind: str, fresh: list[Leaf]) -> None:
    """One vdev of all devices; of single disks one each."""
    parity = int(kind[-1]) if kind.startswith("raidz") else 0
    groups: list[list[Member]] = [[leaf] for leaf in fresh] if kind == "disk" else [list(fresh)]
    for members in groups:
        top = Top(kind.rstrip("123"), pool.new_guid(), members, parity, vclass)
        if vclass != "log" and (why := _mismatch(pool, top)):
            raise CommandError(f"{_FORCE}mismatched replication level: {why}")
        smallest = min(leaf.model.size for leaf in top.leaves()) - LABELS
        top.space = float(smallest * (top.width if parity else 1))
        pool.tops.append(top)


def _mismatch(pool: PoolState, new: Top) -> str:
    """Why it is not like the pool's last vdev that holds data; "" where it is."""
    last = pool.data_tops()[-1]
    if last.tolerance == new.tolerance and {last.kind, new.kind} == {"mirror", "raidz"}:
        return ""
    if (last.kind, last.nparity, last.width) == (new.kind, new.nparity, new.width):
        return ""
    index = pool.tops.index(last)
    return f"pool uses {top_name(last, index)} and new vdev is {new.kind} of {new.width}"
