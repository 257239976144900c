from __future__ import annotations

import ctypes
from typing import Any

import pytest

from tests.unit.zfs.sources.libzfs.nvpack import pack, pool, vdev
from zconsole.zfs.sources.libzfs.library import NATIVE, Library, LibraryUnusableError, LibzfsPool
from zconsole.zfs.sources.libzfs.nvlist import NvlistError, assembled

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
