from __future__ import annotations

import os
import signal
from types import SimpleNamespace
from typing import Any

from zconsole.rebalance.execute import _signals
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
