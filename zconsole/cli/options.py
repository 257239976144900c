"""Every command's options, in a module so light that ``--help`` loads nothing else."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import NoReturn

from zconsole.cli.option_types import (
    add_common,
    file_name,
    floor,
    positive,
    seconds,
    slip,
    whole,
    within_a_day,
)
from zconsole.errors import UsageError

PRESETS = ("faster-resilver", "gentle", "default")
LIMITED_BY = ("new-disk-writes", "txg-time", "scan-reads", "rebuild", "memory")
"""What ``zconsole.tunables.presets`` knows; help loads no catalog."""


class Parser(argparse.ArgumentParser):
    """A parser that answers a command line it cannot read with one line, not with its usage."""

    def _get_formatter(self) -> argparse.HelpFormatter:
        # Each option asks for one; argparse would load shutil and all compression for the width.
        return self.formatter_class(prog=self.prog, width=_columns() - 2)  # type: ignore[call-arg]

    def error(self, message: str) -> NoReturn:
        """Raises UsageError."""
        raise UsageError(f"{message}; see {self.prog} --help")


def _columns() -> int:
    try:
        return int(os.environ.get("COLUMNS", "0")) or os.get_terminal_size().columns or 80
    except (OSError, ValueError):
        return 80


def parser_of(name: str) -> argparse.ArgumentParser:
    """The parser of one command, with the options every command takes.

    Only that of the command that runs: to build all twelve takes a fifth of a start.
    """
    about, configure = COMMANDS[name]
    if name == "console":
        listing = "\n".join(f"  {word:<9} {text}" for word, (text, _) in COMMANDS.items())
        parser = Parser(
            prog="zconsole",
            usage="zconsole [POOL ...] | zconsole COMMAND ...",
            description="The terminal console for a ZFS resilver, scrub or rebalance.",
            epilog=f"commands (each has --help):\n{listing}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
    else:
        about = f"{about[:1].upper()}{about[1:]}."
        parser = Parser(prog=f"zconsole {name}", description=about, allow_abbrev=False)
    configure(parser)
    add_common(parser)
    return parser


def _pools(parser: argparse.ArgumentParser) -> None:
    # The default keeps argparse from naming them among what is required.
    parser.add_argument(
        "pools", nargs="*", default=[], metavar="POOL", help="pools to watch (default: all)"
    )


def _pace(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--interval", type=seconds, default=1.0, metavar="S", help="seconds between samples"
    )


def _count(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--count", type=whole, metavar="N", help="stop after N samples")


def _speed(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--speed", type=positive, default=1.0, metavar="X", help="times real time")


def _json(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--json", action="store_true", help=what)


def _saved(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument(
        "--from",
        dest="saved",
        type=file_name,
        metavar="FILE|-",
        help=f"read saved {what} output instead",
    )


def _host(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--host", metavar="USER@HOST[,...]", help="watch other machines' pools over ssh"
    )


def _alerts(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "alerts",
        # The console's help, with its table of commands, is printed as it stands here.
        "Each is sent once: finished and safe, finished but not restored, restarted,\n"
        "stalled, ETA slipped, new device error, no redundancy left, suspended, too\n"
        "little free.",
    )
    group.add_argument(
        "--hook", metavar="CMD", help="run CMD (no shell) for each alert, JSON on its stdin"
    )
    group.add_argument("--bell", action="store_true", help="ring the terminal's bell")
    group.add_argument(
        "--notify",
        action="store_true",
        help="desktop notification through the terminal (OSC 9, 777)",
    )
    for option, read, default, metavar, text in (
        ("--stalled-after", positive, 600.0, "S", "seconds without progress, never before 60"),
        ("--slip", slip, 0.25, "SHARE", "share of the expected time by which the end may move"),
        ("--free-floor", floor, 0.05, "SHARE", "share of the pool to stay free"),
    ):
        described = f"{text} (default %(default)g)"
        group.add_argument(option, type=read, default=default, metavar=metavar, help=described)


def _configure_status(parser: argparse.ArgumentParser) -> None:
    _pools(parser)
    _host(parser)
    _saved(parser, "zpool status")
    _json(parser, "one JSON object a pool and line")
    parser.add_argument(
        "--exit-status",
        action="store_true",
        help="exit 10 if a pool is degraded or has data errors, 11 if faulted or suspended",
    )


def _configure_balance(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pool", nargs="?", metavar="POOL", help="one pool (default: all)")
    _saved(parser, "zpool list -v")
    _json(parser, "one JSON object a pool and line")
    what = parser.add_argument_group("what if", "SIZE: 36.4T, 6x3T, raidz2:6x3T, mirror:2x4T")
    what.add_argument(
        "--add-vdev", nargs="+", default=[], metavar="SIZE", help="with these vdevs added"
    )
    what.add_argument(
        "--resize", nargs="+", default=[], metavar="NAME=SIZE", help="with these vdevs that large"
    )
    what.add_argument("--disk", metavar="SIZE", help="how long a disk of SIZE would resilver")


def _configure_watch(parser: argparse.ArgumentParser) -> None:
    _pools(parser)
    _pace(parser)
    _count(parser)
    _json(parser, "JSON lines")
    parser.add_argument(
        "--until-done",
        action="store_true",
        help="stop when no scan runs: 0 restored, 10 not restored or with errors, 12 canceled",
    )
    _host(parser)
    _alerts(parser)


def _configure_record(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=file_name, metavar="FILE", help="the recording to write")
    _pools(parser)
    _pace(parser)
    _count(parser)


def _configure_replay(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=file_name, metavar="FILE", help="a recording")
    _speed(parser)
    _json(parser, "JSON lines, as fast as possible")


def _configure_demo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scenario", metavar="NAME", help="which story to simulate")
    parser.add_argument("--list", action="store_true", help="name the scenarios, one a line")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="same seed, same run")
    _speed(parser)
    _json(parser, "watch lines at simulated time")
    _count(parser)
    _pace(parser)


def _configure_report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pool", nargs="?", metavar="POOL", help="one pool (default: all)")
    parser.add_argument(
        "--scan", type=whole, default=1, metavar="N", help="which one: 1 is the newest"
    )
    parser.add_argument("--list", action="store_true", help="the reports there are, a line each")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="as JSON")
    how.add_argument("--svg", action="store_true", help="the rate over time as a chart")
    how.add_argument("--md", action="store_true", help="as Markdown (the default)")
    parser.add_argument(
        "--compare", nargs=2, metavar="N|FILE", help="two scans, by number, report or recording"
    )
    parser.add_argument(
        "--from",
        dest="recording",
        type=file_name,
        metavar="RECORDING",
        help="of the scans in a recording",
    )


def _configure_export(parser: argparse.ArgumentParser) -> None:
    _pools(parser)
    _host(parser)
    parser.add_argument("--listen", metavar="[ADDR:]PORT", help="serve /metrics (loopback)")
    parser.add_argument(
        "--textfile", type=file_name, metavar="PATH", help="replace this file at every sample"
    )
    parser.add_argument(
        "--interval", type=seconds, default=15.0, metavar="S", help="seconds between samples"
    )
    _count(parser)


def _configure_themes(parser: argparse.ArgumentParser) -> None:
    _json(parser, "one JSON object a theme and line")


def _configure_console(parser: argparse.ArgumentParser) -> None:
    _pools(parser)
    _pace(parser)
    _host(parser)
    _alerts(parser)


def _configure_rebalance(parser: argparse.ArgumentParser) -> None:
    from zconsole.cli.rebalance_options import configure

    configure(parser)


def _configure_tunables(parser: argparse.ArgumentParser) -> None:
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
        type=within_a_day,
        default=600.0,
        metavar="SECONDS",
        help="how long zfs_scan_suspend_progress may stay set (default: 600)",
    )
    _json(parser, "one JSON object a tunable and line")


COMMANDS: dict[str, tuple[str, Callable[[argparse.ArgumentParser], None]]] = {
    "status": (
        "one-shot health report of live pools or of saved zpool status output",
        _configure_status,
    ),
    "balance": ("how evenly data is spread over the top-level vdevs", _configure_balance),
    "watch": ("follow mode: a line, or a JSON object, a pool and sample", _configure_watch),
    "record": ("write samples to a file until interrupted or the scan ends", _configure_record),
    "replay": ("the console, or watch's output, over a recording", _configure_replay),
    "demo": ("the console over a simulated pool; needs no ZFS and no root", _configure_demo),
    "rebalance": (
        "rewrite directories so that their blocks spread over all vdevs",
        _configure_rebalance,
    ),
    "tunables": ("scan and rebuild tunables: list, set, preset, restore", _configure_tunables),
    "report": (
        "the report of a scan: rates, limits, devices, promises; two compared",
        _configure_report,
    ),
    "export": ("Prometheus metrics: served, or as node_exporter's textfile", _configure_export),
    "themes": ("the themes found, where they are, and any that failed to load", _configure_themes),
    "console": (
        "the console; the word is needed only for a pool named like a command",
        _configure_console,
    ),
}
"""What each does, and its options; each is a module of ``zconsole.cli`` with ``run(args)``."""
