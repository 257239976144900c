"""Commands and files over ssh, through one shared connection per machine."""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.vm.errors import VmError

Command = str | Sequence[str]

COMMAND_SECONDS = 120.0
CLOSE_SECONDS = 10.0
CONNECT_ATTEMPTS = 10


@dataclass(frozen=True)
class Result:
    """Result of a command in the guest. Text is UTF-8, with other bytes surrogate-escaped."""

    stdout: str
    stderr: str
    returncode: int


class CommandFailedError(VmError):
    """A command of the guest ended with a status other than 0."""

    def __init__(self, command: str, result: Result) -> None:
        super().__init__(
            f"`{command}` ended with {result.returncode}\n{result.stdout}{result.stderr}".rstrip()
        )
        self.result = result


@dataclass(frozen=True)
class Ssh:
    """Connection to one guest."""

    port: int
    key: Path
    socket: Path

    def command(self, *options: str) -> list[str]:
        """Return the ssh command line up to the guest's command, also for interactive use."""
        return ["ssh", *self._options(), "-p", str(self.port), *options, "root@127.0.0.1"]

    def run(
        self,
        command: Command,
        check: bool = True,
        timeout: float = COMMAND_SECONDS,
        stdin: bytes | None = None,
    ) -> Result:
        """Run a command: words without a shell, or a line for the guest's shell.

        Raises CommandFailedError for a status other than 0 if check is set, VmError on timeout or
        if the guest is gone.
        """
        line = command if isinstance(command, str) else shlex.join(command)
        done = _ended([*self.command(), line], timeout, f"`{line}`", stdin or b"")
        out, err = (part.decode("utf-8", "surrogateescape") for part in (done.stdout, done.stderr))
        result = Result(out, err, done.returncode)
        if check and result.returncode != 0:
            raise CommandFailedError(line, result)
        return result

    def wait(self) -> None:
        """Wait until the guest accepts connections; raises VmError if it keeps refusing them."""
        for _ in range(CONNECT_ATTEMPTS - 1):
            if self.run("true", check=False).returncode == 0:
                return
            time.sleep(0.5)
        self.run("true")

    def put(self, local: Path, remote: str) -> None:
        """Copy a file or a directory to the guest."""
        self._copy(str(local), f"root@127.0.0.1:{remote}")

    def get(self, remote: str, local: Path) -> None:
        """Copy a file or a directory from the guest."""
        self._copy(f"root@127.0.0.1:{remote}", str(local))

    def close(self) -> None:
        """End the shared connection, if there is one."""
        if self.socket.exists():
            _ended(self.command("-O", "exit"), CLOSE_SECONDS, "ending the ssh connection")

    def _copy(self, source: str, target: str) -> None:
        words = ["scp", "-q", "-r", "-p", *self._options(), "-P", str(self.port), source, target]
        done = _ended(words, COMMAND_SECONDS, f"copying {source}")
        if done.returncode != 0:
            raise VmError(f"copying {source} to {target}: {done.stderr.decode().strip()}")

    def _options(self) -> list[str]:
        """Return the options of ssh and scp: only this key, one connection, no traces here."""
        settings = {
            "IdentityFile": str(self.key),
            "IdentitiesOnly": "yes",
            "StrictHostKeyChecking": "no",
            "UserKnownHostsFile": "/dev/null",
            "LogLevel": "ERROR",
            "ConnectTimeout": "30",
            "ServerAliveInterval": "30",
            # The cheapest key exchange: emulated processors take seconds for the default one.
            "KexAlgorithms": "curve25519-sha256",
            "ControlMaster": "auto",
            "ControlPersist": "yes",
            "ControlPath": str(self.socket),
        }
        return ["-F", "none", *(f"-o{key}={value}" for key, value in settings.items())]


def _ended(
    words: Sequence[str], seconds: float, what: str, stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Return a finished ssh or scp; raises VmError on timeout."""
    try:
        return subprocess.run(words, check=False, input=stdin, capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired as error:
        raise VmError(f"{what} took more than {seconds:.0f} s") from error
