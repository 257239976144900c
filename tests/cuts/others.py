"""Other processes that work in the tree during a move: one step for each call of the engine."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from tests.cuts.disk import ROOT, ZERO, Disk, Inode
from tests.cuts.model_sys import ModelSys
from tests.cuts.timeline import FileSynced, Noted

NEW = b"written by somebody else"
MODE = 0o604
AWAITED = 200
"""Steps to wait for an exchange."""
LATE, SLOW = 12, 0.05
"""Steps, and the maximum seconds, between finding a file and opening it. In this model, no process
waits for a processor for as long as the engine waits (GRACE in ``engine/swap.py``)."""
Act = Callable[[ModelSys, bytes], Iterator[None]]


def write(system: ModelSys, path: bytes, late: int = 0) -> Iterator[None]:
    """Open a file, write to it, sync and close it."""
    identity = system.disk.find(path)
    if identity is None:
        return
    _note(system, "opening", path, b"%d" % identity)
    yield from _held_up(system, late)
    yield from _waited(system, identity)
    fd = system.open_files.add(identity, os.O_WRONLY)
    yield
    content = NEW + system.disk.inodes[identity].content[len(NEW) :]
    _note(system, "writing", path, content)
    system.write(identity, NEW, 0)
    _note(system, "written", path, content)
    yield
    _sync(system, identity, path, content)
    yield
    if fd in system.open_files.files:
        system.open_files.close(fd)


def write_late(system: ModelSys, path: bytes) -> Iterator[None]:
    """Like ``write``, with a delay between finding the file and opening it."""
    yield from write(system, path, LATE)


def save(system: ModelSys, path: bytes) -> Iterator[None]:
    """Write a new file and rename it over an existing one, as editors do."""
    above, _, name = path.rpartition(b"/")
    directory = (system.disk.find(above) if above else ROOT) or ROOT
    draft = name[:200] + b".new"
    draft_path = path[: len(path) - len(name)] + draft
    _note(system, "named", draft_path, NEW)
    identity = system.create(directory, draft, 0o644)
    yield
    system.write(identity, NEW, 0)
    yield
    system.timeline.events.append(FileSynced(identity))
    yield
    _note(system, "named", path, b"")
    _note(system, "replacing", path, NEW)
    system.replace(directory, draft, name)
    _note(system, "replaced", path, NEW)


def create(system: ModelSys, path: bytes) -> Iterator[None]:
    """Create a new file next to an existing one."""
    above, _, name = path.rpartition(b"/")
    directory = (system.disk.find(above) if above else ROOT) or ROOT
    beside = name[:200] + b".other"
    _note(system, "named", path[: len(path) - len(name)] + beside, NEW)
    system.create(directory, beside, 0o644)
    yield


def write_and_open(system: ModelSys, path: bytes) -> Iterator[None]:
    """Write to the copy, once it has the name, and open the original, which must not come back."""
    original = system.disk.find(path)
    for _ in range(AWAITED):
        if system.disk.find(path) != original:
            break
        yield
    yield from write(system, path)
    if original is not None and system.disk.find(path) != original:
        yield from _waited(system, original)


def chmod(system: ModelSys, path: bytes, late: int = 0) -> Iterator[None]:
    """Change permissions, which breaks no lease."""
    identity = system.disk.find(path)
    yield from _held_up(system, late)
    if identity is not None:
        _note(system, "changing mode", path, b"")
        system.set_mode(identity, MODE)
        _note(system, "mode", path, b"")
    yield


def goes_on(disk: Disk, notes: Sequence[Noted], tick: int) -> list[Noted]:
    """Finish a write that the end of the engine has unblocked; returns what to note.

    The writer had found its file before, which may have lost its name since.
    """
    whats = {note.what: note for note in notes}
    if "opening" not in whats or "writing" in whats:
        return []
    _, path, identity = whats["opening"]
    return [Noted("synced", path, _changed(disk.inodes[int(identity)], tick))]


def meanwhile(disk: Disk, path: bytes, siblings: Collection[bytes], tick: int) -> list[Noted]:
    """Write to a file before the job is resumed, by one of its names (``siblings``).

    A power cut may have split one file into two, and the recovery joins them again.
    """
    identity = disk.find(path)
    if identity is None:
        return []
    content = _changed(disk.inodes[identity], tick)
    names = {each: found for each, found in disk.walk() if each in siblings}
    return [
        Noted("rewritten" if found == identity else "replacing", each, content)
        for each, found in names.items()
    ]


def _changed(inode: Inode, tick: int) -> bytes:
    content = NEW + inode.content[len(NEW) :]
    inode.pages[0] = NEW + inode.pages.get(0, ZERO)[len(NEW) :]
    inode.size, inode.mtime, inode.ctime = len(content), tick, tick
    return content


def chmod_late(system: ModelSys, path: bytes) -> Iterator[None]:
    """Like ``chmod``, with a delay between finding the file and changing it."""
    yield from chmod(system, path, LATE)


ACTS: dict[str, Act] = {
    "write": write,
    "write late": write_late,
    "save": save,
    "create": create,
    "chmod": chmod,
    "chmod late": chmod_late,
    "write and open": write_and_open,
}


def _held_up(system: ModelSys, late: int) -> Iterator[None]:
    began = system.clock.now
    while late and system.clock.now - began < SLOW:
        late -= 1
        yield


def _waited(system: ModelSys, identity: int) -> Iterator[None]:
    while not system.open_files.break_leases(identity):
        system.alarm()
        yield


def _sync(system: ModelSys, identity: int, path: bytes, content: bytes) -> None:
    system.timeline.events.append(FileSynced(identity))
    _note(system, "synced", path, content)


def _note(system: ModelSys, what: str, path: bytes, content: bytes) -> None:
    system.timeline.events.append(Noted(what, path, content))


@dataclass(slots=True)
class Other:
    """A process that starts at one call of the engine and takes a step every ``pause`` calls."""

    act: Act
    path: bytes
    begin: int
    pause: int
    _steps: Iterator[None] | None = None
    _over: bool = False
    _seen: float = float("inf")
    """Time of the last call."""

    def __call__(self, system: ModelSys, _call: str) -> None:
        late, before, self._seen = system.calls - self.begin, self._seen, system.clock.now
        waited = self._seen - before > SLOW  # a process that was blocked has long continued
        if late >= 0 and (waited or late % (self.pause + 1) == 0):
            self._step(system)

    def _step(self, system: ModelSys) -> None:
        if self._steps is None:
            self._steps = self.act(system, self.path)
        self._over = self._over or next(self._steps, self) is self

    def __str__(self) -> str:
        what = getattr(self.act, "__name__", "others")
        return f"{what} {self.path!r} from call {self.begin}, pausing for {self.pause}"

    def finish(self, system: ModelSys) -> None:
        """Take the remaining steps once the engine's process is gone."""
        ours = [fd for fd, file in system.open_files.files.items() if not file.writable]
        for fd in ours:
            system.open_files.close(fd)
        while not self._over:
            self._step(system)
