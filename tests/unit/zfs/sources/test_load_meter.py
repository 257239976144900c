"""CPU and memory, read from the kernel's files or from psutil."""

from __future__ import annotations

import sys
from pathlib import Path

import psutil
import pytest

from zconsole.zfs.sources.kstat import LoadMeter

STAT = "cpu  {user} 0 100 {idle} {iowait} 0 0 0 {user} 0\ncpu0 1 2 3 4 5 6 7 8 9 0\nintr 1\n"
MEMINFO = "MemTotal:       16384 kB\nMemAvailable:    4096 kB\nHugePages: 0\n"


def machine(tmp_path: Path, user: int, idle: int, iowait: int) -> Path:
    (tmp_path / "proc").mkdir(exist_ok=True)
    (tmp_path / "proc/stat").write_text(STAT.format(user=user, idle=idle, iowait=iowait))
    (tmp_path / "proc/meminfo").write_text(MEMINFO)
    return tmp_path


def test_the_cpu_is_busy_for_what_is_neither_idle_nor_waiting_for_disks(tmp_path: Path) -> None:
    meter = LoadMeter(machine(tmp_path, user=200, idle=1000, iowait=50))
    assert "cpu" not in meter.read()
    machine(tmp_path, user=225, idle=1055, iowait=70)
    assert meter.read()["cpu"] == pytest.approx(0.25)


def test_no_time_between_two_readings_gives_no_share(tmp_path: Path) -> None:
    meter = LoadMeter(machine(tmp_path, user=200, idle=1000, iowait=50))
    assert ["cpu" in meter.read(), "cpu" in meter.read()] == [False, False]


def test_a_wait_that_runs_back_is_no_share_above_1(tmp_path: Path) -> None:
    meter = LoadMeter(machine(tmp_path, user=200, idle=1000, iowait=50))
    meter.read()
    machine(tmp_path, user=300, idle=1000, iowait=40)
    assert meter.read()["cpu"] == 1.0


def test_memory_is_in_bytes(tmp_path: Path) -> None:
    found = LoadMeter(machine(tmp_path, user=0, idle=0, iowait=0)).read()
    assert found == {"memory_total": 16384 * 1024, "memory_available": 4096 * 1024}


def test_psutil_stands_in_where_the_kernel_has_no_such_files(tmp_path: Path) -> None:
    meter = LoadMeter(tmp_path)
    assert meter.read()["memory_total"] == psutil.virtual_memory().total


def test_this_machine_has_as_much_memory_as_psutil_says() -> None:
    assert LoadMeter().read()["memory_total"] == psutil.virtual_memory().total


def test_with_neither_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psutil", None)
    meter = LoadMeter(tmp_path)
    assert [meter.read(), meter.read()] == [{}, {}]
