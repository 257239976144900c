"""Commands, options and arguments as data, from which parsers, man pages and completions come."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

from zconsole import __version__
from zconsole.config.settings import FLOOR, INTERVAL, POSITIVE, SLIP, NumberRange
from zconsole.errors import UsageError
from zconsole.units import parse_size


class Parameter:
    """An option, or an argument if its name doesn't begin with a dash."""

    def __init__(
        self,
        name: str,
        metavar: str,
        text: str,
        *,
        short: str = "",
        known: Callable[[], Sequence[str]] = tuple,
        **settings: Any,
    ) -> None:
        """Take ``settings`` as further keywords of ``ArgumentParser.add_argument``.

        ``metavar`` stands for the value in help; it is empty for switches and fixed choices.
        ``known`` returns all possible words. Unlike ``choices``, it is only called when they are
        needed, so that ``--help`` needn't load them.
        """
        self.names = (short, name) if short else (name,)
        self.metavar = metavar
        shown = {"metavar": metavar} if metavar else {}
        self.settings = {"help": text, **shown, **settings}
        self._known = known

    def limited_to(self, words: Sequence[str]) -> Parameter:
        """Return this argument with other fixed choices."""
        found = Parameter(self.names[0], self.metavar, "", known=self._known)
        found.settings = {**self.settings, "choices": words}
        return found

    @property
    def is_option(self) -> bool:
        """Whether this is an option, given by its name."""
        return self.names[0].startswith("-")

    @property
    def text(self) -> str:
        """Description in a phrase: the help text with its values filled in."""
        return str(self.settings["help"] % self.settings)

    @property
    def choices(self) -> tuple[str, ...]:
        """All possible values; empty if they can't be listed."""
        return tuple(self.settings.get("choices") or self._known())

    @property
    def count(self) -> int:
        """Number of values: 0 for a switch, 1 also for an option that takes any number."""
        words = self.settings.get("nargs")
        return words if isinstance(words, int) else int("action" not in self.settings)

    @property
    def many(self) -> bool:
        """Whether it takes any number of values."""
        return self.settings.get("nargs") in ("*", "+")

    @property
    def required(self) -> bool:
        """Whether this is an argument that can't be left out."""
        return not self.is_option and self.settings.get("nargs") in (None, "+")

    @property
    def shown(self) -> str:
        """Value as a synopsis shows it: ``POOL``, ``auto|copy|rewrite``."""
        return self.metavar or "|".join(self.choices)


def switch(name: str, what: str) -> Parameter:
    """Return an option without a value."""
    return Parameter(name, "", what, action="store_true")


class OptionGroup(NamedTuple):
    """Options that ``--help`` shows under a title, or that exclude each other."""

    title: str
    """Empty for options that exclude each other; help lists these among the untitled ones."""
    about: str
    options: tuple[Parameter, ...]


class Command(NamedTuple):
    """A command or subcommand; the console, which has all commands below it, has no ``words``."""

    about: str
    """Description of the command, in a phrase."""
    rows: tuple[Parameter | OptionGroup, ...]
    usage: str = ""
    """Synopsis in place of the generated one; empty to generate it from options and arguments."""
    epilog: str = ""
    words: tuple[str, ...] = ()
    """Words of the command after ``zconsole``: ``("rebalance", "plan")``."""
    commands: tuple[Command, ...] = ()

    @property
    def arguments(self) -> tuple[Parameter, ...]:
        """Arguments: the parameters without a name on the command line."""
        return tuple(r for r in self.rows if isinstance(r, Parameter) and not r.is_option)

    @property
    def groups(self) -> tuple[OptionGroup, ...]:
        """Options grouped by title, including the options of every command."""
        own, titled = [HELP], []
        for row in self.rows:
            if isinstance(row, Parameter):
                own += [row] * row.is_option
            elif row.title:
                titled.append(row)
            else:
                own += row.options
        return (OptionGroup("options", "", tuple(own)), *titled, COMMON)

    @property
    def options(self) -> Iterator[Parameter]:
        """Options of all groups."""
        return (option for group in self.groups for option in group.options)

    def walk(self) -> Iterator[Command]:
        """Yield the command itself and all commands below it."""
        yield self
        for command in self.commands:
            yield from command.walk()


