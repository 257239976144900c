"""``zconsole man``: manual pages, made of the parsers' options, the keys and share/man.toml."""

from __future__ import annotations

import argparse
import re
import textwrap
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from typing import Any

from zconsole import __version__
from zconsole.cli.grammar import COMMON, Command, Parameter
from zconsole.cli.options import command_tree
from zconsole.errors import ExitCode
from zconsole.ui import keys

WIDTH = 79
"""Columns of a page's source, which people read when something is wrong with the page."""
TOPICS = {"security": "what zconsole trusts, what other users can do, and what it logs"}
"""Pages of section 7, with a description of each."""


def run(args: argparse.Namespace) -> int:
    """Print a page in the markup of man(7)."""
    print(page(args.command), end="")
    return ExitCode.OK


def names() -> tuple[str | None, ...]:
    """Return the commands that have a page, and None for zconsole(1)."""
    return (None, *(command.words[0] for command in command_tree().commands))


def title(name: str | None) -> str:
    """Return the name of a page: ``zconsole-status``."""
    return f"zconsole-{name}" if name else "zconsole"


def page(name: str | None) -> str:
    """Return the page of a command or topic, or zconsole(1), in the markup of man(7), all ASCII.

    It has no date, so that a version always prints the same page.
    """
    tree = command_tree()
    command = next((each for each in tree.commands if each.words[0] == name), tree)
    texts = tomllib.loads((resources.files("zconsole") / "share" / "man.toml").read_text("utf-8"))
    prose: Mapping[str, Any] = texts["pages"].get(name or "zconsole", {})
    description = _paragraphs(prose.get("description", ()))
    more = {title_of: _paragraphs(text) for title_of, text in prose.get("sections", {}).items()}

    def _chosen(kind: str) -> Mapping[str, str]:
        """Return the rows of a table in man.toml that this page shows; zconsole(1) shows all."""
        table: Mapping[str, str] = texts[kind]
        return {each: table[each] for each in prose.get(kind, ())} if name else table

    if name in TOPICS:
        about, number = TOPICS[name], '7 "" "zconsole {}" "Miscellaneous"'
        sections = {"DESCRIPTION": description, **more}
    else:
        codes: Mapping[str, str] = {**texts["exit"], **prose.get("exit", {})}
        about, number = command.about, '1 "" "zconsole {}" "User Commands"'
        sections = {
            "SYNOPSIS": _synopsis(command),
            "DESCRIPTION": description,
            "COMMANDS": _entries({each.words[-1]: _command(each) for each in command.commands}),
            "OPTIONS": _options(command),
            "KEYS": [] if name else _keys(prose["keys"]),
            **more,
            "EXIT STATUS": _entries(dict(sorted(codes.items(), key=lambda item: int(item[0])))),
            "ENVIRONMENT": _entries(_chosen("environment")),
            "FILES": _entries(_chosen("files")),
            "EXAMPLES": _examples(prose.get("examples", ())),
        }
    heading = f".TH {_escaped(title(name).upper())} {number.format(__version__)}"
    lines = [heading, ".ad l", ".nr HY 0"]  # no hyphenation: names can be copied
    lines += [".SH NAME", *_wrapped(f"{title(name)} - {about}")]
    for section, body in sections.items():
        if body:
            lines += [f".SH {section}", *body]
    see = _see(tree if not name else None, prose.get("see", ()))
    return "\n".join([*lines, ".SH SEE ALSO", *see]) + "\n"


# Sections


def _synopsis(command: Command) -> list[str]:
    inner = [each for each in command.commands if command.words]
    lines = [line for each in inner or [command] for line in _usage(each)]
    if command.commands and not command.words:
        lines += [".SY zconsole", r"\fICOMMAND\fR [\fIARGUMENT\fR ...]", ".YS"]
    return lines


def _usage(command: Command) -> list[str]:
    start = f'.SY "{_escaped(" ".join(("zconsole", *command.words)))}"'
    if command.usage:
        return [start, *_wrapped(command.usage.removeprefix("zconsole ").partition(" ")[2]), ".YS"]
    options = [
        # No line break within an option; \& so that its dots don't end a sentence.
        rf"[{_invocation(option)}]\&".replace(" ", r"\ ")
        for group in command.groups
        if group is not COMMON
        for option in group.options
        if "--help" not in option.names
    ]
    arguments = []
    for argument in command.arguments:
        shown = _invocation(argument) + (r"\ ..." if argument.many else "")
        arguments.append(shown if argument.required else f"[{shown}]")
    return [start, *options, *arguments, ".YS"]


def _command(command: Command) -> str:
    """Return a sentence on a command, and a reference to its page if it has one."""
    page_of = "" if command.words[1:] else f" See {title(command.words[0])}(1)."
    return f"{_sentence(command.about)}{page_of}"


