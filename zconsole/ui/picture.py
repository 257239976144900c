"""A picture of the screen, as SVG in the directory the console was started in."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

from zconsole.ui.new_file import keep_new

_FACES = re.compile(r"@font-face \{[^{}]*\}\s*")
_FONT = "DejaVu Sans Mono, Menlo, Consolas, monospace"


def portable(svg: str) -> str:
    """The picture without fonts from the network, and with names that do not change."""
    named = re.sub(r"terminal-\d+", "terminal-zconsole", _FACES.sub("", svg))
    return named.replace("Fira Code", _FONT)


def keep_picture(svg: str, directory: Path, now: datetime) -> Path:
    """Write it as a new file and return its path. Raises ZconsoleError, see ``keep_new``."""
    return keep_new(portable(svg), directory, now, "picture", "svg")
