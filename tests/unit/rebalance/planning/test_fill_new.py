"""Full vdevs that take no new writes while a job runs: which, and what that saves."""

from __future__ import annotations

import os

import pytest

from tests.table import rows
from zconsole.pool.allocator import Space
from zconsole.rebalance.planning import fill_new, forecast, plan
from zconsole.rebalance.planning.engine_choice import Choice
from zconsole.rebalance.planning.facts import Condition, Dataset, JobDirectory, PoolFacts
from zconsole.rebalance.planning.forecast import DirectoryPlan
from zconsole.rebalance.planning.plan_document import PlanDocument, fill_new_words, plan_lines
from zconsole.rebalance.planning.settings import Limits, Settings
from zconsole.rebalance.planning.survey import Ages, Survey
from zconsole.units import size

TIB = 1 << 40
TO_EVEN = Limits(until_spread=0.05)


def pool_of(
    *fills: float,
    version: tuple[int, ...] = (2, 3, 9),
    available: float | None = None,
    moving: str | None = None,
    off: int | None = None,
) -> PoolFacts:
    """Return a pool of mirrors of 10T; ``available`` in T, ``off`` the one that takes no writes."""
    spaces = tuple(
        Space(f"mirror-{n}", 10 * TIB, fill * 10 * TIB, float(n != off), speed=1.0)
        for n, fill in enumerate(fills)
    )
    whole, used = sum(space.size for space in spaces), round(sum(space.alloc for space in spaces))
    return PoolFacts(
        "tank",
        {"size": str(whole), "free": str(whole - used)},
        spaces,
        version,
        Condition("ONLINE", moving=moving),
        used=used,
        available=None if available is None else round(available * TIB),
    )


@rows(
    ("fills", "available", "chosen", "less"),
    [
        ((0.62, 0.0), None, ("mirror-0",), 10),
        ((0.4, 0.35, 0.0), None, ("mirror-0", "mirror-1"), 20),
        # Only the fullest: without both, 10T would have to hold 13T.
        ((0.7, 0.6, 0.0), None, ("mirror-0",), 10),
        # One that is about as full as the pool is not too full.
        ((0.7, 0.36, 0.0), None, ("mirror-0",), 10),
        # Reservations leave less than what is free.
        ((0.62, 0.0), 10.5, (), 0),
        ((0.62, 0.0), 11.5, ("mirror-0",), 10),
    ],
)
def test_the_fullest_are_chosen_while_the_rest_can_hold_all_data(
    fills: tuple[float, ...], available: float | None, chosen: tuple[str, ...], less: int
) -> None:
    found = fill_new.full_vdevs(pool_of(*fills, available=available), Limits())
    assert found.names == chosen
    assert found.less_available == less * TIB
    assert (found.refused is None) == bool(chosen)


@rows(
    ("pool", "why"),
    [
        (pool_of(0.62, 0.0, version=(2, 1, 15)), "setting allocating needs OpenZFS 2.2 or later"),
        (pool_of(0.62, 0.0, version=()), "setting allocating needs OpenZFS 2.2 or later"),
        (pool_of(0.62, 0.0, version=(2, 4, 99, 1)), "hangs the pool in builds of OpenZFS"),
        (pool_of(0.62), "the pool has one vdev for data"),
        (pool_of(0.62, 0.0, moving="vdev removal"), "a vdev removal is running"),
        (
            pool_of(0.62, 0.0, off=0),
            "no new writes go to mirror-0 already: removed, or allocating=off",
        ),
        (pool_of(0.62, 0.61), "no vdev is much fuller than the others"),
        (
            pool_of(0.933, 0.0),
            "the other vdevs can't hold the pool's data: zfs list would show 10T less available,"
            " and only 9.67T is usable beyond what is kept free",
        ),
    ],
)
def test_why_none_can_be_kept_from_new_writes(pool: PoolFacts, why: str) -> None:
    found = fill_new.full_vdevs(pool, Limits())
    assert why in (found.refused or "")
    assert found.kept(pool.spaces) == pool.spaces


@rows("version", [(2, 2, 0), (2, 2, 11), (2, 3, 0), (2, 3, 9), (2, 4, 0), (2, 4, 4), (2, 5, 0)])
def test_no_release_has_the_deadlock(version: tuple[int, ...]) -> None:
    """Looked up in zfs_ioc_vdev_set_props of each: only builds of master had it."""
    assert fill_new.full_vdevs(pool_of(0.62, 0.0, version=version), Limits()).refused is None


