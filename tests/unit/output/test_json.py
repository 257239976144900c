from __future__ import annotations

import json
from dataclasses import replace

from tests.factory import frame, mirror_pool, view
from zconsole.output.json import line, sample_object
from zconsole.pool.chassis import LeafDisk
from zconsole.pool.model import DatasetLoad, Scan
from zconsole.timeline.eta.estimate import Estimate
from zconsole.timeline.eta.past import Comparison
from zconsole.timeline.session import Session

CONTRACT_SAMPLE = {
    "version", "t", "source", "exact", "pool", "guid", "state", "message", "error_count",
    "errors", "stale_seconds", "problem", "scan", "scans", "redundancy", "topology", "balance",
    "last_scrub", "scrub_overdue",
}  # fmt: skip
CONTRACT_SCAN = {
    "function", "state", "stage", "vdev", "start", "end", "total_bytes", "scanned_bytes",
    "issued_bytes", "skipped_bytes", "processed_bytes", "errors", "percent", "scan_rate",
    "issue_rate", "eta_seconds", "eta_low_seconds", "eta_high_seconds", "eta_reason",
    "zpool_eta_seconds", "restarts",
}  # fmt: skip
CONTRACT_NODE = {
    "name", "guid", "kind", "class", "state", "read", "write", "cksum", "slow", "note", "path",
    "resilvering", "awaiting_resilver", "alloc_bytes", "size_bytes", "read_rate", "write_rate",
    "latency_seconds", "busy", "children", "bay", "enclosure", "slot", "serial", "wwn",
    "temperature_celsius",
}  # fmt: skip


def test_every_key_of_the_contract_is_there():
    found = sample_object(frame(mirror_pool()))
    assert found.keys() >= CONTRACT_SAMPLE
    assert found["scan"].keys() >= CONTRACT_SCAN
    assert found["topology"].keys() >= CONTRACT_NODE
    assert found["scan"]["function"] == "none"
    assert found["scans"] == []


def test_a_pool_that_never_answered_has_no_source():
    raw = {"t": 1.0, "pool": "tank", "problem": "no answer in 5 s", "kstat": "SUSPENDED"}
    (found,) = map(sample_object, Session().advance([raw]))
    assert found.keys() >= CONTRACT_SAMPLE
    assert found["source"] is None
    assert found["problem"] == "no answer in 5 s"


def test_a_scan_told_by_an_earlier_one_names_it():
    scan = Scan("scrub", "running", "issuing", start=5.0, total_bytes=100, issued_bytes=25)
    seen = view(scan, Estimate(60.0, 50.0, 80.0, "steady"))
    assert sample_object(frame(mirror_pool(scan), scans=(seen,)))["scan"]["past"] is None
    told = seen._replace(comparison=Comparison("scrub", 33120.0, 2400.0, "scrub"))
    found = sample_object(frame(mirror_pool(scan), scans=(told,)))["scan"]
    assert found["past"] == {"function": "scrub", "seconds": 33120.0, "ahead_seconds": 2400.0}


def test_a_line_is_ascii_and_keeps_undecodable_bytes_and_drops_what_json_cannot_say():
    text = line({"name": "a\udcff日", "x": float("nan"), "y": [float("inf"), 1]})
    assert text.isascii()
    assert "\n" not in text
    assert json.loads(text) == {"name": "a\udcff日", "x": None, "y": [None, 1]}


def test_a_scan_has_the_same_keys_whether_there_is_one_or_not():
    seen = view(Scan("scrub", "finished", end=5.0), Estimate(None, None, None, "over"))
    scan = sample_object(frame(mirror_pool(), scans=(seen,)))["scan"]
    assert sample_object(frame(mirror_pool()))["scan"].keys() == scan.keys()


def test_a_leaf_says_where_it_is_and_what_is_not_known_is_null():
    pool = mirror_pool()
    mirror = pool.root.children[0]
    known = mirror.children[0]._replace(disk=LeafDisk("A1", "0x5", "1", "p", "S", temperature=41.0))
    mirror = mirror._replace(children=(known, *mirror.children[1:]))
    found = sample_object(frame(replace(pool, root=pool.root._replace(children=(mirror,)))))
    a, b = found["topology"]["children"][0]["children"][:2]
    names = ("bay", "enclosure", "slot", "serial", "wwn", "temperature_celsius")
    assert [a[name] for name in names] == ["A1", "0x5", "1", "S", None, 41.0]
    assert [b[name] for name in names] == [None] * 6


def test_the_busiest_datasets_have_their_rates_and_are_null_if_unknown():
    known = frame(mirror_pool(), busiest_datasets=(DatasetLoad("tank/\udcff", 4.0, 3.0, 2.0, 1.0),))
    (found,) = sample_object(known)["busiest_datasets"]
    rates = {"read_rate": 4.0, "write_rate": 3.0, "read_ops": 2.0, "write_ops": 1.0}
    assert found == {"name": "tank/\udcff", **rates}
    assert sample_object(frame(mirror_pool(), busiest_datasets=()))["busiest_datasets"] == ()
    assert sample_object(frame(mirror_pool()))["busiest_datasets"] is None
