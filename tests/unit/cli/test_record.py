from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from zconsole import units
from zconsole.cli.main import main
from zconsole.zfs.raw import Raw
from zconsole.zfs.sources.live import LiveSource

SILENT: Raw = {"t": 1.0, "pool": "tank", "problem": "no answer"}
ANSWER: Raw = {"t": 2.0, "pool": "tank", "text": "  pool: tank\n state: ONLINE\n"}


@pytest.mark.parametrize(
    ("rounds", "count"),
    [([(SILENT,), (SILENT,)], 0), ([(SILENT,), (ANSWER,)], 1), ([(ANSWER, SILENT)] * 2, 2)],
)
def test_only_samples_that_were_written_are_counted(
    rounds: list[tuple[Raw, ...]],
    count: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    answers: Iterator[tuple[Raw, ...]] = iter(rounds)

    async def sample(_: LiveSource) -> tuple[Raw, ...]:
        return next(answers)

    monkeypatch.setenv("ZCONSOLE_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(LiveSource, "sample", sample)
    path = tmp_path / "recording"
    assert main(["record", str(path), "--count", "2", "--interval", "0.1"]) == 0
    assert len(path.read_text().splitlines()) == count
    assert f"{units.counted(count, 'sample')} in {path}" in capsys.readouterr().err
