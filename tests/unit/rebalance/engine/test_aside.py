"""What the process beside is given, and what not."""

from __future__ import annotations

import os
import resource
import socket
from collections import deque
from collections.abc import Iterator

import pytest

from tests.unit.rebalance.running.test_pacing import Clock
from zconsole.rebalance.engine import copyist
from zconsole.rebalance.engine.aside import AT_ONCE, DEADLINE, PORTION_BYTES, Aside, fits
from zconsole.rebalance.engine.content import SMALL
from zconsole.rebalance.engine.copyist import MOST_FILES
from zconsole.rebalance.engine.directories import Directory
from zconsole.rebalance.engine.item import Item, Place
from zconsole.rebalance.engine.journal import FileRow
from zconsole.rebalance.engine.metadata import Metadata


class Company:
    """Keeps the other end of the socket."""

    def __init__(self) -> None:
        self.left = 0

    def start(self, theirs: socket.socket) -> Company:
        self.channel = theirs.dup()
        return self

    def leave(self) -> None:
        self.left += 1
        self.channel.close()

    def portions(self, count: int) -> list[int]:
        """The files of so many messages."""
        found = []
        for _ in range(count):
            message = copyist.receive(self.channel)
            assert message is not None
            (_, files), fds = message
            assert len(fds) == len(files) + 1  # all of one directory
            copyist.close(fds)
            found.append(len(files))
        return found


@pytest.fixture
def null() -> Iterator[int]:
    fd = os.open("/dev/null", os.O_RDONLY)
    yield fd
    os.close(fd)


def item(fd: int, size: int = 10, blocks: int | None = None, **more: object) -> Item:
    """A file of so many bytes, all of them allocated."""
    taken = -(-size // 512) if blocks is None else blocks
    status = os.stat_result(
        (0o100644, 7, 1, 1, 0, 0, size, 0, 0, 0), {"st_blocks": taken, "st_blksize": 4096}
    )
    meta = Metadata(0o100644, 0, 0, size, 0, 0)._replace(**more)
    place = Place(FileRow(1, 5, b"f", 7, size, 1), Directory(fd, 1, 0, 0), b".zc")
    return Item([place], fd, status, meta, leased=False)


@pytest.mark.parametrize(
    ("file", "fit"),
    [
        ({}, True),
        ({"size": 0}, True),
        ({"size": SMALL}, True),
        ({"size": SMALL + 1}, False),
        ({"size": 4096, "blocks": 0}, False),
        ({"xattrs": {"user.a": b"b"}}, False),
    ],
)
def test_only_small_plain_files_are_given_away(null: int, file: dict[str, int], fit: bool) -> None:
    assert fits(item(null, **file)) == fit


def test_it_has_some_portions_at_once_and_never_more_than_half_of_what_waits(null: int) -> None:
    company = Company()
    aside = Aside(company.start)
    aside.begin()
    waiting = deque(item(null) for _ in range(MOST_FILES * 3 + 24))
    aside.hand_out(waiting, 32)
    left = [MOST_FILES * 2 + 24, MOST_FILES + 24, (MOST_FILES + 24) // 2, (MOST_FILES + 24) // 4]
    assert company.portions(AT_ONCE) == [MOST_FILES, MOST_FILES, *left[2:]]
    assert len(waiting) == left[-1]
    assert not any(each.handed for each in waiting)
    aside.hand_out(waiting, 32)
    assert len(waiting) == left[-1]
    assert aside.busy
    aside.leave()
    assert (company.left, aside.busy) == (1, False)


def test_a_few_files_are_not_worth_a_message(null: int) -> None:
    company = Company()
    aside = Aside(company.start)
    aside.begin()
    waiting = deque(item(null) for _ in range(7))
    aside.hand_out(waiting, 32)
    assert (len(waiting), aside.busy) == (7, False)
    aside.leave()


def test_a_job_may_have_thousands_of_files_open(null: int) -> None:
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 1500:
        pytest.skip("too few files may be open")
    others = [os.dup(null) for _ in range(1100)]
    company = Company()
    aside = Aside(company.start)
    aside.begin()
    waiting = deque(item(null) for _ in range(20))
    aside.hand_out(waiting, 32)
    assert aside.take(0) == []
    copyist.close(others)
    aside.leave()


def test_a_process_that_hangs_is_let_go_of_in_the_end(null: int) -> None:
    clock = Clock()
    company = Company()
    aside = Aside(company.start, clock=clock)
    aside.begin()
    waiting = deque(item(null) for _ in range(20))
    aside.hand_out(waiting, 32)
    clock.now += DEADLINE - 1
    assert aside.take(0) == []
    clock.now += 1
    assert len(aside.take(0)) == 20 - len(waiting)
    assert (company.left, aside.failed) == (1, True)


@pytest.mark.parametrize(("gone", "given"), [(range(30, 40), [10, 10]), (range(0, 40, 2), [10, 5])])
def test_what_was_given_up_meanwhile_is_not_given_away(
    null: int, gone: range, given: list[int]
) -> None:
    company = Company()
    aside = Aside(company.start)
    aside.begin()
    files = [item(null) for _ in range(40)]
    for number in gone:
        files[number].done, files[number].source = True, -1
    aside.hand_out(deque(files), 32)
    assert not aside.failed
    assert company.portions(2) == given
    aside.leave()


@pytest.mark.parametrize("count", [8, 20])
def test_nothing_is_given_away_of_files_that_were_all_given_up(null: int, count: int) -> None:
    aside = Aside(Company().start)
    aside.begin()
    files = deque(item(null) for _ in range(count))
    for each in files:
        each.done = True
    aside.hand_out(files, 32)
    assert not aside.busy
    aside.leave()


def test_a_portion_is_bounded_in_bytes(null: int) -> None:
    company = Company()
    aside = Aside(company.start)
    aside.begin()
    waiting = deque(item(null, SMALL) for _ in range(MOST_FILES))
    aside.hand_out(waiting, 32)
    assert company.portions(2) == [PORTION_BYTES // SMALL] * 2
    aside.leave()


def test_without_a_process_nothing_is_given_away(null: int) -> None:
    def fail(theirs: socket.socket) -> Company:
        raise FileNotFoundError

    aside = Aside(fail)
    aside.begin()
    aside.begin()
    waiting = deque(item(null) for _ in range(100))
    aside.hand_out(waiting, 32)
    assert (len(waiting), aside.take(0), aside.failed) == (100, [], True)


def test_before_it_is_started_nothing_is_given_away(null: int) -> None:
    waiting = deque(item(null) for _ in range(100))
    aside = Aside(Company().start)
    aside.hand_out(waiting, 32)
    assert (len(waiting), aside.take(0)) == (100, [])


def test_what_a_process_had_that_is_gone_comes_back_unmade(null: int) -> None:
    company = Company()
    aside = Aside(company.start)
    aside.begin()
    waiting = deque(item(null) for _ in range(20))
    aside.hand_out(waiting, 32)
    company.channel.close()
    back = aside.take(1)
    assert len(back) == 20 - len(waiting)
    assert {copied for _, copied in back} == {None}
    assert (aside.failed, aside.busy, aside.wants) == (True, False, False)
