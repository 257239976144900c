"""Tunables left by a console that has ended: what the next one reports and does."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.ui.actions.acting import RUN, acting
from tests.ui.actions.scripted import AGREED, ESC, ScriptedSession, asking
from tests.ui.drawn import LOOK, flat, text
from tests.ui.fakes import until
from tests.unit.tunables.conftest import Kernel
from zconsole.pool.model import Pool, Scan, Vdev
from zconsole.system.host import process_mark
from zconsole.system.state_dir import StateError
from zconsole.ui.actions.tunables_flow import tunables_flow
from zconsole.ui.actions.tunables_pane import TunablesScreen, about_lines
from zconsole.ui.actions.upkeep import LOOK_SECONDS

TIME = "zfs_resilver_min_time_ms"
"""The first tunable of the list."""
IDLE, SCANS = "healthy", "mirror-scrub"
"""A pool without a scan, and one with a scrub that ends within two days."""
LEFT = "Left by a console that is gone"
PROMISED = "its console is gone; restored by zconsole in the background once no scan runs"


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    return Kernel(tmp_path)


@pytest.fixture
def other() -> Iterator[subprocess.Popen[bytes]]:
    """A running process that stands for another console."""
    process = subprocess.Popen(["sleep", "60"])
    yield process
    kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def leave(kernel: Kernel, owner: subprocess.Popen[bytes], guid: str | None = None) -> None:
    """Let another console set a tunable, optionally until the end of a pool's scan."""
    control = kernel.console(str(process_mark(owner.pid)))
    control.set({TIME: 5000}, 1.0)
    if guid is not None:
        control.until(guid)


class Console(ScriptedSession):
    """A console that was started on this kernel."""

    def __init__(self, kernel: Kernel, scenario: str, backend: object = None, **options) -> None:
        super().__init__(scenario, **options)
        own = kernel.console(process_mark(os.getpid()))
        more = backend or {}
        self.backend = replace(self.backend, control=own, parameters=kernel.parameters, **more)

    async def heard(self) -> str:
        """Return its messages since the last call, after checking the tunables twice."""
        self.messages.clear()
        for _ in range(2):
            self.pass_time(1.0, 1.0)
            await self.look_at_tunables()
        return "\n".join(self.messages)

    async def until_idle(self) -> None:
        """Let rounds pass until no scan runs."""
        while any(view.scan.active for view in self.frame.scans):
            await self.wait(7200.0, 3600.0)

    async def pane(self, *requests: str) -> str:
        """Return what the list of tunables says of the first one, after these requests."""
        said: list[str] = []

        def _read(screen: TunablesScreen) -> None:
            screen._make(LOOK, 100)
            said.append(flat(text(about_lines(screen._now[0], LOOK, 100))))

        self.answers.extend((*map(asking, requests), _read))
        await tunables_flow(self, "")
        return said[0]


@pytest.mark.parametrize("at_end", [False, True])
async def test_what_is_due_is_restored_and_said_once(kernel, other, at_end):
    console = Console(kernel, IDLE)
    leave(kernel, other, console.frame.guid if at_end else None)
    kill(other)
    assert await console.heard() == f"{LEFT}: {TIME} restored to 3000"
    assert kernel.read(TIME) == 3000
    assert await console.heard() == ""


async def test_it_is_looked_for_as_the_console_goes_on(kernel, other):
    leave(kernel, other)
    kill(other)
    await Console(kernel, IDLE).wait(LOOK_SECONDS + 1, 1.0)
    assert kernel.read(TIME) == 3000


async def test_what_is_not_yet_due_is_said_and_restored_when_the_scan_ends(kernel, other):
    leave(kernel, other)
    kill(other)
    console = Console(kernel, SCANS)
    assert await console.heard() == f"{TIME}: {PROMISED}"
    assert kernel.read(TIME) == 5000
    assert PROMISED in await console.pane()
    await console.until_idle()
    assert kernel.read(TIME) == 3000
    assert console.messages[1:] == [f"{LEFT}: {TIME} restored to 3000"]


async def test_what_it_set_itself_is_named_before_it_is_left(kernel):
    console = Console(kernel, SCANS)
    kernel.console(process_mark(os.getpid())).set({TIME: 5000}, 1.0)
    await console.heard()
    asked = flat("\n".join(span.text for span in console.left_behind()))
    assert "1 tunable set here stays changed" in asked
    assert "restored by zconsole in the background once no scan runs" in asked


async def test_a_console_that_dies_while_another_runs_leaves_nothing(kernel, other):
    leave(kernel, other)
    console = Console(kernel, IDLE)
    assert await console.heard() == ""
    assert kernel.read(TIME) == 5000
    said = await console.pane()
    assert f"kept while the console of process {other.pid} is open" in said
    assert "once it is gone and no scan runs; U: restored now" in said
    assert "E: restored" not in said, "that is up to the other one"
    kill(other)
    assert f"{TIME} restored to 3000" in await console.heard()
    assert kernel.read(TIME) == 3000


async def test_what_somebody_changed_since_is_left_and_said(kernel, other):
    leave(kernel, other)
    kill(other)
    kernel.write(TIME, 7777)
    changed = "left at 7777: somebody else changed it (5000 was set here)"
    assert await Console(kernel, IDLE).heard() == f"{LEFT}: {TIME} {changed}"
    assert kernel.read(TIME) == 7777


