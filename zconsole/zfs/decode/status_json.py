"""``zpool status -j`` documents (OpenZFS 2.3+), with or without -P, -p and --json-int.

Source: status_callback_json and vdev_stats_nvlist in cmd/zpool/zpool_main.c (2.3.9). Sizes and
counters left out by zpool are 0; names are made those that text prints.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo
from typing import Any, NamedTuple

from zconsole.errors import NotUnderstoodError
from zconsole.pool.model import (
    GROUP_KINDS,
    UNKNOWN_KIND,
    ErrorCounters,
    Pool,
    Progress,
    Vdev,
)
from zconsole.zfs.decode.formulas import progress_of
from zconsole.zfs.decode.names import CLASSES, disk_name, draid_shape, kind_of, leaf_kind, parity_of
from zconsole.zfs.decode.scans import (
    active_function,
    activities_of,
    lacks_activity,
    lacks_scan,
    rebuilding,
    scans_of,
)
from zconsole.zfs.decode.tree import with_spares
from zconsole.zfs.decode.values import (
    count,
    damaged_files,
    is_rounded,
    mapping,
    moment,
    number,
    text_of,
    word,
)
from zconsole.zfs.decode.words import note_of, scan_marker, spare_word, state_word, suspension

_GROUPS = ("dedup", "special", "logs", "l2cache", "spares")
"""Siblings of ``vdevs``, in the order text prints them."""

_COMMAND = "zpool status"
_HIDDEN = frozenset({"hole", "indirect"})
APART = frozenset({"cache", "spare"})
"""Classes of devices whose states are not among those that make a pool ONLINE."""
_Node = Mapping[str, Any]


class _Context(NamedTuple):
    """What every vdev of one pool shares."""

    names: Mapping[str, str]
    zone: tzinfo
    function: str | None
    """The active healing scan's function."""
    rebuilding: frozenset[str]
    """Top-level vdevs with an active sequential rebuild."""


class _Place(NamedTuple):
    """Where in the tree a vdev stands."""

    vclass: str
    rebuilt: bool
    """Below a top-level vdev with an active rebuild."""
    above: str = ""
    """The state of the vdev above it."""
    top: bool = True
    written: bool = False
    """A rebuild writes to it: the new device of a replacing or spare group, any of a dRAID, whose
    spare space is spread over all."""


def pools_of(
    document: _Node, now: float | None, names: Mapping[str, str], zone: tzinfo
) -> tuple[tuple[_Node, Pool], ...]:
    """The pools of a document, each with the JSON object it came from.

    ``now``: epoch seconds of the sample, where known; ``names``: leaf path to printed name;
    ``zone``: of the dates that plain ``-j`` prints. Raises NotUnderstoodError when it is no
    status document.
    """
    if not isinstance(document.get("pools"), Mapping):
        raise NotUnderstoodError("not a `zpool status -j` document: no pools")
    command = mapping(document.get("output_version"), "output_version").get("command", _COMMAND)
    if command != _COMMAND:
        raise NotUnderstoodError(f"not a `zpool status -j` document: {command!r} printed it")
    pools = mapping(document["pools"], "pools")
    found = []
    for key, value in pools.items():
        node = mapping(value, f"pool {key!r}")
        if "vdevs" not in node and "state" not in node:
            raise NotUnderstoodError(f"not a `zpool status -j` document: pool {key!r} has no state")
        found.append((node, _pool(key, node, now, names, zone)))
    return tuple(found)


def is_exact(node: _Node) -> bool:
    """Whether a pool's figures are exact: no human-rounded string among scan and space figures."""
    scan = mapping(node.get("scan_stats"), "scan_stats")
    figures = [scan.get(key) for key in ("to_examine", "examined", "issued", "processed")]
    for rebuild in mapping(scan.get("rebuild_stats"), "rebuild_stats").values():
        figures += [rebuild.get("scanned"), rebuild.get("to_scan")]
    for vdev in mapping(node.get("vdevs"), "vdevs").values():
        figures += [vdev.get("alloc_space"), vdev.get("total_space"), vdev.get("rep_dev_size")]
    return not any(is_rounded(figure) for figure in figures)


