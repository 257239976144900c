from __future__ import annotations

from tests.table import rows
from zconsole.pool.model import ErrorCounters, Event, Pool, Sample, Vdev, placed
from zconsole.timeline.events import EventLog, device_changes, without_duplicates


def tree(*leaves: Vdev, group: str = "raidz1"):
    root = Vdev("tank", "root", children=(Vdev(f"{group}-0", group, children=leaves),))
    return {p.key: p for p in placed(root)}


def disk(name: str, **fields) -> Vdev:
    return Vdev(name, "disk", **fields)


WAITING = disk("a", awaiting_resilver=True)


def told(old, new) -> list[tuple[str, str, str | None]]:
    return [(e.name, e.text, e.vdev) for e in device_changes(5.0, old, new)]


@rows(
    ("old", "new", "events"),
    [
        ([disk("a", state="REMOVED")], [disk("a")], ["a went from REMOVED to ONLINE"]),
        # Counters that rose; not those that were cleared, nor unknown ones.
        (
            [disk("a", errors=ErrorCounters(1, 0, 2)), disk("b", errors=ErrorCounters(9, 9, 9))],
            [disk("a", errors=ErrorCounters(1, 1, 5)), disk("b", errors=ErrorCounters(0, 0, 0))],
            ["a: 1 new write error, 3 new checksum errors"],
        ),
        ([disk("a")], [disk("a", errors=ErrorCounters(3, 3, 3))], []),
        (
            [disk("a"), disk("b")],
            [disk("a"), disk("c")],
            ["c added (ONLINE)", "b is no longer part of the pool"],
        ),
        # A replacement that takes its place in the tree is the same device.
        (
            [disk("a"), Vdev("replacing-1", "replacing", children=(disk("b"), disk("c")))],
            [disk("a"), disk("c")],
            ["b is no longer part of the pool"],
        ),
        # Replaced between two samples.
        (
            [disk("b", guid="2", state="FAULTED")],
            [disk("b", guid="4")],
            ["b added (ONLINE)", "b is no longer part of the pool"],
        ),
        # GUIDs come from libzfs; the text that is read after it fails has none.
        (
            [disk("b", guid="2", state="UNAVAIL")],
            [disk("b")],
            ["b went from UNAVAIL to ONLINE"],
        ),
        ([disk("a")], [WAITING], ["a waits for the next resilver"]),
        ([WAITING], [WAITING], []),
    ],
)
def test_each_change_is_told_once(old, new, events):
    found = list(device_changes(5.0, tree(*old), tree(*new)))
    assert [event.text for event in found] == events
    assert all(event.vdev == event.text[0] for event in found)
    levels = {"a went from REMOVED to ONLINE": "notice", "a: 1 new": "warning"}
    for text, severity in levels.items():
        assert all(e.severity == severity for e in found if e.text.startswith(text))


def test_a_leaf_that_failed_is_told_with_its_states():
    events = list(device_changes(5.0, tree(disk("a")), tree(disk("a", state="FAULTED"))))
    assert [(e.name, e.text, e.severity) for e in events] == [
        ("statechange", "a went from ONLINE to FAULTED", "error")
    ]
    assert (events[0].t, events[0].vdev, events[0].origin) == (5.0, "a", "console")


def spared(state: str, *inside: Vdev):
    """Return a mirror of ``a``, spared by ``inside``, and its hot spare ``s``."""
    a = disk("a", guid="1", state="REMOVED")
    kept = (Vdev("spare-0", "spare", guid="9", children=(a, *inside)),) if inside else (a,)
    spare = disk("s", guid="3", vclass="spare", state=state)
    mirror = Vdev("mirror-0", "mirror", guid="8", children=kept)
    root = Vdev("tank", "root", guid="7", children=(mirror, spare))
    return {p.key: p for p in placed(root)}


