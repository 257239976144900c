"""The state directory, and files in it that other users cannot swap, read, damage or block.

Root's is /var/lib/zconsole, everybody else's the XDG state directory; ``$ZCONSOLE_STATE`` names
another. Every file of ours is opened here: beneath a directory that was checked (``safe_path``),
never through a link, and looked at once it is open. It must be a regular file of one name, ours or
root's, and not writable by others; root accepts root's only.
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
"""Home of a user who has none, as Debian's policy names it."""
COMPANIONS = ("-wal", "-shm", "-journal")
"""What SQLite adds to a database's name for the files it keeps beside it."""
LOOK = 0.025
"""Seconds between two tries to get a lock."""

SETTLED = 2.0
"""Seconds after which a change of a directory has another time than the one before: its file
system counts ticks of the kernel, or whole seconds."""

_FILE = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
"""Never through a link; a FIFO is refused at once, not waited for."""
_NO_UNNAMED = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL)
"""How filesystems and kernels without unnamed files answer (open(2), O_TMPFILE)."""


def state_dir(create: bool, environ: Mapping[str, str] = os.environ) -> Path:
    """The state directory of whoever runs this; with ``create`` made (0700) and checked.

    Raises StateError if it cannot be made, is a link, or others own it or may write to it.
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
    """Where a reader looks, in order: its own directory, then the system's where it may read."""
    own = _own(environ)
    if own == SYSTEM or not os.access(SYSTEM, os.R_OK | os.X_OK):
        return (own,)
    return (own, SYSTEM)


def change_mark(now: float, environ: Mapping[str, str] = os.environ) -> object:
    """Return a mark that is another one once a file of state was put, replaced or removed.

    None, which equals no mark, while that may have happened within the last tick of the file
    system's clock. ``now``: epoch seconds. It looks at no file: those that are written in place,
    such as journals of jobs, may have changed all the same.
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
    """The directory that a variable of the XDG specification names, else the usual one at home."""
    base = environ.get(name, "")
    # Of a relative one every directory would have its own; the specification has it ignored.
    return Path(base) if base.startswith("/") else home() / usual


def home() -> Path:
    """The user's home; none without a ``HOME`` that is absolute or a line in the passwd file."""
    try:
        home = Path.home()
    except RuntimeError:
        return HOMELESS
    return home if home.is_absolute() else HOMELESS


def open_private(path: Path, flags: int = os.O_RDONLY) -> int:
    """A descriptor of a regular file of one name that is ours (or root's) and no link; made 0600.

    Every file of state is opened by this. Raises StateError where it is not that, or where its
    directory is not safe; FileNotFoundError where there is none to read.
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
    """The contents of such a file; raises StateError, too, when it is over ``most`` bytes."""
    with os.fdopen(open_private(path), "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise StateError(f"{path}: over {most} bytes")
    return data


def read_end(path: Path, most: int, start: int = 0) -> bytes:
    """The last ``most`` bytes of such a file at most, those before ``start`` left out."""
    with os.fdopen(open_private(path), "rb") as file:
        file.seek(max(start, os.fstat(file.fileno()).st_size - most))
        return file.read(most)


def write_private(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Put ``data`` in the place of a file (``mode``) at once and for good, or not at all.

    Raises StateError when it cannot be written.
    """
    try:
        with directory(path.parent) as place:
            draft = _draft(place, path, data, mode)
            with _removed_on_error(place, draft):
                os.replace(draft, path.name, src_dir_fd=place, dst_dir_fd=place)
    except OSError as error:
        raise StateError(f"{path}: {error.strerror}") from error


def create_private(path: Path, data: bytes) -> None:
    """A new file (0600), whole and durable once it has its name, which is its only one.

    Raises FileExistsError, StateError, OSError, which name the file.
    """
    try:
        with directory(path.parent) as place:
            _create(place, path, data)
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def _create(place: int, path: Path, data: bytes) -> None:
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
    """The name of a file of ``data`` that is durable, but for its name."""
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
    """Remove a file if it is there, from a directory that only we can change.

    Raises StateError, OSError.
    """
    with contextlib.suppress(FileNotFoundError), directory(path.parent) as place:
        os.unlink(path.name, dir_fd=place)


def check_database(path: Path) -> None:
    """Return if an SQLite database, and what lies beside it, is a file as ``open_private`` gives.

    A log planted by another user would be played back into it. SQLite opens them by name, a
    moment later. That is the same file: in a checked directory only we can change a name. Nothing
    is opened here, as closing a database would drop SQLite's own locks on it (fcntl_locking(2)).
    Raises StateError, FileNotFoundError.
    """
    with directory(path.parent) as place:
        check_file(os.stat(path.name, dir_fd=place, follow_symlinks=False), path)
        for companion in COMPANIONS:
            beside = path.with_name(path.name + companion)
            with contextlib.suppress(FileNotFoundError):
                check_file(os.stat(beside.name, dir_fd=place, follow_symlinks=False), beside)


def try_lock(path: Path) -> int | None:
    """A descriptor that holds the lock file exclusively; None while another process does.

    Closing it, or the end of the process, releases it. Raises StateError as ``open_private``.
    """
    handle = open_private(path, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    return handle


def held_by_another(path: Path, seconds: float) -> str:
    """What to say of a lock file that another process has held for so many seconds."""
    return (
        f"{path} is locked by another zconsole for over {seconds:g} s."
        " End that one (see /proc/locks) and try again"
    )


@contextlib.contextmanager
def locked(path: Path, seconds: float, busy: Exception) -> Iterator[None]:
    """Hold a lock file for the time of a ``with`` block; its end releases it.

    Raises ``busy`` where another process has held it for so many seconds, else as ``try_lock``.
    """
    handle = lock_within(path, seconds)
    if handle is None:
        raise busy
    try:
        yield
    finally:
        os.close(handle)


def lock_within(path: Path, seconds: float) -> int | None:
    """``try_lock``, again and again for so many seconds."""
    for _ in range(round(seconds / LOOK)):
        handle = try_lock(path)
        if handle is not None:
            return handle
        time.sleep(LOOK)
    return try_lock(path)
