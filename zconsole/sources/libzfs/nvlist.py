"""Reading a pool's config nvlist through libnvpair: only the names the decoder asks for.

One ``nvlist_lookup_pairs`` call (module/nvpair/nvpair.c) fetches every field of a vdev that can
move, so that a sample costs a foreign call or two a vdev; the others are kept. Names:
include/sys/fs/zfs.h, ``ZPOOL_CONFIG_*``.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

U64, STRING, U64_ARRAY, NVLIST, NVLIST_ARRAY = 8, 9, 16, 19, 20
"""``data_type_t`` of include/sys/nvpair.h."""

NV_FLAG_NOENTOK = 1
ABSENT = 0xF1E1D0_0DD0_5EED_A5
"""Put into every slot beforehand: a slot that still holds it was not in the nvlist."""

LONGEST_ARRAY = 4096
SHORTEST = {"vdev_stats": 46, "scan_stats": 15, "org.openzfs:rebuild_stats": 12}
"""Lengths of OpenZFS 2.1, the oldest read this way; arrays only ever grew."""

POOL_FIELDS = {
    "name": STRING,
    "comment": STRING,
    "version": U64,
    "state": U64,
    "txg": U64,
    "pool_guid": U64,
    "error_count": U64,
    "suspended": U64,
    "vdev_tree": NVLIST,
}

VDEV_FIELDS = {
    "guid": U64,
    "path": STRING,
    "not_present": U64,
    "vdev_stats": U64_ARRAY,
    "vdev_stats_ex": NVLIST,
    "org.openzfs:rebuild_stats": U64_ARRAY,
    "children": NVLIST_ARRAY,
}
"""What can be another in every sample."""

STILL_FIELDS = {
    "type": STRING,
    "id": U64,
    "devid": STRING,
    "phys_path": STRING,
    "whole_disk": U64,
    "nparity": U64,
    "draid_ndata": U64,
    "draid_nspares": U64,
    "is_log": U64,
    "is_hole": U64,
    "alloc_bias": STRING,
    "ashift": U64,
    "create_txg": U64,
}
"""What a vdev keeps: a change of it is a change of the pool's configuration, which is written to
every disk in a transaction group (``txg``) of its own (vdev_config_dirty, module/zfs/vdev.c)."""

ROOT_FIELDS = {
    "scan_stats": U64_ARRAY,
    "removal_stats": U64_ARRAY,
    "checkpoint_stats": U64_ARRAY,
    "raidz_expand_stats": U64_ARRAY,
    "spares": NVLIST_ARRAY,
    "l2cache": NVLIST_ARRAY,
}

QUEUES = ("sync_r", "sync_w", "async_r", "async_w", "async_scrub", "async_trim", "rebuild")
LEAF_FIELDS = {
    **{f"vdev_{queue}_{part}_queue": U64 for queue in QUEUES for part in ("active", "pend")},
    "vdev_disk_r_lat_histo": U64_ARRAY,
    "vdev_disk_w_lat_histo": U64_ARRAY,
}


class NvlistError(Exception):
    """The nvlist is not as this reader knows it; another source must take over."""


class Lookup:
    """A prepared look-up of many names at once; one buffer, so for one thread only."""

    def __init__(self, lookup_pairs: Callable[..., int], fields: dict[str, int]) -> None:
        self._call = lookup_pairs
        self._plain = tuple(name for name, kind in fields.items() if kind in (U64, NVLIST))
        self._pointers = tuple(item for item in fields.items() if item[0] not in self._plain)
        count = len(fields)
        self._values = (ctypes.c_uint64 * count)()
        self._lengths = (ctypes.c_uint * count)()
        self._seen = memoryview(self._values).cast("B").cast("Q")
        self._blank = array("Q", [ABSENT] * count)
        kinds = [(name, fields[name]) for name in self._plain]
        self._arguments = tuple(self._make_arguments([*kinds, *self._pointers]))

    def _make_arguments(self, fields: list[tuple[str, int]]) -> Iterator[Any]:
        """Name, type, pointer to the slot and, for an array, to its length; then a null."""
        for index, (name, kind) in enumerate(fields):
            yield ctypes.c_char_p(name.encode())
            yield ctypes.c_int(kind)
            yield ctypes.byref(self._values, index * ctypes.sizeof(ctypes.c_uint64))
            if kind in (U64_ARRAY, NVLIST_ARRAY):
                yield ctypes.byref(self._lengths, index * ctypes.sizeof(ctypes.c_uint))
        yield ctypes.c_void_p(None)

    def read(self, nvlist: int) -> dict[str, Any]:
        """The fields present: integers, text, packed arrays; nvlists as addresses.

        Raises NvlistError when the look-up fails or an array has an unlikely length.
        """
        self._seen[:] = self._blank
        status = self._call(ctypes.c_void_p(nvlist), NV_FLAG_NOENTOK, *self._arguments)
        if status != 0:
            raise NvlistError(f"nvlist_lookup_pairs answered {status}")
        values = self._seen.tolist()
        found: dict[str, Any] = {
            name: value for name, value in zip(self._plain, values, strict=False) if value != ABSENT
        }
        for index, (name, kind) in enumerate(self._pointers, len(self._plain)):
            if values[index] != ABSENT:
                found[name] = _fetch(name, kind, values[index], self._lengths[index])
        return found


def _fetch(name: str, kind: int, address: int, length: int) -> str | bytes | list[int]:
    """What a slot points to; raises NvlistError on an array no OpenZFS has."""
    if kind == STRING:
        return ctypes.string_at(address).decode("utf-8", "surrogateescape")
    if not SHORTEST.get(name, 0) <= length <= LONGEST_ARRAY:
        raise NvlistError(f"{name} has {length} entries")
    packed = ctypes.string_at(address, 8 * length)
    return packed if kind == U64_ARRAY else array("Q", packed).tolist()


class Still(NamedTuple):
    """What was read of a vdev once, and what says that it still holds."""

    sign: tuple[Any, ...]
    fields: dict[str, Any]


class ConfigReader:
    """Reads the configs of one pool; for one thread at a time."""

    def __init__(self, lookup_pairs: Callable[..., int]) -> None:
        self._pool = Lookup(lookup_pairs, POOL_FIELDS)
        self._root = Lookup(lookup_pairs, {**VDEV_FIELDS, **ROOT_FIELDS})
        self._vdev = Lookup(lookup_pairs, VDEV_FIELDS)
        self._still = Lookup(lookup_pairs, STILL_FIELDS)
        self._leaf = Lookup(lookup_pairs, LEAF_FIELDS)
        self._txg: object = None
        self._kept: dict[tuple[int | str, int], Still] = {}

    def read(self, config: int) -> dict[str, Any]:
        """A pool's config as plain objects, keyed as in the nvlist; arrays of integers are packed.

        Raises NvlistError when it is not a config as OpenZFS 2.1 and later make it.
        """
        pool = self._pool.read(config)
        if "vdev_tree" not in pool or "pool_guid" not in pool:
            raise NvlistError("the pool's config has no vdev_tree")
        if pool.get("txg") != self._txg:
            self._txg = pool.get("txg")
            self._kept.clear()
        tree = pool["vdev_tree"] = self._read_vdev(pool["vdev_tree"], self._root, 0)
        for group in ("spares", "l2cache"):
            if group in tree:
                tree[group] = [self._read_vdev(each, self._vdev, group) for each in tree[group]]
        return pool

    def _read_vdev(self, address: int, lookup: Lookup, above: int | str) -> dict[str, Any]:
        """A vdev and what is below it; ``above`` is the GUID it hangs from, or its group."""
        found = lookup.read(address)
        guid = found.get("guid")
        if guid is None:
            raise NvlistError("a vdev without type or guid")
        extended = found.pop("vdev_stats_ex", None)
        if "children" in found:
            below = found["children"]
            found["children"] = [self._read_vdev(each, self._vdev, guid) for each in below]
        elif extended is not None:
            found["vdev_stats_ex"] = self._leaf.read(extended)
        sign = found.get("path"), "not_present" in found
        return {**self._still_of(address, (above, guid), sign), **found}

    def _still_of(
        self, address: int, key: tuple[int | str, int], sign: tuple[Any, ...]
    ) -> dict[str, Any]:
        """What the vdev keeps; looked up again when its sign or the configuration changed."""
        kept = self._kept.get(key)
        if kept is not None and kept.sign == sign and key[1]:
            return kept.fields
        fields = self._still.read(address)
        if "type" not in fields:
            raise NvlistError("a vdev without type or guid")
        self._kept[key] = Still(sign, fields)  # but holes, which all have the GUID 0
        return fields
