"""Run inside the guest: two samples of a pool through libzfs, and the kernel's packed configs.

``python -m tests.vm.inside.packed POOL SECONDS`` prints a line per sample, the second that much
after the first: the raw form without the config, and the config in hexadecimal. A suspended pool,
which must not be asked again, gives one.
"""

from __future__ import annotations

import asyncio
import ctypes
import fcntl
import json
import os
import sys
from dataclasses import replace

from tests.vm.inside.forms import DEADLINE
from zconsole.zfs.raw import plain
from zconsole.zfs.sources.kernel.helper import DESTINATION, DESTINATION_AT, DEVICE, KernelPool
from zconsole.zfs.sources.live import LiveSource, this_system


class Kept:
    """An ioctl(2) on /dev/zfs that keeps the config with which the kernel answers."""

    config = b""

    def __call__(self, device: int, request: int, command: bytearray) -> int:
        """Call the kernel and keep its answer."""
        answer: int = fcntl.ioctl(device, request, command)
        self.config = ctypes.string_at(*DESTINATION.unpack_from(command, DESTINATION_AT))
        return answer


async def main(pool: str, seconds: float) -> None:
    """Print both samples."""
    source = LiveSource([pool], prefer="libzfs", system=replace(this_system(), deadline=DEADLINE))
    kept = Kept()
    kernel = KernelPool(pool, os.open(DEVICE, os.O_RDWR), kept)
    try:
        for pause in (0.0, seconds):
            await asyncio.sleep(pause)
            (raw,) = await source.sample()
            if raw.get("source") == "libzfs" and kernel.packed():
                rest = {key: value for key, value in raw.items() if key != "libzfs"}
                print(json.dumps([rest, kept.config.hex()], default=plain))
    finally:
        await source.aclose()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], float(sys.argv[2])))
