"""Packed configs of real pools, and a helper process that reads them instead of the kernel's.

There is an archive for each release, ``tests/fixtures/libzfs/VERSION.tar.xz``, made by
`tests.vm.packed`. For each state of a pool it has ``STATE/1.nvlist``, as the kernel packed it, and
``STATE/1.json``, the rest of the raw form of the same moment; then ``2`` some seconds later, if the
pool still answered.

``python -m tests.lock.kernel`` is the helper. It takes ``VERSION/STATE`` as a pool's name, and
answers with the configs of that state in turn, repeatedly; for ``VERSION/all`` with all of them, as
if one pool became another each time.
"""

from __future__ import annotations

import ctypes
import errno
import io
import itertools
import json
import os
import sys
import tarfile
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from zconsole.zfs.sources.kernel.helper import DESTINATION, DESTINATION_AT, Helper, KernelPool

ARCHIVES = Path(__file__).parents[1] / "fixtures" / "libzfs"
ALL = "all"
COMMAND = (sys.executable, "-m", "tests.lock.kernel")


class Packed(NamedTuple):
    """A pool at one moment: its packed config, and the raw form without it."""

    config: bytes
    rest: Mapping[str, Any]


@cache
def states(archive: Path) -> Mapping[str, Sequence[Packed]]:
    """Return the moments of each state that an archive holds."""
    with tarfile.open(archive) as tar:
        files = {entry.name: tar.extractfile(entry) for entry in tar}
        read = {name: file.read() for name, file in files.items() if file}
    found: dict[str, list[Packed]] = {}
    for name in sorted(name for name in read if name.endswith(".nvlist")):
        rest = json.loads(read[name.replace(".nvlist", ".json")])
        found.setdefault(Path(name).parent.name, []).append(Packed(read[name], rest))
    return found


def write(archive: Path, found: Mapping[str, Sequence[Packed]]) -> None:
    """Write an archive; the same states give the same bytes."""
    with tarfile.open(archive, "w:xz", preset=9) as tar:
        for state, moments in sorted(found.items()):
            for number, packed in enumerate(moments, 1):
                for suffix, data in (
                    ("json", json.dumps(packed.rest, sort_keys=True).encode()),
                    ("nvlist", packed.config),
                ):
                    entry = tarfile.TarInfo(f"{state}/{number}.{suffix}")
                    entry.size = len(data)
                    tar.addfile(entry, io.BytesIO(data))
    states.cache_clear()


def moments(name: str) -> Sequence[Packed]:
    """Return the moments of ``VERSION/STATE``, or of all states of a version in order of time."""
    release, _, state = name.partition("/")
    found = states(ARCHIVES / f"{release}.tar.xz")
    every = found.values() if state == ALL else [found[state]]
    return sorted(itertools.chain(*every), key=lambda moment: moment.rest["t"])


class Ioctl:
    """A fake ioctl(2) on /dev/zfs that returns packed configs as ZFS_IOC_POOL_STATS does."""

    def __init__(self, configs: Sequence[bytes]) -> None:
        self._configs = itertools.cycle(configs)
        self._next = next(self._configs)

    def __call__(self, _device: int, _request: int, command: bytearray) -> int:
        """Write the next config to the command's destination, or set the size that it needs."""
        address, room = DESTINATION.unpack_from(command, DESTINATION_AT)
        size = len(self._next)
        DESTINATION.pack_into(command, DESTINATION_AT, address, size)
        if size > room:
            raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))
        ctypes.memmove(address, self._next, size)
        self._next = next(self._configs)
        return 0


def _opened(name: str) -> KernelPool:
    return KernelPool(name, -1, Ioctl([moment.config for moment in moments(name)]))


def _leave(error: threading.ExceptHookArgs) -> None:
    """End the process when a thread dies; otherwise nobody would notice for long."""
    print(repr(error.exc_value), file=sys.stderr, flush=True)
    os._exit(1)


if __name__ == "__main__":
    threading.excepthook = _leave
    helper = Helper(0, os.dup(1), lambda name: _opened(name).read)
    helper.say({"ready": "packed configs"})
    helper.serve(lambda: os._exit(0))
