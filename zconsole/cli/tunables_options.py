"""The options of ``zconsole tunables``."""

from __future__ import annotations

import argparse

from zconsole.cli.option_types import within_a_day

PRESETS = ("faster-resilver", "gentle", "default")
LIMITED_BY = ("new-disk-writes", "txg-time", "scan-reads", "rebuild", "memory")
"""As in ``zconsole.tunables.presets``; repeated here so that help loads no catalog."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add action, words and what goes with some of the actions."""
    parser.usage = (
        "zconsole tunables [list | set NAME=VALUE ... | preset NAME |\n"
        "    restore [NAME ...] | hold-latency SECONDS|off]\n"
        "    [--limit LIMIT] [--for SECONDS] [--yes] [--json]"
    )
    parser.add_argument(
        "action",
        nargs="?",
        default="list",
        choices=("list", "set", "preset", "restore", "hold-latency"),
        help="list all (default), set values, apply a preset, restore the original values, or let"
        " scans go as fast as the latency of applications allows",
    )
    parser.add_argument(
        "words",
        nargs="*",
        metavar="NAME",
        help=f"set: NAME=VALUE (bytes also as 16M); preset: {', '.join(PRESETS)};"
        " restore: names (default: all); hold-latency: the latency (20ms), others by time of day"
        " (22:00-06:00=100ms), below-defaults to allow scans slower than by the defaults also"
        " without redundancy; or off",
    )
    parser.add_argument(
        "--limit", choices=LIMITED_BY, help="with preset faster-resilver: lift only this limit"
    )
    parser.add_argument(
        "--for",
        dest="seconds",
        type=within_a_day,
        default=600.0,
        metavar="SECONDS",
        help="with set zfs_scan_suspend_progress=1: restore it after SECONDS (default: 600)",
    )
    parser.add_argument(
        "--yes", action="store_true", help="go below the defaults without asking (hold-latency)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, one tunable per line")
