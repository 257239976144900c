"""A pool and its vdevs, made of what a form says by the names of ``zpool status -j``.

Those names are the ones the forms have in common: JSON has them, and the kernel's config gets them
(``libzfs``). What a form has besides goes into the model as it is (``VdevForm.more``). Text prints
results, not figures, and shares only what names tell.

Source: status_callback_json and vdev_stats_nvlist in cmd/zpool/zpool_main.c (2.3.9). Sizes and
counters left out by zpool are 0.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, tzinfo
from typing import Any, NamedTuple

from zconsole.pool.model import GROUP_KINDS, NOTHING, ErrorCounters, Pool, Progress, Vdev
from zconsole.zfs.decode.devices import Devices
from zconsole.zfs.decode.formulas import progress_of
from zconsole.zfs.decode.names import draid_shape, parity_of
from zconsole.zfs.decode.scans import (
    active_function,
    activities_of,
    lacks_activity,
    lacks_scan,
    rebuilding,
    scans_of,
)
from zconsole.zfs.decode.tree import with_spares
from zconsole.zfs.decode.values import count, damaged_files, mapping, moment, number, text_of, word
from zconsole.zfs.decode.words import note_of, scan_marker, spare_word, state_word, suspension

APART = frozenset({"cache", "spare"})
"""Classes of devices whose states are not among those that make a pool ONLINE."""
Node = Mapping[str, Any]
Nodes = Collection[tuple[str, Node]]
"""Vdevs, each with the key it has in its form."""


class VdevPlace(NamedTuple):
    """Where in the tree a vdev stands."""

    vclass: str
    above: str = ""
    """The state of the vdev above it."""
    top: bool = True
    rebuilt: bool = False
    """Below a top-level vdev with an active rebuild."""
    written: bool = False
    """A rebuild writes to it: the new device of a replacing or spare group, any of a dRAID, whose
    spare space is spread over all."""


class VdevForm(NamedTuple):
    """One vdev of a form."""

    name: str
    kind: str
    node: Node
    """What is known of it, by the names of ``zpool status -j``."""
    below: Nodes
    more: Mapping[str, Any] = NOTHING
    """Fields of ``Vdev`` that those names lack."""


Read = Callable[[str, Node, VdevPlace], VdevForm]
"""Reads one vdev of a form."""


class _Context(NamedTuple):
    """What every vdev of one pool shares."""

    read: Read
    zone: tzinfo
    function: str | None
    """The active healing scan's function."""
    rebuilding: frozenset[str]
    """Top-level vdevs with an active sequential rebuild."""
    devices: Devices


def pool_of(
    pool: Node,
    root: Vdev,
    now: float | None,
    lacks: str | None = None,
    moving: tuple[str | None, str | None] = (None, None),
    zone: tzinfo = UTC,
    version: str | None = None,
) -> Pool:
    """The pool, with zpool's own figures for epoch ``now``, where known.

    ``lacks``: a part that the form must have; ``moving``: names of the vdevs that a removal and an
    expansion are about; ``version``: the OpenZFS that runs, where the counters do not tell it.
    """
    scan = mapping(pool.get("scan_stats"), "scan_stats")
    state, errors = word(pool.get("state")), number(pool.get("error_count"))
    message, number_of_it = text_of(pool.get("status")), text_of(pool.get("msgid"))
    see = text_of(pool.get("moreinfo"))
    return Pool(
        name=root.name,
        state=state,
        root=root,
        guid=word(pool.get("pool_guid")),
        message=message,
        action=text_of(pool.get("action")),
        see=see or number_of_it,
        suspension=suspension(state, message, number_of_it, see),
        lacks=lacks or lacks_scan(scan) or lacks_activity(pool),
        scans_told=lacks_scan(scan) is None,
        scans=scans_of(scan, now, zone, version),
        activities=activities_of(pool, *moving, now, zone),
        error_count=errors,
        errors=damaged_files(pool.get("errlist"), errors),
        comment=text_of(pool.get("comment")),
    )


