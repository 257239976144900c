from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC

import pytest
from rich.cells import cell_len

from tests.factory import frame, mirror_pool, noisy_pool, view
from zconsole.output.text import balance_lines, clean_lines, status_report, watch_line
from zconsole.pool.balance import balance
from zconsole.pool.model import Scan, Vdev
from zconsole.timeline.eta.estimate import Estimate
from zconsole.timeline.frame import Frame
from zconsole.timeline.scrubs import ScrubAge
from zconsole.timeline.session import Session

T = 1_800_000_000.0
HEALTHY = "  pool: tank\n state: ONLINE\n"
STUCK = """\
  pool: tank
 state: ONLINE
  scan: resilver in progress since Tue Feb 26 14:08:38 2013
    1 scanned out of 4.53T at 1/s, (scan is slow, no estimated time)
    0 resilvered, 0.00% done
config:

\tNAME        STATE     READ WRITE CKSUM
\ttank        ONLINE       0     0     0
\t  sda       ONLINE       0     0     0
"""


def report(text: str) -> str:
    (frame,) = Session(zone=UTC).advance([{"t": T, "text": text}])
    return status_report(frame)


def test_a_scan_that_has_hardly_begun_gets_no_date_beyond_all_calendars():
    assert "no ETA yet" in report(STUCK)
    assert " 9892 " not in report(STUCK)


def test_columns_line_up_by_the_cells_of_a_terminal():
    wide = STUCK.replace("  sda  ", "  備份硬碟一號機櫃  ")
    lines = [line for line in report(wide).splitlines() if " ONLINE " in line or "NAME" in line]
    starts = [
        cell_len(line.partition("STATE" if "NAME" in line else "ONLINE")[0]) for line in lines
    ]
    assert len(starts) == 3
    assert len(set(starts)) == 1


def test_the_balance_lines_up_by_the_cells_of_a_terminal():
    tops = tuple(Vdev(name, "disk", size_bytes=10, alloc_bytes=5) for name in ("sda", "備份硬碟"))
    found = balance(Vdev("tank", "root", children=tops), None)
    _, *lines = clean_lines(balance_lines(found))
    assert len({cell_len(line.partition("#")[0]) for line in lines}) == 1


def test_metadata_being_condensed_is_told_in_its_own_units():
    line = "condense: log_spacemap: {}metaslabs done in 00:00:15\n"
    running = HEALTHY + line.format("condensing, 104/416 ")
    assert "condense of log_spacemap: running, 104/416 metaslabs, 25.00 % done\n" in report(running)
    (frame,) = Session(zone=UTC).advance([{"t": T, "text": running}])
    assert "condense log_spacemap  running  25.00 %  104/416 metaslabs" in watch_line(frame, UTC)
    done = report(HEALTHY + line.format("done, 416 "))
    assert "condense of log_spacemap: finished, 416 metaslabs\n" in done


def test_nonsense_sizes_draw_no_endless_bar():
    top = Vdev("sda", "disk", size_bytes=10, alloc_bytes=10**30)
    lines = balance_lines(balance(Vdev("tank", "root", children=(top,)), None))
    text = "\n".join(clean_lines(lines))
    assert max(map(len, text.splitlines())) < 200


def test_a_rebuild_is_told_in_the_bytes_its_percent_rests_on():
    scan = Scan(
        "rebuild",
        "running",
        vdev="draid1-0",
        total_bytes=400 * 2**30,
        scanned_bytes=100 * 2**30,
        issued_bytes=40 * 2**30,
        skipped_bytes=60 * 2**30,
        percent=25.0,
    )
    shown = view(scan, scan_rate=10 * 2**20, issue_rate=4 * 2**20)
    assert "25.00 %  100G/400G at 10M/s" in watch_line(
        frame(mirror_pool(scan), scans=(shown,)), UTC
    )


def test_a_device_that_collects_errors_is_named_in_the_line_of_its_pool():
    line = watch_line(frame(noisy_pool(), T), UTC)
    assert line == "08:00:00  tank  ATTENTION  no scan  mirror-0:1  sda: 12 checksum errors"


def test_a_device_that_waits_is_told_with_the_time_to_full_redundancy():
    scan = Scan("resilver", "running", "issuing", total_bytes=100, issued_bytes=50, percent=50.0)
    waits = Estimate(7200.0, 3600.0, 9000.0, "1 device waits for another full pass")
    shown = view(scan, Estimate(60.0, 50.0, 80.0, "steady"), full=waits)
    seen = frame(mirror_pool(scan), t=T, scans=(shown,))
    said = "full redundancy in 2h00m (1h00m to 2h30m), Fri 15 Jan 10:00; 1 device waits for another"
    assert f"\n  {said} full pass\n" in status_report(seen)
    assert "  ETA 1m00s (50s to 1m20s)  full redundancy 2h00m  " in watch_line(seen, UTC)


