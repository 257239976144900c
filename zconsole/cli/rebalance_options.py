"""The sub-commands of `zconsole rebalance` and their options."""

from __future__ import annotations

import argparse
import contextlib
from pathlib import Path

from zconsole.cli.option_types import add_common, check, positive, share, size_above_0
from zconsole.cli.shipped_files import FILES
from zconsole.rebalance.planning.settings import HELP

COMMANDS = {
    "plan": "predict what moving files would do; changes nothing",
    "run": "move the files of directories",
    "status": "show one job, or all",
    "pause": "pause a running job",
    "stop": "stop a running job",
    "resume": "resume a paused, stopped or interrupted job",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the sub-commands and their options."""
    _name_unit(parser)
    commands = parser.add_subparsers(
        dest="action", required=True, metavar="COMMAND", title="commands (each has --help)"
    )
    for name, text in COMMANDS.items():
        commands.add_parser(name, help=text, description=f"{text.capitalize()}.")
    plan, run, status, pause, stop, resume = commands.choices.values()
    _add_work(plan)
    plan.add_argument("--progress", action="store_true", help="print counts as JSON meanwhile")
    _add_work(run)
    _add_run(run)
    for each in (pause, stop):
        each.add_argument("job", metavar="JOB", help="the id of the job")
    status.add_argument("job", nargs="?", metavar="JOB", help="only this job (default: all)")
    resume.add_argument("job", nargs="?", metavar="JOB", help="the id of the job, unless --all")
    text = "resume every job that a crash or shutdown interrupted"
    resume.add_argument("--all", action="store_true", help=text)
    _add_limits(resume)
    _name_unit(resume)
    for command in commands.choices.values():
        command.add_argument("--json", action="store_true", help="print JSON, one object per line")
        add_common(command, default=argparse.SUPPRESS)  # as it was before the command's name


def _name_unit(parser: argparse.ArgumentParser) -> None:
    name = "rebalance-unit"
    parser.epilog = (
        f"To resume interrupted jobs after a reboot, write what `zconsole export --print {name}` "
        f"prints to /etc/systemd/system/{FILES[name]}, and enable that unit."
    )


def _add_work(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dirs", nargs="*", metavar="DIR", help="directories whose files to move")
    parser.add_argument(
        "--engine",
        choices=("auto", "copy", "rewrite"),
        default="auto",
        help=f"{HELP['engine']} (default: auto)",
    )
    parser.add_argument(
        "--aim",
        choices=("balance", "width", "properties", "recordsize"),
        default="balance",
        help=HELP["aim"],
    )
    parser.add_argument(
        "--rewrite-options",
        type=_letters,
        default="",
        metavar="LETTERS",
        help=HELP["rewrite_options"],
    )
    parser.add_argument("--accept-races", action="store_true", help=HELP["accept_races"])
    parser.add_argument(
        "--allow-non-zfs", action="store_true", help="allow copies on any filesystem"
    )
    _add_limits(parser)


def _add_limits(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--limit-rate",
        dest="rate",
        type=size_above_0,
        metavar="BYTES/S",
        help=f"{HELP['rate']}, such as 100M",
    )
    parser.add_argument(
        "--max-latency",
        type=positive,
        metavar="SECONDS",
        help=f"{HELP['max_latency']}, such as 0.05",
    )
    parser.add_argument("--max-bytes", type=size_above_0, metavar="N", help=HELP["max_bytes"])
    parser.add_argument(
        "--until-spread",
        type=share,
        metavar="F",
        help=f"{HELP['until_spread']}, 0 to 1",
    )
    parser.add_argument(
        "--min-free",
        type=share,
        metavar="F",
        help=f"{HELP['min_free']}, 0 to 1 (default: 0.05)",
    )
    parser.add_argument("--window", type=_window, metavar="HH:MM-HH:MM", help=HELP["window"])


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--yes", action="store_true", help="start without asking")
    parser.add_argument("--detach", action="store_true", help="run in the background")
    parser.add_argument("--during-scan", action="store_true", help=HELP["during_scan"])
    text = "keep the job's journal here; if it exists, resume its job"
    parser.add_argument("--journal", type=Path, metavar="PATH", help=text)


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