HELP = Parameter("--help", "", "show this help message and exit", short="-h", action="help")
"""The option that argparse itself adds to every parser, for man pages and completions."""
COMMON = OptionGroup(
    "options of every command",
    "",
    (
        Parameter(
            "--theme",
            "NAME|PATH",
            "use the theme of this name (see zconsole themes) or in this file",
        ),
        Parameter("--ascii", "", "draw the console in ASCII", action="store_true", default=None),
        switch("--read-only", "watch only, change nothing"),
        switch("--no-mouse", "leave the mouse to the terminal"),
        Parameter(
            "--version",
            "",
            "print the version and exit",
            action="version",
            version=f"zconsole {__version__}",
        ),
    ),
)


class Parser(argparse.ArgumentParser):
    """An argument parser that reports bad usage in one line instead of printing all of it."""

    def _get_formatter(self) -> argparse.HelpFormatter:
        # Called for each option. For the width, argparse would import shutil, which imports every
        # compression module.
        return self.formatter_class(prog=self.prog, width=_columns() - 2)  # type: ignore[call-arg]

    def error(self, message: str) -> NoReturn:
        """Raise UsageError with the message of argparse."""
        raise UsageError(f"{message}; see {self.prog} --help")

    def add(self, command: Command, **unset: Any) -> None:
        """Add the options and arguments of a command.

        ``unset`` are settings, such as ``default``, that replace those of the common options.
        """
        self.usage, self.epilog = command.usage or self.usage, command.epilog or self.epilog
        for row in (*command.rows, COMMON):
            if isinstance(row, Parameter):
                self.add_argument(*row.names, **row.settings)
                continue
            group: argparse._ActionsContainer = (
                self.add_argument_group(row.title, row.about or None)
                if row.title
                else self.add_mutually_exclusive_group()
            )
            for option in row.options:
                changed = unset if row is COMMON else {}
                group.add_argument(*option.names, **{**option.settings, **changed})


def _columns() -> int:
    try:
        return int(os.environ.get("COLUMNS", "0")) or os.get_terminal_size().columns or 80
    except (OSError, ValueError):
        return 80


# Converters of words to values: each raises an ArgumentTypeError that says what is expected.


def size_above_0(word: str) -> int:
    """Return a size in bytes, given like ``10M``."""
    value = parse_size(word.upper()) or 0
    check(word, "a size above 0, such as 10M", value > 0)
    return value


def whole(word: str) -> int:
    """Return a count, at least 1."""
    try:
        value = int(word)
    except ValueError:
        value = 0
    check(word, "a whole number above 0", value > 0)
    return value


def file_name(word: str) -> str:
    """Return a file name or ``-``; an empty word, likely an unset shell variable, is refused."""
    check(word, "a file name", bool(word))
    return word


def check(word: str, what: str, fits: bool) -> None:
    """Raise ArgumentTypeError unless the word ``fits``; ``what`` says what is expected."""
    if not fits:
        raise argparse.ArgumentTypeError(f"must be {what}, not {word!r}")


def number(allowed: NumberRange) -> Callable[[str], float]:
    """Return a converter for numbers in a range."""

    def _read(word: str) -> float:
        try:
            return allowed.read(word)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return _read


positive = number(POSITIVE)
seconds = number(INTERVAL)
"""Converter for the seconds between samples."""
share = number(NumberRange("a share from 0 to 1", lambda n: 0 <= n <= 1))
slip = number(SLIP)
floor = number(FLOOR)
within_a_day = number(NumberRange("above 0, at most 86400 seconds", lambda n: 0 < n <= 86_400))
