"""Tunables that a console left which is gone: what the next one says of them, and does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.ui.actions.acting import Acting, acting
from tests.unit.tunables.conftest import Kernel
from zconsole.system.host import process_mark
from zconsole.system.state_dir import StateError

TIME, SCRUB = "zfs_resilver_min_time_ms", "zfs_scrub_min_time_ms"
IDLE, SCANS = "healthy", "mirror-scrub"
"""A pool without a scan, and one with a scrub that ends within two days."""


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    return Kernel(tmp_path)


@pytest.fixture
def other() -> Iterator[subprocess.Popen[bytes]]:
    """Another console: a process that runs."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield process
    process.kill()
    process.wait()


def mark_of(process: subprocess.Popen[bytes]) -> str:
    return str(process_mark(process.pid))


def leave(kernel: Kernel, owner: subprocess.Popen[bytes], until: str | None = None) -> None:
    """Have another console set a tunable, to be restored at the end of a pool's scan or not."""
    control = kernel.console(mark_of(owner))
    control.set({TIME: 5000}, 1.0)
    if until is not None:
        control.until(until)


def kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


async def seen(a: Acting, kernel: Kernel) -> str:
    """What a console says that was started on this kernel."""
    control = kernel.console(process_mark(os.getpid()))
    a.use(replace(a.backend, control=control, parameters=kernel.parameters))
    return await looked(a)


async def looked(a: Acting) -> str:
    """What it says after its next looks at the tunables."""
    await a.pass_time(12, 1)
    await a.pass_time(2, 1)
    return " ".join(message.message for message in a.app.messages)


@pytest.mark.parametrize("until", [False, True])
async def test_what_is_due_is_restored_and_said_once(kernel, other, until):
    async with acting(IDLE, (80, 24)) as a:
        leave(kernel, other, a.app.view_state.frame.guid if until else None)
        kill(other)
        said = await seen(a, kernel)
        assert said == f"Left by a console that is gone: {TIME} restored to 3000"
        assert kernel.read(TIME) == 3000
        a.app.messages.forget("Left by")
        assert await looked(a) == ""


async def test_what_is_not_yet_due_is_taken_over_and_restored_when_the_scan_ends(kernel, other):
    async with acting(SCANS, (100, 30)) as a:
        leave(kernel, other)
        kill(other)
        said = await seen(a, kernel)
        promised = "restored when the scan of mirrors ends; if this console is gone by then"
        assert said.startswith(f"Taken over from a console that is gone: {TIME}: {promised}")
        assert kernel.read(TIME) == 5000
        assert promised in " ".join((await a.press("T")).split())
        asked = " ".join((await a.press("escape", "q")).split())
        assert "1 tunable set here stays changed" in asked
        assert "restored by the next console once no scan of mirrors runs" in asked
        await a.press("escape")
        while any(view.scan.active for view in a.app.view_state.frame.scans):
            await a.pass_time(7200, 1800)
        assert f"{TIME} restored to 3000" in await looked(a)
        assert kernel.read(TIME) == 3000


async def test_a_console_that_dies_while_another_runs_leaves_nothing(kernel, other):
    async with acting(IDLE, (80, 24)) as a:
        leave(kernel, other)
        assert await seen(a, kernel) == ""
        assert kernel.read(TIME) == 5000
        said = " ".join((await a.press("T")).split())
        assert f"by the next console once that of process {other.pid} is gone and" in said
        await a.press("escape")
        kill(other)
        assert f"{TIME} restored to 3000" in await looked(a)
        assert kernel.read(TIME) == 3000


async def test_what_somebody_changed_since_is_left_and_said(kernel, other):
    async with acting(IDLE, (80, 24)) as a:
        leave(kernel, other)
        kill(other)
        kernel.write(TIME, 7777)
        said = await seen(a, kernel)
        changed = "left at 7777: somebody else changed it (5000 was set here)"
        assert said == f"Left by a console that is gone: {TIME} {changed}"
        assert kernel.read(TIME) == 7777


