"""The background program that keeps what consoles began, and puts it back: its duties, its loop.

There is one for each user and state directory. It starts with the first duty and ends with the
last. A **duty** is one thing to keep: a dangerous tunable that must go back, the autopilot, the
lights of bays, the hours of scrubs. Each says when it is due, acts, can undo what it holds, and
has a deadline of its own. All act side by side: one whose disk or enclosure hangs holds up no
other, and is not asked again before its act has ended.

*Two processes* (``zconsole.cli.keeper``). The child runs the loop below. Its parent only waits:
when the child is killed, it puts originals back, which it knows from memory that both share, and
starts another child, which goes on with what is kept in files. When the parent is killed, the child
puts back what it holds, and begins anew with a parent. What both leave behind, killed at once, is
restored by the next zconsole that may change something, and by the unit after a reboot.

*Orders* come over a socket in the state directory, which only its owner can reach: a line of JSON,
and a line back once it is done. The answer is what counts: without one whoever asked starts a
keeper and asks again, so none is lost to a keeper that just ends. What an order holds for somebody
who is gone before the answer is put back at once.

*Standing duties* need no order. Each looks into its own file when the keeper starts and whenever
somebody asks it to `look`, and is over while nothing is in there.

A keeper of another version may still be there: each duty takes the lock that this duty had before
there was a keeper, and waits while its owner lives.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from zconsole.errors import ZconsoleError
from zconsole.system.audit import Log
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.system.host import Clocks
from zconsole.system.patient import NoAnswerError, NotAskedError, Patient, in_time
from zconsole.system.process import DeadlineError, own, run_blocking
from zconsole.system.records import parse_json
from zconsole.system.safe_path import directory
from zconsole.system.state_dir import StateError, remove, try_lock

LOCK, SOCKET = "keeper.lock", "keeper.socket"
START = 60.0
"""Seconds that it may take to start, on a machine that a scan keeps busy, and to do as ordered."""
AGAIN = 0.05
"""Seconds before an order that got no answer is given again."""
LONGEST = 30.0
"""Seconds between two rounds of the loop, at most."""
RETRY = 30.0
"""Seconds before a duty that failed acts again."""
IDLE = 2.0
"""Seconds that the keeper waits for an order while it has nothing to do."""
HEARD = 5.0
"""Seconds that whoever connects has to give its order."""
LOCK_SECONDS = 10.0
"""Seconds for a lock, on a disk that a scan keeps busy."""
BEGUN = 30.0
"""Seconds that a duty may take to begin before the keeper ends without it."""
LOOK, END, TELL = "look", "end", "tell"
"""Orders that every keeper has: to look into the files, to end the duties of a name (all for an
empty one), and to tell what it keeps."""

Order = Mapping[str, Any]
"""What is asked for: the name of the order, and what the duty needs to know."""
CLOCKS = Clocks(steady=time.monotonic)
"""What duties go by."""
Begin = Callable[[Order], Awaitable["Duty"]]
"""Begins a duty as ordered. Raises ZconsoleError or OSError, and holds nothing then."""


class Duty(Protocol):
    """One thing that the keeper keeps."""

    name: str
    ends_by: str
    """The command by which a person ends it for good."""
    deadline: float
    """Seconds that an act and an undo may take each when the keeper ends."""

    def due(self, now: float) -> float:
        """Seconds until it is to act, by the steady clock; 0.0 or less: now. Must not block."""

    async def act(self) -> bool:
        """Do what is due; whether the duty goes on.

        What may hang runs in a thread. What it raises is noted, and it acts again after a while.
        """

    async def undo(self) -> None:
        """Put back what it holds: it has to end. Nothing where files keep it for the next one."""


class Keeper:
    """Serves orders, and has each duty act when it is due."""

    def __init__(
        self,
        orders: Mapping[str, Begin],
        standing: Sequence[Duty],
        log: Log,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``standing`` are those that look into files; ``log`` has what fails."""
        self._orders = orders
        self._standing = standing
        self._log = log
        self._clock = clock
        self._process = os.getppid()
        """Whom to signal to end the keeper: its parent, also once that is gone."""
        self.duties: dict[Duty, float] = {}
        """With the time at which each began (epoch seconds)."""
        self._acting: dict[Duty, asyncio.Task[None]] = {}
        self._looked: set[Duty] = set()
        """Those that were to look into their files while they were at it."""
        self._failed: dict[Duty, tuple[float, str]] = {}
        """When a duty that failed acts again (steady seconds), and why it failed."""
        self._serving: set[asyncio.Task[None]] = set()
        self._until = clock() + IDLE
        self._woken = asyncio.Event()
        self._stopped = False

    def stop(self) -> None:
        """Have every duty undone, and `run` return."""
        self._stopped = True
        self._woken.set()

    async def run(self, listening: socket.socket) -> None:
        """Keep all duties until none is left, or until `stop`."""
        hearing = asyncio.create_task(self._hear(listening))
        self._look()
        while not self._stopped and self._is_needed():
            seconds = self.begin_due()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), seconds)
            self._woken.clear()
        hearing.cancel()
        await asyncio.wait([hearing])
        listening.close()
        held = list(self.duties)
        await asyncio.gather(*map(self._undo, held))
        if self._serving:  # one that begins now must be undone as well
            await asyncio.wait(self._serving, timeout=BEGUN)
        await asyncio.gather(*(self._undo(duty) for duty in list(self.duties) if duty not in held))

    def _is_needed(self) -> bool:
        return bool(self.duties or self._serving) or self._clock() < self._until

    def begin_due(self) -> float:
        """Have every duty act that is due and not at it; seconds until the next one is."""
        now, waits = self._clock(), [LONGEST]
        if not self.duties and not self._serving:
            waits.append(max(0.0, self._until - now))
        for duty in self.duties:
            if duty in self._acting:
                continue
            retry, _ = self._failed.get(duty, (now, ""))
            if (seconds := max(duty.due(now), retry - now)) > 0.0:
                waits.append(seconds)
            else:
                self._acting[duty] = asyncio.create_task(self._act(duty))
        return min(waits)

    async def _act(self, duty: Duty) -> None:
        goes_on = True
        try:
            goes_on = await duty.act()
            self._failed.pop(duty, None)
        except Exception as error:  # no duty may end the others
            self._note_failure(duty, error)
        if not goes_on and duty not in self._looked:
            self.duties.pop(duty, None)  # an order has ended it meanwhile
        self._looked.discard(duty)
        del self._acting[duty]
        self._woken.set()

    def _note_failure(self, duty: Duty, error: Exception) -> str:
        why = str(error) or type(error).__name__
        if self._failed.get(duty, (0.0, ""))[1] != why:
            self._log.note(time.time(), "noted", kind="keeper", duty=duty.name, result=why)
        self._failed[duty] = self._clock() + RETRY, why
        return why

    async def _undo(self, duty: Duty) -> str:
        """End a duty: what it is at comes to its end before, as far as its deadline allows.

        Why it could not be undone, empty where it was; it is kept then, to try again.
        """
        since = self.duties.pop(duty, time.time())  # so that it does not act beside its undoing
        if (task := self._acting.get(duty)) is not None:
            await asyncio.wait([task], timeout=duty.deadline)
        try:
            async with asyncio.timeout(duty.deadline):
                await duty.undo()
        except Exception as error:  # the others are undone all the same
            self.duties[duty] = since
            return f"{duty.name}: {self._note_failure(duty, error)}"
        return ""

    def _look(self) -> None:
        """Have each standing duty look into its file; it is over at once where nothing is kept."""
        for duty in self._standing:
            if duty in self._acting:
                self._looked.add(duty)  # it may have looked already
            else:
                self.duties.setdefault(duty, time.time())
        self._woken.set()

    # Orders

    async def _hear(self, listening: socket.socket) -> None:
        """Serve everybody who connects."""
        # Not by a server of asyncio's: from Python 3.13 on it looks for the socket by its address,
        # which is not there any more.
        listening.setblocking(False)
        while True:
            try:
                line, _ = await asyncio.get_running_loop().sock_accept(listening)
            except OSError:  # no memory or descriptor is left: whoever connects waits
                await asyncio.sleep(AGAIN)
                continue
            task = asyncio.create_task(self._serve(line))
            self._serving.add(task)
            task.add_done_callback(self._served)

    def _served(self, task: asyncio.Task[None]) -> None:
        self._serving.discard(task)
        self._until = self._clock() + IDLE
        self._woken.set()

    async def _serve(self, line: socket.socket) -> None:
        """Do as ordered, and answer."""
        reader, writer = await asyncio.open_unix_connection(sock=line)
        try:
            async with asyncio.timeout(HEARD):
                heard = await reader.readline()
            try:
                answer = await self.obey(parse_json(heard), reader.at_eof)
            except (ValueError, LookupError, TypeError):
                other = "the zconsole keeper that runs is of another version"
                answer = {"error": f"{other}. To end it: kill {self._process}"}
            writer.write(json.dumps(answer).encode("ascii") + b"\n")
            await writer.drain()
        except OSError:  # whoever asked is gone
            pass
        finally:
            writer.close()

    async def obey(self, order: Order, is_gone: Callable[[], bool] = lambda: False) -> Order:
        """Carry out an order, and return the answer; ``is_gone``: whether nobody waits for it."""
        name = order["order"]
        if name == LOOK:
            self._look()
            return {"done": 1}
        if name == TELL:
            told = [
                {"duty": duty.name, "since": since, "ends_by": duty.ends_by}
                for duty, since in self.duties.items()
            ]
            return {"done": {"process": self._process, "duties": told}}
        if name == END:
            ended = [duty for duty in self.duties if order["duty"] in ("", duty.name)]
            failed = await asyncio.gather(*map(self._undo, ended))
            if why := "; ".join(filter(None, failed)):
                return {"error": f"not ended: {why}"}
            return {"done": len(ended)}
        try:
            duty = await self._orders[name](order)
        except (ZconsoleError, OSError) as error:
            return {"error": str(error)}
        self.duties[duty] = time.time()
        if is_gone():  # killed, or out of patience: nobody was told that it is held
            await self._undo(duty)
        return {"done": 1}


