from __future__ import annotations

from tests.records import replace
from tests.table import rows
from zconsole.pool.health import Health, health, unreachable, without_redundancy
from zconsole.pool.model import Activity, ErrorCounters, Pool, SampleFailure, Scan, Vdev
from zconsole.pool.redundancy import Redundancy
from zconsole.pool.scan_outcome import BY_SPARE, GRACE
from zconsole.ui.display_format import DisplayFormat

DONE = Scan("resilver", "finished", start=100.0, end=200.0, errors=0)
LATER = 1000.0


def disk(name: str, **fields) -> Vdev:
    return Vdev(name, "disk", **fields)


def pool(*members: Vdev, state: str = "ONLINE", **fields) -> Pool:
    top = Vdev("raidz2-0", "raidz2", state=state, children=members)
    return Pool("tank", state, Vdev("tank", "root", state=state, children=(top,)), **fields)


def judged(seen: Pool, now: float = LATER):
    return health(seen, now)


REPLACING = Vdev("replacing-0", "replacing", children=(disk("old", state="FAULTED"), disk("new")))


def test_a_whole_idle_pool_is_ok_and_says_no_more():
    found = judged(pool(disk("a"), disk("b")))
    assert (found.word, found.severity, found.reasons) == ("OK", "ok", ())


def test_an_online_pool_whose_devices_collect_errors_wants_attention():
    found = judged(pool(disk("a", errors=ErrorCounters(0, 0, 12)), disk("b")))
    assert (found.word, found.severity) == ("ATTENTION", "warning")
    assert found.reasons == ("a: 12 checksum errors",)


def test_a_resilver_that_read_damaged_data_asks_for_a_scrub():
    seen = pool(disk("a", errors=ErrorCounters(0, 0, 7)), disk("b"), scans=(DONE,))
    found = health(seen, LATER, damaged=[("a", 7)])
    assert found.word == "NOT RESTORED"
    assert "a returned damaged data to the resilver (7 checksum errors): scrub" in found.reasons


def test_the_device_with_the_most_errors_is_named_first_and_zeros_are_left_out():
    few, many = ErrorCounters(1, None, 0), ErrorCounters(2, 4, 1536)
    found = judged(pool(disk("a", errors=few), disk("b", errors=many)))
    assert found.reasons == ("b: 2 read, 4 write, 1.50K checksum errors", "a: 1 read error")


def test_errors_that_were_cleared_and_slow_requests_alone_want_none():
    cleared = ErrorCounters(0, 0, 0, slow=40)
    found = judged(pool(disk("a", errors=cleared), disk("b", errors=ErrorCounters())))
    assert (found.word, found.severity, found.reasons) == ("OK", "ok", ())


def test_a_device_that_left_an_online_pool_and_came_back_wants_attention():
    found = health(pool(disk("a"), disk("b")), LATER, unsteady=("a: disconnected, returned",))
    assert (found.word, found.reasons) == ("ATTENTION", ("a: disconnected, returned",))
    worse = health(pool(disk("a"), state="DEGRADED"), LATER, unsteady=("a: disconnected",))
    assert (worse.word, worse.reasons) == ("DEGRADED", ())


def test_error_counters_change_no_word_that_is_worse():
    noisy = disk("a", errors=ErrorCounters(0, 0, 3))
    assert judged(pool(noisy, state="DEGRADED")).word == "DEGRADED"
    assert judged(pool(noisy, error_count=1)).word == "ERRORS"


def test_a_missing_disk_is_named_with_why():
    found = judged(pool(disk("a", state="FAULTED", note="too many errors"), state="DEGRADED"))
    assert (found.word, found.severity) == ("DEGRADED", "warning")
    assert found.reasons[0] == "a FAULTED (too many errors)"


@rows(
    ("state", "run", "said"),
    [
        ("ONLINE", "running", "old FAULTED, being replaced by new"),
        ("UNAVAIL", "running", "old FAULTED"),
        ("ONLINE", "finished", "old FAULTED"),
    ],
)
def test_a_failed_disk_is_said_to_be_replaced_while_another_is_filled(state, run, said):
    pair = (disk("old", state="FAULTED"), disk("new", state=state))
    group = Vdev("replacing-0", "replacing", state="DEGRADED", children=pair)
    scan = Scan("resilver", run, start=LATER - 1)
    assert said in judged(pool(group, disk("b"), state="DEGRADED", scans=(scan,))).reasons
    for shown in (pair[:1], ()):  # by a text that ends early
        cut = replace(group, children=shown)
        found = judged(pool(cut, disk("b"), state="DEGRADED", scans=(scan,)))
        assert not any("being replaced" in reason for reason in found.reasons)


