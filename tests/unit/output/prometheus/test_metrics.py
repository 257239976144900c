from __future__ import annotations

import asyncio
import os
import re
import threading
import urllib.request
from pathlib import Path

import pytest
from prometheus_client import generate_latest

from tests.factory import frame, mirror_pool
from tests.records import replace
from tests.table import rows
from tests.unit.diagnosis.bottleneck.watching import watched
from tests.unit.output.prometheus.promtool import needs_promtool, promtool
from tests.unit.output.prometheus.shipped import BY_NAME
from zconsole.cli import export
from zconsole.cli.export import publish
from zconsole.errors import NotFoundError, UnavailableError, UsageError, ZconsoleError
from zconsole.output.prometheus.metrics import FAMILIES, Page, families, write
from zconsole.output.prometheus.server import address_of, serve
from zconsole.pool.health import SpareProblem
from zconsole.pool.model import ErrorCounters, Vdev
from zconsole.pool.scan_outcome import LastScan
from zconsole.timeline.feed import Update
from zconsole.timeline.scrubs import ScrubAge
from zconsole.zfs.sources.base import Capabilities

JOB = {"job": "k3", "state": "running", "bytes_done": 5, "bytes_total": 10, "rate": None}
LAST = (LastScan("scrub", "restored", 400.0, 300.0, 0),)


def values(found, name):
    return {
        tuple(sample.labels.values()): sample.value
        for f in found
        if f.name == f"zconsole_{name}"
        for sample in f.samples
    }


@pytest.fixture(scope="module")
def resilver():
    return watched("resilver", 1)


def test_a_resilver_has_stage_rates_eta_redundancy_and_limit(resilver):
    found = families([resilver], [JOB])
    scan = ("tank", "resilver", "")
    assert values(found, "scan_active") == {scan: 1.0}
    assert values(found, "scan_stage") == {(*scan, "issuing"): 1.0}
    low, eta, high = (values(found, f"scan_eta_{n}seconds")[scan] for n in ("low_", "", "high_"))
    assert low < eta < high
    assert values(found, "scan_issue_bytes_per_second")[scan] > 1e8
    assert values(found, "redundancy_left")[("tank", "raidz2-0")] == 1
    assert values(found, "scan_limit") == {("tank", "slow-disk"): 1.0}
    assert values(found, "rebalance_job") == {("k3", "running"): 1.0}
    assert values(found, "rebalance_bytes_per_second") == {}


def test_two_devices_of_one_name_give_one_sample():
    pool = mirror_pool()
    spare = Vdev("sda", "disk", "spare", guid="11")
    root = replace(pool.root, children=(*pool.root.children, spare))
    found = families([frame(replace(pool, root=root))])
    each = [(s.name, *s.labels.values()) for f in found for s in f.samples]
    assert len(each) == len(set(each))


def test_a_sample_has_the_pools_state_its_time_and_the_counters_of_its_devices():
    pool = mirror_pool()
    top = pool.root.children[0]
    sda = top.children[0]._replace(errors=ErrorCounters(3, None, 12))
    root = replace(pool.root, children=(replace(top, children=(sda,)),))
    found = families([frame(replace(pool, root=root), t=1000.0)])
    assert values(found, "pool_state") == {("tank", "ONLINE"): 1.0}
    assert values(found, "pool_sample_timestamp_seconds") == {("tank",): 1000.0}
    assert values(found, "device_errors") == {
        ("tank", "mirror-0", "sda", "read"): 3.0,
        ("tank", "mirror-0", "sda", "cksum"): 12.0,
    }


SILENT = {"problem": "no answer"}
SCRUB = "last_scrub_end_timestamp_seconds"


@rows(
    ("fields", "told"),
    [
        # A pool that does not answer is down, and tells nothing else: the rest would be old.
        (
            {**SILENT, "stale_seconds": 40.0},
            {
                "pool_up": {("tank",): 0.0},
                "pool_stale_seconds": {("tank",): 40.0},
                "redundancy_left": {},
            },
        ),
        ({**SILENT, "stale_seconds": None}, {"pool_stale_seconds": {}}),
        (
            {"scrub": ScrubAge(400.0, 600.0, overdue=True)},
            {
                SCRUB: {("tank",): 400.0},
                "scrub_age_seconds": {("tank",): 600.0},
                "scrub_overdue": {("tank",): 1.0},
            },
        ),
        # Without a sample a scrub's age stands still.
        (
            {**SILENT, "scrub": ScrubAge(400.0, 600.0, overdue=False)},
            {SCRUB: {("tank",): 400.0}, "scrub_age_seconds": {}, "scrub_overdue": {}},
        ),
        ({}, {SCRUB: {}, "scrub_age_seconds": {}, "scrub_overdue": {}}),
        (
            {"spares": (SpareProblem("failed", "sp", "sp is UNAVAIL"),)},
            {"spare_trouble": {("tank", "sp", "failed"): 1.0}},
        ),
        # The state of a pool that hangs is the kernel's newest word.
        ({**SILENT, "kstat": "SUSPENDED"}, {"pool_state": {("tank", "SUSPENDED"): 1.0}}),
        (SILENT, {"pool_state": {}}),
    ],
)
def test_what_is_known_of_a_pool_has_metrics(fields, told):
    found = families([replace(frame(mirror_pool()), **fields)])
    assert {name: values(found, name) for name in told} == told


