"""The state directory, and files in it that other users can't replace, read, damage or block.

Root's is /var/lib/zconsole, other users' the XDG state directory; ``$ZCONSOLE_STATE`` names
another. Every file of state is opened here: in a directory that was checked (``safe_path``), never
through a link, and checked once it is open. It must be a regular file with one name, belong to this
user or root, and not be writable by others; root accepts only root's.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from zconsole.system.safe_path import StateError as StateError
from zconsole.system.safe_path import check_file, directory, make_directory

SYSTEM = Path("/var/lib/zconsole")
HOMELESS = Path("/nonexistent")
"""Home of a user who has none, as in Debian's policy."""
COMPANIONS = ("-wal", "-shm", "-journal")
"""Endings of the files that SQLite keeps next to a database."""
LOOK = 0.025
"""Seconds between two attempts to get a lock."""

SETTLED = 2.0
"""Seconds after which a further change of a directory is sure to get a different time.

Filesystems store times in ticks of the kernel, or in whole seconds.
"""

_FILE = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
"""Flags for opening a file: never through a link, and without waiting for the other end of a FIFO.
"""
_NO_UNNAMED = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL)
"""Errors of filesystems and kernels without unnamed files (open(2), O_TMPFILE)."""


def state_dir(create: bool, environ: Mapping[str, str] = os.environ) -> Path:
    """Return the current user's state directory; with ``create``, make (0700) and check it.

    Raises StateError if it can't be made, is a link, or others own it or may write to it.
    """
    path = _own(environ)
    if create:
        try:
            make_directory(path)
        except OSError as error:
            raise StateError(f"state directory {path}: {error.strerror}") from error
        except StateError as error:
            raise StateError(f"state directory {error}") from error
    return path


