"""The command line: one parser, one module per command, an exit code for every outcome."""

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
    """Run one command; returns its exit code and never lets a traceback out for bad input."""
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
    """The command, and the other words; ``console`` if none is named.

    It is the first word that is neither an option of the console nor the value of one.
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
    """Flush while a closed pipe can still be ignored; surrogates are never fatal."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    yield
    sys.stdout.flush()


def _reason(error: OSError) -> str:
    """A system error as ``PATH: reason``; a full disk has only a reason."""
    reason = error.strerror or str(error)
    name = error.filename
    if isinstance(name, bytes):
        name = os.fsdecode(name)
    return f"{name}: {reason}" if isinstance(name, str) else reason  # others are descriptors


def _open_streams() -> None:
    """Replace each closed standard stream with a harmless one.

    Python has None for it, which ``print`` takes for standard output.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))
