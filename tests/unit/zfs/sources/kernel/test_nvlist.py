from __future__ import annotations

import gzip
import json
import struct
import sys
from array import array
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.table import rows
from tests.unit.zfs.sources.kernel.nvpack import STATS, pack, pool, vdev
from zconsole.zfs.sources.kernel.nvlist import ConfigReader, NvlistError
from zconsole.zfs.sources.recording import line_of

EXTENDED = {"vdev_rebuild_active_queue": 3, "vdev_disk_r_lat_histo": [1, 2, 3]}
FIXTURE = Path(__file__).parents[4] / "fixtures/libzfs/raidz1-2.3.9.nvlist.gz"
REAL = gzip.decompress(FIXTURE.read_bytes())


def packed(*values: int) -> bytes:
    return array("Q", values).tobytes()


def again(reader: ConfigReader, first: memoryview, second: memoryview) -> tuple[bool, Any]:
    """Return whether the first config's layout fits the second, and the second's contents."""
    reader.read(first)
    layout = reader.layout
    found = reader.read(second)
    return reader.layout is layout, found


def test_a_config_is_read_with_the_names_of_the_nvlist():
    disk = vdev(7, path="/dev/sda1", vdev_stats_ex=EXTENDED, metaslab_shift=29)
    spare = vdev(9, path="/dev/\udcff")
    root = {"scan_stats": list(range(22)), "vdev_stats_ex": EXTENDED, "spares": [spare]}
    unread = {"features_for_read": {"com.delphix:hole_birth": True}, "hostname": "h"}
    assert ConfigReader().read(pack({**unread, **pool(disk, root=root), "errata": 0})) == {
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
                {"type": "disk", "guid": 9, "path": "/dev/\udcff", "vdev_stats": packed(*STATS)}
            ],
        },
    }


def test_what_a_device_counts_is_recorded_as_plain_objects():
    config = ConfigReader().read(pack(pool(vdev(7, vdev_stats_ex=EXTENDED))))
    line = line_of({"t": 1.0, "libzfs": config})
    assert json.loads(line)["libzfs"]["vdev_tree"]["children"][0]["vdev_stats_ex"] == EXTENDED


def test_a_device_has_only_the_counters_that_came():
    config = ConfigReader().read(pack(pool(vdev(7, vdev_stats_ex=EXTENDED))))
    extended = config["vdev_tree"]["children"][0]["vdev_stats_ex"]
    assert len(extended) == len(EXTENDED)
    assert "vdev_disk_w_lat_histo" not in extended
    with pytest.raises(KeyError, match="vdev_disk_w_lat_histo"):
        extended["vdev_disk_w_lat_histo"]


def test_what_is_condensed_is_followed_where_it_lies():
    name, counts = "com.klarasystems:condense_stats", {"start_time": 5, "end_time": 0, "total": 9}
    first, second = (
        pack(pool(vdev(7), root={name: {"log_spacemap": {**counts, "processed": done}}}))
        for done in (1, 8)
    )
    kept, found = again(ConfigReader(), first, second)
    assert kept
    assert found["vdev_tree"][name] == {"log_spacemap": {**counts, "processed": 8}}


def test_a_real_config_is_read():
    """It was packed by ``nvlist_pack`` for a raidz1 of three disks, OpenZFS 2.3.9."""
    config = ConfigReader().read(memoryview(REAL))
    assert (config["name"], config["error_count"]) == ("lab", 0)
    (raidz,) = config["vdev_tree"]["children"]
    assert (raidz["type"], raidz["nparity"], len(raidz["vdev_stats"])) == ("raidz", 1, 8 * 48)
    assert [disk["path"] for disk in raidz["children"]] == ["/dev/vdd1", "/dev/vde1", "/dev/vdf1"]
    for disk in raidz["children"]:
        assert len(disk["vdev_stats_ex"]) == 19
        assert struct.unpack_from("=6Q", disk["vdev_stats"], 8)[0] == 7  # VDEV_STATE_HEALTHY
        assert any(disk["vdev_stats_ex"]["vdev_disk_w_lat_histo"])


def test_what_moves_is_taken_every_time_and_nothing_else_is_said_again():
    moved = [n + 1 for n in STATS]
    disk = vdev(7, path="/dev/sda1", vdev_stats_ex=EXTENDED)
    later = {**disk, "vdev_stats": moved}
    later["vdev_stats_ex"] = {"vdev_rebuild_active_queue": 4, "vdev_disk_r_lat_histo": [5, 6, 7]}
    reader = ConfigReader()
    held, config = again(reader, pack(pool(disk)), pack(pool(later, txg=9)))
    assert held
    assert config["txg"] == 9
    assert config["vdev_tree"]["children"] == [
        {
            "type": "disk",
            "guid": 7,
            "path": "/dev/sda1",
            "vdev_stats": packed(*moved),
            "vdev_stats_ex": {
                "vdev_rebuild_active_queue": 4,
                "vdev_disk_r_lat_histo": packed(5, 6, 7),
            },
        }
    ]


