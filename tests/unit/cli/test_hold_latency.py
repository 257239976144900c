from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.table import rows
from zconsole.cli import local, tunables
from zconsole.cli.options import parser_of
from zconsole.errors import UnavailableError, UsageError
from zconsole.pool.model import Pool, Scan, Vdev
from zconsole.system.audit import MemoryLog
from zconsole.system.state_dir import state_dir
from zconsole.timeline.feed import Update
from zconsole.tunables import autopilot
from zconsole.tunables.control import Control
from zconsole.tunables.parameters import Parameters
from zconsole.tunables.pilot import HoldOrder, Targets
from zconsole.tunables.store import PILOT, TunableStore
from zconsole.zfs.sources.base import Capabilities

NAME = "zfs_vdev_scrub_max_active"
DEAD = "999999999:1"
"""The process mark of no process."""
READ = tuple(1000 if bucket == 20 else 0 for bucket in range(37))


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
    leaves = tuple(Vdev(f"{name}{i}", "disk", histograms={"sync_r": READ}) for i in range(2))
    tops = leaves if kind == "stripe" else (Vdev("mirror-0", "mirror", children=leaves),)
    root = Vdev(name, "root", children=tops)
    return Pool(name, "ONLINE", root, scans=(Scan("scrub", "running"),))


@rows("words", [(), ("fast",), ("1", "2"), ("0",), ("nan",), ("60",)])
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


def test_off_does_not_say_restored_of_what_somebody_changed_since(module, capsys):
    state = state_dir(create=True)
    parameters = Parameters(module)
    Control(parameters, TunableStore(state), MemoryLog(), DEAD).set({NAME: 8}, 1.0)
    (state / PILOT).write_text(DEAD)
    parameters.write(NAME, 7)
    assert run(module, "off") == 0
    assert parameters.read(NAME) == 7
    said = capsys.readouterr().err
    assert "restored" not in said
    assert f"{NAME}: left at 7: somebody else changed it" in said


def scanned(monkeypatch, kind: str = "stripe") -> None:
    class Seen:
        sample = True
        scan = None
        seen = pool("tank", kind)

    async def once(_: object):
        return SimpleNamespace(frames=(Seen(),))

    monkeypatch.setattr(local, "once", once)


def test_below_the_defaults_nobody_goes_unasked(module, monkeypatch, capsys):
    scanned(monkeypatch)
    with pytest.raises(UsageError, match="pass --yes"):
        run(module, "20ms", "below-defaults")
    assert "may take up to" in capsys.readouterr().err


def test_yes_goes_below_the_defaults(module, monkeypatch):
    scanned(monkeypatch)
    started = []

    def start(*args, **_):
        started.append(args[1:])

    monkeypatch.setattr(autopilot, "start", start)
    assert run(module, "20ms", "below-defaults", "--yes") == 0
    assert started == [(HoldOrder(Targets(0.02), below=True),)]
