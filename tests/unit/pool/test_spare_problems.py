"""Hot spares that would not help when a device fails."""

from __future__ import annotations

from tests.records import replace
from tests.unit.actions.pools import TIB, disk, group, pool, running, top
from zconsole.pool.health import health, spare_problems
from zconsole.pool.model import Vdev

NOW = 10_000.0


def spare(state: str = "AVAIL", **fields) -> Vdev:
    return replace(disk("sp", 1900, state, vclass="spare"), **fields)


def standing_in(first: str = "ONLINE", guid: bool = True) -> Vdev:
    pair = group("spare", disk("d00", 1000, first), disk("sp", 1900))
    if guid:
        return top("raidz2", 0, 6, pair)
    bare = replace(pair, children=tuple(replace(v, guid=None) for v in pair.children))
    return top("raidz2", 0, 6, bare)


def kinds(*tops: Vdev, spares: tuple[Vdev, ...], scans=()) -> list[str]:
    return [found.kind for found in spare_problems(pool(*tops, spares=spares).root, scans, NOW)]


def test_a_good_spare_is_no_trouble():
    assert kinds(top("raidz2", 0, 6), spares=(spare(),)) == []
    assert kinds(standing_in("FAULTED"), spares=(spare("INUSE"),)) == []


def test_a_spare_in_use_for_a_device_that_is_back_should_be_free():
    root = pool(standing_in(), spares=(spare("INUSE"),)).root
    (found,) = spare_problems(root, (), NOW)
    assert (found.kind, found.severity) == ("idle", "warning")
    assert found.text == (
        "spare sp is still INUSE though d00 is ONLINE and complete: detach the spare, or d00 if it"
        " is to be replaced"
    )


def test_a_spare_is_known_by_name_where_no_guid_is_told():
    own = spare("INUSE", guid=None)
    assert kinds(standing_in(guid=False), spares=(own,)) == ["idle"]
    assert kinds(standing_in("FAULTED", guid=False), spares=(own,)) == []


def test_a_spare_may_be_in_use_while_a_resilver_runs_and_a_moment_after():
    running_one = running("resilver")
    ended = running("resilver", state="finished", end=NOW - 5)
    long_ago = running("resilver", state="finished", end=NOW - 600)
    for scan, found in ((running_one, []), (ended, []), (long_ago, ["idle"])):
        assert kinds(standing_in(), spares=(spare("INUSE"),), scans=(scan,)) == found


def test_a_device_that_came_back_is_to_be_repaired_first():
    root = pool(standing_in(), spares=(spare("INUSE"),)).root
    assert spare_problems(root, (), NOW, returned={"d00"}) == ()
    assert len(spare_problems(root, (), NOW, returned={"d01"})) == 1


def test_a_scrub_leaves_it_in_trouble():
    assert kinds(standing_in(), spares=(spare("INUSE"),), scans=(running("scrub"),)) == ["idle"]


def test_a_device_that_is_still_filled_needs_its_spare():
    filling = replace(disk("d00", 1000), resilvering=True)
    pair = group("spare", filling, disk("sp", 1900))
    assert kinds(top("raidz2", 0, 6, pair), spares=(spare("INUSE"),)) == []


def test_a_failed_spare_cannot_stand_in():
    root = pool(top("raidz2", 0, 6), spares=(spare("UNAVAIL", note="cannot open"),)).root
    (found,) = spare_problems(root)
    assert (found.kind, found.severity) == ("failed", "warning")
    assert "sp is UNAVAIL (cannot open) and can't stand in" in found.text


def test_a_failed_spare_is_not_called_small_too():
    failed = spare("UNAVAIL", size_bytes=1 << 20)
    assert kinds(top("raidz2", 0, 6), spares=(failed, spare())) == ["failed"]


def test_a_spare_that_is_used_elsewhere_is_a_notice():
    root = pool(top("raidz2", 0, 6), spares=(spare("INUSE"),)).root
    (found,) = spare_problems(root)
    assert (found.kind, found.severity) == ("elsewhere", "notice")


def test_a_spare_too_small_for_a_vdev_names_it_and_what_it_needs():
    large = top("mirror", 1, 2)
    children = tuple(replace(leaf, size_bytes=4 * TIB) for leaf in large.children)
    large = replace(large, children=children, size_bytes=4 * TIB - (64 << 20))
    root = pool(top("raidz2", 0, 6), large, spares=(spare(size_bytes=2 * TIB),)).root
    (found,) = spare_problems(root)
    assert (found.kind, found.severity) == ("small", "notice")
    assert found.text == "spare sp (2T) is too small for mirror-1 (needs 4.00T)"


def test_spares_of_two_sizes_serve_the_vdevs_that_each_is_for():
    """A flash spare for the special mirror next to a hard disk for the raidz is as intended."""
    special = replace(top("mirror", 1, 2), vclass="special", size_bytes=TIB // 4)
    leaves = tuple(replace(leaf, size_bytes=TIB // 4) for leaf in special.children)
    special = replace(special, children=leaves)
    small = spare(name="flash", guid="1901", size_bytes=TIB // 4)
    large = spare(size_bytes=TIB)
    both = (top("raidz2", 0, 6), special)
    assert kinds(*both, spares=(small, large)) == []
    assert kinds(*both, spares=(small, replace(large, state="INUSE"))) == ["elsewhere"]
    assert kinds(*both, spares=(small,)) == ["small"]
    assert kinds(*both, spares=(small, replace(large, state="UNAVAIL"))) == ["small", "failed"]
    useless = replace(small, size_bytes=TIB // 8)
    assert kinds(*both, spares=(useless, large)) == ["small"]


def test_a_log_needs_no_spare_and_a_spare_of_unknown_size_is_not_judged():
    log = replace(disk("log", 1950), vclass="log", size_bytes=8 * TIB)
    assert kinds(top("raidz2", 0, 6), log, spares=(spare(),)) == []
    assert kinds(top("raidz2", 0, 6), spares=(spare(size_bytes=None),)) == []


def test_a_draid_with_a_distributed_spare_needs_no_other_one():
    special = replace(top("mirror", 1, 2), vclass="special", size_bytes=TIB // 4)
    leaves = tuple(replace(leaf, size_bytes=TIB // 4) for leaf in special.children)
    both = (top("draid2", 0, 6), replace(special, children=leaves))
    flash = spare(size_bytes=TIB // 4)
    own = spare(name="draid2-0-0", guid="1901", kind="dspare")
    assert kinds(*both, spares=(own, flash)) == []
    assert kinds(*both, spares=(replace(own, name="draid2-7-0"), flash)) == ["small"]


def test_a_distributed_spare_has_no_size_of_its_own():
    own = spare(kind="dspare", size_bytes=TIB // 2)
    assert kinds(top("draid2", 0, 6), spares=(own,)) == []


def test_health_asks_for_attention_where_a_spare_is_to_be_put_right():
    failed = pool(top("raidz2", 0, 6), spares=(spare("UNAVAIL"),))
    found = health(failed, NOW, spares=spare_problems(failed.root))
    assert found.word == "ATTENTION"
    assert "sp is UNAVAIL" in found.reasons[0]
    shared = pool(top("raidz2", 0, 6), spares=(spare("INUSE"),))
    told = health(shared, NOW, spares=spare_problems(shared.root))
    assert (told.word, len(told.reasons)) == ("OK", 1)