@rows("state", ["FAULTED", "REMOVED", "UNAVAIL", "DEGRADED"])
def test_a_pool_that_the_kernel_calls_online_with_a_lost_disk_is_degraded(state):
    """When spa_async_fault_vdev faults a device, its parents, and the pool, stay ONLINE."""
    found = judged(pool(disk("a", state=state, note="too many errors"), disk("b")))
    assert (found.word, found.severity) == ("DEGRADED", "warning")
    assert found.reasons[0] == f"a {state} (too many errors)"


def test_a_lost_cache_device_degrades_no_pool():
    cache = disk("c", state="FAULTED", vclass="cache")
    seen = pool(disk("a"))
    root = replace(seen.root, children=(*seen.root.children, cache))
    found = judged(replace(seen, root=root))
    assert (found.word, found.reasons) == ("ATTENTION", ("c FAULTED",))


def test_every_device_that_is_not_online_is_named_and_notes_are_not_bracketed_twice():
    filling = disk("n", state="DEGRADED", note="(resilvering)", resilvering=True)
    gone = disk("g", state="UNAVAIL", note="(awaiting resilver)")
    found = judged(pool(filling, gone, state="DEGRADED"))
    assert found.reasons == ("g UNAVAIL (awaiting resilver)", "n DEGRADED (resilvering)")


@rows(
    ("note", "detail"),
    [
        ("external device fault  (uninitialized)  (untrimmed)", " (external device fault)"),
        ("was /dev/sdq  (removing)  (trim unsupported)", " (was /dev/sdq)"),
        ("(uninitialized)  (untrimmed)", ""),
        ("(12% initialized, started at Fri Nov  6 09:24:46 2026)  (untrimmed)", ""),
        ("(awaiting resilver)  (8% trimmed, suspended)", " (awaiting resilver)"),
    ],
)
def test_what_is_known_of_trim_and_initialize_is_no_reason(note, detail):
    found = judged(pool(disk("a", state="FAULTED", note=note), state="DEGRADED"))
    assert found.reasons == (f"a FAULTED{detail}",)


def test_a_saved_scan_without_a_tree_names_no_device():
    bare = Pool("tank", "ONLINE", Vdev("tank", "root", state="UNKNOWN"))
    assert judged(bare).reasons == ()


def test_rows_of_devices_without_the_pools_own_are_judged_by_their_states():
    spare = disk("s", state="AVAIL", vclass="spare")
    for state, word in (("ONLINE", "OK"), ("FAULTED", "DEGRADED"), ("OFFLINE", "DEGRADED")):
        seen = pool(disk("a"), disk("b", state=state))
        root = replace(seen.root, state="UNKNOWN", children=(*seen.root.children, spare))
        assert judged(replace(seen, state=None, root=root)).word == word


def test_finished_is_not_safe_while_a_replacing_vdev_is_left():
    found = judged(pool(REPLACING, disk("b"), state="DEGRADED", scans=(DONE,)))
    assert found.word == "NOT RESTORED"
    assert found.reasons[0] == "replacing-0 still there after the resilver"


def test_the_old_disk_may_take_some_seconds_to_leave():
    seen = pool(REPLACING, disk("b"), state="DEGRADED", scans=(DONE,))
    assert judged(seen, now=DONE.end + GRACE - 1).word == "DEGRADED"
    assert judged(seen, now=DONE.end + GRACE).word == "NOT RESTORED"


SCRUBBED = Scan("scrub", "finished", start=300.0, end=400.0, errors=0)
SCRUBBING = Scan("scrub", "running", start=300.0)
KEPT = Activity("checkpoint", "exists")


