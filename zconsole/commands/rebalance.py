"""``zconsole rebalance``: see zconsole.rebalance.cli."""

from __future__ import annotations

import argparse

from zconsole.errors import UsageError
from zconsole.rebalance import cli

LOOKS = frozenset({"plan", "status"})
"""What changes nothing."""


def run(args: argparse.Namespace) -> int:
    """Do what is asked; returns the exit code."""
    if args.read_only and args.action not in LOOKS:
        raise UsageError(f"{args.action} is about changing files; not with --read-only")
    return cli.run(args)
