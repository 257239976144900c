"""Every command's options, in a module so light that ``--help`` loads nothing else."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NoReturn

from zconsole import __version__
from zconsole.cli.option_types import file_name, positive
from zconsole.errors import UsageError

COMMANDS = {
    "status": "one-shot health report of live pools or of saved zpool status output",
    "balance": "how evenly data is spread over the top-level vdevs",
    "watch": "follow mode: a line, or a JSON object, a pool and sample",
    "record": "write samples to a file until interrupted or the scan ends",
    "replay": "the console, or watch's output, over a recording",
    "demo": "the console over a simulated pool; needs no ZFS and no root",
    "rebalance": "rewrite directories so that their blocks spread over all vdevs",
    "tunables": "scan and rebuild tunables: list, set, preset, restore",
    "report": "the report of a scan: rates, limits, devices, promises; two compared",
    "export": "Prometheus metrics: served, or as node_exporter's textfile",
    "themes": "the themes found, where they are, and any that failed to load",
    "console": "the console; the word is needed only for a pool named like a command",
}
"""Each is a module of ``zconsole.cli`` with ``run(args)``."""

FASTEST = 0.1
"""Seconds: nobody needs samples more often, and every one costs the kernel a walk."""


class Parser(argparse.ArgumentParser):
    """A parser that answers a command line it cannot read with one line, not with its usage."""

    def _get_formatter(self) -> argparse.HelpFormatter:
        # Each option asks for one; argparse would load shutil and all compression for the width.
        return self.formatter_class(prog=self.prog, width=_columns() - 2)  # type: ignore[call-arg]

    def error(self, message: str) -> NoReturn:
        """Raises UsageError."""
        raise UsageError(f"{message}; see {self.prog} --help")


def _columns() -> int:
    """Columns of the terminal: ``COLUMNS``, else as it says itself, else 80."""
    told = os.environ.get("COLUMNS", "")
    if told.isdecimal() and int(told):
        return int(told)
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or 80  # type: ignore[union-attr]
    return 80


def parser_of(name: str) -> argparse.ArgumentParser:
    """The parser of one command, with the options every command takes."""
    if name == "console":
        parser = _console_parser()
    else:
        parser = Parser(
            prog=f"zconsole {name}",
            description=f"{COMMANDS[name][:1].upper()}{COMMANDS[name][1:]}.",
            allow_abbrev=False,
        )
    CONFIGURE[name](parser)
    _common(parser)
    for below in _below(parser):
        _common(below, default=argparse.SUPPRESS)  # as it was before the inner command's name
    return parser


def _below(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The parsers of a command's own commands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.values()


def _console_parser() -> argparse.ArgumentParser:
    listing = "\n".join(f"  {word:<9} {text}" for word, text in COMMANDS.items())
    return Parser(
        prog="zconsole",
        usage="zconsole [POOL ...] | zconsole COMMAND ...",
        description="The terminal console for a ZFS resilver, scrub or rebalance.",
        epilog=f"commands (each has --help):\n{listing}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def _common(parser: argparse.ArgumentParser, **unset: Any) -> None:
    """The options of every command. ``unset`` may name another ``default``."""
    common = parser.add_argument_group("everywhere")
    switch = partial(common.add_argument, action="store_true")
    common.add_argument("--theme", metavar="NAME|PATH", help="a theme by name or file", **unset)
    switch("--ascii", help="ASCII characters only", **{"default": None, **unset})
    switch("--read-only", help="watch only, change nothing", **unset)
    switch("--no-mouse", help="leave the mouse to the terminal", **unset)
    common.add_argument("--version", action="version", version=f"zconsole {__version__}")


def seconds(word: str) -> float:
    """Seconds between samples, for argparse: a tenth at the least."""
    value = positive(word)
    if value < FASTEST:
        raise argparse.ArgumentTypeError(f"not under {FASTEST:g} seconds")
    return value


def whole(word: str) -> int:
    """How many, at least 1, for argparse."""
    try:
        value = int(word)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{word!r} is no whole number above 0")
    return value


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


def _vigil(parser: argparse.ArgumentParser) -> None:
    from zconsole.cli.alert_options import configure

    configure(parser)


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
    _vigil(parser)


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
    _vigil(parser)


def _configure_rebalance(parser: argparse.ArgumentParser) -> None:
    from zconsole.cli.rebalance_options import configure

    configure(parser)


def _configure_tunables(parser: argparse.ArgumentParser) -> None:
    from zconsole.cli.tunables_options import configure

    configure(parser)


CONFIGURE: dict[str, Callable[[argparse.ArgumentParser], None]] = {
    "status": _configure_status,
    "balance": _configure_balance,
    "watch": _configure_watch,
    "record": _configure_record,
    "replay": _configure_replay,
    "demo": _configure_demo,
    "rebalance": _configure_rebalance,
    "tunables": _configure_tunables,
    "report": _configure_report,
    "export": _configure_export,
    "themes": _configure_themes,
    "console": _configure_console,
}