@rows("scrub", [SCRUBBED, SCRUBBING])
def test_a_scrub_that_hides_the_repair_makes_nothing_safe(scrub):
    """The kernel keeps the figures of one scan: a scrub's replace the resilver's."""
    found = judged(pool(REPLACING, disk("b"), scans=(scrub,)))
    assert found.word == "NOT RESTORED"
    assert found.reasons[0] == "replacing-0 still there and no resilver runs"
    waiting = disk("w", awaiting_resilver=True)
    found = judged(pool(waiting, disk("b"), scans=(scrub,)))
    assert (found.word, found.reasons) == ("NOT RESTORED", ("w still waiting for a resilver",))


def test_where_no_scan_is_known_nothing_is_said_about_one():
    assert judged(pool(REPLACING, disk("b"), state="DEGRADED")).word == "DEGRADED"


def test_a_replacement_just_made_has_some_seconds_to_begin():
    seen = pool(REPLACING, disk("b"), state="DEGRADED", scans=(SCRUBBED,))
    assert health(seen, LATER, regrouped=LATER - 5).word == "DEGRADED"
    assert health(seen, LATER, regrouped=LATER - 60).word == "NOT RESTORED"


SPARED = Vdev("spare-0", "spare", children=(disk("old", state="FAULTED"), disk("s")))


def test_a_spare_that_stands_in_is_told_after_its_resilver_and_leaves_the_pool_degraded():
    found = judged(pool(SPARED, disk("b"), state="DEGRADED", scans=(DONE,)))
    assert found.word == "NOT RESTORED"
    assert found.reasons == ("spare-0 still there after the resilver", BY_SPARE, "old FAULTED")
    found = judged(pool(SPARED, disk("b"), state="DEGRADED", scans=(SCRUBBED,)))
    assert (found.word, found.reasons) == ("DEGRADED", ("old FAULTED",))


def test_a_spare_filled_beside_a_checkpoint_or_not_whole_has_restored_nothing():
    found = judged(pool(SPARED, disk("b"), scans=(SCRUBBED,), activities=(KEPT,)))
    assert found.word == "NOT RESTORED"
    assert BY_SPARE not in found.reasons
    bad = replace(DONE, errors=7)
    assert BY_SPARE not in judged(pool(SPARED, disk("b"), scans=(bad,))).reasons
    both = Vdev("spare-0", "spare", children=(disk("old"), disk("s")))
    for ended in (bad, replace(DONE, state="canceled")):
        assert judged(pool(both, disk("b"), scans=(ended,))).word == "NOT RESTORED"


def test_a_spare_beside_a_device_that_is_whole_leaves_nothing_to_restore():
    both = Vdev("spare-0", "spare", children=(disk("old"), disk("s")))
    unfilled = replace(both, children=(disk("old"), disk("s", unfilled=True)))
    for ended in (DONE, SCRUBBED):
        assert judged(pool(both, disk("b"), scans=(ended,))).word == "OK"
        assert judged(pool(unfilled, disk("b"), scans=(ended,))).word == "NOT RESTORED"
        kept = pool(both, disk("b"), scans=(ended,), activities=(KEPT,))
        assert judged(kept).word == "NOT RESTORED"


def test_a_running_resilver_is_not_called_unrestored():
    running = Scan("resilver", "running", start=300.0)
    seen = pool(REPLACING, disk("b"), state="DEGRADED", scans=(running, DONE))
    assert judged(seen).word == "DEGRADED"


def test_a_checkpoint_that_blocks_the_resilver_is_said_while_that_runs():
    running = Scan("resilver", "running", start=300.0)
    seen = pool(REPLACING, disk("b"), scans=(running,), activities=(KEPT,))
    found = judged(seen)
    assert (found.word, found.severity) == ("DEGRADED", "warning")
    said = next(reason for reason in found.reasons if "checkpoint" in reason)
    assert said == (
        "a checkpoint blocks the replacement: zpool checkpoint -d tank before the resilver ends,"
        " else it has to run again"
    )
    assert DisplayFormat().said(said) == (
        "a checkpoint blocks the replacement: discard it before the resilver ends (A), else it has"
        " to run again"
    )
    both = Vdev("replacing-0", "replacing", children=(disk("old"), disk("new")))
    whole = pool(both, disk("b"), scans=(running,), activities=(KEPT,))
    assert judged(whole).word == "ATTENTION"
    going = replace(whole, activities=(Activity("checkpoint", "running"),))
    assert judged(going).word == "OK"
    assert judged(replace(whole, scans=(SCRUBBING,), root=pool(disk("b")).root)).word == "OK"


