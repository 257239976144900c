"""The config nvlist of ``zpool_get_config`` as a model pool.

Key names: include/sys/fs/zfs.h (ZPOOL_CONFIG_*). What is shown and under which name follows
print_status_config (cmd/zpool/zpool_main.c) and zpool_vdev_name (lib/libzfs/libzfs_pool.c).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from zconsole.errors import NotUnderstoodError
from zconsole.pool.chassis import LeafDisk
from zconsole.pool.leaf_path import FAILED
from zconsole.pool.model import (
    ERRORS,
    MULTIHOST,
    NOTHING,
    ErrorCounters,
    IoCounters,
    Pool,
    Progress,
    Vdev,
)
from zconsole.zfs.decode.blocks import Blocks
from zconsole.zfs.decode.formulas import PROGRESS_STATES, progress_of
from zconsole.zfs.decode.names import CLASSES, disk_name, parity_of
from zconsole.zfs.decode.scans import (
    active_function,
    activities_of,
    copies,
    lacks_activity,
    lacks_scan,
    scan_stats,
    scans_of,
)
from zconsole.zfs.decode.tree import with_spares
from zconsole.zfs.decode.values import (
    damaged_files,
    epoch,
    integers,
    mapping,
    number,
    text_of,
    word,
)
from zconsole.zfs.decode.words import (
    VDEV_STATES,
    aux_word,
    note_of,
    scan_marker,
    spare_word,
    state_word,
    suspension,
)
from zconsole.zfs.raw import HISTOGRAMS, QUEUES, numbers

_MOST_FRAGMENTATION = 100
_NO_STATS: Sequence[int] = (0,) * 48
_HIDDEN = frozenset({"hole", "indirect"})
_SHOWN = ("normal", "dedup", "special", "log")
_HEALTHY = VDEV_STATES.index("ONLINE")
_NOALLOC = 46
"""Elements of ``vdev_stats`` before 2.2, which brought vs_noalloc (include/sys/fs/zfs.h)."""
_TRIMS = 41
"""Elements of it from 0.8 on, which brought trim."""
_SUSPENDED_BY_MULTIHOST = 2
"""ZIO_SUSPEND_MMP of ``zio_suspend_reason_t`` (include/sys/zio.h)."""


class Histograms(Mapping[str, tuple[int, ...]]):
    """Histograms of one device as they came packed; few are ever looked at."""

    __slots__ = ("_more",)

    def __init__(self, more: Mapping[str, Any]) -> None:
        """``more``: its ``vdev_stats_ex``."""
        self._more = more

    def __getitem__(self, name: str) -> tuple[int, ...]:
        return tuple(numbers(self._more[HISTOGRAMS[name]]))

    def __iter__(self) -> Iterator[str]:
        return (name for name, key in HISTOGRAMS.items() if key in self._more)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Queues(Mapping[str, tuple[int, int]]):
    """Depths of the queues of one device, as they came."""

    __slots__ = ("_more",)

    def __init__(self, more: Mapping[str, Any]) -> None:
        """``more``: its ``vdev_stats_ex``."""
        self._more = more

    def __getitem__(self, name: str) -> tuple[int, int]:
        pending, active = QUEUES[name]
        return self._more[pending], self._more[active]

    def __iter__(self) -> Iterator[str]:
        more = self._more
        return (name for name, (p, a) in QUEUES.items() if p in more and a in more)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _Context(NamedTuple):
    """What every vdev of one sample shares."""

    names: Mapping[str, str]
    function: str | None
    """The active healing scan's function."""
    blocks: Blocks
    disks: Mapping[str, LeafDisk]
    """Leaf path to the disk below it."""


