"""Reading files below a root that may be another mount namespace's, without being led astray."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

LARGEST = 4 * 2**20
"""Bytes of a configuration file or table; a longer one is not what it claims to be."""
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


class Tree:
    """The files below ``root``. Paths are absolute, as processes with that root name them."""

    def __init__(self, root: Path, follow: bool = True) -> None:
        """Without ``follow`` no symbolic link is followed.

        In another mount namespace an absolute one would lead back into this one.
        """
        self.root = root
        self._follow = follow
        self.unread: list[str] = []
        """What is there and could not be read, and why."""

    def text(self, path: str) -> str | None:
        """What a regular file holds; None where there is none, or it is among ``unread``."""
        with self._noting(path):
            file = self._open(path)
            try:
                if not stat.S_ISREG(os.fstat(file).st_mode):
                    raise OSError(errno.EINVAL, "not a file")
                with open(file, "rb", closefd=False) as stream:
                    data = stream.read(LARGEST + 1)
            finally:
                os.close(file)
            if len(data) > LARGEST:
                raise OSError(errno.EFBIG, f"larger than {LARGEST} bytes")
            return data.decode("utf-8", "surrogateescape")
        return None

    def names(self, path: str) -> list[str]:
        """The names in a directory, sorted; none where there is none, or it is among ``unread``."""
        with self._noting(path):
            directory = self._open(path, os.O_DIRECTORY)
            try:
                return sorted(os.listdir(directory))  # noqa: PTH208 - of a descriptor
            finally:
                os.close(directory)
        return []

    @contextlib.contextmanager
    def _noting(self, path: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            pass
        except OSError as error:  # a link that is not followed may be ENOTDIR as well
            self.unread.append(f"{path}: {error.strerror}")

    def _open(self, path: str, flags: int = 0) -> int:
        if self._follow:
            return os.open(self.root / path.lstrip("/"), _FLAGS | flags)
        *above, name = path.strip("/").split("/")
        directory = os.open(self.root, _FLAGS | os.O_DIRECTORY)
        try:
            for part in above:
                below = os.open(part, _FLAGS | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
                os.close(directory)
                directory = below
            return os.open(name, _FLAGS | os.O_NOFOLLOW | flags, dir_fd=directory)
        finally:
            os.close(directory)
