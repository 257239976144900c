"""Nothing moves: not while a scan runs from its first to its last sample, nor in an alarm."""

from __future__ import annotations

import re

import pytest

from tests.ui.actions.acting import Acting, acting
from zconsole.history.scan_track import scan_slot
from zconsole.sim.hands import SimulatedHands
from zconsole.ui.pane_layout import COMPACT

PARTS = ("header", "scan", "devices", "balance", "events", "footer")
LABELS = (
    "REDUNDANCY",
    "ERRORS",
    "RATE",
    "ETA",
    " limit ",
    " suggestion ",
    "BALANCE",
    "STATE",
)
SPOKEN = {" suggestion "}
"""Labels of rows that are blank until there is something to say."""


def boundaries(a: Acting) -> dict[str, tuple[int, int, int, int]]:
    """Where each part of the screen is."""
    views = {part: a.app.main_screen.query_one(f"#{part}") for part in PARTS}
    return {part: tuple(view.region) for part, view in views.items() if view.display}


def places(screen: str, low: bool = False) -> dict[str, tuple[int, int]]:
    """Row and column of each label on the screen; where it is ``low`` one row has the worst."""
    rows = list(enumerate(screen.splitlines()))
    if low:
        rows = [(y, row.replace(" trouble ", " limit ")) for y, row in rows]
    found = {label: [(y, row.index(label)) for y, row in rows if label in row] for label in LABELS}
    return {label: spots[0] for label, spots in found.items() if spots}


def facts_row(screen: str) -> int | None:
    """The row of the scan's facts, whose figures differ in width."""
    rows = enumerate(screen.splitlines())
    return next((y for y, row in rows if re.search(r" (errors|resilvered) \d", row)), None)


@pytest.mark.parametrize(
    ("scenario", "size"),
    [
        ("memory-limited", (60, 15)),
        ("memory-limited", (80, 24)),
        ("memory-limited", (120, 40)),
        ("memory-limited", (200, 50)),
        ("nvme", (60, 15)),
        ("nvme", (80, 24)),
        ("nvme", (120, 40)),
        ("resilver", (60, 15)),
        ("resilver", (80, 24)),
        ("resilver", (120, 40)),
        ("resilver", (200, 50)),
        ("flaky", (60, 15)),
        ("flaky", (80, 24)),
        ("flaky", (120, 40)),
    ],
)
async def test_the_parts_of_the_screen_stay_where_they_are_while_a_scan_runs(scenario, size):
    async with acting(scenario, size=size) as a:
        (frame,) = a.app.view_state.frames
        watched = scan_slot(frame.scan.scan)
        await a.pass_time(3, 1)
        low = size[1] < COMPACT
        first, labels, rounds = boundaries(a), places(a.screen, low), 0
        facts, stages = facts_row(a.screen), set()
        while (view := a.app.view_state.frame.scan).scan.active and scan_slot(view.scan) == watched:
            assert boundaries(a) == first, (rounds, a.screen)
            now = places(a.screen, low)
            assert {**labels, **now} == {**now, **labels}, (rounds, a.screen)
            labels = {**now, **labels}
            assert labels.keys() - now.keys() <= SPOKEN, (rounds, a.screen)
            assert facts_row(a.screen) in (facts, None), (rounds, a.screen)  # or there is no room
            stages.add(view.stage)
            rounds += 1
            for step in (1, 1, 10 if scenario == "nvme" else 600):
                a.feed.step(step)
                await a.pilot.pause()
        assert facts is not None
        assert stages >= ({"scanning", "issuing"} if scenario == "memory-limited" else set())
        assert rounds > 20


PANES = ("header", "scan", "devices", "balance", "events")


def tops(a: Acting) -> dict[str, int]:
    """The row at which each pane begins; that of the devices is the first that could move."""
    return {part: region[1] for part, region in boundaries(a).items() if part in PANES}


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (120, 40), (200, 50)])
async def test_the_header_stays_as_high_when_a_pool_suspends_and_returns(size):
    async with acting("suspended", size=size) as a:
        high, words = a.app.main_screen.query_one("#header").region.height, set()
        for _ in range(40):
            await a.pass_time(3, 3)
            words.add(a.app.view_state.frame.health.word)
            assert a.app.main_screen.query_one("#header").region.height == high, a.screen
        assert "SUSPENDED" in words
        assert len(words) > 1


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (120, 40), (200, 50)])
async def test_nothing_moves_when_disks_are_pulled_until_no_redundancy_is_left(size):
    async with acting("swap", size=size) as a:
        await a.pass_time(3, 1)
        before, lefts = tops(a), set()
        for bay in ("Slot 07", "Slot 08", "Slot 09"):
            SimulatedHands(a.feed.world).pull(bay)
            await a.pass_time(30, 10)
            lefts.add(min(entry.left for entry in a.app.view_state.frame.redundancy))
            assert tops(a) == before, a.screen
        assert 0 in lefts
