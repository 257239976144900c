"""The one call of the kernel, and the buffer that its answer comes in."""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path
from typing import Any

import pytest

from tests.unit.zfs.sources.libzfs.nvpack import pack, pool, vdev
from zconsole.zfs.sources.libzfs.helper import (
    DESTINATION,
    DESTINATION_AT,
    LARGEST,
    POOL_STATS,
    KernelPool,
)
from zconsole.zfs.sources.libzfs.nvlist import NvlistError, assembled


class Kernel:
    """``zfs_ioc_pool_stats`` and ``put_nvlist`` (module/zfs/zfs_ioctl.c)."""

    def __init__(self) -> None:
        self.config: dict[str, Any] = pool(vdev(7))
        self.error = self.calls = 0
        self.claims: int | None = None

    def __call__(self, device: int, request: int, command: bytearray) -> int:
        self.calls += 1
        assert request == POOL_STATS
        assert bytes(command[:4096]).rstrip(b"\0") == b"tank"
        if self.error:
            raise OSError(self.error, os.strerror(self.error))
        data = bytes(pack(self.config))
        where, room = DESTINATION.unpack_from(command, DESTINATION_AT)
        DESTINATION.pack_into(command, DESTINATION_AT, where, self.claims or len(data))
        if self.claims or len(data) > room:
            raise OSError(errno.ENOMEM, "")
        ctypes.memmove(where, data, len(data))
        return 0


@pytest.fixture
def kernel() -> Kernel:
    return Kernel()


@pytest.fixture
def tank(kernel: Kernel) -> KernelPool:
    return KernelPool("tank", -1, kernel)


def test_the_config_is_what_the_kernel_packed(kernel: Kernel, tank: KernelPool) -> None:
    for guid in (7, 8):
        kernel.config = pool(vdev(guid))
        read = tank.read()
        assert read is not None
        form, values = read
        assert form is not None
        found = assembled(form, iter(values))
        assert (found["name"], found["vdev_tree"]["children"][0]["guid"]) == ("tank", guid)
    assert kernel.calls == 2
    assert tank.read()[0] is None, "the form holds as long as nothing but values moves"


def test_the_buffer_grows_with_the_config_and_stays(kernel: Kernel, tank: KernelPool) -> None:
    kernel.config = pool(*(vdev(100 + number) for number in range(300)))
    assert tank.read() is not None
    assert tank.read() is not None
    assert kernel.calls == 3


@pytest.mark.parametrize(
    ("state", "calls"),
    [
        ({"error": errno.EACCES}, 1),
        ({"error": errno.EIO}, 1),
        ({"claims": LARGEST + 1}, 1),
        ({"claims": 1 << 20}, 3),  # still too small with the room it asked for
    ],
    ids=str,
)
def test_what_the_kernel_refuses_is_an_error(
    kernel: Kernel, tank: KernelPool, state: dict[str, int], calls: int
) -> None:
    vars(kernel).update(state)
    with pytest.raises(OSError, match=r"\w"):
        tank.read()
    assert kernel.calls == calls
    vars(kernel).update(dict.fromkeys(state, 0))
    assert tank.read() is not None


def test_a_pool_that_the_kernel_does_not_know_is_gone_until_it_does(
    kernel: Kernel, tank: KernelPool
) -> None:
    kernel.error = errno.ENOENT
    assert tank.read() is None
    kernel.error = 0
    assert tank.read() is not None


def test_another_device_gives_no_config() -> None:
    with Path(os.devnull).open("rb") as device, pytest.raises(OSError, match="ioctl"):
        KernelPool("tank", device.fileno()).read()


def test_what_is_no_config_is_an_error() -> None:
    with pytest.raises(NvlistError):
        KernelPool("tank", -1, lambda *_: 0).read()
