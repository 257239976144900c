"""Output of `status JOB` for people: everything that its JSON object has."""

from __future__ import annotations

from tests.records import replace
from zconsole.rebalance.backend import JobView
from zconsole.rebalance.job.job_output import job_line, job_lines
from zconsole.rebalance.planning.settings import Limits, Settings

G = 1 << 30
DAY = {
    "day": "2026-11-21",
    "moved_bytes": 2 * G,
    "files_done": 30,
    "files_skipped": 2,
    "files_failed": 0,
    "fragmentation": 0.07,
    "spread": 0.61,
    "free_bytes": 500 * G,
}
JOB = JobView(
    job="3f9a1c",
    state="running",
    settings=Settings(("/tank/data",)),
    limits=Limits(),
    engine="rewrite",
    files_done=40,
    files_total=90,
    bytes_handled=3 * G,
    bytes_total=9 * G,
    rate=200 << 20,
    eta_seconds=4000.0,
    current="/tank/data/a\x1b[2Jb",
    vdevs=[
        {"name": "raidz1-0", "alloc_before": 90 * G, "alloc_after": 80 * G},
        {"name": "raidz1-1", "alloc_before": 0, "alloc_after": 10 * G},
    ],
    skipped={"open for writing": 2},
    notes=["new snapshot of tank/data: what moves from now on stays allocated twice"],
    days=(DAY,),
)


def test_a_running_job_is_told_whole() -> None:
    assert list(job_lines(JOB)) == [
        "3f9a1c  running  3G of 9G logical  rewrite  /tank/data",
        "  40 of 90 files, at 200M/s, ETA 1h06m",
        r"  now: /tank/data/a\x1b[2Jb",
        "  raidz1-0: 90G -> 80G raw (-10G)",
        "  raidz1-1: 0 -> 10G raw (+10G)",
        "  2026-11-21: 2G done, 30 files, 2 skipped, 0 failed, spread 61.0 %, 7 % fragmented,"
        " 500G raw free",
        "  note: new snapshot of tank/data: what moves from now on stays allocated twice",
        "  skipped: 2 (open for writing)",
    ]


def test_files_are_counted_against_all_only_if_the_bytes_are() -> None:
    told = [list(job_lines(replace(JOB, bytes_goal=goal * G)))[1] for goal in (5, 9)]
    assert told == [f"  40{of} files, at 200M/s, ETA 1h06m" for of in ("", " of 90")]


def test_accepted_races_are_told() -> None:
    told = list(job_lines(replace(JOB, settings=Settings(("/a",), accept_races=True))))
    assert told[1] == "  lost writes were accepted: another program's write may be lost"


def test_a_job_is_told_as_far_as_it_is_known() -> None:
    counting = JobView(
        job="x", why="counting files", settings=Settings(()), limits=Limits(), engine=""
    )
    assert list(job_lines(counting)) == [job_line(counting)]
    bare_day = list(job_lines(replace(JOB, days=({"day": "2026-11-22"},))))[5]
    assert bare_day == (
        "  2026-11-22: - done, - files, - skipped, - failed, spread -, - fragmented, - raw free"
    )


def test_a_day_has_what_was_done_on_it_and_not_the_total_so_far() -> None:
    second = DAY | {"day": "2026-11-22", "moved_bytes": 3 * G, "files_done": 40}
    told = list(job_lines(replace(JOB, days=(DAY, second))))
    assert told[5].startswith("  2026-11-21: 2G done, 30 files, 2 skipped, ")
    assert told[6].startswith("  2026-11-22: 1G done, 10 files, 0 skipped, ")
