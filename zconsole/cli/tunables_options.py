"""Options of ``zconsole tunables``, apart from what they do, so that help stays light."""

from __future__ import annotations

import argparse

PRESETS = ("faster-resilver", "gentle", "default")
LIMITED_BY = ("new-disk-writes", "txg-time", "scan-reads", "rebuild", "memory")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the command's words and options on its parser."""
    parser.usage = (
        "zconsole tunables [list | set NAME=VALUE ... | preset NAME |\n"
        "    restore [NAME ...]] [--limit LIMIT] [--for SECONDS] [--json]"
    )
    parser.add_argument(
        "action",
        nargs="?",
        default="list",
        choices=("list", "set", "preset", "restore"),
        help="list them (default), set some, apply a preset, or put back what was set",
    )
    parser.add_argument(
        "words",
        nargs="*",
        metavar="NAME",
        help=f"NAME=VALUE for set; a name of {', '.join(PRESETS)} for preset; names for restore",
    )
    parser.add_argument(
        "--limit", choices=LIMITED_BY, help="what limits the scan, for the faster preset to lift"
    )
    parser.add_argument(
        "--for",
        dest="seconds",
        type=_seconds,
        default=600.0,
        metavar="SECONDS",
        help="how long zfs_scan_suspend_progress may stay set (default: 600)",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a tunable and line")


def _seconds(word: str) -> float:
    value = float(word)
    if not 0 < value <= 86_400:
        raise argparse.ArgumentTypeError("more than 0, at most 86400 seconds")
    return value
