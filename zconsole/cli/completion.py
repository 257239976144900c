"""``zconsole completion``: prints what has a shell complete commands, options and their values."""

from __future__ import annotations

import argparse

from zconsole.cli.completion_scripts import SCRIPTS
from zconsole.errors import ExitCode


def run(args: argparse.Namespace) -> int:
    """Print the script of one shell."""
    print(SCRIPTS[args.shell](), end="")
    return ExitCode.OK
