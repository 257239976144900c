"""The options of ``zconsole swap``."""

from __future__ import annotations

import argparse


def configure(parser: argparse.ArgumentParser) -> None:
    """Add pool, device and --json."""
    parser.usage = "zconsole swap [POOL [DEVICE]] [--json]"
    parser.add_argument("pool", nargs="?", metavar="POOL", help="the pool (default: all)")
    parser.add_argument(
        "device",
        nargs="?",
        metavar="DEVICE",
        help="the disk to swap: by bay, serial, GUID, path or name (default: what failed)",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print the open checklists as JSON, one per line; ask nothing",
    )
