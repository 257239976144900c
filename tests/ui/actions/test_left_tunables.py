"""Tunables left by a console that has ended: what the next one reports and does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.ui.actions.acting import RUN, Acting, acting
from tests.ui.fakes import until
from tests.unit.tunables.conftest import Kernel
from zconsole.pool.model import Pool, Scan, Vdev
from zconsole.system.host import process_mark
from zconsole.system.state_dir import StateError
from zconsole.ui.actions.upkeep import LOOK_SECONDS

TIME, SCRUB = "zfs_resilver_min_time_ms", "zfs_scrub_min_time_ms"
IDLE, SCANS = "healthy", "mirror-scrub"
"""A pool without a scan, and one with a scrub that ends within two days."""


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    return Kernel(tmp_path)


@pytest.fixture
def other() -> Iterator[subprocess.Popen[bytes]]:
    """A running process that stands for another console."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield process
    process.kill()
    process.wait()


def mark_of(process: subprocess.Popen[bytes]) -> str:
    return str(process_mark(process.pid))


def leave(kernel: Kernel, owner: subprocess.Popen[bytes], guid: str | None = None) -> None:
    """Let another console set a tunable, optionally until the end of a pool's scan."""
    control = kernel.console(mark_of(owner))
    control.set({TIME: 5000}, 1.0)
    if guid is not None:
        control.until(guid)


def kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


async def shows(a: Acting, text: str) -> None:
    """Wait until the screen shows a text, however it is wrapped."""
    await until(a.pilot, lambda: a.is_laid_out() and text in " ".join(a.screen.split()))


class Seen:
    """A console that was started on this kernel, and its messages."""

    def __init__(self, a: Acting, kernel: Kernel, **backend: object) -> None:
        control = kernel.console(process_mark(os.getpid()))
        made = replace(a.backend, control=control, parameters=kernel.parameters, **backend)
        a.use(made)
        self._acting, self._notify = a, a.app.notify
        self.said: list[str] = []
        a.app.notify = self._tell  # displayed messages depend on real time

    def _tell(self, message: str, **more: object) -> None:
        if not message.startswith("Reading the pool"):  # shown while a screen is slow to open
            self.said.append(message)
        self._notify(message, **more)

    async def look(self) -> str:
        """Return its messages since the last call, after checking the tunables twice."""
        self.said.clear()
        for _ in range(2):
            await self._acting.pass_time(1, 1)
            await self._acting.upkeep.look_at_tunables()
        await self._acting.rest()
        return "\n".join(self.said)


@pytest.mark.parametrize("at_end", [False, True])
async def test_what_is_due_is_restored_and_said_once(kernel, other, at_end):
    async with acting(IDLE, (80, 24)) as a:
        leave(kernel, other, a.app.view_state.frame.guid if at_end else None)
        kill(other)
        console = Seen(a, kernel)
        assert await console.look() == f"Left by a console that is gone: {TIME} restored to 3000"
        assert kernel.read(TIME) == 3000
        assert await console.look() == ""


async def test_it_is_looked_for_as_the_console_starts_and_goes_on(kernel, other):
    async with acting(IDLE, (80, 24)) as a:
        leave(kernel, other)
        kill(other)
        Seen(a, kernel)
        await a.pass_time(LOOK_SECONDS + 1, 1)
        await until(a.pilot, lambda: kernel.read(TIME) == 3000)
        assert kernel.read(TIME) == 3000


async def test_what_is_not_yet_due_is_said_and_restored_when_the_scan_ends(kernel, other):
    async with acting(SCANS, (100, 30)) as a:
        leave(kernel, other)
        kill(other)
        console = Seen(a, kernel)
        promised = "its console is gone; restored by zconsole in the background once no scan runs"
        assert await console.look() == f"{TIME}: {promised}"
        assert kernel.read(TIME) == 5000
        assert promised in " ".join((await a.read(a.press("T"))).split())
        await a.press("escape")
        while any(view.scan.active for view in a.app.view_state.frame.scans):
            await a.pass_time(7200, 1800)
        await until(a.pilot, lambda: kernel.read(TIME) == 3000)
        await a.rest()
        assert console.said[1:] == [f"Left by a console that is gone: {TIME} restored to 3000"]


async def test_what_it_set_itself_is_named_before_it_is_left(kernel):
    async with acting(SCANS, (100, 30)) as a:
        console = Seen(a, kernel)
        kernel.console(process_mark(os.getpid())).set({TIME: 5000}, 1.0)
        await console.look()
        asked = " ".join((await a.read(a.press("q"))).split())
        assert "1 tunable set here stays changed" in asked
        assert "restored by zconsole in the background once no scan runs" in asked


async def test_a_console_that_dies_while_another_runs_leaves_nothing(kernel, other):
    async with acting(IDLE, (80, 24)) as a:
        leave(kernel, other)
        console = Seen(a, kernel)
        assert await console.look() == ""
        assert kernel.read(TIME) == 5000
        said = " ".join((await a.read(a.press("T"))).split())
        assert f"once the console of process {other.pid} is gone and no scan runs; to r" in said
        assert "when the scan ends: E" not in said, "that is up to the other one"
        await a.press("escape")
        kill(other)
        assert f"{TIME} restored to 3000" in await console.look()
        assert kernel.read(TIME) == 3000


async def test_what_somebody_changed_since_is_left_and_said(kernel, other):
    async with acting(IDLE, (80, 24)) as a:
        leave(kernel, other)
        kill(other)
        kernel.write(TIME, 7777)
        changed = "left at 7777: somebody else changed it (5000 was set here)"
        said = f"Left by a console that is gone: {TIME} {changed}"
        assert await Seen(a, kernel).look() == said
        assert kernel.read(TIME) == 7777