def _options(command: Command) -> list[str]:
    """Return the arguments, then the options by group, each listed once with its subcommands."""
    parts = [*command.walk()] if command.words else [command]
    lines = _parameters(parts, [part.arguments for part in parts])
    for title_of, about in {g.title: g.about for part in parts for g in part.groups}.items():
        if title_of != "options":
            lines += [f".SS {_escaped(title_of.capitalize())}", *_paragraphs([about] * bool(about))]
        named = [[g for g in part.groups if g.title == title_of] for part in parts]
        lines += _parameters(parts, [[o for g in groups for o in g.options] for groups in named])
    return lines


def _parameters(parts: Sequence[Command], taken: Iterable[Iterable[Parameter]]) -> list[str]:
    """Return an entry for each parameter that the parts take; it names those that do, if not all.

    The first part is the command itself, the others are its subcommands.
    """
    owners: dict[Parameter, list[Command]] = {}
    for part, parameters in zip(parts, taken, strict=True):
        for each in parameters:
            owners.setdefault(each, []).append(part)
    lines = []
    for each, own in owners.items():
        words = [f"`{part.words[-1]}`" for part in parts[1:] if part in own]
        only = "" if len(words) == len(parts) - 1 else f" Only with {', '.join(words)}."
        lines += _entry(_invocation(each), f"{_sentence(each.text)}{only}")
    return lines


def _keys(prose: Iterable[str]) -> list[str]:
    lines = _paragraphs(prose)
    for group in keys.EVERY_GROUP:
        lines.append(f".SS {group}")
        for key in keys.keys_of(group):
            shown = ", ".join(rf"\fB{_escaped(keys.shown(name))}\fR" for name in key.keys)
            lines += _entry(shown, key.text)
    return lines


def _entries(table: Mapping[str, str]) -> list[str]:
    return [
        line for name, text in table.items() for line in _entry(rf"\fB{_escaped(name)}\fR", text)
    ]


def _examples(examples: Iterable[Sequence[str]]) -> list[str]:
    lines = []
    for text, code in examples:
        shown = [_at_start(_escaped(line, code=True)) for line in code.splitlines()]
        lines += [".PP", *_wrapped(f"{text}:"), ".PP", ".RS 4", ".EX", *shown, ".EE", ".RE"]
    return lines[1:]  # the section itself begins a paragraph


def _see(tree: Command | None, more: Iterable[str]) -> list[str]:
    own = [title(each.words[0]) for each in tree.commands] if tree else ["zconsole"]
    pages = [*(f"{name}(1)" for name in sorted(own)), *more]
    parts = [(name, f"({number}") for name, _, number in (page.partition("(") for page in pages)]
    lines = [f".BR {_escaped(name)} {number}," for name, number in parts]
    return [*lines[:-1], lines[-1].removesuffix(",")]


# Text


def _invocation(parameter: Parameter) -> str:
    value = rf"\fI{_escaped(parameter.shown)}\fR"
    if not parameter.is_option:
        return value
    names = ", ".join(rf"\fB{_escaped(name)}\fR" for name in parameter.names)
    values = [*[value] * parameter.count, *["..."] * parameter.many]
    return " ".join((names, *values))


def _entry(head: str, text: str) -> list[str]:
    return [".TP", _at_start(head), *_wrapped(text)]


def _paragraphs(texts: Iterable[str]) -> list[str]:
    return [line for text in texts for line in (".PP", *_wrapped(text))][1:]


def _sentence(phrase: str) -> str:
    return f"{phrase[:1].upper()}{phrase[1:]}."


def _wrapped(text: str) -> list[str]:
    """Wrap prose; each sentence begins a new line, as formatters expect."""
    marked = re.sub("`([^`]*)`", r"\\fB\1\\fR", _escaped(text))
    return [
        _at_start(line)
        for sentence in re.split(r"(?<=[.:!?]) (?=[A-Z\\])", " ".join(marked.split()))
        for line in textwrap.wrap(sentence, WIDTH, break_long_words=False, break_on_hyphens=False)
    ]


def _at_start(line: str) -> str:
    """Make a line plain text: a dot or an apostrophe at its start would be a roff request."""
    return rf"\&{line}" if line[:1] in (".", "'") else line


def _escaped(text: str, *, code: bool = False) -> str:
    """Escape text for roff: ASCII only, with hyphens that can be copied from the page."""
    special = {"\\": r"\e", "-": r"\-", "^": r"\(ha", "~": r"\(ti"}
    if code:
        special |= {"'": r"\(aq", "`": r"\(ga"}
    return "".join(special.get(c) or (c if c.isascii() else rf"\[u{ord(c):04X}]") for c in text)
