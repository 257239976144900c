"""Writing a recording: one line of JSON a pool and sample, as its source gave it."""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

from zconsole.errors import NotFoundError, UnavailableError, UsageError, ZconsoleError
from zconsole.system.host import is_root
from zconsole.system.safe_path import StateError, directory
from zconsole.zfs.raw import FORMS, Raw, plain
from zconsole.zfs.sources.open_text import LONGEST_LINE
from zconsole.zfs.sources.recording_lines import is_raw

KERNEL_LINKS = ("/dev/fd/", "/dev/stdout", "/dev/stderr", "/proc/")
"""Links made by the kernel (``/dev/stdout``); root follows no others."""


def line_of(raw: Raw) -> str:
    """A raw form as JSON, with plain objects and lists."""
    return json.dumps(raw, separators=(",", ":"), default=plain)


class Recorder:
    """Appends samples to a recording; what was written stays readable whatever happens.

    A file that is there must be a recording, or empty; a line cut off by a crash is dropped.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._regular = True
        self._new = not Path(path).exists()
        self._file = self._open()

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None and self._new and self._regular and not os.fstat(self._file).st_size:
            with contextlib.suppress(OSError):
                Path(self._path).unlink()  # no pool to record: leave no empty file behind
        os.close(self._file)

    def write(self, raws: Iterable[Raw]) -> int:
        """Append each raw form that has a form; returns how many.

        Raises ZconsoleError when the disk refuses.
        """
        whole = [raw for raw in raws if any(form in raw for form in FORMS)]
        for raw in whole:
            self._append(line_of(raw).encode("ascii") + b"\n")
        return len(whole)

    def _append(self, line: bytes) -> None:
        """One whole line or nothing of it."""
        start = os.fstat(self._file).st_size if self._regular else 0
        try:
            left = memoryview(line)
            while left:
                left = left[os.write(self._file, left) :]
        except BrokenPipeError:
            raise
        except OSError as error:
            if self._regular:
                with contextlib.suppress(OSError):
                    os.ftruncate(self._file, start)
            raise ZconsoleError(f"{self._path}: {error.strerror}") from None

    def _open(self) -> int:
        if Path(self._path).is_dir():
            raise NotFoundError(f"{self._path} is a directory, not a file")
        try:
            file = os.open(self._path, self._flags(), 0o644)
        except FileNotFoundError:
            raise NotFoundError(f"{self._path}: no such directory") from None
        except PermissionError:
            raise UnavailableError(f"{self._path}: permission denied") from None
        except FileExistsError:
            raise ZconsoleError(
                f"{self._path} exists, and others may write to its directory: name a new file"
            ) from None
        except OSError as error:
            raise ZconsoleError(f"{self._path}: {error.strerror}") from None
        self._regular = stat.S_ISREG(os.fstat(file).st_mode)
        if self._regular:
            self._check(file)
        return file

    def _flags(self) -> int:
        """How to open it; a pipe or terminal cannot be read back."""
        path = Path(self._path)
        special = path.exists() and not path.is_file()
        flags = os.O_WRONLY if special else os.O_RDWR | os.O_CREAT
        if is_root() and not self._path.startswith(KERNEL_LINKS):
            # A link to another file or a pipe, put there and taken away again, is seen by no check.
            new = os.O_RDWR | os.O_CREAT | os.O_EXCL
            flags = (new if _others_write(path.parent) else flags) | os.O_NOFOLLOW
        return flags | os.O_APPEND | os.O_CLOEXEC

    def _check(self, file: int) -> None:
        """Refuse a file that is something else, and drop a last line that was cut off."""
        size = os.fstat(file).st_size
        if size == 0:
            return
        with os.fdopen(os.dup(file), "rb") as existing:
            first = existing.readline(LONGEST_LINE + 1).decode("utf-8-sig", "surrogateescape")
            if not is_raw(first):
                os.close(file)
                raise UsageError(f"{self._path} exists and is not a recording")
            end = _end_of_last_line(existing.fileno(), size)
        if end != size:
            os.ftruncate(file, end)


def _others_write(place: Path) -> bool:
    """Whether another user can change a name in a directory. Raises FileNotFoundError."""
    try:
        with directory(place):
            return False
    except StateError:
        return True


def _end_of_last_line(file: int, size: int) -> int:
    """The offset behind the last newline."""
    end = size
    while end > 0:
        start = max(0, end - 65536)
        newline = os.pread(file, end - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0