def test_a_spare_that_stands_in_and_one_that_is_given_back_are_told_once():
    free, used = spared("AVAIL"), spared("INUSE", disk("s", guid="3", resilvering=True))
    assert told(free, used) == [("statechange", "s went from AVAIL to INUSE", "s")]
    (back,) = device_changes(5.0, used, free)
    assert (back.text, back.severity) == ("s went from INUSE to AVAIL", "notice")


def test_the_pools_own_state():
    log, last = EventLog(), None
    for t, state in enumerate((None, "ONLINE", "ONLINE", "SUSPENDED")):
        sample = Sample(t, t, "json", True, Pool("tank", state, Vdev("tank", "root")))
        log.push(sample, {}, last, {})
        last = sample
    (event,) = log.all
    assert (event.text, event.severity) == ("the pool went from ONLINE to SUSPENDED", "error")


def zpools(t: float, name: str, text: str, **fields) -> Event:
    return Event(t, name, text, **fields)


def seen(t: float, name: str, text: str, severity: str = "info", vdev: str | None = None) -> Event:
    return Event(t, name, text, severity, vdev, "console")


@rows(
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
    a, b = zpools(5.0, kernel, "the kernel's"), seen(4.0, console, text)
    assert without_duplicates([a], [b], 1.0) == [a]
    assert without_duplicates([b], [a], 1.0) == [a]


def test_words_that_say_more_are_kept():
    end = seen(5.0, "scrub_finish", "scrub finished with 3 errors", "warning")
    (event,) = without_duplicates([zpools(5.0, "scrub_finish", "scrub finish")], [end], 1.0)
    assert (event.text, event.severity, event.origin) == (end.text, "warning", "zpool")
    again = seen(5.0, "resilver_restart", "resilver restarted 12:03 after sdc came back", "warning")
    (event,) = without_duplicates([zpools(5.0, "resilver_start", "resilver start")], [again], 1.0)
    assert event.text == again.text


def test_another_change_or_another_scan_stays():
    events = [
        zpools(5.0, "scrub_start", "scrub start"),
        seen(5.0, "resilver_start", "resilver started"),
        seen(5.0, "scrub_finish", "scrub finished"),
        seen(5.0, "statechange", "sda went from ONLINE to OFFLINE", vdev="sda"),
        seen(500.0, "scrub_start", "scrub started"),
    ]
    assert without_duplicates([], events, 1.0) == events


def test_each_of_two_rebuilds_is_zpools():
    starts = [
        seen(5.0, "rebuild_start", f"sequential rebuild of {vdev} started", vdev=vdev)
        for vdev in ("mirror-0", "mirror-1")
    ]
    kernel = [zpools(5.0, "resilver_start", "resilver start (sequential)")] * 2
    for events in ([*starts, *kernel], [*kernel, *starts], [kernel[0], *starts, kernel[1]]):
        found = without_duplicates([], events, 1.0)
        assert sorted((e.vdev, e.origin) for e in found) == [
            ("mirror-0", "zpool"),
            ("mirror-1", "zpool"),
        ]


def test_what_is_told_late_has_its_place():
    early, late = (
        seen(5.0, "scrub_start", "scrub started"),
        zpools(8.0, "vdev_remove", "vdev remove"),
    )
    assert without_duplicates([late], [early], 1.0) == [early, late]


def replacing(*leaves: Vdev):
    return Vdev("replacing-1", "replacing", guid="r", children=leaves)


@rows(
    ("old", "new"),
    [
        # With GUIDs; and as text, which has none, but shows the old device of the same place.
        (
            [disk("b", guid="2", state="UNAVAIL")],
            [replacing(disk("22", guid="2", state="UNAVAIL"), disk("b", guid="4"))],
        ),
        (
            [disk("b", state="UNAVAIL")],
            [replacing(disk("b/old", state="UNAVAIL"), disk("b"))],
        ),
    ],
)
def test_a_new_disk_in_the_place_of_another_has_not_come_back(old, new):
    (event,) = device_changes(5.0, tree(disk("a", guid="1"), *old), tree(disk("a", guid="1"), *new))
    assert (event.name, event.text) == ("vdev_added", "b added (ONLINE)")