def pool_of(
    config: Mapping[str, Any],
    now: float | None,
    names: Mapping[str, str],
    message: Mapping[str, Any],
    version: str | None,
    blocks: Blocks,
    disks: Mapping[str, LeafDisk] = NOTHING,
) -> Pool:
    """The pool of a config nvlist, with zpool's own figures for epoch ``now``, where known.

    ``names``: leaf path to printed name. ``message``: what only zpool knows (``status``,
    ``action``, ``see``, ``errors``). ``blocks``: counters of the devices under the leaves;
    ``disks``: what is known of them.
    Raises NotUnderstoodError when it is not a pool's config.
    """
    tree = mapping(config.get("vdev_tree"), "vdev_tree")
    if not tree or not isinstance(config.get("name"), str):
        raise NotUnderstoodError("not a pool's configuration: no name or no vdev_tree")
    tops = tuple(_name(child, names) for child in tree.get("children", ()))
    scans, copied = scan_stats(tree, tops), copies(tree)
    context = _Context(names, active_function(scans), blocks, disks)
    root = _root(tree, config["name"], context)
    count = number(config.get("error_count"))
    state = "SUSPENDED" if "suspended" in config else root.state
    return Pool(
        name=config["name"],
        state=state,
        root=root,
        guid=word(config.get("pool_guid")),
        message=text_of(message.get("status")),
        action=text_of(message.get("action")),
        see=text_of(message.get("see")),
        suspension=_suspension(config, state, message),
        lacks=lacks_scan(scans) or lacks_activity(copied),
        scans_told=lacks_scan(scans) is None,
        scans=scans_of(scans, now, version=version),
        activities=activities_of(
            copied,
            _moving(copied.get("removal_stats"), tops),
            _moving(copied.get("raidz_expand_stats"), tops),
            now,
        ),
        error_count=count,
        errors=damaged_files(message.get("errors"), count),
        destroyed={str(k): str(v) for k, v in mapping(message.get("destroyed"), "names").items()},
        comment=text_of(config.get("comment")),
    )


def _suspension(config: Mapping[str, Any], state: str, message: Mapping[str, Any]) -> str | None:
    """Why the pool is suspended; the kernel says so since 0.8 (ZPOOL_CONFIG_SUSPENDED_REASON)."""
    if "suspended" in config and (reason := number(config.get("suspended_reason"))):
        return MULTIHOST if reason == _SUSPENDED_BY_MULTIHOST else ERRORS
    return suspension(state, *(text_of(message.get(key)) for key in ("status", "see")))


def _moving(copy: Mapping[str, Any] | None, tops: Sequence[str]) -> str | None:
    """The printed name of the vdev that a removal or expansion is about."""
    number = copy["vdev"] if copy else len(tops)
    return tops[number] if 0 <= number < len(tops) else None


def _root(tree: Mapping[str, Any], name: str, context: _Context) -> Vdev:
    sections: dict[str, list[Vdev]] = {section: [] for section in _SHOWN}
    for child in tree.get("children", ()):
        if child.get("is_hole") or child["type"] in _HIDDEN:
            continue
        bias = str(child.get("alloc_bias") or "normal")
        section = "log" if child.get("is_log") else CLASSES.get(bias, bias)
        rebuilding = _rebuilding(child)
        sections.setdefault(section, []).append(_vdev(child, section, context, rebuilding, True))
    children = [vdev for section in sections.values() for vdev in section]
    children += [_vdev(c, "cache", context, False, True) for c in tree.get("l2cache", ())]
    children += [_vdev(c, "spare", context, False, True) for c in tree.get("spares", ())]
    values = _stats(tree)
    stats = canonical(values)
    state, aux, note = _condition(tree, stats, len(values), "", False)
    return Vdev(
        name=name,
        kind="root",
        state=state_word(state, aux),
        guid=word(tree.get("guid")),
        note=note,
        errors=ErrorCounters(stats[20], stats[21], stats[22]),
        alloc_bytes=stats[3],
        size_bytes=stats[4],
        io=_io(stats),
        children=with_spares(tuple(children)),
    )


def _rebuilding(node: Mapping[str, Any]) -> bool:
    stats = node.get("org.openzfs:rebuild_stats")
    return bool(integers(stats, "rebuild_stats")[0] == 1) if stats else False


def _stats(node: Mapping[str, Any]) -> Sequence[int]:
    return integers(node.get("vdev_stats") or (), "vdev_stats")


def canonical(values: Sequence[int]) -> Sequence[int]:
    """``vdev_stats`` of any version in 2.3's order of 48; what a version lacks is 0.

    Layouts: include/sys/fs/zfs.h of 0.6.5, 0.7.13, 0.8.6, 2.0.7, 2.1.15, 2.2.9, 2.3.9. By index: 0
    timestamp, 1 state, 2 aux, 3 alloc, 4 space, 6 rsize, 9 and 10 reads and writes, 15 and 16
    bytes read and written, 20 to 22 read, write and checksum errors, 23 initialize_errors, 25
    removing, 26 scan_processed, 27 fragmentation, 28 to 31 initialize, 33 resilver_deferred, 34
    slow_ios, 35 trim_errors, 36 trim_notsup, 37 to 40 trim, 41 rebuild_processed, 42 and 44
    configured and physical ashift, 45 noalloc, 46 pspace.
    """
    if not values:
        return _NO_STATS
    length = len(values)
    if length >= 48:
        return values
    # 2.2 put vs_noalloc before vs_pspace, 0.8 vs_initialize_errors behind the checksum errors;
    # all else was added at the end.
    if length == 46:
        values = [*values[:45], 0, values[45]]
    elif 23 < length < 41:
        values = [*values[:23], 0, *values[23:]]
    return [*values, *_NO_STATS[len(values) :]]