def root_of(
    name: str,
    top: Node,
    state: str,
    groups: Iterable[tuple[str, Nodes]],
    read: Read,
    scan: Node,
    devices: Devices,
    zone: tzinfo = UTC,
    more: Mapping[str, Any] = NOTHING,
) -> Vdev:
    """The root vdev, of its own node ``top`` and the top-level vdevs of each class.

    ``scan``: the pool's ``scan_stats``; ``more``: see VdevForm.
    """
    context = _Context(read, zone, active_function(scan), rebuilding(scan), devices)
    children = [
        _vdev(key, node, VdevPlace(vclass, state), context)
        for vclass, nodes in groups
        for key, node in nodes
    ]
    return Vdev(
        name=name,
        kind="root",
        state=state,
        guid=word(top.get("guid")),
        note=note_of(aux=str(top.get("aux", ""))),
        errors=_counters(top, leaf=False),
        alloc_bytes=number(top.get("alloc_space", 0)) if top else None,
        size_bytes=number(top.get("total_space")),
        children=with_spares(tuple(children)),
        **more,
    )


def layout_of(name: str, kind: str) -> Mapping[str, Any]:
    """Fields of ``Vdev`` that a printed name and a kind tell of raidz and dRAID."""
    if not kind.startswith(("raidz", "draid")):
        return NOTHING
    shape = draid_shape(name) if kind.startswith("draid") else None
    return {
        "nparity": parity_of(kind),
        "data_disks": shape.data if shape else None,
        "width": shape.width if shape else None,
        "failure_group": shape.group if shape else None,
    }


def _vdev(key: str, given: Node, place: VdevPlace, context: _Context) -> Vdev:
    name, kind, node, below, more = context.read(key, given, place)
    if place.top:
        place = place._replace(rebuilt=name in context.rebuilding)
    leaf, spare = not below, place.vclass == "spare"
    errors = ErrorCounters() if spare else _counters(node, leaf)
    children = () if leaf else _children(below, place, kind, node, context)
    state = _state(node, spare) or _derived_state(kind, children, place)
    deferred = leaf and bool(count(node, "resilver_deferred"))
    marker = _marker(node, place, context, deferred) if leaf and state == "ONLINE" else ""
    path = word(node.get("path"))
    removing, noalloc = bool(count(node, "removing")), number(node.get("noalloc", 0))
    # Nothing new goes to a vdev that is leaving; older releases don't tell.
    allocating = None if noalloc is None else not (noalloc or removing)
    ashifts = number(node.get("configured_ashift")), number(node.get("physical_ashift"))
    space = number(node.get("total_space")) if place.top else None
    note = note_of(
        aux=str(node.get("aux", "")),
        was=_former_path(node),
        slow_only=leaf and bool(errors.slow) and errors.total == 0,
        ashifts=(ashifts[0] or 0, ashifts[1] or 0) if leaf else (0, 0),
        # zpool names a leaving vdev in its row since 2.2, which tells what takes no new writes.
        removing=removing and noalloc is not None,
        allocating=not noalloc,
        marker=marker,
        initializing=node.get("init_state") == "ACTIVE",
        trimming=node.get("trim_state") == "ACTIVE",
    )
    return Vdev(
        name=name,
        kind=kind,
        vclass=place.vclass,
        state=state,
        guid=word(node.get("guid")),
        path=path,
        note=f"in use by pool '{node['used_by']}'" if node.get("used_by") else note,
        errors=errors,
        resilvering=marker == "(resilvering)",
        awaiting_resilver=deferred and marker != "(resilvering)",
        removing=removing,
        alloc_bytes=number(node.get("alloc_space", 0)) if space else None,
        size_bytes=space or (_leaf_size(node) if leaf else None),
        scan_processed=_processed(node, place) if leaf and not spare else None,
        ashift=ashifts[0],
        physical_ashift=ashifts[1],
        initialize=_progress(node, "init", "initialized", "to_initialize", context.zone),
        trim=_progress(node, "trim", "trimmed", "to_trim", context.zone),
        phys_path=word(node.get("phys_path")),
        devid=word(node.get("devid")),
        allocating=allocating if place.top and not spare else None,
        children=children,
        **layout_of(name, kind),
        **(context.devices.fields(name, path, state) if leaf else NOTHING),
        **more,
    )


