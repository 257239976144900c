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
        "--limit-rate", "BYTES/S", f"{HELP['rate']}, such as 100M", dest="rate", type=size_above_0
    ),
    Parameter("--max-latency", "SECONDS", f"{HELP['max_latency']}, such as 0.05", type=positive),
    Parameter("--max-bytes", "N", HELP["max_bytes"], type=size_above_0),
    Parameter("--until-spread", "F", f"{HELP['until_spread']}, 0 to 1", type=share),
    Parameter("--min-free", "F", f"{HELP['min_free']}, 0 to 1 (default: 0.05)", type=share),
    Parameter("--window", "HH:MM-HH:MM", HELP["window"], type=_window),
)
_WORK = (
    Parameter("dirs", "DIR", "directories whose files to move", nargs="*"),
    Parameter(
        "--engine",
        "",
        f"{HELP['engine']} (default: auto)",
        choices=("auto", "copy", "rewrite"),
        default="auto",
    ),
    Parameter(
        "--aim",
        "",
        HELP["aim"],
        choices=("balance", "width", "properties", "recordsize"),
        default="balance",
    ),
    Parameter("--rewrite-options", "LETTERS", HELP["rewrite_options"], type=_letters, default=""),
    switch("--fill-new", HELP["fill_new"]),
    switch("--accept-races", HELP["accept_races"]),
    switch("--allow-non-zfs", "allow copies on any filesystem"),
    *_LIMITS,
)
_RUN = (
    switch("--yes", "start without asking"),
    switch("--detach", "run in the background"),
    switch("--during-scan", HELP["during_scan"]),
    Parameter(
        "--journal", "PATH", "keep the job's journal here; if it exists, resume its job", type=Path
    ),
)
_JOB = Parameter("job", "JOB", "the id of the job")
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
        Parameter("job", "JOB", "only this job (default: all)", nargs="?"),
    ),
    _command("pause", "pause a running job", _JOB),
    _command("stop", "stop a running job", _JOB),
    _command(
        "resume",
        "resume a paused, stopped or interrupted job",
        Parameter("job", "JOB", "the id of the job, unless --all", nargs="?"),
        switch(
            "--all",
            "resume every job that a crash or shutdown interrupted",
        ),
        *_LIMITS,
        epilog=EPILOG,
    ),
)