class StandingDuty(ABC):
    """A duty about what is in a file; it holds a lock of its own while there is anything.

    While another version's process has the lock, that one does it.
    """

    name: str
    ends_by: str
    deadline = 10.0

    def __init__(self, lock: Path | None, clock: Callable[[], float] = time.monotonic) -> None:
        """``lock`` is None where no other process can have it: on a simulated machine."""
        free = partial(os.open, os.devnull, os.O_RDONLY)
        self._take: Callable[[], int | None] = partial(try_lock, lock) if lock else free
        self._clock = clock
        self._lock: int | None = None
        self._next = clock()
        """When it looks (steady seconds)."""

    def due(self, now: float) -> float:
        """See Duty."""
        return self._next - now

    async def act(self) -> bool:
        """See Duty."""
        if self._lock is None:
            try:
                if not await in_daemon_thread(self.is_empty):
                    self._lock = await in_daemon_thread(self._take)
                    self._next = self._clock() + LONGEST * (self._lock is None)
                    return True
            except (NoAnswerError, NotAskedError):
                self._next = self._clock() + LONGEST
                return True
            except (OSError, ZconsoleError):  # it is not kept; whoever reads it next says so
                pass
            return False
        self._next = self._clock() + await self.look()
        if await in_daemon_thread(self.is_empty):
            await self.undo()
            self._next = self._clock()
            # Only now whoever adds something finds the lock free, and wakes the keeper.
            return not await in_daemon_thread(self.is_empty)
        return True

    async def undo(self) -> None:
        """Let another process do it: the file stays."""
        if self._lock is not None:
            os.close(self._lock)
        self._lock = None

    @abstractmethod
    def is_empty(self) -> bool:
        """Whether there is nothing to do; may hang. Raises ZconsoleError, OSError.

        Where the disk doesn't answer and nothing is known, NoAnswerError or NotAskedError.
        """

    @abstractmethod
    async def look(self) -> float:
        """Do what is due; seconds until it looks again."""