@pytest.mark.parametrize("scenario", [IDLE, SCANS])
async def test_a_read_only_console_says_so_and_restores_nothing(kernel, other, scenario):
    leave(kernel, other)
    kill(other)
    console = Console(kernel, scenario, read_only=True)
    assert await console.heard() == (
        f"{TIME}: {PROMISED};"
        " not by this console (read-only). To restore now: zconsole tunables restore"
    )
    await console.until_idle()
    assert await console.heard() == ""
    assert kernel.read(TIME) == 5000
    assert kernel.console().past().holds[TIME].until is None


async def test_what_cannot_be_restored_is_said_and_tried_again(kernel, other, monkeypatch):
    leave(kernel, other)
    kill(other)
    refusing = [1]

    def write(_parameters, name, value):
        if refusing:
            raise StateError(f"{name}={value}: refused: Invalid argument")
        kernel.write(name, value)

    monkeypatch.setattr("zconsole.tunables.parameters.Parameters.write", write)
    console = Console(kernel, IDLE)
    assert await console.heard() == (
        f"{TIME} not restored: {TIME}=3000: refused: Invalid argument. To retry: T, then U."
    )
    refusing.clear()
    assert f"{TIME} restored to 3000" in await console.heard()


async def test_where_what_was_set_cannot_be_read_nobody_says_that_nothing_was(kernel):
    kernel.console().set({TIME: 5000}, 1.0)
    (kernel.state / "tunables.json").write_text("{half")
    console = Console(kernel, IDLE)
    console.answers.append(asking("restore"))
    await tunables_flow(console, "")
    assert "tunables.json is damaged, or of another version" in console.messages[-1]


async def test_what_another_version_set_is_shown_and_restored(kernel):
    console = Console(kernel, SCANS)
    t = console.frame.t
    kernel.console().set({TIME: 5000}, t)
    kernel.console().set({TIME: 6000}, t)
    file = kernel.state / "tunables.json"
    file.write_text(file.read_text().replace(TIME, "zfs_new"))
    kernel.write("zfs_new", 6000)
    await console.heard()
    console.pass_time(2.0, 1.0)
    said = [event.text for event in console.frame.events]
    assert "zfs_new 3000 to 5000 and 1 more" in "; ".join(said)
    console.answers.extend((asking("restore"), AGREED, ESC))
    await tunables_flow(console, "")
    assert "zfs_new set by another version" in console.plan
    assert "zfs_new restored to 3000" in console.ran[-1]
    assert kernel.read("zfs_new") == 3000


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

    leave(kernel, other, guid)
    kill(other)
    await Console(kernel, IDLE, {"every_pool": every_pool}, pools=("vault",)).heard()
    assert kernel.read(TIME) == value


async def test_a_pool_that_does_not_answer_may_scan(kernel, other, monkeypatch):
    leave(kernel, other)
    kill(other)
    monkeypatch.setattr("zconsole.timeline.frame.Frame.problem", "no answer")
    await Console(kernel, IDLE).heard()
    assert kernel.read(TIME) == 5000


async def test_what_is_set_is_said_before_and_after_in_the_same_words(kernel):
    console = Console(kernel, "resilver")
    until_gone = (
        "ept while this console is open, even after the scan's end; restored by zconsole in the"
        " background once it is gone (or ssh drops) and no scan runs;"
        " E: restored at the scan's end, U: restored now"
    )
    console.answers.extend((asking("set"), "5000", AGREED))
    assert f"was 3000: k{until_gone}" in await console.pane()
    assert f"K{until_gone}." in console.plan
    at_end = (
        "restored when the scan of tank ends, even if this console is gone (or ssh drops) by then"
    )
    switched = f"was 3000: {at_end}; E: kept until a reboot, U: restored now"
    assert switched in await console.pane("until")
    assert console.messages == [f"Each value set here is {at_end}"]
    stays = "set to stay: nothing restores it before the next boot"
    again = "E: restored once this console is gone, U: restored now"
    assert f"was 3000: {stays}; {again}" in await console.pane("until")
    assert console.messages[1:] == [f"Each value set here is {stays}"]
    assert console.left_behind() == (), "what is to stay needs no question"
    assert f"was 3000: k{until_gone}" in await console.pane("until")


async def test_a_value_set_while_others_go_back_with_the_scan_is_said_to_follow(kernel):
    console = Console(kernel, "resilver")
    console.answers.extend((asking("set"), "5000", AGREED, asking("until")))
    console.answers.extend((asking("set", 1), "5", AGREED))
    said = await console.pane()
    follows = "estored when the scan of tank ends, even if this console is gone (or ssh drops) by"
    assert f"R{follows} then; E: kept until a reboot" in flat(console.plan)
    assert f"r{follows} then; E: kept until a reboot" in said
    console.answers.extend((asking("set"), "3000", AGREED))
    await tunables_flow(console, "")
    assert "Back to the value before: nothing to restore later." in flat(console.plan)
    assert "when the scan" not in flat(console.plan)


async def test_what_becomes_of_a_value_is_whole_on_a_small_screen():
    async with acting("resilver", (60, 15)) as a:
        await a.press("T", "enter", *"5000", "enter", *RUN, "escape")
        for keys in ("E: restored at the scan's end, U: r", "E: kept until a reboot, U: restored"):
            await until(a.pilot, lambda keys=keys: a.is_laid_out() and keys in flat(a.screen))
            await a.press("E")
