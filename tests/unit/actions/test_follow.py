"""How an action is seen to have ended."""

from __future__ import annotations

import pytest

from tests.unit.actions.pools import disk, raidz2, running
from zconsole.actions.follow import onlined
from zconsole.actions.plan import ActionOutcome, Situation

AWAY = raidz2(changes=(disk("d00", 1000, "OFFLINE"),))


def ends(s: Situation) -> ActionOutcome | None:
    return onlined(AWAY, "1000", "d00")(s)


def test_a_device_that_is_still_out_is_not_online_yet():
    assert ends(AWAY) is None


@pytest.mark.parametrize(
    ("s", "said"),
    [
        (raidz2(), "its resilver begins now"),
        (raidz2(running("resilver", start=1001.0, percent=0.0)), "its resilver has begun"),
        (raidz2(running("resilver", state="finished", start=10.0, end=20.0)), "begins now"),
    ],
)
def test_a_device_put_online_is_not_called_complete_before_its_resilver_ended(s, said):
    end = ends(s)
    assert end is not None
    assert end.ok
    assert said in end.text
    assert "pull no disk before it ends" in end.text
    assert "complete" not in end.text


def test_a_device_put_online_is_complete_once_its_resilver_has_ended():
    end = ends(raidz2(running("resilver", state="finished", start=1001.0, end=1002.0)))
    assert end == ActionOutcome(True, "d00 is online and complete")


def test_a_device_that_left_the_pool_is_not_online():
    end = onlined(AWAY, "7", "d00")(AWAY)
    assert end is not None
    assert not end.ok
