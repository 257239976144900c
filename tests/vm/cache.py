"""The directory outside the source tree that keeps images, logs and named machines."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def cache_root() -> Path:
    """Return `$ZCONSOLE_VM_CACHE`, else zconsole/vm in the XDG cache directory; made if missing."""
    chosen = os.environ.get("ZCONSOLE_VM_CACHE")
    xdg = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    root = Path(chosen) if chosen else Path(xdg) / "zconsole" / "vm"
    root.mkdir(parents=True, exist_ok=True)
    return root.resolve()


def subdirectory(name: str) -> Path:
    """Return a directory of the cache, made if missing."""
    path = cache_root() / name
    path.mkdir(exist_ok=True)
    return path


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold a lock file; waits, with a message, while another process holds it.

    The kernel releases the lock with the process, however that ends (flock(2)).
    """
    with path.open("w") as file:
        if not try_lock(file.fileno()):
            print(f"waiting for another process that holds {path.name}", file=sys.stderr)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def try_lock(descriptor: int) -> bool:
    """Take an exclusive flock(2) without waiting; returns False if another process holds it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def remove_tree(path: Path) -> None:
    """Delete a directory tree, never crossing into a filesystem mounted below it."""
    subprocess.run(["rm", "-rf", "--one-file-system", "--", str(path)], check=True)


@contextmanager
def half_done(directory: Path, name: str) -> Iterator[Path]:
    """Provide a directory to build in; deletes it if the block fails, and old leftovers.

    The caller holds the build lock and renames the directory away when it is complete.
    """
    for leftover in directory.glob(".building-*"):
        remove_tree(leftover)
    path = directory / f".building-{name}"
    path.mkdir()
    try:
        yield path
    finally:
        remove_tree(path)
