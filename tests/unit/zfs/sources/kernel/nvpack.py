"""``nvlist_pack`` in Python: the native encoding of module/nvpair/nvpair.c."""

from __future__ import annotations

import struct
import sys
from typing import Any

from zconsole.zfs.sources.kernel.nvlist import NVLIST, NVLIST_ARRAY, STRING, U64, U64_ARRAY

BOOLEAN = 1
STATS = list(range(48))


def vdev(guid: int, **more: Any) -> dict[str, Any]:
    """Return a disk."""
    return {"type": "disk", "guid": guid, "vdev_stats": STATS, **more}


def pool(*disks: dict[str, Any], root: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Return a pool's config: ``root`` is added to the tree, ``more`` to the pool."""
    tree = {"type": "root", "guid": 42, "vdev_stats": STATS, **(root or {}), "children": [*disks]}
    return {"name": "tank", "pool_guid": 42, "txg": 2**63, "vdev_tree": tree, **more}


def pack(content: dict[str, Any]) -> memoryview:
    """Pack integers, text, lists of integers, True, and nested dictionaries as an nvlist."""
    return memoryview(bytes((0, sys.byteorder == "little", 0, 0)) + bytes(8) + _pairs(content))


def _pairs(content: dict[str, Any]) -> bytes:
    return b"".join(_pair(name, value) for name, value in content.items()) + bytes(4)


def _pair(name: str, value: Any) -> bytes:
    kind, count, body, below = _value(value)
    title = _aligned(struct.pack("=ihhii", 0, len(name) + 1, 0, count, kind) + name.encode())
    size = len(title) + len(_aligned(body, 0))
    return size.to_bytes(4, sys.byteorder) + title[4:] + _aligned(body, 0) + below


def _value(value: Any) -> tuple[int, int, bytes, bytes]:
    """Return type, number of elements, the data in the pair, and the data after it."""
    if value is True:
        return BOOLEAN, 0, b"", b""
    if isinstance(value, int):
        return U64, 1, struct.pack("=Q", value), b""
    if isinstance(value, str):
        return STRING, 1, value.encode("utf-8", "surrogateescape") + b"\0", b""
    if isinstance(value, dict):
        return NVLIST, 1, bytes(24), _pairs(value)
    if value and isinstance(value[0], dict):
        return NVLIST_ARRAY, len(value), bytes(32 * len(value)), b"".join(map(_pairs, value))
    return U64_ARRAY, len(value), struct.pack(f"={len(value)}Q", *value), b""


def _aligned(data: bytes, more: int = 1) -> bytes:
    """Pad to a multiple of eight bytes, after ``more`` zeros."""
    return data + bytes(more) + bytes(-(len(data) + more) % 8)
