"""Scans with rounded bytes, as printed for people: two roundings never make a rate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime

import pytest

from tests.table import rows
from zconsole.timeline.eta.estimate import MEASURING
from zconsole.timeline.frame import ScanView
from zconsole.timeline.session import Session
from zconsole.units import parse_size, size

pytestmark = pytest.mark.slow

GIB, TIB = 2**30, 2**40
T = 1_800_000_000
EARLIER = 3 * 3600
TOTAL = 12.9 * TIB
RATE = 0.1 * GIB
WALK = 0.8 * GIB

TEXT = """\
  pool: tank
 state: DEGRADED
  scan: resilver in progress since {since}
\t{scanned} scanned at 1.20G/s, {issued} issued at 97.1M/s, {total} total
\t{repaired} resilvered, {percent:.2f}% done, 1 days 02:03:04 to go
config:

\tNAME        STATE     READ WRITE CKSUM
\ttank        DEGRADED     0     0     0
\t  raidz1-0  DEGRADED     0     0     0
\t    sda     ONLINE       0     0     0
\t    sdb     ONLINE       0     0     0
\t    sdc     ONLINE       0     0     0
\t    sdd     ONLINE       0     0     0  (resilvering)
"""

COPY = """\
  pool: tank
 state: ONLINE
remove: Evacuation of mirror-1 in progress since Fri Jan 15 07:00:00 2027
\t{} copied out of {} at 512M/s, {:.2f}% done, 1h2m to go
config:

\tNAME        STATE     READ WRITE CKSUM
\ttank        ONLINE       0     0     0
\t  sda       ONLINE       0     0     0
"""


def issued(seconds: float) -> float:
    return 1.1 * TIB + seconds * RATE


def as_text(seconds: float) -> dict[str, object]:
    """Return the output of 2.0 to 2.2, with the remaining bytes of ``zpool wait``."""
    text = TEXT.format(
        since=datetime.fromtimestamp(T - EARLIER, UTC).strftime("%a %b %e %H:%M:%S %Y"),
        scanned=size(4.5 * TIB + seconds * WALK),
        issued=size(issued(seconds)),
        total=size(TOTAL),
        repaired=size(issued(seconds) / 4),
        percent=100 * issued(seconds) / TOTAL,
    )
    remaining = int(TOTAL - issued(seconds))
    return {"text": text, "wait": f"0\t0\t0\t0\t0\t{remaining}\t0\t0"}


def as_json(seconds: float) -> dict[str, object]:
    """Return the output of ``zpool status -j`` without ``--json-int``."""
    stats = {
        "function": "RESILVER",
        "state": "SCANNING",
        "start_time": str(T - EARLIER),
        "pass_start": str(T - EARLIER),
        "to_examine": size(TOTAL),
        "examined": size(4.5 * TIB + seconds * WALK),
        "issued": size(issued(seconds)),
        "processed": size(issued(seconds) / 4),
        "issued_bytes_per_scan": size(issued(seconds)),
        "bytes_per_scan": size(4.5 * TIB + seconds * WALK),
    }
    root = {"name": "tank", "vdev_type": "root", "guid": "1", "state": "DEGRADED", "vdevs": {}}
    pool = {"name": "tank", "state": "DEGRADED", "pool_guid": "1", "scan_stats": stats}
    return {"status": {"pools": {"tank": {**pool, "vdevs": {"tank": root}}}}}


def watched(
    form: Callable[[float], dict[str, object]], seconds: Iterable[int]
) -> Iterator[ScanView]:
    session = Session()
    for second in seconds:
        (frame,) = session.advance([{"t": T + second, **form(second)}])  # type: ignore[typeddict-item]
        yield frame.scans[0]


def test_exact_remaining_bytes_tell_the_rate_and_not_the_rounded_ones_repaired():
    for second, view in enumerate(watched(as_text, range(120))):
        if second >= 5:
            left = (TOTAL - issued(second)) / RATE
            assert view.issue_rate == pytest.approx(RATE, rel=0.01)
        if second >= 15:
            assert view.estimate.eta == pytest.approx(left, rel=0.01)


def without_row(lacks: Callable[[int], bool]) -> Callable[[float], dict[str, object]]:
    """Drop some answers of ``zpool wait``; the printed total is 40 G too small."""

    def form(seconds: float) -> dict[str, object]:
        told = as_text(seconds)
        remaining = int(TOTAL + 40 * GIB - issued(seconds))
        return {**told, "wait": "" if lacks(int(seconds)) else f"0\t0\t0\t0\t0\t{remaining}\t0\t0"}

    return form


@rows(
    "lacks",
    [
        lambda second: second == 0,
        lambda second: second % 30 == 29,
        lambda second: second % 2 == 1,
        lambda second: second >= 100,
    ],
)
def test_an_answer_that_lacks_now_and_then_is_no_work(lacks):
    """Printed bytes and remaining ones differ by a constant, which is no progress either way."""
    for second, view in enumerate(watched(without_row(lacks), range(200))):
        if second >= 30:
            assert view.issue_rate == pytest.approx(RATE, rel=0.1)
            assert view.estimate.eta == pytest.approx((TOTAL - issued(second)) / RATE, rel=0.1)
            assert view.notes == ()


def test_the_walk_is_told_by_zpools_average_until_its_rounded_bytes_have_moved_far():
    rates = [view.scan_rate for view in watched(as_text, [*range(60), *range(60, 700, 4)])]
    assert set(rates[5:60]) == {parse_size("1.20G")}
    assert rates[-1] == pytest.approx(WALK, rel=0.05)


def test_printed_json_is_as_coarse_as_text():
    for second, view in enumerate(watched(as_json, range(70))):
        assert view.scan.resolution == pytest.approx(0.005 * TIB)
        assert view.window is None
        if 0 < second < 60:
            assert view.estimate.lacking == MEASURING
        else:
            assert "zpool averages" in view.estimate.reason


@pytest.mark.parametrize("interval", [1, 5])
def test_what_is_printed_too_coarsely_is_not_called_no_progress(interval):
    """Earlier it said "no progress for 0s" while bytes moved."""
    reasons = [view.estimate.reason for view in watched(as_json, range(0, 300, interval))]
    assert not any("no progress" in why for why in reasons)
    assert reasons[-1].endswith("(what is printed is too coarse yet)")


def test_a_copy_rests_on_its_percentage_which_is_finer_than_its_bytes():
    session = Session()
    for second in range(200):
        copied = 1.1 * TIB + second * 4 * RATE
        text = COPY.format(size(copied), size(2.9 * TIB), 100 * copied / (2.9 * TIB))
        (frame,) = session.advance([{"t": T + second, "text": text}])
        (view,) = frame.activities
        if view.rate != 2**29:
            assert view.rate == pytest.approx(4 * RATE, rel=0.1)
            assert view.estimate.eta == pytest.approx((2.9 * TIB - copied) / (4 * RATE), rel=0.1)
    assert view.rate != 2**29
