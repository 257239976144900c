"""``zconsole config path|show|check``, and what the configuration means for every other command."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import Any

from zconsole.cli.output import print_row, say
from zconsole.config.file import KEYS, Config, WrongEntry, config_path, read_config, toml
from zconsole.config.settings import ENTRIES
from zconsole.errors import ExitCode, UsageError, ZconsoleError
from zconsole.output import json
from zconsole.system.patient import Patient
from zconsole.system.printable import clean


def run(args: argparse.Namespace) -> int:
    """Print what was asked for; returns the exit code, 5 if any entry is wrong."""
    if args.action == "path":
        path = str(config_path())
        print_row({"path": path}, path, args.json)
        return ExitCode.OK
    config = checked(read_config())
    if args.action == "show":
        _show(config, as_json=args.json)
    elif args.json:
        for key, problem in config.wrong:
            print(json.line({"path": str(config.path), "key": key or None, "problem": problem}))
    else:
        why = "" if config.exists else " (there is no such file: every setting has its default)"
        for text in config.lines() or [f"OK: {config.path}{why}"]:
            print(clean(text))
    return ExitCode.NOT_UNDERSTOOD if config.wrong else ExitCode.OK


def _show(config: Config, *, as_json: bool) -> None:
    """Every setting, its value and where that came from; wrong entries on stderr."""
    path = str(config.path)
    origins = {name: path if name in config.values else "default" for name in ENTRIES}
    rows = [(name, config.value(name), origin) for name, origin in origins.items()]
    rows += [(f"{KEYS}.{name}", keys, path) for name, keys in config.keys.items()]
    for name, value, origin in rows:
        shown = toml(value) if value is not None else "not set"
        record = {"name": name, "value": value, "from": origin}
        print_row(record, f"{name:<19} {shown}  ({origin})", as_json)
    for text in config.lines():
        say(text)


# What the configuration adds to the words of a command line, which go before it.

LOOKS = frozenset({"demo", "replay"})
"""Those that only look like a real console: nothing else of the configuration is for them."""
OWN = {"export": "interval"}
"""Options of a command that are not the setting of that name."""
SCRUB = "scrub-overdue-after"
FAULT = "the configuration has an error; see zconsole config check"


def applied(
    name: str, parser: argparse.ArgumentParser, words: Sequence[str], args: argparse.Namespace
) -> argparse.Namespace:
    """``args`` with what the configuration says where the words of the command line don't.

    Wrong entries are told on stderr.
    """
    if getattr(args, "saved", None):  # saved output has none
        return args
    config = checked(read_config())
    for line in config.lines():
        say(line)
    if config.values:
        defaults = _defaults(config, look=name in LOOKS)
        defaults.pop(OWN.get(name, ""), None)
        # Only options it has: a default for others would become an attribute of its own.
        known = {key: value for key, value in defaults.items() if hasattr(args, key)}
        parser.set_defaults(**known)
        args = parser.parse_args(words)
    args.config = config
    return args


def _defaults(config: Config, *, look: bool) -> dict[str, Any]:
    """The file's settings by the names that options have in a parsed command line."""
    found = {
        name.replace("-", "_"): value
        for name, value in config.values.items()
        # Of the two themes the console takes the one that suits its terminal.
        if name not in ("theme", "theme-16") and (ENTRIES[name].look or not look)
    }
    if (hosts := found.pop("hosts", None)) is not None:
        found["host"] = ",".join(hosts)
    return found


def scrub_overdue_after(args: argparse.Namespace) -> float:
    """Seconds after which a full scrub is overdue: only the configuration says so."""
    config: Config | None = args.config
    default: float = ENTRIES[SCRUB].default
    return default if config is None else float(config.value(SCRUB))


def fault_of(args: argparse.Namespace) -> str:
    """Why a configuration with wrong entries allows no changes; empty when it does."""
    config: Config | None = args.config
    return FAULT if config is not None and config.wrong else ""


def refuse_denied(args: argparse.Namespace, what: str, *, calms: bool) -> None:
    """Raise UsageError where nothing may be changed; ``what`` says what would be.

    What ``calms``, such as stopping a job, is refused by read-only alone: a wrong entry in a file
    must not keep anybody from it.
    """
    if calms and fault_of(args) and not args.read_only:
        return
    if reason := denied(args):
        raise UsageError(f"{what}: {reason}")


def denied(args: argparse.Namespace) -> str:
    """Why nothing may be changed; empty when it may."""
    if fault := fault_of(args):
        return fault
    config: Config | None = args.config
    if args.read_only and config is not None and config.value("read-only"):
        return f"not allowed with read-only = true in {config.path}"
    return "not allowed with --read-only" if args.read_only else ""


def checked(config: Config) -> Config:
    """The configuration without the entries that only other parts of the program see are wrong."""
    for name in [each for each in ENTRIES if each in config.values]:
        try:
            _check(name, config.values[name])
        except ZconsoleError as error:
            config = config.without(WrongEntry(name, str(error).removeprefix("--hook: ")))
    if config.keys:
        from zconsole.ui.keys import SHIPPED  # lazy: few remap keys

        _, wrong = SHIPPED.remapped(config.keys)
        for name, problem in wrong:
            config = config.without(WrongEntry(f"keys.{name}", problem))
    return config


def _check(name: str, value: Any) -> None:
    """Raise ZconsoleError for what the part of the program that uses a setting refuses."""
    # lazy: most files have none of these
    if name in ("theme", "theme-16"):
        from zconsole.ui.theme.files import choose, find_themes

        Patient().call(lambda: choose(value, find_themes(os.environ)))
    elif name == "hosts":
        from zconsole.zfs.sources.remote import hosts_of

        hosts_of(",".join(value))
    elif name == "hook":
        from zconsole.timeline.alerts.alerting import hook_found

        hook_found(value)
