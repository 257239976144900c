"""The options of every command, in a module of their own, so that ``--help`` loads little else."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from zconsole.cli.grammar import (
    Command,
    OptionGroup,
    Parameter,
    Parser,
    file_name,
    floor,
    positive,
    seconds,
    slip,
    switch,
    whole,
    within_a_day,
)

DEMO = "resilver"
"""The default of ``zconsole.sim.scenarios``, repeated here so that help loads no scenario."""
RECORDED = 300
"""Samples that the demo records unless told otherwise: five minutes, 8 MB of its default pool."""
PRESETS = ("faster-resilver", "gentle", "default")
LIMITED_BY = ("new-disk-writes", "txg-time", "scan-reads", "rebuild", "memory")
"""Limits in ``zconsole.tunables.catalog``, repeated here so that help doesn't load the catalog."""
SHIPPED = {
    "dashboard": "grafana-dashboard.json",
    "rules": "prometheus-rules.yml",
    "export-unit": "zconsole-export.service",
    "watch-unit": "zconsole-watch@.service",
    "rebalance-unit": "zconsole-rebalance.service",
}
"""File names, by the word for each in ``export --print``."""


def parser_of(name: str) -> argparse.ArgumentParser:
    """Return the parser of one command, with the options that every command takes.

    Only the parser of the running command is built: building all takes a fifth of the start.
    """
    command = _command(name)
    if name == "console":
        listing = "\n".join(f"  {word:<11} {each.about}" for word, each in COMMANDS.items())
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
        about = f"{command.about[:1].upper()}{command.about[1:]}."
        parser = Parser(prog=f"zconsole {name}", description=about, allow_abbrev=False)
    if command.commands:
        commands = parser.add_subparsers(
            dest="action", required=True, metavar="COMMAND", title="commands (each has --help)"
        )
        for each in command.commands:
            below = commands.add_parser(
                each.words[-1], help=each.about, description=f"{each.about.capitalize()}."
            )
            # Suppressed, so that a default here doesn't override an option before the subcommand.
            below.add(each, default=argparse.SUPPRESS)
    parser.add(command)
    if name == "swap":  # it opens the console, whose options it lacks: give it their defaults
        console = Parser(add_help=False)
        console.add(COMMANDS["console"])
        parser.set_defaults(**vars(console.parse_args([])))
    parser.set_defaults(config=None)
    return parser


def _command(name: str) -> Command:
    command = COMMANDS[name]._replace(words=(name,))
    if name != "rebalance":
        return command
    from zconsole.cli import rebalance_options  # lazy: no other command needs what it imports

    return command._replace(epilog=rebalance_options.EPILOG, commands=rebalance_options.COMMANDS)


def command_tree() -> Command:
    """Return the console's command, with every other command below it."""
    about = "terminal console for ZFS resilvers, scrubs and rebalances"
    commands = tuple(map(_command, COMMANDS))
    return COMMANDS["console"]._replace(about=about, commands=commands)


def _scenarios() -> Sequence[str]:
    from zconsole.sim import scenarios  # lazy: only the demo loads them

    return scenarios.names()


def _action(choices: tuple[str, ...], what: str) -> Parameter:
    return Parameter("action", "", what, nargs="?", default="list", choices=choices)


def _json(what: str) -> Parameter:
    return switch("--json", what)


def _saved(what: str) -> Parameter:
    text = f"read saved {what} output from a file, or standard input (-)"
    return Parameter("--from", "FILE|-", text, dest="saved", type=file_name)


def _interval(usual: float) -> Parameter:
    text = "seconds between samples (default: %(default)g)"
    return Parameter("--interval", "S", text, type=seconds, default=usual)


# The default keeps argparse from listing them as required.
_POOLS = Parameter("pools", "POOL", "only these pools (default: all)", nargs="*", default=[])
_POOL = Parameter("pool", "POOL", "only this pool (default: all)", nargs="?")
_COUNT = Parameter("--count", "N", "stop after N samples", type=whole)
_SPEED = Parameter(
    "--speed",
    "X",
    "play X times as fast as real time (default: %(default)g)",
    type=positive,
    default=1.0,
)
_HOST = Parameter("--host", "USER@HOST[,...]", "read the pools of other machines over ssh")
_ALERTS = OptionGroup(
    "alerts",
    # Wrapped by hand: the console's help, with its table of commands, is printed as is.
    "Each alert is sent once: scan finished and safe, finished but not restored,\n"
    "restarted, stalled, ETA slipped, new device errors, device missing, no\n"
    "redundancy left, data errors, pool suspended, unavailable or without a\n"
    "sample for 5 minutes, too little free space, a spare that would not help,\n"
    "scrub overdue.",
    (
        Parameter(
            "--hook",
            "CMD",
            "run CMD without a shell for each alert, sent as JSON on its standard input",
        ),
        switch("--bell", "ring the bell for each alert"),
        switch(
            "--notify",
            "show each alert on the desktop, through the terminal (OSC 9, 777)",
        ),
        Parameter(
            "--stalled-after",
            "S",
            "alert after S seconds without progress, at least 60 (default: %(default)g)",
            type=positive,
            default=600.0,
        ),
        Parameter(
            "--slip",
            "SHARE",
            "alert when the ETA slips by more than SHARE (0 to 1) of the expected time"
            " (default: %(default)g)",
            type=slip,
            default=0.25,
        ),
        Parameter(
            "--free-floor",
            "SHARE",
            "alert when less than SHARE (0 to 1) of the pool is free (default: %(default)g)",
            type=floor,
            default=0.05,
        ),
    ),
)

