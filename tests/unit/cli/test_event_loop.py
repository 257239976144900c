from __future__ import annotations

import asyncio
import contextlib
import os
import signal

import pytest

from tests.table import rows
from zconsole.cli import event_loop
from zconsole.sim.source import SimulatedSource
from zconsole.timeline.feed import SessionFeed
from zconsole.timeline.session import Session


async def told(number: int) -> str:
    os.kill(os.getpid(), number)
    await asyncio.sleep(0.2)
    return "went on"


@rows("number", [signal.SIGTERM, signal.SIGHUP])
def test_told_to_end_it_ends_as_if_interrupted(number):
    before = signal.signal(number, signal.SIG_DFL)  # nohup may have started this suite
    try:
        with pytest.raises(KeyboardInterrupt):
            event_loop.run(told(number))
    finally:
        signal.signal(number, before)


@pytest.mark.slow
async def test_between_two_rounds_of_a_recording_is_no_wait():
    feed = SessionFeed(SimulatedSource(), Session(), 0.0)
    async with asyncio.timeout(30.0):
        assert len([update async for update in event_loop.rounds(feed, 60)]) == 60


async def test_what_cannot_be_kept_is_said_on_stderr(capsys):
    session = Session(notes=["no history kept: \x1b why"])
    feed = SessionFeed(SimulatedSource(), session, 0.0)
    async with contextlib.aclosing(event_loop.rounds(feed)) as rounds:
        await anext(rounds)
        await anext(rounds)
    assert capsys.readouterr() == ("", "zconsole: no history kept: \\x1b why\n")


@pytest.mark.slow
def test_under_nohup_it_goes_on():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert event_loop.run(told(signal.SIGHUP)) == "went on"
    finally:
        signal.signal(signal.SIGHUP, before)