def _pool(key: str, node: _Node, now: float | None, names: Mapping[str, str], zone: tzinfo) -> Pool:
    name = str(node.get("name", key))
    scan = mapping(node.get("scan_stats"), "scan_stats")
    context = _Context(names, zone, active_function(scan), rebuilding(scan))
    root = _root(name, node, context)
    errors = number(node.get("error_count"))
    state = word(node.get("state"))
    return Pool(
        name=name,
        state=state,
        root=root,
        guid=word(node.get("pool_guid")),
        message=text_of(node.get("status")),
        action=text_of(node.get("action")),
        see=text_of(node.get("moreinfo")) or text_of(node.get("msgid")),
        suspension=suspension(
            state, *(text_of(node.get(key)) for key in ("status", "msgid", "moreinfo"))
        ),
        lacks=_lacks(node, root, errors),
        scans_told=lacks_scan(scan) is None,
        scans=scans_of(scan, now, zone),
        activities=activities_of(node, _removed(node), _expanding(node, root), now, zone),
        error_count=errors,
        errors=damaged_files(node.get("errlist"), errors),
        comment=text_of(node.get("comment")),
    )


def _lacks(pool: _Node, root: Vdev, errors: int | None) -> str | None:
    """Which part is missing of what ``zpool status -j`` prints of every pool."""
    if not (root.children or _has_tree(pool)):
        return "the JSON has no tree of devices"
    if errors is None:
        return "the JSON has no error_count"
    return lacks_scan(mapping(pool.get("scan_stats"), "scan_stats")) or lacks_activity(pool)


def _has_tree(pool: _Node) -> bool:
    """Whether anything is said of what is below the root vdev, if only that there is nothing."""
    vdevs = mapping(pool.get("vdevs"), "vdevs")
    return any("vdevs" in mapping(value, key) for key, value in vdevs.items())


def _removed(pool: _Node) -> str | None:
    """The vdev that goes, or what is left of it, which the document names without its number."""
    node = mapping(pool.get("removal_stats"), "removal_stats")
    name = disk_name(str(node.get("name", "")), None) or None
    return f"indirect-{number(node.get('removing_vdev'))}" if name == "indirect" else name


def _expanding(pool: _Node, root: Vdev) -> str | None:
    """The printed name of the expanding vdev; the document names it without its number."""
    node = mapping(pool.get("raidz_expand_stats"), "raidz_expand_stats")
    suffix = f"-{number(node.get('expanding_vdev'))}"
    for child in root.children:
        if child.kind.startswith("raidz") and child.name.endswith(suffix):
            return child.name
    return str(node["name"]) if "name" in node else None


def _root(pool: str, node: _Node, context: _Context) -> Vdev:
    vdevs = mapping(node.get("vdevs"), "vdevs")
    key, top = _root_node(pool, vdevs)
    if _is_flat(vdevs, key):
        vdevs = _nested(vdevs)
        top = mapping(vdevs.get(key), key)
    groups = [("normal", mapping(top.get("vdevs"), key))]
    groups += [(CLASSES[group], mapping(node.get(group), group)) for group in _GROUPS]
    if "parent" in top or any("parent" in mapping(v, k) for k, v in vdevs.items()):
        groups = _by_class(groups, vdevs, key)
    aux = str(top.get("aux", ""))
    state = state_word(str(top.get("state", node.get("state", "UNKNOWN"))), aux)
    children = [vdev for vclass, nodes in groups for vdev in _vdevs(nodes, vclass, state, context)]
    return Vdev(
        name=pool,
        kind="root",
        state=state,
        guid=word(top.get("guid")),
        note=note_of(aux=aux),
        errors=_counters(top, leaf=False),
        alloc_bytes=number(top.get("alloc_space", 0)) if top else None,
        size_bytes=number(top.get("total_space")),
        children=with_spares(tuple(children)),
    )


