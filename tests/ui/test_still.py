"""Nothing on the screen moves: not during a scan, from first to last sample, nor in an alarm."""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest
from textual.geometry import Size

from tests.ui.actions.acting import acting
from tests.ui.drawn import LOOK, plain
from tests.ui.fakes import FakeFeed, view_state
from tests.worlds import world_of
from zconsole.config.settings import PANES
from zconsole.sim.backends.swap import SimulatedHands
from zconsole.sim.scenarios import names
from zconsole.sim.source import World
from zconsole.timeline.feed import Update
from zconsole.timeline.frame import Frame
from zconsole.timeline.scans import scan_slot
from zconsole.timeline.session import Session
from zconsole.ui.app import Console
from zconsole.ui.panes.header import header_lines
from zconsole.ui.panes.pane import COMPACT
from zconsole.ui.view_state import HeaderStatus
from zconsole.zfs.sources.base import Capabilities

CAPABILITIES = Capabilities("demo", flags=("DEMO",))

LABELS = (
    "REDUNDANCY",
    "ERRORS",
    "RATE",
    "ETA",
    " slowed by ",
    " try ",
    "BALANCE",
    "STATE",
)
SPOKEN = {" try "}
"""Labels of rows that are blank until there is something to show."""
SMALL, USUAL, LARGE, HUGE = (60, 15), (80, 24), (120, 40), (200, 50)


class Drawn(NamedTuple):
    """A frame drawn at one size, before textual lays it out."""

    parts: dict[str, object]
    """Height of each part of the screen that is shown."""
    labels: dict[str, tuple[str, int, int]]
    """Part, row and column of each label; on a low screen, one row has the worst."""
    facts: int | None
    """The row of the scan's facts, whose figures differ in width."""


def drawn(app: Console, size: tuple[int, int]) -> Drawn:
    """Draw the newest frame on a terminal of this size; return what the parts show."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Console, "size", property(lambda _: Size(*size)))
        app.paint()
    views = {part: app.main_screen.query_one(f"#{part}") for part in ("header", *PANES)}
    heights = {part: view.styles.height for part, view in views.items() if view.display}
    side = app.main_screen.query_one("#bottom").has_class("side")
    rows = {
        (part, y): plain(line)
        for part, view in views.items()
        if view.display
        for y, line in enumerate([view.title_line(), *view._lines])
    }
    if size[1] < COMPACT:
        rows = {at: row.replace(" new errors ", " slowed by ") for at, row in rows.items()}
    found = {
        label: next(((*at, row.index(label)) for at, row in rows.items() if label in row), None)
        for label in LABELS
    }
    facts = (y for (part, y), row in rows.items() if re.search(r" (errors|resilvered) \d", row))
    return Drawn(
        {**heights, "side": side},
        {label: spot for label, spot in found.items() if spot is not None},
        next(facts, None),
    )


@pytest.mark.parametrize(
    ("scenario", "sizes"),
    [
        ("memory-limited", (SMALL, USUAL, LARGE, HUGE)),
        ("nvme", (SMALL, USUAL, LARGE)),
        ("resilver", (SMALL, USUAL, LARGE, HUGE)),
        ("flaky", (SMALL, USUAL, LARGE)),
        ("foreground", (SMALL, USUAL, LARGE)),
    ],
)
async def test_the_parts_of_the_screen_stay_where_they_are_while_a_scan_runs(scenario, sizes):
    """All sizes are tested together, because most of the time is spent on simulating the pool."""
    world, session, elapsed = World(scenario, 1), Session(), 0.0

    def advance(seconds: float) -> Frame:
        nonlocal elapsed
        elapsed += seconds
        world.advance(elapsed)
        (frame,) = session.advance(world.raws())
        return frame

    frame = advance(0.0)
    watched, stages, rounds = scan_slot(frame.scan.scan), set(), 0
    before: dict[tuple[int, int], Drawn] = {}
    async with view_state(frame) as (app, _, _):
        for _ in range(3):
            frame = advance(1.0)
            app.view_state.take(Update((frame,), CAPABILITIES), elapsed)
            app.paint()
        while frame.scan.scan.active and scan_slot(frame.scan.scan) == watched:
            for size in sizes:
                now = drawn(app, size)
                first = before.setdefault(size, now)
                assert now.parts == first.parts, (rounds, size)
                assert {**first.labels, **now.labels} == {**now.labels, **first.labels}, rounds
                labels = {**now.labels, **first.labels}
                assert labels.keys() - now.labels.keys() <= SPOKEN, (rounds, size)
                assert now.facts in (first.facts, None), (rounds, size)  # None: there is no room
                before[size] = first._replace(labels=labels)
            stages.add(frame.scan.stage)
            rounds += 1
            for step in (1, 1, {"nvme": 10, "flaky": 600}.get(scenario, 1200)):
                frame = advance(step)
                app.view_state.take(Update((frame,), CAPABILITIES), elapsed)
    assert all(each.facts is not None for each in before.values())
    assert stages >= ({"scanning", "issuing"} if scenario == "memory-limited" else set())
    assert rounds > 20


def test_the_header_stays_as_high_when_a_pool_suspends_and_returns():
    world, session, highs, words = world_of("suspended"), Session(), set(), set()
    for n in range(40):
        world.advance(3.0 * n)
        (frame,) = session.advance(world.raws())
        words.add(frame.health.word)
        status = HeaderStatus("nas1", now=frame.t, age=frame.stale_seconds)
        sizes = (SMALL, USUAL, LARGE, HUGE)
        highs.add(tuple(len(header_lines(frame, status, LOOK, *size)) for size in sizes))
    assert len(highs) == 1
    assert words >= {"DEGRADED", "SUSPENDED"}


async def test_nothing_moves_when_disks_are_pulled_until_no_redundancy_is_left():
    sizes = (SMALL, USUAL, LARGE, HUGE)
    async with acting("swap") as a:
        await a.pass_time(3, 1)
        before = [drawn(a.app, size).parts for size in sizes]
        for left, bay in ((1, "Slot 07"), (0, "Slot 08"), (0, "Slot 09")):
            SimulatedHands(a.feed.world).pull(bay)
            await a.pass_time(30, 10)
            lefts = (entry.left for entry in a.app.view_state.frame.redundancy)
            assert min(lefts) <= left
            assert [drawn(a.app, size).parts for size in sizes] == before


async def test_ten_devices_and_the_balance_of_every_vdev_are_seen_at_80x24():
    async with view_state(feed=FakeFeed()) as (app, pilot, screen):
        for scenario in names():
            world, session = world_of(scenario), Session()
            for seconds in (0.0, 1.0):
                world.advance(seconds)
                found = session.advance(world.raws())
            for frame in found:
                app.view_state.pool = None
                app.view_state.take(Update((frame,), CAPABILITIES), 0.0)
                app.paint()
                await pilot.pause()
                listed = app.devices.region.height - 1
                assert listed >= min(10, app.devices.line_count()), screen()
                vdevs = [vdev.name for vdev in frame.balance.vdevs]
                balance = screen().partition("─ BALANCE ")[2]
                if 1 < len(vdevs) <= 4:
                    assert all(f" {vdev} " in balance for vdev in vdevs), screen()
