"""``zconsole themes``: the themes found, where they are, and any that failed to load and why."""

from __future__ import annotations

import argparse
import os

from zconsole.errors import ExitCode
from zconsole.output import json
from zconsole.system.printable import clean
from zconsole.ui.theme.files import ThemeFile, find_themes


def run(args: argparse.Namespace) -> int:
    """Print the themes, one per line; a failed one does not make the command fail."""
    themes = find_themes(os.environ)
    for name in sorted(themes.found):
        theme = themes.found[name]
        print(json.line(_found(theme)) if args.json else clean(f"{theme.name:<16} {theme.path}"))
    for path, why in themes.failed:
        failed = {"name": path.stem, "path": str(path), "description": None, "error": why}
        print(json.line(failed) if args.json else clean(f"{path.stem}  not loaded: {why}  {path}"))
    return ExitCode.OK


def _found(theme: ThemeFile) -> dict[str, object]:
    return {
        "name": theme.name,
        "path": str(theme.path),
        "description": theme.description,
        "dark": theme.dark,
        "error": None,
    }
