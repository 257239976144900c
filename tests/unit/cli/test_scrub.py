"""``zconsole scrub``: the window that is set, and what is refused."""

from __future__ import annotations

import json
import time
from datetime import datetime

import pytest

from zconsole.actions.scrub_window import MachineWindows
from zconsole.cli import local, remote, scrub
from zconsole.cli.main import main
from zconsole.cli.scrub import line
from zconsole.pool.scrub_window import ScrubWindow
from zconsole.sim.backends.actions import simulated_backend
from zconsole.sim.source import SimulatedSource

LATER = f"{(datetime.now().astimezone().hour + 2) % 24:02}:00"
HOURS = f"{LATER}-{(datetime.now().astimezone().hour + 4) % 24:02}:00"
NIGHT = ScrubWindow("tank", "1", HOURS, begun=True, paused=True)


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    tmp_path.chmod(0o700)
    monkeypatch.setenv("ZCONSOLE_STATE", str(tmp_path))
    with MachineWindows(tmp_path).open() as windows:
        windows["1"] = NIGHT
    return tmp_path


def test_without_hours_the_list_says_how_to_set_some(state, capsys):
    with MachineWindows(state).open() as windows:
        windows.clear()
    assert main(["scrub"]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "zconsole scrub window POOL" in said.err
    assert main(["scrub", "--json"]) == 0
    assert capsys.readouterr() == ("", "")


def test_resume_starts_a_keeper_for_the_hours_that_are_set(state, monkeypatch):
    woken = []
    monkeypatch.setattr(
        "zconsole.system.keeper.ask", lambda state, options, **order: woken.append(state)
    )
    assert main(["scrub", "resume"]) == 0
    assert woken == [state]


def test_a_line_says_how_far_it_is():
    assert line(ScrubWindow("a", "1", "00:00-00:00")).endswith("(not started)")
    assert line(ScrubWindow("a", "1", "00:00-00:00", begun=True)).endswith("(may run until 00:00)")


def test_the_health_report_has_the_hours_of_a_scrub(state, monkeypatch, capsys):
    source = SimulatedSource("mirror-scrub", clock=time.monotonic)
    pool = source.world.pools[0]
    for module in (local, remote):
        monkeypatch.setattr(module, "LiveSource", lambda _pools: source)
    assert main(["status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["scrub_hours"] is None, "another pool's"
    with MachineWindows(state).open() as windows:
        windows[str(pool.guid)] = ScrubWindow(pool.name, str(pool.guid), HOURS, begun=True)
    assert main(["status", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["scrub_hours"] == HOURS
    assert found["scan"]["eta_reason"].startswith(f"with pauses outside {HOURS}; ")
    assert main(["status"]) == 0
    said = capsys.readouterr().out
    assert f"scrub hours: {HOURS}, " in said
    assert main(["watch", "--json", "--count", "1"]) == 0
    assert json.loads(capsys.readouterr().out)["scrub_hours"] == HOURS
    (state / "scrub-windows.json").write_text("{")
    assert main(["status", "--json"]) == 0, "a report of health needs no hours"


def test_hours_are_dropped_and_what_follows_is_said(monkeypatch, capsys):
    source = SimulatedSource("healthy", clock=time.monotonic)
    backend, pool = simulated_backend(source.world), source.world.pools[0]
    backend.windows.switch(ScrubWindow(pool.name, str(pool.guid), NIGHT.hours))
    monkeypatch.setattr(local, "LiveSource", lambda _pools: source)
    monkeypatch.setattr(scrub, "live_backend", lambda **_: backend)
    assert main(["scrub", "off", pool.name]) == 0
    assert backend.windows.windows() == ()
    assert capsys.readouterr().err