@needs_promtool
def test_promtool_finds_nothing_wrong_with_the_page(resilver):
    page = Page()
    page.families = families([resilver], [JOB], lambda _: LAST)
    said = generate_latest(page.registry).decode()
    assert promtool("check", "metrics", said=said) == (0, "")


def test_a_textfile_is_replaced_whole(resilver, tmp_path):
    page = Page()
    page.families = families([resilver])
    path = tmp_path / "zconsole.prom"
    write(page, path)
    write(page, path)
    text = path.read_text()
    assert "# TYPE zconsole_scan_eta_seconds gauge" in text
    assert 'zconsole_redundancy_left{pool="tank",vdev="raidz2-0"} 1.0' in text
    assert [entry.name for entry in tmp_path.iterdir()] == ["zconsole.prom"]
    with pytest.raises(ZconsoleError):
        write(page, tmp_path / "absent" / "x.prom")


def test_a_link_that_waits_beside_a_textfile_leads_nowhere(resilver, tmp_path):
    """The link is where the library's own function would write, or wrote a moment ago."""
    page, victim = Page(), tmp_path / "victim"
    page.families = families([resilver], [])
    victim.write_text("keep")
    path = tmp_path / "zfs.prom"
    for name in (f"{path}.{os.getpid()}.{threading.get_ident()}", path):
        Path(name).symlink_to(victim)
    write(page, path)
    assert victim.read_text() == "keep"
    assert "zconsole_scan" in path.read_text()
    assert not path.is_symlink()


def test_a_textfile_that_cannot_be_written_leaves_nothing_behind(tmp_path, monkeypatch):
    (tmp_path / "x.prom" / "sub").mkdir(parents=True)
    with pytest.raises(NotFoundError, match="is a directory, not a file"):
        write(Page(), tmp_path / "x.prom")
    assert [path.name for path in tmp_path.iterdir()] == ["x.prom"]

    def refuse(path, _registry):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(UnavailableError, match="permission denied"):
        write(Page(), tmp_path / "x.prom")


@rows("host", ["a..b", "x" * 64, "no.such.host.invalid"])
def test_a_host_that_is_none_is_one_clear_line(host):
    with pytest.raises(ZconsoleError, match=f"--listen {host}:9617: "):
        serve(Page(), (host, 9617))


@pytest.mark.slow
def test_the_page_is_served_on_loopback_and_stops(resilver):
    page = Page()
    page.families = families([resilver])
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    stop = serve(page, ("127.0.0.1", port))
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
            assert b"zconsole_scan_eta_seconds{" in answer.read()
        with pytest.raises(ZconsoleError):
            serve(Page(), ("127.0.0.1", port))
    finally:
        stop()


def test_loopback_unless_told_otherwise():
    assert address_of("9617") == ("127.0.0.1", 9617)
    assert address_of("0.0.0.0:9617") == ("0.0.0.0", 9617)
    assert address_of("[::1]:80") == ("::1", 80)
    for bad in ("", "x", "0", "70000", ":9617", "a:b"):
        with pytest.raises(UsageError):
            address_of(bad)


async def test_every_round_reaches_the_file(resilver, tmp_path, monkeypatch):
    monkeypatch.setenv("ZCONSOLE_STATE", str(tmp_path / "state"))

    async def rounds():
        yield Update((resilver,), Capabilities("demo"))
        yield Update((replace(resilver, problem="no answer"),), Capabilities("demo"))

    page = Page()
    await publish(rounds(), page, str(tmp_path / "x.prom"))
    assert 'zconsole_pool_up{pool="tank"} 0.0' in (tmp_path / "x.prom").read_text()


@pytest.mark.parametrize("error", [None, OSError(5, "Input/output error")])
async def test_pools_are_exported_whatever_the_disk_of_the_jobs_does(resilver, monkeypatch, error):
    over, asked = threading.Event(), []

    def listed(_):
        asked.append(1)
        if error is not None:
            raise error
        over.wait(60)

    async def rounds():
        while not asked:
            yield Update((resilver,), Capabilities("demo"))
        yield Update((resilver,), Capabilities("demo"))

    monkeypatch.setattr(export.control, "list_jobs", listed)
    if error is None:
        monkeypatch.setattr(export, "ANSWER", 0.05)
    page = Page()
    try:
        async with asyncio.timeout(30):
            await publish(rounds(), page, None)
    finally:
        over.set()
    assert page.families
    assert len(asked) == (1 if error is None else 2)


def test_names_follow_the_custom_and_labels_are_declared():
    for name, text, _, labels, _ in FAMILIES:
        assert re.fullmatch(r"zconsole_[a-z_]+", name)
        assert text
        assert len(set(labels)) == len(labels)
        assert not {"job", "instance"}.intersection(labels), "Prometheus adds these itself"
    assert len(BY_NAME) == len(FAMILIES)


def test_a_counter_is_told_by_its_name():
    assert [family.name for family in FAMILIES if family.counts] == ["zconsole_device_errors_total"]