# Asking


def wake(state: Path, lock: str, options: Sequence[str] = ()) -> None:
    """Have a standing duty done by the keeper, unless a process has its lock already.

    ``options``: see `ask`. Raises as that, and NoAnswerError where the disk doesn't answer.
    """

    def _is_done() -> bool:
        held = try_lock(state / lock)
        if held is not None:
            os.close(held)
        return held is None

    if not in_time(_is_done, LOCK_SECONDS):
        ask(state, options, order=LOOK)


def ask(state: Path, options: Sequence[str] = (), **order: Any) -> None:
    """Have the keeper of a state directory carry out an order; one is started where none runs.

    ``options`` are further ones of ``zconsole.cli.keeper``. The order also says, in ``by``, who
    became root by sudo, for the audit log. Raises ZconsoleError with the keeper's reason, or where
    none can be started or answers.
    """
    try:
        order["by"] = os.environ.get("SUDO_USER")
        until = time.monotonic() + START
        Patient().call(partial(_ask, state.absolute(), options, order, until), START)
    except (NoAnswerError, DeadlineError) as error:
        raise ZconsoleError(f"zconsole keeper: {error}") from None


def _ask(state: Path, options: Sequence[str], order: Order, until: float) -> None:
    while _asked(state, order, until) is None:
        _left(until)
        argv = own("zconsole.cli.keeper", "--state", str(state), *options)
        started = run_blocking(argv, START)
        if started.returncode != 0:
            raise ZconsoleError(started.stderr.strip() or "zconsole keeper could not be started")
        time.sleep(AGAIN)


