from __future__ import annotations

from tests.factory import mirror_pool
from tests.records import replace
from tests.table import rows
from tests.unit.actions.pools import disk, group, pool, top
from zconsole.actions.plan import Facts
from zconsole.actions.refresh import situation_of
from zconsole.pool.balance import balance
from zconsole.pool.health import health
from zconsole.pool.model import (
    ErrorCounters,
    HostLoad,
    IoCounters,
    Sample,
    SampleFailure,
    Scan,
)
from zconsole.pool.redundancy import redundancy
from zconsole.pool.topology import placed
from zconsole.timeline import pool as history_of_pool
from zconsole.timeline.pool_monitor import PoolMonitor
from zconsole.timeline.scans import ScanTracker

RUNNING = Scan("scrub", "running", start=900.0, total_bytes=1000, issued_bytes=10)


def sample(t: float, **fields) -> Sample:
    pool = mirror_pool(RUNNING, action="do this", see="there", damaged=True)
    return Sample(t, t, "libzfs", True, pool, kstat="ONLINE", **fields)


def counted(monkeypatch, owner, name) -> list[None]:
    """One entry for every call of ``owner.name`` from now on."""
    calls, work = [], getattr(owner, name)

    def call(*args):
        calls.append(None)
        return work(*args)

    monkeypatch.setattr(owner, name, call)
    return calls


def test_a_sample_costs_one_walk_of_the_tree_and_one_look_at_its_scans(monkeypatch):
    walks = counted(monkeypatch, history_of_pool, "placed")
    views = counted(monkeypatch, ScanTracker, "views")
    frame = PoolMonitor().push(sample(1000.0))
    assert len(frame.rows) == 4
    assert len(walks) == len(views) == 1


def test_the_pool_of_a_frame_reaches_plans_whole():
    now = sample(1000.0)
    frame = PoolMonitor().push(now)
    assert situation_of(frame, Facts()).pool == now.pool


def test_a_disk_that_disconnected_and_returned_within_the_hour_wants_attention():
    def at(t: float, state: str) -> Sample:
        pool = mirror_pool(RUNNING)
        top = pool.root.children[0]
        sda = top.children[0]._replace(state=state)
        top = top._replace(children=(sda, *top.children[1:]))
        return Sample(t, t, "libzfs", True, replace(pool, root=pool.root._replace(children=(top,))))

    monitor = PoolMonitor()
    words = [
        monitor.push(at(t, state)).health.word
        for t, state in ((1000.0, "ONLINE"), (1005.0, "REMOVED"))
    ]
    found = monitor.push(at(1010.0, "ONLINE")).health
    assert (*words, found.word) == ("OK", "DEGRADED", "ATTENTION")
    assert found.reasons == ("sda: disconnected, returned",)
    assert monitor.push(at(1010.0 + 3601.0, "ONLINE")).health.word == "OK"


def test_a_failure_ages_the_frame_and_leaves_what_the_sample_told():
    monitor = PoolMonitor()
    last = monitor.push(sample(1000.0, host=HostLoad(0.5), began=7.0))
    stale = monitor.push_failure(SampleFailure("tank", 1030.0, 1030.0, "it hangs", began=9.0), last)
    assert (stale.t, stale.stale_seconds, stale.problem) == (1000.0, 30.0, "it hangs")
    assert (stale.seen, stale.root) == (last.seen, last.root)
    assert (stale.host, stale.kstat, stale.looked) == (HostLoad(0.5), None, 9.0)
    assert (last.stale_seconds, last.problem, last.looked) == (0.0, None, 7.0)


def test_a_pool_never_sampled_has_the_kernels_word_for_its_state():
    failure = SampleFailure("tank", 1030.0, 1030.0, "it hangs", kstat="SUSPENDED", absent=True)
    blank = PoolMonitor().push_failure(failure, None)
    assert (blank.t, blank.state, blank.stale_seconds) == (1030.0, "SUSPENDED", None)
    assert (blank.root, blank.sample, blank.absent) == (None, None, True)


def test_a_spare_is_not_called_idle_before_the_device_that_came_back_is_repaired():
    def at(t: float, state: str, *scans: Scan) -> Sample:
        pair = group("spare", disk("d00", 1000, state), disk("sp", 1900))
        own = disk("sp", 1900, "INUSE", vclass="spare")
        found = pool(top("raidz2", 0, 6, pair), spares=(own,), scans=scans)
        return Sample(t, t, "libzfs", True, found)

    monitor = PoolMonitor()
    filled = Scan("resilver", "finished", start=100.0, end=200.0, errors=0)
    repaired = Scan("resilver", "finished", start=1015.0, end=1020.0, errors=0)
    spares = [
        [found.kind for found in monitor.push(sample).spares]
        for sample in (
            at(1000.0, "FAULTED", filled),
            at(1010.0, "ONLINE", filled),
            at(1100.0, "ONLINE", repaired),
        )
    ]
    assert spares == [[], [], ["idle"]]


@rows(
    "change",
    [
        {},
        {"io": IoCounters(9.0, 1, 1, 1, 1)},
        {"state": "REMOVED"},
        {"errors": ErrorCounters(0, 0, 3)},
        {"awaiting_resilver": True},
        {"note": "was /dev/sdx"},
    ],
)
def test_what_is_said_of_a_pool_is_that_of_its_newest_sample(change):
    first = sample(1000.0)
    top = first.pool.root.children[0]
    disks = (top.children[0]._replace(**change), *top.children[1:])
    root = first.pool.root._replace(children=(top._replace(children=disks),))
    monitor, pool = PoolMonitor(), replace(first.pool, root=root)
    for t, seen in enumerate((first.pool, pool, pool, first.pool)):
        frame = monitor.push(replace(first, t=1000.0 + t, clock=1000.0 + t, pool=seen))
        assert frame.redundancy == redundancy(seen.root, seen.scans, monitor.history.returned)
        assert frame.balance == balance(seen.root)
        assert {row.key: row.vdev for row in frame.rows} == {
            place.key: place.vdev for place in placed(seen.root)
        }
        own = health(seen, frame.t, monitor.history.regrouped).reasons
        remembered = ("returned", "cleared")
        told = frame.health.reasons
        assert own == tuple(why for why in told if not any(word in why for word in remembered))