def _root_node(pool: str, vdevs: _Node) -> tuple[str, _Node]:
    """The root vdev's key and object: the one typed root, else the one named as the pool."""
    for key, value in vdevs.items():
        if mapping(value, key).get("vdev_type") == "root":
            return key, value
    return pool, mapping(vdevs.get(pool), pool)


def _is_flat(vdevs: _Node, root: str) -> bool:
    return len(vdevs) > 1 and any("parent" in mapping(v, k) for k, v in vdevs.items() if k != root)


def _nested(vdevs: _Node) -> dict[str, dict[str, Any]]:
    """The objects of ``--json-flat-vdevs`` with children put back below their ``parent``."""
    nodes = {key: {**mapping(value, key), "vdevs": {}} for key, value in vdevs.items()}
    for key, node in nodes.items():
        parent = nodes.get(str(node.get("parent")))
        if parent is not None and parent is not node:
            parent["vdevs"][key] = node
    return nodes


def _by_class(groups: list[tuple[str, _Node]], vdevs: _Node, root: str) -> list[tuple[str, _Node]]:
    """Groups of a flat document, which merges the classes into ``vdevs``."""
    sorted_in: dict[str, dict[str, Any]] = {vclass: dict(nodes) for vclass, nodes in groups}
    normal = sorted_in["normal"]
    for key, value in vdevs.items():
        parent, vclass = str(value.get("parent", root)), str(value.get("class", "normal"))
        vclass = CLASSES.get(vclass, vclass)
        if key == root or (parent not in (root, "root-0") and parent in vdevs):
            continue
        if vclass in sorted_in and vclass != "normal":
            normal.pop(key, None)
            sorted_in[vclass].setdefault(key, value)
        else:
            normal.setdefault(key, value)
    return list(sorted_in.items())


def _vdevs(nodes: _Node, vclass: str, above: str, context: _Context) -> Iterator[Vdev]:
    for key, value in nodes.items():
        node = mapping(value, key)
        if node.get("vdev_type") not in _HIDDEN and kind_of(key) not in _HIDDEN:
            active = str(node.get("name", key)) in context.rebuilding
            yield _vdev(key, node, _Place(vclass, active, above), context)


def _vdev(key: str, node: _Node, place: _Place, context: _Context) -> Vdev:
    name, kind = _identity(key, node, context.names)
    below = mapping(node.get("vdevs"), key)
    leaf, spare = not below, place.vclass == "spare"
    errors = ErrorCounters() if spare else _counters(node, leaf)
    children = _children(below, _below(place, kind, node), kind in GROUP_KINDS, context)
    state = _state(node, spare) or _derived_state(kind, children, place)
    marker = _marker(node, state, place, context) if leaf else ""
    shape = draid_shape(name)
    space = number(node.get("total_space")) if place.top else None
    deferred = leaf and bool(count(node, "resilver_deferred"))
    return Vdev(
        name=name,
        kind=kind,
        vclass=place.vclass,
        state=state,
        guid=word(node.get("guid")),
        path=word(node.get("path")),
        note=_note(node, marker, leaf, errors),
        errors=errors,
        resilvering=marker == "(resilvering)",
        awaiting_resilver=deferred and marker != "(resilvering)",
        removing=bool(count(node, "removing")),
        alloc_bytes=number(node.get("alloc_space", 0)) if space else None,
        size_bytes=space or (_leaf_size(node) if leaf else None),
        scan_processed=number(node.get("scan_processed", 0)) if leaf and not spare else None,
        ashift=number(node.get("configured_ashift")),
        physical_ashift=number(node.get("physical_ashift")),
        nparity=parity_of(kind),
        data_disks=shape.data if shape else None,
        width=shape.width if shape else None,
        failure_group=shape.group if shape else None,
        initialize=_progress(node, "init", "initialized", "to_initialize", context.zone),
        trim=_progress(node, "trim", "trimmed", "to_trim", context.zone),
        phys_path=word(node.get("phys_path")),
        devid=word(node.get("devid")),
        allocating=_allocating(node) if place.top and not spare else None,
        children=children,
    )


