"""``zconsole rebalance``: see ``rebalance_command``."""

from __future__ import annotations

import argparse

from zconsole.cli import rebalance_command
from zconsole.errors import UsageError

LOOKS = frozenset({"plan", "status"})
"""What changes nothing."""


def run(args: argparse.Namespace) -> int:
    """Do what is asked; returns the exit code."""
    if args.read_only and args.action not in LOOKS:
        raise UsageError(f"{args.action} is about changing files; not with --read-only")
    return rebalance_command.run(args)
