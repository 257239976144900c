"""Decodes ``zpool status -j`` documents (OpenZFS 2.3+), with or without -P, -p and --json-int.

Source: status_callback_json and vdev_stats_nvlist in cmd/zpool/zpool_main.c (2.3.9). Sizes and
counters that zpool omits are 0; names are converted to those that text output has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo
from functools import partial
from typing import Any

from zconsole.errors import NotUnderstoodError
from zconsole.pool.model import UNKNOWN_KIND, Pool, Progress, Scan, Vdev
from zconsole.units import parse_size
from zconsole.zfs.decode.builders import (
    NUMBERS,
    Devices,
    Figures,
    Node,
    VdevForm,
    pool_of,
    root_of,
)
from zconsole.zfs.decode.scans import progress_of, scans_of, work_of
from zconsole.zfs.decode.values import (
    CLASSES,
    disk_name,
    kind_of,
    leaf_kind,
    mapping,
    moment,
    number,
    word,
)

_LEFT_OUT = dict.fromkeys(("alloc_space", "noalloc", "scan_processed"), 0)
"""Numbers that zpool prints only if they are not 0."""
_PROGRESS = {
    "initialize": ("init", "initialized", "to_initialize"),
    "trim": ("trim", "trimmed", "to_trim"),
}
"""Prefix of the keys of state and time; keys of bytes done and total bytes."""
_WORDS = ("guid", "path", "phys_path", "devid")
_GROUPS = ("dedup", "special", "logs", "l2cache", "spares")
"""Keys next to ``vdevs``, in the order in which text prints these classes."""

_COMMAND = "zpool status"
_HIDDEN = frozenset({"hole", "indirect"})


def pools_of(
    document: Node, now: float | None, devices: Devices, zone: tzinfo
) -> tuple[tuple[Pool, bool], ...]:
    """Decode the pools of a document, each with whether its figures are exact.

    ``now`` is the time of the sample in epoch seconds, if known; ``zone`` that of the dates printed
    by plain ``-j``. Raises NotUnderstoodError if it is not a status document.
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
        scans = scans_of(mapping(node.get("scan_stats"), "scan_stats"), now, zone)
        root = _root(str(node.get("name", key)), node, scans, devices, zone)
        stated = work_of(node, scans, now, _moving(node, root), zone)
        stated["lacks"] = _lacks(node, root) or stated["lacks"]
        found.append((pool_of(node, root, stated), _is_exact(node)))
    return tuple(found)


def _is_exact(node: Node) -> bool:
    """Return whether no scan or space figure of a pool is a rounded, human-readable string."""
    scan = mapping(node.get("scan_stats"), "scan_stats")
    figures = [scan.get(key) for key in ("to_examine", "examined", "issued", "processed")]
    for rebuild in mapping(scan.get("rebuild_stats"), "rebuild_stats").values():
        figures += [rebuild.get("scanned"), rebuild.get("to_scan")]
    for vdev in mapping(node.get("vdevs"), "vdevs").values():
        figures += [vdev.get("alloc_space"), vdev.get("total_space"), vdev.get("rep_dev_size")]
    printed = (figure for figure in figures if isinstance(figure, str) and not figure.isdigit())
    return all(parse_size(figure) is None for figure in printed)


def _lacks(pool: Node, root: Vdev) -> str | None:
    """Return which part is missing that ``zpool status -j`` prints for every pool."""
    vdevs = mapping(pool.get("vdevs"), "vdevs")
    # A ``vdevs`` key with nothing below the root also counts as complete.
    has_tree = any("vdevs" in mapping(value, key) for key, value in vdevs.items())
    if not (root.children or has_tree):
        return "the JSON has no tree of devices"
    if number(pool.get("error_count")) is None:
        return "the JSON has no error_count"
    return None


def _moving(pool: Node, root: Vdev) -> tuple[str | None, str | None]:
    """Return the names of the vdev being removed, or its remains, and of the expanding one.

    The document names groups without their numbers.
    """
    removal, expansion = (
        mapping(pool.get(key), key) for key in ("removal_stats", "raidz_expand_stats")
    )
    gone = disk_name(str(removal.get("name", "")), None) or None
    if gone in ("indirect", "mirror"):
        gone = f"{gone}-{number(removal.get('removing_vdev'))}"
    suffix = f"-{number(expansion.get('expanding_vdev'))}"
    raidz = (v.name for v in root.children if v.kind.startswith("raidz"))
    named = str(expansion["name"]) if "name" in expansion else None
    return gone, next((name for name in raidz if name.endswith(suffix)), named)


