from __future__ import annotations

from tests.ui import frames
from zconsole.pool.chassis import LeafDisk
from zconsole.ui.panes.devices import Arrangement, items


def names(frame, **change):
    found = items(frame.rows, Arrangement(**change))
    return [item.title or item.row.vdev.name for item in found]


def test_classes_have_the_titles_zpool_prints():
    shown = names(frames.healthy())
    assert shown[shown.index("special") + 1] == "mirror-2"
    assert shown[shown.index("logs") + 1] == "mirror-3"
    assert shown[shown.index("cache") + 1] == "nvme2n1"
    assert shown[-2:] == ["spares", "sde"]


def test_a_filter_keeps_the_way_to_what_it_finds():
    assert names(frames.healthy(), filter="SDC") == ["backup", "mirror-1", "sdc"]


def test_a_filter_finds_what_is_folded():
    frame = frames.healthy()
    assert names(frame, filter="sdc", folded=frozenset({frame.rows[0].key})) == [
        "backup",
        "mirror-1",
        "sdc",
    ]


def test_a_filter_finds_bays_slots_and_serial_numbers():
    frame = frames.healthy()
    disk = LeafDisk(bay="shelf A/Slot 07", slot="Slot 07", serial="ZC1A2B3C")
    rows = tuple(
        row._replace(vdev=row.vdev._replace(disk=disk)) if row.vdev.name == "sdc" else row
        for row in frame.rows
    )
    for typed in ("zc1a", "slot 07", "shelf a"):
        found = items(rows, Arrangement(filter=typed))
        assert [item.row.vdev.name for item in found] == ["backup", "mirror-1", "sdc"]


def test_a_filter_finds_states_and_keeps_siblings_out():
    assert names(frames.rebuilds(), filter="unavail") == [
        "lab",
        "draid2:4d:11c:1s-0",
        "spare-3",
        "d03",
    ]


def test_a_folded_row_hides_and_counts_what_is_below():
    frame = frames.imbalance()
    key = next(row.key for row in frame.rows if row.vdev.name == "raidz1-0")
    found = items(frame.rows, Arrangement(folded=frozenset({key})))
    assert [i.row.vdev.name for i in found] == [
        "media",
        "raidz1-0",
        "raidz1-1",
        "sde",
        "sdf",
        "sdg",
        "sdh",
    ]
    assert found[1].folded == 4


def test_sorting_lists_devices_worst_first():
    frame = frames.resilver()
    found = items(frame.rows, Arrangement(sort="latency"))
    waits = [item.row.rates.latency for item in found]
    assert waits == sorted(waits, reverse=True)
    assert all(not item.row.vdev.children for item in found)
