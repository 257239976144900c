"""The `--help` text of each option."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from tests.table import rows
from zconsole.cli.options import COMMANDS, parser_of


def parsers() -> Iterator[argparse.ArgumentParser]:
    """Yield the parser of every command and subcommand."""
    for name in COMMANDS:
        parser = parser_of(name)
        yield parser
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                yield from action.choices.values()


@rows("parser", [*parsers()])
def test_every_option_is_described_in_a_phrase(parser):
    assert parser.description
    own = [each for each in parser._actions if not isinstance(each, argparse._SubParsersAction)]
    phrases = {each.dest: each.help or "" for each in own}
    assert {dest for dest, phrase in phrases.items() if len(phrase.split()) < 2} == set()
    assert {phrase for phrase in phrases.values() if phrase.endswith(".")} == set()


@rows("parser", [*parsers()])
def test_a_default_that_is_a_number_is_told(parser):
    silent = [
        each.dest
        for each in parser._actions
        if type(each.default) in (int, float) and "default:" not in (each.help or "")
    ]
    assert silent == []


def test_the_options_of_every_command_are_listed_alike_wherever_they_are():
    """All appear in the same order, so that whoever knows one help knows each."""
    listed = {
        parser.prog: [action.option_strings[0] for action in group._group_actions]
        for parser in parsers()
        for group in parser._action_groups
        if group.title == "options of every command"
    }
    wanted = ["--theme", "--ascii", "--read-only", "--no-mouse", "--version"]
    assert len(listed) >= len(COMMANDS)
    assert {prog: names for prog, names in listed.items() if names != wanted} == {}