def _path_name(node: Mapping[str, Any], path: str) -> str:
    return disk_name(path, bool(node.get("whole_disk"))) if node["type"] == "disk" else path


def _name(node: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """The printed name (zpool_vdev_name with VDEV_NAME_TYPE_ID)."""
    path = node.get("path")
    if "not_present" in node:
        return str(node.get("guid", ""))
    if path is not None:
        if path in names:
            return str(names[path])
        return _path_name(node, str(path))
    kind = node["type"]
    if kind == "raidz":
        kind = f"raidz{node.get('nparity', 1)}"
    elif kind == "draid":
        width, group = len(node.get("children", ())), _failure_group(node)
        kind = (
            f"draid{node.get('nparity', 1)}:{node.get('draid_ndata')}d"
            f":{f'{group}c:{width}w' if group else f'{width}c'}:{node.get('draid_nspares', 0)}s"
        )
    return f"{kind}-{node.get('id', 0)}"


def _vdev(
    node: Mapping[str, Any], section: str, context: _Context, rebuilding: bool, top: bool
) -> Vdev:
    children: tuple[Vdev, ...] = ()
    if "children" in node:
        below = node["children"]
        children = tuple([_vdev(child, section, context, rebuilding, False) for child in below])
    values = _stats(node)
    stats = canonical(values)
    leaf = not children
    marker = _marker(stats, context, rebuilding) if leaf else ""
    enum_state, aux, note = _condition(node, stats, len(values), marker, leaf)
    kind = _kind(node)
    alloc, size, fragmentation = _space(stats, top, leaf)
    queues, histograms = _depths(node)
    state = spare_word(enum_state, aux) if section == "spare" else state_word(enum_state, aux)
    return Vdev(
        name=_name(node, context.names),
        kind=kind,
        vclass=section,
        state=state,
        guid=word(node.get("guid")),
        path=word(node.get("path")),
        note=note,
        errors=_counters(stats, leaf, section, len(values)),
        removing=stats[25] != 0,
        alloc_bytes=alloc,
        size_bytes=size,
        fragmentation=fragmentation,
        ashift=number(node.get("ashift")) or stats[42] or None,
        physical_ashift=stats[44] or None,
        nparity=parity_of(kind),
        data_disks=number(node.get("draid_ndata")),
        width=len(children) if kind.startswith("draid") else None,
        failure_group=_failure_group(node),
        io=_io(stats) if values and section != "spare" else None,
        queues=queues,
        histograms=histograms,
        allocating=not stats[45] if top and len(values) > _NOALLOC else None,
        children=children,
        **(_of_leaf(node, values, context, rebuilding, marker, state) if leaf else NOTHING),
    )


def _of_leaf(
    node: Mapping[str, Any],
    values: Sequence[int],
    context: _Context,
    rebuilding: bool,
    marker: str,
    state: str,
) -> dict[str, Any]:
    """What only devices have; ``values``: their ``vdev_stats``, as their release counts them."""
    stats, path = canonical(values), word(node.get("path"))
    is_resilvering = marker == "(resilvering)"
    return {
        "resilvering": is_resilvering,
        "awaiting_resilver": stats[33] != 0 and not is_resilvering,
        "scan_processed": stats[41] if rebuilding else stats[26],
        "disk": context.disks.get(path) if path and state not in FAILED else None,
        # Set when it is attached, until all that it lacks was written (vdev_dtl_reassess, vdev.c).
        "unfilled": bool(node.get("resilver_txg") or node.get("rebuild_txg")),
        "phys_path": word(node.get("phys_path")),
        "devid": word(node.get("devid")),
        "block": context.blocks.of(node["path"]) if "path" in node else None,
        "initialize": _progress(stats[28:32], stats[23]) if stats[30] else None,
        "trim": _progress(stats[37:41], stats[35]) if stats[39] else None,
        "trimmable": not stats[36] if len(values) >= _TRIMS else None,
    }


def _failure_group(node: Mapping[str, Any]) -> int | None:
    """Devices of one failure group, where the dRAID has several."""
    group = number(node.get("draid_nchildren"))
    return group if group and group < len(node.get("children", ())) else None


def _kind(node: Mapping[str, Any]) -> str:
    kind = str(node["type"])
    return f"{kind}{node.get('nparity', 1)}" if kind in ("raidz", "draid") else kind


def _space(
    stats: Sequence[int], top: bool, leaf: bool
) -> tuple[int | None, int | None, float | None]:
    """Allocated and allocatable bytes and fragmentation of a top-level; a leaf's device size."""
    if top and stats[4] > 0:
        # UINT64_MAX where a space map has no histogram (ZFS_FRAG_INVALID).
        known = stats[27] <= _MOST_FRAGMENTATION
        return stats[3], stats[4], stats[27] / 100 if known else None
    return None, (stats[46] or stats[6] or None) if leaf else None, None


def _counters(stats: Sequence[int], leaf: bool, section: str, length: int) -> ErrorCounters:
    if section == "spare":
        return ErrorCounters()
    slow = stats[34] if leaf and length > 34 else None
    return ErrorCounters(stats[20], stats[21], stats[22], slow)


def _condition(
    node: Mapping[str, Any], stats: Sequence[int], length: int, marker: str, leaf: bool
) -> tuple[str, str, str]:
    """The enum words of state and aux, and the note; ``length``: elements of ``vdev_stats``."""
    value = stats[1]
    state = VDEV_STATES[value] if 0 <= value < len(VDEV_STATES) else "UNKNOWN"
    aux = aux_word(stats[2]) if stats[2] else ""
    plain = not (aux or marker or stats[25] or stats[45] or stats[30] or stats[39])
    if plain and stats[42] >= stats[44] and "not_present" not in node:
        return state, aux, ""
    errors = stats[20] or stats[21] or stats[22]
    # zpool names a leaving vdev in its row since 2.2, which brought vs_noalloc.
    worded = length > _NOALLOC
    note = note_of(
        aux=aux,
        was=str(node.get("path", "")) if "not_present" in node else None,
        slow_only=leaf and not errors and stats[34] > 0,
        ashifts=(stats[42], stats[44]) if leaf else (0, 0),
        removing=worded and stats[25] != 0,
        allocating=stats[45] == 0,
        marker=marker,
        initializing=leaf and stats[30] == 1,
        trimming=leaf and stats[39] == 1,
    )
    return state, aux, note


def _marker(stats: Sequence[int], context: _Context, rebuilding: bool) -> str:
    if stats[1] != _HEALTHY:
        return ""
    marker = scan_marker(context.function, stats[26], stats[33] != 0)
    return "(resilvering)" if rebuilding and stats[41] else marker


def _io(stats: Sequence[int]) -> IoCounters:
    return IoCounters(stats[0] / 1e9, stats[9], stats[10], stats[15], stats[16])


def _depths(
    node: Mapping[str, Any],
) -> tuple[Mapping[str, tuple[int, int]], Mapping[str, tuple[int, ...]]]:
    """Queues and histograms of ``vdev_stats_ex``.

    What came packed came from libzfs, and is looked at when somebody asks; what was recorded may
    have been made by anybody, and is checked now.
    """
    more = node.get("vdev_stats_ex") or NOTHING
    if isinstance(node.get("vdev_stats"), bytes):
        return Queues(more), Histograms(more)
    histograms = {
        name: tuple(integers(more[key], key)) for name, key in HISTOGRAMS.items() if key in more
    }
    return _queues(more), histograms


def _queues(more: Mapping[str, Any]) -> Mapping[str, tuple[int, int]]:
    found = {
        name: (more[pending], more[active])
        for name, (pending, active) in QUEUES.items()
        if pending in more and active in more
    }
    integers(tuple(chain.from_iterable(found.values())), "a queue")
    return found


def _progress(values: Sequence[int], errors: int) -> Progress | None:
    done, total, state, time = values
    word = PROGRESS_STATES[state] if 0 <= state < len(PROGRESS_STATES) else ""
    return progress_of(word, done, total, epoch(time), errors)
