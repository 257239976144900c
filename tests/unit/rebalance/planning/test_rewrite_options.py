"""Effects of -P, -S and -C of zfs rewrite on a plan."""

from __future__ import annotations

from tests.records import replace
from tests.table import rows
from zconsole.pool.allocator import Space
from zconsole.rebalance.planning.engine_choice import Choice, flags_of
from zconsole.rebalance.planning.facts import Dataset, JobDirectory, PoolFacts, Snapshot
from zconsole.rebalance.planning.forecast import DirectoryPlan
from zconsole.rebalance.planning.plan import judged
from zconsole.rebalance.planning.plan_notes import of_options
from zconsole.rebalance.planning.settings import Settings
from zconsole.rebalance.planning.survey import Ages, Survey

REWRITE = Choice("rewrite", "in place")
V24, MASTER = (2, 4, 4), (2, 4, 99)


def pool(version: tuple[int, ...] = MASTER, feature: str = "enabled") -> PoolFacts:
    spaces = (Space("mirror-0", 100, 50, disks=2),)
    properties = {"feature@physical_rewrite": feature, "bclonesaved": "5"}
    return PoolFacts("tank", properties, spaces, version)


def planned(choice: Choice = REWRITE, snapshot: int = 60) -> DirectoryPlan:
    place = JobDirectory(b"/tank", "zfs", "tank", Dataset("tank", {}, (Snapshot(1, 0, False),)))
    found = Survey(
        b"/tank",
        Ages(),
        1000,
        files=3,
        bytes=100,
        allocated=100,
        old_allocated=80,
        snapshot_allocated=snapshot,
        snapshot_bytes=snapshot,
    )
    pinned = {"snapshots": snapshot, "clones": 10, "block_clones": 5, "checkpoint": 0}
    return DirectoryPlan(place, found, choice, found.files, found.bytes, pinned)


def test_p_keeps_sends_from_growing_and_snapshots_as_they_are():
    plan = planned()
    plan.spare_blocks("P")
    assert plan.document(plan.bytes).next_incremental_bytes == 0
    assert plan.document(plan.bytes).pinned_bytes["snapshots"] == 60
    assert plan.bytes == 100
    effect, active = of_options("P", [plan], pool(V24))
    assert "snapshots keep the old blocks" in effect
    assert "only import the pool read-only" in active
    assert len(list(of_options("P", [plan], pool(V24, "active")))) == 1


def test_s_and_c_leave_alone_what_snapshots_and_clones_hold():
    plan = planned()
    plan.spare_blocks("SC")
    assert plan.bytes == 40
    assert plan.document(plan.bytes).pinned_bytes == {
        "snapshots": 0,
        "clones": 0,
        "block_clones": 0,
        "checkpoint": 0,
    }
    assert plan.document(plan.bytes).next_incremental_bytes == 0
    assert (plan.found.allocated, plan.found.old_allocated) == (40, 20)
    assert len(list(of_options("SC", [plan], pool()))) == 2


def test_where_snapshots_have_everything_nothing_is_left_to_do():
    settings = Settings((), rewrite_options="S")
    for held, refused in ((100, True), (60, False)):
        plan = planned(snapshot=held)
        plan.spare_blocks("S")
        said = judged([plan], pool(), settings).document.refused or ""
        assert ("the newest snapshots have every block" in said) == refused


def test_a_copied_directory_is_planned_as_without_options():
    plan = planned(Choice("copy", ""))
    plan.spare_blocks("PSC")
    assert plan.bytes == 100
    assert list(of_options("", [plan], pool())) == []


def test_without_options_the_plan_says_what_they_could_spare():
    said = list(of_options("", [planned()], pool()))
    assert [note.split(" (")[0] for note in said] == [
        "--rewrite-options P",
        "--rewrite-options SC",
    ]
    assert list(of_options("", [planned()], pool((2, 3, 9)))) == []


@rows(
    ("letters", "said"),
    [("P", ["makes the pool feature"]), ("S", []), ("C", []), ("", [])],
)
def test_nothing_is_said_of_snapshots_and_clones_that_are_not_there(letters, said):
    plan = planned(snapshot=0)
    plan.place = JobDirectory(b"/tank", "zfs", "tank", Dataset("tank", {}))
    plan.pinned = {"snapshots": 0, "clones": 0, "block_clones": 0, "checkpoint": 60, "dedup": 60}
    bare = replace(pool(), properties={"feature@physical_rewrite": "enabled"})
    notes = list(of_options(letters, [plan], bare))
    assert len(notes) == len(said)
    assert all(words in note for words, note in zip(said, notes, strict=True))
    cloned = replace(plan.place, dataset=Dataset("tank", {"origin": "tank/b@1"}))
    plan.place = cloned
    assert bool(list(of_options("S", [plan], bare)))


def test_each_letter_has_the_kernels_flag():
    assert [flags_of(letters) for letters in ("", "P", "S", "C", "PSC")] == [0, 1, 2, 4, 7]