def test_what_nobody_reads_may_move():
    before = pool(vdev(7, dtl=1), feature_stats={"a:b": 1}, loaded=[1, 2])
    after = pool(vdev(7, dtl=2), feature_stats={"a:b": 9}, loaded=[3, 4])
    held, config = again(ConfigReader(), pack(before), pack(after))
    assert held
    assert config == ConfigReader().read(pack(after))


@rows(
    "change",
    [
        {"path": "/dev/b"},
        {"not_present": 1},
        {"guid": 8},
        {"ashift": 12},
        {"vdev_stats": [0] * 46},
        {"path": "/dev/longer-than-before"},
        {"type": "file"},
        {"unread": [1, 2]},
        {"another": 1},
    ],
)
def test_any_other_change_is_seen(change):
    disk = vdev(7, path="/dev/a", ashift=9, unread=[1])
    changed = pack(pool(vdev(5), {**disk, **change}, vdev(6)))
    before = pack(pool(vdev(5), disk, vdev(6)))
    held, config = again(ConfigReader(), before, changed)
    assert not held
    assert config == ConfigReader().read(changed)


def test_two_fields_that_change_places_are_seen():
    before, after = pool(vdev(7, nparity=1, is_log=0)), pool(vdev(7, is_log=1, nparity=2))
    held, config = again(ConfigReader(), pack(before), pack(after))
    assert not held
    assert config["vdev_tree"]["children"][0]["nparity"] == 2


def test_an_unread_array_that_shrinks_as_another_grows_is_seen():
    before = pool(vdev(7, one=[1, 2], two=[3]), vdev(8))
    after = pool(vdev(7, one=[1], two=[2, 3]), vdev(8))
    assert len(pack(before)) == len(pack(after))
    assert not again(ConfigReader(), pack(before), pack(after))[0]


def test_what_comes_after_the_end_means_nothing():
    data = bytes(pack(pool(vdev(7))))
    reader = ConfigReader()
    first, second = memoryview(data + b"\1" * 99), memoryview(data + b"\2" * 40)
    assert again(reader, first, second)[0]


def test_a_config_that_shrank_below_the_last_one_is_read_anew():
    held, config = again(ConfigReader(), pack(pool(vdev(7), vdev(8))), pack(pool(vdev(7))))
    assert not held
    assert [disk["guid"] for disk in config["vdev_tree"]["children"]] == [7]


def test_holes_and_a_spare_in_use_share_a_guid_and_nothing_else():
    holes = [{"type": "hole", "guid": 0, "id": n, "is_hole": 1} for n in range(2)]
    spare = {"type": "disk", "guid": 9, "path": "/dev/s"}
    tree = ConfigReader().read(pack(pool(*holes, {**spare, "id": 2}, root={"spares": [spare]})))[
        "vdev_tree"
    ]
    assert [child["id"] for child in tree["children"]] == [0, 1, 2]
    assert "id" not in tree["spares"][0]


@rows("length", [0, 5, 45, 5000])
def test_an_array_no_openzfs_has_is_refused(length):
    with pytest.raises(NvlistError, match=f"vdev_stats has {length} entries"):
        ConfigReader().read(pack(pool(vdev(7, vdev_stats=[0] * length))))


def test_the_arrays_of_21_are_accepted():
    assert ConfigReader().read(pack(pool(vdev(7, vdev_stats=[0] * 46))))["name"] == "tank"


@rows(
    ("content", "why"),
    [
        ({"name": "tank"}, "no vdev_tree"),
        ({**pool(), "pool_guid": "42"}, "pool_guid is of type 9"),
        (pool({"type": "disk"}), "without type or guid"),
        (pool({"guid": 7}), "without type or guid"),
    ],
)
def test_what_is_no_config_is_refused(content, why):
    with pytest.raises(NvlistError, match=why):
        ConfigReader().read(pack(content))


@rows("size", [0, -1])
def test_a_pair_whose_name_has_no_size_is_refused(size):
    data = bytearray(pack(pool()))
    first = 12  # after the head and flags; the pair's size precedes its name's
    data[first + 4 : first + 6] = size.to_bytes(2, sys.byteorder, signed=True)
    with pytest.raises(NvlistError, match="an odd pair at 12"):
        ConfigReader().read(memoryview(bytes(data)))


def test_nvlists_without_end_are_refused():
    deep: dict[str, Any] = {}
    for _ in range(20):
        deep = {"more": deep}
    with pytest.raises(NvlistError, match="deep"):
        ConfigReader().read(pack({**deep, **pool()}))


@rows("start", [b"", b"\1\1\0\0", b"\0\x07\0\0"])
def test_what_is_packed_in_another_way_is_refused(start):
    with pytest.raises(NvlistError, match="another way"):
        ConfigReader().read(memoryview(start))


@given(st.integers(0, len(REAL)), st.binary(min_size=1, max_size=12), st.booleans())
def test_a_damaged_config_is_refused_or_read_and_nothing_else(at, damage, cut):
    data = REAL[:at] + damage + (b"" if cut else REAL[at + len(damage) :])
    reader = ConfigReader()
    reader.read(memoryview(REAL))
    try:
        reader.read(memoryview(data))
    except NvlistError:
        assert reader.read(memoryview(REAL))["name"] == "lab"
