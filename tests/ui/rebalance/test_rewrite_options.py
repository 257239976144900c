"""The options of zfs rewrite by keys: in the plan's command where the release has them."""

from __future__ import annotations

import pytest

from tests.ui.actions.acting import Acting, acting
from tests.ui.rebalance.steps import settled, to_tree
from zconsole.ui.rebalance.options import PLAN, REWRITES


async def planned(a: Acting, version: str, letters: str) -> str:
    """The plan on the screen, of a job with these options."""
    for pool in a.feed.world.pools:
        pool.version = version
    await to_tree(a)
    await a.press("enter", "g", *["j"] * (PLAN - 1))
    await a.press("enter", *["j"] * list(REWRITES).index(letters), "enter")
    await a.press("G", "enter")
    return await settled(a)


@pytest.mark.parametrize(
    ("version", "letters"), [("2.4.4", "P"), ("2.4.99", "SC"), ("2.4.99", "PSC")]
)
async def test_the_command_has_the_options_that_were_chosen(version, letters):
    async with acting("added-vdev", (140, 60)) as a:
        said = " ".join((await planned(a, version, letters)).split())
        assert "Not possible" not in said
        assert f"zconsole rebalance run --rewrite-options={letters} /storage/films" in said


@pytest.mark.parametrize(
    ("version", "letters", "reason"),
    [
        ("2.3.9", "P", "zfs rewrite -P needs OpenZFS 2.4"),
        ("2.4.4", "SC", "zfs rewrite -S needs OpenZFS 2.5"),
    ],
)
async def test_a_release_without_them_says_which_has_them(version, letters, reason):
    async with acting("added-vdev", (140, 60)) as a:
        assert reason in " ".join((await planned(a, version, letters)).split())