COMMANDS: dict[str, Command] = {
    "status": Command(
        "report the health of live pools or of saved zpool status output",
        (
            _POOLS,
            _HOST,
            _saved("zpool status"),
            _json("print JSON, one pool per line"),
            switch(
                "--exit-status",
                "exit with 10 if a pool is degraded or has data errors, 11 if faulted or suspended",
            ),
        ),
    ),
    "balance": Command(
        "show how evenly data is spread over the top-level vdevs",
        (
            _POOL,
            _saved("zpool list -v"),
            _json("print JSON, one pool per line"),
            OptionGroup(
                "what if",
                "A SIZE is raw bytes in all (36.4T), or disks: 6x3T, raidz2:6x3T, mirror:2x4T."
                " 18TB is decimal, as on a drive; 18T and 18TiB are binary, as zpool prints them.",
                (
                    Parameter(
                        "--add-vdev",
                        "SIZE",
                        "predict the balance with these vdevs added",
                        nargs="+",
                        default=[],
                    ),
                    Parameter(
                        "--resize",
                        "NAME=SIZE",
                        "predict the balance with these vdevs resized",
                        nargs="+",
                        default=[],
                    ),
                    Parameter(
                        "--disk", "SIZE", "predict how long a new disk of SIZE would resilver"
                    ),
                ),
            ),
        ),
    ),
    "watch": Command(
        "follow pools: print one line per pool and sample",
        (
            _POOLS,
            _interval(1.0),
            _COUNT,
            _json("print JSON, one pool and sample per line"),
            switch(
                "--until-done",
                "stop when no scan runs; exit with 0 if restored, 10 if not, 12 if canceled",
            ),
            _HOST,
            _ALERTS,
        ),
    ),
    "record": Command(
        "write samples to a file until the scan ends or you interrupt it",
        (
            Parameter("file", "FILE", "the recording to write or extend", type=file_name),
            _POOLS,
            _interval(1.0),
            _COUNT,
        ),
    ),
    "replay": Command(
        "play a recording in the console, or print its samples",
        (
            Parameter("file", "FILE", "the recording to play", type=file_name),
            _SPEED,
            _json("print JSON samples, as fast as possible"),
        ),
    ),
    "demo": Command(
        "try the console on a simulated pool; needs no ZFS and no root",
        (
            Parameter(
                "named",
                "NAME",
                f"simulate this scenario (default: {DEMO}); see --list",
                nargs="?",
                known=_scenarios,
            ),
            Parameter("--scenario", "NAME", "the same as NAME", known=_scenarios),
            switch("--list", "list and describe the scenarios"),
            Parameter(
                "--seed",
                "N",
                "same seed, same simulation (default: %(default)d)",
                type=int,
                default=1,
            ),
            _SPEED,
            _json("print JSON samples at simulated time, without a console"),
            Parameter(
                "--record",
                "FILE",
                f"write a recording at simulated time, of {RECORDED} samples or --count;"
                " zconsole replay plays it",
                type=file_name,
            ),
            Parameter("--count", "N", "stop --json or --record after N samples", type=whole),
            _interval(1.0),
        ),
    ),
    "rebalance": Command("rewrite directories so that their blocks spread over all vdevs", ()),
    "swap": Command(
        "guide you through a disk swap, step by step",
        (
            Parameter("pool", "POOL", "the pool (default: all)", nargs="?"),
            Parameter(
                "device",
                "DEVICE",
                "the disk to swap: by bay, serial, GUID, path or name (default: what failed)",
                nargs="?",
            ),
            _json("print the open checklists as JSON, one per line; ask nothing"),
        ),
        usage="zconsole swap [POOL [DEVICE]] [--json]",
    ),
    "tunables": Command(
        "list, set and restore the tunables of scans and rebuilds",
        (
            _action(
                ("list", "set", "preset", "restore", "hold-latency"),
                "list all (default), set values, apply a preset, restore the original values,"
                " or let scans go as fast as the latency of applications allows",
            ),
            Parameter(
                "words",
                "NAME",
                f"set: NAME=VALUE (bytes also as 16M); preset: {', '.join(PRESETS)};"
                " restore: names (default: all); hold-latency: the latency (20ms), others by time"
                " of day (22:00-06:00=100ms), below-defaults to allow scans slower than by the"
                " defaults also without redundancy; or off",
                nargs="*",
            ),
            Parameter(
                "--limit",
                "",
                "with preset faster-resilver: lift only this limit",
                choices=LIMITED_BY,
            ),
            Parameter(
                "--for",
                "SECONDS",
                "with set zfs_scan_suspend_progress=1: restore it after SECONDS (default: 600)",
                dest="seconds",
                type=within_a_day,
                default=600.0,
            ),
            switch(
                "--yes",
                "go below the defaults without asking (hold-latency)",
            ),
            _json("print JSON, one tunable per line"),
        ),
        usage="zconsole tunables [list | set NAME=VALUE ... | preset NAME |\n"
        "    restore [NAME ...] | hold-latency SECONDS|off]\n"
        "    [--limit LIMIT] [--for SECONDS] [--yes] [--json]",
    ),
    "light": Command(
        "light the bay of a disk for four hours",
        (
            _action(
                ("list", "on", "off", "resume"),
                "list the lights that are on (default), switch one, or resume"
                " after a reboot: light those again whose time isn't over",
            ),
            Parameter(
                "disk",
                "DISK",
                "its path or serial number; off without one: every light that zconsole switched on",
                nargs="?",
            ),
            _json("print JSON, one light per line"),
        ),
    ),
    "scrub": Command(
        "scrub a pool only in some hours of the day",
        (
            _action(
                ("list", "window", "off", "resume"),
                "list the hours that are set (default), set (window) or drop (off) those of a"
                " pool, or resume after a reboot: keep to them again",
            ),
            Parameter("pool", "POOL", "the pool, for window and off", nargs="?"),
            Parameter(
                "hours",
                "HH:MM-HH:MM",
                "scrub only then, such as 22:00-06:00; paused outside, progress is kept",
                nargs="?",
            ),
            _json("print JSON, one pool per line"),
        ),
    ),
    "keeper": Command(
        "list what zconsole does in the background, or end it",
        (
            _action(
                ("list", "end"),
                "list what goes on (default), or end it and restore the tunables that it holds",
            ),
            _json("print JSON, one task per line"),
        ),
    ),
    "report": Command(
        "report on a scan, or compare two: rates, limits, devices, ETAs",
        (
            _POOL,
            OptionGroup(
                "",
                "",
                (
                    Parameter(
                        "--scan", "N", "which scan (default: 1, the newest)", type=whole, default=1
                    ),
                    switch("--list", "list the reports, one per line"),
                    Parameter(
                        "--compare",
                        "N|FILE",
                        "compare two scans, each given by number, saved JSON report or recording",
                        nargs=2,
                    ),
                ),
            ),
            OptionGroup(
                "",
                "",
                (
                    _json("print JSON"),
                    switch("--svg", "print a chart of the rate over time"),
                    switch("--md", "print Markdown (default)"),
                ),
            ),
            Parameter(
                "--from",
                "RECORDING",
                "report on the scans of a recording",
                dest="recording",
                type=file_name,
            ),
        ),
    ),
    "export": Command(
        "export Prometheus metrics, over HTTP or as a text file",
        (
            _POOLS,
            _HOST,
            Parameter("--listen", "[ADDR:]PORT", "serve /metrics (default ADDR: 127.0.0.1)"),
            Parameter(
                "--textfile", "PATH", "rewrite the file PATH at every sample", type=file_name
            ),
            _interval(15.0),
            _COUNT,
            Parameter(
                "--print",
                "NAME",
                f"print a file to install, and exit: {', '.join(SHIPPED)}",
                dest="shipped",
                choices=tuple(SHIPPED),
            ),
        ),
    ),
    "themes": Command(
        "list the themes, their files, and any that failed to load",
        (_json("print JSON, one theme per line"),),
    ),
    "config": Command(
        "show or check the configuration, or print its path",
        (
            Parameter(
                "action",
                "",
                "path: where the file is; show: every setting and its origin; check: what is wrong",
                choices=("path", "show", "check"),
            ),
            _json("print JSON, one setting or wrong entry per line"),
        ),
    ),
    "man": Command("print the manual page of zconsole, or of a command", ()),
    "completion": Command(
        "print a script that completes words in bash, zsh or fish",
        (Parameter("shell", "", "the shell you use", choices=("bash", "zsh", "fish")),),
    ),
    "console": Command(
        "open the console; only needed for a pool named like a command",
        (_POOLS, _interval(1.0), _HOST, _ALERTS),
    ),
}
"""Every command, by name; each is a module of ``zconsole.cli`` with a function ``run(args)``."""

_PAGE = Parameter(
    "command",
    "COMMAND",
    "a command, or security (default: zconsole itself); read its page with | man -l -",
    nargs="?",
    choices=(*COMMANDS, "security"),
)
COMMANDS["man"] = COMMANDS["man"]._replace(rows=(_PAGE,))

CONFIGURED = frozenset(
    {"console", "watch", "record", "export", "status", "demo", "replay", "rebalance", "tunables"}
    | {"light", "scrub", "swap", "keeper"}
)
"""Commands that read the configuration."""
