"""Decodes the config nvlist of ``zpool_get_config`` into a model pool.

Key names: include/sys/fs/zfs.h (ZPOOL_CONFIG_*). Which vdevs are shown and under which names
follows print_status_config (cmd/zpool/zpool_main.c) and zpool_vdev_name (lib/libzfs/libzfs_pool.c).
Figures get the names that ``zpool status -j`` gives them (``builders``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Any

from zconsole.errors import NotUnderstoodError
from zconsole.pool.model import ERRORS, MULTIHOST, IoCounters, Pool
from zconsole.zfs.decode.builders import (
    NUMBERS,
    Devices,
    Figures,
    Node,
    VdevForm,
    pool_of,
    root_of,
)
from zconsole.zfs.decode.scans import (
    COPIES,
    PROGRESS_STATES,
    progress_of,
    scans_of,
    stats_of_work,
    work_of,
)
from zconsole.zfs.decode.values import (
    AUX_WORDS,
    CLASSES,
    VDEV_STATES,
    disk_name,
    integers,
    mapping,
    moment,
    number,
    word,
)
from zconsole.zfs.raw import HISTOGRAMS, QUEUES

_MOST_FRAGMENTATION = 100
_NO_STATS: Sequence[int] = (0,) * 48
"""All zeros, in the 48-element layout of 2.3 (``_stats``)."""
_HIDDEN = frozenset({"hole", "indirect"})
_SHOWN = ("normal", "dedup", "special", "log")
_PLACES = {
    "alloc_space": 3,
    "total_space": 4,
    "rep_dev_size": 6,
    "phys_space": 46,
    "read_errors": 20,
    "write_errors": 21,
    "checksum_errors": 22,
    "slow_ios": 34,
    "removing": 25,
    "noalloc": 45,
    "scan_processed": 26,
    "rebuild_processed": 41,
    "resilver_deferred": 33,
    "configured_ashift": 42,
    "logical_ashift": 43,
    "physical_ashift": 44,
}
"""Indices in ``vdev_stats`` (layout: ``_stats``) of the values that zpool prints under these
names."""
_numbers_in = itemgetter(*map(_PLACES.__getitem__, NUMBERS))
_PROGRESS = {"initialize": 28, "trim": 37}
"""Indices in ``vdev_stats`` of bytes done, followed by total bytes, state and time."""
_WORDS = ("guid", "path", "phys_path", "devid")
_QUEUE_KEYS = tuple(chain.from_iterable(QUEUES.values()))
_SLOW_IOS = 34
"""Index of vs_slow_ios in ``vdev_stats``; shorter arrays lack it."""
_TRIMS = 41
"""Length of ``vdev_stats`` since 0.8, which introduced trim."""
_NOALLOC = 46
"""Length of ``vdev_stats`` before 2.2, which introduced vs_noalloc (include/sys/fs/zfs.h)."""
_SUSPENDED_BY_MULTIHOST = 2
"""ZIO_SUSPEND_MMP of ``zio_suspend_reason_t`` (include/sys/zio.h)."""


def pool_of_config(
    config: Mapping[str, Any],
    now: float | None,
    devices: Devices,
    message: Mapping[str, Any],
) -> Pool:
    """Decode the pool of a config nvlist, with zpool's own estimates for epoch ``now``, if known.

    ``message`` holds what only zpool has (``status``, ``action``, ``see``, ``errors``). Raises
    NotUnderstoodError if it is not a pool's config.
    """
    tree = mapping(config.get("vdev_tree"), "vdev_tree")
    if not tree or not isinstance(config.get("name"), str):
        raise NotUnderstoodError("not a pool's configuration: no name or no vdev_tree")

    tops = tuple(_name(child, devices.names) for child in tree.get("children", ()))
    work_stats = stats_of_work(tree, tops)
    scans = scans_of(work_stats["scan_stats"], now)
    length, stats = _stats(tree)
    stated = {"guid": word(tree.get("guid")), "io": _io(stats)}
    form = VdevForm(config["name"], "root", (), _figures(tree, length, stats), stated)
    root = root_of(form, _groups(tree), partial(_vdev, names=devices.names), devices, scans)
    printed = {
        **{key: config.get(key) for key in ("pool_guid", "error_count", "comment")},
        **{key: message.get(key) for key in ("status", "action")},
        "state": "SUSPENDED" if "suspended" in config else root.state,
        "moreinfo": message.get("see"),
        "errlist": message.get("errors"),
        **work_stats,
    }
    moving = (work_stats.get(key, {"vdev": -1})["vdev"] for key in COPIES)
    removed, expanding = (tops[number] if 0 <= number < len(tops) else None for number in moving)
    work = work_of(printed, scans, now, (removed, expanding))
    destroyed = mapping(message.get("destroyed"), "names").items()
    work["destroyed"] = {str(k): str(v) for k, v in destroyed}
    # The kernel gives the reason since 0.8 (ZPOOL_CONFIG_SUSPENDED_REASON).
    if "suspended" in config and (reason := number(config.get("suspended_reason"))):
        work["suspension"] = MULTIHOST if reason == _SUSPENDED_BY_MULTIHOST else ERRORS
    return pool_of(printed, root, work)


def _groups(tree: Node) -> Iterator[tuple[str, list[Node]]]:
    """Yield the top-level vdevs that zpool shows, by class."""
    sections: dict[str, list[Node]] = {section: [] for section in _SHOWN}
    for child in tree.get("children", ()):
        if not (child.get("is_hole") or child["type"] in _HIDDEN):
            bias = str(child.get("alloc_bias") or "normal")
            section = "log" if child.get("is_log") else CLASSES.get(bias, bias)
            sections.setdefault(section, []).append(child)
    yield from sections.items()
    for key in ("l2cache", "spares"):
        yield CLASSES[key], tree.get(key, ())


def _stats(node: Node) -> tuple[int, Sequence[int]]:
    """Return the length of a vdev's ``vdev_stats``, and its values in the 48-element order of 2.3.

    Values that a version lacks are 0.

    Layouts: include/sys/fs/zfs.h of 0.6.5, 0.7.13, 0.8.6, 2.0.7, 2.1.15, 2.2.9, 2.3.9. By index: 0
    timestamp, 1 state, 2 aux, 3 alloc, 4 space, 6 rsize, 9 and 10 reads and writes, 15 and 16 bytes
    read and written, 20 to 22 read, write and checksum errors, 23 initialize_errors, 25 removing,
    26 scan_processed, 27 fragmentation, 28 to 31 initialize, 33 resilver_deferred, 34 slow_ios, 35
    trim_errors, 36 trim_notsup, 37 to 40 trim, 41 rebuild_processed, 42 to 44 configured, logical
    and physical ashift, 45 noalloc, 46 pspace.
    """
    values = integers(node.get("vdev_stats") or (), "vdev_stats")
    length = len(values)
    if length >= len(_NO_STATS):
        return length, values
    # 2.2 inserted vs_noalloc before vs_pspace, 0.8 vs_initialize_errors after the checksum errors;
    # everything else was appended.
    if length == 46:
        values = [*values[:45], 0, values[45]]
    elif 23 < length < 41:
        values = [*values[:23], 0, *values[23:]]
    return length, [*values, *_NO_STATS[len(values) :]]


def _name(node: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """Return the printed name (zpool_vdev_name with VDEV_NAME_TYPE_ID)."""
    path = node.get("path")
    if "not_present" in node:
        return str(node.get("guid", ""))
    if path is not None:
        if path in names:
            return str(names[path])
        whole = bool(node.get("whole_disk"))
        return disk_name(str(path), whole) if node["type"] == "disk" else str(path)
    kind = _kind(node)
    if kind.startswith("draid"):
        width, group = len(node.get("children", ())), number(node.get("draid_nchildren"))
        domains = f"{group}c:{width}w" if group and group < width else f"{width}c"
        kind = f"{kind}:{node.get('draid_ndata')}d:{domains}:{node.get('draid_nspares', 0)}s"
    return f"{kind}-{node.get('id', 0)}"


def _kind(node: Mapping[str, Any]) -> str:
    kind = str(node["type"])
    return f"{kind}{node.get('nparity', 1)}" if kind in ("raidz", "draid") else kind


def _vdev(node: Node, names: Mapping[str, str]) -> VdevForm:
    (length, stats), below = _stats(node), node.get("children", ())
    stated: dict[str, Any] = {key: str(node[key]) for key in _WORDS if node.get(key) is not None}
    if "vdev_stats_ex" in node:
        more = node["vdev_stats_ex"] or {}
        counts = tuple(map(more.get, _QUEUE_KEYS))
        integers([count for count in counts if count is not None], "vdev_stats_ex")
        pairs = zip(QUEUES, counts[::2], counts[1::2], strict=True)
        stated["queues"] = {
            name: (wait, busy) for name, wait, busy in pairs if None not in (wait, busy)
        }
        found = {name: more.get(key) for name, key in HISTOGRAMS.items()}
        stated["histograms"] = {
            name: tuple(integers(array, "vdev_stats_ex"))
            for name, array in found.items()
            if array is not None
        }
    if length:
        stated["io"] = _io(stats)
    if stats[4] > 0 and stats[27] <= _MOST_FRAGMENTATION:
        # The kernel reports UINT64_MAX if a space map has no histogram (ZFS_FRAG_INVALID).
        stated["fragmentation"] = stats[27] / 100
    if not below:
        # Set when a device is attached, until all missing data is written (vdev_dtl_reassess,
        # vdev.c).
        stated["unfilled"] = bool(node.get("resilver_txg") or node.get("rebuild_txg"))
        stated["trimmable"] = not stats[36] if length >= _TRIMS else None
        for name, at in _PROGRESS.items():
            if 0 < stats[at + 2] < len(PROGRESS_STATES):
                done, total, state, time = stats[at : at + 4]
                ended = PROGRESS_STATES[state]
                stated[name] = progress_of(ended, done, total, moment(time, UTC))
    return VdevForm(_name(node, names), _kind(node), below, _figures(node, length, stats), stated)


def _figures(node: Node, length: int, stats: Sequence[int]) -> Figures:
    """``length`` and ``stats`` are those that ``_stats`` returns."""
    state, aux = stats[1:3]
    if aux:  # zpool shows an unknown value as corrupted data, too
        aux_word = AUX_WORDS[aux] if 0 <= aux < len(AUX_WORDS) else "CORRUPT_DATA"
    figures = Figures(
        VDEV_STATES[state] if 0 <= state < len(VDEV_STATES) else "UNKNOWN",
        aux_word if aux else "",
        str(node.get("path", "")) if "not_present" in node else None,
        *_numbers_in(stats),
    )
    if length <= _NOALLOC:
        figures = figures._replace(noalloc=None)
    if length <= _SLOW_IOS:
        figures = figures._replace(slow_ios=None)
    ashift = number(node.get("ashift"))
    return figures._replace(configured_ashift=ashift) if ashift else figures


def _io(stats: Sequence[int]) -> IoCounters:
    return IoCounters(stats[0] / 1e9, stats[9], stats[10], stats[15], stats[16])
