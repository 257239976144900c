"""Opening paths that other users can't redirect.

A directory is opened component by component from /, and each is checked once it is open: it must
belong to this user or root and not be writable by others, so that nobody can replace the next
component between check and use. Only a sticky directory (/tmp) may be writable by others, as there
nobody can rename what isn't theirs. A symbolic link on the way is followed if it is this user's or
root's.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path, PurePath

from zconsole.errors import ZconsoleError

MOST_LINKS = 40
"""Symbolic links followed on the way to a file, as in the kernel (path_resolution(7))."""
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class StateError(ZconsoleError):
    """State can't be kept in a place, or read there; the message says why."""


def open_directory(path: Path, make: bool = False) -> int:
    """Open (O_PATH) a directory in which nobody else can change a name; return the descriptor.

    With ``make``, missing directories are made (0700). Raises StateError if it is a link, or if
    others could change it, or a directory or link on the way; FileNotFoundError if it is missing.
    """
    return _way_down(path, make=make, private=True)


@contextlib.contextmanager
def directory(path: Path) -> Iterator[int]:
    """Open a directory as ``open_directory`` does, and close it at the end of a ``with`` block."""
    handle = open_directory(path)
    try:
        yield handle
    finally:
        os.close(handle)


def make_directory(path: Path) -> None:
    """Make a directory (0700) unless it exists, and check it. Raises StateError."""
    os.close(open_directory(path, make=True))


def sync_directory(path: Path) -> None:
    """Make changes of names in a directory durable with fsync(2). Raises StateError, OSError."""
    with directory(path) as place:
        handle = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=place)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def resolved(path: Path) -> Path:
    """Return the real path of a file, which need not exist, with all links resolved.

    Raises StateError if another user could redirect it, FileNotFoundError if a directory on the way
    is missing.
    """
    for _ in range(MOST_LINKS):
        handle = _way_down(path.parent, make=False, private=False)
        try:
            place = _place(handle)
            target = _target(handle, path.name, path)
        finally:
            os.close(handle)
        if target is None:
            return place / path.name
        path = place / target
    raise StateError(f"{path} refused: too many links on the way")


def read_regular(path: Path, most: int) -> bytes:
    """Return the contents of a regular file of any user, without waiting for a pipe or device.

    Raises StateError if it is not a regular file or has over ``most`` bytes, and OSError.
    """
    return contents(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC), most)


def contents(handle: int, most: int) -> bytes:
    """Return the contents of an open regular file, and close it.

    Raises StateError if it is not a regular file or has over ``most`` bytes, and OSError.
    """
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise StateError("not a file")
        with open(handle, "rb", closefd=False) as file:
            data = file.read(most + 1)
    finally:
        os.close(handle)
    if len(data) > most:
        raise StateError(f"larger than {most} bytes")
    return data


def check_file(status: os.stat_result, path: Path) -> None:
    """Check that a file is regular, has one name, and that only its owner may write to it.

    The owner must be this user or root. Raises StateError otherwise.
    """
    if stat.S_ISLNK(status.st_mode):
        raise StateError(f"{path} refused: it is a link. Name the file itself")
    if not stat.S_ISREG(status.st_mode):
        raise StateError(f"{path} refused: not a regular file. Move it away")
    _check_owner(status, path, "it")
    if _others_may_write(status):
        raise StateError(
            f"{path} refused: others may write to it. If you trust it, run: chmod go-w {path}"
        )
    if status.st_nlink > 1:
        raise StateError(
            f"{path} refused: it has {status.st_nlink} names (hard links). Remove the others"
        )


def _way_down(path: Path, make: bool, private: bool) -> int:
    """Open a directory component by component from /, each checked once it is open.

    ``private``: the last component must not be a link, nor be writable by others even if sticky.
    """
    left = list(reversed(path.absolute().parts))
    links = 0
    here = os.open("/", _DIRECTORY)
    try:
        while left:
            name = left.pop()
            below = _step(here, name, make)
            if below is not None:
                os.close(here)
                here = below
                _check_directory(here, path, private and not left)
                continue
            links += 1
            target = None if private and not left else _target(here, name, path)
            if target is None or links > MOST_LINKS:
                raise StateError(f"{path} refused: {name} is not a directory. Choose another place")
            left += reversed(target.parts)  # "/" first if absolute, which opens the root again
    except BaseException as error:
        os.close(here)
        if isinstance(error, OSError) and not isinstance(error, FileNotFoundError):
            raise StateError(f"{path}: {error.strerror}") from error
        raise
    return here


def _step(here: int, name: str, make: bool) -> int | None:
    """Open the directory of a name in ``here``; None if it is a link, or not a directory."""
    try:
        return os.open(name, _DIRECTORY, dir_fd=here)
    except NotADirectoryError:
        return None
    except FileNotFoundError:
        if not make:
            raise
    with contextlib.suppress(FileExistsError):  # another process has just made it
        os.mkdir(name, 0o700, dir_fd=here)
    return _step(here, name, make=False)


def _target(here: int, name: str, path: Path) -> PurePath | None:
    """Return the target of a link; None if it is missing or not a link.

    Raises StateError if the link is neither this user's nor root's.
    """
    try:
        status = os.stat(name, dir_fd=here, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISLNK(status.st_mode):
        return None
    _check_owner(status, path, f"the link {name}")
    return PurePath(os.readlink(name, dir_fd=here))


def _place(handle: int) -> Path:
    """Return the path of an open directory."""
    return Path(f"/proc/self/fd/{handle}").readlink()


def _named(handle: int, path: Path) -> str:
    """Return the words for a directory in a message about ``path``: "it", or its own path."""
    place = _place(handle)
    return "it" if place == path else str(place)


def _check_directory(handle: int, path: Path, private: bool) -> None:
    status = os.fstat(handle)
    if not _is_trusted(status):
        _check_owner(status, path, _named(handle, path))
    sticky = bool(status.st_mode & stat.S_ISVTX) and not private
    if _others_may_write(status) and not sticky:
        raise StateError(
            f"{path} refused: others may write to {_named(handle, path)}."
            f" Choose a directory only you can write to, or run: chmod go-w {_place(handle)}"
        )


def _is_trusted(status: os.stat_result) -> bool:
    return status.st_uid in (os.geteuid(), 0)


def _check_owner(status: os.stat_result, path: Path, what: str) -> None:
    if not _is_trusted(status):
        owner = _user_name(status.st_uid)
        raise StateError(
            f"{path} refused: {what} belongs to somebody else ({owner})."
            f" Run this as {owner}, or choose another place"
        )


def _user_name(uid: int) -> str:
    import pwd  # lazy: only errors name a user

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def _others_may_write(status: os.stat_result) -> bool:
    writers = status.st_mode & OTHERS_WRITE
    if writers == stat.S_IWGRP and os.geteuid() != 0:
        return not _is_private_group(status.st_gid)
    return writers != 0


def _is_private_group(gid: int) -> bool:
    """Return whether a group has only this user, as in distributions that use umask 002."""
    import grp  # lazy: few directories are writable by a group
    import pwd

    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(gid)
    except KeyError:
        return False
    alone = set(group.gr_mem) <= {user.pw_name}
    return alone and (gid, group.gr_name) == (user.pw_gid, user.pw_name)
