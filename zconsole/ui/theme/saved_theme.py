"""The theme chosen in the console, remembered from one start to the next.

One small file a kind of terminal in the state directory: what was chosen among many colors may not
be readable in sixteen.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial

from zconsole.system import state_dir as state
from zconsole.system.patient import Patient
from zconsole.system.state_dir import StateError

MOST_BYTES = 4096


class SavedTheme:
    """Where it is kept: the state directory of whoever runs this."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._environ = environ

    def recall(self, *, sixteen: bool) -> str | None:
        """The name of the theme kept for such a terminal; None if there is none to be read."""
        path = state.state_dir(False, self._environ) / _file(sixteen)
        try:
            read = partial(state.read_private, path, MOST_BYTES)
            name = Patient().call(read).decode("utf-8", "surrogateescape")
        except (OSError, StateError):
            return None
        return name.removesuffix("\n")

    def keep(self, name: str, *, sixteen: bool) -> None:
        """Write it down for the next start. Raises StateError when that cannot be done."""
        directory = state.state_dir(True, self._environ)
        state.write_private(
            directory / _file(sixteen), f"{name}\n".encode("utf-8", "surrogateescape")
        )


def _file(sixteen: bool) -> str:
    return "theme-16" if sixteen else "theme"
