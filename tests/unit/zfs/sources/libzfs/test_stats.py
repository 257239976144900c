"""A pool's config by the one ioctl, with a kernel in Python on real memory."""

from __future__ import annotations

import ctypes
import errno
from pathlib import Path
from typing import Any

import pytest

from tests.unit.zfs.sources.libzfs.nvpack import pack, pool, vdev
from zconsole.zfs.sources.libzfs.nvlist import ConfigReader, assembled
from zconsole.zfs.sources.libzfs.stats import (
    COOKIE,
    COOKIE_AT,
    DESTINATION,
    DESTINATION_AT,
    LARGEST,
    POOL_STATS,
    KernelStats,
    kernel_stats,
)


class Kernel:
    """``zfs_ioc_pool_stats`` and ``put_nvlist`` (module/zfs/zfs_ioctl.c)."""

    def __init__(self) -> None:
        self.config: dict[str, Any] = pool(vdev(7))
        self.error = self.cookie = self.calls = 0
        self.claims: int | None = None

    def __call__(self, device: int, request: int, command: bytearray) -> int:
        self.calls += 1
        assert request == POOL_STATS
        assert bytes(command[:4096]).rstrip(b"\0") == b"tank"
        if self.error:
            raise OSError(self.error, "")
        data = bytes(pack(self.config))
        where, room = DESTINATION.unpack_from(command, DESTINATION_AT)
        DESTINATION.pack_into(command, DESTINATION_AT, where, self.claims or len(data))
        if self.claims or len(data) > room:
            raise OSError(errno.ENOMEM, "")
        ctypes.memmove(where, data, len(data))
        COOKIE.pack_into(command, COOKIE_AT, self.cookie)
        return 0


@pytest.fixture
def kernel() -> Kernel:
    return Kernel()


@pytest.fixture
def stats(kernel: Kernel) -> KernelStats:
    return KernelStats(b"tank", Path("/dev/null"), kernel)


def test_the_config_is_what_the_kernel_packed(kernel: Kernel, stats: KernelStats) -> None:
    for guid in (7, 8):
        kernel.config = pool(vdev(guid))
        packed = stats.packed()
        assert packed is not None
        form, values = ConfigReader().read(packed)
        assert form is not None
        found = assembled(form, iter(values))
        assert (found["name"], found["vdev_tree"]["children"][0]["guid"]) == ("tank", guid)
    assert kernel.calls == 2


def test_the_buffer_grows_with_the_config_and_stays(kernel: Kernel, stats: KernelStats) -> None:
    kernel.config = pool(*(vdev(100 + number) for number in range(300)))
    assert stats.packed() is not None
    assert stats.packed() is not None
    assert kernel.calls == 3


@pytest.mark.parametrize(
    ("state", "calls"),
    [
        ({"error": errno.ENOENT}, 1),
        ({"error": errno.EACCES}, 1),
        ({"cookie": errno.ENXIO}, 1),
        ({"claims": LARGEST + 1}, 1),
        ({"claims": 1 << 20}, 2),  # still too small with the room it asked for
    ],
    ids=str,
)
def test_anything_but_success_is_no_answer(
    kernel: Kernel, stats: KernelStats, state: dict[str, int], calls: int
) -> None:
    vars(kernel).update(state)
    assert stats.packed() is None
    assert kernel.calls == calls
    vars(kernel).update(dict.fromkeys(state, 0))
    assert stats.packed() is not None


@pytest.mark.parametrize("name", ["", "a" * 4096])
def test_what_is_no_name_is_not_asked_for(name: str) -> None:
    assert kernel_stats(name, Path("/dev/null")) is None


def test_without_the_device_there_is_nobody_to_ask(tmp_path: Path) -> None:
    assert kernel_stats("tank", tmp_path / "zfs") is None


def test_another_device_answers_nothing() -> None:
    stats = kernel_stats("tank", Path("/dev/null"))
    assert stats is not None
    assert stats.packed() is None
