"""Reads a pool's config from its packed nvlist: only the names that the decoder needs.

The kernel lays a config out in one piece, as ``nvlist_pack`` does. Each value is located once: as
long as all bytes between the values stay the same, the values are still in the same places.
Encoding: ``nvs_native_*`` (module/nvpair/nvpair.c); names: ``ZPOOL_CONFIG_*``
(include/sys/fs/zfs.h).
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Mapping
from functools import cached_property
from struct import Struct
from typing import Any, NamedTuple

from zconsole.zfs.raw import HISTOGRAMS, QUEUES

U64, STRING, U64_ARRAY, NVLIST, NVLIST_ARRAY = 8, 9, 16, 19, 20
"""Values of ``data_type_t`` in include/sys/nvpair.h."""

LONGEST_ARRAY = 4096
"""Most elements of an array; a longer one is damage."""
SHORTEST = {"vdev_stats": 46, "scan_stats": 15, "org.openzfs:rebuild_stats": 12}
"""Lengths in OpenZFS 2.1, the oldest release read this way; the arrays only ever grew."""

_POOL_FIELDS = {
    **dict.fromkeys(("name", "comment"), STRING),
    **dict.fromkeys(("version", "state", "txg", "pool_guid", "error_count"), U64),
    **dict.fromkeys(("suspended", "suspended_reason"), U64),
    "vdev_tree": NVLIST,
}

ENCLOSURE = "vdev_enc_sysfs_path"
"""Path in /sys of a leaf's slot when the pool was imported (ZPOOL_CONFIG_VDEV_ENC_SYSFS_PATH)."""

_VDEV_WORDS = ("type", "path", "devid", "phys_path", "alloc_bias", ENCLOSURE)
_VDEV_NUMBERS = (
    *("id", "guid", "whole_disk", "not_present", "nparity", "draid_ndata", "draid_nspares"),
    *(
        "draid_nchildren",
        "is_log",
        "is_hole",
        "ashift",
        "create_txg",
        "resilver_txg",
        "rebuild_txg",
    ),
)
_VDEV_FIELDS = {
    **dict.fromkeys(_VDEV_WORDS, STRING),
    **dict.fromkeys(_VDEV_NUMBERS, U64),
    **dict.fromkeys(("vdev_stats", "org.openzfs:rebuild_stats"), U64_ARRAY),
    "vdev_stats_ex": NVLIST,
    "children": NVLIST_ARRAY,
}

_CONDENSE = "com.klarasystems:condense_stats"
_CONDENSED = "log_spacemap"
"""The only type of metadata that is condensed, except in debug builds (vdev_label.c, 2.4.99)."""
_CONDENSE_FIELDS = dict.fromkeys(("start_time", "end_time", "processed", "total"), U64)

_ROOT_STATS = ("scan_stats", "removal_stats", "checkpoint_stats", "raidz_expand_stats")
_ROOT_FIELDS = {
    **_VDEV_FIELDS,
    **dict.fromkeys(_ROOT_STATS, U64_ARRAY),
    **dict.fromkeys(("spares", "l2cache"), NVLIST_ARRAY),
    _CONDENSE: NVLIST,
}

_LEAF_FIELDS = {
    **{name: U64 for pair in QUEUES.values() for name in pair},
    **dict.fromkeys(HISTOGRAMS.values(), U64_ARRAY),
}

_FIELDS_BELOW: Mapping[str, Mapping[str, int]] = {
    "vdev_tree": _ROOT_FIELDS,
    "children": _VDEV_FIELDS,
    "spares": _VDEV_FIELDS,
    "l2cache": _VDEV_FIELDS,
    "vdev_stats_ex": _LEAF_FIELDS,
    _CONDENSE: {_CONDENSED: NVLIST},
    _CONDENSED: _CONDENSE_FIELDS,
}
_MOVING = {"txg", "error_count", *_LEAF_FIELDS, *_CONDENSE_FIELDS}
"""Integers that change between samples; if any other changes, all values are located again."""

_HEAD = 12
"""Length of the header: encoding, byte order and two spare bytes (``nvs_header_t``), version and
flags."""
_NATIVE = bytes((0, sys.byteorder == "little"))
"""The first two bytes: native encoding, and this machine's byte order."""
_PAIR = Struct("=ihhii")
"""``nvpair_t``: size of the pair and of its name, a reserved field, number of elements, type."""
_END = Struct("=i")
"""A size of 0 in place of a pair's size ends the nvlist."""
_DEEPEST = 16
"""Levels of nested nvlists, more than a config has."""


class NvlistError(Exception):
    """The nvlist is not in the expected format; another source must take over."""


class ConfigReader:
    """Reads the packed configs of one pool."""

    def __init__(self) -> None:
        self.layout: ConfigLayout | None = None
        """Layout of the last config; None before the first, and after one that cannot be read."""

    def read(self, packed: memoryview) -> dict[str, Any]:
        """Return the config as plain objects, keyed as in the nvlist.

        Arrays of integers are packed. ``packed`` may be longer than the nvlist. Raises NvlistError
        if it is not a config as written by OpenZFS 2.1 and later.
        """
        layout = self.layout
        if layout is None or not layout.holds(packed):
            self.layout = None
            try:
                walk = _Walk(packed)
                top = walk.nvlist(_POOL_FIELDS)
                between = walk.between()
            except struct.error as error:
                raise NvlistError(f"no packed nvlist: {error}") from None
            if "vdev_tree" not in top.below or "pool_guid" not in top.kept:
                raise NvlistError("the pool's config has no vdev_tree")
            self.layout = layout = ConfigLayout(top, between, between.unpack_from(packed))
        return layout.top.read(packed)