@pytest.mark.parametrize("scenario", [IDLE, SCANS])
@pytest.mark.parametrize("size", [(60, 15), (80, 24)])
async def test_a_read_only_console_says_so_and_restores_nothing(kernel, other, scenario, size):
    async with acting(scenario, size, read_only=True) as a:
        leave(kernel, other)
        kill(other)
        assert await seen(a, kernel) == (
            f"{TIME}: its console is gone; restored by the next console once no scan runs, not by"
            " this one (read-only). To restore now: zconsole tunables restore"
        )
        while any(view.scan.active for view in a.app.view_state.frame.scans):
            await a.pass_time(7200, 1800)
        await looked(a)
        assert kernel.read(TIME) == 5000
        assert kernel.console().past().holds[TIME].until is None


async def test_what_cannot_be_restored_is_said_and_tried_again(kernel, other, monkeypatch):
    refusing = []

    def write(_parameters, name, value):
        if refusing:
            raise StateError(f"{name}={value}: refused: Invalid argument")
        kernel.write(name, value)

    monkeypatch.setattr("zconsole.tunables.parameters.SysfsParameters.write", write)
    async with acting(IDLE, (80, 24)) as a:
        leave(kernel, other)
        kill(other)
        refusing.append(1)
        said = await seen(a, kernel)
        assert f"{TIME} not restored: {TIME}=3000: refused: Invalid argument" in said
        assert "To retry: T, then U" in said
        refusing.clear()
        assert f"{TIME} restored to 3000" in await looked(a)


@pytest.mark.parametrize("named", [("vault",), ()])
async def test_a_console_of_some_pools_does_not_guess_that_no_scan_runs(kernel, other, named):
    async with acting(IDLE, (80, 24), pools=named) as a:
        leave(kernel, other, "77")
        kill(other)
        await seen(a, kernel)
        assert kernel.read(TIME) == (5000 if named else 3000)


async def test_a_pool_that_does_not_answer_may_scan(kernel, other, monkeypatch):
    async with acting(IDLE, (80, 24)) as a:
        leave(kernel, other)
        kill(other)
        monkeypatch.setattr("zconsole.monitor.frame.Frame.problem", "no answer")
        await seen(a, kernel)
        assert kernel.read(TIME) == 5000


async def test_what_is_set_is_said_before_and_after_in_the_same_words():
    async with acting("resilver", (80, 24)) as a:
        until_gone = (
            "restored by the next console once this one is gone (or ssh drops) and no scan runs; U"
            " restores it now, E when the scan ends"
        )
        asked = " ".join((await a.press("T", "enter", *"5000", "enter")).split())
        assert until_gone[1:] in asked
        said = " ".join((await a.press("tab", "enter", "escape")).split())
        assert f"was 3000: {until_gone}" in said
        said = " ".join((await a.press("E")).split())
        at_end = (
            "restored when the scan of tank ends; if this console is gone by then (or ssh drops),"
            " by the next one"
        )
        assert f"was 3000: {at_end}; U restores it now, E keeps it" in said
        assert [m.message for m in a.app.messages][:1] == [f"Values set here: {at_end}"]
        await a.press("E")
        assert "was 3000: set to stay: nothing restores it before the next boot" in " ".join(
            a.screen.split()
        )
        await a.press("escape", "q")
        assert a.app.return_code == 0, "what is to stay needs no question"


@pytest.mark.parametrize("size", [(60, 15), (80, 24)])
async def test_what_becomes_of_a_value_is_whole_at_every_size(size):
    async with acting("resilver", size) as a:
        await a.press("T", "enter", *"5000", "enter", "tab", "enter", "escape")
        assert "U restores it now, E when the scan ends" in " ".join(a.screen.split())
        await a.press("E")
        assert "U restores it now, E keeps it" in " ".join(a.screen.split())