def asked(state: Path, **order: Any) -> Any:
    """`ask` a keeper that runs; what it answers: how many duties it was about, or what was asked.

    None where none runs. Raises ZconsoleError where it gives no answer, as one that was stopped;
    may hang with the state directory.
    """
    try:
        return _asked(state, order, time.monotonic() + START)
    except NoAnswerError as error:
        raise ZconsoleError(f"zconsole keeper: {error}") from None


def _asked(state: Path, order: Order, until: float) -> Any:
    """The answer by then (steady seconds): who waits no longer has ordered nothing.

    None where no keeper runs. Raises ZconsoleError with its reason or why it cannot be asked,
    NoAnswerError when it is over.
    """
    try:
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as line:
            line.settimeout(_left(until))
            with _address(state) as address:
                line.connect(address)
            line.settimeout(_left(until))
            line.sendall(json.dumps(order).encode("ascii") + b"\n")
            answer = b""
            while not answer.endswith(b"\n") and (more := line.recv(1 << 16)):
                answer += more
                line.settimeout(_left(until))
    except (ConnectionError, FileNotFoundError, BlockingIOError):  # the last: many ask at once
        return None
    except TimeoutError:
        raise NoAnswerError(f"no answer in {START:g} s") from None
    except OSError as error:
        raise ZconsoleError(f"{state / SOCKET}: {error.strerror}") from error
    if not answer.endswith(b"\n"):
        return None
    found = parse_json(answer)
    if "error" in found:
        raise ZconsoleError(found["error"])
    return found["done"]


def _left(until: float) -> float:
    """Seconds until then. Raises NoAnswerError where it is over."""
    if (seconds := until - time.monotonic()) <= 0.0:
        raise NoAnswerError(f"no answer in {START:g} s")
    return seconds


def listening_socket(state: Path) -> socket.socket:
    """The socket that orders come over, in the place of one that is there. Raises StateError.

    By its mode nobody else can connect, and in its directory nobody can replace it.
    """
    made = socket.socket(socket.AF_UNIX)
    try:
        os.fchmod(made.fileno(), 0o600)  # also where a default ACL of the directory counts (acl(5))
        remove(state / SOCKET)
        with _address(state) as address:
            made.bind(address)
        made.listen(64)
    except OSError as error:
        made.close()
        raise StateError(f"{state / SOCKET}: {error.strerror}") from error
    return made


@contextlib.contextmanager
def _address(state: Path) -> Iterator[str]:
    """A short name of the socket, as an address has 107 bytes; its directory is checked."""
    with directory(state) as place:
        yield f"/proc/self/fd/{place}/{SOCKET}"
