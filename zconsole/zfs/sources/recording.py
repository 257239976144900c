"""Recordings: one line of JSON a pool and sample, as its source gave it, written and read again.

Without an event loop, which reports need none of.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, cast

from zconsole.errors import NotFoundError, UnavailableError, UsageError, ZconsoleError
from zconsole.system.host import is_root
from zconsole.system.records import parse_json
from zconsole.system.safe_path import StateError, directory
from zconsole.zfs.decode.values import POOL_LINE, is_time
from zconsole.zfs.raw import FORM_TYPES, FORMS, Raw, plain
from zconsole.zfs.sources.open_text import LONGEST_LINE

MOST_MEMORY = 128 * 2**20
"""Bytes that the values of a JSON document may take. Three of them are in memory at a time: the
one that is shown, the one of the next round and the one that is being read."""
MOST_POOLS = 1000
"""Pools of a machine or a recording; what names more is neither. Something is kept of each."""
_CONTAINER_BYTES = 200
_VALUE_BYTES = 48
"""What Python takes for an array or object, which has its own room to grow, and for a value."""

_OBJECTS = frozenset({"names", "message", "host", "devices", "disks", "history"})
"""Keys beyond the format's own whose values are objects."""
_OURS = ("gap", "place")
"""Keys that say what became of a line here, never what another recorder wrote."""


class NotRawError(ValueError):
    """A line is not a raw form; the text says why. ``t`` and ``pool`` are what it has of these."""

    def __init__(self, why: str, t: float | None = None, pool: str | None = None) -> None:
        super().__init__(why)
        self.t = t
        self.pool = pool


def memory_of(text: str) -> int:
    """Bytes that the values of a JSON text take at most, by what separates them."""
    containers = text.count("[") + text.count("{")
    return _CONTAINER_BYTES * containers + _VALUE_BYTES * text.count(",")


def raw_of(line: str | None) -> Raw:
    """A line of a recording as a raw form. Raises NotRawError.

    None is a line that is too long (``open_text.lines``).
    """
    if line is None:
        raise NotRawError(f"longer than {LONGEST_LINE >> 20} MiB")
    if memory_of(line) > MOST_MEMORY:
        raise NotRawError("too many values")
    try:
        found: Any = parse_json(line)
    except ValueError:
        raise NotRawError("not JSON") from None
    if not isinstance(found, dict):
        raise NotRawError("not a JSON object")
    found = {key: value for key, value in found.items() if _is_ours(key, value)}
    if not is_time(found.get("t")):
        raise NotRawError("no time t", pool=found.get("pool"))
    if not any(isinstance(found.get(form), kind) for form, kind in FORM_TYPES.items()):
        raise NotRawError("none of " + ", ".join(FORMS), found["t"], found.get("pool"))
    if any(not isinstance(found.get(form, kind()), kind) for form, kind in FORM_TYPES.items()):
        raise NotRawError("a form of another type", found["t"], found.get("pool"))
    return cast("Raw", found)


def is_raw(line: str | None) -> bool:
    """Whether it is a line of a recording."""
    if line is None or '"t"' not in line or not line.lstrip().startswith("{"):
        return False
    try:
        raw_of(line)
    except NotRawError:
        return False
    return True


def pool_name(raw: Raw) -> str:
    """The pool a raw form is about; empty when it does not say or has several."""
    if "pool" in raw:
        return str(raw["pool"])
    if "libzfs" in raw:
        return str(raw["libzfs"].get("name", ""))
    if "status" in raw:
        pools = raw["status"].get("pools")
        names = list(pools) if isinstance(pools, dict) else []
    else:
        names = POOL_LINE.findall(raw.get("text", ""))
    return str(names[0]) if len(names) == 1 else ""


def _is_ours(key: str, value: object) -> bool:
    """Whether a key means what zconsole means by it.

    Those it added to the format another recorder may use for something else: its host's name.
    """
    if value is None or key in _OURS:
        return False
    if key in ("events", "sitting_out", "autosit", "enclosures"):
        rows: list[Any] = value if isinstance(value, list) else [None]
        return all(isinstance(row, dict) for row in rows) and (
            key != "events" or all(is_time(event.get("t")) for event in rows)
        )
    if key in ("clock", "began"):
        return is_time(value)
    if key == "pool":
        return isinstance(value, str)
    if key == "tunables":
        return isinstance(value, dict) and all(isinstance(n, int) for n in value.values())
    return key not in _OBJECTS or isinstance(value, dict)


class Gaps:
    """Counts the samples of a recording that are missing; remembers what was wrong first."""

    def __init__(self) -> None:
        self.count = 0
        self.first = ""
        """Where the first one is, and why it could not be read."""

    def add(self, why: str) -> None:
        """Count one; ``why`` says where it is and what is wrong."""
        self.first = self.first or why
        self.count += 1

    @property
    def words(self) -> str:
        """All of them in one line; empty when nothing is missing."""
        if not self.count:
            return ""
        many = "1 gap" if self.count == 1 else f"the first of {self.count} gaps"
        return f"{self.first} ({many} in the recording)"


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
            # Behind the last newline.
            end, newline = size, -1
            while end > 0 and newline < 0:
                start = max(0, end - 65536)
                newline = os.pread(existing.fileno(), end - start, start).rfind(b"\n")
                end = start + newline + 1
        if end != size:
            os.ftruncate(file, end)


def _others_write(place: Path) -> bool:
    """Whether another user can change a name in a directory. Raises FileNotFoundError."""
    try:
        with directory(place):
            return False
    except StateError:
        return True
