"""The state directory, and files in it that nobody else can swap, read or tear.

Root's is /var/lib/zconsole, everybody else's the XDG state directory; ``$ZCONSOLE_STATE`` names
another. A directory or file that is a link, somebody else's or writable by others is refused.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from zconsole.errors import ZconsoleError

SYSTEM = Path("/var/lib/zconsole")
HOMELESS = Path("/nonexistent")
"""Home of a user who has none, as Debian's policy names it."""
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class StateError(ZconsoleError):
    """State cannot be kept or read there, and why."""


def state_dir(create: bool, environ: Mapping[str, str] = os.environ) -> Path:
    """The state directory of whoever runs this; with ``create`` made (0700) and checked.

    Raises StateError when it cannot be made, is a link, is somebody else's or others may write.
    """
    path = _own(environ)
    if not create:
        return path
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = path.lstat()
    except OSError as error:
        raise StateError(f"state directory {path}: {error.strerror}") from error
    if not stat.S_ISDIR(status.st_mode):
        raise StateError(f"state directory {path}: not a directory")
    _check_private(path, status)
    return path


def state_dirs(environ: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """Where a reader looks, in order: its own directory, then the system's where it may read."""
    own = _own(environ)
    if own == SYSTEM or not os.access(SYSTEM, os.R_OK | os.X_OK):
        return (own,)
    return (own, SYSTEM)


def _own(environ: Mapping[str, str]) -> Path:
    if override := environ.get("ZCONSOLE_STATE"):
        return Path(override)
    if os.geteuid() == 0:
        return SYSTEM
    base = environ.get("XDG_STATE_HOME")
    return (Path(base) if base else _home() / ".local" / "state") / "zconsole"


def _home() -> Path:
    """The user's home; of one in no passwd file and without ``HOME`` (a container), none."""
    try:
        return Path.home()
    except RuntimeError:
        return HOMELESS


def _check_private(path: Path, status: os.stat_result) -> None:
    if status.st_uid not in (os.geteuid(), 0):
        raise StateError(f"{path}: belongs to somebody else")
    if status.st_mode & OTHERS_WRITE:
        raise StateError(f"{path}: others may write to it")


def open_private(path: Path, flags: int = os.O_RDONLY) -> int:
    """A descriptor of a regular file that is ours (or root's) and no link; made 0600.

    Raises StateError where it is not that, FileNotFoundError where there is none to read.
    """
    try:
        handle = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StateError(f"{path}: {error.strerror}") from error
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise StateError(f"{path}: not a regular file")
        _check_private(path, status)
    except StateError:
        os.close(handle)
        raise
    return handle


def read_private(path: Path, most: int) -> bytes:
    """The contents of such a file; raises StateError, too, when it is over ``most`` bytes."""
    with os.fdopen(open_private(path), "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise StateError(f"{path}: over {most} bytes")
    return data


def write_private(path: Path, data: bytes) -> None:
    """Put ``data`` in the place of a file (0600) at once and for good, or not at all.

    Raises StateError when it cannot be written.
    """
    import tempfile  # only here: most who load this module write nothing

    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(path)
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise StateError(f"{path}: {error.strerror}") from error


def try_lock(path: Path) -> int | None:
    """A descriptor that holds the lock file exclusively; None while somebody else does.

    Closing it, or the end of the process, releases it. Raises StateError as ``open_private``.
    """
    handle = open_private(path, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    return handle


@contextlib.contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Whether the lock was free; held for the time of the ``with`` block if it was."""
    handle = try_lock(path)
    try:
        yield handle is not None
    finally:
        if handle is not None:
            os.close(handle)
