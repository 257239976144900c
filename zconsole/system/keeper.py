"""The keeper: a background program that carries on what consoles began, and undoes it at the end.

There is one for each user and state directory. It starts with the first duty and ends with the
last. A **duty** is one thing to keep: a dangerous tunable that must be restored, the autopilot, the
lights of bays, the hours of scrubs. Each says when it is due, acts, can undo what it holds, and
has a deadline of its own. All act concurrently: a duty whose disk or enclosure hangs delays no
other, and does not act again before it has ended.

*Two processes* (``zconsole.cli.keeper``). The child runs the loop below. Its parent only waits:
when the child is killed, it restores the original values, which it knows from memory that both
share, and starts another child, which continues with what is in files. When the parent is killed,
the child restores what it holds, and starts a new parent and child. If both are killed at once, the
next zconsole that may change something restores what they left, or the unit after a reboot.

*Orders* come over a socket in the state directory, which only its owner can reach: a line of JSON,
and a line back once the order is carried out. Only the answer counts: without one, the client
starts a keeper and asks again, so that no order is lost to a keeper that is about to end. If the
client is gone before the answer, what the order holds is restored at once.

*Standing duties* need no order. Each reads its own file when the keeper starts, and at an order
`look`; it is over while its file is empty.

A keeper of another version may still run: each duty takes a lock, which processes of versions
without a keeper took as well, and waits while another process holds it.
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
START_SECONDS = 60.0
"""Seconds for a keeper to start, on a machine that a scan keeps busy, and to carry out an order."""
NO_ANSWER = f"zconsole keeper: no answer in {START_SECONDS:g} s"
RESEND_SECONDS = 0.05
"""Seconds before an order that got no answer is sent again."""
LONGEST_WAIT = 30.0
"""Seconds between two rounds of the loop, at most."""
RETRY_SECONDS = 30.0
"""Seconds before a duty that failed acts again."""
IDLE_SECONDS = 2.0
"""Seconds that the keeper waits for an order while it has no duty, before it ends."""
ORDER_SECONDS = 5.0
"""Seconds that a client has to send its order once it is connected."""
LOCK_RETRY_SECONDS = 1.0
"""Seconds before a standing duty tries a second time to take its lock.

`wake` holds it for a moment; a process of another version may hold it for hours.
"""
LOCK_SECONDS = 10.0
"""Seconds for taking a lock, on a disk that a scan keeps busy."""
BEGIN_SECONDS = 30.0
"""Seconds that a duty may take to begin before the keeper ends without it."""
LOOK, END, TELL = "look", "end", "tell"
"""Orders that every keeper carries out itself.

