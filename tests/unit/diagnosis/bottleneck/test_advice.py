"""Suggestions about a limit."""

from __future__ import annotations

from tests.table import rows
from zconsole.diagnosis.bottleneck.advice import memory, new_disk, slow_disk
from zconsole.diagnosis.bottleneck.evidence import Disk, Evidence, LeafStats
from zconsole.pool.model import IoRates, Scan, Vdev

SMALL = Disk("a", "1", True, IoRates(write=4096.0 * 100, write_ops=100.0), LeafStats())


@rows(
    ("version", "suggested"),
    [((2, 3, 6), False), ((2, 4, 1), False), ((2, 3, 7), True), ((2, 4, 4), True), ((), True)],
)
def test_no_sequential_rebuild_is_suggested_on_a_release_where_it_errs(
    version: tuple[int, ...], suggested: bool
) -> None:
    tops = {"1": Vdev("mirror-0", "mirror")}
    seen = Evidence(Scan("resilver"), "issuing", 1.0, tops=tops, version=version)
    assert ("replace -s" in new_disk(seen, SMALL).text) == suggested


@rows(("failed", "suggested"), [(0, True), (1, False), (2, False)])
def test_no_disk_is_suggested_to_go_offline_with_the_last_redundancy(
    failed: int, suggested: bool
) -> None:
    states = ["FAULTED"] * failed + ["ONLINE"] * (6 - failed)
    leaves = tuple(Vdev(f"d{n}", "disk", state=state) for n, state in enumerate(states))
    tops = {"1": Vdev("raidz2-0", "raidz2", children=leaves)}
    scan = Scan("resilver", state="running", percent=50.0)
    seen = Evidence(scan, "issuing", 1.0, tops=tops)
    said = slow_disk(seen, SMALL).text
    assert ("offline" in said) == suggested
    assert not suggested or said.endswith("or offline it (then 1 more device may fail)")


@rows(("function", "later"), [("resilver", True), ("scrub", False)])
def test_a_slow_disk_is_replaced_after_the_resilver_that_runs(function: str, later: bool) -> None:
    seen = Evidence(Scan(function, state="running"), "issuing", 1.0)
    assert ("replace it after this resilver" in slow_disk(seen, SMALL).text) == later


def test_no_disk_is_suggested_to_be_checked_or_replaced_that_is_being_replaced() -> None:
    pair = Vdev(
        "replacing-0",
        "replacing",
        children=(Vdev("a", "disk", state="ONLINE"), Vdev("new", "disk", state="ONLINE")),
    )
    others = (Vdev(name, "disk", state="ONLINE") for name in "bcd")
    tops = {"1": Vdev("raidz2-0", "raidz2", children=(pair, *others))}
    seen = Evidence(Scan("resilver", state="running"), "issuing", 1.0, tops=tops)
    told = "wait: new replaces a after this resilver; or offline it (then 1 more device may fail)"
    assert slow_disk(seen, SMALL).text == told


@rows(
    ("now", "said"), [(20, "zfs_scan_mem_lim_fact=10"), (10, "nothing more"), (5, "nothing more")]
)
def test_memory_to_sort_in_is_not_raised_again_and_again(now: int, said: str) -> None:
    seen = Evidence(
        Scan("scrub", total_bytes=1 << 50),
        "issuing",
        1.0,
        tunables={"zfs_scan_mem_lim_fact": now},
        memory=1 << 30,
    )
    assert said in memory(seen).text
