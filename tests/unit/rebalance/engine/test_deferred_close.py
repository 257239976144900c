from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from zconsole.rebalance.engine.deferred_close import TOGETHER, Closer
from zconsole.rebalance.engine.syscalls import Sys


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


@pytest.mark.parametrize("threads", [False, True], ids=["alone", "threads"])
def test_closes_what_it_was_given_and_nothing_between(threads: bool) -> None:
    fds = [os.open("/dev/null", os.O_RDONLY) for _ in range(TOGETHER + 40)]
    kept = fds[5::10]
    with ThreadPoolExecutor(2) as pool:
        closer = Closer(Sys(), pool if threads else None)
        for fd in fds:
            if fd not in kept:
                closer.close(fd)
        closer.settle()
    assert [fd for fd in fds if is_open(fd)] == kept
    for fd in kept:
        os.close(fd)
