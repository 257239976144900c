"""``zconsole keeper``: lists what zconsole does in the background, or ends it.

Also the two processes of the keeper, which ``zconsole.system.keeper`` describes. They start as
``python -m zconsole.cli.keeper``, which returns once the keeper accepts orders.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import fcntl
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

from zconsole.actions.backend import live_backend, live_pools
from zconsole.actions.facts import Refresher, RoundsOnDemand
from zconsole.actions.held_vdevs_keeper import HeldVdevsKeeper
from zconsole.actions.scrub_window import KEEPER, MachineWindows
from zconsole.actions.window_keeper import WindowKeeper
from zconsole.cli import local
from zconsole.cli.config import refuse_denied
from zconsole.cli.output import print_row, say
from zconsole.errors import ExitCode, ZconsoleError
from zconsole.hardware.light import HOLDER, Leds, LightDuty, LocateLights
from zconsole.rebalance import held_vdevs
from zconsole.rebalance.backend import JobView
from zconsole.system.audit import audit_log
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.system.host import ROOT, alive, process_mark
from zconsole.system.keeper import (
    END,
    LOCK,
    START_SECONDS,
    TELL,
    Begin,
    Keeper,
    Order,
    asked,
    listening_socket,
)
from zconsole.system.patient import in_time
from zconsole.system.process import own, run_blocking
from zconsole.system.safe_path import make_directory
from zconsole.system.state_dir import state_dir, try_lock
from zconsole.tunables import autopilot, guard
from zconsole.tunables.control import Control
from zconsole.tunables.parameters import BOOT_ID, MODULE, Parameters
from zconsole.tunables.store import TunableStore
from zconsole.zfs.sources.live import LiveSource

STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""Signals that end the keeper, which then restores what it holds."""
NOTHING = "nothing goes on in the background for this user"
READY = "ready"
"""Sent by a new keeper to the process that started it, once it accepts orders."""
ANSWER = START_SECONDS + 5.0
"""Seconds for asking a keeper; only a hung state directory takes longer than START_SECONDS."""
CHECK_SECONDS = 0.5
"""Seconds between two checks of the parent whether its child runs."""
STOP_WITHIN = 25.0
"""Seconds that the child has to undo every duty once it was told to stop.

Each duty first completes what it is doing. A child that takes longer is killed, and the parent
restores what it held.
"""
PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds before a killed child is replaced, doubled each time, and the longest such pause."""


def run(args: argparse.Namespace) -> int:
    """List the duties of this user's keeper, or end them; return the exit code."""
    ask = partial(asked, state_dir(create=False))
    if args.action == "end":
        refuse_denied(args, "end restores tunables", undoes=True)
        ended = in_time(partial(ask, order=END, duty="", by=None), ANSWER)
        rest = "lights, scrub hours, full vdevs and what consoles set go on with the next console"
        say(f"what was held is restored; {rest}" if ended else NOTHING)
        return ExitCode.OK
    found = in_time(partial(ask, order=TELL), ANSWER) or {"duties": ()}
    if not found["duties"] and not args.json:
        say(NOTHING)
    for each in found["duties"]:
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(each["since"]))
        line = f"{each['duty']:<12} since {since}  to end it: {each['ends_by']}"
        print_row({"process": found["process"], **each}, line, args.json)
    return ExitCode.OK


def main(argv: Sequence[str] | None = None) -> int:
    """Start the keeper of a state directory unless it runs; return once it accepts orders."""
    words = list(sys.argv[1:] if argv is None else argv)
    args = parsed(words)
    reader, writer = os.pipe()
    if os.fork() == 0:
        try:
            os.close(reader)
            _parent(args, writer, words)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as reply:
        answer = reply.read()
    if answer == READY:
        return 0
    sys.stderr.write(answer or "zconsole keeper died before it accepted orders")
    return 1


def parsed(words: Sequence[str]) -> argparse.Namespace:
    """Parse the options: the state directory, and the paths of what a keeper changes.

    Exits with an error for any other word.
    """
    parser = argparse.ArgumentParser(prog="zconsole.cli.keeper", allow_abbrev=False)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--root", type=Path, default=ROOT)
    parser.add_argument("--module", type=Path, default=MODULE)
    parser.add_argument("--boot-id", type=Path, default=BOOT_ID)
    return parser.parse_args(words)


