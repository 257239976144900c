from __future__ import annotations

import ctypes
from array import array
from typing import Any

import pytest

from zconsole.sources.libzfs import nvlist
from zconsole.sources.libzfs.library import Library, LibraryUnusableError, LibzfsPool
from zconsole.sources.libzfs.nvlist import POOL_FIELDS, ConfigReader, Lookup, NvlistError

STATS = list(range(48))


def packed(*values: int) -> bytes:
    return array("Q", values).tobytes()


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
    config = ConfigReader(fake.lookup_pairs).read(a_pool(fake))
    assert config == {
        "name": "tank",
        "pool_guid": 42,
        "txg": 2**63,
        "vdev_tree": {
            "type": "root",
            "guid": 42,
            "vdev_stats": packed(*STATS),
            "scan_stats": packed(*range(22)),
            "children": [
                {
                    "type": "disk",
                    "guid": 7,
                    "path": "/dev/sda1",
                    "vdev_stats": packed(*STATS),
                    "vdev_stats_ex": {
                        "vdev_rebuild_active_queue": 3,
                        "vdev_disk_r_lat_histo": packed(1, 2, 3),
                    },
                }
            ],
            "spares": [
                {"type": "disk", "guid": 9, "path": "/dev/sdz1", "vdev_stats": packed(*STATS)}
            ],
        },
    }


def test_what_one_read_found_does_not_leak_into_the_next():
    fake = FakeNvpair()
    lookup = Lookup(fake.lookup_pairs, POOL_FIELDS)
    assert lookup.read(fake.add({"name": "tank", "error_count": 3}))["error_count"] == 3
    assert lookup.read(fake.add({"name": "tank"})) == {"name": "tank"}


@pytest.mark.parametrize("length", [0, 5, 45, 5000])
def test_an_array_no_openzfs_has_is_refused(length):
    fake = FakeNvpair()
    config = a_pool(fake, vdev_stats=[0] * length)
    with pytest.raises(NvlistError, match=f"vdev_stats has {length} entries"):
        ConfigReader(fake.lookup_pairs).read(config)


def test_the_arrays_of_21_are_accepted():
    fake = FakeNvpair()
    config = a_pool(fake, vdev_stats=[0] * 46)
    assert ConfigReader(fake.lookup_pairs).read(config)["name"] == "tank"


def test_a_config_without_a_tree_is_refused():
    fake = FakeNvpair()
    with pytest.raises(NvlistError, match="no vdev_tree"):
        ConfigReader(fake.lookup_pairs).read(fake.add({"name": "tank"}))


def test_a_failing_lookup_is_refused():
    with pytest.raises(NvlistError, match="answered 22"):
        Lookup(lambda *_: 22, POOL_FIELDS).read(1)


def a_config(fake: FakeNvpair, txg: int, *children: dict[str, Any], **groups: Any) -> int:
    """A pool of plain vdevs, and of groups of them (``spares``)."""
    nodes = [{"type": "disk", "vdev_stats": STATS, **each} for each in children]
    for name, members in groups.items():
        groups[name] = [fake.add({"type": "disk", "vdev_stats": STATS, **m}) for m in members]
    content = {"type": "root", "guid": 42, "children": [fake.add(node) for node in nodes]}
    root = fake.add({**content, **groups})
    return fake.add({"name": "tank", "pool_guid": 42, "txg": txg, "vdev_tree": root})


def first(config: dict[str, Any]) -> dict[str, Any]:
    return config["vdev_tree"]["children"][0]


def test_what_a_vdev_keeps_is_looked_up_again_with_every_change_of_the_configuration():
    fake = FakeNvpair()
    reader = ConfigReader(fake.lookup_pairs)
    disk = {"guid": 7, "path": "/dev/a", "ashift": 9}
    assert first(reader.read(a_config(fake, 5, disk)))["ashift"] == 9
    assert first(reader.read(a_config(fake, 5, {**disk, "ashift": 12})))["ashift"] == 9
    assert first(reader.read(a_config(fake, 6, {**disk, "ashift": 12})))["ashift"] == 12


@pytest.mark.parametrize("change", [{"path": "/dev/b"}, {"not_present": 1}, {"guid": 8}])
def test_a_vdev_that_is_another_or_elsewhere_is_looked_up_whole(change):
    fake = FakeNvpair()
    reader = ConfigReader(fake.lookup_pairs)
    disk = {"guid": 7, "path": "/dev/a", "devid": "a"}
    reader.read(a_config(fake, 5, disk))
    changed = {**disk, **change, "devid": "b"}
    assert first(reader.read(a_config(fake, 5, changed))).items() >= changed.items()


def test_what_moves_is_looked_up_every_time():
    fake = FakeNvpair()
    reader = ConfigReader(fake.lookup_pairs)
    reader.read(a_config(fake, 5, {"guid": 7}))
    later = [n + 1 for n in STATS]
    assert first(reader.read(a_config(fake, 5, {"guid": 7, "vdev_stats": later}))) == {
        "type": "disk",
        "guid": 7,
        "vdev_stats": packed(*later),
    }


def test_holes_and_a_spare_in_use_share_a_guid_and_nothing_else():
    fake = FakeNvpair()
    reader = ConfigReader(fake.lookup_pairs)
    holes = [{"type": "hole", "guid": 0, "id": n, "is_hole": 1} for n in range(2)]
    spare = {"guid": 9, "path": "/dev/s"}
    for _ in range(2):
        config = reader.read(a_config(fake, 5, *holes, {**spare, "id": 2}, spares=[spare]))
        tree = config["vdev_tree"]
        assert [child.get("id") for child in tree["children"]] == [0, 1, 2]
        assert "id" not in tree["spares"][0]


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
