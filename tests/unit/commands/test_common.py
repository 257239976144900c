from __future__ import annotations

import asyncio
import os
import signal

import pytest

from zconsole.commands import common


async def told(number: int) -> str:
    os.kill(os.getpid(), number)
    await asyncio.sleep(0.2)
    return "went on"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_told_to_end_it_ends_as_if_interrupted(number):
    before = signal.signal(number, signal.SIG_DFL)  # nohup may have started this suite
    try:
        with pytest.raises(KeyboardInterrupt):
            common.run(told(number))
    finally:
        signal.signal(number, before)


def test_under_nohup_it_goes_on():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert common.run(told(signal.SIGHUP)) == "went on"
    finally:
        signal.signal(signal.SIGHUP, before)
