"""What a command line may hold, read from the parsers: man pages and completions are made of it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from zconsole.cli.options import COMMANDS, parser_of

KINDS: Mapping[str, str] = {
    "POOL": "pool",
    "JOB": "job",
    "DIR": "directory",
    "FILE": "file",
    "FILE|-": "file",
    "N|FILE": "file",
    "PATH": "file",
    "DISK": "file",
    "RECORDING": "file",
    "NAME|PATH": "theme",
    "USER@HOST[,...]": "host",
    "CMD": "command",
}
"""By metavar, of what kind the words are that a shell can complete; any other is free text."""


@dataclass(frozen=True)
class Word:
    """An argument, or the value of an option."""

    name: str
    """As help shows it; empty for what only takes one of its choices."""
    choices: tuple[str, ...]
    """All it can be; empty where that is not known here."""
    kind: str
    """One of ``KINDS``, or empty."""

    @property
    def shown(self) -> str:
        """As a synopsis shows it: ``POOL``, ``auto|copy|rewrite``."""
        return self.name or "|".join(self.choices)


@dataclass(frozen=True)
class Argument:
    """An argument of a command."""

    word: Word
    text: str
    required: bool
    many: bool


@dataclass(frozen=True)
class Option:
    """An option of a command."""

    names: tuple[str, ...]
    text: str
    value: Word | None = None
    """None for a switch."""
    count: int = 0
    """How many words it takes; where it takes any number, 1."""
    more: bool = False
    """Whether it takes any number."""


@dataclass(frozen=True)
class OptionGroup:
    """Options that ``--help`` shows under one title."""

    title: str
    about: str
    options: tuple[Option, ...]


@dataclass(frozen=True)
class Command:
    """A command, or a command of a command; the console with all commands is that of no words."""

    words: tuple[str, ...]
    """After ``zconsole``."""
    about: str
    """What it does, in a phrase."""
    usage: str
    """A synopsis of its own; empty if its options and arguments say it all."""
    arguments: tuple[Argument, ...]
    groups: tuple[OptionGroup, ...]
    commands: tuple[Command, ...] = ()

    @property
    def options(self) -> Iterator[Option]:
        """Those of all groups."""
        return (option for group in self.groups for option in group.options)

    def walk(self) -> Iterator[Command]:
        """The command itself and all below it."""
        yield self
        for command in self.commands:
            yield from command.walk()


def command_tree() -> Command:
    """The console, with every command below it."""
    commands = tuple(
        _command((name,), about, parser_of(name)) for name, (about, _) in COMMANDS.items()
    )
    console = _command(
        (), "terminal console for ZFS resilvers, scrubs and rebalances", parser_of("console")
    )
    return replace(console, usage="", commands=commands)


def _command(words: tuple[str, ...], about: str, parser: argparse.ArgumentParser) -> Command:
    # argparse has no public list of what it parses; the tools that read parsers use these two.
    groups = [(group, _own(group._group_actions)) for group in parser._action_groups]
    inner = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    return Command(
        words,
        about,
        " ".join((parser.usage or "").split()),
        tuple(_argument(action) for action in _own(parser._actions) if not action.option_strings),
        tuple(
            OptionGroup(group.title or "", group.description or "", options)
            for group, actions in groups
            if (options := tuple(_option(each) for each in actions if each.option_strings))
        ),
        tuple(
            _command((*words, phrase.dest), phrase.help or "", action.choices[phrase.dest])
            for action in inner
            for phrase in action._choices_actions
        ),
    )


def _own(actions: Sequence[argparse.Action]) -> Sequence[argparse.Action]:
    """Without the commands of a command."""
    return [each for each in actions if not isinstance(each, argparse._SubParsersAction)]


def _argument(action: argparse.Action) -> Argument:
    required, many = action.nargs in (None, "+"), action.nargs in ("*", "+")
    return Argument(_word(action), _text(action), required, many)


def _option(action: argparse.Action) -> Option:
    names, text = tuple(action.option_strings), _text(action)
    if action.nargs == 0:
        return Option(names, text)
    count = action.nargs if isinstance(action.nargs, int) else 1
    return Option(names, text, _word(action), count, action.nargs == "+")


def _word(action: argparse.Action) -> Word:
    name = action.metavar if isinstance(action.metavar, str) else ""
    return Word(name, _choices(action), KINDS.get(name, ""))


def _choices(action: argparse.Action) -> tuple[str, ...]:
    if action.dest not in ("scenario", "named"):
        return tuple(action.choices or ())
    # Only the demo loads them, and argparse would have them loaded for every help.
    from zconsole.sim import scenarios

    return scenarios.names()


def _text(action: argparse.Action) -> str:
    return (action.help or "") % {**vars(action), "prog": "zconsole"}
