"""The order of the system calls of one small job, recorded where the engines make them.

Calls are named by the file they are made on: an original, its copy, a directory. Calls that a job
makes as time passes are left out, and an immediately repeated call counts once.
"""

from __future__ import annotations

import os
import re
import sqlite3
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.lock import apart, kept
from tests.lock.apart import Machine
from tests.lock.case import Case
from tests.lock.leave import NOON, OLD, begin_area, environment

NAME = "order-of-calls/one-job"
LEFT_OUT = ("leased", "changes", "watch", "watcher", "ioctl")
"""Calls that depend on timing, or whose results differ between filesystems."""
TEMPORARY = re.compile(r"\.zc-[0-9a-f]+-\d+")
CHANGING = (
    *("open_new", "pwrite", "ftruncate", "setxattr", "link", "link_fd", "rename", "exchange"),
    *("unlink", "syncfs", "fsync", "set_times", "fchmod", "fchown", "commit"),
)
"""Calls whose order over all files is recorded."""


def cases() -> Iterable[Case]:
    """Return the case."""
    return (Case(NAME, _seen, 0.3),)


def _seen(_whole: bool) -> str:
    for base in ("/dev/shm", tempfile.gettempdir()):
        if not Path(base).is_dir():
            continue
        with tempfile.TemporaryDirectory(prefix="zc-", dir=base) as folder:
            area = begin_area(Path(folder).resolve())
            if _built(area / "tree"):
                run = ("rebalance", "run", "--engine=copy", "--allow-non-zfs", "--yes", "--json")
                words = (*run, str(area / "tree"))
                machine = Machine(local=NOON)
                said = apart.run(words, environment(area), machine, "tests.lock.order:recorded")
                return said.out if said.code == 0 else str(said)
    return skipped(NAME, "no filesystem here has extended attributes")


def skipped(name: str, why: str) -> str:
    """Print that a case of this part cannot run here, and return its kept text."""
    print(f"state/{name}: skipped: {why}", file=sys.stderr)
    return kept.read("state")[name]


def _built(root: Path) -> bool:
    """Create three files; returns whether one could be given an extended attribute."""
    below = root / "below"
    below.mkdir(parents=True)
    (root / "large").write_bytes(b"l" * 20_000)
    (root / "of two").write_bytes(b"t" * 300)
    (root / "small").write_bytes(b"small")
    (below / "of two").hardlink_to(root / "of two")
    try:
        os.setxattr(root / "large", "user.colour", b"red")
    except OSError:
        return False
    (root / "large").chmod(0o640)
    for path in (*sorted(root.rglob("*"), reverse=True), root):
        os.utime(path, ns=(OLD, OLD))
    return True


# In the process.


@dataclass(slots=True)
class Calls:
    """The calls of a process, each with the file it is made on."""

    made: list[tuple[str, str]] = field(default_factory=list)
    _open: dict[int, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, name: str, arguments: Sequence[Any], more: Any, result: Any) -> None:
        """Record a call; `result` is the exception of a failed one."""
        failed = isinstance(result, OSError)
        with self._lock:
            on = self._on(name, arguments, more)
            if name in ("open", "open_new", "reopen") and not failed:
                self._open[result] = on
            if name == "close":
                self._open.pop(arguments[0], None)
            word = f"{name}: {os.strerror(result.errno)}" if failed else name
            self.made.append((word, on))

    def _on(self, name: str, arguments: Sequence[Any], more: Any) -> str:
        first = arguments[0] if arguments else ""
        if name == "open":
            return self._path(more.get("dir_fd"), first)
        if name in ("open_new", "lstat", "unlink"):
            return self._path(first, arguments[1])
        if name in ("rename", "exchange", "link"):
            return " with ".join(self._path(first, each) for each in arguments[1:])
        if name == "link_fd":
            return f"{self._open.get(first)} as {self._path(*arguments[1:])}"
        return self._open.get(first, "")

    def _path(self, directory: int | None, name: Any) -> str:
        above = self._open.get(directory, "") if directory is not None else ""
        return os.path.normpath(Path(above) / os.fsdecode(name))


def recorded(words: Sequence[str]) -> int:
    """Run a job and print its calls."""
    from zconsole.cli.main import main
    from zconsole.rebalance.engine.syscalls import Sys

    calls = Calls()
    for name, value in vars(Sys).copy().items():
        if not name.startswith("_") and name not in LEFT_OUT:
            setattr(Sys, name, _noting(calls, name, value))
    connect = sqlite3.connect
    sqlite3.connect = lambda *a, **k: connect(*a, factory=_traced(calls), **k)
    out = os.dup(1)
    os.dup2(2, 1)
    code = main(words)
    sys.stdout.flush()
    os.dup2(out, 1)
    print("\n".join(_told(calls.made, words[-1])))
    return code


def _noting(calls: Calls, name: str, value: Any) -> Any:
    static = isinstance(value, staticmethod)
    call: Callable[..., Any] = value.__func__ if static else value

    def noting(*arguments: Any, **more: Any) -> Any:
        told = arguments if static else arguments[1:]
        try:
            result = call(*arguments, **more)
        except OSError as error:
            calls.note(name, told, more, error)
            raise
        calls.note(name, told, more, result)
        return result

    return staticmethod(noting) if static else noting


def _traced(calls: Calls) -> type[sqlite3.Connection]:
    class Traced(sqlite3.Connection):
        def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
            done = super().execute(sql, *parameters)
            if sql == "COMMIT":
                states = "SELECT state, count(*) FROM files GROUP BY state ORDER BY state"
                files = ", ".join(f"{n} in state {s}" for s, n in super().execute(states))
                calls.made.append(("commit", files or "none"))
            return done

    return Traced


def _told(made: Sequence[tuple[str, str]], root: str) -> Iterable[str]:
    """Return the order over all files, then that of the calls on each file."""
    copies = {}
    for name, on in made:
        if name == "exchange":
            copy, original = on.split(" with ")
            copies[Path(copy).name] = f"COPY OF {Path(original).name}"

    def known(on: str) -> str:
        short = on.replace(root, Path(root).name)
        return TEMPORARY.sub(lambda found: copies.get(found[0], "COPY"), short)

    yield "over all files"
    yield from _once(f"  {name} {known(on)}" for name, on in made if name in CHANGING)
    each: dict[str, list[str]] = {}
    for name, on in made:
        if on.startswith(root):
            each.setdefault(known(on), []).append(f"  {name}")
    for on in sorted(each):
        yield f"on {on}"
        yield from _once(each[on])


def _once(lines: Iterable[str]) -> Iterable[str]:
    last = ""
    for line in lines:
        if line != last:
            yield line
        last = line
