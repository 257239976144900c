"""State that a zconsole left behind, packed into an archive and restored on another machine.

An area is a directory with `state` (the state directory), and what else belongs to it: `tree`
(files of a job), `machine` (a faked /sys). Its archive holds it as it was, and in `left.json` what
an archive cannot restore: paths, inode and device numbers, and times that must be recent. `unpack`
replaces those of the old place in journals with those of the new one. Everything else, above all
digests, stays as that version wrote it.
"""

from __future__ import annotations

import ctypes
import io
import json
import os
import sqlite3
import struct
import tarfile
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

ARCHIVES = Path(__file__).parents[1] / "fixtures" / "state"
NOTE = "left.json"
GONE = 1 << 40
"""Added to the number of an inode that was gone, so that it matches no file here."""
APART = 5_000_000
"""Minimum nanoseconds between two changes that must stay distinguishable."""
_HANDLE = struct.Struct("=Ii")


def archive(version: str, name: str) -> Path:
    """Return the path of an area's archive."""
    return ARCHIVES / version / f"{name}.tar.xz"


def pack(area: Path, to: Path) -> None:
    """Write an area's archive."""
    entries = {}
    for path in sorted(area.glob("tree/**")) + sorted(area.glob("tree/**/*")):
        status = path.lstat()
        times = (status.st_atime_ns, status.st_mtime_ns, status.st_ctime_ns)
        entries[str(path.relative_to(area))] = [status.st_ino, status.st_mode & 0o7777, *times]
    note = {"area": str(area), "taken": time.time(), "entries": entries}
    to.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(to, "w:xz", preset=9) as tar:
        _add(tar, NOTE, json.dumps(note).encode())
        for path in sorted(area.rglob("*")):
            # SQLite rebuilds this index from the write-ahead log (sqlite.org/walformat.html).
            if path.name.endswith("-shm"):
                continue
            tar.add(path, str(path.relative_to(area)), recursive=False, filter=_plain)


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    tar.addfile(entry, io.BytesIO(data))


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    # The same bytes whoever packs them, and whenever.
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    return entry


def unpack(packed: Path, area: Path) -> None:
    """Restore an area in a new, empty place."""
    area.mkdir(mode=0o700)
    with tarfile.open(packed) as tar:
        # Set as an attribute: the first releases of 3.11 have no parameter for it.
        tar.extraction_filter = lambda entry, _: entry
        for entry in tar:
            entry.uid, entry.gid = os.geteuid(), os.getegid()
            tar.extract(entry, area)
    note = json.loads((area / NOTE).read_text())
    (area / NOTE).unlink()
    shift = time.time() - note["taken"]
    _settle_files(area, note["entries"], shift)
    for file in area.glob("state/**/*"):
        if file.suffix == ".json" or file.parent.name == "locks":
            text = file.read_text()
            file.write_text(text.replace(note["area"], str(area)))
    for journal in area.glob("state/**/*.db"):
        _settle_journal(journal, note, area, shift)


def _settle_files(area: Path, entries: Mapping[str, Any], shift: float) -> None:
    """Restore modes and times of files, in the order in which they were changed.

    Times of a directory that the job had just changed are shifted to the present.
    """
    last = 0
    for name, (_, mode, atime, mtime, ctime) in sorted(entries.items(), key=lambda e: e[1][4]):
        # Nobody can set a ctime: changes that were apart are made apart by waiting.
        if ctime - last > APART:
            time.sleep(APART / 1e9 * 2)
        last = ctime
        path = area / name
        path.chmod(mode)
        recent = path.is_dir() and mtime > ctime - 10**12
        os.utime(path, ns=(atime, mtime + int(shift * 1e9) if recent else mtime))


def _settle_journal(journal: Path, note: Mapping[str, Any], area: Path, shift: float) -> None:
    """Write the paths, inode numbers and times of this place into a journal."""
    here = {name: (area / name).lstat() for name in note["entries"]}
    numbers = {entry[0]: here[name].st_ino for name, entry in note["entries"].items()}
    paths = {here[name].st_ino: area / name for name in note["entries"]}

    def number(before: int | None) -> int | None:
        # An inode without a file here was gone when the archive was made.
        return numbers.get(before, before + GONE) if before else before

    def handle(before: bytes, inode: int | None) -> bytes:
        return handle_of(paths[inode]) if before and inode in paths else before

    def text(value: str) -> str:
        return value.replace(note["area"], str(area))

    def raw(value: bytes) -> bytes:
        return value.replace(os.fsencode(note["area"]), os.fsencode(area))

    with closing(sqlite3.connect(journal)) as db:
        for function in (number, handle, text, raw):
            db.create_function(function.__name__, -1, function)
        device = (area / "tree").stat().st_dev
        db.execute("UPDATE dirs SET ino = number(ino), dev = ?, name = raw(name)", (device,))
        db.execute("UPDATE dirs SET intent = intent + ?", (shift,))
        db.execute("UPDATE files SET ino = number(ino), old = number(old), new = number(new)")
        db.execute("UPDATE files SET handle = handle(handle, new)")
        db.execute("UPDATE meta SET value = text(value)")
        db.execute("UPDATE meta SET value = value + ? WHERE key = 'changing_until'", (shift,))
        keys = json.dumps({str(area / "tree"): _filesystem(area)})
        db.execute("UPDATE meta SET value = ? WHERE key = 'keys'", (keys,))
        db.commit()


def handle_of(path: Path) -> bytes:
    """Return a file's handle (name_to_handle_at(2)); empty if the filesystem has none."""
    found = ctypes.create_string_buffer(_HANDLE.pack(128, 0), 8 + 128)
    mount, libc = ctypes.c_int(), ctypes.CDLL(None)
    # -100 is AT_FDCWD (linux/fcntl.h).
    if libc.name_to_handle_at(-100, os.fsencode(path), found, ctypes.byref(mount), 0) == -1:
        return b""
    return found.raw[: 8 + _HANDLE.unpack_from(found)[0]]


def _filesystem(path: Path) -> str:
    """Return how journals identify a filesystem that is not ZFS: its type and source."""
    mounts = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        words = line.split()
        kind, source = words[words.index("-") + 1 :][:2]
        if path.is_relative_to(words[4]):
            mounts.append((len(words[4]), f"{kind}:{source}:"))
    # Of the mounts that contain the path, the innermost has the longest name.
    return max(mounts, key=lambda mount: mount[0])[1]
