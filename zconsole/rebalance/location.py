"""The state directory: ``$ZCONSOLE_STATE``, root's /var/lib/zconsole, or the XDG directory."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from zconsole.errors import ZconsoleError

ROOTS = Path("/var/lib/zconsole")


def state_directory(create: bool, environment: Mapping[str, str] | None = None) -> Path:
    """The directory state is kept in, made (0700) if asked to.

    Raises ZconsoleError when it is a link, somebody else's, or writable by others.
    """
    path = _chosen(os.environ if environment is None else environment)
    if create:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        status = path.lstat()
    except FileNotFoundError:
        return path
    if not stat.S_ISDIR(status.st_mode):
        raise ZconsoleError(f"{path} is not a directory")
    if create and (status.st_uid != os.geteuid() or status.st_mode & 0o022):
        raise ZconsoleError(f"{path} is not safe to keep state in (owner or mode)")
    return path


def _chosen(environment: Mapping[str, str]) -> Path:
    if override := environment.get("ZCONSOLE_STATE"):
        return Path(override)
    if os.geteuid() == 0:
        return ROOTS
    base = environment.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(base).expanduser() / "zconsole"
