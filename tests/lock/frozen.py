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
"""Seconds that the machine has run then."""
_FACTS = re.compile(r"^(?:State|(?:non)?voluntary_ctxt_switches):\t(\w+)", re.MULTILINE)
_POLLED = {selectors.EVENT_READ: select.POLLIN, selectors.EVENT_WRITE: select.POLLOUT}
_poll, _select = select.poll, select.select


def tasks(process: int | str, but: Iterable[int] = ()) -> tuple[str, ...]:
    """Return what changes when a thread of a process runs; nothing while one of them does.

    A thread is counted when it stops running, and can run again only after it was woken: where two
    looks see the same counts and nobody running, nothing has run between them (proc_pid_status(5)).
    """
    found: list[str] = []
    try:
        for number in os.listdir(f"/proc/{process}/task"):  # noqa: PTH208 - often asked
            if int(number) not in but:
                with open(f"/proc/{process}/task/{number}/status") as status:  # noqa: PTH123
                    state, *counts = _FACTS.findall(status.read())
                if state != "S":  # or it has ended, and that is about to be told
                    return ()
                found += (number, *counts)
    except OSError:  # a thread has ended just now
        return ()
    return tuple(found)


class Clock:
    """Seconds since the start, the same until they are moved on."""

    def __init__(self) -> None:
        self.now = 0.0
        self._lock = threading.Lock()
        self._alarms: dict[Callable[[], object], tuple[float, bool]] = {}
        """By what they call, when they go off, and whether the main thread waits for them."""

    @contextmanager
    def alarm(self, seconds: float | None, call: Callable[[], object]) -> Iterator[None]:
        """Have something called when so much time has passed, unless this was left before."""
        if seconds is not None:
            is_main = threading.current_thread() is threading.main_thread()
            with self._lock:
                self._alarms[call] = (self.now + seconds, is_main)
        try:
            yield
        finally:
            with self._lock:
                self._alarms.pop(call, None)

    def wait(self, seconds: float | None, events: Iterable[tuple[int, int]] = ()) -> None:
        """Wait until so much time has passed, or for events of poll(2)."""
        wake, poll = os.eventfd(0), _poll()
        for descriptor, mask in ((wake, select.POLLIN), *events):
            poll.register(descriptor, mask)
        with self.alarm(seconds, partial(os.eventfd_write, wake, 1)):
            poll.poll()
        os.close(wake)

    def step(self, until: float, main_only: bool) -> None:
        """Move on to the next alarm, or to the next one of the main thread."""
        with self._lock:
            ends = [end for end, is_main in self._alarms.values() if is_main or not main_only]
            self.now = max(self.now, min((until, *ends)))
            due = [call for call, (end, _) in self._alarms.items() if end <= self.now]
            for call in due:
                del self._alarms[call]
                call()


def _replace_clocks(clock: Clock) -> None:
    """Have every function that tells the time tell that of the clock."""
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
    for name in ("localtime", "gmtime", "ctime"):
        own = getattr(time, name)
        setattr(time, name, partial(lambda own, t=None: own(wall() if t is None else t), own))
    form = time.strftime
    time.strftime = lambda text, t=None: form(text, time.localtime() if t is None else t)

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
        handed.append(handle)  # where the event loop takes it at once
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
            is_main = threading.current_thread() is threading.main_thread()
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
    """Return what a selector waits for, as poll(2) knows it."""
    if isinstance(selector, selectors.EpollSelector):
        return [(selector.fileno(), select.POLLIN)]
    return [
        (key.fd, sum(_POLLED[event] for event in _POLLED if event & key.events))
        for key in selector.get_map().values()
    ]


def _replace_select(clock: Clock) -> None:
    """Have select(2) wait by the clock."""

    def _selected(read: Any, write: Any, odd: Any, timeout: float | None = None) -> Any:
        if timeout is None or write:  # whoever reads the terminal is as fast as time stands still
            return _select(read, write, odd)
        if timeout > 0 and not any(_select(read, (), odd, 0)):
            clock.wait(timeout, [(file, select.POLLIN) for file in read])
        return _select(read, (), odd, 0)

    select.select = _selected


def _replace_conditions(clock: Clock) -> None:
    """Have conditions wait by the clock, and events, queues and futures with them."""
    own = threading.Condition.wait

    def _wait(self: Any, timeout: float | None = None) -> bool:
        if timeout is None:
            return own(self)
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
    threading._time = time.monotonic  # type: ignore[attr-defined]


class Others:
    """The threads of this process but those of the event loop and of the clock."""

    def __init__(self) -> None:
        self.but: tuple[int, ...] = ()
        self._seen: tuple[str, ...] = ()

    def await_all(self) -> None:
        """Wait until all of them wait; what was seen last time is the first of two looks."""
        while threading.active_count() > len(self.but):  # the last one may end meanwhile
            seen = tasks("self", self.but)
            if seen and seen == self._seen:
                return
            if not seen:
                os.sched_yield()  # a nap, of no time even, looks like rest to who moves the clock
            self._seen = seen


def _replace_chance() -> None:
    """Have what is drawn come from a seed."""
    drawn = random.Random(7)
    os.urandom = drawn.randbytes
    random._urandom = drawn.randbytes  # type: ignore[attr-defined]
    random.seed(7)


def _import_everything() -> None:
    """Import what the console may import, as in an environment that it has prepared."""
    import_module("zconsole.ui.start").prepare(os.environ)
    package = import_module("zconsole")
    for module in pkgutil.walk_packages(package.__path__, "zconsole."):
        if not module.name.endswith(".__main__"):
            import_module(module.name)


class Asked(NamedTuple):
    """A run that is asked for, as JSON."""

    words: list[str]
    directory: str
    environ: dict[str, str]
    """What is other than in the environment that this was started in."""


def serve(asking: socket.socket) -> None:
    """Run what is asked for, one after the other; answer its number, and then its exit code."""
    clock, others = Clock(), Others()
    _replace_chance()
    _replace_selectors(clock, others)
    _replace_select(clock)
    _replace_clocks(clock)
    _replace_conditions(clock)
    _import_everything()
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
    """Become a process of its own on a terminal, whose clock is moved on from outside."""
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
