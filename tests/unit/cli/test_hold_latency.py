from __future__ import annotations

from pathlib import Path

import pytest

from zconsole.cli import hold_latency, local, tunables
from zconsole.cli.options import parser_of
from zconsole.errors import UnavailableError, UsageError
from zconsole.monitor.feed import Update
from zconsole.pool.model import Pool, Scan, Vdev
from zconsole.tunables.catalog import BY_NAME
from zconsole.tunables.control import Setting
from zconsole.zfs.sources.base import Capabilities

NAME = "zfs_vdev_scrub_max_active"


@pytest.fixture
def module(tmp_path: Path, monkeypatch) -> Path:
    parameters = tmp_path / "zfs" / "parameters"
    parameters.mkdir(parents=True)
    (tmp_path / "zfs" / "version").write_text("2.3.9-1\n")
    (parameters / NAME).write_text("3\n")
    monkeypatch.setenv("ZCONSOLE_STATE", str(tmp_path / "state"))

    async def nothing(_: object) -> Update:
        return Update((), Capabilities("none"))

    monkeypatch.setattr(local, "once", nothing)
    return tmp_path / "zfs"


def run(module: Path, *words: str, read_only: bool = False) -> int:
    args = parser_of("tunables").parse_args(["hold-latency", *words])
    args.config, args.read_only = None, read_only
    return tunables.run(args, module)


def pool(name: str, kind: str) -> Pool:
    leaves = tuple(Vdev(f"{name}{i}", "disk") for i in range(2))
    tops = leaves if kind == "stripe" else (Vdev("mirror-0", "mirror", children=leaves),)
    root = Vdev(name, "root", children=tops)
    return Pool(name, "ONLINE", root, scans=(Scan("scrub", "running"),))


@pytest.mark.parametrize("words", [(), ("fast",), ("1", "2"), ("0",), ("nan",), ("60",)])
def test_a_latency_that_is_none_is_refused(module, words):
    with pytest.raises(UsageError):
        run(module, *words)


def test_nothing_to_steer_without_a_scan(module):
    with pytest.raises(UnavailableError, match="nothing to steer"):
        run(module, "0.02")


def test_read_only_refuses_it(module):
    with pytest.raises(UsageError, match="read-only"):
        run(module, "0.02", read_only=True)


def test_what_was_set_before_is_to_be_restored_first(module):
    args = parser_of("tunables").parse_args(["set", f"{NAME}=5"])
    args.config, args.read_only = None, False
    tunables.run(args, module)
    with pytest.raises(UsageError, match=f"restore {NAME} first"):
        run(module, "0.02")


def test_off_where_none_runs_says_so(module, capsys):
    assert run(module, "off") == 0
    assert "no autopilot runs" in capsys.readouterr().err


def test_the_plan_names_every_pool_that_scans_and_what_it_steers_by():
    lever = Setting(BY_NAME[NAME], 3, 3, "")
    lines = hold_latency.plan(0.02, [pool("tank", "mirror"), pool("data", "mirror")], [lever])
    text = "\n".join(lines)
    assert "tank: scrub" in text
    assert "data: scrub" in text
    assert "queue wait of synchronous" in text
    assert f"{NAME}: 1 to 10, now 3" in text
    assert "never slower" not in text


def test_the_plan_says_that_a_pool_without_redundancy_is_never_slowed_down():
    lever = Setting(BY_NAME[NAME], 3, 3, "")
    text = "\n".join(hold_latency.plan(0.02, [pool("tank", "stripe")], [lever]))
    assert f"{NAME}: 3 to 10, now 3" in text
    assert "never slower than now while tank" in text