def _children(
    below: Nodes, place: VdevPlace, kind: str, node: Node, context: _Context
) -> tuple[Vdev, ...]:
    """The vdevs below one; in a replacing or spare group the last device is the new one."""
    above = _state(node, spare=False) or place.above
    written = place.written or kind.startswith("draid")
    under = place._replace(top=False, written=written, above=above)
    if kind not in GROUP_KINDS:
        return tuple([_vdev(key, each, under, context) for key, each in below])
    last = len(below) - 1
    return tuple(
        _vdev(key, each, under._replace(written=number == last), context)
        for number, (key, each) in enumerate(below)
    )


def _state(node: Node, spare: bool) -> str:
    if "state" not in node:
        return ""
    aux, state = str(node.get("aux", "")), str(node["state"])
    return spare_word(state, aux) if spare else state_word(state, aux)


def _derived_state(kind: str, children: Sequence[Vdev], place: VdevPlace) -> str:
    """The state of a vdev that has none in the form, "" where nothing tells it.

    zpool finds no state of a dRAID before 2.3.3, and none of a disk with ``-L``. As in
    vdev_raidz_state_change and vdev_mirror_state_change (module/zfs): what is ONLINE has nothing
    but ONLINE devices.
    """
    states = {child.state for child in children}
    if not states:
        return "ONLINE" if place.above == "ONLINE" and place.vclass not in APART else ""
    if "" in states:
        return ""
    bad = sum(child.state not in ("ONLINE", "DEGRADED") for child in children)
    most = len(children) - 1 if kind in ("mirror", *GROUP_KINDS) else parity_of(kind) or 0
    return "UNAVAIL" if bad > most else "ONLINE" if states == {"ONLINE"} else "DEGRADED"


def _counters(node: Node, leaf: bool) -> ErrorCounters:
    return ErrorCounters(
        number(node.get("read_errors")),
        number(node.get("write_errors")),
        number(node.get("checksum_errors")),
        number(node.get("slow_ios")) if leaf else None,
    )


def _leaf_size(node: Node) -> int | None:
    return number(node.get("phys_space")) or number(node.get("rep_dev_size")) or None


def _processed(node: Node, place: VdevPlace) -> int | None:
    """Bytes written by the running scan; JSON lacks those of a rebuild."""
    key = "rebuild_processed" if place.rebuilt and "rebuild_processed" in node else "scan_processed"
    return number(node.get(key, 0))


def _marker(node: Node, place: VdevPlace, context: _Context, deferred: bool) -> str:
    """The marker of an ONLINE leaf; where rebuilt bytes are lacking, the new device has it."""
    if place.rebuilt and count(node, "rebuild_processed"):
        return "(resilvering)"
    is_new = place.rebuilt and place.written and "rebuild_processed" not in node
    marker = scan_marker(context.function, count(node, "scan_processed"), deferred)
    return marker or ("(resilvering)" if is_new else "")


def _former_path(node: Node) -> str | None:
    """The path of a device that is missing."""
    missing = number(node.get("not_present"))
    return str(node.get("was", node.get("path", ""))) if missing else None


def _progress(node: Node, prefix: str, done: str, total: str, zone: tzinfo) -> Progress | None:
    state = f"{prefix}_state"
    if state not in node:
        return None
    time, errors = moment(node.get(f"{prefix}_time"), zone), number(node.get(f"{prefix}_errors"))
    figures = number(node.get(done)), number(node.get(total))
    return progress_of(str(node[state]).lower(), *figures, time, errors)
