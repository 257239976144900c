"""The last full scrub: which scans count, and when the next is overdue."""

from __future__ import annotations

from tests.factory import mirror_pool
from tests.records import replace
from tests.table import rows
from zconsole.pool.model import Sample, Scan
from zconsole.timeline.scrubs import ScrubAge, ScrubTracker, is_full_scrub

DAY = 86400.0
NOW = 1000 * DAY
FULL = Scan("scrub", "finished", start=NOW - 20 * DAY, end=NOW - 19 * DAY, total_bytes=100)
FULL = FULL._replace(issued_bytes=100)


def sample(*scans: Scan, version: str | None = "2.3.9", dated: bool = True, **fields) -> Sample:
    pool = replace(mirror_pool(*scans), **fields)
    return Sample(NOW, NOW, "libzfs", True, pool, version=version, dated=dated)


def age(*scans: Scan, after: float = 35 * DAY, **fields) -> ScrubAge:
    return ScrubTracker(after).push(sample(*scans, **fields))


def test_the_age_counts_from_the_end_of_the_last_full_scrub():
    assert age(FULL) == ScrubAge(FULL.end, 19 * DAY, overdue=False)
    assert age(FULL, after=18 * DAY) == ScrubAge(FULL.end, 19 * DAY, overdue=True)


@rows(
    "later",
    [
        FULL._replace(state="canceled", end=NOW - DAY),
        FULL._replace(state="running", end=None),
        FULL._replace(full=False, end=NOW - DAY),
        FULL._replace(function="resilver", end=NOW - DAY),
        FULL._replace(function="errorscrub", end=NOW - DAY),
    ],
)
def test_another_scan_does_not_take_its_place(later):
    tracker = ScrubTracker()
    tracker.push(sample(FULL))
    assert tracker.push(sample(later)).last == FULL.end
    assert age(later).last is None
    assert age(later, full_scrub=NOW - 40 * DAY).overdue is True


def test_a_scrub_with_errors_was_a_full_one():
    assert age(FULL._replace(errors=3)).last == FULL.end


def test_a_pool_never_scrubbed_counts_from_its_creation():
    assert age() == ScrubAge(never=True)
    assert age(created=NOW - 36 * DAY) == ScrubAge(age=36 * DAY, overdue=True, never=True)
    assert age(created=NOW - 34 * DAY).overdue is False


def test_where_only_another_scan_is_known_nothing_is_claimed():
    assert age(FULL._replace(function="resilver")) == ScrubAge()


def test_a_new_pool_of_the_same_name_was_not_scrubbed():
    tracker = ScrubTracker()
    tracker.recall(NOW - DAY)
    assert tracker.push(sample(guid="1")).last == NOW - DAY
    assert tracker.push(sample(guid=None)).last == NOW - DAY  # as in text output
    assert tracker.push(sample(guid="2")) == ScrubAge(never=True)


def test_saved_output_of_unknown_age_is_never_overdue():
    assert age(FULL, dated=False, after=1.0) == ScrubAge(FULL.end)


def test_the_time_of_one_scrub_does_not_change_with_its_source():
    assert age(FULL, full_scrub=FULL.end + 1).last == FULL.end


@rows(
    ("version", "full", "issued", "counts"),
    [
        ("2.2.9", None, 30, True),
        ("2.2.9", False, 100, False),  # a device lacked data: it was as complete as possible
        ("2.4.0", True, 30, True),
        ("2.4.0", None, 95, True),
        ("2.4.0", None, 30, False),
        ("2.4.0", None, None, False),
        (None, None, None, True),
        (None, None, 30, False),
    ],
)
def test_what_is_known_of_a_scrub_decides_whether_it_counts(version, full, issued, counts):
    assert is_full_scrub(FULL._replace(full=full, issued_bytes=issued), version) is counts
