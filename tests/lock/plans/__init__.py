"""Plans of the lock: what every action would do in many situations, and how its end is reported."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator

from tests.lock.case import Case
from tests.lock.plans.condition import bugs, condition, silent
from tests.lock.plans.follows import series
from tests.lock.plans.rebalance import plans
from tests.lock.plans.situations import Moment, moments
from tests.lock.plans.swaps import swaps
from tests.lock.plans.table import planned


def cases() -> Iterator[Case]:
    """Return the cases of this part."""
    for moment in moments():
        cost = 0.3 if moment.later else 0.1
        if moment.plans:
            yield _case(f"actions/{moment.name}", lambda whole, m=moment: _planned(m, whole), cost)
        yield _case(f"condition/{moment.name}", lambda _, m=moment: _conditions(m), 0.03)
    yield _case("condition/silent/pools", lambda _: silent())
    yield _case("condition/bugs/releases", lambda _: bugs())
    for name, told in series():
        yield _case(f"follow/{name}", lambda _, told=told: told(), 0.1)
    for name, plan in plans():
        yield _case(f"rebalance/{name}", plan, 0.6 if name.startswith("files") else 0.1)
    for name, swap in swaps():
        yield _case(f"swap/{name}", swap, 0.2)


def _case(name: str, told: Callable[[bool], Iterable[str]], cost: float = 0.01) -> Case:
    def _see(whole: bool) -> str:
        with _in_utc():
            return "\n".join(told(whole))

    return Case(name, _see, cost)


@contextlib.contextmanager
def _in_utc() -> Iterator[None]:
    """Set the local time zone to UTC, which scrub windows use."""
    before = os.environ.get("TZ")
    try:
        os.environ["TZ"] = "UTC"
        time.tzset()
        yield
    finally:
        os.environ.pop("TZ")
        os.environ.update({} if before is None else {"TZ": before})
        time.tzset()


def _planned(moment: Moment, whole: bool) -> Iterator[str]:
    later = () if moment.later is None else moment.later()
    for number, now in enumerate(moment.now()):
        then = later[number] if number < len(later) else None
        yield f"pool {now.pool.name}"
        yield from planned(moment.name, now, then, whole)


def _conditions(moment: Moment) -> Iterator[str]:
    for now in moment.now():
        yield f"pool {now.pool.name}"
        yield from condition(now)
