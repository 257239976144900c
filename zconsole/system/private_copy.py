"""Unpacks the program of one file into a directory that only its user can change.

Python reads modules of an archive when they are first used, and starts other processes from
directories: a stick that is pulled out would end both. So the program runs from its copy, which its
helpers, guards and jobs use, too, and keeps its compiled modules there for the next start.

Root's copy is in the state directory, or in /run where that is read-only; everybody else's in the
state directory, in ``$XDG_RUNTIME_DIR``, or in a temporary directory that ends with the program.
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
"""Cleared at each boot, and only root may write to it."""
STARTER = "__main__.py"
"""What Python runs of an archive; it is of no use in a copy."""
PATIENCE = 60.0
"""Seconds that another start may take to unpack the same program."""


def private_copy(archive: Path, environ: Mapping[str, str] = os.environ) -> Path:
    """The directory that holds what is in an archive, unpacked where something is missing.

    Raises StateError where no directory can be written that others cannot change, OSError and
    zipfile.BadZipFile where the archive cannot be read.
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
    """Where a copy may be, best first."""
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
    """A name that no other program has: what is in it by names, sizes and check sums."""
    lines = (f"{entry.filename} {entry.file_size} {entry.CRC}\n" for entry in entries)
    return hashlib.sha256("".join(lines).encode()).hexdigest()[:16]


def _complete(program: zipfile.ZipFile, wanted: Sequence[zipfile.ZipInfo], copy: Path) -> None:
    """Write the files that are missing or cut short, as after a crash while they were written."""
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
