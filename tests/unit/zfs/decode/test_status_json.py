"""``zpool status -j`` in every variant, from captured documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.table import rows
from zconsole.errors import NotUnderstoodError
from zconsole.pool.model import Sample, Vdev
from zconsole.units import size
from zconsole.zfs.decode import decode

CAPTURES = Path(__file__).parents[3] / "fixtures" / "captures"
TEXTS = {"txg", "guid", "pool_guid", "spa_version", "zpl_version", "error_count", "expanding_vdev"}
TIMES = {"start_time", "end_time", "pass_start", "scrub_pause"}


def document(state: str, name: str = "status.json") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((CAPTURES / state / name).read_text())
    return found


def read(found: dict[str, Any], **more: Any) -> Sample:
    (sample,) = decode({"t": 1795168000.0, "status": found, **more})  # type: ignore[typeddict-item]
    assert isinstance(sample, Sample)
    return sample


def mapped(value: Any, change: Any, key: str = "") -> Any:
    """Return the document with ``change(key, number)`` in place of every number."""
    if isinstance(value, dict):
        return {k: mapped(v, change, k) for k, v in value.items()}
    return change(key, value) if isinstance(value, int) else value


def nice(key: str, value: int) -> str:
    """Return the text that plain ``-j`` prints for a number."""
    if key in TIMES:
        return "Fri Nov 20 09:44:49 UTC 2026" if value else "-"
    return str(value) if key in TEXTS else size(value)


def one(capture: str, /, **changes: Any) -> Vdev:
    """Return the disk of a one-disk pool with keys added to its object."""
    found = document(capture)
    pool = found["pools"]["tank"]
    disk = pool["vdevs"]["tank"]["vdevs"]
    (first,) = list(disk)[:1]
    disk[first] = {k: v for k, v in {**disk[first], **changes}.items() if v is not None}
    return read(found).pool.root.children[0]


def test_digits_as_strings_are_as_exact_as_numbers() -> None:
    found = document("2.3.9/sequential-rebuild")
    numbers, digits = read(found), read(mapped(found, lambda _key, value: str(value)))
    assert digits.pool == numbers.pool
    assert digits.exact
    assert digits.pool.scan.zpool_scan_rate == 251759616 * 1000 // 51321


def test_plain_output_is_rounded_and_says_so() -> None:
    found = document("2.4.4/replace-running", "status-names.json")
    sample = read(mapped(found, nice))
    assert not sample.exact
    scan = sample.pool.scan
    assert (scan.function, scan.state, scan.stage) == ("resilver", "running", "issuing")
    assert scan.total_bytes == 642 * 1024**2
    assert scan.start == 1795167889.0
    assert scan.paused_since is None


@rows(
    ("printed", "seconds"),
    [("51s", 51.0), ("999ms", 0.999), ("-", 0.0), ("51320000000", 51.32), ("3?", None)],
)
def test_the_times_of_a_rebuild_as_plain_output_rounds_them(
    printed: str, seconds: float | None
) -> None:
    """From 1,000 s on zpool prints thousands of seconds, with ``?`` for their unit."""
    found = document("2.3.9/sequential-rebuild")
    stats = found["pools"]["tank"]["scan_stats"]["rebuild_stats"]["mirror-0"]
    stats.update(scan_time=printed, pass_time=printed)
    scan = read(found).pool.scan
    assert scan.percent is not None
    pass_ms = None if seconds is None else round(1000 * seconds)
    rate = None if pass_ms is None else 251759616 * 1000 // (pass_ms + 1)
    assert (scan.zpool_scan_rate, scan.zpool_issue_rate) == (rate, rate)
    stats.update(state="COMPLETE", end_time=stats["start_time"] + 60)
    assert read(found).pool.scan.duration == seconds


def test_names_become_those_of_text() -> None:
    found = document("2.4.4/every-class")
    names = [leaf.name for leaf in read(found).pool.root.leaves()]
    assert names[:2] == ["virtio-LABDISK0", "virtio-LABDISK1"]
    assert names[-1] == "/root/spare.img"
    told = {"/dev/disk/by-id/virtio-LABDISK0-part1": "bay-1"}
    assert next(read(found, names=told).pool.root.leaves()).name == "bay-1"


@rows(
    ("path", "name"),
    [
        ("/dev/disk/by-id/wwn-0x5000-part1", "wwn-0x5000"),
        ("/dev/disk/by-id/wwn-0x5000-part3", "wwn-0x5000-part3"),
        ("/dev/disk/by-id/ata-DISK1", "ata-DISK1"),
        ("/dev/sda1", "sda"),
        ("/dev/sda", "sda"),
        ("/dev/sda11", "sda11"),
        ("/dev/nvme0n1p1", "nvme0n1"),
        ("/dev/nvme0n1", "nvme0n1"),
        ("/dev/mapper/luks-a", "luks-a"),
        ("/dev/loop1", "loop1"),
    ],
)
def test_a_path_shortens_as_zpool_shortens_it(path: str, name: str) -> None:
    assert one("2.3.9/permanent-errors", name=path, path=path).name == name


def test_pools_keyed_by_guid() -> None:
    found = document("2.4.4/every-class")
    pool = found["pools"].pop("tank")
    found["pools"]["11384030922113493361"] = pool
    assert read(found).pool == read(document("2.4.4/every-class")).pool


def flattened(found: dict[str, Any]) -> dict[str, Any]:
    """Return the document as ``--json-flat-vdevs`` prints it: all vdevs flat, and nested."""
    for pool in found["pools"].values():
        flat: dict[str, Any] = {}

        def add(nodes: dict[str, Any], parent: str | None, into: dict[str, Any] = flat) -> None:
            for key, node in nodes.items():
                into[key] = {**node, **({"parent": parent} if parent else {})}
                add(node.get("vdevs", {}), key)

        add(pool["vdevs"], None)
        for group in ("dedup", "special", "logs", "l2cache"):
            add(pool.pop(group, {}), pool["name"])
        pool["vdevs"] = flat
    return found


@rows("state", ["2.4.4/every-class", "2.3.9/hot-spare-inuse"])
def test_flat_documents_nest_again(state: str) -> None:
    assert read(flattened(document(state))).pool == read(document(state)).pool


def test_a_vdev_whose_lookup_failed_is_told_by_its_name() -> None:
    """For dRAID, 2.3.0 to 2.3.2 give no type, class or state (OpenZFS issue 18431)."""
    corpus = CAPTURES.parent / "corpus" / "json"
    path = next(corpus.glob("002-*[!t].json"))
    found = json.loads(path.read_text())
    pools = {"zpool-hdd": found["pools"]["zpool-hdd"]}
    draid = pools["zpool-hdd"]["vdevs"]["zpool-hdd"]["vdevs"]["draid1:7d:8c:0s-0"]
    for key in ("vdev_type", "class", "guid", "name"):
        del draid[key]
    top = read({"pools": pools}).pool.root.children[0]
    assert (top.name, top.kind, top.data_disks) == ("draid1:7d:8c:0s-0", "draid1", 7)


class TestVdev:
    DISK = "2.3.9/permanent-errors"

    def test_keys_left_out_are_zero(self) -> None:
        disk = one(self.DISK, alloc_space=None)
        assert (disk.alloc_bytes, disk.size_bytes, disk.scan_processed) == (0, 1006632960, 0)

    def test_a_missing_device_is_named_by_its_guid(self) -> None:
        changes = {"name": "123", "path": "/dev/sdx1", "was": "/dev/sdx1", "not_present": 1}
        disk = one(self.DISK, state="CANT_OPEN", aux="OPEN_FAILED", **changes)
        assert (disk.name, disk.state, disk.note) == ("123", "UNAVAIL", "was /dev/sdx1")

    @rows(
        ("aux", "state", "note"),
        [
            ("OPEN_FAILED", "UNAVAIL", "cannot open"),
            ("CORRUPT_DATA", "FAULTED", "corrupted data"),
            ("BAD_LOG", "FAULTED", "bad intent log"),
            ("SPLIT_POOL", "SPLIT", "split into new pool"),
            ("BAD_LABEL", "UNAVAIL", "invalid label"),
            ("CHILDREN_OFFLINE", "UNAVAIL", "all children offline"),
            ("SOMETHING_NEW", "UNAVAIL", "corrupted data"),
        ],
    )
    def test_state_and_note_follow_aux(self, aux: str, state: str, note: str) -> None:
        disk = one(self.DISK, state="CANT_OPEN", aux=aux)
        assert (disk.state, disk.note) == (state, note)

    def test_too_many_slow_ios_without_an_error(self) -> None:
        changes = {"state": "FAULTED", "aux": "ERR_EXCEEDED", "slow_ios": 9}
        assert one(self.DISK, checksum_errors=0, **changes).note == "too many slow I/Os"
        assert one(self.DISK, **changes).note == "too many errors"

    def test_sector_sizes(self) -> None:
        disk = one(self.DISK, configured_ashift=9, physical_ashift=12)
        assert disk.note == "block size: 512B configured, 4096B native"

    def test_not_allocating(self) -> None:
        disk = one(self.DISK, noalloc=1)
        assert (disk.note, disk.allocating) == ("(non-allocating)", False)

    def test_deferred_while_another_resilver_runs(self) -> None:
        found = document("2.4.4/replace-running")
        group = found["pools"]["tank"]["vdevs"]["tank"]["vdevs"]["raidz1-0"]["vdevs"]["replacing-2"]
        new = list(group["vdevs"].values())[1]
        del new["scan_processed"]
        new["resilver_deferred"] = 1
        disk = next(v for v in read(found).pool.root.leaves() if v.name == "virtio-LABDISK5")
        assert (disk.note, disk.awaiting_resilver) == ("(awaiting resilver)", True)
        assert not disk.resilvering

    def test_trim_and_initialize(self) -> None:
        disk = one(
            self.DISK,
            trim_state="ACTIVE",
            trimmed=25,
            to_trim=99,
            trim_time=5,
            init_state="UNINITIALIZED",
        )
        assert disk.trim is not None
        assert (disk.trim.state, disk.trim.share, disk.trim.time) == ("active", 0.25, 5.0)
        assert disk.initialize is None
        assert disk.note == "(trimming)"
        canceled = one(self.DISK, init_state="CANCELED", initialized=1, to_initialize=3).initialize
        assert canceled is not None
        assert (canceled.state, canceled.share) == ("canceled", 0.25)

    @rows(("not_supported", "trimmable"), [(0, True), ("1", False), (None, None)])
    def test_whether_a_disk_can_be_trimmed(
        self, not_supported: int | str | None, trimmable: bool | None
    ) -> None:
        assert one(self.DISK, trim_notsup=not_supported).trimmable == trimmable

    def test_where_a_disk_hangs(self) -> None:
        disk = one(self.DISK, phys_path="pci-0:1", devid="ata-X")
        assert (disk.phys_path, disk.devid) == ("pci-0:1", "ata-X")

    def test_a_spare_that_another_pool_uses(self) -> None:
        found = document("2.4.4/every-class")
        spare = found["pools"]["tank"]["spares"]["/root/spare.img"]
        spare.update(state="INUSE", aux="SPARED", used_by="zwei")
        last = read(found).pool.root.children[-1]
        assert (last.state, last.note) == ("INUSE", "in use by pool 'zwei'")


class TestPool:
    def test_message_and_errors(self) -> None:
        found = document("2.3.9/permanent-errors")
        pool = read(found).pool
        assert pool.message is not None
        assert pool.message.startswith("One or more devices has experienced an error resulting in")
        assert pool.see == "https://openzfs.github.io/openzfs-docs/msg/ZFS-8000-8A"
        assert (pool.error_count, pool.errors) == (3, None)
        found["pools"]["tank"]["errlist"] = ["/tank/a", "/tank/b c"]
        assert read(found).pool.errors == ("/tank/a", "/tank/b c")
        found["pools"]["tank"]["errlist"] = "permission denied"
        assert read(found).pool.errors is None

    @rows(("kind", "state"), [("indirect", "FINISHED"), ("mirror", "SCANNING")])
    def test_a_vdev_named_without_its_number_gets_it(self, kind: str, state: str) -> None:
        found = document("2.3.9/permanent-errors")
        found["pools"]["tank"]["removal_stats"] = {
            "name": kind,
            "vdev_type": kind,
            "state": state,
            "removing_vdev": 1,
            "start_time": 1795168906,
            "end_time": 1795168910,
            "to_copy": 4096,
            "copied": 4096,
        }
        (removal,) = read(found).pool.activities
        assert (removal.kind, removal.vdev) == ("removal", f"{kind}-1")

    def test_an_error_scrub(self) -> None:
        found = document("2.3.9/permanent-errors")
        found["pools"]["tank"]["scan_stats"].update(
            err_scrub_func="ERRORSCRUB",
            err_scrub_state="ERRORSCRUBBING",
            err_scrub_start_time=1795169999,
            err_scrub_examined=1,
            err_scrub_to_examine=3,
            err_scrub_pause=0,
        )
        scan, scrub = read(found).pool.scans
        assert (scan.function, scan.state, scan.percent) == ("errorscrub", "running", 25.0)
        assert scrub.function == "scrub"
        found["pools"]["tank"]["scan_stats"]["err_scrub_pause"] = 1795170000
        paused = read(found).pool.scan
        assert (paused.state, paused.paused_since) == ("paused", 1795170000.0)

    @rows(
        ("found", "why"),
        [
            ({}, "document: no pools"),
            ({"pools": []}, "document: no pools"),
            ({"pools": {"x": {}}}, "pool 'x' has no state"),
            ({"datasets": {}}, "document: no pools"),
            ({"pools": {"x": 1}}, "pool 'x' is not an object"),
            (
                {
                    "output_version": {"command": "zpool list"},
                    "pools": {"x": {"state": "ONLINE", "properties": {}}},
                },
                "'zpool list' printed it",
            ),
        ],
    )
    def test_other_documents_are_refused(self, found: dict[str, Any], why: str) -> None:
        with pytest.raises(NotUnderstoodError, match=why):
            read(found)

    def test_no_pools(self) -> None:
        assert decode({"t": 0.0, "status": {"pools": {}}}) == ()


def test_without_its_moment_a_scan_has_no_pass_average_and_no_estimate() -> None:
    found = document("2.3.9/two-replaces-deferred")
    dated, undated = read(found).pool.scan, read(found, undated=True).pool.scan
    assert dated.zpool_issue_rate is not None
    rates = undated.zpool_scan_rate, undated.zpool_issue_rate, undated.zpool_eta
    assert rates == (None, None, None)
    assert undated.percent == dated.percent
    assert undated.stage == dated.stage


def test_metadata_being_condensed() -> None:
    found = document("2.4.4/every-class")
    stats = {"start_time": 1795168000, "processed": 5, "total": 20, "unit": "metaslabs"}
    found["pools"]["tank"]["condense"] = {"log_spacemap": stats}
    (activity,) = read(found).pool.activities
    assert (activity.kind, activity.state, activity.start) == ("condense", "running", 1795168000.0)
    assert (activity.percent, activity.note) == (25.0, "5/20 metaslabs")


def test_a_rebuild_times_its_pass_itself() -> None:
    found = document("2.3.9/sequential-rebuild")
    assert read(found, undated=True).pool == read(found).pool


def test_a_copy_without_its_moment_has_no_estimate() -> None:
    found = document("2.3.9/removal-running")
    (activity,) = read(found, undated=True).pool.activities
    assert activity.percent is not None
    assert (activity.zpool_rate, activity.zpool_eta) == (None, None)