def test_a_checkpoint_is_told_as_zpool_tells_it():
    kept = "created Thu Nov 19 08:00:00 2026, consumes 1.20G"
    exists = report(f"{HEALTHY}checkpoint: {kept}\n")
    assert "\ncheckpoint: exists since Thu 19 Nov 2026 08:00, 1.20G\n" in exists
    discarding = report(f"{HEALTHY}checkpoint: discarding, 11.0M remaining.\n")
    assert "\ncheckpoint: discarding, 11M remaining\n" in discarding


def test_what_was_copied_is_told_with_its_end_and_why_a_copy_waits():
    """An expansion has copied less than its initial size: the difference is not still to do."""
    ended = "expanded raidz1-0 copied 437M in 00:02:26, on Fri Jan 15 07:41:00 2027"
    said = report(f"{HEALTHY}expand: {ended}\n")
    assert "\nexpansion of raidz1-0: finished, 437M on Fri 15 Jan 07:41\n" in said
    waits = (
        "expand: expansion of raidz1-0 in progress since Fri Jan 15 07:00:00 2027\n"
        "\t114M / 451M copied at 1.29M/s, 25.24% done, paused for resilver or clear\n"
    )
    said = report(f"{HEALTHY}{waits}")
    assert "paused, 114M of 451M, 25.24 % done, paused for resilver or clear; no " in said


def test_one_restart_is_one():
    session = Session(zone=UTC)
    text = STUCK.replace("1 scanned", "1.00T scanned").replace("0.00%", "22.00%")
    text = text.replace("1/s, (scan is slow, no estimated time)", "100M/s, 10h16m to go")
    session.advance([{"t": T, "text": text}])
    (frame,) = session.advance([{"t": T + 10, "text": text.replace("14:08:38", "15:08:38")}])
    assert ", 1 restart\n" in status_report(frame)


def test_an_end_without_an_amount_tells_none():
    date = "Tue Mar  5 11:20:30 2024"
    for tag, said, told in (
        (" scrub", "scrubbed 12 error blocks in 00:01:02", "error scrub: finished in 1m02s"),
        (" scrub", "scrub completed after 2h31m with 3 errors", "scrub: finished in 2h31m, 3 err"),
    ):
        text = f"{HEALTHY}{tag}: {said} on {date}\n"
        assert f"\n{told}" in report(text)
    done = f"  scan: resilvered 1.20T in 02:12:33 with 0 errors on {date}\n"
    assert "\nresilver: finished, resilvered 1.20T in 2h12m, 0 errors" in report(HEALTHY + done)


def thrice(text: str) -> tuple[Frame, Session]:
    """Return the last frame of saved output that was read three times, a second apart."""
    session = Session(zone=UTC)
    for second in range(3):
        (seen,) = session.advance([{"t": T + second, "text": text}])
    return seen, session


def test_a_removal_that_goes_on_is_in_the_line():
    lines = (
        "remove: Evacuation of /dev/sdb1 in progress since Fri Jan 15 07:00:00 2027\n"
        "\t16M copied out of 64M at 1M/s, 25.00% done, 0h0m to go\n"
    )
    seen, session = thrice(f"{HEALTHY}{lines}")
    said = watch_line(seen, UTC)
    assert "  scan unknown  removal sdb  running  25.00 %  16M/64M at " in said
    done = "remove: Removal of vdev 1 copied 64M in 0h0m, completed on Fri Jan 15 07:00:00 2027\n"
    (seen,) = session.advance([{"t": T + 4, "text": f"{HEALTHY}{done}"}])
    assert "removal" not in watch_line(seen, UTC)


def test_an_error_scrub_counts_no_bytes():
    lines = (
        " scrub: error scrub in progress since Fri Jan 15 07:00:00 2027\n"
        "\t40.00% done, issued I/O for 20 error blocks\n"
    )
    seen, _ = thrice(f"{HEALTHY}{lines}")
    why = "counts blocks, not bytes"
    said = status_report(seen)
    assert f"error scrub: running, 40.00 % done\n  no ETA: {why}; zpool says nothing\n" in said
    assert f"  errorscrub  running  40.00 %  no ETA: {why}" in watch_line(seen, UTC)


@pytest.fixture
def in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Set the machine's time zone to UTC for a test."""
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("in_utc")
def test_the_report_tells_of_the_last_full_scrub():
    day = 86400.0
    late = ScrubAge(T - 41 * day, 41 * day, overdue=True)
    assert scrub_line(late) == "last full scrub: Sat 05 Dec 2026 08:00, 41 days ago, overdue"
    assert scrub_line(late._replace(overdue=False)).endswith(", 41 days ago")
    assert scrub_line(ScrubAge(T)) == "last full scrub: Fri 15 Jan 08:00"
    assert scrub_line(ScrubAge(never=True)) == "last full scrub: none"
    never = ScrubAge(age=2 * day, overdue=False, never=True)
    assert scrub_line(never) == "last full scrub: none, pool created 2 days ago"
    assert scrub_line(ScrubAge()) is None


def scrub_line(scrub: ScrubAge) -> str | None:
    lines = status_report(frame(mirror_pool(), T, scrub=scrub)).splitlines()
    return next((line for line in lines if line.startswith("last full scrub")), None)
