"""The loop of the keeper, with duties and a clock set by the test."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.unit.waiting import PATIENCE
from zconsole.cli.main import main
from zconsole.errors import ZconsoleError
from zconsole.system import keeper as keepers
from zconsole.system.audit import MemoryLog
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.system.keeper import (
    END,
    LOOK,
    RETRY_SECONDS,
    SOCKET,
    TELL,
    Keeper,
    ask,
    asked,
    listening_socket,
)
from zconsole.system.process import Completed

ROUNDS = 50
"""More rounds than any of the tests needs."""


class Chore:
    """A duty that does what the test wants."""

    ends_by = "zconsole chore off"

    def __init__(self, name: str = "chore", at: float = 0.0, deadline: float = 0.05) -> None:
        self.name, self.deadline, self.at = name, deadline, at
        self.acts, self.undone = 0, 0
        self.most = ROUNDS
        self.fails = ""
        self.hangs: threading.Event | None = None

    def due(self, now: float) -> float:
        return self.at - now

    async def act(self) -> bool:
        self.acts += 1
        if self.fails:
            raise ZconsoleError(self.fails)
        if self.hangs is not None:
            await in_daemon_thread(self.hangs.wait)
        return self.acts < self.most

    async def undo(self) -> None:
        self.undone += 1
        if self.fails:
            raise ZconsoleError(self.fails)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def keeper(clock: Clock, *duties: Chore) -> Keeper:
    made = Keeper({}, (), MemoryLog(), clock)
    made.duties.update(dict.fromkeys(duties, 0.0))
    return made


async def until(condition: Callable[[], object]) -> None:
    """Wait for an effect of other tasks and threads."""
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.001)


async def settled() -> None:
    """Let every started act come to its end."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_duty_acts_once_it_is_due(clock):
    early, late = Chore(at=1.0), Chore(at=8.0)
    kept = keeper(clock, early, late)
    assert kept.act_on_due() == 1.0
    clock.now = 2.0
    early.most = 1
    assert kept.act_on_due() == 6.0
    await settled()
    assert (early.acts, late.acts, list(kept.duties)) == (1, 0, [late])


async def test_one_that_hangs_holds_up_no_other_and_is_not_asked_again(clock):
    light, tunable = Chore("light"), Chore("tunable")
    light.hangs = threading.Event()
    kept = keeper(clock, light, tunable)
    for rounds in range(1, 4):
        kept.act_on_due()
        await settled()
        assert (light.acts, tunable.acts) == (1, rounds)
    light.hangs.set()


async def test_one_that_fails_is_told_once_and_acts_again_after_a_while(clock):
    chore = Chore()
    chore.fails = "no answer"
    kept = keeper(clock, chore)
    for _ in range(3):
        kept.act_on_due()
        await settled()
    assert chore.acts == 1
    clock.now += RETRY_SECONDS
    kept.act_on_due()
    await settled()
    assert chore.acts == 2
    assert [record["result"] for record in kept._log.records] == ["no answer"]


