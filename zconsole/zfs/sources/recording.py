"""Recordings: one line of JSON per pool and sample, as its source returned it; reading and writing.

Needs no event loop, so that reports can use it.
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
"""Bytes that the values of a JSON document may take. Up to three documents are in memory at a time:
the one shown, the one of the next round and the one being read."""
MOST_POOLS = 1000
"""Pools of a machine or a recording; more than this is damage. Some state is kept for each."""
_CONTAINER_BYTES = 200
_VALUE_BYTES = 48
"""Memory that Python takes for an array or object, with room to grow, and for a value."""

_OBJECTS = frozenset({"names", "message", "host", "devices", "disks", "history", "volumes"})
"""Keys, not part of the base format, whose values must be objects."""
_OURS = ("gap", "place")
"""Keys that zconsole itself sets while reading; they are ignored if they occur in a file."""


PRINTED = "a sample printed by zconsole --json, which is not raw"
MADE_BY = "zconsole record FILE and zconsole demo --record FILE make recordings"


class NotRawError(ValueError):
    """A line is not a raw form; the text says why.

    ``t`` and ``pool`` are its values, if it has them.
    """

    def __init__(self, why: str, at: float | None = None, pool: str | None = None) -> None:
        super().__init__(why)
        self.t = at
        self.pool = pool


def memory_of(text: str) -> int:
    """Return an upper bound of the bytes that the values of a JSON text take, by its delimiters."""
    containers = text.count("[") + text.count("{")
    return _CONTAINER_BYTES * containers + _VALUE_BYTES * text.count(",")


def raw_of(line: str | None) -> Raw:
    """Parse a line of a recording as a raw form. Raises NotRawError.

    ``line`` is None if it was too long (``open_text.lines``).
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
        why = PRINTED if "topology" in found else "none of " + ", ".join(FORMS)
        raise NotRawError(why, found["t"], found.get("pool"))
    if any(not isinstance(found.get(form, kind()), kind) for form, kind in FORM_TYPES.items()):
        raise NotRawError("a form of another type", found["t"], found.get("pool"))
    return cast("Raw", found)


def is_raw(line: str | None) -> bool:
    """Return whether ``line`` is a line of a recording."""
    if line is None or '"t"' not in line or not line.lstrip().startswith("{"):
        return False
    try:
        raw_of(line)
    except NotRawError:
        return False
    return True


def pool_name(raw: Raw) -> str:
    """Return the name of the pool in a raw form; empty if it has none or several."""
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
    """Return whether a key has the meaning and type that zconsole gives it.

    Another recorder may use the keys that zconsole added to the format for something else, such as
    the name of its host.
    """
    if value is None or key in _OURS:
        return False
    if key in ("events", "sitting_out", "autosit", "enclosures", "objsets"):
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
    """Counts the missing samples of a recording, and keeps the first reason."""

    def __init__(self) -> None:
        self.count = 0
        self.first = ""
        """Position of the first gap and why it could not be read."""

    def add(self, why: str) -> None:
        """Count one gap; ``why`` says where it is and what is wrong."""
        self.first = self.first or why
        self.count += 1

    @property
    def words(self) -> str:
        """Summary of all gaps in one line; empty if there are none."""
        if not self.count:
            return ""
        many = "1 gap" if self.count == 1 else f"the first of {self.count} gaps"
        return f"{self.first} ({many} in the recording)"


KERNEL_LINKS = ("/dev/fd/", "/dev/stdout", "/dev/stderr", "/proc/")
"""Links made by the kernel (``/dev/stdout``); root follows no others."""


def line_of(raw: Raw) -> str:
    """Return a raw form as JSON, with plain objects and lists."""
    return json.dumps(raw, separators=(",", ":"), default=plain)


class Recorder:
    """Appends samples to a recording; whatever happens, what was written stays readable.

    An existing file must be a recording or empty; a line cut off by a crash is removed.
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
        """Append each raw form that holds a pool's state; return how many were written.

        Raises ZconsoleError if the write fails.
        """
        whole = [raw for raw in raws if any(form in raw for form in FORMS)]
        for raw in whole:
            # json.dumps escapes everything else, including surrogates of names that are not UTF-8.
            self._append(line_of(raw).encode("ascii") + b"\n")
        return len(whole)

    def _append(self, line: bytes) -> None:
        """Write one whole line or none of it."""
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
        """Return the flags for os.open.

        A pipe or terminal is write-only, as it cannot be read back.
        """
        path = Path(self._path)
        special = path.exists() and not path.is_file()
        flags = os.O_WRONLY if special else os.O_RDWR | os.O_CREAT
        if is_root() and not self._path.startswith(KERNEL_LINKS):
            # A check before opening would miss a link to another file or pipe that another user
            # puts there for a moment: refuse links, and in a shared directory existing files.
            new = os.O_RDWR | os.O_CREAT | os.O_EXCL
            flags = (new if _others_write(path.parent) else flags) | os.O_NOFOLLOW
        return flags | os.O_APPEND | os.O_CLOEXEC

    def _check(self, file: int) -> None:
        """Refuse a file that is not a recording, and remove a last line that was cut off."""
        size = os.fstat(file).st_size
        if size == 0:
            return
        with os.fdopen(os.dup(file), "rb") as existing:
            first = existing.readline(LONGEST_LINE + 1).decode("utf-8-sig", "surrogateescape")
            if not is_raw(first):
                os.close(file)
                raise UsageError(f"{self._path} exists and is not a recording")
            # Search backwards for the position after the last newline.
            end, newline = size, -1
            while end > 0 and newline < 0:
                start = max(0, end - 65536)
                newline = os.pread(existing.fileno(), end - start, start).rfind(b"\n")
                end = start + newline + 1
        if end != size:
            os.ftruncate(file, end)


def _others_write(place: Path) -> bool:
    """Return whether another user can change names in a directory. Raises FileNotFoundError."""
    try:
        with directory(place):
            return False
    except StateError:
        return True
