"""Reading files below a root that may be another mount namespace's, without being led astray."""

from __future__ import annotations

import os
import stat
from pathlib import Path

LARGEST = 4 * 2**20
"""Bytes of a configuration file or table; a longer one is not what it claims to be."""
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


class UnreadableError(Exception):
    """A file is there and cannot be read; the text says why."""


class Tree:
    """The files below ``root``. Paths are absolute, as processes with that root name them."""

    def __init__(self, root: Path, follow: bool = True) -> None:
        """Without ``follow`` no symbolic link is followed.

        In another mount namespace an absolute one would lead back into this one.
        """
        self.root = root
        self._follow = follow

    def text(self, path: str) -> str | None:
        """What a regular file holds; None where there is none. Raises UnreadableError."""
        file = self._found(path)
        if file is None:
            return None
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise UnreadableError(f"{path}: not a file")
            with open(file, "rb", closefd=False) as stream:
                data = stream.read(LARGEST + 1)
        except OSError as error:
            raise UnreadableError(f"{path}: {error.strerror}") from None
        finally:
            os.close(file)
        if len(data) > LARGEST:
            raise UnreadableError(f"{path}: larger than {LARGEST} bytes")
        return data.decode("utf-8", "surrogateescape")

    def names(self, path: str) -> list[str]:
        """The names in a directory, sorted; none where there is none. Raises UnreadableError."""
        directory = self._found(path, os.O_DIRECTORY)
        if directory is None:
            return []
        try:
            return sorted(os.listdir(directory))  # noqa: PTH208 - of a descriptor
        except OSError as error:
            raise UnreadableError(f"{path}: {error.strerror}") from None
        finally:
            os.close(directory)

    def _found(self, path: str, flags: int = 0) -> int | None:
        try:
            return self._open(path, flags)
        except FileNotFoundError:
            return None
        except OSError as error:  # a link that is not followed may be ENOTDIR as well
            raise UnreadableError(f"{path}: {error.strerror}") from None

    def _open(self, path: str, flags: int) -> int:
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