class Kept:
    """A keeper that runs in this process, and its duties."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.light, self.tunable = Chore("light", 1e9), Chore("tunable", 1e9)
        self.keeper = Keeper({"hold": self.hold}, (self.light,), MemoryLog())
        self.begins = asyncio.Event()
        self.begins.set()
        self.waits = False
        """Whether an order has begun that is not carried out yet."""
        self.task = asyncio.create_task(self.keeper.run(listening_socket(state)))

    async def hold(self, order) -> Chore:
        self.waits = True
        await self.begins.wait()
        self.waits = False
        if order.get("refused"):
            raise ZconsoleError("out of range")
        self.tunable.name = order["duty"]
        return self.tunable

    async def ask(self, **order) -> Any:
        return await in_daemon_thread(partial(asked, self.state, **order))

    async def ended(self) -> None:
        self.keeper.stop()
        await self.task


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncIterator[Kept]:
    tmp_path.chmod(0o700)
    made = Kept(tmp_path)
    yield made
    await made.ended()


async def test_an_order_begins_a_duty_and_another_ends_it(kept):
    assert await kept.ask(order="hold", duty="tunable") == 1
    assert kept.tunable in kept.keeper.duties
    assert await kept.ask(order=END, duty="tunable") == 1
    assert (kept.tunable.undone, list(kept.keeper.duties)) == (1, [kept.light])
    assert await kept.ask(order=END, duty="tunable") == 0


@pytest.mark.parametrize("named", ["tunable", ""])
async def test_what_cannot_be_undone_is_not_said_to_have_ended_and_is_kept(kept, named):
    await kept.ask(order="hold", duty="tunable")
    kept.tunable.fails = "refused: Invalid argument"
    with pytest.raises(ZconsoleError, match="tunable: refused: Invalid argument"):
        await kept.ask(order=END, duty=named)
    assert kept.tunable in kept.keeper.duties
    assert (kept.light in kept.keeper.duties) == bool(named)
    kept.tunable.fails = ""
    assert await kept.ask(order=END, duty="tunable") == 1
    assert kept.tunable not in kept.keeper.duties


async def test_at_the_end_nothing_is_undone_twice(kept):
    await kept.ask(order="hold", duty="tunable")
    kept.tunable.fails = "refused: Invalid argument"
    await kept.ended()
    assert kept.tunable.undone == 1


async def test_it_tells_what_it_keeps_and_ends_all_of_it(kept):
    before = time.time()
    await kept.ask(order="hold", duty="tunable")
    told = await kept.ask(order=TELL)
    assert told["process"] == os.getppid()
    light, tunable = told["duties"]
    assert (light["duty"], tunable["duty"]) == ("light", "tunable")
    assert tunable["ends_by"] == "zconsole chore off"
    assert before <= tunable["since"] <= time.time()
    assert await kept.ask(order=END, duty="") == 2
    assert (kept.light.undone, kept.tunable.undone, len(kept.keeper.duties)) == (1, 1, 0)


async def test_it_never_says_that_init_keeps_it(kept, monkeypatch):
    """Its parent was killed while it is asked."""
    before = os.getppid()
    monkeypatch.setattr(os, "getppid", lambda: 1)
    assert (await kept.ask(order=TELL))["process"] == before
    with pytest.raises(ZconsoleError, match=f"kill {before}$"):
        await kept.ask(order="fly")


@pytest.mark.parametrize(
    ("order", "why"),
    [
        ({"order": "hold", "refused": True}, "out of range"),
        ({"order": "fly"}, "of another version"),
        ({"order": "hold"}, "of another version"),
        ({}, "of another version"),
    ],
)
async def test_a_refusal_is_the_answer_also_to_an_order_of_another_version(kept, order, why):
    with pytest.raises(ZconsoleError, match=why):
        await kept.ask(**order)


async def test_a_standing_duty_that_was_over_begins_again_when_somebody_asks_it_to_look(kept):
    kept.light.at, kept.light.most = 0.0, 1
    await kept.ask(order=LOOK)
    await until(lambda: not kept.keeper.duties)
    kept.light.most = ROUNDS
    kept.light.at = 1e9
    await kept.ask(order=LOOK)
    await kept.ask(order=LOOK)
    assert list(kept.keeper.duties) == [kept.light]


async def test_what_is_added_while_it_finds_nothing_more_is_not_forgotten(kept):
    kept.light.at, kept.light.hangs, kept.light.most = 0.0, threading.Event(), 1
    await kept.ask(order=LOOK)  # while it is checking
    kept.light.most = 3
    kept.light.acts, seen = 0, kept.light.hangs
    seen.set()
    await until(lambda: not kept.keeper.duties)
    assert kept.light.acts == 3


async def test_what_nobody_waits_for_any_more_is_undone(kept):
    kept.begins.clear()
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(str(kept.state / SOCKET))
        line.sendall(json.dumps({"order": "hold", "duty": "tunable"}).encode() + b"\n")
        await until(lambda: kept.waits)
    await settled()  # lets the loop notice that it is gone
    kept.begins.set()
    await until(lambda: not kept.keeper._serving)
    assert kept.tunable.undone == 1
    assert kept.tunable not in kept.keeper.duties


async def test_all_are_undone_at_the_end_also_what_hangs_and_what_begins_just_then(kept):
    kept.light.at, kept.light.hangs = 0.0, threading.Event()
    kept.begins.clear()
    asking = asyncio.create_task(kept.ask(order="hold", duty="tunable"))
    await until(lambda: kept.waits)
    kept.keeper.stop()
    await until(lambda: kept.light.undone)
    kept.begins.set()
    await kept.task
    assert (kept.light.undone, kept.tunable.undone) == (1, 1)
    kept.light.hangs.set()
    await asking


async def test_nobody_answers_where_none_runs(tmp_path):
    tmp_path.chmod(0o700)
    assert asked(tmp_path, order=LOOK) is None
    listening_socket(tmp_path).close()
    assert asked(tmp_path, order=LOOK) is None


@pytest.mark.parametrize("command", [["keeper"], ["keeper", "end"]])
@pytest.mark.slow
def test_one_that_is_stopped_is_not_none(tmp_path, monkeypatch, capsys, command):
    """After SIGSTOP, the kernel accepts connections, and nobody answers."""
    tmp_path.chmod(0o700)
    monkeypatch.setenv("ZCONSOLE_STATE", str(tmp_path))
    monkeypatch.setattr(keepers, "START_SECONDS", 0.2)
    with listening_socket(tmp_path):
        assert main(command) == 1
        with pytest.raises(ZconsoleError, match="no answer"):
            asked(tmp_path, order=LOOK)
    assert capsys.readouterr().err == f"zconsole: {keepers.NO_ANSWER}\n"


@pytest.mark.parametrize("error", [errno.EACCES, errno.EMFILE])
def test_one_that_cannot_be_asked_is_not_none(tmp_path, monkeypatch, error):
    tmp_path.chmod(0o700)

    def refused(*_):
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(keepers, "_address", refused)
    with pytest.raises(ZconsoleError, match=os.strerror(error)):
        asked(tmp_path, order=TELL)


@pytest.mark.slow
async def test_an_order_that_takes_long_keeps_no_processor_busy(kept, monkeypatch):
    kept.begins.clear()
    asking = asyncio.create_task(kept.ask(order="hold", duty="tunable"))
    await until(lambda: kept.waits)
    kept.keeper.duties.clear()
    kept.keeper._until = 0.0
    rounds, act_on_due = [], kept.keeper.act_on_due
    monkeypatch.setattr(kept.keeper, "act_on_due", lambda: rounds.append(1) or act_on_due())
    kept.keeper._woken.set()
    await asyncio.sleep(0.2)
    assert len(rounds) < 10
    kept.begins.set()
    assert await asking == 1


async def test_it_hears_on_after_nobody_could_be_let_in(kept, monkeypatch):
    loop = asyncio.get_running_loop()
    accept, refused = loop.sock_accept, [OSError(errno.EMFILE, "Too many open files")]

    async def full(listening):
        if refused:
            raise refused.pop()
        return await accept(listening)

    monkeypatch.setattr(loop, "sock_accept", full)
    assert await kept.ask(order=LOOK) == 1
    assert await kept.ask(order=LOOK) == 1
    assert not refused


async def test_what_is_undone_does_not_act_any_more(kept):
    undoing, undo = asyncio.Event(), kept.tunable.undo

    async def slow() -> None:
        kept.tunable.at = 0.0
        await undoing.wait()
        await undo()

    kept.tunable.undo, kept.tunable.deadline = slow, 10.0
    await kept.ask(order="hold", duty="tunable")
    asking = asyncio.create_task(kept.ask(order=END, duty="tunable"))
    await until(lambda: kept.tunable.at == 0.0)
    kept.keeper.act_on_due()
    await settled()
    undoing.set()
    assert await asking == 1
    assert (kept.tunable.acts, kept.tunable.undone) == (0, 1)


async def test_what_hung_when_it_was_ended_leaves_nothing_behind(kept):
    kept.tunable.hangs, kept.tunable.at, kept.tunable.most = threading.Event(), 0.0, 1
    await kept.ask(order="hold", duty="tunable")
    await until(lambda: kept.tunable.acts)
    assert await kept.ask(order=END, duty="tunable") == 1
    kept.tunable.hangs.set()
    await until(lambda: not kept.keeper._acting)
    assert list(kept.keeper.duties) == [kept.light]


def test_its_socket_is_its_owners_whatever_the_umask(tmp_path):
    tmp_path.chmod(0o700)
    before = os.umask(0)
    try:
        listening_socket(tmp_path).close()
    finally:
        os.umask(before)
    assert (tmp_path / SOCKET).stat().st_mode & 0o777 == 0o600


@pytest.mark.slow
def test_who_gave_up_orders_nothing_later(tmp_path, monkeypatch):
    """The keeper starts too late: the caller was told that nothing was done."""
    tmp_path.chmod(0o700)
    starts = []

    def slow(argv, _):
        starts.append(argv)
        time.sleep(0.1)
        return Completed(argv, 0, "", "")

    monkeypatch.setattr(keepers, "START_SECONDS", 0.15)
    monkeypatch.setattr(keepers, "run_blocking", slow)
    with pytest.raises(ZconsoleError, match=r"no answer in"):
        ask(tmp_path, order="hold")
    time.sleep(0.3)
    tried = len(starts)
    with listening_socket(tmp_path) as line:
        line.settimeout(0.3)
        with pytest.raises(TimeoutError):
            line.accept()
    assert len(starts) == tried


@pytest.mark.slow
def test_who_gives_up_takes_the_order_back(tmp_path, monkeypatch):
    """The connection is closed then, at which a keeper undoes what it began."""
    tmp_path.chmod(0o700)
    monkeypatch.setattr(keepers, "START_SECONDS", 0.5)
    with listening_socket(tmp_path) as line:
        with pytest.raises(ZconsoleError, match=r"no answer in"):
            ask(tmp_path, order="hold")
        heard, _ = line.accept()
        heard.settimeout(30.0)
        assert heard.recv(1 << 16).endswith(b"\n")
        assert heard.recv(1 << 16) == b""
        heard.close()


def test_a_state_directory_named_from_here_is_the_same_to_the_keeper(tmp_path, monkeypatch):
    started = []

    def run(argv, _):
        started.append(argv)
        return Completed(argv, 1, "", "enough")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(keepers, "run_blocking", run)
    with pytest.raises(ZconsoleError, match="enough"):
        ask(Path("state"), order=LOOK)
    assert str(tmp_path / "state") in started[0]
