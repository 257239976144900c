"""The scripts contain every command and option, even if no shell is installed to test them."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache

import pytest

from tests.table import rows
from zconsole.cli.completion import LISTS, SCRIPTS
from zconsole.cli.grammar import Command
from zconsole.cli.main import main
from zconsole.cli.options import COMMANDS, command_tree
from zconsole.cli.tunables import NAMES
from zconsole.sim import scenarios


@cache
def every() -> tuple[Command, ...]:
    return tuple(command_tree().walk())


@cache
def script_of(shell: str) -> str:
    return SCRIPTS[shell]()


def of_bash(script: str, command: Command) -> set[str]:
    """Return the words that the script has for a command."""
    case = script.partition(f'    "{" ".join(command.words)}")\n')[2].partition(";;")[0]
    return set(re.findall(r"[\w-]+", case))


def of_zsh(script: str, command: Command) -> set[str]:
    name = "_".join(("_zconsole", *command.words))
    function = script.partition(f"\n{name}() {{\n")[2].partition("\n}\n")[0]
    return set(re.findall(r"[\w-]+", function))


def of_fish(script: str, command: Command) -> set[str]:
    place = f"\"__zconsole_at '{' '.join(command.words)}'"
    lines = [line for line in script.splitlines() if place in line]
    long, short = (re.findall(rf" -{key} ([\w-]+)", "\n".join(lines)) for key in "ls")
    inner = re.findall(r" -a ([\w-]+)", "\n".join(lines))
    return {*(f"--{name}" for name in long), *(f"-{name}" for name in short), *inner}


@rows("command", every)
@rows("words_of", [of_bash, of_zsh, of_fish])
def test_every_option_and_command_is_in_every_script(words_of, command):
    options = {name for option in command.options for name in option.names}
    inner = {each.words[-1] for each in command.commands}
    shell = words_of.__name__.removeprefix("of_")
    assert options | inner <= words_of(script_of(shell), command)


@rows("shell", SCRIPTS)
def test_choices_are_in_every_script(shell, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert script == script_of(shell)
    for choices in (("auto", "copy", "rewrite"), NAMES, scenarios.names(), ("bash", "zsh", "fish")):
        assert " ".join(choices) in script


@pytest.mark.parametrize("shell", SCRIPTS)
def test_a_script_parses(shell):
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    said = run([shell, "-n"], script_of(shell))
    assert (said.returncode, said.stdout, said.stderr) == (0, "", "")


@rows("kind", LISTS)
def test_nothing_is_printed_where_nothing_can_be_listed(kind, tmp_path):
    failing = tmp_path / "zpool"
    failing.write_text("#!/bin/sh\necho odd; echo failed >&2; exit 1\n" * (kind == "pool"))
    script = f"{script_of('bash')}\n_zconsole_list {kind}"
    said = run(
        ["bash", "-c", script],
        "",
        PATH="/usr/bin:/bin",
        HOME=str(tmp_path / "none"),
        ZCONSOLE_STATE=str(tmp_path / "state"),
    )
    shipped = ["ansi16", "colorblind", "dark", "high-contrast", "light"]
    assert said.stdout.split() == (shipped if kind == "theme" else [])
    assert said.stderr == ""


def test_an_unknown_shell_is_refused(capsys):
    assert main(["completion", "tcsh"]) == 2
    assert "invalid choice: 'tcsh'" in capsys.readouterr().err


def test_no_word_needs_quoting():
    words = [word for command in every() for word in command.words]
    for command in every():
        words += [c for argument in command.arguments for c in argument.choices]
        words += [c for option in command.options for c in option.choices]
    assert set(COMMANDS) < set(words)
    assert [word for word in words if not re.fullmatch(r"[a-z0-9_-]+", word)] == []


def run(argv: Sequence[str], text: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv, input=text, env=environment or None, capture_output=True, text=True, check=False
    )
