"""Leases: what is said where a filesystem grants none."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from zconsole.rebalance.engine.item import UnsupportedError
from zconsole.rebalance.engine.leases import NO_LEASES, take_lease
from zconsole.rebalance.engine.syscalls import SOURCE, Sys


class Unleased(Sys):
    """System calls of a filesystem without leases."""

    def lease(self, fd: int, kind: int) -> None:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))


@pytest.mark.parametrize(
    ("version", "mended"), [((2, 4, 1), "2.4.2"), ((2, 3, 6), "2.3.7"), ((2, 4, 2), ""), ((), "")]
)
def test_a_copy_without_leases_names_the_release_that_grants_them(
    tmp_path: Path, version: tuple[int, ...], mended: str
) -> None:
    (tmp_path / "a").write_bytes(b"a")
    fd = os.open(tmp_path / "a", SOURCE)
    try:
        with pytest.raises(UnsupportedError) as refused:
            take_lease(Unleased(), fd, False, version)
        assert take_lease(Unleased(), fd, True, version) is False
    finally:
        os.close(fd)
    said = str(refused.value)
    assert said.startswith(NO_LEASES)
    assert (f"(mended in {mended})" in said) == bool(mended)
    assert ("OpenZFS" in said) == bool(mended)