class _Pair(NamedTuple):
    """One name and value; ``start`` and ``end`` are the offsets of the value."""

    name: str
    kind: int
    elements: int
    start: int
    end: int


class _Node:
    """One nvlist: its constant values, the offsets of the others, and the nvlists below it."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}
        self._names: list[str] = []
        self._codes = ["="]
        self._begin = self._end = 0
        self.below: dict[str, tuple[bool, list[_Node]]] = {}

    def moving(self, pair: _Pair) -> None:
        """Register a value that is read from every sample."""
        if not self._names:
            self._begin = self._end = pair.start
        code = "Q" if pair.kind == U64 else f"{8 * pair.elements}s"
        self._codes.append(f"{pair.start - self._end}x{code}")
        self._names.append(pair.name)
        self._end = pair.start + 8 * pair.elements

    def read(self, packed: memoryview) -> dict[str, Any]:
        """Return the nvlist with its current values, and those below it."""
        values = self._values.unpack_from(packed, self._begin)
        found = {**self.kept, **dict(zip(self._names, values, strict=True))}
        for name, (many, nodes) in self.below.items():
            each = [node.read(packed) for node in nodes]
            found[name] = each if many else each[0]
        return found

    @cached_property
    def _values(self) -> Struct:
        """Unpacks the values that change."""
        return Struct("".join(self._codes))


class ConfigLayout(NamedTuple):
    """Layout of a packed config: where each value lies."""

    top: _Node
    between: Struct
    """Unpacks all bytes that must not change."""
    known: tuple[bytes, ...]
    """The bytes that ``between`` unpacked when the layout was made."""

    def holds(self, packed: memoryview) -> bool:
        """Return whether all bytes between the values are unchanged."""
        enough = len(packed) >= self.between.size
        return enough and self.between.unpack_from(packed) == self.known


class _Walk:
    """One pass through a packed nvlist, pair by pair."""

    def __init__(self, packed: memoryview) -> None:
        if bytes(packed[:2]) != _NATIVE:
            raise NvlistError("the nvlist is packed in another way")
        self._packed = packed
        self._at = _HEAD
        self._deep = 0
        self._spans = [(0, _HEAD)]

    def nvlist(self, fields: Mapping[str, int]) -> _Node:
        """Read the nvlist that begins here, with those of ``fields`` that it has."""
        node = _Node()
        self._deep += 1
        if self._deep > _DEEPEST:
            raise NvlistError(f"nvlists more than {_DEEPEST} deep")
        while pair := self._pair():
            self._take(node, fields, pair)
        self._deep -= 1
        if "guid" in fields and not {"type", "guid"} <= node.kept.keys():
            raise NvlistError("a vdev without type or guid")
        # Only the queues and histograms of leaves are used.
        if "children" in node.below:
            node.below.pop("vdev_stats_ex", None)
        return node

    def between(self) -> Struct:
        """Return the struct that unpacks all bytes that must not change."""
        codes, at = ["="], 0
        for start, end in self._spans:
            codes.append(f"{start - at}x{end - start}s")
            at = end
        return Struct("".join(codes))

    def _pair(self) -> _Pair | None:
        """Read the pair that begins here and move past it; return None at the end of the nvlist."""
        begin = self._at
        if not _END.unpack_from(self._packed, begin)[0]:
            self._stays(begin, begin + _END.size)
            return None
        size, name_size, _, count, kind = _PAIR.unpack_from(self._packed, begin)
        head = (_PAIR.size + name_size + 7) & ~7  # NV_ALIGN
        start, end = begin + head, begin + size
        least = start + 8 * (count if kind in (U64, U64_ARRAY) else 0)
        if name_size < 1 or count < (kind == U64) or not least <= end <= len(self._packed):
            raise NvlistError(f"an odd pair at {begin}")
        self._stays(begin, start)
        self._at = end
        return _Pair(self._text(begin + _PAIR.size, name_size), kind, count, start, end)

    def _take(self, node: _Node, fields: Mapping[str, int], pair: _Pair) -> None:
        """Store a pair in ``node`` if it is wanted, and read or skip the nvlists in it."""
        wanted = fields.get(pair.name)
        if wanted not in (None, pair.kind):
            raise NvlistError(f"{pair.name} is of type {pair.kind}")
        if pair.kind in (NVLIST, NVLIST_ARRAY):
            many = pair.kind == NVLIST_ARRAY
            below = _FIELDS_BELOW[pair.name] if wanted else {}
            nodes = [self.nvlist(below) for _ in range(pair.elements if many else 1)]
            if wanted:
                node.below[pair.name] = many, nodes
        elif wanted == U64_ARRAY or (wanted and pair.name in _MOVING):
            least = SHORTEST.get(pair.name, 0)
            if pair.kind == U64_ARRAY and not least <= pair.elements <= LONGEST_ARRAY:
                # No OpenZFS has an array of this length.
                raise NvlistError(f"{pair.name} has {pair.elements} entries")
            node.moving(pair)
        elif wanted:
            self._stays(pair.start, pair.end)
            if pair.kind == STRING:
                node.kept[pair.name] = self._text(pair.start, pair.end - pair.start)
            else:
                number = self._packed[pair.start : pair.start + 8]
                node.kept[pair.name] = int.from_bytes(number, sys.byteorder)

    def _text(self, at: int, size: int) -> str:
        """Decode the text at an offset, up to its zero byte."""
        text = bytes(self._packed[at : at + size]).partition(b"\0")[0]
        return text.decode("utf-8", "surrogateescape")

    def _stays(self, start: int, end: int) -> None:
        """Mark bytes as constant while the layout holds; adjacent ranges are merged."""
        self._at = end
        if self._spans[-1][1] == start:
            start = self._spans.pop()[0]
        self._spans.append((start, end))
