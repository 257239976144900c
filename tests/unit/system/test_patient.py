"""A state directory on a disk that doesn't answer blocks nothing."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from pathlib import Path

import pytest

from tests.unit.cli.commandline import STATUS
from tests.unit.tunables.conftest import Kernel
from tests.unit.waiting import soon
from zconsole.cli import local
from zconsole.config.file import read_config
from zconsole.errors import ZconsoleError
from zconsole.system import patient, record_file
from zconsole.system.patient import Patient
from zconsole.system.safe_path import StateError
from zconsole.tunables import store

SHORT = 0.1
TIME = "zfs_resilver_min_time_ms"


def seconds(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    return Kernel(tmp_path)


@pytest.fixture
def hang(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], threading.Event]]:
    """Once called, no file can be opened until the returned event is set."""
    back = threading.Event()
    real = os.open

    def never(path: str, *args: int, **options: int) -> int:
        if "/parameters/" not in str(path):  # the kernel's files are not on a disk
            back.wait()
        return real(path, *args, **options)

    def begin() -> threading.Event:
        monkeypatch.setattr(os, "open", never)
        monkeypatch.setattr(record_file, "ANSWER", SHORT)
        monkeypatch.setattr(Patient.call, "__defaults__", (SHORT, lambda _: None))
        return back

    yield begin
    back.set()
    monkeypatch.undo()


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[Future[object]]:
    """The calls that were made in threads."""
    made: list[Future[object]] = []
    begin = patient.begun

    def note(job: Callable[[], object]) -> Future[object]:
        made.append(begin(job))
        return made[-1]

    monkeypatch.setattr(patient, "begun", note)
    return made


def test_a_call_is_given_up_and_none_is_made_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    back, made, waited = threading.Event(), [], []
    monkeypatch.setattr(patient, "wait", lambda *how: waited.append(how[1]) or wait(*how))
    one = Patient()

    def call() -> None:
        made.append(1)
        back.wait()

    with pytest.raises(StateError, match=f"no answer in {SHORT:g} s"):
        one.call(call, SHORT)
    with pytest.raises(StateError, match="still hangs"):
        one.call(call, SHORT)
    back.set()
    while True:
        try:
            assert one.call(lambda: 5, SHORT) == 5
            break
        except StateError:
            time.sleep(0.01)
    assert len(made) == 1
    assert set(waited) == {SHORT}


def test_what_comes_too_late_is_let_go() -> None:
    back, late = threading.Event(), threading.Event()
    with pytest.raises(StateError):
        Patient().call(back.wait, SHORT, late=lambda _: late.set())
    assert not late.is_set()
    back.set()
    assert late.wait(10.0)


def test_errors_are_those_of_the_call() -> None:
    with pytest.raises(ZeroDivisionError):
        Patient().call(lambda: 1 // 0, 10.0)


def test_tunables_are_put_back_while_the_disk_hangs(
    kernel: Kernel, hang: Callable[[], threading.Event], begun: list[Future[object]]
) -> None:
    console = kernel.console("1:1")
    console.set({TIME: 5000}, 1.0)
    console.until("77")
    assert console.past().holds[TIME].until == "77"
    hang()
    begun.clear()
    for _ in range(2):
        console.past()
    assert len(begun) == 1, "a second call would wait, too"
    assert console.past().holds[TIME].until == "77"
    with pytest.raises(ZconsoleError):
        console.set({TIME: 6000}, 2.0)
    assert [entry.put_back for entry in console.restore(3.0)] == [True]
    assert int((kernel.module / "parameters" / TIME).read_text()) == 3000


@pytest.mark.slow
def test_a_lock_that_is_got_too_late_is_let_go(
    kernel: Kernel, hang: Callable[[], threading.Event], begun: list[Future[object]]
) -> None:
    console = kernel.console()
    console.set({TIME: 5000}, 1.0)
    back = hang()
    console.restore(2.0)
    back.set()
    wait(begun)

    def is_set() -> bool:
        kernel.console().set({TIME: 6000}, 3.0)
        return True

    assert soon(is_set)


@pytest.mark.slow
def test_tunables_are_put_back_while_another_keeps_the_lock(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    console = kernel.console()
    console.set({TIME: 5000}, 1.0)
    monkeypatch.setattr(store, "PATIENCE", 60.0)
    with kernel.console()._memory.open("another"):  # as a zconsole that was stopped, or hangs
        assert seconds(lambda: console.restore(2.0)) < 10.0
    assert kernel.read(TIME) == 3000


def test_a_session_begins_while_the_disk_hangs(
    tmp_path: Path, hang: Callable[[], threading.Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZCONSOLE_STATE", str(tmp_path / "state"))
    back = hang()
    rounds = [[{"t": float(t), "text": STATUS, "clock": float(t)}] for t in range(1, 4)]
    session = local.session()
    began = time.monotonic()
    for raws in rounds:
        assert session.advance(raws)  # type: ignore[arg-type]
    assert time.monotonic() - began < 5.0
    assert any("no answer" in note for note in session.take_notes())
    back.set()


def test_a_pool_is_shown_though_the_disk_hangs_from_then_on(
    tmp_path: Path, hang: Callable[[], threading.Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZCONSOLE_STATE", str(tmp_path / "state"))
    session = local.session()
    back = hang()
    began = time.monotonic()
    guid = {"name": "tank", "pool_guid": 77, "state": 0}
    tree = {"type": "root", "id": 0, "guid": 1, "children": []}
    for t in range(1, 4):
        raw = {"t": float(t), "clock": float(t), "libzfs": {**guid, "vdev_tree": tree}}
        session.advance([raw])  # type: ignore[list-item]
    session.close()
    assert time.monotonic() - began < 10.0
    assert any("tank: " in note for note in session.take_notes())
    back.set()


def test_a_configuration_that_hangs_is_one_wrong_entry(
    tmp_path: Path, hang: Callable[[], threading.Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "config.toml"
    monkeypatch.setattr("zconsole.config.file.config_path", lambda: path)
    path.write_text('units = "exact"\n')
    assert read_config().value("units") == "exact"
    hang()
    config = read_config()
    assert (config.value("units"), len(config.wrong)) == ("binary", 1)
    assert "no answer in" in config.wrong[0].problem
