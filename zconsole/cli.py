"""The command line: one parser, one command module a command, exit codes for every ending."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import os
import sys
from collections.abc import Iterator, Sequence

from zconsole import __version__
from zconsole.errors import ExitCode, ZconsoleError
from zconsole.units import clean

COMMANDS = {
    "status": "one-shot health report of live pools or of saved zpool status output",
    "balance": "how evenly data is spread over the top-level vdevs",
    "watch": "follow mode: a line, or a JSON object, a pool and sample",
    "record": "write samples to a file until interrupted or the scan ends",
    "replay": "the console, or watch's output, over a recording",
    "demo": "the console over a simulated pool; needs no ZFS and no root",
    "rebalance": "rewrite directories so that their blocks spread over all vdevs",
    "tunables": "scan and rebuild tunables: list, set, preset, restore",
    "themes": "the themes found, where they are, and any that failed to load",
    "console": "the console; the word is needed only for a pool named like a command",
}
"""Each is a module of ``zconsole.commands`` with ``configure(parser)`` and ``run(args)``."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code and never lets a traceback out for bad input."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        return _dispatch(words)
    except ZconsoleError as error:
        print(f"zconsole: {clean(str(error))}", file=sys.stderr)
        return error.code
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        _swallow_stdout()
        return ExitCode.OK


def _dispatch(words: list[str]) -> int:
    name = command_of(words)
    module = importlib.import_module(f"zconsole.commands.{name}")
    parser = _parser(name)
    module.configure(parser)
    with _tidy_stdout():
        return int(module.run(parser.parse_args(_without_command(words, name))))


def command_of(words: Sequence[str]) -> str:
    """The command named by the first word that is no global option; ``console`` otherwise."""
    index = _first_word(words)
    if index is not None and words[index] in COMMANDS:
        return words[index]
    return "console"


def add_common(parser: argparse.ArgumentParser) -> None:
    """The options every command takes."""
    common = parser.add_argument_group("everywhere")
    common.add_argument("--theme", metavar="NAME|PATH", help="a theme by name or file")
    common.add_argument("--ascii", action="store_true", default=None, help="ASCII characters only")
    common.add_argument("--read-only", action="store_true", help="watch only, change nothing")
    common.add_argument("--no-mouse", action="store_true", help="leave the mouse to the terminal")
    common.add_argument("--version", action="version", version=f"zconsole {__version__}")


def _parser(name: str) -> argparse.ArgumentParser:
    if name != "console":
        parser = argparse.ArgumentParser(
            prog=f"zconsole {name}",
            description=f"{COMMANDS[name].capitalize()}.",
            allow_abbrev=False,
        )
    else:
        listing = "\n".join(f"  {word:<10} {text}" for word, text in COMMANDS.items())
        parser = argparse.ArgumentParser(
            prog="zconsole",
            usage="zconsole [POOL ...] | zconsole COMMAND ...",
            description="The terminal console for a ZFS resilver, scrub or rebalance.",
            epilog=f"commands (each has --help):\n{listing}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
    add_common(parser)
    return parser


def _first_word(words: Sequence[str]) -> int | None:
    """Index of the first word that is neither a global option nor its value."""
    index = 0
    while index < len(words):
        if words[index] == "--":
            return None
        if words[index] == "--theme":
            index += 2
        elif words[index].startswith("-"):
            index += 1
        else:
            return index
    return None


def _without_command(words: list[str], name: str) -> list[str]:
    index = _first_word(words)
    if index is not None and words[index] == name:
        return words[:index] + words[index + 1 :]
    return words


@contextlib.contextmanager
def _tidy_stdout() -> Iterator[None]:
    """Flush while a closed pipe can still be answered quietly; surrogates are never fatal."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    yield
    sys.stdout.flush()


def _swallow_stdout() -> None:
    """Point stdout nowhere, so that the interpreter's own last flush cannot complain."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
