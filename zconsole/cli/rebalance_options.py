"""The sub-commands of `zconsole rebalance` and their options."""

from __future__ import annotations

import argparse
import contextlib
import sys
import textwrap
from importlib import resources
from pathlib import Path

from zconsole.cli.option_types import add_common, check, positive, share, size_above_0

UNIT = "zconsole-rebalance.service"


def configure(parser: argparse.ArgumentParser) -> None:
    """The sub-commands and their options."""
    _show_unit(parser)
    commands = parser.add_subparsers(dest="action", required=True, metavar="COMMAND")
    plan = commands.add_parser("plan", help="measure, predict, change nothing")
    _add_work(plan)
    plan.add_argument("--progress", action="store_true", help="count on stdout while it is made")
    run = commands.add_parser("run", help="move the files of directories")
    _add_work(run)
    _add_run(run)
    status = commands.add_parser("status", help="one job, or all")
    status.add_argument("job", nargs="?", metavar="JOB")
    for word, text in (("pause", "hold a running job"), ("stop", "end a running job")):
        commands.add_parser(word, help=text).add_argument("job", metavar="JOB")
    resume = commands.add_parser("resume", help="go on with a paused, stopped or dead job")
    resume.add_argument("job", nargs="?", metavar="JOB")
    resume.add_argument("--all", action="store_true", help="jobs ended by a death or a shutdown")
    _add_limits(resume)
    _show_unit(resume)
    for command in commands.choices.values():
        command.add_argument("--json", action="store_true", help="JSON objects on stdout")
        add_common(command, default=argparse.SUPPRESS)  # as it was before the command's name


def _show_unit(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (
        "To have interrupted jobs go on after a reboot, install this as\n"
        f"/etc/systemd/system/{UNIT} and enable it:\n\n"
        + textwrap.indent(systemd_unit(sys.argv[0], sys.executable), "  ")
    )


def systemd_unit(program: str, interpreter: str) -> str:
    """The unit that resumes jobs, with the whole path of this program: systemd searches few.

    ``program`` is how it was started; where that is a module, ``interpreter`` runs it.
    """
    template = (resources.files("zconsole") / "share" / UNIT).read_text()
    if Path(program).name == "zconsole":
        return template.format(command=_word(str(Path(program).absolute())))
    return template.format(command=f"{_word(interpreter)} -m zconsole")


def _word(path: str) -> str:
    """A path as systemd takes it for one word (systemd.service(5))."""
    safe = path.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{safe}"' if safe != path or " " in path else path


def _add_work(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dirs", nargs="*", metavar="DIR")
    parser.add_argument("--engine", choices=("auto", "copy", "rewrite"), default="auto")
    parser.add_argument(
        "--aim",
        choices=("balance", "width", "properties", "recordsize"),
        default="balance",
        help="even fill; parity width after an expansion; new compression or checksum; recordsize",
    )
    parser.add_argument(
        "--accept-races",
        action="store_true",
        help="copy even where a write of another process could be lost",
    )
    parser.add_argument("--allow-non-zfs", action="store_true", help="copy on any filesystem")
    _add_limits(parser)


def _add_limits(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--limit-rate", dest="rate", type=size_above_0, metavar="BYTES/S")
    parser.add_argument("--max-latency", type=positive, metavar="SECONDS")
    parser.add_argument("--max-bytes", type=size_above_0, metavar="N")
    parser.add_argument("--until-spread", type=share, metavar="F", help="0 to 1")
    parser.add_argument("--min-free", type=share, metavar="F", help="share to keep free, 0 to 1")
    parser.add_argument("--window", type=_window, metavar="HH:MM-HH:MM")


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--detach", action="store_true", help="run in the background")
    parser.add_argument("--during-scan", action="store_true", help="do not wait for scans to end")
    parser.add_argument("--journal", type=Path, metavar="PATH", help="resumes the job if it exists")


def _window(word: str) -> str:
    from zconsole.rebalance.planning.settings import window_minutes

    fits = False
    with contextlib.suppress(ValueError):
        fits = bool(window_minutes(word))
    check(word, "a window, as 22:00-06:00", fits)
    return word
