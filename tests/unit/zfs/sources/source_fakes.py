"""Fake commands, processes and machines for the tests of the sources."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

from zconsole.system.host import Clocks
from zconsole.system.process import Completed, DeadlineError
from zconsole.zfs.sources.kernel.helper import encoded, requested
from zconsole.zfs.sources.live import System

HANG = "hang"
DISKSTATS = """\
   8       0 sda 11 0 88 5 12 0 96 6 0 9 11 0 0 0 0 0 0
   8       1 sda1 10 0 80 5 12 0 96 6 0 9 11 0 0 0 0 0 0
   8      16 sdb 20 0 160 5 22 0 176 6 0 9 11 0 0 0 0 0 0
"""

STATUS = {
    "pools": {
        "tank": {
            "name": "tank",
            "state": "ONLINE",
            "pool_guid": 42,
            "error_count": 0,
            "vdevs": {
                "tank": {
                    "name": "tank",
                    "vdev_type": "root",
                    "guid": 42,
                    "class": "normal",
                    "state": "ONLINE",
                    "vdevs": {
                        "/dev/sda1": {
                            "name": "/dev/sda1",
                            "vdev_type": "disk",
                            "guid": 7,
                            "path": "/dev/sda1",
                            "class": "normal",
                            "state": "ONLINE",
                        }
                    },
                }
            },
        }
    }
}

TEXT = """\
  pool: tank
 state: ONLINE
config:

\tNAME        STATE     READ WRITE CKSUM
\ttank        ONLINE       0     0     0
\t  sda1      ONLINE       0     0     0

