from __future__ import annotations

import ctypes
import errno
from pathlib import Path
from typing import Any

import pytest

from tests.table import rows
from tests.unit.zfs.sources.libzfs.nvpack import pack, pool, vdev
from zconsole.zfs.sources.libzfs.library import (
    COOKIE,
    COOKIE_AT,
    DESTINATION,
    DESTINATION_AT,
    LARGEST,
    NATIVE,
    POOL_STATS,
    KernelStats,
    Library,
    LibraryUnusableError,
    LibzfsPool,
    kernel_stats,
)
from zconsole.zfs.sources.libzfs.nvlist import ConfigReader, NvlistError, assembled

EINVAL = 22


class FakeLibzfs:
    """The functions of libzfs and libnvpair a pool is read with, on real memory."""

    def __init__(self) -> None:
        self.config: dict[str, Any] | None = pool(vdev(7))
        self.handle: int | None = 1
        self.imported = True
        self.opened = self.closed = self.sized = 0
        self.packs = True
        self.library = Library(
            "libzfs.so.6",
            {
                "libzfs_init": lambda: self.handle,
                "zpool_open_canfail": self._open,
                "zpool_close": self._close,
                "zpool_refresh_stats": self._refresh,
                "zpool_get_config": lambda handle, old: self.config and 0x1000,
                "nvlist_size": self._size,
                "nvlist_pack": self._pack,
            },
        )

    def _open(self, handle, name):
        assert (handle, name) == (1, b"tank")
        self.opened += 1
        return 2 if self.imported else None

    def _close(self, handle):
        self.closed += 1

    def _refresh(self, handle, missing):
        ctypes.cast(missing, ctypes.POINTER(ctypes.c_int))[0] = int(not self.imported)
        return 0

    def _size(self, nvlist, size, encoding):
        assert (nvlist, encoding) == (0x1000, NATIVE)
        self.sized += 1
        ctypes.cast(size, ctypes.POINTER(ctypes.c_size_t))[0] = len(pack(self.config))
        return 0

    def _pack(self, nvlist, buffer, length, encoding, flag):
        """See nvlist_pack: into the buffer it is given, EINVAL where that is too small."""
        assert (nvlist, encoding) == (0x1000, NATIVE)
        data = bytes(pack(self.config))
        room = ctypes.cast(length, ctypes.POINTER(ctypes.c_size_t))[0]
        if len(data) > room or not self.packs:
            return EINVAL
        ctypes.memmove(ctypes.cast(buffer, ctypes.POINTER(ctypes.c_void_p))[0], data, len(data))
        return 0


def read(reader: LibzfsPool) -> dict[str, Any] | None:
    """A config with a form of its own."""
    found = reader.read()
    if found is None:
        return None
    form, values = found
    assert form is not None
    return assembled(form, iter(values))


def test_a_pool_is_opened_once_and_again_after_it_went_away():
    fake = FakeLibzfs()
    reader = LibzfsPool(fake.library, "tank")
    assert read(reader)["name"] == "tank"
    assert reader.read()[0] is None
    fake.imported = False
    assert reader.read() is None
    assert reader.read() is None
    fake.imported = True
    assert reader.read() is not None
    assert (fake.opened, fake.closed) == (3, 1)


def test_the_buffer_grows_with_the_config_and_only_then():
    fake = FakeLibzfs()
    reader = LibzfsPool(fake.library, "tank")
    for disks, sized in ((1, 1), (2, 1), (100, 2), (100, 2), (3, 2)):
        fake.config = pool(*(vdev(100 + n) for n in range(disks)))
        found = reader.read()
        assert found is not None
        assert len(found[1]) == 2 + disks
        assert fake.sized == sized


def test_a_config_that_cannot_be_packed_is_refused():
    fake = FakeLibzfs()
    fake.packs = False
    with pytest.raises(NvlistError, match=f"nvlist_pack answered {EINVAL}"):
        LibzfsPool(fake.library, "tank").read()


def test_a_pool_without_a_config_is_not_imported():
    fake = FakeLibzfs()
    fake.config = None
    assert LibzfsPool(fake.library, "tank").read() is None


def test_libzfs_that_does_not_initialise_is_unusable():
    fake = FakeLibzfs()
    fake.handle = None
    with pytest.raises(LibraryUnusableError, match="libzfs_init"):
        LibzfsPool(fake.library, "tank").read()


class Direct:
    """A kernel that is asked directly."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)

    def packed(self) -> memoryview | None:
        return self.answers.pop(0)


def test_the_kernel_is_asked_first_and_libzfs_for_what_it_does_not_answer():
    fake = FakeLibzfs()
    kernel = Direct(pack(pool(vdev(8))), None, memoryview(b"no nvlist at all"), pack(pool(vdev(8))))
    reader = LibzfsPool(fake.library, "tank", kernel)
    guids = [read(reader)["vdev_tree"]["children"][0]["guid"] for _ in range(2)]
    assert guids == [8, 7]
    for _ in range(2):  # what is no config is never asked for again
        found = reader.read()
        assert found is not None
    assert len(kernel.answers) == 1


def test_a_pool_that_libzfs_does_not_know_is_not_asked_of_the_kernel():
    fake = FakeLibzfs()
    fake.imported = False
    assert LibzfsPool(fake.library, "tank", Direct()).read() is None


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


@rows("name", ["", "a" * 4096])
def test_what_is_no_name_is_not_asked_for(name: str) -> None:
    assert kernel_stats(name, Path("/dev/null")) is None


def test_without_the_device_there_is_nobody_to_ask(tmp_path: Path) -> None:
    assert kernel_stats("tank", tmp_path / "zfs") is None


def test_another_device_answers_nothing() -> None:
    stats = kernel_stats("tank", Path("/dev/null"))
    assert stats is not None
    assert stats.packed() is None
