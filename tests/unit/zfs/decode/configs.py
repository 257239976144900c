"""Config nvlists, built from parts that a test gives, and the pools decoded from them."""

from __future__ import annotations

from array import array
from typing import Any

from zconsole.pool.model import Pool, Sample
from zconsole.zfs.decode import decode

START = 1795168000
MIB = 1024**2


def stats(length: int = 48, **at: int) -> list[int]:
    """Return a ``vdev_stats`` array: ONLINE, with the elements ``_N=value`` set."""
    values = [0] * length
    values[1] = 7
    for key, value in at.items():
        values[int(key[1:])] = value
    return values


def disk(name: str = "sda", **more: Any) -> dict[str, Any]:
    path = f"/dev/disk/by-id/{name}-part1"
    node = {"type": "disk", "id": 0, "guid": 1, "path": path, "whole_disk": 1}
    return {**node, "vdev_stats": stats(), **more}


def top(kind: str = "mirror", index: int = 0, **more: Any) -> dict[str, Any]:
    node = {"type": kind, "id": index, "guid": 10 + index, "vdev_stats": stats(_3=5, _4=10)}
    return {**node, "children": [disk("sda"), disk("sdb", guid=2)], **more}


def config(*tops: dict[str, Any], **tree: Any) -> dict[str, Any]:
    root = {"type": "root", "id": 0, "guid": 9, "vdev_stats": stats(_3=5, _4=10), **tree}
    return {"name": "tank", "pool_guid": 9, "vdev_tree": {**root, "children": list(tops)}}


def packed(node: Any) -> Any:
    """Return a config with valid arrays in the form in which libzfs gives them."""
    if isinstance(node, dict):
        return {key: packed(value) for key, value in node.items()}
    if not isinstance(node, list) or (node and isinstance(node[0], dict)):
        return [packed(each) for each in node] if isinstance(node, list) else node
    sound = all(isinstance(n, int) and 0 <= n < 1 << 64 for n in node)
    return array("Q", node).tobytes() if sound else node


def read(found: dict[str, Any], now: float = START + 100.0, **more: Any) -> Pool:
    (sample,) = decode({"t": now, "libzfs": found, **more})  # type: ignore[typeddict-item]
    assert isinstance(sample, Sample)
    assert sample.exact
    (same,) = decode({"t": now, "libzfs": packed(found), **more})  # type: ignore[typeddict-item]
    assert same == sample
    return sample.pool
