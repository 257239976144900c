"""New files in the directory where the console was started: pictures and reports."""

from __future__ import annotations

import os
import re
from datetime import datetime
from pathlib import Path

from zconsole.errors import ZconsoleError
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.system.safe_path import StateError, open_directory
from zconsole.ui.themed_app import ThemedApp, begin

_MOST = 9
"""Most files with names of the same second."""
# Never write to an existing file, nor through a symbolic link.
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def save_new(app: ThemedApp, text: str, what: str, suffix: str) -> None:
    """Write a new file where the console was started, and say so; ``what`` and on as below."""
    now = datetime.now(app.view_state.look.zone)

    async def _keep() -> None:
        try:
            path = await in_daemon_thread(keep_new, text, Path.cwd(), now, what, suffix)
        except (OSError, ZconsoleError) as error:
            app.notify(str(error), severity="error")
        else:
            app.notify(f"{what} saved: {path}", timeout=8)

    begin(app, _keep, group=what)


def keep_new(text: str, directory: Path, now: datetime, what: str, suffix: str) -> Path:
    """Write a new file and return its path; no existing file is touched. Raises ZconsoleError.

    ``what`` names the file in messages. As root, refuse a directory in which others may rename
    files: they could choose where root writes.
    """
    try:
        place = _opened(directory, what)
        try:
            return directory / _written(place, text, now, what, suffix)
        finally:
            os.close(place)
    except OSError as error:
        raise ZconsoleError(f"no {what} in {directory}: {error.strerror}") from error


def _opened(directory: Path, what: str) -> int:
    if os.geteuid() != 0:
        return os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return open_directory(directory)
    except StateError:
        raise ZconsoleError(
            f"no {what} in {directory}: others may write there, and this runs as root."
            " Start the console in a directory of your own"
        ) from None


def _written(place: int, text: str, now: datetime, what: str, suffix: str) -> str:
    for number in range(1, _MOST + 1):
        name = f"zconsole-{now:%Y%m%d-%H%M%S}{f'-{number}' if number > 1 else ''}.{suffix}"
        try:
            handle = os.open(name, _NEW, 0o644, dir_fd=place)
        except FileExistsError:
            continue
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
        except OSError:
            os.unlink(name, dir_fd=place)  # do not leave half a file
            raise
        return name
    raise FileExistsError(0, f"{what}s of this second exist already")


_FACES = re.compile(r"@font-face \{[^{}]*\}\s*")
_FONT = "DejaVu Sans Mono, Menlo, Consolas, monospace"


def portable(svg: str) -> str:
    """Return the picture without fonts from the network, and with stable names."""
    named = re.sub(r"terminal-\d+", "terminal-zconsole", _FACES.sub("", svg))
    return named.replace("Fira Code", _FONT)
