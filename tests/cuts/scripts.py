"""Other processes that take several steps with names, as filesystem tests do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tests.cuts.disk import ROOT, Attributes, Effect, Names
from tests.cuts.model_sys import ModelSys
from tests.cuts.timeline import Change, FileSynced, Noted, Stepped, Synced


class Step(NamedTuple):
    """One step: create, link, rename, exchange, unlink or fsync a path, or sync all.

    ``other`` is the new name, or the content of a new file.
    """

    what: str
    path: bytes = b""
    other: bytes = b""


def follow(system: ModelSys, _path: bytes, steps: Sequence[Step]) -> Iterator[None]:
    """Take one step per turn; steps that are no longer possible are skipped."""
    contents = _contents(system)
    system.timeline.events.append(Stepped(contents))
    for step in steps:
        for path in _names(step):
            system.timeline.events.append(Noted("named", path, b""))
        contents = _after(contents, step)
        if step.what not in ("fsync", "sync"):
            system.timeline.events.append(Stepped(contents))
        _take(system, step)
        yield


def _contents(system: ModelSys) -> dict[bytes, bytes]:
    """Return content by path, without temporary names: files never read those of others."""
    disk = system.timeline.begin
    return {
        path: disk.inodes[identity].content
        for path, identity in disk.walk()
        if not disk.inodes[identity].is_directory
    }


def _names(step: Step) -> tuple[bytes, ...]:
    match step.what:
        case "fsync" | "sync":
            return ()
        case "create" | "unlink":
            return (step.path,)
    return step.path, step.other


def _after(contents: dict[bytes, bytes], step: Step) -> dict[bytes, bytes]:
    """Return the contents after a step."""
    after = dict(contents)
    match step.what:
        case "create":
            after[step.path] = step.other
        case "link":
            after[step.other] = after[step.path]
        case "rename":
            after[step.other] = after.pop(step.path)
        case "exchange":
            after[step.other], after[step.path] = after[step.path], after[step.other]
        case "unlink":
            del after[step.path]
    return after


def _take(system: ModelSys, step: Step) -> None:
    match step.what:
        case "create":
            _create(system, step)
        case "sync":
            system.timeline.events.append(Synced())
        case "fsync":
            identity = system.disk.find(step.path)
            system.timeline.events.append(FileSynced(identity or ROOT))
        case _:
            _rename(system, step)


def _create(system: ModelSys, step: Step) -> None:
    """Create a file with its content at once: its writer is not killed with the engine."""
    directory, name = _place(system, step.path)
    identity, events = system.create(directory, name, 0o644), system.timeline.events
    system.write(identity, step.other, 0)
    written, created = events.pop(), events.pop()
    assert isinstance(created, Change)
    assert isinstance(written, Change)
    effects = (*created.effects, *written.effects)
    events.append(Change("create", effects, written.pages))


def _rename(system: ModelSys, step: Step) -> None:
    """Rename within a directory or between two, atomically."""
    here, name = _place(system, step.path)
    there, other = _place(system, step.other or step.path)
    one = system.disk.inodes[here].names[name]
    two = system.disk.inodes[there].names.get(other)
    possible: dict[str, list[tuple[int, bytes, int | None]]] = {
        "link": [(there, other, one)],
        "rename": [(here, name, None), (there, other, one)],
        "exchange": [(here, name, two), (there, other, one)],
        "unlink": [(here, name, None)],
    }
    changes = possible[step.what]
    tick = system.clock.tick
    effects: list[Effect] = [Names(at, ((each, inode),)) for at, each, inode in changes]
    effects += [Attributes(at, (("mtime", tick), ("ctime", tick))) for at in {here, there}]
    touched = {one, two} if step.what != "unlink" else {one}
    effects += [Attributes(each, (("ctime", tick),)) for each in touched if each is not None]
    for effect in effects:
        system.disk.apply(effect)
    system.timeline.events.append(Change(step.what, tuple(effects)))
    _tell(system, step, (here, name), (there, other))


def _tell(system: ModelSys, step: Step, one: tuple[int, bytes], two: tuple[int, bytes]) -> None:
    events = {
        "link": [(*two, "create", 0)],
        "rename": [(*one, "from", 1), (*two, "to", 1)],
        "exchange": [(*one, "from", 1), (*two, "to", 1), (*two, "from", 2), (*one, "to", 2)],
        "unlink": [(*one, "delete", 0)],
    }[step.what]
    for directory, name, kind, pair in events:
        system.open_files.tell(directory, [(kind, name, pair)])


def _place(system: ModelSys, path: bytes) -> tuple[int, bytes]:
    above, _, name = path.rpartition(b"/")
    directory = system.disk.find(above) if above else ROOT
    assert directory is not None
    return directory, name
