"""The grammar of the parsers, from which man pages and completions are made."""

from __future__ import annotations

import argparse
from collections import defaultdict

import pytest

from tests.table import rows
from zconsole.cli.completion import KINDS
from zconsole.cli.grammar import floor, positive, share, size_above_0, slip
from zconsole.cli.options import COMMANDS, command_tree
from zconsole.cli.rebalance_options import COMMANDS as OF_REBALANCE
from zconsole.sim import scenarios

FREE = {
    "LETTERS",
    "S",
    "N",
    "X",
    "F",
    "SHARE",
    "SIZE",
    "NAME=SIZE",
    "NAME",
    "COMMAND",
    "SECONDS",
    "LIMIT",
}
FREE |= {"DEVICE"}
FREE |= {"BYTES/S", "HH:MM-HH:MM", "[ADDR:]PORT"}
"""Metavars of words that a shell cannot know, or whose choices are all known."""
TREE = command_tree()
EVERY = tuple(TREE.walk())


def test_every_command_is_there():
    named = [command.words for command in EVERY]
    inner = [each.words for each in OF_REBALANCE]
    assert sorted(named) == sorted([(), *((name,) for name in COMMANDS), *inner])
    assert all(command.about for command in EVERY)


def test_the_words_a_shell_can_complete_are_known_by_their_metavar():
    words = [argument for command in EVERY for argument in command.arguments]
    words += [option for command in EVERY for option in command.options if option.count]
    assert {word.metavar for word in words} - FREE - {""} == set(KINDS)
    assert all(word.choices for word in words if not word.metavar)


def test_an_option_takes_the_same_in_every_command():
    found = defaultdict(set)
    for command in EVERY:
        for option in command.options:
            found[option.names].add((option.count, option.choices, KINDS.get(option.metavar)))
    assert {names for names, taken in found.items() if len(taken) > 1} == set()


def test_counts_and_choices_are_as_the_parser_takes_them():
    options = {each.names[-1]: each for command in EVERY for each in command.options}
    assert (options["--json"].count, options["--json"].shown) == (0, "")
    assert (options["--compare"].count, options["--compare"].many) == (2, False)
    assert (options["--add-vdev"].count, options["--add-vdev"].many) == (1, True)
    scenario = options["--scenario"]
    assert options["--engine"].shown == "auto|copy|rewrite"
    assert (scenario.shown, scenario.choices) == ("NAME", scenarios.names())


def test_numbers_are_read():
    assert (size_above_0("10m"), share("0.25"), positive("3")) == (10 << 20, 0.25, 3.0)
    assert (slip("25%"), floor("0")) == (0.25, 0.0)


@rows(
    ("read", "word"),
    [
        (size_above_0, "x"),
        (size_above_0, "0"),
        (share, "1.5"),
        (share, "nan"),
        (share, "10%"),
        (positive, "0"),
        (positive, "inf"),
    ],
)
def test_anything_else_is_told_in_words(read, word):
    with pytest.raises(
        argparse.ArgumentTypeError, match=f"must be a (size|share|number) .*, not '{word}'"
    ):
        read(word)
