"""What a command line may hold: parsers, man pages and completions are made of these rows."""

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
    """An option, or an argument where its name begins with no dash."""

    def __init__(
        self,
        *names: str,
        known: Callable[[], Sequence[str]] = tuple,
        **settings: Any,
    ) -> None:
        """``settings`` are keywords of ``ArgumentParser.add_argument``.

        ``known`` gives all words, where ``choices`` would have them loaded for every help.
        """
        self.names = names
        self.settings = settings
        self._known = known

    @property
    def is_option(self) -> bool:
        """Whether it is named on the command line."""
        return self.names[0].startswith("-")

    @property
    def text(self) -> str:
        """What it is, in a phrase."""
        return str(self.settings["help"] % self.settings)

    @property
    def metavar(self) -> str:
        """Its words, as help shows them; empty for a switch, and for what takes one of choices."""
        return str(self.settings.get("metavar", ""))

    @property
    def choices(self) -> tuple[str, ...]:
        """All its words can be; empty where that is not known here."""
        return tuple(self.settings.get("choices") or self._known())

    @property
    def count(self) -> int:
        """How many words it takes, 0 for a switch; where it takes any number, 1."""
        words = self.settings.get("nargs")
        return words if isinstance(words, int) else int("action" not in self.settings)

    @property
    def many(self) -> bool:
        """Whether it takes any number."""
        return self.settings.get("nargs") in ("*", "+")

    @property
    def required(self) -> bool:
        """Whether it is an argument that cannot be left out."""
        return not self.is_option and self.settings.get("nargs") in (None, "+")

    @property
    def shown(self) -> str:
        """Its words as a synopsis shows them: ``POOL``, ``auto|copy|rewrite``."""
        return self.metavar or "|".join(self.choices)


def switch(name: str, what: str) -> Parameter:
    """An option without a value."""
    return Parameter(name, action="store_true", help=what)


class OptionGroup(NamedTuple):
    """Options that ``--help`` shows under one title, or of which only one may be given."""

    title: str
    """Empty where only one may be given: they stand among the others."""
    about: str
    options: tuple[Parameter, ...]


class Command(NamedTuple):
    """A command, or a command of a command; the console with all commands is that of no words."""

    about: str
    """What it does, in a phrase."""
    rows: tuple[Parameter | OptionGroup, ...]
    usage: str = ""
    """A synopsis of its own; empty if its options and arguments say it all."""
    epilog: str = ""
    words: tuple[str, ...] = ()
    """After ``zconsole``."""
    commands: tuple[Command, ...] = ()

    @property
    def arguments(self) -> tuple[Parameter, ...]:
        """What it takes without a name."""
        return tuple(r for r in self.rows if isinstance(r, Parameter) and not r.is_option)

    @property
    def groups(self) -> tuple[OptionGroup, ...]:
        """Its options by title, with those of every command."""
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
        """Those of all groups."""
        return (option for group in self.groups for option in group.options)

    def walk(self) -> Iterator[Command]:
        """The command itself and all below it."""
        yield self
        for command in self.commands:
            yield from command.walk()


HELP = Parameter("-h", "--help", action="help", help="show this help message and exit")
"""As argparse has it."""
COMMON = OptionGroup(
    "options of every command",
    "",
    (
        Parameter(
            "--theme",
            metavar="NAME|PATH",
            help="use the theme of this name (see zconsole themes) or in this file",
        ),
        Parameter("--ascii", action="store_true", default=None, help="print ASCII only"),
        switch("--read-only", "watch only, change nothing"),
        switch("--no-mouse", "leave the mouse to the terminal"),
        Parameter(
            "--version",
            action="version",
            version=f"zconsole {__version__}",
            help="print the version and exit",
        ),
    ),
)


class Parser(argparse.ArgumentParser):
    """A parser that answers bad usage with one line instead of the whole usage."""

    def _get_formatter(self) -> argparse.HelpFormatter:
        # Called for each option; argparse would load shutil and all compression for the width.
        return self.formatter_class(prog=self.prog, width=_columns() - 2)  # type: ignore[call-arg]

    def error(self, message: str) -> NoReturn:
        """Raises UsageError."""
        raise UsageError(f"{message}; see {self.prog} --help")

    def add(self, command: Command, **unset: Any) -> None:
        """Add what a command takes; ``unset`` may give options of every one another ``default``."""
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


# Words as values: each reader raises an ArgumentTypeError that says what is expected.


def size_above_0(word: str) -> int:
    """Bytes: ``10M``."""
    value = parse_size(word.upper()) or 0
    check(word, "a size above 0, such as 10M", value > 0)
    return value


def whole(word: str) -> int:
    """A count: at least 1."""
    try:
        value = int(word)
    except ValueError:
        value = 0
    check(word, "a whole number above 0", value > 0)
    return value


def file_name(word: str) -> str:
    """A file, or ``-``; an empty word is an unset variable."""
    check(word, "a file name", bool(word))
    return word


def check(word: str, what: str, fits: bool) -> None:
    """Raise unless the word ``fits``; the message says what is expected."""
    if not fits:
        raise argparse.ArgumentTypeError(f"must be {what}, not {word!r}")


def number(allowed: NumberRange) -> Callable[[str], float]:
    """A reader of numbers in a range."""

    def _read(word: str) -> float:
        try:
            return allowed.read(word)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return _read


positive = number(POSITIVE)
seconds = number(INTERVAL)
"""Between samples."""
share = number(NumberRange("a share from 0 to 1", lambda n: 0 <= n <= 1))
slip = number(SLIP)
floor = number(FLOOR)
within_a_day = number(NumberRange("above 0, at most 86400 seconds", lambda n: 0 < n <= 86_400))
