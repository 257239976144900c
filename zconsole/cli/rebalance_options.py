"""The subcommands of ``zconsole rebalance`` and their options."""

from __future__ import annotations

import contextlib
from pathlib import Path

from zconsole.cli.grammar import Command, Parameter, check, positive, share, size_above_0, switch
from zconsole.rebalance.planning.settings import HELP

EPILOG = (
    "To resume interrupted jobs after a reboot, write what `zconsole export --print rebalance-unit`"
    " prints to /etc/systemd/system/zconsole-rebalance.service, and enable that unit."
)


def _letters(word: str) -> str:
    letters = word.lstrip("-")
    check(word, "some of the letters P, S, C", set(letters) <= set("PSC"))
    return "".join(letter for letter in "PSC" if letter in letters)


def _window(word: str) -> str:
    from zconsole.system.day_hours import day_hours

    fits = False
    with contextlib.suppress(ValueError):
        fits = bool(day_hours(word))
    check(word, "hours such as 22:00-06:00", fits)
    return word


_LIMITS = (
    Parameter(
        "--limit-rate",
        dest="rate",
        type=size_above_0,
        metavar="BYTES/S",
        help=f"{HELP['rate']}, such as 100M",
    ),
    Parameter(
        "--max-latency",
        type=positive,
        metavar="SECONDS",
        help=f"{HELP['max_latency']}, such as 0.05",
    ),
    Parameter("--max-bytes", type=size_above_0, metavar="N", help=HELP["max_bytes"]),
    Parameter("--until-spread", type=share, metavar="F", help=f"{HELP['until_spread']}, 0 to 1"),
    Parameter(
        "--min-free",
        type=share,
        metavar="F",
        help=f"{HELP['min_free']}, 0 to 1 (default: 0.05)",
    ),
    Parameter("--window", type=_window, metavar="HH:MM-HH:MM", help=HELP["window"]),
)
_WORK = (
    Parameter("dirs", nargs="*", metavar="DIR", help="directories whose files to move"),
    Parameter(
        "--engine",
        choices=("auto", "copy", "rewrite"),
        default="auto",
        help=f"{HELP['engine']} (default: auto)",
    ),
    Parameter(
        "--aim",
        choices=("balance", "width", "properties", "recordsize"),
        default="balance",
        help=HELP["aim"],
    ),
    Parameter(
        "--rewrite-options",
        type=_letters,
        default="",
        metavar="LETTERS",
        help=HELP["rewrite_options"],
    ),
    switch("--accept-races", HELP["accept_races"]),
    switch("--allow-non-zfs", "allow copies on any filesystem"),
    *_LIMITS,
)
_RUN = (
    switch("--yes", "start without asking"),
    switch("--detach", "run in the background"),
    switch("--during-scan", HELP["during_scan"]),
    Parameter(
        "--journal",
        type=Path,
        metavar="PATH",
        help="keep the job's journal here; if it exists, resume its job",
    ),
)
_JOB = Parameter("job", metavar="JOB", help="the id of the job")
_JSON = switch("--json", "print JSON, one object per line")


def _command(name: str, about: str, *rows: Parameter, epilog: str = "") -> Command:
    return Command(about, (*rows, _JSON), epilog=epilog, words=("rebalance", name))


COMMANDS = (
    _command(
        "plan",
        "predict what moving files would do; changes nothing",
        *_WORK,
        switch("--progress", "print counts as JSON while files are counted"),
    ),
    _command("run", "move the files of directories", *_WORK, *_RUN),
    _command(
        "status",
        "show one job, or all",
        Parameter("job", nargs="?", metavar="JOB", help="only this job (default: all)"),
    ),
    _command("pause", "pause a running job", _JOB),
    _command("stop", "stop a running job", _JOB),
    _command(
        "resume",
        "resume a paused, stopped or interrupted job",
        Parameter("job", nargs="?", metavar="JOB", help="the id of the job, unless --all"),
        switch(
            "--all",
            "resume every job that a crash or shutdown interrupted",
        ),
        *_LIMITS,
        epilog=EPILOG,
    ),
)
