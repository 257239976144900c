"""Measurements next to a pool's state: rates, capacities, devices, remaining bytes, events."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.factory import mirror_pool
from tests.records import replace
from tests.table import rows
from tests.unit.zfs.decode.expect import parsed
from zconsole.errors import NotUnderstoodError
from zconsole.pool.model import HostLoad, IoCounters, Pool, Sample, SampleFailure, Scan, Volumes
from zconsole.zfs.decode import decode
from zconsole.zfs.decode.decoder import IostatRow, latest, with_history

CAPTURES = Path(__file__).parents[3] / "fixtures" / "captures"
REPLACE = CAPTURES / "2.4.4" / "replace-running"
OLD = CAPTURES / "2.1.11" / "replace-offline-old"


def read(**raw: Any) -> Sample:
    (sample,) = decode({"t": 100.0, **raw})  # type: ignore[typeddict-item]
    assert isinstance(sample, Sample)
    return sample


def status(state: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((state / "status.json").read_text())
    return found


OBJSET: dict[str, Any] = {
    "dataset_name": "tank/vm",
    "crtime": "5",
    "snaptime": "7000000000",
    "reads": "1",
    "nread": 2,
    "writes": "3",
    "nwritten": "4",
}


class TestDatasets:
    """Logical I/O of datasets, next to any form."""

    def test_each_is_known_by_its_name_and_the_time_it_was_mounted(self) -> None:
        form = {"status": status(REPLACE)}
        found = read(objsets=[OBJSET], **form).datasets
        assert found == {("tank/vm", "5"): IoCounters(7.0, 1, 3, 2, 4)}
        assert read(**form).datasets == {}

    def test_volumes_are_counted_or_unknown(self) -> None:
        form = {"status": status(REPLACE)}
        assert read(volumes={"count": 3, "bytes": 9}, **form).pool.volumes == Volumes(3, 9)
        for other in ({}, {"count": 3}, {"count": 3, "bytes": "many"}, {"count": [], "bytes": 9}):
            assert read(volumes=other, **form).pool.volumes is None
        assert read(**form).pool.volumes is None

    @rows("value", [None, "many", 10**40, [1], "9" * 5000])
    def test_one_without_a_counter_is_left_out(self, value: object) -> None:
        other = {**OBJSET, "dataset_name": "tank/db", "nread": value}
        found = read(objsets=[other, OBJSET], status=status(REPLACE)).datasets
        assert list(found) == [("tank/vm", "5")]


class TestSittingOut:
    """By GUID if the form has GUIDs, else by path, else by name."""

    def notes(self, listed: list[dict[str, str]], **form: Any) -> dict[str, str]:
        return {v.name: v.note for v in read(sitting_out=listed, **form).pool.root.walk() if v.note}

    def test_a_leaf_is_known_by_its_guid(self) -> None:
        form = {"status": status(REPLACE)}
        before = {v.name: v.note for v in read(**form).pool.root.walk() if v.note}
        (leaf, other) = list(read(**form).pool.root.leaves())[:2]
        listed = [{"guid": str(leaf.guid), "path": str(other.path), "name": other.name}]
        assert self.notes(listed, **form) == {**before, leaf.name: "(sitting out)"}

    def test_autosit_is_known_by_guid_or_name_of_the_top_level(self) -> None:
        form = {"status": status(REPLACE)}
        top = read(**form).pool.root.children[0]
        for key, value in (("guid", top.guid), ("name", top.name)):
            listed = [{key: value, "value": "on"}]
            seen = read(autosit=listed, **form).pool.root.children[0].autosit
            assert seen is (True if key == "guid" else None)
        assert read(**form).pool.root.children[0].autosit is None

    def test_text_knows_names_and_perhaps_paths(self) -> None:
        text = (
            "  pool: tank\n state: ONLINE\nconfig:\n\n\tNAME  STATE  READ WRITE CKSUM\n"
            "\ttank  ONLINE  0  0  0\n\t  raidz1-0  ONLINE  0  0  0\n"
            "\t    sda  ONLINE  0  0  0  (resilvering)\n\t    sdb  ONLINE  0  0  0\n"
        )
        listed = [{"guid": "7", "path": "/dev/sda1", "name": "sda"}]
        expected = {"sda": "(resilvering)  (sitting out)"}
        assert self.notes(listed, text=text) == expected
        assert self.notes(listed, text=text, names={"/dev/sda1": "sda"}) == expected
        assert self.notes(listed, text=text, names={"/dev/sdc1": "sda"}) == {"sda": "(resilvering)"}


class TestRates:
    def test_rows_of_guids_reach_every_vdev(self) -> None:
        sample = read(status=status(REPLACE), iostat=(REPLACE / "iostat-Hp.txt").read_text())
        vdevs = list(sample.pool.root.walk())
        assert all(vdev.rates is not None for vdev in vdevs)
        rows = (REPLACE / "iostat-Hp.txt").read_text().splitlines()
        new = next(v for v in vdevs if v.name == "virtio-LABDISK5")
        fields = [row for row in rows if row.startswith(f"{new.guid}\t")][-1].split("\t")
        assert new.rates is not None
        assert new.rates.read_ops == int(fields[3])
        assert new.rates.write == int(fields[6])
        assert new.rates.latency == pytest.approx(int(fields[10]) / 1e9)
        assert new.queues["async_w"] == (int(fields[24]), int(fields[25]))

    def test_rows_of_names_reach_the_vdevs_of_text(self) -> None:
        sample = read(
            text=(OLD / "status.txt").read_text(), iostat=(OLD / "iostat.txt").read_text()
        )
        assert all(vdev.rates is not None for vdev in sample.pool.root.walk())

    def test_same_names_are_matched_in_order(self) -> None:
        rows = "tank\t0\t0\t1\t1\t1\t1\n" + "".join(
            f"{name}\t0\t0\t{n}\t0\t{n}\t0\n"
            for n, name in enumerate(("raidz1", "sda", "raidz1", "sdb"))
        )
        text = (
            "  pool: tank\n state: ONLINE\nconfig:\n\n\ttank  ONLINE  0 0 0\n"
            "\t  raidz1  ONLINE  0 0 0\n\t    sda  ONLINE  0 0 0\n"
            "\t  raidz1  ONLINE  0 0 0\n\t    sdb  ONLINE  0 0 0\n"
        )
        children = read(text=text, iostat=rows).pool.root.children
        assert [c.rates.read for c in children if c.rates] == [0, 2]

    def test_damaged_rows_leave_the_sample_without_rates(self) -> None:
        sample = read(status=status(REPLACE), iostat="cannot open 'tank': no such pool\n")
        assert sample.pool.root.rates is None


class TestCapacity:
    @rows("listing", ["list-v.txt", "list-vHp.txt"])
    def test_text_gets_what_the_listing_knows(self, listing: str) -> None:
        state = CAPTURES / "2.4.4" / "every-class"
        text, listed = (state / "status.txt").read_text(), (state / listing).read_text()
        bare = read(text=text).pool.root.children[0]
        assert bare.alloc_bytes is None
        children = read(text=text, list=listed).pool.root.children
        assert (children[0].alloc_bytes, children[0].size_bytes) == (41943040, 1006632960)
        assert children[2].fragmentation == 0.02
        assert children[1].size_bytes == 1006632960, "what can be allocated, not the device"

    def test_json_gets_fragmentation(self) -> None:
        state = CAPTURES / "2.4.4" / "every-class"
        listed = json.loads((state / "list.json").read_text())
        children = read(status=status(state), list=listed).pool.root.children
        assert [c.fragmentation for c in children[:5]] == [0.0, 0.0, 0.02, 0.0, 0.0]


class TestWait:
    """In 2.0 to 2.2, the text is rounded, but ``zpool wait`` is exact."""

    TEXT = (OLD / "status.txt").read_text()

    def scan(self, row: str) -> Scan:
        return read(text=self.TEXT, wait=row).pool.scan

    def test_differences_become_exact(self) -> None:
        plain = read(text=self.TEXT).pool.scan
        assert plain.resolution > 0
        row = "\t0\t0\t0\t417000000\t0\t417000000\t0\t0"
        later = row.replace("417000000", "416999488")
        first, second = self.scan(row), self.scan(later)
        assert (second.issued_bytes or 0) - (first.issued_bytes or 0) == 512
        assert first.resolution == 0
        assert abs((first.issued_bytes or 0) - (plain.issued_bytes or 0)) < 0.01 * 642 * 1024**2

    def test_the_captured_row_fits_the_text(self) -> None:
        row = (OLD / "wait.txt").read_text().splitlines()[0]
        refined, plain = self.scan(row), read(text=self.TEXT).pool.scan
        assert refined.resolution == 0
        assert 0 < (refined.issued_bytes or 0) < (refined.total_bytes or 0)
        assert replace(refined, issued_bytes=0, resolution=0) == replace(
            plain, issued_bytes=0, resolution=0
        )

    @rows("row", ["0\t0\t0\t0\t0\t0\t0\t0", "1\t2\t3", "a\tb\tc\td\te\tf\tg\th"])
    def test_other_rows_change_nothing(self, row: str) -> None:
        assert self.scan(row) == read(text=self.TEXT).pool.scan


class TestSample:
    TEXT = (OLD / "status.txt").read_text()

    def test_time_source_and_host(self) -> None:
        sample = read(
            text=self.TEXT,
            clock=7.5,
            source="demo",
            kstat="ONLINE",
            version="2.1.11",
            host={"cpu": 0.5, "memory_total": 10},
            events=[{"t": 99, "name": "statechange", "text": "sda FAULTED", "severity": "error"}],
        )
        assert (sample.t, sample.clock, sample.source) == (100.0, 7.5, "demo")
        assert (sample.kstat, sample.version, sample.exact) == ("ONLINE", "2.1.11", False)
        assert sample.host == HostLoad(cpu=0.5, memory_total=10)
        assert [(e.t, e.name, e.severity) for e in sample.events] == [
            (99.0, "statechange", "error")
        ]

        bare = read(text=self.TEXT)
        assert (bare.clock, bare.source, bare.host) == (100.0, "text", None)

    def test_libzfs_before_status_before_text(self) -> None:
        config = json.loads((REPLACE / "libzfs.json").read_text())
        forms = {"libzfs": config, "status": status(REPLACE), "text": self.TEXT}
        assert read(**forms).source == "libzfs"
        del forms["libzfs"]
        assert read(**forms).source == "json"

    def test_the_recordings_own_offset_wins(self) -> None:
        utc, east = read(text=self.TEXT), read(text=self.TEXT, utc_offset=3600)
        assert (utc.pool.scan.start or 0) - (east.pool.scan.start or 0) == 3600

    def test_trouble_keeps_what_the_kernel_still_gives(self) -> None:
        row = ["8", "0", "sda", "10", "0", "20", "30", "40", "0", "50", "60", "7", "80", "90"]
        (trouble,) = decode(
            {
                "t": 100.0,
                "pool": "tank",
                "problem": "no answer for 12 s",
                "kstat": "SUSPENDED",
                "diskstats": [row],
                "devices": {"/dev/sda1": ["sda"], "/dev/sdb1": ["sdb"]},
            }
        )
        assert isinstance(trouble, SampleFailure)
        assert (trouble.pool, trouble.text, trouble.kstat) == (
            "tank",
            "no answer for 12 s",
            "SUSPENDED",
        )
        assert trouble.block["/dev/sda1"].write_bytes == 50 * 512
        assert trouble.gone == ("/dev/sdb1",)

    @rows("raw", [{"t": 1.0}, {}, [], {"t": 1.0, "list": "x"}, {"t": "x", "text": TEXT}])
    def test_no_form_is_not_understood(self, raw: Any) -> None:
        with pytest.raises(NotUnderstoodError):
            decode(raw)


def test_text_with_its_paths_beside_it_finds_the_disks() -> None:
    text = (OLD / "status.txt").read_text()
    (plain,) = decode({"t": 100.0, "text": text})
    assert isinstance(plain, Sample)
    leaf = next(plain.pool.root.leaves())
    assert (leaf.path, leaf.block) == (None, None)
    path = f"/dev/disk/by-id/{leaf.name}-part1"
    row = ["254", "1", "vda1", "89", "0", "4944", "256", "12", "0", "3372", "13", "0", "15", "28"]
    found = read(text=text, names={path: leaf.name}, devices={path: ["vda1"]}, diskstats=[row])
    found_leaf = next(found.pool.root.leaves())
    assert found_leaf.path == path
    assert found_leaf.block is not None
    assert found_leaf.block.read_ops == 89


COUNTERS = "254 1 vda1 89 0 70197 1678 5837 0 1722130 22256 0 14540 24102"


@rows("rows", [f"{COUNTERS}\n", [COUNTERS], [None, 3, [], "short", COUNTERS.split()]])
def test_rows_of_disk_counters_may_be_lines_of_text(rows: Any) -> None:
    table = "\tNAME STATE READ WRITE CKSUM\n\ta ONLINE 0 0 0\n\t  /dev/vda1 ONLINE 0 0 0\n"
    sample = read(text=f"  pool: a\n state: ONLINE\nconfig:\n\n{table}", diskstats=rows)
    block = next(sample.pool.root.leaves()).block
    assert block is not None
    assert block.read_ops == 89


@rows(("given", "clock"), [(7, 7.0), (None, None), ("7", None), (1e300, None), ([], None)])
def test_disk_counters_have_a_clock_of_their_own_where_it_is_given(given: Any, clock: Any) -> None:
    """Recordings of earlier versions have none, and those of others may hold anything."""
    table = "\tNAME STATE READ WRITE CKSUM\n\ta ONLINE 0 0 0\n\t  /dev/vda1 ONLINE 0 0 0\n"
    text = f"  pool: a\n state: ONLINE\nconfig:\n\n{table}"
    sample = read(text=text, diskstats=[COUNTERS], diskstats_clock=given)
    block = next(sample.pool.root.leaves()).block
    assert block is not None
    assert block.clock == clock


def test_what_text_calls_a_disk_is_its_name_among_the_counters() -> None:
    """A recording of text alone has no paths."""
    rows = [COUNTERS, COUNTERS.replace("vda1", "x")]
    table = "\tNAME STATE READ WRITE CKSUM\n\ta ONLINE 0 0 0\n" + "".join(
        f"\t  {name} ONLINE 0 0 0\n" for name in ("vda1", "/root/vda1", "label/x", "vdb1")
    )
    sample = read(text=f"  pool: a\n state: ONLINE\nconfig:\n\n{table}", diskstats=rows)
    found = {leaf.name: leaf.block is not None for leaf in sample.pool.root.leaves()}
    assert found == {"vda1": True, "/root/vda1": False, "label/x": False, "vdb1": False}


FIXTURES = Path(__file__).parents[3] / "fixtures"
CORPUS = Path(os.environ.get("ZCONSOLE_CORPUS", FIXTURES / "corpus"))
SAMPLES = sorted(CORPUS.glob("iostat/*.txt"))


def plain(row: IostatRow) -> list[Any]:
    rates = row.rates
    return [row.name, rates.read_ops, rates.write_ops, rates.read, rates.write]


def expected(row: list[Any]) -> list[Any]:
    values = [
        None if v in ("-", None) else parsed(v) if isinstance(v, str) else v for v in row[3:7]
    ]
    return [row[0], *values, *[None] * (4 - len(values))]


@rows("sample", SAMPLES)
def test_the_newest_sample_is_read_as_expected(sample: Path) -> None:
    wanted = json.loads(sample.with_name(f"{sample.stem}.expect.json").read_text())
    for pool in wanted["pools"]:
        first, *others = latest(sample.read_text(), pool["name"])
        assert plain(first) == expected(pool.get("last_block_row", pool["row"]))
        if wanted.get("blocks", 1) == 1:
            found = [plain(row) for row in others]
            listed = [row for key in ("top_level", "logs", "cache") for row in pool.get(key, [])]
            assert [row for row in map(expected, listed) if row not in found] == []


def test_waits_and_queues_of_a_scripted_row() -> None:
    base = "tank\t1\t2\t3\t4\t5\t6"
    waits = "\t".join(f"{n}000" for n in range(1, 12))
    queues = "\t".join(str(n) for n in range(14))
    (row,) = latest(f"{base}\t{waits}\t{queues}\n", "tank")
    assert row.rates.latency == pytest.approx((3 * 3e-6 + 4 * 4e-6) / 7)
    assert row.queues["rebuild"] == (12, 13)
    dashes, twos = "\t".join(["-"] * 10), "\t".join(["2"] * 12)
    (row,) = latest(f"{base}\t{dashes}\t{twos}\n", "tank")
    assert row.rates.latency is None
    assert row.queues["trim"] == (2, 2)
    assert "rebuild" not in row.queues


def test_the_newest_of_several_samples() -> None:
    text = "tank\t1\t1\t1\t1\t1\t1\nsda\t0\t0\t1\t1\t1\t1\n\nsdl\t0\t0\t9\t9\t9\t9\n"
    rows = latest(text + text.replace("\t1", "\t2"), "tank")
    assert [row.name for row in rows] == ["tank", "sda", "sdl"]
    assert rows[0].rates.read == 2
    stamped = latest(f"1795168000\n{text}1795168001\n{text}", "tank")
    assert [row.name for row in stamped] == ["tank", "sda", "sdl"]


def test_one_pool_of_several() -> None:
    text = (
        "              capacity     operations     bandwidth\n"
        "pool        alloc   free   read  write   read  write\n"
        "----------  -----  -----  -----  -----  -----  -----\n"
        "one         2.89T  2.20T      0      2   349K   448K\n"
        "  sda       2.89T  2.20T      0      2   349K   448K\n"
        "----------  -----  -----  -----  -----  -----  -----\n"
        "two          230G  24.0G      0      9   112K   318K\n"
    )
    assert [row.name for row in latest(text, "one")] == ["one", "sda"]
    assert [row.name for row in latest(text, "two")] == ["two"]
    assert latest(text, "three") == ()


@rows("text", ["", "\n\n", "cannot open 'tank': no such pool\n"])
def test_other_text_has_no_rows(text: str) -> None:
    assert latest(text, "tank") == ()


SCRUB = Scan("scrub", "finished", start=500.0, end=900.0)
PART = {"start": 501, "end": 901, "full": False}
WHOLE = {"start": 100, "end": 400, "full": True}


def recalled(history, *scans: Scan) -> Pool:
    return with_history(mirror_pool(*scans), {"t": 1.0, "history": history})


def test_the_last_full_scrub_and_the_creation_are_the_pools():
    pool = recalled({"created": 5, "scrubs": [PART, WHOLE]}, SCRUB)
    assert (pool.created, pool.full_scrub) == (5.0, 400.0)
    assert pool.scan.full is False


def test_a_scan_is_known_by_its_start_or_in_text_by_its_end():
    told = [PART, WHOLE]
    assert recalled({"scrubs": told}, SCRUB._replace(start=None)).scan.full is False
    assert recalled({"scrubs": told}, SCRUB._replace(start=99.0, end=None)).scan.full is True
    assert recalled({"scrubs": told}, SCRUB._replace(start=9.0, end=9.0)).scan.full is None
    assert recalled({"scrubs": told}, SCRUB._replace(function="resilver")).scan.full is None


ODD = (None, "7", [], [7], [[]], {"a": 7}, float("nan"), -7, 1e99, True)


@rows("odd", ODD)
def test_other_shapes_are_unknown(odd):
    for history in (odd, {"created": odd, "scrubs": odd}, {"scrubs": [odd]}):
        pool = recalled(history, SCRUB)
        assert (pool.created, pool.full_scrub, pool.scan.full) == (None, None, None)
    pool = recalled({"scrubs": [{"start": odd, "end": odd, "full": True}]}, SCRUB)
    assert (pool.full_scrub, pool.scan.full) == (None, None)
    assert recalled({"scrubs": [{**WHOLE, "full": 1}]}, SCRUB).full_scrub is None
