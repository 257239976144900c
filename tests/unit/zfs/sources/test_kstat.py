from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import psutil
import pytest

from tests.table import rows
from tests.unit.source import modules, tree_of
from tests.unit.zfs.sources.source_fakes import machine, set_objset
from zconsole.zfs.sources.kstat import (
    BUSY_SHARE,
    EVERY,
    PARAMETERS,
    DatasetMeter,
    LoadMeter,
    arc_bytes,
    module_version,
    pool_states,
    zed_runs,
)


def test_pools_and_their_words(tmp_path):
    root = machine(tmp_path, {"tank": "ONLINE", "b b": "SUSPENDED"})
    assert pool_states(root) == {"b b": "SUSPENDED", "tank": "ONLINE"}


def test_the_arc_and_the_version(tmp_path):
    root = machine(tmp_path, {}, "2.1.11-1+deb12u1")
    assert (arc_bytes(root), module_version(root)) == (4096, "2.1.11")


def test_without_the_module_nothing_is_known(tmp_path):
    assert pool_states(tmp_path) == {}
    assert arc_bytes(tmp_path) is None
    assert module_version(tmp_path) is None


def processes(root: Path, names: dict[int, str]) -> Path:
    for pid, name in names.items():
        (root / "proc" / str(pid)).mkdir(parents=True)
        (root / "proc" / str(pid) / "comm").write_text(f"{name}\n")
    (root / "proc/self").mkdir(parents=True, exist_ok=True)
    return root


@pytest.mark.parametrize(
    ("names", "runs"),
    [
        ({1: "systemd", 2: "kthreadd", 712: "zed"}, True),
        ({1: "systemd", 2: "kthreadd", 712: "zedlet", 713: "zfs"}, False),
        ({1: "systemd", 712: "zed"}, None),  # a container, or hidepid: others may be hidden
        ({1: "bash", 2: "zed"}, None),
        ({}, None),
    ],
)
def test_whether_zed_runs_is_told_only_where_all_processes_are_seen(tmp_path, names, runs):
    assert zed_runs(processes(tmp_path, names)) is runs


STAT = "cpu  {user} 0 100 {idle} {iowait} 0 0 0 {user} 0\ncpu0 1 2 3 4 5 6 7 8 9 0\nintr 1\n"
MEMINFO = "MemTotal:       16384 kB\nMemAvailable:    4096 kB\nHugePages: 0\n"


def loaded(tmp_path: Path, user: int, idle: int, iowait: int) -> Path:
    (tmp_path / "proc").mkdir(exist_ok=True)
    (tmp_path / "proc/stat").write_text(STAT.format(user=user, idle=idle, iowait=iowait))
    (tmp_path / "proc/meminfo").write_text(MEMINFO)
    return tmp_path


def test_the_cpu_is_busy_for_what_is_neither_idle_nor_waiting_for_disks(tmp_path: Path) -> None:
    meter = LoadMeter(loaded(tmp_path, user=200, idle=1000, iowait=50))
    assert "cpu" not in meter.read(0.0)["host"]
    loaded(tmp_path, user=225, idle=1055, iowait=70)
    assert meter.read(0.0)["host"]["cpu"] == pytest.approx(0.25)


def test_no_time_between_two_readings_gives_no_share(tmp_path: Path) -> None:
    meter = LoadMeter(loaded(tmp_path, user=200, idle=1000, iowait=50))
    assert ["cpu" in meter.read(0.0)["host"], "cpu" in meter.read(0.0)["host"]] == [False, False]


def test_a_wait_that_runs_back_is_no_share_above_1(tmp_path: Path) -> None:
    meter = LoadMeter(loaded(tmp_path, user=200, idle=1000, iowait=50))
    meter.read(0.0)
    loaded(tmp_path, user=300, idle=1000, iowait=40)
    assert meter.read(0.0)["host"]["cpu"] == 1.0


