"""The files that are moved, and their current state, as the oracle of the cuts needs it."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cuts.oracle import FileFacts, FolderFacts, Seen

GET_FLAGS, SET_FLAGS, GET_MORE = 0x80086601, 0x40086602, 0x801C581F
"""FS_IOC_GETFLAGS, FS_IOC_SETFLAGS and FS_IOC_FSGETXATTR (linux/fs.h)."""
NODUMP = 0x40
PAGE = 4096
OLD = 1_500_000_000 * 10**9
"""Time of the files' last change, epoch nanoseconds."""
_ACCESS, _DEFAULT = "system.posix_acl_access", "system.posix_acl_default"
_NO_ID = 0xFFFFFFFF
_HOLES = b"holes"


def build(root: bytes) -> None:
    """Create a few dozen small files of every kind below an empty directory, and sync them."""
    _plain(root)
    _linked(root)
    _odd(root)
    _attributed(root)
    _set_times(root)
    os.sync()


def _plain(root: bytes) -> None:
    _write(root + b"/empty", b"")
    _write(root + b"/page", b"p" * PAGE, mode=0o600, owner=1000)
    _write(root + b"/large", os.urandom(400_000), mode=0o640)
    with _write_open(root + b"/" + _HOLES) as file:
        os.pwrite(file, b"begin", 0)
        os.pwrite(file, b"middle" * 1000, 300_000)
        os.ftruncate(file, 900_000)
    for number in range(24):
        below = root + b"/below/%d" % (number % 3)
        Path(os.fsdecode(below)).mkdir(parents=True, exist_ok=True)
        _write(below + b"/f%d" % number, os.urandom(number * 1777 + 1), owner=number)


def _linked(root: bytes) -> None:
    os.link(root + b"/page", root + b"/page again")
    Path(os.fsdecode(root), "links").mkdir(0o750)
    _write(root + b"/links/one", b"three names in two directories", mode=0o4755)
    os.link(root + b"/links/one", root + b"/links/two")
    os.link(root + b"/links/one", root + b"/below/three")


def _odd(root: bytes) -> None:
    _write(root + b"/line\nbreak", b"1")
    _write(root + b"/" + b"n" * 255, b"22")
    _write(root + b"/not utf-8 \xff", b"333")
    _write(root + b"/.zc-0123456789abcdef-1", b"named like a temporary file of ours")


def _attributed(root: bytes) -> None:
    """Create files with user attributes, an ACL, a capability and a flag."""
    _write(root + b"/attributes", b"of users")
    os.setxattr(root + b"/attributes", "user.colour", b"\0red")
    os.setxattr(root + b"/attributes", "user.long", b"l" * 600)
    _write(root + b"/listed", b"has a list of access")
    os.setxattr(root + b"/listed", _ACCESS, _acl())
    Path(os.fsdecode(root), "inherits").mkdir()
    _write(root + b"/inherits/older", b"than the list of its directory")
    os.setxattr(root + b"/inherits", _DEFAULT, _acl())
    _write(root + b"/inherits/younger", b"with the list of its directory")
    _write(root + b"/capable", b"\x7fELF", mode=0o755)
    os.setxattr(root + b"/capable", "security.capability", bytes.fromhex("01000002" + "00" * 16))
    with _write_open(root + b"/flagged") as file:
        fcntl.ioctl(file, SET_FLAGS, struct.pack("l", NODUMP))


def _acl() -> bytes:
    """Return an ACL in the kernel's format (linux/posix_acl_xattr.h): one more user may read."""
    lines = ((1, 6, _NO_ID), (2, 4, 1234), (4, 4, _NO_ID), (16, 4, _NO_ID), (32, 0, _NO_ID))
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *line) for line in lines)


def _write(path: bytes, content: bytes, mode: int = 0o644, owner: int = 0) -> None:
    with _write_open(path) as file:
        os.write(file, content)
        os.fchown(file, owner, owner)
        os.fchmod(file, mode)


@contextmanager
def _write_open(path: bytes) -> Iterator[int]:
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        yield file
    finally:
        os.close(file)


def _set_times(root: bytes) -> None:
    """Give each file its own times, then each directory after its contents."""
    for number, (base, _, names) in enumerate(os.walk(root, topdown=False)):
        for name in names:
            changed = OLD + len(name) * 10**9 + 1
            os.utime(base + b"/" + name, ns=(OLD + 7 * number, changed))
        os.utime(base, ns=(OLD, OLD + number * 10**9 + 3))


def seen(root: bytes) -> Seen:
    """Return the contents of a directory, by relative path."""
    found = Seen({}, {}, {}, {})
    for base, _, names in os.walk(root, onerror=_raise):
        below = base[len(root) + 1 :]
        found.folders[below] = _folder(base)
        for name in names:
            path = below + b"/" + name if below else name
            status = os.lstat(base + b"/" + name)
            found.numbers[path], found.links[path] = status.st_ino, status.st_nlink
            found.files[path] = _file(base + b"/" + name, status)
    return found


def _raise(error: OSError) -> None:
    """Raise the error: an unreadable directory must not pass as an empty one."""
    raise error


def _file(path: bytes, status: os.stat_result) -> FileFacts:
    file = os.open(path, os.O_RDONLY | os.O_NOATIME | os.O_CLOEXEC)
    try:
        content = b"".join(iter(lambda: os.read(file, 1 << 20), b""))
        flags = struct.unpack("l", fcntl.ioctl(file, GET_FLAGS, bytes(8)))[0]
        project = struct.unpack("5I8x", _more(file))[3]
    finally:
        os.close(file)
    return FileFacts(
        content, status.st_mode, status.st_uid, status.st_gid, status.st_mtime_ns,
        status.st_atime_ns, flags, project, _xattrs(path),
    )  # fmt: skip


def _more(file: int) -> bytes:
    """Return a struct fsxattr; zeros if the filesystem has none."""
    try:
        return fcntl.ioctl(file, GET_MORE, bytes(28))
    except OSError as error:
        if error.errno not in (errno.ENOTTY, errno.EOPNOTSUPP):
            raise
        return bytes(28)


def _folder(path: bytes) -> FolderFacts:
    status = os.lstat(path)
    return FolderFacts(
        status.st_mode, status.st_uid, status.st_gid, status.st_mtime_ns, _xattrs(path)
    )


def _xattrs(path: bytes) -> tuple[tuple[str, bytes], ...]:
    return tuple((name, os.getxattr(path, name)) for name in sorted(os.listxattr(path)))


def filled_holes(root: bytes) -> Iterator[str]:
    """Yield a problem if the sparse file takes as much space as without its holes."""
    status = os.lstat(root + b"/" + _HOLES)
    if status.st_blocks * 512 > status.st_size // 2:
        yield f"the holes of {_HOLES!r} are filled: {status.st_blocks} sectors"
