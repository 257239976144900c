from __future__ import annotations

import os
import signal
from types import SimpleNamespace
from typing import Any

import pytest

from zconsole.rebalance.execute import STOPPING, _signals
from zconsole.rebalance.inuse import Alarm


def test_a_late_word_of_a_broken_lease_does_not_end_the_process() -> None:
    runner: Any = SimpleNamespace(alarm=Alarm(), stop=None)
    before = {number: signal.getsignal(number) for number in (signal.SIGIO, signal.SIGTERM)}
    try:
        with _signals(runner):
            os.kill(os.getpid(), signal.SIGIO)
            assert runner.alarm.raised
        os.kill(os.getpid(), signal.SIGIO)
        assert signal.getsignal(signal.SIGTERM) == before[signal.SIGTERM]
    finally:
        signal.signal(signal.SIGIO, before[signal.SIGIO])


@pytest.mark.parametrize("number", STOPPING)
def test_a_signal_ends_the_job_unless_it_was_ignored_from_the_start(number: signal.Signals) -> None:
    runner: Any = SimpleNamespace(alarm=Alarm(), stop=None)
    before = {each: signal.getsignal(each) for each in (number, signal.SIGIO)}
    try:
        signal.signal(number, signal.SIG_IGN)  # as nohup does
        with _signals(runner):
            os.kill(os.getpid(), number)
            assert runner.stop is None
        signal.signal(number, signal.SIG_DFL)
        with _signals(runner):
            os.kill(os.getpid(), number)
            assert runner.stop == STOPPING[number]
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
