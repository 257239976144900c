from __future__ import annotations

import os
from pathlib import Path

import pytest

from zconsole.actions.backend import make_way
from zconsole.errors import UsageError
from zconsole.system.audit import MemoryLog
from zconsole.system.host import process_mark
from zconsole.tunables.control import Control
from zconsole.tunables.parameters import Parameters
from zconsole.tunables.store import PILOT, TunableStore

NAME = "zfs_vdev_scrub_max_active"
DEAD = "999999999:1"
"""The process mark of no process."""


@pytest.fixture
def module(tmp_path: Path) -> Path:
    parameters = tmp_path / "zfs" / "parameters"
    parameters.mkdir(parents=True)
    (tmp_path / "zfs" / "version").write_text("2.3.9-1\n")
    (parameters / NAME).write_text("3\n")
    (tmp_path / PILOT).write_text(DEAD)
    (tmp_path / PILOT).chmod(0o600)
    tmp_path.chmod(0o700)
    return tmp_path / "zfs"


def control(module: Path, owner: str | None = None) -> Control:
    store = TunableStore(module.parent)
    return Control(Parameters(module), store, MemoryLog(), owner)


def test_what_a_killed_autopilot_left_makes_way(module):
    control(module, DEAD).set({NAME: 8}, 1.0)
    make_way(control(module), 1.0)
    assert control(module).setting(NAME).value == 3


def test_what_an_autopilot_holds_that_runs_is_left_to_it(module):
    """The next one is told that an autopilot is running, which would set the values again."""
    mark = process_mark(os.getpid())
    (module.parent / PILOT).write_text(mark)
    control(module, mark).set({NAME: 8}, 1.0)
    make_way(control(module), 1.0)
    assert control(module).setting(NAME).value == 8


def test_what_a_person_has_set_does_not(module):
    control(module).set({NAME: 8}, 1.0)
    with pytest.raises(UsageError, match=f"restore {NAME} first"):
        make_way(control(module), 1.0)
    assert control(module).setting(NAME).value == 8
