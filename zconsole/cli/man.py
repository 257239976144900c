"""``zconsole man``: prints the manual page of zconsole or of one command."""

from __future__ import annotations

import argparse

from zconsole.cli.man_page import page
from zconsole.errors import ExitCode


def run(args: argparse.Namespace) -> int:
    """Print the page, in the language of man(7)."""
    print(page(args.command), end="")
    return ExitCode.OK
