from __future__ import annotations

import ctypes
from typing import Any

import pytest

from zconsole.sources.libzfs import nvlist
from zconsole.sources.libzfs.library import Library, LibraryUnusableError, LibzfsPool
from zconsole.sources.libzfs.nvlist import NvlistError, prepare, read_config

STATS = list(range(48))


class FakeNvpair:
    """nvlist_lookup_pairs over dicts: the prototype of include/libnvpair.h, on real memory."""

    def __init__(self) -> None:
        self.nvlists: dict[int, dict[str, Any]] = {}
        self._kept: list[Any] = []

    def add(self, content: dict[str, Any]) -> int:
        address = 0x1000 + len(self.nvlists)
        self.nvlists[address] = content
        return address

    def lookup_pairs(self, address, flag, *arguments):
        content = self.nvlists[address.value]
        words = iter(arguments)
        for name in words:
            if name.value is None:
                return 0
            kind, slot = next(words).value, next(words)
            many = kind in (nvlist.U64_ARRAY, nvlist.NVLIST_ARRAY)
            length = next(words) if many else None
            value = content.get(name.value.decode())
            if value is not None:
                self._store(slot, length, kind, value)
        raise AssertionError("the arguments do not end in a null pointer")

    def _store(self, slot, length, kind, value):
        if kind == nvlist.STRING:
            value = self._keep(ctypes.create_string_buffer(value.encode()))
        elif length is not None:
            ctypes.cast(length, ctypes.POINTER(ctypes.c_uint))[0] = len(value)
            value = self._keep((ctypes.c_uint64 * len(value))(*value))
        ctypes.cast(slot, ctypes.POINTER(ctypes.c_uint64))[0] = value

    def _keep(self, memory):
        self._kept.append(memory)
        return ctypes.addressof(memory)


def a_pool(fake: FakeNvpair, **leaf: Any) -> int:
    queues = fake.add({"vdev_rebuild_active_queue": 3, "vdev_disk_r_lat_histo": [1, 2, 3]})
    content = {"type": "disk", "guid": 7, "path": "/dev/sda1", "vdev_stats": STATS}
    disk = fake.add({**content, "vdev_stats_ex": queues, **leaf})
    spare = fake.add({"type": "disk", "guid": 9, "path": "/dev/sdz1", "vdev_stats": STATS})
    tree = {"type": "root", "guid": 42, "vdev_stats": STATS, "scan_stats": list(range(22))}
    root = fake.add({**tree, "children": [disk], "spares": [spare]})
    return fake.add({"name": "tank", "pool_guid": 42, "txg": 2**63, "vdev_tree": root})


def test_a_config_is_read_with_the_names_of_the_nvlist():
    fake = FakeNvpair()
    config = read_config(prepare(fake.lookup_pairs), a_pool(fake))
    assert config == {
        "name": "tank",
        "pool_guid": 42,
        "txg": 2**63,
        "vdev_tree": {
            "type": "root",
            "guid": 42,
            "vdev_stats": STATS,
            "scan_stats": list(range(22)),
            "children": [
                {
                    "type": "disk",
                    "guid": 7,
                    "path": "/dev/sda1",
                    "vdev_stats": STATS,
                    "vdev_stats_ex": {
                        "vdev_rebuild_active_queue": 3,
                        "vdev_disk_r_lat_histo": [1, 2, 3],
                    },
                }
            ],
            "spares": [{"type": "disk", "guid": 9, "path": "/dev/sdz1", "vdev_stats": STATS}],
        },
    }


def test_what_one_read_found_does_not_leak_into_the_next():
    fake = FakeNvpair()
    lookups = prepare(fake.lookup_pairs)
    assert lookups.pool.read(fake.add({"name": "tank", "error_count": 3}))["error_count"] == 3
    assert lookups.pool.read(fake.add({"name": "tank"})) == {"name": "tank"}


@pytest.mark.parametrize("length", [0, 5, 45, 5000])
def test_an_array_no_openzfs_has_is_refused(length):
    fake = FakeNvpair()
    config = a_pool(fake, vdev_stats=[0] * length)
    with pytest.raises(NvlistError, match=f"vdev_stats has {length} entries"):
        read_config(prepare(fake.lookup_pairs), config)


def test_the_arrays_of_21_are_accepted():
    fake = FakeNvpair()
    config = a_pool(fake, vdev_stats=[0] * 46)
    assert read_config(prepare(fake.lookup_pairs), config)["name"] == "tank"


def test_a_config_without_a_tree_is_refused():
    fake = FakeNvpair()
    with pytest.raises(NvlistError, match="no vdev_tree"):
        read_config(prepare(fake.lookup_pairs), fake.add({"name": "tank"}))


def test_a_failing_lookup_is_refused():
    with pytest.raises(NvlistError, match="answered 22"):
        prepare(lambda *_: 22).pool.read(1)


class FakeLibzfs:
    """The functions of libzfs a pool is read with, over a FakeNvpair."""

    def __init__(self) -> None:
        self.nvpair = FakeNvpair()
        self.config = a_pool(self.nvpair)
        self.handle: int | None = 1
        self.imported = True
        self.opened = self.closed = 0
        functions = {
            "libzfs_init": lambda: self.handle,
            "zpool_open_canfail": self._open,
            "zpool_close": self._close,
            "zpool_refresh_stats": self._refresh,
            "zpool_get_config": lambda pool, old: self.config,
        }
        self.library = Library("libzfs.so.6", functions, self.nvpair.lookup_pairs)

    def _open(self, handle, name):
        assert (handle, name) == (1, b"tank")
        self.opened += 1
        return 2 if self.imported else None

    def _close(self, pool):
        self.closed += 1

    def _refresh(self, pool, missing):
        ctypes.cast(missing, ctypes.POINTER(ctypes.c_int))[0] = int(not self.imported)
        return 0


def test_a_pool_is_opened_once_and_again_after_it_went_away():
    fake = FakeLibzfs()
    pool = LibzfsPool(fake.library, "tank")
    assert [pool.read()["name"], pool.read()["name"]] == ["tank", "tank"]
    fake.imported = False
    assert pool.read() is None
    assert pool.read() is None
    fake.imported = True
    assert pool.read()["name"] == "tank"
    assert (fake.opened, fake.closed) == (3, 1)


def test_libzfs_that_does_not_initialise_is_unusable():
    fake = FakeLibzfs()
    fake.handle = None
    with pytest.raises(LibraryUnusableError, match="libzfs_init"):
        LibzfsPool(fake.library, "tank").read()