def _allocating(node: _Node) -> bool:
    """Nothing new goes to a vdev that is leaving, of which zpool says only that it does."""
    return not (count(node, "noalloc") or count(node, "removing"))


def _state(node: _Node, spare: bool) -> str:
    if "state" not in node:
        return ""
    aux, state = str(node.get("aux", "")), str(node["state"])
    return spare_word(state, aux) if spare else state_word(state, aux)


def _derived_state(kind: str, children: Sequence[Vdev], place: _Place) -> str:
    """The state of a vdev that has none in the document, "" where nothing tells it.

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


def _below(place: _Place, kind: str, node: _Node) -> _Place:
    above = _state(node, spare=False) or place.above
    written = place.written or kind.startswith("draid")
    return place._replace(top=False, written=written, above=above)


def _children(nodes: _Node, place: _Place, group: bool, context: _Context) -> tuple[Vdev, ...]:
    """The vdevs below one; in a replacing or spare group the last device is the new one."""
    last = len(nodes) - 1
    places = (place._replace(written=i == last) if group else place for i in range(len(nodes)))
    return tuple(
        _vdev(key, mapping(node, key), each, context)
        for (key, node), each in zip(nodes.items(), places, strict=True)
    )


def _identity(key: str, node: _Node, names: Mapping[str, str]) -> tuple[str, str]:
    """Printed name and kind; both from the key where zpool's own lookup failed (2.3.0-2.3.2)."""
    given, path = str(node.get("name", key)), node.get("path")
    named = kind_of(given)
    of_name = UNKNOWN_KIND if node.get("vdevs") else leaf_kind(given)
    kind = str(node.get("vdev_type") or named or of_name)
    if kind in ("raidz", "draid"):
        kind = named or f"{kind}1"
    if number(node.get("not_present")) or kind != "disk":
        return names.get(str(path), given) if kind in ("file", "disk") else given, kind
    if path is not None and str(path) in names:
        return names[str(path)], kind
    return disk_name(given, None) if given.startswith("/") else given, kind


def _counters(node: _Node, leaf: bool) -> ErrorCounters:
    return ErrorCounters(
        number(node.get("read_errors")),
        number(node.get("write_errors")),
        number(node.get("checksum_errors")),
        number(node.get("slow_ios")) if leaf else None,
    )


def _leaf_size(node: _Node) -> int | None:
    return number(node.get("phys_space")) or number(node.get("rep_dev_size"))


def _marker(node: _Node, state: str, place: _Place, context: _Context) -> str:
    """The marker text prints; JSON lacks the rebuilt bytes, so that the new device has it."""
    if state != "ONLINE":
        return ""
    processed = count(node, "scan_processed")
    deferred = bool(count(node, "resilver_deferred"))
    marker = scan_marker(context.function, processed, deferred)
    return marker or ("(resilvering)" if place.rebuilt and place.written else "")


def _note(node: _Node, marker: str, leaf: bool, errors: ErrorCounters) -> str:
    if node.get("used_by"):
        return f"in use by pool '{node['used_by']}'"
    missing = number(node.get("not_present"))
    return note_of(
        aux=str(node.get("aux", "")),
        was=str(node.get("was", node.get("path", ""))) if missing else None,
        slow_only=leaf and errors.total == 0 and bool(errors.slow),
        ashifts=(count(node, "configured_ashift"), count(node, "physical_ashift")),
        removing=bool(count(node, "removing")),
        allocating=not count(node, "noalloc"),
        marker=marker,
        initializing=node.get("init_state") == "ACTIVE",
        trimming=node.get("trim_state") == "ACTIVE",
    )


def _progress(node: _Node, prefix: str, done: str, total: str, zone: tzinfo) -> Progress | None:
    time, errors = moment(node.get(f"{prefix}_time"), zone), number(node.get(f"{prefix}_errors"))
    state = str(node.get(f"{prefix}_state")).lower()
    return progress_of(state, number(node.get(done)), number(node.get(total)), time, errors)
