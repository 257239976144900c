"""Features of newer releases: the exact command there, the reason on others."""

from __future__ import annotations

from functools import partial

import pytest

from tests.ui.actions.scripted import AGREED, ScriptedSession
from zconsole.sim.source import World
from zconsole.ui.actions.menu import actions_flow
from zconsole.ui.actions.scan_flow import scans_flow


def of_release(version: str, world: World) -> None:
    """Give the simulated pool this release."""
    world.pools[0].version = version


@pytest.mark.parametrize(
    ("scenario", "version", "entry", "command"),
    [
        ("damaged", "2.2.0", "Scrub only known errors", "zpool scrub -e photos"),
        ("healthy", "2.3.0", "Scrub only what is new", "zpool scrub -C vault"),
    ],
)
async def test_a_partial_scrub_is_started(scenario, version, entry, command):
    ui = ScriptedSession(scenario, entry, AGREED, prepare=partial(of_release, version))
    await scans_flow(ui, "")
    assert command in ui.plan
    assert command.split()[1:] in ui.commands


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
    ui = ScriptedSession(scenario, prepare=partial(of_release, version))
    await scans_flow(ui, "")
    assert reason in ui.said


async def test_autosit_is_switched():
    ui = ScriptedSession("sit-out", "Switch autosit of raidz2-0", AGREED)
    await actions_flow(ui, ui.key("bay04"))
    command = f"zpool set autosit=off tank {ui.world.pools[0].tops[0].guid}"
    assert command in ui.plan
    assert command.split()[1:] in ui.commands
