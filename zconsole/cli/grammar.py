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
class Parameter:
    """An argument of a command, or an option with the words that it takes."""

    names: tuple[str, ...]
    """Of an option; empty for an argument."""
    text: str
    metavar: str
    """Its words, as help shows them; empty for a switch, and for what takes one of its choices."""
    choices: tuple[str, ...]
    """All its words can be; empty where that is not known here."""
    kind: str
    """One of ``KINDS``, or empty."""
    count: int
    """How many words it takes, 0 for a switch; where it takes any number, 1."""
    many: bool
    """Whether it takes any number."""
    required: bool

    @property
    def shown(self) -> str:
        """Its words as a synopsis shows them: ``POOL``, ``auto|copy|rewrite``."""
        return self.metavar or "|".join(self.choices)


@dataclass(frozen=True)
class OptionGroup:
    """Options that ``--help`` shows under one title."""

    title: str
    about: str
    options: tuple[Parameter, ...]


@dataclass(frozen=True)
class Command:
    """A command, or a command of a command; the console with all commands is that of no words."""

    words: tuple[str, ...]
    """After ``zconsole``."""
    about: str
    """What it does, in a phrase."""
    usage: str
    """A synopsis of its own; empty if its options and arguments say it all."""
    arguments: tuple[Parameter, ...]
    groups: tuple[OptionGroup, ...]
    commands: tuple[Command, ...] = ()

    @property
    def options(self) -> Iterator[Parameter]:
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
        tuple(_parameter(action) for action in _own(parser._actions) if not action.option_strings),
        tuple(
            OptionGroup(group.title or "", group.description or "", options)
            for group, actions in groups
            if (options := tuple(_parameter(each) for each in actions if each.option_strings))
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


def _parameter(action: argparse.Action) -> Parameter:
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    return Parameter(
        tuple(action.option_strings),
        (action.help or "") % {**vars(action), "prog": "zconsole"},
        metavar,
        _choices(action),
        KINDS.get(metavar, ""),
        count=action.nargs if isinstance(action.nargs, int) else 1,
        many=action.nargs in ("*", "+"),
        required=action.nargs in (None, "+") and not action.option_strings,
    )


def _choices(action: argparse.Action) -> tuple[str, ...]:
    if action.dest not in ("scenario", "named"):
        return tuple(action.choices or ())
    # Only the demo loads them, and argparse would have them loaded for every help.
    from zconsole.sim import scenarios

    return scenarios.names()
