"""Entry point of the command line: finds the command, parses its options, and runs it."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import sys
from collections.abc import Iterator, Sequence

from zconsole.cli.options import COMMANDS, CONFIGURED, parser_of
from zconsole.errors import ExitCode, ZconsoleError
from zconsole.system.printable import clean, swallow


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; errors are printed in one line on stderr."""
    _open_streams()
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        return _dispatch(words)
    except ZconsoleError as error:
        print(f"zconsole: {clean(str(error))}", file=sys.stderr)
        return error.code
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        swallow()
        return ExitCode.OK
    except OSError as error:
        swallow()
        print(f"zconsole: {clean(_reason(error))}", file=sys.stderr)
        denied = isinstance(error, PermissionError)
        return ExitCode.UNAVAILABLE if denied else ExitCode.FAILED


def _dispatch(words: list[str]) -> int:
    name, rest = command_of(words)
    parser = parser_of(name)
    args = parser.parse_args(rest)
    if name in CONFIGURED:
        # lazy: --help and commands without settings need none of it
        from zconsole.cli.config import applied

        args = applied(name, parser, rest, args)
    command = importlib.import_module(f"zconsole.cli.{name}")
    with _tidy_stdout():
        return int(command.run(args))


def command_of(words: Sequence[str]) -> tuple[str, list[str]]:
    """Return the command, ``console`` if none is named, and the other words.

    The command is the first word that is neither an option of the console nor the value of one;
    any other word there is a pool's name.
    """
    options = COMMANDS["console"].options
    valued = {name for option in options if option.count for name in option.names}
    numbered = iter(enumerate(words))
    for index, word in numbered:
        if word in valued:
            next(numbered, None)
        elif word in COMMANDS:
            return word, [*words[:index], *words[index + 1 :]]
        elif word == "--" or not word.startswith("-"):
            break
    return "console", list(words)


@contextlib.contextmanager
def _tidy_stdout() -> Iterator[None]:
    """Flush stdout at the end, while BrokenPipeError can still be handled.

    Both streams escape surrogates, which stand for bytes that are not UTF-8, instead of failing.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    yield
    sys.stdout.flush()


def _reason(error: OSError) -> str:
    """Describe a system error as ``PATH: reason``, or by its reason alone if it has no path."""
    reason = error.strerror or str(error)
    name = error.filename
    if isinstance(name, bytes):
        name = os.fsdecode(name)
    return f"{name}: {reason}" if isinstance(name, str) else reason  # or a descriptor's number


def _open_streams() -> None:
    """Replace each closed standard stream with a harmless one.

    Python sets a closed one to None, and ``print(file=None)`` writes to standard output.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))
