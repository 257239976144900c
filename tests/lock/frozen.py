"""Run zconsole on a clock that stands still: `python -m tests.lock.frozen SOCKET`.

Whoever holds the other end of SOCKET, a descriptor, asks for runs. Each is a fork of this process,
which has imported everything and has no other thread. With each come a terminal and a socket that
moves its clock on. Nothing but the standard library is replaced: its clocks, sleeping and waiting
for files, and chance. The main event loop goes on only when all other threads wait, and then takes
what they hand it: the order of events does not depend on which thread the machine lets run first.
What waits in C with a deadline (`SimpleQueue.get`, `Lock.acquire`, `Thread.join`) keeps to the real
clock.
"""

from __future__ import annotations

import asyncio
import datetime
import fcntl
import gc
import json
import os
import pkgutil
import random
import re
import runpy
import select
import selectors
import socket
import sys
import termios
import threading
import time
from asyncio.base_events import BaseEventLoop
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

START = 1_795_860_000.0
"""Epoch seconds at which the program starts: 2026-11-28 10:00:00 UTC."""
_BOOTED = 90_000.0
"""Uptime of the machine at that time, seconds."""
_FACTS = re.compile(r"^(?:State|(?:non)?voluntary_ctxt_switches):\t(\w+)", re.MULTILINE)
_POLLED = {selectors.EVENT_READ: select.POLLIN, selectors.EVENT_WRITE: select.POLLOUT}
_poll, _select = select.poll, select.select


def tasks(process: int | str, but: Iterable[int] = ()) -> tuple[str, ...]:
    """Return a value that changes whenever a thread of a process runs; empty while one is running.

    A thread is counted when it stops running, and can run again only after it was woken: if two
    calls return the same counts and nobody is running, nothing has run in between
    (proc_pid_status(5)).
    """
    found: list[str] = []
    try:
        for number in os.listdir(f"/proc/{process}/task"):  # noqa: PTH208 - often asked
            if int(number) not in but:
                with open(f"/proc/{process}/task/{number}/status") as status:  # noqa: PTH123
                    state, *counts = _FACTS.findall(status.read())
                if state != "S":  # or it has ended, which is about to be reported
                    return ()
                found += (number, *counts)
    except OSError:  # a thread has just ended
        return ()
    return tuple(found)


class Clock:
    """Seconds since the start; they change only when the clock is advanced."""

    def __init__(self) -> None:
        self.now = 0.0
        self._lock = threading.Lock()
        self._alarms: dict[Callable[[], object], tuple[float, bool]] = {}
        """By callback: when each alarm goes off, and whether the main thread waits for it."""

    @contextmanager
    def alarm(self, seconds: float | None, call: Callable[[], object]) -> Iterator[None]:
        """Call ``call`` after some time, unless the block is left before."""
        if seconds is not None:
            is_main = threading.get_ident() == threading.main_thread().ident
            with self._lock:
                self._alarms[call] = (self.now + seconds, is_main)
        try:
            yield
        finally:
            with self._lock:
                self._alarms.pop(call, None)

    def wait(self, seconds: float | None, events: Iterable[tuple[int, int]] = ()) -> None:
        """Wait until some time has passed, or for events of poll(2)."""
        # An eventfd, so that an alarm in another thread can wake poll.
        wake, poll = os.eventfd(0), _poll()
        for descriptor, mask in ((wake, select.POLLIN), *events):
            poll.register(descriptor, mask)
        with self.alarm(seconds, partial(os.eventfd_write, wake, 1)):
            poll.poll()
        os.close(wake)

    def step(self, until: float, main_only: bool) -> None:
        """Advance to the next alarm, or the main thread's next one, but not beyond ``until``."""
        with self._lock:
            ends = [end for end, is_main in self._alarms.values() if is_main or not main_only]
            self.now = max(self.now, min((until, *ends)))
            due = [call for call, (end, _) in self._alarms.items() if end <= self.now]
            for call in due:
                del self._alarms[call]
                call()