@pytest.mark.parametrize("scenario", [IDLE, SCANS])
async def test_a_read_only_console_says_so_and_restores_nothing(kernel, other, scenario):
    async with acting(scenario, (80, 24), read_only=True) as a:
        leave(kernel, other)
        kill(other)
        console = Seen(a, kernel)
        assert await console.look() == (
            f"{TIME}: its console is gone; restored by zconsole in the background once no scan"
            " runs; not by this console (read-only). To restore now: zconsole tunables restore"
        )
        while any(view.scan.active for view in a.app.view_state.frame.scans):
            await a.pass_time(7200, 1800)
        assert await console.look() == ""
        assert kernel.read(TIME) == 5000
        assert kernel.console().past().holds[TIME].until is None


async def test_what_cannot_be_restored_is_said_and_tried_again(kernel, other, monkeypatch):
    refusing = []

    def write(_parameters, name, value):
        if refusing:
            raise StateError(f"{name}={value}: refused: Invalid argument")
        kernel.write(name, value)

    monkeypatch.setattr("zconsole.tunables.parameters.Parameters.write", write)
    async with acting(IDLE, (80, 24)) as a:
        leave(kernel, other)
        kill(other)
        refusing.append(1)
        console = Seen(a, kernel)
        assert await console.look() == (
            f"{TIME} not restored: {TIME}=3000: refused: Invalid argument. To retry: T, then U."
        )
        refusing.clear()
        assert f"{TIME} restored to 3000" in await console.look()


async def test_where_what_was_set_cannot_be_read_nobody_says_that_nothing_was(kernel):
    async with acting(IDLE, (80, 24)) as a:
        kernel.console().set({TIME: 5000}, 1.0)
        (kernel.state / "tunables.json").write_text("{half")
        console = Seen(a, kernel)
        await a.press("T", "U")
        await until(a.pilot, lambda: console.said)
        assert "tunables.json is damaged, or of another version" in console.said[-1]
        await a.press("escape")


async def test_what_another_version_set_is_shown_and_restored(kernel):
    async with acting(SCANS, (100, 30)) as a:
        t = a.app.view_state.frame.t
        kernel.console().set({TIME: 5000}, t)
        kernel.console().set({TIME: 6000}, t)
        file = kernel.state / "tunables.json"
        file.write_text(file.read_text().replace(TIME, "zfs_new"))
        kernel.write("zfs_new", 6000)
        await Seen(a, kernel).look()
        await a.pass_time(2, 1)
        said = [event.text for event in a.app.view_state.frame.events]
        assert "zfs_new 3000 to 5000 and 1 more" in "; ".join(said)
        assert "zfs_new  set by another version" in await a.read(a.press("T", "U"))
        assert "zfs_new restored to 3000" in await a.read(a.press(*RUN))
        assert kernel.read("zfs_new") == 3000
        await a.press("escape", "U", "escape")


def pools(*scans: str) -> tuple[Pool, ...]:
    """Return pools of the machine, each with a scan in one of these states."""
    return tuple(
        Pool("other", "ONLINE", Vdev("other", "root"), scans=(Scan("resilver", state),))
        for state in scans
    )


@pytest.mark.parametrize("guid", [None, "77"])
@pytest.mark.parametrize(
    ("every", "whole", "value"),
    [
        (pools("running"), True, 5000),
        (pools("finished", "paused"), True, 5000),
        (pools("finished"), False, 5000),
        (pools("finished"), True, 3000),
        ((), True, 3000),
    ],
)
async def test_a_console_of_some_pools_asks_whether_another_scans(
    kernel, other, guid, every, whole, value
):
    async def every_pool():
        return every, whole

    async with acting(IDLE, (80, 24), pools=("vault",)) as a:
        leave(kernel, other, guid)
        kill(other)
        await Seen(a, kernel, every_pool=every_pool).look()
        assert kernel.read(TIME) == value


async def test_a_pool_that_does_not_answer_may_scan(kernel, other, monkeypatch):
    async with acting(IDLE, (80, 24)) as a:
        leave(kernel, other)
        kill(other)
        monkeypatch.setattr("zconsole.timeline.frame.Frame.problem", "no answer")
        await Seen(a, kernel).look()
        assert kernel.read(TIME) == 5000


async def test_what_is_set_is_said_before_and_after_in_the_same_words(kernel):
    async with acting("resilver", (80, 24)) as a:
        console = Seen(a, kernel)
        until_gone = (
            "restored by zconsole in the background once this console is gone (or ssh drops) and"
            " no scan runs; to restore it now: U, when the scan ends: E"
        )
        asked = " ".join((await a.read(a.press("T", "enter", *"5000", "enter"))).split())
        assert until_gone[1:] in asked
        await a.press(*RUN, "escape")
        await shows(a, f"was 3000: {until_gone}")
        await a.press("E")
        at_end = (
            "restored when the scan of tank ends, even if this console is gone (or ssh drops) by"
            " then"
        )
        await shows(a, f"was 3000: {at_end}; to restore it now: U, to keep it until a reboot: E")
        assert console.said == [f"Values set here: {at_end}"]
        await a.press("E")
        await shows(a, "was 3000: set to stay: nothing restores it before the next boot")
        await a.press("escape")
        await a.pilot.press("q")
        assert a.app.return_code == 0, "what is to stay needs no question"


@pytest.mark.parametrize("size", [(60, 15), (80, 24)])
async def test_what_becomes_of_a_value_is_whole_at_every_size(size):
    async with acting("resilver", size) as a:
        await a.press("T", "enter", *"5000", "enter", *RUN, "escape")
        await shows(a, "to restore it now: U, when the scan ends: E")
        await a.press("E")
        await shows(a, "to restore it now: U, to keep it until a reboot: E")
        assert "when the scan ends: E" not in " ".join(a.screen.split())