def made_of(pool: PoolFacts, limits: Limits, fill: bool, room: int = 5 * TIB) -> PlanDocument:
    """Return the plan to move all of the pool's data."""
    used = pool.used or 0
    found = Survey(b"/tank", Ages(), room, files=9, bytes=used, allocated=used)
    place = JobDirectory(b"/tank", "zfs", "tank", Dataset("tank", {}))
    each = DirectoryPlan(place, found, Choice("rewrite", ""), 9, used)
    settings = Settings(("/tank",), fill_new=fill, limits=limits)
    return plan.judged([each], pool, settings).document


def test_it_saves_a_quarter_of_the_bytes_and_more() -> None:
    usual, kept = (made_of(pool_of(0.62, 0.0), TO_EVEN, fill) for fill in (False, True))
    assert kept.refused is usual.refused is None
    assert kept.bytes_to_target is not None
    assert usual.bytes_to_target is not None
    # All that moves leaves the full vdev: half the difference of the fills, but for the target.
    assert kept.bytes_to_target == pytest.approx(0.57 / 2 * 10 * TIB, rel=0.02)
    assert kept.bytes_to_target < 0.75 * usual.bytes_to_target
    for made in (usual, kept):
        assert made.fill_new is not None
        assert made.fill_new.bytes_to_target == kept.bytes_to_target
        assert made.fill_new.usual_bytes_to_target == usual.bytes_to_target
        assert made.fill_new.less_available_bytes == 10 * TIB
    assert [vdev.fill_after > vdev.fill_before for vdev in kept.vdevs or ()] == [False, True]


def test_what_it_saves_is_offered_and_once_chosen_told() -> None:
    usual, kept = (made_of(pool_of(0.62, 0.0), TO_EVEN, fill) for fill in (False, True))
    offered, told = (fill_new_words(made, size, "--fill-new") for made in (usual, kept))
    assert offered.startswith("without new writes on mirror-0 meanwhile (--fill-new): a spread of")
    assert offered.endswith("; 10T less available")
    assert told.startswith("no new writes on mirror-0 while the job runs (allocating=off): ")
    assert f"needs {size(kept.bytes_to_target)} logical, not {size(usual.bytes_to_target)}" in told
    assert "zfs list shows 10T less available until it ends" in told
    assert any("lands on the full vdevs again" in line for line in plan_lines(usual))
    assert not any("lands on the full vdevs again" in line for line in plan_lines(kept))


def test_what_saves_nothing_is_not_offered() -> None:
    refused = made_of(pool_of(0.933, 0.0), TO_EVEN, fill=False)
    assert refused.refused is None
    assert fill_new_words(refused, size, "--fill-new") == ""


@rows(
    ("pool", "limits", "why"),
    [
        (pool_of(0.933, 0.0), TO_EVEN, "can't hold the pool's data"),
        (pool_of(0.62, 0.61), TO_EVEN, "no vdev is much fuller"),
        (pool_of(0.62, 0.0), Limits(), "they would end emptier than the others: set a spread"),
        (pool_of(0.62, 0.0), Limits(max_bytes=TIB), None),
        (pool_of(0.62, 0.0), TO_EVEN, None),
    ],
)
def test_a_job_that_must_not_do_it_is_refused(
    pool: PoolFacts, limits: Limits, why: str | None
) -> None:
    made = made_of(pool, limits, fill=True)
    if why is None:
        assert made.refused is None
    else:
        assert made.refused is not None
        assert made.refused.startswith("full vdevs can't be kept from new writes: ")
        assert why in made.refused


def test_the_space_for_the_job_is_less_by_the_vdevs_that_are_kept() -> None:
    pool = pool_of(0.62, 0.0)
    room = forecast.above_floor(pool, Limits())
    assert forecast.above_floor(pool, Limits(), fill_new=True) == pytest.approx(room - 10 * TIB)


def test_the_space_that_stays_reserved_is_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """The filesystem itself counts less free meanwhile: it must not be taken off twice."""
    free = 13 * TIB // 4096

    class Status:
        f_bavail, f_frsize, f_blocks = free, 4096, 20 * TIB // 4096

    monkeypatch.setattr(os, "statvfs", lambda _: Status)
    pool = pool_of(0.62, 0.0)
    usual, before = forecast.room_in(b"/tank", pool, Limits())
    kept, after = forecast.room_in(b"/tank", pool, Limits(), fill_new=True)
    assert after == before
    assert kept == pytest.approx(usual - 10 * TIB, abs=TIB)
    assert kept > 0
