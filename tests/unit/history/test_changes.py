from __future__ import annotations

from zconsole.history.changes import device_changes, pool_change
from zconsole.pool.model import ErrorCounters, Vdev
from zconsole.pool.topology import placed


def tree(*leaves: Vdev, group: str = "raidz1"):
    root = Vdev("tank", "root", children=(Vdev(f"{group}-0", group, children=leaves),))
    return {p.key: p for p in placed(root)}


def disk(name: str, **fields) -> Vdev:
    return Vdev(name, "disk", **fields)


def told(old, new) -> list[tuple[str, str, str | None]]:
    return [(e.name, e.text, e.vdev) for e in device_changes(5.0, old, new)]


def test_a_leaf_that_failed_is_told_with_its_states():
    events = list(device_changes(5.0, tree(disk("a")), tree(disk("a", state="FAULTED"))))
    assert [(e.name, e.text, e.severity) for e in events] == [
        ("statechange", "a went from ONLINE to FAULTED", "error")
    ]
    assert (events[0].t, events[0].vdev, events[0].origin) == (5.0, "a", "console")


def test_coming_back_is_good_news():
    (event,) = device_changes(5.0, tree(disk("a", state="REMOVED")), tree(disk("a")))
    assert event.severity == "notice"


def test_error_counters_that_rose_are_counted_and_cleared_ones_are_not():
    old = tree(disk("a", errors=ErrorCounters(1, 0, 2)), disk("b", errors=ErrorCounters(9, 9, 9)))
    new = tree(disk("a", errors=ErrorCounters(1, 1, 5)), disk("b", errors=ErrorCounters(0, 0, 0)))
    assert told(old, new) == [("errors", "a: 1 more write error, 3 more checksum errors", "a")]


def test_unknown_counters_are_no_change():
    assert told(tree(disk("a")), tree(disk("a", errors=ErrorCounters(3, 3, 3)))) == []


def test_devices_come_and_go():
    events = told(tree(disk("a"), disk("b")), tree(disk("a"), disk("c")))
    assert [(name, vdev) for name, _, vdev in events] == [("vdev_added", "c"), ("vdev_gone", "b")]


def test_a_replacement_that_takes_its_place_in_the_tree_is_the_same_device():
    old = tree(disk("a"), Vdev("replacing-1", "replacing", children=(disk("b"), disk("c"))))
    assert told(old, tree(disk("a"), disk("c"))) == [
        ("vdev_gone", "b is no longer part of the pool", "b")
    ]


def spared(state: str, *inside: Vdev):
    """A mirror of ``a``, spared by ``inside``, and its hot spare ``s``."""
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


def test_a_deferred_device_is_told_once():
    waiting = disk("a", awaiting_resilver=True)
    assert [n for n, _, _ in told(tree(disk("a")), tree(waiting))] == ["resilver_deferred"]
    assert told(tree(waiting), tree(waiting)) == []


def test_the_pools_own_state():
    (event,) = pool_change(1.0, "ONLINE", "SUSPENDED")
    assert (event.text, event.severity) == ("the pool went from ONLINE to SUSPENDED", "error")
    assert list(pool_change(1.0, None, "ONLINE")) == []
    assert list(pool_change(1.0, "ONLINE", "ONLINE")) == []