def _parent(args: argparse.Namespace, reply: int, words: Sequence[str]) -> None:
    """Run the waiting process: it keeps a child running, and restores what a killed one held.

    Writes READY, or an error, to ``reply`` and closes it.
    """
    os.setsid()
    _detach(reply)
    os.environ["ZCONSOLE_STATE"] = str(args.state)  # for code that calls state_dir() itself
    os.environ.pop("TZ", None)  # scrub hours are in the machine's time zone, not the user's
    time.tzset()
    signal.pthread_sigmask(signal.SIG_BLOCK, {*STOPS, signal.SIGCHLD})
    lock, listener, answer = None, None, READY
    try:
        make_directory(args.state)
        if (lock := try_lock(args.state / LOCK)) is not None:  # else another keeper runs
            listener = listening_socket(args.state)
    except (ZconsoleError, OSError) as error:
        answer = str(error)
    with contextlib.suppress(BrokenPipeError):  # its starter is gone, but others may need it
        os.write(reply, answer.encode())
    os.close(reply)
    if lock is None or listener is None:
        return
    parent_pipe = os.pipe()
    # The values to restore, in memory that both processes share: the state directory may hang.
    shared = os.memfd_create("tunables")
    start_child = partial(_begin_child, args, lock, listener, parent_pipe, shared, words)
    _supervise(start_child, lambda mark: _restore(args, mark, shared))
    _release(lock, listener)


def _supervise(start_child: Callable[[float], int], restore: Callable[[str], None]) -> None:
    """Start one child after another, until one ends by itself or on a signal.

    ``start_child`` starts a child that first pauses for the given seconds, and returns its process
    id; ``restore`` restores what a child, given by its mark, has left.
    """
    pause, is_over = 0.0, False
    while not is_over:
        try:
            child = start_child(pause)
        except OSError:  # no process can be started now: too many run, or memory is short
            is_over = signal.sigtimedwait(STOPS, CHECK_SECONDS) is not None
            continue
        mark = process_mark(child) or ""
        is_over = _watch(child)
        restore(mark)
        pause = min(max(PAUSE, 2 * pause), LONGEST_PAUSE)


def _release(lock: int, listener: socket.socket) -> None:
    """Close the socket to orders and release the lock, so that another keeper can start.

    Both are done by calls that affect every copy of the descriptors: a process of which a thread
    hangs in the kernel keeps its own open.
    """
    with contextlib.suppress(OSError):
        listener.shutdown(socket.SHUT_RDWR)
        listener.setblocking(False)
        while True:  # whoever has connected meanwhile gets no answer, and asks again
            listener.accept()[0].close()
    fcntl.flock(lock, fcntl.LOCK_UN)


def _begin_child(
    args: argparse.Namespace,
    lock: int,
    listener: socket.socket,
    parent_pipe: tuple[int, int],
    shared: int,
    words: Sequence[str],
    pause: float,
) -> int:
    """Fork the child that keeps the duties; return its process id. Raises OSError.

    ``parent_pipe`` is a pipe into which the parent writes nothing: its end tells the child that the
    parent is gone. ``shared`` is the file in memory with the values to restore (TunableStore). The
    child pauses for ``pause`` seconds first, unless its parent dies meanwhile: then it restores
    what it finds.
    """
    child = os.fork()
    if child == 0:
        code = 1
        try:
            # A thread of the parent may hold a lock now, which this process would hold on to.
            _close_all_but(lock, listener.fileno(), parent_pipe[0], shared)
            listening = listener.dup()
            if asyncio.run(_keep(args, listener, parent_pipe[0], shared, pause)):
                # Without its parent it starts a new keeper, which goes on with what files say.
                _release(lock, listening)
                # Not by execv(2), which waits for threads that hang in the kernel.
                run_blocking(own("zconsole.cli.keeper", *words), START_SECONDS)
            code = 0
        finally:
            os._exit(code)
    return child


def _watch(child: int) -> bool:
    """Wait for the end of a child; return False if it was killed and must be replaced."""
    told, end = False, float("inf")
    while (code := _exit_code(child)) is None:
        caught = signal.sigtimedwait({*STOPS, signal.SIGCHLD}, CHECK_SECONDS)
        if caught is not None and caught.si_signo in STOPS:
            os.kill(child, signal.SIGTERM)
            told, end = True, min(end, time.monotonic() + STOP_WITHIN)
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
        if time.monotonic() > end + STOP_WITHIN:
            break  # it hangs in the kernel, and none of its code runs any more
    return told or code == 0