Standing duties read their files; the duties of a name end, or all for an empty name; the keeper
lists its duties.
"""

Order = Mapping[str, Any]
"""What is asked for: the name of the order, and what the duty needs to know."""
CLOCKS = Clocks(steady=time.monotonic)
"""What duties go by."""
Begin = Callable[[Order], Awaitable["Duty"]]
"""Begins the duty of an order. Raises ZconsoleError or OSError, and holds nothing then."""


class Duty(Protocol):
    """A thing that the keeper keeps."""

    name: str
    ends_by: str
    """Command by which a person ends the duty for good."""
    deadline: float
    """Seconds that ``act`` and ``undo`` may each take when the keeper ends."""

    def due(self, now: float) -> float:
        """Return the seconds until it should act; 0.0 or less for at once. Must not block.

        ``now`` is in seconds of the steady clock.
        """

    async def act(self) -> bool:
        """Do what is due; return whether the duty continues.

        Calls that may hang must run in a thread. An exception is logged, and ``act`` is called
        again after RETRY_SECONDS.
        """

    async def undo(self) -> None:
        """Restore what it holds, in bounded time; nothing if files keep it for the next keeper."""


class Keeper:
    """The loop that serves orders, and has each duty act when it is due."""

    def __init__(
        self,
        orders: Mapping[str, Begin],
        standing: Sequence[Duty],
        log: Log,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Carry out ``orders`` by name, and keep ``standing`` duties; failures go to ``log``.

        ``clock`` returns steady seconds.
        """
        self._orders = orders
        self._standing = standing
        self._log = log
        self._clock = clock
        self._process = os.getppid()
        """Process to signal to end the keeper: the parent, as it was at the start."""
        self.duties: dict[Duty, float] = {}
        """Current duties, each with the time at which it began (epoch seconds)."""
        self._acting: dict[Duty, asyncio.Task[None]] = {}
        self._looked: set[Duty] = set()
        """Standing duties that were acting at the last order LOOK, and so must act once more."""
        self._failed: dict[Duty, tuple[float, str]] = {}
        """For each duty that failed, when it may act again (steady seconds), and the reason."""
        self._serving: set[asyncio.Task[None]] = set()
        self._until = clock() + IDLE_SECONDS
        """Until when it stays without duties (steady seconds)."""
        self._woken = asyncio.Event()
        self._stopped = False

    def stop(self) -> None:
        """Have every duty undone, and make ``run`` return."""
        self._stopped = True
        self._woken.set()

    async def run(self, listening: socket.socket) -> None:
        """Keep all duties until none is left, or until ``stop`` is called; then undo the rest."""
        accepting = asyncio.create_task(self._accept(listening))
        self._look()
        while not self._stopped and self._is_needed():
            seconds = self.act_on_due()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), seconds)
            self._woken.clear()
        accepting.cancel()
        await asyncio.wait([accepting])
        listening.close()
        held = list(self.duties)
        await asyncio.gather(*map(self._undo, held))
        if self._serving:  # a duty that is just beginning must be undone as well
            await asyncio.wait(self._serving, timeout=BEGIN_SECONDS)
        await asyncio.gather(*(self._undo(duty) for duty in list(self.duties) if duty not in held))

    def _is_needed(self) -> bool:
        return bool(self.duties or self._serving) or self._clock() < self._until

    def act_on_due(self) -> float:
        """Let each duty act that is due, unless it still does; return the seconds until the next.

        At most LONGEST_WAIT, and no longer than it may stay without duties. The end of an act wakes
        the keeper by itself.
        """
        now, waits = self._clock(), [LONGEST_WAIT]
        if not self.duties and not self._serving:
            waits.append(max(0.0, self._until - now))
        for duty in self.duties:
            if duty in self._acting:
                continue
            retry_at, _ = self._failed.get(duty, (now, ""))
            if (seconds := max(duty.due(now), retry_at - now)) > 0.0:
                waits.append(seconds)
            else:
                self._acting[duty] = asyncio.create_task(self._act(duty))
        return min(waits)

    async def _act(self, duty: Duty) -> None:
        goes_on = True
        try:
            goes_on = await duty.act()
            self._failed.pop(duty, None)
        except Exception as error:  # of any kind: no duty may end the others
            self._note_failure(duty, error)
        if not goes_on and duty not in self._looked:
            self.duties.pop(duty, None)  # may be gone: an order has ended it meanwhile
        self._looked.discard(duty)
        del self._acting[duty]
        self._woken.set()

    def _note_failure(self, duty: Duty, error: Exception) -> str:
        why = str(error) or type(error).__name__
        if self._failed.get(duty, (0.0, ""))[1] != why:
            self._log.note(time.time(), "noted", kind="keeper", duty=duty.name, result=why)
        self._failed[duty] = self._clock() + RETRY_SECONDS, why
        return why

    async def _undo(self, duty: Duty) -> str:
        """Let a duty complete its current act, within its deadline, and undo it.

        Returns why it could not be undone, and keeps it then, to try again; empty if it was undone.
        """
        since = self.duties.pop(duty, time.time())  # first, so that it doesn't act meanwhile
        if (task := self._acting.get(duty)) is not None:
            await asyncio.wait([task], timeout=duty.deadline)
        try:
            async with asyncio.timeout(duty.deadline):
                await duty.undo()
        except Exception as error:  # of any kind: the others must be undone, too
            self.duties[duty] = since
            return f"{duty.name}: {self._note_failure(duty, error)}"
        return ""

    def _look(self) -> None:
        """Have each standing duty read its file; one whose file is empty is over at once."""
        for duty in self._standing:
            if duty in self._acting:
                self._looked.add(duty)  # it may have read its file already: let it act once more
            else:
                self.duties.setdefault(duty, time.time())
        self._woken.set()

    # Orders

    async def _accept(self, listening: socket.socket) -> None:
        """Serve every client that connects."""
        # Not with asyncio.start_unix_server: from Python 3.13 on it looks up the socket's address,
        # which is a path in /proc/self/fd that no longer exists.
        listening.setblocking(False)
        while True:
            try:
                line, _ = await asyncio.get_running_loop().sock_accept(listening)
            except OSError:  # no memory or descriptor is left: the client waits
                await asyncio.sleep(RESEND_SECONDS)
                continue
            task = asyncio.create_task(self._serve(line))
            self._serving.add(task)
            task.add_done_callback(self._served)

    def _served(self, task: asyncio.Task[None]) -> None:
        self._serving.discard(task)
        self._until = self._clock() + IDLE_SECONDS
        self._woken.set()

    async def _serve(self, line: socket.socket) -> None:
        """Read an order, carry it out, and answer."""
        reader, writer = await asyncio.open_unix_connection(sock=line)
        try:
            async with asyncio.timeout(ORDER_SECONDS):
                heard = await reader.readline()
            try:
                answer = await self.obey(parse_json(heard), reader.at_eof)
            except (ValueError, LookupError, TypeError):
                other = "the zconsole keeper that runs is of another version"
                answer = {"error": f"{other}. To end it: kill {self._process}"}
            writer.write(json.dumps(answer).encode("ascii") + b"\n")
            await writer.drain()
        except OSError:  # the client is gone
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
    """A duty about the contents of a file, with a lock that it holds while there are any.

    While a process of another version holds the lock, that process does the work.
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
        """When to act next (steady seconds)."""
        self._retry = LOCK_RETRY_SECONDS
        """Seconds to wait if another process holds the lock."""

    def due(self, now: float) -> float:
        """Return the seconds until it should act; 0.0 or less for at once."""
        return self._next - now

    async def act(self) -> bool:
        """Take the lock if there is anything to do, or do what is due; return whether to continue.

        Raises what ``look`` raises.
        """
        if self._lock is None:
            retry, self._retry = self._retry, LOCK_RETRY_SECONDS
            try:
                if not await in_daemon_thread(self.is_empty):
                    self._lock = await in_daemon_thread(self._take)
                    self._next = self._clock()
                    if self._lock is None:
                        self._next += retry
                        self._retry = LONGEST_WAIT
                    return True
            except (NoAnswerError, NotAskedError):
                self._next = self._clock() + LONGEST_WAIT
                return True
            except (OSError, ZconsoleError):  # its file is unreadable: the next reader reports it
                pass
            return False
        self._next = self._clock() + await self.look()
        if await in_daemon_thread(self.is_empty):
            await self.undo()
            self._next = self._clock()
            # Check again: what was added just before the lock was released woke no keeper.
            return not await in_daemon_thread(self.is_empty)
        return True

    async def undo(self) -> None:
        """Release the lock, so that another process can do the work; the file stays."""
        if self._lock is not None:
            os.close(self._lock)
        self._lock = None

    @abstractmethod
    def is_empty(self) -> bool:
        """Return whether there is nothing to do; may hang. Raises ZconsoleError, OSError.

        Raises NoAnswerError or NotAskedError if the disk doesn't answer, so that nothing is known.
        """

    @abstractmethod
    async def look(self) -> float:
        """Do what is due; return the seconds until the next time."""


# Clients


def wake(state: Path, lock: str, options: Sequence[str] = ()) -> None:
    """Have the keeper do a standing duty, unless a process holds the duty's lock already.

    ``options`` are further ones of ``zconsole.cli.keeper``. Raises ZconsoleError as ``ask`` does,
    and NoAnswerError if the disk doesn't answer.
    """

    def _is_done() -> bool:
        held = try_lock(state / lock)
        if held is not None:
            os.close(held)
        return held is None

    if not in_time(_is_done, LOCK_SECONDS):
        ask(state, options, order=LOOK)


def ask(state: Path, options: Sequence[str] = (), **order: Any) -> None:
    """Have the keeper of a state directory carry out an order; start a keeper if none runs.

    ``options`` are further ones of ``zconsole.cli.keeper``. A field ``by`` is added to the order:
    the user who became root by sudo, for the audit log. Raises ZconsoleError with the keeper's
    reason, or if no keeper can be started or answers.
    """
    try:
        order["by"] = os.environ.get("SUDO_USER")
        until = time.monotonic() + START_SECONDS
        Patient().call(partial(_ask, state.absolute(), options, order, until), START_SECONDS)
    except (NoAnswerError, DeadlineError) as error:
        raise ZconsoleError(f"zconsole keeper: {error}") from None


def _ask(state: Path, options: Sequence[str], order: Order, until: float) -> None:
    while _asked(state, order, until) is None:
        _left(until)
        argv = own("zconsole.cli.keeper", "--state", str(state), *options)
        started = run_blocking(argv, START_SECONDS)
        if started.returncode != 0:
            raise ZconsoleError(started.stderr.strip() or "zconsole keeper could not be started")
        time.sleep(RESEND_SECONDS)


def asked(state: Path, **order: Any) -> Any:
    """Send an order to the keeper if one runs; return its answer, None if none runs.

    The answer is the number of duties concerned, or for TELL the process and its duties. May hang
    with the state directory. Raises ZconsoleError with the keeper's reason, or if it gives no
    answer, as when it is stopped by SIGSTOP.
    """
    return _asked(state, order, time.monotonic() + START_SECONDS)


def _asked(state: Path, order: Order, until: float) -> Any:
    """Return the keeper's answer to an order; None if no keeper runs.

    ``until`` is the deadline in seconds of the monotonic clock; an order whose client has given up
    is undone. Raises ZconsoleError with the keeper's reason, why it can't be asked, or that it gave
    no answer.
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
    except (ConnectionError, FileNotFoundError, BlockingIOError):  # the last: its queue is full
        return None
    except TimeoutError:
        raise ZconsoleError(NO_ANSWER) from None
    except OSError as error:
        raise ZconsoleError(f"{state / SOCKET}: {error.strerror}") from error
    if not answer.endswith(b"\n"):
        return None
    found = parse_json(answer)
    if "error" in found:
        raise ZconsoleError(found["error"])
    return found["done"]


def _left(until: float) -> float:
    """Return the seconds until a deadline. Raises ZconsoleError if it has passed."""
    if (seconds := until - time.monotonic()) <= 0.0:
        raise ZconsoleError(NO_ANSWER)
    return seconds


def listening_socket(state: Path) -> socket.socket:
    """Return the socket for orders, which replaces an older one. Raises StateError.

    Its mode keeps other users from connecting, its directory from replacing it.
    """
    made = socket.socket(socket.AF_UNIX)
    try:
        # Before bind(2), which creates the file with at most this mode, whatever default ACL the
        # directory has (acl(5)).
        os.fchmod(made.fileno(), 0o600)
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
    """Give a short path of the socket, as an address has at most 107 bytes (unix(7)).

    Its directory is checked, and held open for the time of the block.
    """
    with directory(state) as place:
        yield f"/proc/self/fd/{place}/{SOCKET}"
