"""Options of zfs rewrite by keys: in the plan's command if the release supports them."""

from __future__ import annotations

from tests.ui.actions.acting import Acting, acting
from tests.ui.rebalance.steps import settled, to_tree
from zconsole.ui.rebalance.options import OTHERS, REWRITES


async def planned(a: Acting, version: str, letters: str) -> str:
    """Return the plan on the screen for a new job with these options."""
    await a.home()
    for pool in a.feed.world.pools:
        pool.version = version
    await to_tree(a)
    await a.press("enter", "g", *["j"] * OTHERS, "enter", "G")
    await a.press("enter", *["j"] * list(REWRITES).index(letters), "enter", "escape")
    await a.press("G", "enter")
    return await a.read(settled(a))


async def test_the_command_has_the_options_that_were_chosen_where_the_release_has_them():
    async with acting("added-vdev", (140, 60)) as a:
        for version, letters in (("2.4.4", "P"), ("2.4.99", "SC"), ("2.4.99", "PSC")):
            said = " ".join((await planned(a, version, letters)).split())
            assert "Not possible" not in said, letters
            assert f"zconsole rebalance run --rewrite-options={letters} /storage/films" in said
        for version, letters, reason in (
            ("2.3.9", "P", "zfs rewrite -P needs OpenZFS 2.4"),
            ("2.4.4", "SC", "zfs rewrite -S needs OpenZFS 2.5"),
        ):
            assert reason in " ".join((await planned(a, version, letters)).split())
