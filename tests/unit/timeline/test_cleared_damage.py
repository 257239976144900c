"""Damage that was seen and then cleared: reported until a scan has read everything again."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.factory import mirror_pool, noisy_pool
from tests.records import replace
from tests.table import rows
from zconsole.output.json import sample_object
from zconsole.output.text import status_report
from zconsole.pool.health import Health
from zconsole.pool.model import Pool, Sample, Scan, Vdev
from zconsole.timeline.pool import PoolTimeline
from zconsole.timeline.store import HistoryStore

NOON = datetime(2026, 11, 28, 12, 0, tzinfo=UTC).timestamp()
MINUTE = 60.0
GIB = 2**30
CLEARED = "418 errors were cleared at 12:04 and not checked since: scrub to know"


def scan(function: str, start: float, end: float | None = None, **fields) -> Scan:
    """Return a scan of everything, in minutes after noon; without an end it is running."""
    past = Scan(
        function,
        "running" if end is None else "finished",
        start=NOON + start * MINUTE,
        end=None if end is None else NOON + end * MINUTE,
        total_bytes=GIB,
        issued_bytes=GIB,
        skipped_bytes=0,
        errors=0,
    )
    return replace(past, **fields)


def damaged(*scans: Scan) -> Pool:
    return replace(mirror_pool(*scans), error_count=418, errors=("/tank/film",))


def raidz(pool: Pool) -> Pool:
    top = pool.root.children[0]._replace(name="raidz1-0", kind="raidz1")
    return replace(pool, root=pool.root._replace(children=(top,)))


def told(*pools: tuple[float, Pool], timeline: PoolTimeline | None = None) -> Health:
    """Return the health at the last of these pools, each with its minute after noon."""
    timeline = PoolTimeline(UTC) if timeline is None else timeline
    return [timeline.push(sampled(minute, pool)) for minute, pool in pools][-1].health


def sampled(minute: float, pool: Pool) -> Sample:
    t = NOON + minute * MINUTE
    return Sample(t, t, "libzfs", True, pool, version="2.3.9")


def test_errors_that_were_cleared_ask_for_a_scrub_in_text_and_json():
    timeline = PoolTimeline(UTC)
    for minute, pool in ((3.0, damaged()), (3.9, damaged()), (4.0, mirror_pool())):
        frame = timeline.push(sampled(minute, pool))
    assert frame.health == Health("ATTENTION", "warning", (CLEARED,))
    assert CLEARED in status_report(frame)
    assert CLEARED in sample_object(frame)["health"]["reasons"]


@rows(
    ("later", "word"),
    [
        (scan("scrub", 5, 9), "OK"),
        (scan("scrub", 3.95, 9), "OK"),  # it began before the clear, after the errors were seen
        (scan("scrub", 1, 9), "ATTENTION"),  # the errors may be in what it had already read
        (scan("scrub", 5, 9, full=False), "ATTENTION"),
        (scan("scrub", 5, 9, state="canceled"), "ATTENTION"),
        (scan("scrub", 5, 9, errors=None), "ATTENTION"),
        (scan("errorscrub", 5, 9), "ATTENTION"),
        (scan("resilver", 5, 9), "ATTENTION"),  # of a mirror it reads only one side
        (scan("scrub", 5), "ATTENTION"),
    ],
)
def test_only_a_scan_of_everything_settles_it(later, word):
    seen = (3.9, damaged())
    assert told(seen, (4.0, mirror_pool()), (10.0, mirror_pool(later))).word == word


def test_a_running_scrub_will_tell():
    pools = ((3.9, damaged()), (4.0, mirror_pool()), (6.0, mirror_pool(scan("scrub", 5))))
    assert told(*pools).reasons == (
        "418 errors were cleared at 12:04 and not checked since: the running scrub will tell",
    )


def test_a_resilver_of_a_lone_raidz_reads_every_column():
    pools = ((3.9, raidz(damaged())), (4.0, raidz(mirror_pool())))
    whole, part = scan("resilver", 5, 9), scan("resilver", 5, 9, issued_bytes=GIB // 2)
    assert told(*pools, (10.0, raidz(mirror_pool(whole)))).word == "OK"
    assert told(*pools, (10.0, raidz(mirror_pool(part)))).word == "ATTENTION"


def test_a_scrub_that_ended_with_errors_is_told_by_itself():
    bad = mirror_pool(scan("scrub", 5, 9, errors=3))
    found = told((3.9, damaged()), (4.0, mirror_pool()), (10.0, bad))
    assert found.reasons == ("the last scrub ended with 3 errors",)


def test_errors_that_leave_the_list_by_scrubs_were_checked():
    first, second = scan("scrub", 4, 5), scan("scrub", 6, 7)
    pools = ((3.9, damaged()), (5.0, damaged(first)), (7.0, mirror_pool(second)))
    assert told(*pools) == Health("OK", "ok")


def test_checksum_errors_that_were_cleared_ask_for_a_scrub():
    pools = ((3.9, noisy_pool(cksum=12)), (4.0, mirror_pool()))
    assert told(*pools) == Health(
        "ATTENTION",
        "warning",
        ("12 checksum errors were cleared at 12:04 and not checked since: scrub to know",),
    )
    assert told(*pools, (10.0, mirror_pool(scan("scrub", 5, 9)))).word == "OK"


def test_a_repair_by_the_scrub_that_found_them_is_not_a_check():
    repaired = scan("scrub", 1, 5, processed_bytes=12)
    pools = ((3.9, noisy_pool(scan("scrub", 1))), (5.0, noisy_pool(repaired)))
    assert told(*pools, (6.5, mirror_pool(repaired))).reasons == (
        "12 checksum errors were cleared before 12:06 and not checked since: scrub to know",
    )


def test_a_device_that_leaves_takes_its_errors_along():
    pool = noisy_pool()
    top = pool.root.children[0]
    new = Vdev("sdc", "disk", guid="13")
    replaced = top._replace(children=(new, top.children[1]))
    after = replace(pool, root=pool.root._replace(children=(replaced,)))
    assert told((3.9, pool), (4.0, after)) == Health("OK", "ok")


def test_a_degraded_pool_says_it_as_well():
    gone = mirror_pool(state="DEGRADED")
    found = told((3.9, damaged()), (4.0, gone))
    assert found.word == "DEGRADED"
    assert CLEARED in found.reasons


@rows("cleared", [False, True])
def test_the_next_console_knows_of_it(tmp_path, cleared):
    before, after = PoolTimeline(UTC), PoolTimeline(UTC)
    pools = [(3.9, damaged()), *([(4.0, mirror_pool())] if cleared else [])]
    told(*pools, timeline=before)
    store = HistoryStore(tmp_path)
    assert store.keep("1", before, NOON)
    store.close()
    assert HistoryStore(tmp_path).recall("1", after) is None
    when = "at 12:04" if cleared else "before 12:30"
    assert told((30.0, mirror_pool()), timeline=after).reasons == (
        f"418 errors were cleared {when} and not checked since: scrub to know",
    )


def test_on_another_day_the_clear_has_a_date():
    found = told((3.9, damaged()), (4.0, mirror_pool()), (24 * 60.0, mirror_pool()))
    assert found.reasons[0].startswith("418 errors were cleared at 28 Nov 12:04")


def test_history_of_a_pool_without_errors_has_nothing_more_in_its_file(tmp_path):
    timeline = PoolTimeline(UTC)
    told((3.9, mirror_pool()), timeline=timeline)
    HistoryStore(tmp_path).keep("1", timeline, NOON)
    assert "damage" not in (tmp_path / "history-1.json").read_text(encoding="utf-8")