def test_every_parameter_that_samples_are_asked_for_is_read() -> None:
    """The timeout of a transaction group was once used but never read: it was always 0."""
    users = [module for module in modules() if module.startswith(("diagnosis/", "timeline/"))]
    named = {
        node.value
        for module in users
        for node in ast.walk(tree_of(module))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    asked_for = {name for name in named if re.fullmatch(r"zfs_[a-z_]*[a-z]", name)}
    assert asked_for
    assert asked_for <= {*PARAMETERS}


def test_parameters_are_those_that_this_kernel_has(tmp_path: Path) -> None:
    folder = tmp_path / "sys/module/zfs/parameters"
    folder.mkdir(parents=True)
    (folder / "zfs_txg_timeout").write_text("60\n")
    (folder / "zfs_other").write_text("1\n")
    assert LoadMeter(tmp_path).read(0.0)["tunables"] == {"zfs_txg_timeout": 60}


def test_memory_is_in_bytes(tmp_path: Path) -> None:
    found = LoadMeter(loaded(tmp_path, user=0, idle=0, iowait=0)).read(0.0)["host"]
    assert found == {"memory_total": 16384 * 1024, "memory_available": 4096 * 1024}


def test_memory_is_read_again_when_it_is_old(tmp_path: Path) -> None:
    meter = LoadMeter(loaded(tmp_path, user=0, idle=0, iowait=0))
    meter.read(100.0)
    (tmp_path / "proc/meminfo").write_text(MEMINFO.replace("16384", "8192"))
    assert meter.read(101.0)["host"]["memory_total"] == 16384 * 1024
    assert meter.read(100.0 + EVERY)["host"]["memory_total"] == 8192 * 1024


def test_psutil_stands_in_where_the_kernel_has_no_such_files(tmp_path: Path) -> None:
    meter = LoadMeter(tmp_path)
    assert meter.read(0.0)["host"]["memory_total"] == psutil.virtual_memory().total


def test_this_machine_has_as_much_memory_as_psutil_says() -> None:
    assert LoadMeter().read(0.0)["host"]["memory_total"] == psutil.virtual_memory().total


def test_with_neither_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psutil", None)
    meter = LoadMeter(tmp_path)
    assert [meter.read(0.0)["host"], meter.read(0.0)["host"]] == [{}, {}]


def test_the_io_of_each_dataset_is_in_its_kstat(tmp_path: Path) -> None:
    machine(tmp_path, {"tank": "ONLINE", "other": "ONLINE"})
    set_objset(tmp_path, "tank", "tank/a b\udcff", read_at=9, created=5, count=3)
    set_objset(tmp_path, "tank", "n" * 255)
    set_objset(tmp_path, "other", "other/c")
    found = {row["dataset_name"]: row for row in DatasetMeter(tmp_path, lambda: 0.0).read("tank")}
    assert found.keys() == {"tank/a b\udcff", "n" * 255}
    assert found["tank/a b\udcff"] == {
        "crtime": "5",
        "snaptime": "9000000000",
        "dataset_name": "tank/a b\udcff",
        "reads": "3",
        "nread": "3",
        "writes": "6",
        "nwritten": "6",
    }


def test_a_kstat_that_is_not_understood_or_leaves_meanwhile_is_left_out(tmp_path: Path) -> None:
    folder = machine(tmp_path, {"tank": "ONLINE"}) / "proc/spl/kstat/zfs/tank"
    set_objset(tmp_path, "tank", "tank")
    (folder / "objset-0x1").write_text("")
    (folder / "objset-0x2").write_text("63 1 0x01 24 6832 1 2\nname type data\n")
    (folder / "objset-0x3").write_bytes(b"\xff\n" * 2000)
    (folder / "objset-0x4").symlink_to("unmounted")
    meter = DatasetMeter(tmp_path, lambda: 0.0)
    assert [row["dataset_name"] for row in meter.read("tank")] == ["tank"]
    assert meter.read("exported") == []


@rows(("seconds", "wait"), [(0.001, EVERY), (0.1, 0.1 / BUSY_SHARE)])
def test_the_longer_datasets_take_the_rarer_they_are_read(
    tmp_path: Path, seconds: float, wait: float
) -> None:
    now = [10.0, 10.0 + seconds]
    meter = DatasetMeter(tmp_path, lambda: now.pop(0) if len(now) > 1 else now[0])
    assert DatasetMeter(tmp_path, lambda: 0.0).due("tank")
    meter.read("tank")
    now[0] = 10.0 + 0.99 * wait
    assert (meter.due("tank"), meter.due("other")) == (False, True)
    now[0] = 10.0 + wait
    assert meter.due("tank")
