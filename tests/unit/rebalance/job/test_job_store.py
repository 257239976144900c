"""Records of jobs: found by every name of their journal, and read while others change."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from zconsole.rebalance.job import control, job_store


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ZCONSOLE_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.mark.parametrize("name", ["real/journal", "link", "real/../real/journal", "way/journal"])
def test_a_journal_has_one_job_whatever_it_is_called(tmp_path: Path, name: str) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "journal").touch()
    (tmp_path / "link").symlink_to("real/journal")
    (tmp_path / "way").symlink_to("real")
    record = job_store.add(tmp_path / name)
    assert record.journal == tmp_path / "real" / "journal"
    for other in ("real/journal", "link", "real/../real/journal", "way/journal"):
        assert job_store.by_journal(tmp_path / other) == record


@pytest.mark.slow
def test_records_that_go_meanwhile_are_left_out() -> None:
    lasting, over = job_store.add(None), threading.Event()

    def come_and_go() -> None:
        while not over.is_set():
            job_store.remove(job_store.add(None))

    others = threading.Thread(target=come_and_go)
    others.start()
    try:
        for _ in range(300):
            assert lasting in list(job_store.records())
    finally:
        over.set()
        others.join()


@pytest.mark.parametrize("text", ["", "[]", '{"journal": 1}', "[" * 3000])
def test_a_damaged_record_stands_for_the_journal_beside_it(text: str) -> None:
    record = job_store.add(None)
    record.file.write_text(text)
    assert list(job_store.records()) == [record]


def test_what_is_no_record_hides_no_job(state: Path) -> None:
    record = job_store.add(None)
    (state / "rebalance" / "0dd000.json").mkdir()
    (state / "rebalance" / "60e000.json").symlink_to("nowhere")
    assert job_store.find(record.job) == record
    assert control.list_jobs([]) == []
