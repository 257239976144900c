"""``zconsole themes``: lists the themes with their files, and those that failed to load."""

from __future__ import annotations

import argparse
import os

from zconsole.cli.output import print_row
from zconsole.errors import ExitCode
from zconsole.ui.theme.files import find_themes


def run(args: argparse.Namespace) -> int:
    """Print the themes, one per line; return 0 even if some failed to load."""
    themes = find_themes(os.environ)
    for _, theme in sorted(themes.found.items()):
        names = ("name", "path", "description", "dark")
        found = {name: getattr(theme, name) for name in names}
        record = {**found, "path": str(theme.path), "error": None}
        print_row(record, f"{theme.name:<16} {theme.path}", args.json)
    for path, why in themes.failed:
        failed = {"name": path.stem, "path": str(path), "description": None, "error": why}
        print_row(failed, f"{path.stem}  not loaded: {why}  {path}", args.json)
    return ExitCode.OK
