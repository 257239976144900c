"""Checklists on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.records import replace
from zconsole.swap import store as swap_store
from zconsole.swap.disk import DONE, Checklist, SwapDisk, SwapEntry
from zconsole.swap.store import Guide, SwapStore, dumped, loaded
from zconsole.system.state_dir import StateError

ONE = Checklist(
    "0123abcd",
    "tank",
    "1",
    5.0,
    SwapDisk("d0", "1000", "tank", size=5, serial="S\udcff"),
    "raidz2-0",
    "pull-first",
    around=(SwapDisk("d1"),),
    log=(SwapEntry(5.0, "explain", "began"),),
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    return tmp_path


def test_a_checklist_is_read_back_as_it_was():
    assert loaded(dumped(ONE)) == ONE


def test_a_checklist_survives_its_process(place: Path):
    first = SwapStore(place)
    assert first.save(ONE)
    first.close()
    assert SwapStore(place).read() == (ONE,)


def test_one_process_leads_and_others_read(place: Path):
    first, second = SwapStore(place), SwapStore(place)
    assert first.save(ONE)
    assert not second.save(replace(ONE, pool="other"))
    assert second.read() == (ONE,)
    first.close()
    assert second.save(replace(ONE, pool="other"))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"[" * 100_000,
        b'{"format": 2, "checklist": {}}',
        b'{"format": 1, "checklist": {"id": "0123abcd"}}',
        dumped(replace(ONE, mode="sideways")),
        dumped(replace(ONE, at="nowhere")),
        dumped(replace(ONE, id="89abcdef")),
    ],
)
def test_a_damaged_file_is_left_out(place: Path, data: bytes):
    (place / "swap-0123abcd.json").write_bytes(data)
    (place / "swap-0123abcd.json").chmod(0o600)
    assert SwapStore(place).read() == ()


def test_an_id_never_becomes_another_path(place: Path):
    assert not SwapStore(place).save(replace(ONE, id="../../etc"))
    assert list(place.iterdir()) == []


def test_a_file_of_somebody_else_is_left_out(place: Path):
    (place / "swap-0123abcd.json").write_bytes(dumped(ONE))
    (place / "swap-0123abcd.json").chmod(0o622)
    assert SwapStore(place).read() == ()


def test_without_a_directory_nothing_is_kept():
    with pytest.raises(StateError):
        SwapStore(None).save(ONE)


def test_without_a_directory_the_swap_is_led_all_the_same():
    guide = Guide(ONE, SwapStore(None))
    assert guide.leads
    assert "not remembered" in guide.problem


@pytest.mark.slow
def test_closed_checklists_are_kept_for_their_reports_and_the_oldest_go(place: Path, monkeypatch):
    monkeypatch.setattr(swap_store, "KEPT", 3)
    store = SwapStore(place)
    for n in range(5):
        store.save(replace(ONE, id=f"{n:08x}", begun=float(n), state=DONE))
    kept = store.read()
    assert len(kept) == 3
    assert kept[0].begun == 4
