"""Faults on live pools: the judge detects false claims; one fault is named on each release."""

from __future__ import annotations

from typing import Any

import pytest

from tests.vm import fault_judge, fault_trial, zinject
from tests.vm.errors import NotAvailableError
from tests.vm.fault_judge import Seen, Truth, dishonest, named, repaired, truth, truths
from tests.vm.fault_trial import Trial, drawn, faults, parity, trials
from tests.vm.machine import Machine

HEALTHY = """\
  pool: tank
 state: ONLINE
  scan: scrub repaired 0B in 00:00:13 with 0 errors on Tue Nov 24 05:00:00 2026
config:

\tNAME                 STATE     READ WRITE CKSUM
\ttank                 ONLINE       0     0     0
\t  mirror-0           ONLINE       0     0     0
\t    virtio-LABDISK0  ONLINE       0     0     0
\t    virtio-LABDISK1  ONLINE       0     0     0

errors: No known data errors
"""
BROKEN = HEALTHY.replace("state: ONLINE", "state: DEGRADED").replace(
    "virtio-LABDISK1  ONLINE", "virtio-LABDISK1  REMOVED"
)


def fault(device: str = "virtio-LABDISK1", **more: Any) -> dict[str, Any]:
    counts = {"read": 0, "write": 0, "cksum": 0, "flaps": 0, "gone": False, "text": "said"}
    return {"device": device} | counts | more


def frame(t: float, word: str = "OK", left: int = 1, *troubles: dict[str, Any]) -> dict[str, Any]:
    health = {"word": word, "reasons": []}
    limit = {
        "cause": "slow-disk",
        "text": "virtio-LABDISK1 is slow",
        "figures": {"x": 1},
    }
    return {
        "t": t,
        "health": health,
        "redundancy": {"mirror-0": left},
        "troubles": list(troubles),
        "scan": {"limit": limit},
        "errors": [],
    }


def seen(name: str, *frames: dict[str, Any], **more: Any) -> Seen:
    return Seen(name, "scrub", 1, 1, frames, code=0, **more)


def test_a_status_is_read_as_zpool_prints_it() -> None:
    assert truth(1.0, HEALTHY) == Truth(1.0, "ONLINE", frozenset(), False)
    assert truth(2.0, BROKEN) == Truth(2.0, "DEGRADED", frozenset({1}), False)
    damaged = HEALTHY.replace("No known data errors", "2 data errors, use '-v' for a list")
    assert truth(3.0, damaged).errors
    assert truth(4.0, "cannot open 'tank': no such pool").state == "UNAVAIL"
    assert repaired(HEALTHY) == ("0B", 0)


def test_a_replaced_disk_is_known_by_where_it_was() -> None:
    text = BROKEN.replace(
        "virtio-LABDISK1  REMOVED      0     0     0",
        "1234567890123456  UNAVAIL      0     0     0  was /dev/disk/by-id/virtio-LABDISK1-part1",
    )
    assert truth(1.0, text).bad == {1}


def test_what_a_loop_was_writing_when_it_ended_is_left_out() -> None:
    text = f"1.5\n{HEALTHY}END\n2.5\n{BROKEN}END\n3.5\n  pool: ta"
    assert [(each.t, each.state) for each in truths(text)] == [(1.5, "ONLINE"), (2.5, "DEGRADED")]


def test_health_over_a_degraded_pool_is_dishonest_once_there_was_time() -> None:
    known = [truth(t, BROKEN) for t in (10.0, 11.0, 12.0)]
    end = truth(20.0, HEALTHY)
    lie = seen("gone", frame(12.0), truths=known, end=end)
    assert dishonest(lie) == [
        "says OK while zpool says DEGRADED",
        "says 1 left of 1 without a device",
    ]
    fresh = [truth(8.0, HEALTHY), *known]
    assert dishonest(seen("gone", frame(12.0), truths=fresh, end=end)) == []
    right = seen("gone", frame(12.0, "DEGRADED", 0), truths=known, end=end)
    assert dishonest(right) == []
    damaged = [Truth(t, "ONLINE", frozenset(), errors=True) for t in (10.0, 11.0, 12.0)]
    mild = seen("gone", frame(12.0, "ATTENTION"), truths=damaged, end=end)
    assert dishonest(mild) == ["says ATTENTION over damaged data"]