def _root(pool: str, node: Node, scans: Sequence[Scan], devices: Devices, zone: tzinfo) -> Vdev:
    vdevs = mapping(node.get("vdevs"), "vdevs")
    # The root by its type, else the vdev named like the pool.
    typed = (k for k, v in vdevs.items() if mapping(v, k).get("vdev_type") == "root")
    key = next(typed, pool)
    top = mapping(vdevs.get(key), key)
    if len(vdevs) > 1 and any("parent" in mapping(v, k) for k, v in vdevs.items() if k != key):
        vdevs = _nested(vdevs)
        top = mapping(vdevs.get(key), key)
    groups = [("normal", mapping(top.get("vdevs"), key))]
    groups += [(CLASSES[group], mapping(node.get(group), group)) for group in _GROUPS]
    if "parent" in top or any("parent" in mapping(v, k) for k, v in vdevs.items()):
        groups = _by_class(groups, vdevs, key)

    figures, stated = _figures(top), {"guid": word(top.get("guid"))}
    figures = figures._replace(state=str(top.get("state", node.get("state", "UNKNOWN"))))
    if not top:
        figures = figures._replace(alloc_space=None)
    shown = ((vclass, list(_shown(nodes))) for vclass, nodes in groups)
    read = partial(_vdev, names=devices.names, zone=zone)
    return root_of(VdevForm(pool, "root", (), figures, stated), shown, read, devices, scans)


def _vdev(keyed: tuple[str, Node], names: Mapping[str, str], zone: tzinfo) -> VdevForm:
    key, node = keyed[0], mapping(keyed[1], keyed[0])
    below = mapping(node.get("vdevs"), key).items()
    stated: dict[str, Any] = {name: word(node.get(name)) for name in _WORDS}
    for name, (prefix, *amounts) in _PROGRESS.items():
        if f"{prefix}_state" in node:
            stated[name] = _progress(node, prefix, amounts, zone)
    if (unsupported := number(node.get("trim_notsup"))) is not None:
        stated["trimmable"] = not unsupported
    if node.get("used_by"):
        stated["note"] = f"in use by pool '{node['used_by']}'"
    return VdevForm(*_identity(key, node, names), below, _figures(node), stated)


def _figures(node: Node) -> Figures:
    missing = number(node.get("not_present"))
    return Figures(
        str(node["state"]) if "state" in node else "",
        str(node.get("aux", "")),
        str(node.get("was", node.get("path", ""))) if missing else None,
        *(number(node.get(name, _LEFT_OUT.get(name))) for name in NUMBERS),
    )


def _progress(node: Node, prefix: str, amounts: Sequence[str], zone: tzinfo) -> Progress | None:
    done, total = (number(node.get(key)) for key in amounts)
    state, time = str(node[f"{prefix}_state"]).lower(), moment(node.get(f"{prefix}_time"), zone)
    return progress_of(state, done, total, time)


def _shown(nodes: Node) -> Iterator[tuple[str, Node]]:
    for key, value in nodes.items():
        node = mapping(value, key)
        if node.get("vdev_type") not in _HIDDEN and kind_of(key) not in _HIDDEN:
            yield key, node


def _nested(vdevs: Node) -> dict[str, dict[str, Any]]:
    """Move the objects of ``--json-flat-vdevs`` back below their ``parent``."""
    nodes = {key: {**mapping(value, key), "vdevs": {}} for key, value in vdevs.items()}
    for key, node in nodes.items():
        parent = nodes.get(str(node.get("parent")))
        if parent is not None and parent is not node:
            parent["vdevs"][key] = node
    return nodes


def _by_class(groups: list[tuple[str, Node]], vdevs: Node, root: str) -> list[tuple[str, Node]]:
    """Split a flat document, which merges all classes into ``vdevs``, into its groups."""
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


def _identity(key: str, node: Node, names: Mapping[str, str]) -> tuple[str, str]:
    """Return printed name and kind, from the key where zpool's lookup failed (2.3.0 to 2.3.2)."""
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
