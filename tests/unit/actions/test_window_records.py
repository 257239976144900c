"""Scrub windows on disk, and the keeper that is started for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from zconsole.actions.scrub_window import NAME, MachineWindows
from zconsole.pool.scrub_window import ScrubWindow
from zconsole.system import keeper
from zconsole.system.state_dir import StateError

NIGHT = ScrubWindow("tank", "1", "22:00-06:00", begun=True)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    return tmp_path


@pytest.fixture
def woken(monkeypatch) -> list[Path]:
    """The state directories for which a keeper was requested."""
    asked: list[Path] = []
    monkeypatch.setattr(keeper, "ask", lambda state, options, **order: asked.append(state))
    return asked


def test_hours_that_are_set_are_kept_and_the_keeper_woken(state, woken):
    machine = MachineWindows(state)
    said = machine.switch(ScrubWindow("tank", "1", "22:00-06:00", begun=True))
    assert said == "tank is scrubbed only in the hours 22:00-06:00"
    assert MachineWindows(state).windows() == (NIGHT,)
    assert woken == [state]
    assert machine.switch(ScrubWindow("tank", "1", "")) == "the hours of tank's scrub are dropped"
    assert machine.windows() == ()


@pytest.mark.usefixtures("woken")
def test_a_scrub_paused_for_other_hours_is_paused_for_the_new_ones_too(state):
    machine = MachineWindows(state)
    machine.switch(ScrubWindow("tank", "1", "22:00-06:00", begun=True, paused=True))
    machine.switch(ScrubWindow("tank", "1", "23:00-05:00", begun=True))
    (window,) = machine.windows()
    assert (window.hours, window.paused) == ("23:00-05:00", True)


def test_after_a_reboot_the_keeper_is_started_again_where_hours_are_set(state, woken):
    machine = MachineWindows(state)
    machine.resume()
    assert woken == []
    with MachineWindows(state).open() as windows:
        windows["1"] = NIGHT
    machine.resume()
    assert woken == [state]


def test_what_somebody_else_changed_meanwhile_is_left_alone(state):
    records = MachineWindows(state)
    with records.open() as windows:
        windows["1"] = NIGHT
    other = ScrubWindow("tank", "1", "01:00-02:00")
    assert records.replaced(other, None) is False
    assert records.replaced(NIGHT, other) is True
    assert records.windows() == (other,)
    assert records.replaced(other, None) is True
    assert records.windows() == ()


def test_a_damaged_file_is_named(state):
    (state / NAME).write_text("{}")
    (state / NAME).chmod(0o600)
    with pytest.raises(StateError, match="is damaged"):
        MachineWindows(state).windows()