def _replace_clocks(clock: Clock) -> None:
    """Make every function that returns the time use this clock."""
    seconds: dict[str, Callable[[], float]] = {
        "time": lambda: START + clock.now,
        "monotonic": lambda: _BOOTED + clock.now,
        "perf_counter": lambda: _BOOTED + clock.now,
        "process_time": lambda: 0.0,
        "thread_time": lambda: 0.0,
    }
    for name, tell in seconds.items():
        setattr(time, name, tell)
        setattr(time, f"{name}_ns", partial(lambda tell: round(tell() * 1e9), tell))
    wall, steady = seconds["time"], seconds["monotonic"]
    time.clock_gettime = lambda kind: (wall if kind == time.CLOCK_REALTIME else steady)()
    time.clock_gettime_ns = lambda kind: round(time.clock_gettime(kind) * 1e9)
    time.sleep = clock.wait
    # Without an argument, C's own functions would read the real clock.
    for name in ("localtime", "gmtime", "ctime"):
        own = getattr(time, name)
        setattr(time, name, partial(lambda own, t=None: own(wall() if t is None else t), own))
    form = time.strftime
    time.strftime = lambda text, t=None: form(text, time.localtime() if t is None else t)

    # Methods of C types cannot be replaced, so the classes are.
    class Date(datetime.date):
        @classmethod
        def today(cls) -> Any:
            return cls.fromtimestamp(wall())

    class Moment(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Any:
            return cls.fromtimestamp(wall(), tz)

        @classmethod
        def utcnow(cls) -> Any:
            return cls.fromtimestamp(wall(), datetime.UTC).replace(tzinfo=None)

        today = now

    datetime.date, datetime.datetime = Date, Moment  # type: ignore[misc]


def _hand_over_in_turn() -> deque[asyncio.Handle]:
    """Return where the main event loop finds what other threads have for it."""
    handed: deque[asyncio.Handle] = deque()
    own = BaseEventLoop.call_soon_threadsafe

    def _call_soon_threadsafe(self: Any, call: Any, *args: Any, context: Any = None) -> Any:
        is_main = self._thread_id == threading.main_thread().ident
        if threading.get_ident() == self._thread_id or not self.is_running() or not is_main:
            return own(self, call, *args, context=context)
        handle = asyncio.Handle(call, args, self, context)
        handed.append(handle)  # the event loop is at rest, and takes it at once
        self._write_to_self()
        return handle

    BaseEventLoop.call_soon_threadsafe = _call_soon_threadsafe  # type: ignore[method-assign]
    return handed


def _replace_selectors(clock: Clock, others: Others) -> None:
    """Have selectors wait by the clock, and that of the main loop for all other threads, too.

    An event loop in another thread is one of those that the main one waits for.
    """
    handed = _hand_over_in_turn()

    def _selecting(own: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
        def _selected(self: selectors.BaseSelector, timeout: float | None = None) -> list[Any]:
            is_main = threading.get_ident() == threading.main_thread().ident
            loop: Any = asyncio._get_running_loop() if is_main else None
            end = None if timeout is None else clock.now + timeout
            while True:
                if loop is not None:
                    others.await_all()
                ready = own(self, 0)
                if loop is not None and handed:
                    loop._ready.extend(handed)
                    handed.clear()
                    return ready
                if ready or (end is not None and end <= clock.now):
                    return ready
                clock.wait(None if end is None else end - clock.now, _events(self))

        return _selected

    for kind in (selectors.EpollSelector, selectors.SelectSelector, selectors.PollSelector):
        kind.select = _selecting(kind.select)  # type: ignore[method-assign]


def _events(selector: selectors.BaseSelector) -> list[tuple[int, int]]:
    """Return the events that a selector waits for, in the form of poll(2)."""
    if isinstance(selector, selectors.EpollSelector):
        return [(selector.fileno(), select.POLLIN)]
    return [
        (key.fd, sum(_POLLED[event] for event in _POLLED if event & key.events))
        for key in selector.get_map().values()
    ]


def _replace_select(clock: Clock) -> None:
    """Make select(2) wait by the clock."""

    def _selected(read: Any, write: Any, odd: Any, timeout: float | None = None) -> Any:
        if timeout is None or write:  # who reads the terminal needs no time on this clock
            return _select(read, write, odd)
        if timeout > 0 and not any(_select(read, (), odd, 0)):
            clock.wait(timeout, [(file, select.POLLIN) for file in read])
        return _select(read, (), odd, 0)

    select.select = _selected


def _replace_conditions(clock: Clock) -> None:
    """Make conditions wait by the clock, and so events, queues and futures."""
    own = threading.Condition.wait

    def _wait(self: Any, timeout: float | None = None) -> bool:
        if timeout is None:
            return own(self)
        # The same steps as in the standard library, with an alarm instead of a timeout.
        waiter = threading.Lock()
        waiter.acquire()
        self._waiters.append(waiter)
        saved = self._release_save()
        try:
            with clock.alarm(max(0.0, timeout), waiter.release):
                if timeout > 0:
                    waiter.acquire()
        finally:
            self._acquire_restore(saved)
        notified = waiter not in self._waiters
        if not notified:
            self._waiters.remove(waiter)
        return notified

    threading.Condition.wait = _wait  # type: ignore[method-assign,assignment]
    # threading has bound its own name for it (Condition.wait_for).
    threading._time = time.monotonic  # type: ignore[attr-defined]


class Others:
    """The threads of this process except the event loop's and the clock's."""

    def __init__(self) -> None:
        self.but: tuple[int, ...] = ()
        self._seen: tuple[str, ...] = ()

    def await_all(self) -> None:
        """Wait until all of them wait; the previous call's result counts as the first look."""
        while threading.active_count() > len(self.but):  # the last one may end in between
            seen = tasks("self", self.but)
            if seen and seen == self._seen:
                return
            if not seen:
                os.sched_yield()  # even a sleep of 0 s would look like rest to the clock's owner
            self._seen = seen


def _replace_chance() -> None:
    """Replace sources of randomness by a seeded one."""
    drawn = random.Random(7)
    os.urandom = drawn.randbytes
    random._urandom = drawn.randbytes  # type: ignore[attr-defined]
    random.seed(7)


def _import_everything() -> None:
    """Import everything the console may import, in an environment that it has prepared."""
    import_module("zconsole.ui.start").prepare(os.environ)
    package = import_module("zconsole")
    for module in pkgutil.walk_packages(package.__path__, "zconsole."):
        if not module.name.endswith(".__main__"):
            import_module(module.name)


class Asked(NamedTuple):
    """A request for a run, sent as JSON."""

    words: list[str]
    directory: str
    environ: dict[str, str]
    """Environment variables that differ from those of this process."""


def serve(asking: socket.socket) -> None:
    """Serve requests one after another; answers each with the process id, then the exit code."""
    clock, others = Clock(), Others()
    _replace_chance()
    _replace_selectors(clock, others)
    _replace_select(clock)
    _replace_clocks(clock)
    _replace_conditions(clock)
    _import_everything()
    # A collection would write to all objects, and so copy the pages that forks share.
    gc.freeze()
    while True:
        message, files, *_ = socket.recv_fds(asking, 1 << 16, 2)
        if not message:
            return
        process = os.fork()
        if not process:
            asking.close()
            _begin(Asked(*json.loads(message)), *files, clock, others)
            runpy.run_module("zconsole", run_name="__main__", alter_sys=True)
            return
        for file in files:
            os.close(file)
        asking.send(str(process).encode())
        _, status = os.waitpid(process, 0)
        asking.send(str(os.waitstatus_to_exitcode(status)).encode())


def _begin(asked: Asked, terminal: int, control: int, clock: Clock, others: Others) -> None:
    """Become a process of its own on a terminal, with a clock that is advanced from outside."""
    os.setsid()
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        os.dup2(terminal, number)
        errors = getattr(sys, name).errors
        mode = "w" if number else "r"
        stream = open(number, mode, errors=errors, closefd=False)  # noqa: SIM115 - for good
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    os.close(terminal)
    os.chdir(asked.directory)
    os.environ |= asked.environ
    sys.argv = ["zconsole", *asked.words]
    driver = socket.socket(fileno=control)

    def _obey() -> None:
        with driver.makefile("rw") as stream:
            for line in stream:
                until, whose = line.split()
                clock.step(float(until), main_only=whose == "main")
                stream.write(f"{clock.now!r}\n")
                stream.flush()

    thread = threading.Thread(target=_obey, daemon=True, name="clock")
    thread.start()
    others.but = (threading.get_native_id(), thread.native_id or 0)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
