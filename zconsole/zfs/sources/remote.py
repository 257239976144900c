"""Pools of another machine, over one multiplexed OpenSSH connection; that host needs only zpool.

Nothing is ever changed over this connection. A lost connection makes its pools stale, like a pool
that does not answer; it is restored automatically.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shlex
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from zconsole.errors import UnavailableError, UsageError
from zconsole.system.async_process import CommandRunner, LineProcess, ProcessRunner, Spawner
from zconsole.system.host import Clocks, steady_clock
from zconsole.system.process import Completed, DeadlineError
from zconsole.zfs.raw import Raw
from zconsole.zfs.sources.base import NO_READER, Capabilities
from zconsole.zfs.sources.pool_poller import PoolPoller, PoolPollers
from zconsole.zfs.sources.reader import (
    POOLS,
    Commands,
    FallbackReader,
    PoolGoneError,
    ReaderUnusableError,
    ReadFailedError,
    pool_names,
    zpool_version,
)
from zconsole.zfs.sources.recording import MOST_POOLS
from zconsole.zfs.sources.zpool import zpool_readers
from zconsole.zfs.zpool_output import ZpoolOutput

CLOCKS = Clocks()
DEADLINE = 10.0
"""Seconds for a call over the link, a new connection included."""
CONNECT = 8
"""Seconds for ssh to connect; fewer than DEADLINE, so that ssh itself reports why it failed."""
PATIENCE = 2.0
"""Seconds a sample waits for slow pools before it is shown without them."""
LENIENCE = 2.0
"""Factor by which the next answer may take longer than the last: a slow link is not a lost one."""
FIRST_PATIENCE = 12.0
"""Seconds the first sample waits for its pools."""
CLOSE = 2.0
"""Seconds to stop the readers, and to close the shared connection."""
SETTLE = 0.2
"""Seconds a killed ssh has to exit."""
LOST = 255
"""Exit status of ssh itself when the link fails (ssh(1))."""
LIST_EVERY = 5.0
"""Seconds between two checks for newly imported pools: each command takes an ssh process of its
own."""
REST, LONGEST_REST = 60.0, 900.0
"""Seconds before a command that got no answer is sent to the host again; doubled each time up to
the second value, as what is stuck in the remote kernel stays there."""
KSTAT = "/proc/spl/kstat/zfs/{}/state"
REMOTE_PATH = "/usr/sbin:/sbin:/usr/local/sbin:/usr/bin:/bin:/usr/local/bin"
_HOST = re.compile(r"(?:ssh://)?[\w.%+@:\[\]~-]+", re.ASCII)
_OFFSET = re.compile(r"([+-])(\d\d)(\d\d)")


def hosts_of(words: str) -> tuple[str, ...]:
    """Parse ``root@a,b`` as ssh destinations, each once. Raises UsageError for an invalid one."""
    hosts = tuple(dict.fromkeys(word.strip() for word in words.split(",")))
    for host in hosts:
        if host.startswith("-") or not _HOST.fullmatch(host):
            raise UsageError(f"--host {host!r} is not USER@HOST")
    return hosts


def remote_words(argv: Sequence[str]) -> str:
    """Return a command as one line for the login shell that sshd runs, with every word quoted.

    ``env`` sets what zpool needs for plain output, in any shell, csh and fish included.
    """
    plain = ("env", "LC_ALL=C.UTF-8", "NO_COLOR=1", f"PATH={REMOTE_PATH}")
    return shlex.join((*plain, *argv))


class SshRunner:
    """Runs commands on a host through ssh, over one shared connection."""

    def __init__(self, host: str, runner: CommandRunner, spawner: Spawner, sockets: Path) -> None:
        self._host = host
        self._runner = runner
        self._spawner = spawner
        self._sockets = sockets
        self._rests: dict[tuple[str, ...], float] = {}
        """Seconds to wait after the last unanswered call of each command."""
        self.lost = ""
        """Why the last finished command did not reach the host; empty if it did."""

    async def run(self, argv: Sequence[str], deadline: float) -> Completed:
        """Run a command on the host.

        A lost link, or an ssh that cannot be started, is reported as a failed command with a
        message.

        A command that hangs on the host cannot be observed, so after a timeout it counts as alive
        for a rest period that starts at a minute (REST).
        """
        began = steady_clock()
        try:
            done = await self._runner.run(self._ssh(argv), deadline)
        except FileNotFoundError:
            return Completed(tuple(argv), 1, "", "ssh: not installed on this machine")
        except OSError as error:  # a lack of processes, for example
            self.lost = f"ssh: {error.strerror}"
            return Completed(tuple(argv), 1, "", self.lost)
        except DeadlineError as error:
            text = f"{argv[0]} on {self._host}{str(error).removeprefix('ssh')}"
            rest = min(LONGEST_REST, 2 * self._rests.get(tuple(argv), REST / 2))
            self._rests[tuple(argv)] = rest
            raise DeadlineError(text, lambda: steady_clock() - began < rest) from None
        self._rests.pop(tuple(argv), None)
        self.lost = ""
        if done.returncode == LOST:
            last = " ".join(done.stderr.strip().rpartition("\n")[2].split())
            words = last or "the connection was lost"
            self.lost = f"ssh: {words.removeprefix('ssh: ')}"
            return Completed(tuple(argv), 1, "", self.lost)
        return Completed(tuple(argv), done.returncode, done.stdout, done.stderr)

    async def spawn(self, argv: Sequence[str], cwd: Path | None = None) -> LineProcess:
        """Start a long-running command on the host."""
        del cwd  # a directory of this machine, which the host may not have
        return await self._spawner.spawn(self._ssh(argv))

    async def aclose(self) -> None:
        """Close the shared connection.

        If that fails in time, ssh closes it by itself (ControlPersist).
        """
        with contextlib.suppress(DeadlineError, OSError):
            argv = ("ssh", "-o", self._path, "-O", "exit", "--", self._host)
            await self._runner.run(argv, CLOSE)

    @property
    def _path(self) -> str:
        """The ssh option with the shared socket; it is not shared if others could plant a socket.

        The directory is created again if a cleaner of /tmp removed it.
        """
        with contextlib.suppress(OSError):
            self._sockets.mkdir(0o700, exist_ok=True)
            status = self._sockets.lstat()
            ours = status.st_uid == os.geteuid() and not status.st_mode & 0o077
            if ours and stat.S_ISDIR(status.st_mode):
                return f"ControlPath={self._sockets}/%C"
        return "ControlPath=none"

    def _ssh(self, argv: Sequence[str]) -> tuple[str, ...]:
        """Return the ssh command line; options as in ssh_config(5).

        It never prompts, shares one connection and detects a dead one in 15 seconds. Nothing of
        this machine is forwarded to the host: no agent, display or port.
        """
        options = (
            "BatchMode=yes",
            f"ConnectTimeout={CONNECT}",
            "ControlMaster=auto",
            self._path,
            "ControlPersist=60",
            "ServerAliveInterval=5",
            "ServerAliveCountMax=3",
            "LogLevel=ERROR",
            "ForwardAgent=no",
            "ForwardX11=no",
            "ClearAllForwardings=yes",
            "PermitLocalCommand=no",
        )
        flags = [word for option in options for word in ("-o", option)]
        return ("ssh", "-T", *flags, "--", self._host, remote_words(argv))


def next_patience(waited: float) -> float:
    """Return how many seconds to wait for the next answer when the last one took ``waited``."""
    return min(DEADLINE, max(PATIENCE, LENIENCE * waited))


class RemoteSource:
    """Samples the pools of one host."""

    def __init__(
        self,
        host: str,
        pools: Sequence[str],
        interval: float,
        sockets: Path,
        clocks: Clocks = CLOCKS,
    ) -> None:
        process = self._process = ProcessRunner()
        self.host = host
        self._asked_for = tuple(dict.fromkeys(pools))
        self._interval = interval
        self._clocks = clocks
        self._ssh = SshRunner(host, process, process, sockets)
        self._hung: DeadlineError | None = None
        self._pollers: PoolPollers | None = None
        self._version: str | None = None
        self._offset: float | None = None
        self._names: tuple[str, ...] = ()
        self._imported: Sequence[str] = ()
        """The host's pools in its newest list."""
        self._absent: Sequence[str] = ()
        """Pools that the host no longer had when it last answered."""
        self._listed = float("-inf")
        self._patience = PATIENCE
        self.failure = ""
        """Why the last sample could not list the pools; empty if it could."""
        self.missing: tuple[str, ...] = ()
        """Requested pools that the host has never had."""

    @property
    def capabilities(self) -> Capabilities:
        """Name of the reader in use; nothing can be changed over ssh."""
        reader = self._pollers.readers.reader if self._pollers else None
        return Capabilities(
            name=reader.name if reader else NO_READER,
            reason=f"over ssh from {self.host}",
            denied="pools of other machines are read-only",
            version=self._version,
        )

    async def sample(self) -> tuple[Raw, ...]:
        """Read every pool of the host.

        An unreachable host is one problem under the host's own name.
        """
        first, asked = self._pollers is None, () if self._nothing_known else self._names
        self.failure, states = await asyncio.gather(self._list(), self._states(asked))
        if self._names != asked and not self._ssh.lost:
            states = await self._states(self._names)
        if self._pollers is None or self._ssh.lost:
            absent = f"no such pool: {', '.join(self.missing)}" if self.missing else ""
            why = self._ssh.lost or self.failure or absent or "no pools are imported"
            return tuple(self._failed(name, why) for name in self._names or (self.host,))
        # The newest list may be older than the kernel's words.
        gone = (name for name in self._names if name not in self._imported)
        self._absent = [name for name in gone if not states.get(name)]
        polled = {
            self._pollers.of(name): None if name in self._absent else states.get(name, "")
            for name in self._names
        }
        began = self._clocks.steady()
        await self._pollers.read(polled, FIRST_PATIENCE if first else self._patience)
        self._patience = next_patience(self._clocks.steady() - began)
        return tuple(self._raw(poller, state) for poller, state in polled.items())

    @property
    def seen(self) -> bool:
        """True once the host has shown a pool."""
        return bool(self._names)

    async def zpool_outputs(self, pool: str) -> tuple[ZpoolOutput, ...]:
        """Return what the host's zpool says about a pool now. Raises UnavailableError."""
        if self._pollers is None or self._ssh.lost:
            why = self._ssh.lost or self.failure or "no answer yet"
            raise UnavailableError(f"{self.host}: {why}")
        return await self._pollers.zpool_outputs(pool)

    async def aclose(self) -> None:
        """Close the connection; even if that is cut short, killed processes are waited for."""
        try:
            if self._pollers is not None:
                await self._pollers.aclose(CLOSE)
            await self._ssh.aclose()
        finally:
            await self._process.settle(SETTLE)

    @property
    def _nothing_known(self) -> bool:
        return bool(self.failure or self._ssh.lost or not self._names)

    async def _list(self) -> str:
        """Update the list of pools; return why that failed, or an empty string.

        Create the pollers when there are pools for the first time. While all is well, the list is
        updated only every LIST_EVERY seconds.
        """
        if self._hung is not None and self._hung.alive():
            return str(self._hung)
        now = self._clocks.steady()
        if not self._nothing_known and now - self._listed < LIST_EVERY:
            return ""
        self._listed = now
        try:
            found = pool_names(await Commands(self._ssh, DEADLINE).output(*POOLS))
            if self._pollers is None and found:
                await self._open()
        except (ReadFailedError, ReaderUnusableError, PoolGoneError) as error:
            return str(error)
        except DeadlineError as error:
            self._hung = error
            return str(error)
        self._imported, wanted = found, self._asked_for or found
        kept = dict.fromkeys((*self._names, *(name for name in wanted if name in found)))
        if len(kept) > MOST_POOLS:
            return f"zpool list names more than {MOST_POOLS} pools by now"
        self._names = tuple(kept)
        self.missing = tuple(name for name in wanted if name not in self._names)
        return ""

    async def _open(self) -> None:
        """Create the pollers, for which the host must tell its version and zone first.

        Raises DeadlineError, or ReadFailedError if the link is lost.
        """
        ssh, clocks = self._ssh, self._clocks
        asked = zpool_version(ssh, DEADLINE), self._utc_offset()
        self._version, self._offset = await asyncio.gather(*asked)
        if ssh.lost:
            raise ReadFailedError(ssh.lost)
        readers = FallbackReader(zpool_readers(ssh, ssh, self._interval, self._version, clocks))
        self._pollers = PoolPollers(ssh, readers, self._version, clocks, DEADLINE)

    async def _utc_offset(self) -> float | None:
        """Return how many seconds the host's zone is ahead of UTC, for the dates in text.

        None if the host does not tell. Raises DeadlineError.
        """
        done = await self._ssh.run(("date", "+%z"), DEADLINE)
        match = _OFFSET.fullmatch(done.stdout.strip())
        if match is None:
            return None
        seconds = int(match[2]) * 3600.0 + int(match[3]) * 60.0
        return -seconds if match[1] == "-" else seconds

    async def _states(self, names: Sequence[str]) -> Mapping[str, str]:
        """Return the kernel's state word of each pool, if the host is Linux.

        In some states zpool would hang.
        """
        if not names:
            return {}
        paths = [KSTAT.format(name) for name in names]
        try:
            done = await self._ssh.run(("grep", "-H", ".", *paths), DEADLINE)
        except DeadlineError:
            return {}
        lines = (line.rpartition(":") for line in done.stdout.splitlines())
        found = {path: state.strip() for path, _, state in lines}
        return {name: found.get(path, "") for name, path in zip(names, paths, strict=True)}

    def _raw(self, poller: PoolPoller, state: str | None) -> Raw:
        reading = poller.collect() or self._failed(poller.name, poller.problem)
        if state:
            reading["kstat"] = state
        if self._version:
            reading["version"] = self._version
        if "text" in reading and self._offset is not None:
            reading["utc_offset"] = self._offset
        return reading

    def _failed(self, name: str, why: str) -> Raw:
        now, steady = self._clocks.wall(), self._clocks.steady()
        raw: Raw = {"t": now, "clock": steady, "pool": name, "problem": why or "no answer yet"}
        return {**raw, "absent": True} if name in self._absent else raw


@contextlib.contextmanager
def socket_directory() -> Iterator[Path]:
    """Create a private, temporary directory for ssh sockets, whose paths must be short."""
    path = Path(tempfile.mkdtemp(prefix="zconsole-", dir="/tmp"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
