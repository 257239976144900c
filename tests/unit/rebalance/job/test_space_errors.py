"""Which files without space end a job."""

from __future__ import annotations

import pytest

from zconsole.rebalance.engine.item import FileOutcome, StopJobError
from zconsole.rebalance.engine.journal import FileRow
from zconsole.rebalance.job.space_errors import MOST, NO_SPACE, NO_WRITING, QUOTA, SpaceErrors

ROW = FileRow(1, 1, b"file", 2, 1000, 1)
MOVED = FileOutcome(ROW, "moved", 1000, None)


def failed(reason: str) -> FileOutcome:
    return FileOutcome(ROW, "failed", 0, reason)


@pytest.mark.parametrize(("reason", "room"), [(NO_SPACE, 5000), (QUOTA, 999)])
def test_a_full_filesystem_ends_the_job(reason: str, room: int) -> None:
    strikes = SpaceErrors(lambda: room)
    for _ in range(MOST - 1):
        strikes.judge([MOVED, failed(reason)])
    with pytest.raises(StopJobError, match="no space left"):
        strikes.judge([failed(reason)])


def ends_after(strikes: SpaceErrors, most: int = 2 * MOST) -> int:
    """How many batches without space it takes from now on to end the job; ``most`` if more."""
    for number in range(1, most):
        try:
            strikes.judge([failed(NO_SPACE)])
        except StopJobError:
            return number
    return most


def test_a_quota_of_one_owner_does_not() -> None:
    strikes = SpaceErrors(lambda: 1000)
    for _ in range(2 * MOST):
        strikes.judge([failed(QUOTA)])
    assert ends_after(strikes) == MOST


@pytest.mark.parametrize(("between", "left"), [([MOVED], MOST), ([], 1)], ids=["moved", "nothing"])
def test_what_fits_again_starts_the_count_anew(between: list[FileOutcome], left: int) -> None:
    strikes = SpaceErrors(lambda: 0)
    for _ in range(MOST - 1):
        strikes.judge([failed(NO_SPACE)])
    strikes.judge(between)
    assert ends_after(strikes) == left


@pytest.mark.parametrize("reason", [NO_WRITING, f"changed; {NO_WRITING}"])
def test_a_filesystem_that_can_only_be_read_ends_the_job_at_once(reason: str) -> None:
    with pytest.raises(StopJobError, match="mounted read-only"):
        SpaceErrors(lambda: 5000).judge([MOVED, failed(reason)])
