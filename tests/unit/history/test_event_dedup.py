from __future__ import annotations

import pytest

from zconsole.history.event_dedup import without_duplicates
from zconsole.pool.model import Event


def told(t: float, name: str, text: str, **fields) -> Event:
    return Event(t, name, text, **fields)


def seen(t: float, name: str, text: str, severity: str = "info", vdev: str | None = None) -> Event:
    return Event(t, name, text, severity, vdev, "console")


@pytest.mark.parametrize(
    ("kernel", "console", "text"),
    [
        ("scrub_start", "scrub_start", "scrub started"),
        ("scrub_paused", "scrub_pause", "scrub paused"),
        ("scrub_resume", "scrub_resume", "scrub resumed"),
        ("scrub_finish", "scrub_finish", "scrub finished"),
        ("scrub_abort", "scrub_canceled", "scrub canceled"),
        ("resilver_finish", "resilver_finish", "resilver finished"),
        ("errorscrub_start", "errorscrub_start", "error scrub started"),
    ],
)
def test_the_kernels_word_stands_for_what_the_console_saw_whichever_came_first(
    kernel, console, text
):
    a, b = told(5.0, kernel, "the kernel's"), seen(4.0, console, text)
    assert without_duplicates([a], [b], 1.0) == [a]
    assert without_duplicates([b], [a], 1.0) == [a]


def test_words_that_say_more_are_kept():
    end = seen(5.0, "scrub_finish", "scrub finished with 3 errors", "warning")
    (event,) = without_duplicates([told(5.0, "scrub_finish", "scrub finish")], [end], 1.0)
    assert (event.text, event.severity, event.origin) == (end.text, "warning", "zpool")
    again = seen(5.0, "resilver_restart", "resilver restarted 12:03 after sdc came back", "warning")
    (event,) = without_duplicates([told(5.0, "resilver_start", "resilver start")], [again], 1.0)
    assert event.text == again.text


def test_another_change_or_another_scan_stays():
    events = [
        told(5.0, "scrub_start", "scrub start"),
        seen(5.0, "resilver_start", "resilver started"),
        seen(5.0, "scrub_finish", "scrub finished"),
        seen(500.0, "scrub_start", "scrub started"),
        seen(5.0, "statechange", "sda went from ONLINE to OFFLINE", vdev="sda"),
    ]
    assert without_duplicates([], events, 1.0) == events


def test_each_of_two_rebuilds_is_told():
    starts = [
        seen(5.0, "rebuild_start", f"sequential rebuild of {vdev} started", vdev=vdev)
        for vdev in ("mirror-0", "mirror-1")
    ]
    kernel = [told(5.0, "resilver_start", "resilver start (sequential)")] * 2
    for events in ([*starts, *kernel], [*kernel, *starts], [kernel[0], *starts, kernel[1]]):
        found = without_duplicates([], events, 1.0)
        assert sorted((e.vdev, e.origin) for e in found) == [
            ("mirror-0", "zpool"),
            ("mirror-1", "zpool"),
        ]


def test_what_is_told_late_has_its_place_but_a_clock_set_back_hides_nothing_new():
    early, late = seen(5.0, "scrub_start", "scrub started"), told(8.0, "vdev_remove", "vdev remove")
    assert without_duplicates([late], [early], 1.0, now=9.0) == [early, late]
    before = told(9000.0, "vdev_remove", "vdev remove")
    assert without_duplicates([before], [early], 1.0, now=9.0) == [before, early]
