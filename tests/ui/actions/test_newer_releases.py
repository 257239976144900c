"""What only newer releases have, by keys: the exact command there, the reason elsewhere."""

from __future__ import annotations

import pytest

from tests.ui.actions.acting import RUN, Acting, acting, commands, pick
from zconsole.sim.state import PoolState

WIDE = (120, 40)


async def of_release(a: Acting, version: str) -> PoolState:
    """The simulated pool, as this release has it."""
    (pool,) = a.feed.world.pools
    pool.version = version
    a.feed.step()
    await a.rest()
    return pool


@pytest.mark.parametrize(
    ("scenario", "version", "entry", "command"),
    [
        ("damaged", "2.2.0", "Scrub only known errors", "zpool scrub -e photos"),
        ("healthy", "2.3.0", "Scrub only what is new", "zpool scrub -C vault"),
    ],
)
async def test_a_partial_scrub_is_started_by_keys(scenario, version, entry, command):
    async with acting(scenario, WIDE) as a:
        await of_release(a, version)
        await a.press("S")
        await pick(a, entry)
        assert command in a.screen
        await a.press(*RUN)
        assert command.split()[1:] in commands(a)


@pytest.mark.parametrize(
    ("scenario", "version", "reason"),
    [
        ("damaged", "2.1.15", "an error scrub needs OpenZFS 2.2"),
        ("healthy", "2.2.9", "a scrub of what is new (-C) needs OpenZFS 2.3"),
        ("healthy", "2.3.9", "a scrub by dates (-S, -E) needs OpenZFS 2.4"),
        ("healthy", "0.7.13", "pausing a scrub needs OpenZFS 0.8"),
    ],
)
async def test_a_release_without_it_says_which_has_it(scenario, version, reason):
    async with acting(scenario, WIDE) as a:
        await of_release(a, version)
        assert reason in await a.read(a.press("S"))


async def test_autosit_is_switched_by_keys():
    async with acting("sit-out", WIDE) as a:
        await a.to("bay04")
        await a.press("A")
        await pick(a, "Switch autosit of raidz2-0")
        (pool,) = a.feed.world.pools
        command = f"zpool set autosit=off tank {pool.tops[0].guid}"
        assert command in a.screen
        await a.press(*RUN)
        assert command.split()[1:] in commands(a)


async def test_a_release_without_autosit_says_which_one_has_it():
    async with acting("healthy", WIDE) as a:
        await a.to("bay04")
        assert "autosit needs OpenZFS 2.4" in await a.read(a.press("A", "G", "enter"))