def test_an_end_called_good_is_held_against_what_is_there() -> None:
    broken = truth(20.0, BROKEN)
    assert len(dishonest(seen("gone", end=broken, status_code=10))) == 1
    assert len(dishonest(seen("gone", end=broken, status_code=0))) == 2
    again = HEALTHY.replace("repaired 0B", "repaired 2M")
    resilver = seen("read", end=truth(20.0, HEALTHY), after=again)
    assert dishonest(resilver) == []  # a scrub may find more than one before
    resilver.during = "resilver"
    assert dishonest(resilver) == ["ends with 0, and a further scrub repairs 2M with 0 errors"]
    assert dishonest(seen("file", end=truth(20.0, HEALTHY), changed=["a"])) == ["files changed: a"]
    job = seen("file", end=truth(20.0, HEALTHY), records=[{"outcome": "failed"}])
    job.during = "rebalance"
    assert dishonest(job) == ["the rebalance ends with 0 over a failed file"]


@pytest.mark.parametrize(
    ("name", "said", "other"),
    [
        ("read", fault(read=4), fault(cksum=4)),
        ("checksum", fault(cksum=4), fault(read=4, cksum=1)),
        ("gone", fault(gone=True), fault(read=1)),
        ("returns", fault(flaps=1), fault(flaps=2)),
        ("flaps", fault(flaps=2), fault(flaps=1)),
    ],
)
def test_a_fault_is_named_by_its_device_and_its_kind(
    name: str, said: dict[str, Any], other: dict[str, Any]
) -> None:
    assert named(seen(name, frame(1.0, "OK", 1, said)))[0]
    assert not named(seen(name, frame(1.0, "OK", 1, other)))[0]
    assert not named(seen(name, frame(1.0)))[0]
    wrong = said | {"device": "virtio-LABDISK0"}
    assert not named(seen(name, frame(1.0, "OK", 1, wrong)))[0]
    assert not named(seen(name, frame(1.0, "OK", 1, said, wrong)))[0]


def test_nothing_is_named_where_nothing_is_wrong() -> None:
    assert named(seen("none", frame(1.0)))[0]
    assert not named(seen("none", frame(1.0, "OK", 1, fault())))[0]
    assert not named(seen("none", frame(1.0, "DEGRADED")))[0]


def test_a_disk_that_crawls_is_the_limit() -> None:
    assert named(seen("crawls", frame(1.0)))[0]
    other = frame(1.0)
    other["scan"]["limit"] = {"cause": "slow-disk", "text": "virtio-LABDISK10", "figures": {"x": 1}}
    assert not named(seen("crawls", other))[0]


def test_every_fault_is_known_to_the_judge_and_drawn_alike_each_time() -> None:
    assert set(faults()["faults"]) == set(fault_judge.NAMED)
    found = list(trials("trixie"))
    assert len(found) == len(set(found)) == 56
    assert [drawn(trial) for trial in found] == [drawn(trial) for trial in trials("trixie")]
    assert [parity(layout, 3) for layout in ("mirror d0", "raidz1 d0", "draid2:1d:4c")] == [2, 1, 2]


def test_a_disk_with_checksum_errors_is_named_on_a_live_pool(vm: Machine) -> None:
    try:
        zinject.install(vm)
    except NotAvailableError as error:
        pytest.skip(str(error))
    trial = Trial(vm.image.release, "checksum", "scrub", 1)
    found = fault_trial.make(vm, trial)
    assert dishonest(found) == []
    right, said = named(found)
    assert right, said
