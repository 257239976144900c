"""``zconsole completion``: the scripts that complete zconsole's words in bash, zsh and fish.

Each is a template, ``share/completion.SHELL``, filled with the commands and options of the parsers.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping
from importlib import resources

from zconsole.cli.grammar import Command, Parameter
from zconsole.cli.options import PRESETS, command_tree
from zconsole.errors import ExitCode
from zconsole.tunables.catalog import TUNABLES
from zconsole.ui.theme.files import packaged_directory

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
"""Kind of word, by metavar, for the words that a shell can complete; all others are free text."""

LISTS: Mapping[str, str] = {
    "pool": 'env PATH="$PATH:/usr/sbin:/sbin:/usr/local/sbin" zpool list -H -o name',
    "job": (
        'set -- "${ZCONSOLE_STATE:-${XDG_STATE_HOME:-$HOME/.local/state}/zconsole}"; '
        '[ -n "${ZCONSOLE_STATE:-}" ] || set -- "$1" /var/lib/zconsole; '
        'for place; do for file in "$place"/rebalance/*.json; do '
        '[ -e "$file" ] && basename "$file" .json; done; done'
    ),
    "theme": (
        f"echo {' '.join(sorted(path.stem for path in packaged_directory().glob('*.toml')))}"
        ' | tr " " "\\n"; '
        'for file in "${XDG_CONFIG_HOME:-$HOME/.config}"/zconsole/themes/*.toml; do '
        '[ -e "$file" ] && basename "$file" .toml; done'
    ),
}
"""Shell command, by kind of word, that prints all such words there are, one per line."""

AFTER: Mapping[str, tuple[str, ...]] = {
    "list": (),
    "set": tuple(f"{tunable.name}=" for tunable in TUNABLES),
    "preset": PRESETS,
    "restore": tuple(tunable.name for tunable in TUNABLES),
}
"""Words that may follow each action of ``zconsole tunables``."""


def run(args: argparse.Namespace) -> int:
    """Print the script of one shell."""
    print(SCRIPTS[args.shell](), end="")
    return ExitCode.OK


def _completed() -> Command:
    """Return the command tree, with each action that further arguments follow as a subcommand."""
    tree = command_tree()
    return tree._replace(commands=tuple(map(_with_choices, tree.commands)))


def _with_choices(command: Command) -> Command:
    if len(command.arguments) < 2 or not command.arguments[0].choices:
        return command
    first, *rest = command.arguments
    options = [row for row in command.rows if row not in command.arguments]
    inner = []
    for choice in first.choices:
        words = AFTER.get(choice)
        after = rest if words is None else [each.limited_to(words) for each in rest if words]
        inner.append(Command("", (*after, *options), words=(*command.words, choice)))
    return command._replace(rows=tuple(options), commands=tuple(inner))


def _kind(word: Parameter) -> str:
    return KINDS.get(word.metavar, "")


def _filled(shell: str, **parts: Iterable[str]) -> str:
    text = (resources.files("zconsole") / "share" / f"completion.{shell}").read_text("utf-8")
    for name, lines in parts.items():
        text = text.replace(f"@{name}@", "\n".join(lines))
    return text


def _valued(tree: Command) -> Mapping[str, Parameter]:
    """Return every option that takes a value, by name; a name means the same in all commands."""
    every = (option for command in tree.walk() for option in command.options)
    return {name: option for option in every if option.count for name in option.names}


# bash


def bash() -> str:
    """Return the script for bash."""
    tree = _completed()
    return _filled(
        "bash",
        commands=map(_bash_command, tree.walk()),
        options=(
            f'    {name}) count={option.count} kind="{_bash_kind(option)}" ;;'
            for name, option in _valued(tree).items()
        ),
        lists=(f"    {kind}) sh -c '{text}' 2>/dev/null ;;" for kind, text in LISTS.items()),
    )


def _bash_command(command: Command) -> str:
    options = " ".join(name for option in command.options for name in option.names)
    inner = " ".join(each.words[-1] for each in command.commands)
    kinds = (f'"{_bash_kind(a)}{"+" if a.many else ""}"' for a in command.arguments)
    return (
        f'    "{" ".join(command.words)}")\n        options="{options}"\n'
        f'        commands="{inner}"\n        kinds=({" ".join(kinds)})\n        ;;'
    )


def _bash_kind(word: Parameter) -> str:
    return f"={' '.join(word.choices)}" if word.choices else _kind(word)


# fish


def fish() -> str:
    """Return the script for fish."""
    tree = _completed()
    return _filled(
        "fish",
        commands=[" ".join(_fish_word(" ".join(each.words)) for each in tree.walk() if each.words)],
        valued=[" ".join(name for name, o in _valued(tree).items() for _ in range(o.count))],
        lists=(
            f"function __zconsole_{kind}\n    sh -c '{text}' 2>/dev/null\nend"
            for kind, text in LISTS.items()
        ),
        completions=(line for command in tree.walk() for line in _fish_lines(command)),
    )


def _fish_lines(command: Command) -> Iterable[str]:
    place = f"__zconsole_at '{' '.join(command.words)}'"
    for inner in command.commands:
        about = f" -d {_fish_word(inner.about)}" if inner.about else ""
        yield f'complete -c zconsole -n "{place} command" -a {inner.words[-1]}{about}'
    for number, argument in enumerate(command.arguments):
        where = f"{place} {number}{'+' if argument.many else ''}"
        yield f'complete -c zconsole -n "{where}"{_fish_values(argument)}'
    for option in command.options:
        names = (f"-l {n[2:]}" if n.startswith("--") else f"-s {n[1:]}" for n in option.names)
        value = f" -r{_fish_values(option)}" if option.count else ""
        about = _fish_word(option.text)
        yield f'complete -c zconsole -n "{place}" {" ".join(names)}{value} -d {about}'
        if option.count > 1:  # -r above covers one value only
            yield f'complete -c zconsole -n "{place} value"{_fish_values(option)}'


def _fish_values(word: Parameter) -> str:
    """Return the switches of ``complete`` for a word's values.

    Files are offered for words that are files; ``-f`` turns that off for all others.
    """
    if word.choices:
        return f" -f -a '{' '.join(word.choices)}'"
    own = {kind: f"__zconsole_{kind}" for kind in LISTS}
    standard = {
        "directory": "__fish_complete_directories",
        "host": "__fish_complete_user_at_hosts",
        "command": "__fish_complete_command",
    }
    function = {**own, **standard}.get(_kind(word))
    files = " -F" if _kind(word) in ("file", "theme") else " -f"
    return f"{files} -a '({function})'" if function else files


def _fish_word(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


# zsh


def zsh() -> str:
    """Return the script for zsh."""
    tree = _completed()
    lists = (
        f"_zconsole_{kind}() {{\n  _zconsole_lines {kind} '{text}'\n}}\n"
        for kind, text in LISTS.items()
    )
    return _filled("zsh", functions=(*lists, *map(_zsh_function, tree.walk())))


def _zsh_function(command: Command) -> str:
    options = [_zsh_option(option) for option in command.options]
    own = [*options, *map(_zsh_argument, command.arguments)]
    if not command.commands:
        return f"{_zsh_name(command)}() {{\n  {_zsh_arguments(own)}\n}}\n"
    abouts = "\n".join(
        f"    {_zsh_word(f'{each.words[-1]}:{each.about}' if each.about else each.words[-1])}"
        for each in command.commands
    )
    cases = "\n".join(f"    ({each.words[-1]}) {_zsh_name(each)} ;;" for each in command.commands)
    more = ""
    if command.arguments:  # the console: its first word is a command or a pool
        cases += f"\n    (*) {_zsh_arguments(own)} ;;"
        more = f"    {_zsh_action(command.arguments[0])}\n"
    return (
        f"{_zsh_name(command)}() {{\n"
        "  local curcontext=$curcontext state state_descr line\n"
        "  local -A opt_args\n"
        f"  local -a commands=(\n{abouts}\n  )\n"
        f"  {_zsh_arguments([*options, _zsh_word('(-)*:: :->words')], '-C')}\n"
        "  [[ $state == words ]] || return\n"
        "  if (( CURRENT == 1 )); then\n"
        f"    _describe -t commands command commands\n{more}"
        "    return\n"
        "  fi\n"
        f"  case $words[1] in\n{cases}\n  esac\n}}\n"
    )


def _zsh_name(command: Command) -> str:
    return "_".join(("_zconsole", *command.words))


def _zsh_arguments(specs: Iterable[str], switches: str = "") -> str:
    return " \\\n    ".join((f"_arguments -S {switches}".rstrip(), *specs))


def _zsh_option(option: Parameter) -> str:
    # In a specification, brackets enclose the description and colons separate the parts.
    text = "".join(f"\\{c}" if c in "[]:\\" else c for c in option.text)
    if not option.count:
        alone = option.names[-1] in ("--help", "--version")
        before = "'(- *)'" if alone else ""
        names = f"{{{','.join(option.names)}}}" if len(option.names) > 1 else option.names[0]
        return f"{before}{names}{_zsh_word(f'[{text}]')}"
    name = option.shown.replace(":", "\\:")
    values = f":{name}:{_zsh_action(option)}" * option.count
    return _zsh_word(f"{option.names[-1]}=[{text}]{values}")


def _zsh_argument(argument: Parameter) -> str:
    before = "*" if argument.many else "" if argument.required else ":"
    return _zsh_word(f"{before}:{argument.shown}:{_zsh_action(argument)}")


def _zsh_action(word: Parameter) -> str:
    """Return the action of ``_arguments`` that completes a word; a space completes nothing."""
    if word.choices:
        if all(choice.endswith("=") for choice in word.choices):
            return f'compadd -S "" {" ".join(word.choices)}'
        return f"({' '.join(word.choices)})"
    return {
        "pool": "_zconsole_pool",
        "job": "_zconsole_job",
        "theme": "{_zconsole_theme; _files}",
        "file": "_files",
        "directory": "_directories",
        "host": "_user_at_host",
        "command": " _command_names -e",
    }.get(_kind(word), " ")


def _zsh_word(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


SCRIPTS: Mapping[str, Callable[[], str]] = {"bash": bash, "zsh": zsh, "fish": fish}
"""Functions that build the script, by shell."""