def state_dirs(environ: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """Return the directories to read, in order: the user's own, then the system's if readable."""
    own = _own(environ)
    if own == SYSTEM or not os.access(SYSTEM, os.R_OK | os.X_OK):
        return (own,)
    return (own, SYSTEM)


def change_mark(now: float, environ: Mapping[str, str] = os.environ) -> object:
    """Return a mark that changes when a file of state is added, replaced or removed.

    None, which must not be taken for equal to any mark, within SETTLED seconds of a change: another
    could have the same time. ``now``: epoch seconds. Only directories are looked at: files that are
    written in place, such as journals of jobs, may change without a new mark.
    """
    places = [each for path in state_dirs(environ) for each in (path, path / "rebalance")]
    times: list[int | None] = []
    for place in places:
        try:
            times.append(place.stat().st_mtime_ns)
        except OSError:
            times.append(None)
    newest = max((time for time in times if time is not None), default=0)
    return None if now - newest / 1e9 < SETTLED else tuple(times)


def _own(environ: Mapping[str, str]) -> Path:
    if override := environ.get("ZCONSOLE_STATE"):
        return Path(override)
    if os.geteuid() == 0:
        return SYSTEM
    return xdg_directory("XDG_STATE_HOME", ".local/state", environ) / "zconsole"


def xdg_directory(name: str, usual: str, environ: Mapping[str, str]) -> Path:
    """Return the directory that an XDG variable names, else the usual one in the user's home."""
    base = environ.get(name, "")
    # A relative path is to be ignored (XDG Base Directory Specification).
    return Path(base) if base.startswith("/") else home() / usual


def home() -> Path:
    """Return the user's home; HOMELESS if neither ``HOME`` nor passwd has an absolute path."""
    try:
        home = Path.home()
    except RuntimeError:
        return HOMELESS
    return home if home.is_absolute() else HOMELESS


def open_private(path: Path, flags: int = os.O_RDONLY) -> int:
    """Open a private file; return the descriptor. Every file of state is opened by this function.

    The file must be regular, have one name, belong to this user or root, and not be a link. With
    O_CREAT it is made with mode 0600. Raises StateError for any other file, or if its directory is
    not safe; FileNotFoundError if it is missing.
    """
    with directory(path.parent) as place:
        try:
            handle = os.open(path.name, flags | _FILE, 0o600, dir_fd=place)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise StateError(f"{path}: {error.strerror}") from error
    try:
        check_file(os.fstat(handle), path)
    except StateError:
        os.close(handle)
        raise
    return handle


def read_private(path: Path, most: int) -> bytes:
    """Return the contents of a private file.

    Raises StateError as ``open_private``, and if the file has over ``most`` bytes;
    FileNotFoundError.
    """
    with os.fdopen(open_private(path), "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise StateError(f"{path}: over {most} bytes")
    return data


def read_end(path: Path, most: int, start: int = 0) -> bytes:
    """Return the last ``most`` bytes of a private file, without those before ``start``."""
    with os.fdopen(open_private(path), "rb") as file:
        file.seek(max(start, os.fstat(file.fileno()).st_size - most))
        return file.read(most)


def write_private(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Replace a file by ``data`` atomically; the new file gets ``mode``.

    After a crash or power cut, the file has the old or the new contents, in full. Raises StateError
    if it can't be written.
    """
    try:
        with directory(path.parent) as place:
            draft = _draft(place, path, data, mode)
            with _removed_on_error(place, draft):
                os.replace(draft, path.name, src_dir_fd=place, dst_dir_fd=place)
    except OSError as error:
        raise StateError(f"{path}: {error.strerror}") from error


def create_private(path: Path, data: bytes) -> None:
    """Create a file (0600) that is complete and durable when its name appears.

    Raises FileExistsError, StateError or OSError, which name the file.
    """
    try:
        with directory(path.parent) as place:
            _create(place, path, data)
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def _create(place: int, path: Path, data: bytes) -> None:
    # An unnamed file leaves nothing behind after a crash. It gets its name by a link of its entry
    # in /proc, which unlike AT_EMPTY_PATH needs no privilege (open(2), O_TMPFILE).
    try:
        handle = os.open(".", os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC, 0o600, dir_fd=place)
    except OSError as error:
        if error.errno not in _NO_UNNAMED:
            raise
    else:
        with os.fdopen(handle, "wb") as file:
            _write_durably(file.fileno(), data)
            os.link(f"/proc/self/fd/{file.fileno()}", path.name, dst_dir_fd=place)
        return
    draft = _draft(place, path, data)
    try:
        os.link(draft, path.name, src_dir_fd=place, dst_dir_fd=place)
    finally:
        os.unlink(draft, dir_fd=place)


def _draft(place: int, path: Path, data: bytes, mode: int = 0o600) -> str:
    """Write ``data`` durably to a new hidden file in ``place``, and return its name.

    The name itself is not durable yet.
    """
    draft = f".{path.name}.{os.urandom(8).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FILE
    handle = os.open(draft, flags, 0o600, dir_fd=place)
    try:
        with _removed_on_error(place, draft):
            os.fchmod(handle, mode)
            _write_durably(handle, data)
    finally:
        os.close(handle)
    return draft


def _write_durably(handle: int, data: bytes) -> None:
    with os.fdopen(handle, "wb", closefd=False) as file:
        file.write(data)
        file.flush()
        os.fsync(handle)


@contextlib.contextmanager
def _removed_on_error(place: int, name: str) -> Iterator[None]:
    try:
        yield
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=place)
        raise


def remove(path: Path) -> None:
    """Remove a file if it exists, from a directory that nobody else can change.

    Raises StateError, OSError.
    """
    with contextlib.suppress(FileNotFoundError), directory(path.parent) as place:
        os.unlink(path.name, dir_fd=place)


def check_database(path: Path) -> None:
    """Check that an SQLite database, and each file next to it, is one ``open_private`` accepts.

    SQLite would play back a log that another user has planted. It opens the files by name, a
    moment later; these are the same files, as nobody else can change a name in a checked
    directory. Nothing is opened here, as closing a database would drop SQLite's own locks on it
    (fcntl_locking(2)). Raises StateError, FileNotFoundError.
    """
    with directory(path.parent) as place:
        check_file(os.stat(path.name, dir_fd=place, follow_symlinks=False), path)
        for companion in COMPANIONS:
            beside = path.with_name(path.name + companion)
            with contextlib.suppress(FileNotFoundError):
                check_file(os.stat(beside.name, dir_fd=place, follow_symlinks=False), beside)


def try_lock(path: Path) -> int | None:
    """Lock a lock file; return the descriptor that holds it, None while another process does.

    Closing the descriptor, or the end of the process, releases the lock. Raises StateError as
    ``open_private``.
    """
    handle = open_private(path, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    return handle


def held_by_another(path: Path, seconds: float) -> str:
    """Return the message that another process has held a lock file for so many seconds."""
    return (
        f"{path} is locked by another zconsole for over {seconds:g} s."
        " End that one (see /proc/locks) and try again"
    )


@contextlib.contextmanager
def locked(path: Path, seconds: float, busy: Exception) -> Iterator[None]:
    """Hold a lock file for the time of a ``with`` block.

    Raises ``busy`` if another process holds it for ``seconds``, StateError as ``try_lock``.
    """
    handle = lock_within(path, seconds)
    if handle is None:
        raise busy
    try:
        yield
    finally:
        os.close(handle)


def lock_within(path: Path, seconds: float) -> int | None:
    """Lock a lock file as ``try_lock`` does, trying again for ``seconds``."""
    for _ in range(round(seconds / LOOK)):
        handle = try_lock(path)
        if handle is not None:
            return handle
        time.sleep(LOOK)
    return try_lock(path)
