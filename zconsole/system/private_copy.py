"""Unpacks a single-file program (``.pyz``) into a directory that only its user can change.

Python reads a module from an archive when it is first used, so that a USB stick with the archive
could not be pulled out while the program runs. It runs from its copy instead, as do its helper
processes, guards and jobs; compiled modules stay there for the next start.

Root's copy is in the state directory, or in /run if that is read-only. Other users' is in the state
directory, in ``$XDG_RUNTIME_DIR``, or in a temporary directory that is removed when the program
ends.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from zconsole.system.safe_path import StateError, make_directory
from zconsole.system.state_dir import locked, state_dir

RUNTIME = Path("/run")
"""Directory that only root may write to; it is cleared at each boot."""
STARTER = "__main__.py"
"""Module that Python runs in an archive; a copy doesn't need it."""
PATIENCE = 60.0
"""Seconds that another start may take to unpack the same program."""


def private_copy(archive: Path, environ: Mapping[str, str] = os.environ) -> Path:
    """Return the directory with the contents of an archive; unpack what is missing there.

    Raises StateError if no directory can be written that others can't change, OSError or
    zipfile.BadZipFile if the archive can't be read.
    """
    with zipfile.ZipFile(archive) as program:
        wanted = [entry for entry in program.infolist() if entry.filename != STARTER]
        for place in _places(environ):
            try:
                copy = place() / "program" / _name(wanted)
                make_directory(copy)
                _complete(program, wanted, copy)
            except (StateError, OSError) as error:
                refused = error
            else:
                return copy
    raise StateError(f"no place to unpack the program: {refused}. Name one in ZCONSOLE_STATE")


def _places(environ: Mapping[str, str]) -> Iterator[Callable[[], Path]]:
    """Yield functions that return a directory for copies, the best first."""
    yield lambda: state_dir(False, environ)
    if os.geteuid() == 0:
        yield lambda: RUNTIME / "zconsole"
        return
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    if runtime.startswith("/"):
        yield lambda: Path(runtime) / "zconsole"
    yield _temporary


def _temporary() -> Path:
    made = Path(tempfile.mkdtemp(prefix="zconsole-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def _name(entries: Sequence[zipfile.ZipInfo]) -> str:
    """Return a name that differs for every version: a hash of all names, sizes and checksums."""
    lines = (f"{entry.filename} {entry.file_size} {entry.CRC}\n" for entry in entries)
    return hashlib.sha256("".join(lines).encode()).hexdigest()[:16]


def _complete(program: zipfile.ZipFile, wanted: Sequence[zipfile.ZipInfo], copy: Path) -> None:
    """Write the files that are missing or incomplete, as after a crash while unpacking."""
    if not any(_is_missing(entry, copy) for entry in wanted):
        return
    busy = StateError(f"{copy}: another zconsole is unpacking. Try again")
    with locked(copy / ".lock", PATIENCE, busy):
        for entry in wanted:
            if _is_missing(entry, copy):
                program.extract(entry, copy)


def _is_missing(entry: zipfile.ZipInfo, copy: Path) -> bool:
    path = copy / entry.filename
    try:
        return not entry.is_dir() and path.stat().st_size != entry.file_size
    except (FileNotFoundError, NotADirectoryError):
        return True
