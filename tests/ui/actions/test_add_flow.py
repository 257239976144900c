"""Adding to a pool, by script and by keys: what to add, which devices, the plan, the result."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import asynccontextmanager

from tests.ui.actions.acting import Acting, acting, commands
from tests.ui.actions.scripted import AGREED, Reply, ScriptedSession
from tests.ui.drawn import LOOK, flat, plain
from zconsole.actions.add import Layout
from zconsole.sim.build import Build
from zconsole.sim.source import World
from zconsole.ui.actions.add_flow import DevicesScreen, add_flow, layout_text


@asynccontextmanager
async def adding(scenario: str = "mirror-scrub", disks: int = 2, size=(100, 44)):
    """Open the list of what can be added, with suitable disks on the shelf."""
    async with acting(scenario, size) as a:
        pool = a.feed.world.pools[0]
        model = next(pool.tops[0].leaves()).model
        pool.host.shelf = Build(7, "more").leaves(disks, model)
        await a.press("A")
        await at_line(a, "Add a vdev")
        await a.press("enter")
        yield a


async def at_line(a: Acting, text: str) -> None:
    """Move the cursor of a list to the line that begins with a text."""
    view = a.app.screen.view
    while not view.line_at(view.cursor)[0].text.strip(" ›").startswith(text):
        await a.press("j")


def scripted(scenario: str, disks: int, *answers: Reply) -> ScriptedSession:
    """Return a session with ``disks`` disks for the pool on the shelf."""

    def _prepare(world: World) -> None:
        pool = world.pools[0]
        model = next(pool.tops[0].leaves()).model
        pool.host.shelf = Build(7, "more").leaves(disks, model)

    return ScriptedSession(scenario, *answers, prepare=_prepare)


def marking(count: int) -> Callable[[DevicesScreen], int]:
    """Return an answer that marks the first ``count`` disks in the list and continues."""

    def _mark(screen: DevicesScreen) -> int:
        for index in range(count):
            screen.marking.mark(index)
        return 0

    return _mark


async def test_a_mirror_is_added_and_its_plan_says_what_that_brings():
    ui = scripted("mirror-scrub", 2, "mirror of 2 disks like the others", marking(2), AGREED)
    assert await add_flow(ui, "")
    assert ui.shown[0].startswith("ADD TO mirrors")
    assert "zpool add mirrors mirror /dev/disk/by-id/" in ui.plan
    assert "usable free space: 9.82T now" in ui.plan
    (command,) = ui.commands
    assert command[:3] == ["add", "mirrors", "mirror"]
    ui.pass_time(10.0, 2.0)
    assert ui.messages == ["the mirror vdev is part of mirrors"]
    assert "mirror-3" in [row.vdev.name for row in ui.frame.rows]


async def test_it_says_how_many_disks_are_free_and_which_are_too_small():
    listed: list[str] = []

    def _list(screen: DevicesScreen) -> None:
        listed.extend(plain(line) for line in screen.marking.lines(LOOK, 100))

    ui = scripted("failed-disk", 2, "raidz2 of 8 disks like the others", _list)
    shelf = ui.world.pools[0].host.shelf
    shelf[1].model = shelf[1].model._replace(size=400 * 10**9)
    await add_flow(ui, "")
    assert "8 disks like the others, at least 3; 1 free" in ui.shown[0]
    assert any("smaller than the pool's disks" in line for line in listed)


async def test_what_cannot_be_added_is_grey_with_the_reason_and_a_path_can_still_be_typed():
    async with adding("failed-disk", 1) as a:
        (line,) = (row for row in a.screen.splitlines() if "special" in row and "mirror" in row)
        assert "needs 3 free disks, there is one" in line
        rows = {plain(row).strip(): row for row in map(a.app.screen.view.line_at, range(7))}
        for text, (span, *_) in rows.items():
            assert (span.role == "dim") == ("there is one" in text), text
        await at_line(a, "special")
        assert "Not now: needs 3 free disks, there is one" in a.screen
        assert "type the path of a file or device" in await a.read(a.press("enter"))


async def test_one_way_is_typed_before_it_runs():
    ui = scripted("failed-disk", 3, "special", marking(3), AGREED)
    await add_flow(ui, "")
    assert "can never be removed again" in ui.plan
    assert 'type "tank" to confirm' in ui.ran[-1]
    assert ui.commands == []


async def test_a_lone_spare_is_the_device_at_the_cursor():
    ui = scripted("mirror-scrub", 2, "hot spare", marking(0), AGREED)
    assert await add_flow(ui, "")
    assert "zpool add mirrors spare /dev/" in ui.plan
    ui.pass_time(10.0, 2.0)
    assert "AVAIL" in [row.vdev.state for row in ui.frame.rows]


async def test_too_few_are_refused_with_the_reason():
    ui = scripted("mirror-scrub", 2, "mirror", marking(0))
    await add_flow(ui, "")
    assert "needs at least 2 devices" in ui.plan


async def test_devices_are_marked_unmarked_and_their_plan_shown_by_keys():
    async with adding() as a:
        assert "ADD TO mirrors" in a.screen
        assert "ADD mirror vdev TO mirrors: 0 of 2 marked" in await a.read(a.press("enter"))
        assert "1 of 2 marked" in await a.read(a.press("space", "k"))
        assert "0 of 2 marked" in await a.read(a.press("space"))
        await at_line(a, "ata-")
        assert "0 of 2 marked" in await a.read(a.press("G", "k", "space")), "it is in use"
        said = await a.read(a.press("g", "space", "space"))
        assert "2 of 2 marked" in said
        assert said.count("\nx ") == 2
        plan = flat(await a.read(a.press("enter")))
        assert "zpool add mirrors mirror /dev/disk/by-id/" in plan
        assert "of 2 devices to mirrors" in plan


async def test_a_path_that_is_typed_is_marked_and_asked_about():
    async with adding() as a:
        await a.press("enter", "space", "G", "enter")
        said = await a.read(a.press(*"/tmp/file", "enter"))
        assert "2 of 2 marked" in said
        assert "/tmp/file" in said
        await a.press("G", "enter", *"/tmp/file", "enter")
        view = a.app.screen.view
        assert view.cursor == view.line_count() - 1, "it stays where a path is typed"
        plan = await a.read(a.press("g", "enter"))
        assert "/tmp/file is not a device of this machine" in flat(plan)


async def test_it_can_be_left_at_every_step():
    async with adding() as a:
        for keys in (("enter", "G", "enter"), ("enter",), ()):
            await a.press(*keys)
            await a.home()
            await a.press("A")
            await at_line(a, "Add a vdev")
            await a.press("enter")
        assert commands(a) == []


def test_each_line_says_what_it_is():
    said = "raidz2 of 6 disks like the others, at least 3; 2 free"
    assert layout_text(Layout("normal", "raidz2"), 6, 2) == said
    assert (
        layout_text(Layout("normal", "mirror"), 2, 0) == "mirror of 2 disks like the others; 0 free"
    )
    assert layout_text(Layout("special", "mirror"), 3, 2) == "special: a mirror of 3 disks"
    assert layout_text(Layout("cache"), 0, 2) == "cache: single disks"
