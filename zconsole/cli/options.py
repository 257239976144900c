"""Every command's options, in a light module, so that ``--help`` loads nothing else."""

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

DEMO = "resilver"
"""As in ``zconsole.sim.scenarios``; repeated here so that help loads no scenario."""
PRESETS = ("faster-resilver", "gentle", "default")
LIMITED_BY = ("new-disk-writes", "txg-time", "scan-reads", "rebuild", "memory")
"""As in ``zconsole.tunables.catalog``; repeated here so that help loads no catalog."""


class Parser(argparse.ArgumentParser):
    """A parser that answers bad usage with one line instead of the whole usage."""

    def _get_formatter(self) -> argparse.HelpFormatter:
        # Called for each option; argparse would load shutil and all compression for the width.
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

    Only the running command's parser: building all twelve takes a fifth of the start.
    """
    about, configure = COMMANDS[name]
    if name == "console":
        listing = "\n".join(f"  {word:<10} {text}" for word, (text, _) in COMMANDS.items())
        parser = Parser(
            prog="zconsole",
            usage="zconsole [POOL ...] | zconsole COMMAND ...",
            description="The terminal console for a ZFS resilver, scrub or rebalance; ? shows its\n"
            "keys. Without ZFS, try: zconsole demo",
            epilog=f"commands (each has --help):\n{listing}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
    else:
        about = f"{about[:1].upper()}{about[1:]}."
        parser = Parser(prog=f"zconsole {name}", description=about, allow_abbrev=False)
    configure(parser)
    add_common(parser)
    parser.set_defaults(config=None)
    return parser


def _pools(parser: argparse.ArgumentParser) -> None:
    # The default keeps argparse from listing them as required.
    parser.add_argument(
        "pools", nargs="*", default=[], metavar="POOL", help="only these pools (default: all)"
    )


def _pace(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--interval",
        type=seconds,
        default=1.0,
        metavar="S",
        help="seconds between samples (default: %(default)g)",
    )


def _count(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--count", type=whole, metavar="N", help="stop after N samples")


def _speed(parser: argparse.ArgumentParser) -> None:
    text = "play X times as fast as real time (default: %(default)g)"
    parser.add_argument("--speed", type=positive, default=1.0, metavar="X", help=text)


def _json(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--json", action="store_true", help=what)


def _saved(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument(
        "--from",
        dest="saved",
        type=file_name,
        metavar="FILE|-",
        help=f"read saved {what} output from a file, or standard input (-)",
    )


def _host(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--host", metavar="USER@HOST[,...]", help="read the pools of other machines over ssh"
    )


def _alerts(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "alerts",
        # The console's help, with its table of commands, is printed as it stands here.
        "Each alert is sent once: scan finished and safe, finished but not restored,\n"
        "restarted, stalled, ETA slipped, new device errors, device gone, no\n"
        "redundancy left, data errors, pool suspended, unavailable or without a\n"
        "sample for 5 minutes, too little free space, a spare that would not help,\n"
        "scrub overdue.",
    )
    group.add_argument(
        "--hook",
        metavar="CMD",
        help="run CMD without a shell for each alert, sent as JSON on its standard input",
    )
    group.add_argument("--bell", action="store_true", help="ring the bell for each alert")
    group.add_argument(
        "--notify",
        action="store_true",
        help="show each alert on the desktop, through the terminal (OSC 9, 777)",
    )
    stalled = "alert after S seconds without progress, at least 60"
    slipped = "alert when the ETA slips by more than SHARE (0 to 1) of the expected time"
    filled = "alert when less than SHARE (0 to 1) of the pool is free"
    for option, read, default, metavar, text in (
        ("--stalled-after", positive, 600.0, "S", stalled),
        ("--slip", slip, 0.25, "SHARE", slipped),
        ("--free-floor", floor, 0.05, "SHARE", filled),
    ):
        described = f"{text} (default: %(default)g)"
        group.add_argument(option, type=read, default=default, metavar=metavar, help=described)


def _configure_status(parser: argparse.ArgumentParser) -> None:
    _pools(parser)
    _host(parser)
    _saved(parser, "zpool status")
    _json(parser, "print JSON, one pool per line")
    parser.add_argument(
        "--exit-status",
        action="store_true",
        help="exit with 10 if a pool is degraded or has data errors, 11 if faulted or suspended",
    )


def _configure_balance(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pool", nargs="?", metavar="POOL", help="only this pool (default: all)")
    _saved(parser, "zpool list -v")
    _json(parser, "print JSON, one pool per line")
    what = parser.add_argument_group(
        "what if", "A SIZE is raw bytes in all (36.4T), or disks: 6x3T, raidz2:6x3T, mirror:2x4T."
    )
    what.add_argument(
        "--add-vdev",
        nargs="+",
        default=[],
        metavar="SIZE",
        help="predict the balance with these vdevs added",
    )
    what.add_argument(
        "--resize",
        nargs="+",
        default=[],
        metavar="NAME=SIZE",
        help="predict the balance with these vdevs resized",
    )
    text = "predict how long a new disk of SIZE would resilver"
    what.add_argument("--disk", metavar="SIZE", help=text)


def _configure_watch(parser: argparse.ArgumentParser) -> None:
    _pools(parser)
    _pace(parser)
    _count(parser)
    _json(parser, "print JSON, one pool and sample per line")
    parser.add_argument(
        "--until-done",
        action="store_true",
        help="stop when no scan runs; exit with 0 if restored, 10 if not, 12 if canceled",
    )
    _host(parser)
    _alerts(parser)


def _configure_record(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", type=file_name, metavar="FILE", help="the recording to write or extend"
    )
    _pools(parser)
    _pace(parser)
    _count(parser)


def _configure_replay(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=file_name, metavar="FILE", help="the recording to play")
    _speed(parser)
    _json(parser, "print JSON samples, as fast as possible")


def _configure_demo(parser: argparse.ArgumentParser) -> None:
    text = f"simulate this scenario (default: {DEMO}); see --list"
    parser.add_argument("named", nargs="?", metavar="NAME", help=text)
    parser.add_argument("--scenario", metavar="NAME", help="the same as NAME")
    parser.add_argument("--list", action="store_true", help="list and describe the scenarios")
    text = "same seed, same simulation (default: %(default)d)"
    parser.add_argument("--seed", type=int, default=1, metavar="N", help=text)
    _speed(parser)
    _json(parser, "print JSON samples at simulated time, without a console")
    _count(parser)
    _pace(parser)


def _configure_report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pool", nargs="?", metavar="POOL", help="only this pool (default: all)")
    parser.add_argument(
        "--scan", type=whole, default=1, metavar="N", help="which scan (default: 1, the newest)"
    )
    parser.add_argument("--list", action="store_true", help="list the reports, one per line")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="print JSON")
    how.add_argument("--svg", action="store_true", help="print a chart of the rate over time")
    how.add_argument("--md", action="store_true", help="print Markdown (default)")
    parser.add_argument(
        "--compare",
        nargs=2,
        metavar="N|FILE",
        help="compare two scans, each given by number, saved JSON report or recording",
    )
    parser.add_argument(
        "--from",
        dest="recording",
        type=file_name,
        metavar="RECORDING",
        help="report on the scans of a recording",
    )


def _configure_export(parser: argparse.ArgumentParser) -> None:
    _pools(parser)
    _host(parser)
    parser.add_argument(
        "--listen", metavar="[ADDR:]PORT", help="serve /metrics (default ADDR: 127.0.0.1)"
    )
    parser.add_argument(
        "--textfile", type=file_name, metavar="PATH", help="rewrite the file PATH at every sample"
    )
    parser.add_argument(
        "--interval",
        type=seconds,
        default=15.0,
        metavar="S",
        help="seconds between samples (default: %(default)g)",
    )
    _count(parser)
    shipped = ("dashboard", "rules", "export-unit", "watch-unit", "rebalance-unit")
    parser.add_argument(
        "--print",
        dest="shipped",
        choices=shipped,
        metavar="NAME",
        help=f"print a file to install, and exit: {', '.join(shipped)}",
    )


def _configure_themes(parser: argparse.ArgumentParser) -> None:
    _json(parser, "print JSON, one theme per line")


def _configure_console(parser: argparse.ArgumentParser) -> None:
    _pools(parser)
    _pace(parser)
    _host(parser)
    _alerts(parser)


def _configure_rebalance(parser: argparse.ArgumentParser) -> None:
    from zconsole.cli.rebalance_options import configure

    configure(parser)


def _configure_swap(parser: argparse.ArgumentParser) -> None:
    parser.usage = "zconsole swap [POOL [DEVICE]] [--json]"
    parser.add_argument("pool", nargs="?", metavar="POOL", help="the pool (default: all)")
    parser.add_argument(
        "device",
        nargs="?",
        metavar="DEVICE",
        help="the disk to swap: by bay, serial, GUID, path or name (default: what failed)",
    )
    _json(parser, "print the open checklists as JSON, one per line; ask nothing")
    console = Parser(add_help=False)
    _configure_console(console)
    parser.set_defaults(**vars(console.parse_args([])))  # which it opens


def _configure_tunables(parser: argparse.ArgumentParser) -> None:
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
    _json(parser, "print JSON, one tunable per line")


def _configure_light(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action",
        nargs="?",
        default="list",
        choices=("list", "on", "off", "resume"),
        help="list the lights that are on (default), switch one, or resume"
        " after a reboot: light those again whose time isn't over",
    )
    text = "its path or serial number; off without one: every light that zconsole switched on"
    parser.add_argument("disk", nargs="?", metavar="DISK", help=text)
    _json(parser, "print JSON, one light per line")


def _configure_scrub(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action",
        nargs="?",
        default="list",
        choices=("list", "window", "off", "resume"),
        help="list the hours that are set (default), set (window) or drop (off) those of a pool, or"
        " resume after a reboot: keep to them again",
    )
    parser.add_argument("pool", nargs="?", metavar="POOL", help="the pool, for window and off")
    text = "scrub only then, such as 22:00-06:00; paused outside, progress is kept"
    parser.add_argument("hours", nargs="?", metavar="HH:MM-HH:MM", help=text)
    _json(parser, "print JSON, one pool per line")


def _configure_keeper(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action",
        nargs="?",
        default="list",
        choices=("list", "end"),
        help="list what is kept (default), or end it: what is held is restored",
    )
    _json(parser, "print JSON, one duty per line")


def _configure_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action",
        choices=("path", "show", "check"),
        help="path: where the file is; show: every setting and its origin; check: what is wrong",
    )
    _json(parser, "print JSON, one setting or wrong entry per line")


def _configure_man(parser: argparse.ArgumentParser) -> None:
    text = "a command, or security (default: zconsole itself); read its page with | man -l -"
    pages = (*COMMANDS, "security")
    parser.add_argument("command", nargs="?", choices=pages, metavar="COMMAND", help=text)


def _configure_completion(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell you use")


COMMANDS: dict[str, tuple[str, Callable[[argparse.ArgumentParser], None]]] = {
    "status": (
        "report the health of live pools or of saved zpool status output",
        _configure_status,
    ),
    "balance": ("show how evenly data is spread over the top-level vdevs", _configure_balance),
    "watch": ("follow pools: print one line per pool and sample", _configure_watch),
    "record": (
        "write samples to a file until the scan ends or you interrupt it",
        _configure_record,
    ),
    "replay": ("play a recording in the console, or print its samples", _configure_replay),
    "demo": ("try the console on a simulated pool; needs no ZFS and no root", _configure_demo),
    "rebalance": (
        "rewrite directories so that their blocks spread over all vdevs",
        _configure_rebalance,
    ),
    "swap": ("be led through a disk swap, step by step", _configure_swap),
    "tunables": ("list, set and restore the tunables of scans and rebuilds", _configure_tunables),
    "light": ("light the bay of a disk for four hours", _configure_light),
    "scrub": ("scrub a pool only in some hours of the day", _configure_scrub),
    "keeper": ("list what is kept in the background, or end it", _configure_keeper),
    "report": (
        "report on a scan, or compare two: rates, limits, devices, ETAs",
        _configure_report,
    ),
    "export": ("export Prometheus metrics, over HTTP or as a text file", _configure_export),
    "themes": ("list the themes, their files, and any that failed to load", _configure_themes),
    "config": ("show or check the configuration, or print its path", _configure_config),
    "man": ("print the manual page of zconsole, or of a command", _configure_man),
    "completion": (
        "print a script that completes words in bash, zsh or fish",
        _configure_completion,
    ),
    "console": (
        "open the console; only needed for a pool named like a command",
        _configure_console,
    ),
}
"""What each does, and its options; each is a module of ``zconsole.cli`` with ``run(args)``."""

CONFIGURED = frozenset(
    {"console", "watch", "record", "export", "status", "demo", "replay", "rebalance", "tunables"}
    | {"light", "scrub", "swap", "keeper"}
)
"""Commands that read the configuration."""