def _exit_code(child: int) -> int | None:
    """Return the exit code of a child as subprocess has it; None while it runs.

    A killed child stays while one of its threads hangs in the kernel; that counts as ended, too.
    """
    for pause in (0.0, CHECK_SECONDS):  # threads that don't hang need a moment to end
        time.sleep(pause)
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        if alive(process_mark(child) or ""):
            return None
    return -signal.SIGKILL


def _restore(args: argparse.Namespace, mark: str, shared: int) -> None:
    """Restore the tunables that a child held, and drop the claim of its autopilot."""
    parameters, log = Parameters(args.module, args.boot_id), audit_log()
    control = Control(parameters, TunableStore(args.state, shared=shared), log, mark)
    with contextlib.suppress(OSError, ZconsoleError):
        if held := control.held():
            control.restore(time.time(), held)
    autopilot.PilotClaim(args.state, mark).drop()
    log.settle()


async def _keep(
    args: argparse.Namespace, listener: socket.socket, parent_pipe: int, shared: int, pause: float
) -> bool:
    """Keep duties until none is left or a signal comes; return whether the parent is gone."""
    log, mark = audit_log(), process_mark(os.getpid()) or ""
    parameters = Parameters(args.module, args.boot_id)
    store = TunableStore(args.state, shared=shared)

    def _control(order: Order) -> Control:
        return Control(parameters, store, log.by(order["by"]), mark)

    # A claim for each autopilot, so that one that ends late drops only its own.
    def _claim() -> autopilot.PilotClaim:
        return autopilot.PilotClaim(args.state, mark)

    orders: dict[str, Begin] = {
        guard.ORDER: lambda order: guard.begin(_control(order), parameters, order),
        autopilot.ORDER: lambda order: autopilot.begin(
            _control(order), parameters, log.by(order["by"]), _claim(), LiveSource, order
        ),
    }
    feed = local.feed_on_demand()
    rounds, windows = RoundsOnDemand(feed), MachineWindows(args.state)
    backend = replace(live_backend(False), log=log)
    executor = backend.executor(Refresher(rounds.fresh, backend.ask))

    control = Control(parameters, store, log, mark)
    standing = (
        guard.TunableDuty(control, live_pools, args.state / guard.KEPT),
        LightDuty(LocateLights(args.state, Leds(args.root), log=log), args.state / HOLDER),
        WindowKeeper(windows, args.state / KEEPER, executor, backend.ask, rounds.frames),
        HeldVdevsKeeper(
            held_vdevs.MachineHolds(args.state),
            args.state / held_vdevs.KEEPER,
            executor,
            backend.ask,
            rounds.frames,
            _jobs,
        ),
    )
    keeper = Keeper(orders, standing, log)
    loop = asyncio.get_running_loop()
    alone, over = asyncio.Event(), asyncio.Event()

    def _stop() -> None:
        over.set()
        keeper.stop()

    def _left_alone() -> None:
        loop.remove_reader(parent_pipe)
        alone.set()
        _stop()

    loop.add_reader(parent_pipe, _left_alone)
    for number in STOPS:
        loop.add_signal_handler(number, _stop)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {*STOPS, signal.SIGCHLD})
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(over.wait(), pause)
    await keeper.run(listener)
    await feed.aclose()
    log.settle()
    return alone.is_set()


async def _jobs() -> list[JobView]:
    """Return the rebalance jobs of this machine that can be read."""
    from zconsole.rebalance.job import control  # lazy: it loads sqlite, and only jobs need it

    return await in_daemon_thread(control.list_jobs, [])


def _close_all_but(*kept: int) -> None:
    """Close every descriptor below 256 except the standard streams and ``kept``."""
    ends = (2, *sorted(kept), 256)
    for low, high in pairwise(ends):
        os.closerange(low + 1, high)


def _detach(keep: int) -> None:
    """Let go of the console's terminal, pipes and directory, and be killed last if memory is short.

    ``keep`` is a descriptor that stays open.
    """
    os.umask(0o077)
    os.chdir("/")
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    _close_all_but(keep)
    # It must restore what is held, so it is the last to be killed (proc_pid_oom_score_adj(5)).
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("-1000")
    with contextlib.suppress(OSError):
        Path("/proc/self/comm").write_text("zconsole-keeper")


if __name__ == "__main__":
    sys.exit(main())
