"""Reading a pool's config out of its packed nvlist: only the names the decoder asks for.

The kernel lays a config out in one piece, as ``nvlist_pack`` does. Where each value lies is found
once: while all bytes between the values stay the same, they lie where they lay. Encoding:
``nvs_native_*`` (module/nvpair/nvpair.c); names: ``ZPOOL_CONFIG_*`` (include/sys/fs/zfs.h).
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
"""``data_type_t`` of include/sys/nvpair.h."""

LONGEST_ARRAY = 4096
SHORTEST = {"vdev_stats": 46, "scan_stats": 15, "org.openzfs:rebuild_stats": 12}
"""Lengths of OpenZFS 2.1, the oldest read this way; arrays only ever grew."""

_POOL_FIELDS = {
    **dict.fromkeys(("name", "comment"), STRING),
    **dict.fromkeys(("version", "state", "txg", "pool_guid", "error_count"), U64),
    **dict.fromkeys(("suspended", "suspended_reason"), U64),
    "vdev_tree": NVLIST,
}

ENCLOSURE = "vdev_enc_sysfs_path"
"""Where a leaf's slot was in /sys when the pool was imported (ZPOOL_CONFIG_VDEV_ENC_SYSFS_PATH)."""

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
"""The one type of metadata that is condensed, but for builds that debug (vdev_label.c, 2.4.99)."""
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
"""Integers that move; where another one changes, everything is located again."""

_HEAD = 12
"""Encoding, byte order and two spare bytes (``nvs_header_t``), version and flags."""
_NATIVE = bytes((0, sys.byteorder == "little"))
_PAIR = Struct("=ihhii")
"""``nvpair_t``: sizes of the pair and of its name, a spare, number of elements, type."""
_END = Struct("=i")
"""Where a pair's size would be, 0: the nvlist ends."""
_DEEPEST = 16


class NvlistError(Exception):
    """The nvlist is not as this reader knows it; another source must take over."""


class ConfigReader:
    """Reads the packed configs of one pool."""

    def __init__(self) -> None:
        self.layout: ConfigLayout | None = None
        """That of the last config; None before the first, and after one that cannot be read."""

    def read(self, packed: memoryview) -> dict[str, Any]:
        """The config as plain objects, keyed as in the nvlist; arrays of integers are packed.

        ``packed`` may be longer than the nvlist. Raises NvlistError when it is not a config as
        OpenZFS 2.1 and later make it.
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
    """One name and value; ``start`` and ``end`` are where the value lies."""

    name: str
    kind: int
    elements: int
    start: int
    end: int


class _Node:
    """One nvlist: what stays of it, where the rest lies, and the nvlists below."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}
        self._names: list[str] = []
        self._codes = ["="]
        self._begin = self._end = 0
        self.below: dict[str, tuple[bool, list[_Node]]] = {}

    def moving(self, pair: _Pair) -> None:
        """Take the value from every sample."""
        if not self._names:
            self._begin = self._end = pair.start
        code = "Q" if pair.kind == U64 else f"{8 * pair.elements}s"
        self._codes.append(f"{pair.start - self._end}x{code}")
        self._names.append(pair.name)
        self._end = pair.start + 8 * pair.elements

    def read(self, packed: memoryview) -> dict[str, Any]:
        """The nvlist with its values of now, and those below it."""
        values = self._values.unpack_from(packed, self._begin)
        found = {**self.kept, **dict(zip(self._names, values, strict=True))}
        for name, (many, nodes) in self.below.items():
            each = [node.read(packed) for node in nodes]
            found[name] = each if many else each[0]
        return found

    @cached_property
    def _values(self) -> Struct:
        """Takes what moves."""
        return Struct("".join(self._codes))


class ConfigLayout(NamedTuple):
    """Where everything lies in a packed config."""

    top: _Node
    between: Struct
    """Takes all that does not move."""
    known: tuple[bytes, ...]
    """What that was."""

    def holds(self, packed: memoryview) -> bool:
        """Whether all that lies between the values is the same."""
        enough = len(packed) >= self.between.size
        return enough and self.between.unpack_from(packed) == self.known


class _Walk:
    """One way through a packed nvlist, pair by pair."""

    def __init__(self, packed: memoryview) -> None:
        if bytes(packed[:2]) != _NATIVE:
            raise NvlistError("the nvlist is packed in another way")
        self._packed = packed
        self._at = _HEAD
        self._deep = 0
        self._spans = [(0, _HEAD)]

    def nvlist(self, fields: Mapping[str, int]) -> _Node:
        """The nvlist that begins here, with those of ``fields`` that it has."""
        node = _Node()
        self._deep += 1
        if self._deep > _DEEPEST:
            raise NvlistError(f"nvlists more than {_DEEPEST} deep")
        while pair := self._pair():
            self._take(node, fields, pair)
        self._deep -= 1
        if "guid" in fields and not {"type", "guid"} <= node.kept.keys():
            raise NvlistError("a vdev without type or guid")
        if "children" in node.below:
            node.below.pop("vdev_stats_ex", None)
        return node

    def between(self) -> Struct:
        """Takes all that does not move."""
        codes, at = ["="], 0
        for start, end in self._spans:
            codes.append(f"{start - at}x{end - start}s")
            at = end
        return Struct("".join(codes))

    def _pair(self) -> _Pair | None:
        """The pair that begins here, with its value passed; None where the nvlist ends."""
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
        """Put a pair where it belongs in ``node``, and pass the nvlists in it."""
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
                # An array no OpenZFS has.
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
        """What is written there, up to its zero byte."""
        text = bytes(self._packed[at : at + size]).partition(b"\0")[0]
        return text.decode("utf-8", "surrogateescape")

    def _stays(self, start: int, end: int) -> None:
        """Bytes that do not move while the layout holds; those right behind others join them."""
        self._at = end
        if self._spans[-1][1] == start:
            start = self._spans.pop()[0]
        self._spans.append((start, end))