def test_scan_errors_and_a_checkpoint_are_said():
    bad = replace(DONE, errors=7)
    found = judged(pool(REPLACING, disk("b"), scans=(bad,), activities=(KEPT,)))
    assert found.word == "NOT RESTORED"
    assert "the last repair ended with 7 errors" in found.reasons
    assert found.reasons[:2] == (
        "a checkpoint blocks the replacement: zpool checkpoint -d tank",
        "then resilver again: zpool resilver tank",
    )
    assert [DisplayFormat().said(reason) for reason in found.reasons[:2]] == [
        "a checkpoint blocks the replacement: discard it (A)",
        "then resilver again (S)",
    ]


def test_a_checkpoint_that_is_being_discarded_is_waited_for():
    gone = Activity("checkpoint", "running")
    found = judged(pool(REPLACING, disk("b"), scans=(DONE,), activities=(gone,)))
    assert "wait until it is discarded" in found.reasons[0]


def test_an_old_disk_that_redundancy_still_counts_is_to_be_kept():
    pair = Vdev("replacing-0", "replacing", children=(disk("old"), disk("new")))
    found = judged(pool(pair, disk("b"), scans=(DONE,)))
    assert found.reasons == (
        "replacing-0 still there after the resilver",
        "resilver again: zpool resilver tank",
        "keep the old disk: it still counts",
    )


def test_what_helps_is_said_unless_files_have_to_be_mended_first():
    bad = replace(DONE, errors=7)
    found = [judged(pool(REPLACING, disk("b"), scans=(scan,))).reasons for scan in (DONE, bad)]
    assert [any("zpool resilver" in text for text in reasons) for reasons in found] == [True, False]


def test_an_old_canceled_scrub_is_no_concern():
    old = Scan("scrub", "canceled", end=1.0)
    assert judged(pool(disk("a"), scans=(old,))).word == "OK"


def test_data_errors_outrank_degraded_and_suspended_outranks_all():
    assert judged(pool(disk("a"), state="DEGRADED", error_count=2)).word == "ERRORS"
    found = judged(pool(disk("a"), state="SUSPENDED", error_count=2, scans=(DONE,)))
    assert (found.word, found.severity) == ("SUSPENDED", "error")


def test_a_pool_that_does_not_answer_says_how_old_its_picture_is():
    found = unreachable(SampleFailure("tank", 0.0, 0.0, "no answer in 5 s", "SUSPENDED"), 65)
    assert (found.word, found.severity) == ("SUSPENDED", "error")
    assert found.reasons == ("no answer in 5 s", "last seen 1m05s ago")
    assert unreachable(SampleFailure("tank", 0.0, 0.0, "no answer", "ONLINE"), 5).word == "STALE"


def test_a_pool_that_was_exported_is_not_called_stale():
    found = unreachable(SampleFailure("tank", 0.0, 0.0, "not imported any more", absent=True), 65)
    assert (found.word, found.severity) == ("NOT IMPORTED", "warning")
    assert found.reasons == ("not imported any more", "last seen 1m05s ago")


@rows("before", [Health("OK", "ok"), Health("ATTENTION", "warning", ("a: 1 read error",))])
@rows(
    ("scan", "until"),
    [(Scan("resilver", "running"), "until the resilver ends"), (SCRUBBING, "left"), (DONE, "left")],
)
def test_an_online_pool_that_has_no_redundancy_is_not_ok(before, scan, until):
    """A disk of a raidz1 was back, without the data written since: "OK" stood next to "none"."""
    root = pool(disk("a"), disk("b")).root
    some, none = (((root.children[0], Redundancy("raidz2-0", left)),) for left in (1, 0))
    assert without_redundancy(before, some, (scan,)) is before
    found = without_redundancy(before, none, (scan,))
    assert found.word == "ATTENTION"
    assert found.reasons == (f"raidz2-0: no redundancy {until}", *before.reasons)
    worse = Health("DEGRADED", "warning")
    assert without_redundancy(worse, none, (scan,)) is worse


def test_a_single_disk_has_no_redundancy_to_lose():
    fine = Health("OK", "ok")
    assert without_redundancy(fine, ((disk("a"), Redundancy("a", 0, ("a",))),), ()) == fine
