"""A guarded tunable as a duty of the keeper: no process, a clock that the test names."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import asdict

import pytest

from zconsole.errors import UsageError, ZconsoleError
from zconsole.system.host import process_mark
from zconsole.tunables import guard
from zconsole.tunables.guard import Guard, Guarded

NAME = "zfs_scan_suspend_progress"


async def freeze(kernel, seconds=30.0, watch=None, owner=None) -> Guard:
    wanted = Guarded(NAME, 1, seconds, watch)
    control = kernel.console(owner or process_mark(os.getpid()))
    return await guard.begin(control, kernel.parameters, kernel.log, asdict(wanted))


async def test_the_value_is_held_until_its_time_is_over_then_put_back(kernel):
    held = await freeze(kernel, 30.0)
    now = held._end - 30.0
    assert kernel.read(NAME) == 1
    assert held.due(now) == guard.LOOK
    assert held.due(now + 29.9) == pytest.approx(0.1)
    assert held.due(now + 30.0) <= 0.0
    assert not await held.act()
    assert kernel.read(NAME) == 0
    assert kernel.console().past().holds == {}


@pytest.fixture
def console() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait()


async def test_it_is_put_back_when_the_console_it_watches_is_gone(kernel, console):
    held = await freeze(kernel, watch=process_mark(console.pid))
    assert held.due(0.0) > 0.0
    console.kill()
    console.wait()
    assert held.due(0.0) == 0.0
    await held.act()
    assert kernel.read(NAME) == 0


@pytest.mark.parametrize("way", ["act", "undo"])
async def test_it_is_put_back_without_the_file_of_originals(kernel, way):
    held = await freeze(kernel)
    for file in kernel.state.iterdir():
        file.unlink()
    await getattr(held, way)()
    assert kernel.read(NAME) == 0


async def test_what_somebody_else_set_stays(kernel):
    held = await freeze(kernel)
    kernel.write(NAME, 0)
    assert held.due(0.0) == 0.0
    kernel.write(NAME, 7)
    await held.act()
    assert kernel.read(NAME) == 7


async def test_of_two_the_first_that_is_over_puts_it_back(kernel):
    first, second = await freeze(kernel, 5.0), await freeze(kernel, 60.0)
    await first.act()
    assert kernel.read(NAME) == 0
    assert second.due(0.0) == 0.0


async def test_it_says_when_it_cannot_write(kernel):
    (kernel.module / "parameters" / NAME).unlink()
    with pytest.raises(ZconsoleError, match="does not exist"):
        await freeze(kernel)


async def test_it_refuses_what_no_guard_may_set(kernel):
    order = asdict(Guarded("zfs_no_scrub_io", 1, 1.0))
    with pytest.raises(UsageError, match="not written"):
        await guard.begin(kernel.console("1:1"), kernel.parameters, kernel.log, order)
