"""Steps of a build: one line each on stderr, with the output of commands in a log."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.vm.errors import VmError

LAST_LINES = 30


@dataclass(frozen=True)
class Progress:
    """Announces steps, and runs their commands with output to a log file."""

    log: Path

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Print the title, and the duration of the block when it is done."""
        print(f"  {title} … ", end="", file=sys.stderr, flush=True)
        start = time.monotonic()
        try:
            yield
        except BaseException:
            print("failed", file=sys.stderr, flush=True)
            raise
        print(f"{time.monotonic() - start:.1f} s", file=sys.stderr, flush=True)

    def run(self, argv: Sequence[str], env: Mapping[str, str] | None = None) -> str:
        """Run a command that dies with this process; returns its stdout.

        Raises VmError with the last lines of its output if it fails.
        """
        lethal = ["setpriv", "--pdeathsig", "KILL", *argv]
        with self.log.open("a") as log:
            log.write(f"$ {' '.join(argv)}\n")
            log.flush()
            process = subprocess.Popen(
                lethal, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, env=env
            )
            output = _output(process).decode(errors="replace")
            log.write(output)
        if process.returncode != 0:
            raise VmError(f"{argv[0]} failed ({process.returncode}):\n{self._tail()}")
        return output

    def _tail(self) -> str:
        """Return the end of the log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-LAST_LINES:])


def _output(process: subprocess.Popen[bytes]) -> bytes:
    """Return the output of a process; on interruption, all its children are ended."""
    try:
        return process.communicate()[0]
    except BaseException:
        process.kill()
        # All its children hold the pipe: wait until none can still write to a tree that will be
        # deleted.
        process.communicate()
        raise