errors: No known data errors
"""

CONFIG = {
    "name": "tank",
    "version": 5000,
    "state": 0,
    "txg": 4,
    "pool_guid": 42,
    "error_count": 0,
    "vdev_tree": {
        "type": "root",
        "id": 0,
        "guid": 42,
        "vdev_stats": [10**9, 7, *[0] * 46],
        "scan_stats": [1, 2, 100, 200, *[0] * 18],
        "children": [
            {
                "type": "disk",
                "id": 0,
                "guid": 7,
                "path": "/dev/sda1",
                "vdev_stats": [10**9, 7, *[0] * 46],
            }
        ],
    },
}


def printed(stdout: str, code: int = 0, stderr: str = "") -> Completed:
    return Completed((), code, stdout, stderr)


class CannedRunner:
    """Answers by the longest prefix of the argument vector; counts the calls."""

    def __init__(self, answers: Mapping[tuple[str, ...], Any]) -> None:
        self.answers = dict(answers)
        self.asked: list[tuple[str, ...]] = []
        self.deadlines: list[float] = []
        self.stuck = True

    async def run(self, argv: Sequence[str], deadline: float) -> Completed:
        self.asked.append(tuple(argv))
        self.deadlines.append(deadline)
        fitting = [key for key in self.answers if tuple(argv[: len(key)]) == key]
        if not fitting:
            raise FileNotFoundError(2, "No such file or directory")
        answer = self.answers[max(fitting, key=len)]
        if answer == HANG:
            raise DeadlineError("zpool gave no answer", lambda: self.stuck)
        if isinstance(answer, Exception):
            raise answer
        return answer


class FakeProcess:
    """A long-running process in memory: ``respond`` maps a line written to lines printed."""

    def __init__(
        self,
        lines: Iterable[str] = (),
        respond: Callable[[str], Iterable[str]] = lambda line: (),
        ends: bool = False,
    ) -> None:
        self._queue: asyncio.Queue[str | None] = asyncio.Queue()
        self._respond = respond
        self.alive = True
        self.abandoned = False
        self.stderr = ""
        for line in lines:
            self._queue.put_nowait(line)
        if ends:
            self.end()

    async def readline(self) -> str | None:
        return await self._queue.get()

    def write(self, line: str) -> None:
        for each in self._respond(line):
            self._queue.put_nowait(each)

    def say(self, *lines: str) -> None:
        for line in lines:
            self._queue.put_nowait(line)

    def end(self) -> None:
        self.alive = False
        self._queue.put_nowait(None)

    def abandon(self) -> None:
        self.abandoned = True


class FakeChannel:
    """A libzfs helper in memory: ``respond`` maps a pool's name to the helper's output."""

    def __init__(
        self,
        said: Iterable[bytes] = (),
        respond: Callable[[str], Iterable[bytes]] = lambda pool: (),
        ends: bool = False,
    ) -> None:
        self._first = [*said, b""] if ends else [*said]
        self._respond = respond
        self._heard: Callable[[memoryview], None] = lambda data: None
        self.alive = True
        self.abandoned = False
        self.stderr = ""
        self.written: list[bytes] = []

    def start(self, heard: Callable[[memoryview], None]) -> None:
        self._heard = heard
        self.say(*self._first)

    def write(self, data: bytes) -> None:
        self.written.append(data)
        for pool in requested(data):
            self.say(*self._respond(pool))

    def say(self, *chunks: bytes) -> None:
        for chunk in chunks:
            asyncio.get_running_loop().call_soon(self._tell, chunk)

    def _tell(self, chunk: bytes) -> None:
        if not self.abandoned:
            self.alive = self.alive and bool(chunk)
            self._heard(memoryview(chunk))

    def abandon(self) -> None:
        self.abandoned = True


class FakeSpawner:
    """Starts a new fake process, chosen by words in the argument vector."""

    def __init__(self, makers: Mapping[str, Callable[[], Any]]) -> None:
        self._makers = makers
        self.started: list[Any] = []
        self.asked: list[tuple[str, ...]] = []
        self.settled = False

    async def spawn(self, argv: Sequence[str], cwd: Path | None = None) -> Any:
        self.asked.append(tuple(argv))
        for word, make in self._makers.items():
            if any(word in each for each in argv):
                self.started.append(make())
                return self.started[-1]
        raise FileNotFoundError(2, "No such file or directory")

    async def connect(self, argv, heard, cwd=None) -> FakeChannel:
        channel = await self.spawn(argv, cwd)
        channel.start(heard)
        return channel

    async def settle(self, patience: float) -> None:
        self.settled = True


def helper(answer: Callable[[str], Mapping[str, Any] | None]) -> FakeChannel:
    """Return a libzfs helper that answers each pool with ``answer``; None for no answer at all."""

    def respond(pool: str) -> Iterable[bytes]:
        found = answer(pool)
        return () if found is None else (encoded({"pool": pool, **found}),)

    return FakeChannel([encoded({"ready": "/dev/zfs"})], respond)


def machine(path: Path, pools: Mapping[str, str], version: str = "2.3.9-1") -> Path:
    """Create the files of /proc and /sys that a live source reads; returns their root directory."""
    (path / "dev").mkdir(exist_ok=True)
    (path / "dev/zfs").touch()
    (path / "dev/sda1").touch()
    (path / "proc/spl/kstat/zfs").mkdir(parents=True, exist_ok=True)
    (path / "proc/diskstats").write_text(DISKSTATS)
    (path / "proc/spl/kstat/zfs/arcstats").write_text("name type data\nsize 4 4096\n")
    (path / "proc/sys/kernel/random").mkdir(parents=True, exist_ok=True)
    (path / "proc/sys/kernel/random/boot_id").write_text("b00t\n")
    (path / "sys/class/block/sda1").mkdir(parents=True, exist_ok=True)
    (path / "sys/module/zfs").mkdir(parents=True, exist_ok=True)
    (path / "sys/module/zfs/version").write_text(f"{version}\n")
    for name, state in pools.items():
        set_state(path, name, state)
    return path


def set_state(path: Path, pool: str, state: str) -> None:
    (path / f"proc/spl/kstat/zfs/{pool}").mkdir(exist_ok=True)
    (path / f"proc/spl/kstat/zfs/{pool}/state").write_text(f"{state}\n")


OBJSET = """\
63 1 0x01 24 6832 {created} {read_at}
name                            type data
dataset_name                    7    {name}
writes                          4    {writes}
nwritten                        4    {nwritten}
reads                           4    {reads}
nread                           4    {nread}
nunlinks                        4    0
nunlinked                       4    0
zil_commit_count                4    7
"""
"""Kstat of a dataset since OpenZFS 2.2; before that it ends with ``nunlinked``."""


def set_objset(
    path: Path, pool: str, name: str, *, read_at: int = 0, created: int = 100, count: int = 0
) -> Path:
    """Write the kstat of a dataset, with as many reads of a byte, and twice as many writes."""
    counts = {"reads": count, "nread": count, "writes": 2 * count, "nwritten": 2 * count}
    said = OBJSET.format(name=name, created=created, read_at=read_at * 10**9, **counts)
    number = crc32(name.encode(errors="surrogateescape"))
    file = path / f"proc/spl/kstat/zfs/{pool}/objset-0x{number:x}"
    file.write_bytes(said.encode(errors="surrogateescape"))
    return file


def system(
    root: Path,
    runner: CannedRunner | None = None,
    spawner: FakeSpawner | None = None,
    deadline: float = 0.2,
    steady: Callable[[], float] = lambda: 50.0,
    history: CannedRunner | None = None,
) -> System:
    clocks = Clocks(wall=lambda: 1000.0, steady=steady)
    made = runner or CannedRunner({}), spawner or FakeSpawner({})
    return System(*made, root, clocks, deadline=deadline, history=history)


async def gone(alive: Callable[[], bool]) -> None:
    """Wait until a killed process is reaped, so that nothing of it outlives the test."""
    async with asyncio.timeout(30):
        while alive():
            await asyncio.sleep(0)
    await settle()


async def settle() -> None:
    """Run some turns of the loop, in which the pipes of abandoned processes close."""
    for _ in range(5):
        await asyncio.sleep(0)
