"""Where state is kept: root's is shared by the machine, others have their own."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from zconsole.errors import ZconsoleError

SYSTEM = Path("/var/lib/zconsole")


def own_directory(environ: Mapping[str, str] = os.environ) -> Path:
    """The state directory of whoever runs this, made if need be: 0700, ours, no link.

    Raises ZconsoleError where it cannot be made or is not private.
    """
    path = _own(environ)
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = path.lstat()
    except OSError as error:
        raise ZconsoleError(f"state directory {path}: {error.strerror}") from error
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise ZconsoleError(f"state directory {path}: not a directory of this user")
    if status.st_mode & 0o022:
        raise ZconsoleError(f"state directory {path}: others may write to it")
    return path


def readable_directory(environ: Mapping[str, str] = os.environ) -> Path:
    """Where to look: the system's where it may be read, else our own (perhaps not there yet)."""
    if "ZCONSOLE_STATE" not in environ and os.access(SYSTEM, os.R_OK | os.X_OK):
        return SYSTEM
    return _own(environ)


def _own(environ: Mapping[str, str]) -> Path:
    if override := environ.get("ZCONSOLE_STATE"):
        return Path(override)
    if os.geteuid() == 0:
        return SYSTEM
    base = environ.get("XDG_STATE_HOME") or str(Path("~/.local/state").expanduser())
    return Path(base) / "zconsole"
