"""Trees with everything that a rebalance must preserve, and manifests to compare them."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import stat
import struct
from pathlib import Path
from typing import Any

from zconsole.rebalance.engine.content import WINDOW

ROOT = os.geteuid() == 0


def build(root: Path) -> None:
    """Create files of every awkward kind, in two directories."""
    below = root / "below"
    below.mkdir(parents=True)
    _write(root / "small", b"x" * 4096)
    _write(root / "empty", b"")
    _write(root / "large", os.urandom(300_000))
    _write(root / "line\nbreak", b"newline")
    _write(root / ("n" * 255), b"long name")
    _write(root / ".zc-0123456789abcdef", b"named like a temporary of ours")
    _write(root / "user.balance", b"named like a temporary of other tools")
    (root / os.fsdecode(b"not-utf8-\xff")).write_bytes(b"bytes")
    _sparse(root / "sparse")
    _linked(root, below)
    _attributed(below / "attributed")
    for moment, path in enumerate(sorted(root.rglob("*"), reverse=True)):
        os.utime(path, ns=(10**18 + moment * 1_000_001, 10**18 + moment * 2_000_003))
    os.utime(root, ns=(10**18, 10**18 + 5))


def _write(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def _sparse(path: Path) -> None:
    """Write a file with a hole longer than one copy window, and data in the next window."""
    with path.open("wb") as file:
        file.truncate(WINDOW + (256 << 10))
        file.seek(WINDOW + 100_000)
        file.write(b"island")


def _linked(root: Path, below: Path) -> None:
    _write(root / "linked", b"three names")
    os.link(root / "linked", below / "linked-too")
    os.link(root / "linked", root / "linked-again")


def _attributed(path: Path) -> None:
    path.write_bytes(b"#!/bin/sh\n")
    with contextlib.suppress(OSError):
        os.setxattr(path, "user.colour", b"\x00red")
    if ROOT:
        os.chown(path, 1234, 2345)
        with contextlib.suppress(OSError):
            os.setxattr(path, "trusted.secret", b"root's")
    path.chmod(0o4750)
    listed = path.with_name("listed")
    _write(listed, b"of more than an owner and a group")
    for name, value in LISTS.items():
        with contextlib.suppress(OSError):
            os.setxattr(listed, name, value)
    with listed.open("rb") as file, contextlib.suppress(OSError):
        fcntl.ioctl(file, FS_IOC_SETFLAGS, struct.pack("l", _flags(file.fileno()) | NODUMP))


FS_IOC_GETFLAGS, FS_IOC_SETFLAGS, NODUMP = 0x8008_6601, 0x4008_6602, 0x40
_ENTRIES = ((0x01, 6, -1), (0x02, 4, 1234), (0x04, 4, -1), (0x10, 4, -1), (0x20, 0, -1))
LISTS = {
    "system.posix_acl_access": struct.pack("<I", 2)
    + b"".join(struct.pack("<HHi", *entry) for entry in _ENTRIES),
    "security.capability": struct.pack("<5I", 0x0200_0001, 1 << 10, 0, 0, 0),
}
"""A POSIX ACL that lets user 1234 read (linux/posix_acl_xattr.h), and the capability to bind low
ports (linux/capability.h), which changing the owner would remove."""


def _flags(fd: int) -> int:
    """Return the inode flags; 0 if the filesystem has none."""
    with contextlib.suppress(OSError):
        answer = fcntl.ioctl(fd, FS_IOC_GETFLAGS, bytes(struct.calcsize("l")))
        return int(struct.unpack("l", answer)[0])
    return 0


def manifest(root: Path) -> dict[str, tuple[Any, ...]]:
    """Return everything that must be unchanged afterwards, by path, without inode numbers."""
    names: dict[int, list[str]] = {}
    for path in sorted(root.rglob("*")):
        names.setdefault(path.lstat().st_ino, []).append(str(path.relative_to(root)))
    return {
        str(path.relative_to(root)): _described(path, names) for path in [root, *root.rglob("*")]
    }


def _described(path: Path, names: dict[int, list[str]]) -> tuple[Any, ...]:
    status = path.lstat()
    common = (status.st_mode, status.st_uid, status.st_gid, status.st_mtime_ns)
    if not stat.S_ISREG(status.st_mode):
        return common
    xattrs = {name: os.getxattr(path, name) for name in os.listxattr(path)}
    holes = status.st_blocks * 512 < status.st_size // 2
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOATIME), "rb") as file:
        content, flags = hashlib.sha256(file.read()).hexdigest(), _flags(file.fileno()) & 0xFF
    linked = tuple(names[status.st_ino])
    times = (status.st_atime_ns, flags)
    return (*common, *times, status.st_size, sorted(xattrs.items()), holes, linked, content)


def inodes(root: Path) -> dict[str, int]:
    """Return the inode number of every regular file."""
    return {str(p.relative_to(root)): p.lstat().st_ino for p in root.rglob("*") if p.is_file()}
