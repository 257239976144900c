"""A process of its own that holds one dangerous tunable, and puts it back whatever happens.

It writes the value itself, so the value is never there without it. It puts the original back when
its time is over, when the console it watches is gone (killed, dropped connection), or when it is
asked to stop; it leaves silently when somebody else has changed the value. Run as
``python -m zconsole.tunables.guard``.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

from zconsole.errors import ZconsoleError
from zconsole.system.async_process import ProcessRunner
from zconsole.system.audit import Audit, audit_log
from zconsole.system.host import alive, process_mark
from zconsole.system.launcher import PACKAGE_ROOT, own
from zconsole.system.process import DeadlineError
from zconsole.system.state_dir import state_dir
from zconsole.tunables.control import Control, Setting, TunableRecord, put_back, recorded
from zconsole.tunables.parameters import BOOT_ID, MODULE, Parameters, SysfsParameters
from zconsole.tunables.store import FileTunableStore

LOOK = 0.25
"""Seconds between two readings of the value."""

WRITTEN = "written"
"""The guard's word to whoever started it, once the value is in place."""

STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""Signals at which what is held is put back."""

START = 60.0
"""Seconds the guard may take to start, on a machine that a scan keeps busy, and write the value."""


async def start(
    runner: ProcessRunner,
    state: Path,
    name: str,
    value: int,
    seconds: float,
    watch: str | None,
    module: Path = MODULE,
) -> None:
    """Set a guarded tunable for at most ``seconds``, while the process of ``watch`` lives.

    ``watch`` is a mark of ``host.process_mark``; None: only the time counts. The command ends
    once the value is written; the guard itself goes on in a session of its own. Raises
    ZconsoleError when the guard could not write the value.
    """
    argv = own(
        "zconsole.tunables.guard",
        "--state",
        str(state),
        "--module",
        str(module),
        "--seconds",
        str(seconds),
        *(("--watch", watch) if watch else ()),
        f"{name}={value}",
    )
    await started(runner, argv, f"the guard of {name}")


async def started(runner: ProcessRunner, argv: Sequence[str], what: str) -> None:
    """Run a command that ends once its fork works, or says on stderr why it does not.

    Raises ZconsoleError then, and when it takes too long; ``what`` is what it calls the fork.
    """
    # Never in the console's own directory: modules there would run as root.
    try:
        done = await runner.run(argv, START, PACKAGE_ROOT)
    except DeadlineError as error:
        raise ZconsoleError(f"{what}: {error}") from None
    if done.returncode != 0:
        raise ZconsoleError(done.stderr.strip() or f"{what} could not be started")


def main(argv: Sequence[str] | None = None) -> int:
    """Fork the guard, wait until it has written the value, and return its verdict."""
    options = parser("zconsole.tunables.guard")
    options.add_argument("--seconds", type=float, required=True)
    options.add_argument("setting", metavar="NAME=VALUE")
    return forked(partial(_guard, options.parse_args(argv)))


def forked(guard: Callable[[int], int]) -> int:
    """Run a guard in a fork, which gets the descriptor for its verdict; return that verdict."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.close(reader)
        os._exit(guard(writer))
    os.close(writer)
    with os.fdopen(reader) as verdict:
        answer = verdict.read()
    if answer == WRITTEN:
        return 0
    sys.stderr.write(answer or "the guard died before it had written the value")
    return 1


def hold(
    parameters: Parameters,
    held: Setting,
    over: Callable[[], bool],
    wait: Callable[[], bool],
    record: Callable[[], AbstractContextManager[TunableRecord]],
) -> None:
    """Hold a tunable until it is over, then put its original back if the value is still ours.

    ``wait`` pauses between readings and says whether to stop at once. The file of originals is not
    asked, so that losing it cannot leave the value behind. ``record`` is made when it is put back.
    """
    name = held.tunable.name
    while not over() and parameters.read(name) == held.set_by_us:
        if wait():
            break
    if held.set_by_us is not None and held.original is not None:
        put_back(parameters, {name: held.set_by_us}, {name: held.original}, record)


def _guard(args: argparse.Namespace, verdict: int) -> int:
    """The forked guard's whole life; never returns to the caller's code."""
    os.setsid()
    quiet(keep=verdict)
    # Blocked before the value is written: a signal in between would leave it behind.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
    parameters = SysfsParameters(args.module, args.boot_id)
    control, log = control_of(args, process_mark(os.getpid()))
    name, _, text = args.setting.partition("=")
    try:
        held = control.set({name: int(text)}, time.time(), guard=True)[0]
    except (ZconsoleError, OSError, ValueError) as error:
        log.settle()
        delivered(str(error), verdict)
        return 1
    end = time.monotonic() + (args.seconds if delivered(WRITTEN, verdict) else 0.0)

    def _over() -> bool:
        return time.monotonic() >= end or (args.watch is not None and not alive(args.watch))

    def _record() -> AbstractContextManager[TunableRecord]:
        return recorded(log, time.time(), "restore")

    hold(parameters, held, _over, lambda: signal.sigtimedwait(STOPS, LOOK) is not None, _record)
    with contextlib.suppress(OSError):
        control.restore(time.time(), [name])
    log.settle()
    return 0


def delivered(word: str, verdict: int) -> bool:
    """Whether whoever started the guard still waits for its word.

    A console killed meanwhile, or out of patience, has told nobody that the value is held.
    """
    try:
        os.write(verdict, word.encode())
    except BrokenPipeError:
        return False
    finally:
        os.close(verdict)
    return True


def quiet(keep: int) -> None:
    """Let go of the console's terminal and pipes, and be the last to die for lack of memory."""
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    os.closerange(3, keep)
    os.closerange(keep + 1, 256)
    # What is held must be put back, so this process is the last to be killed (proc_pid_oom_score).
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("-1000")


def control_of(args: argparse.Namespace, mark: str | None) -> tuple[Control, Audit]:
    """The tunables that a process of ``parser`` holds under this mark, and its audit log."""
    log = audit_log(lambda: state_dir(True, {"ZCONSOLE_STATE": str(args.state)}))
    parameters = SysfsParameters(args.module, args.boot_id)
    return Control(parameters, FileTunableStore(args.state), log, mark), log


def parser(program: str) -> argparse.ArgumentParser:
    """The options that every process which holds tunables has."""
    found = argparse.ArgumentParser(prog=program, allow_abbrev=False)
    found.add_argument("--state", type=Path, required=True)
    found.add_argument("--module", type=Path, default=MODULE)
    found.add_argument("--boot-id", type=Path, default=BOOT_ID)
    found.add_argument("--watch")
    return found


if __name__ == "__main__":
    sys.exit(main())
