"""``zconsole config path|show|check``, and applying the configuration to every other command."""

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
    """Print the path, the settings or the wrong entries; return 5 if any entry is wrong, else 0."""
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
    """Print every setting, its value and where that came from; wrong entries go to stderr."""
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


# Applying the configuration: options on the command line override its settings.

LOOK_ONLY = frozenset({"demo", "replay"})
"""Commands to which only settings of the console's look apply: they show no real pools."""
SCRUB = "scrub-overdue-after"
FAULT = "the configuration has an error; see zconsole config check"


def applied(
    name: str, parser: argparse.ArgumentParser, words: Sequence[str], args: argparse.Namespace
) -> argparse.Namespace:
    """Return ``args`` with the configured value of each option that the command line doesn't set.

    Wrong entries are reported on stderr.
    """
    if getattr(args, "saved", None):  # a report of saved output depends on no settings
        return args
    config = checked(read_config())
    for line in config.lines():
        say(line)
    if config.values:
        defaults = _defaults(config, look=name in LOOK_ONLY)
        if name == "export":  # its samples go to a server, not to somebody who watches
            defaults.pop("interval", None)
        # Only options of this command: set_defaults() would add an attribute for any other.
        known = {key: value for key, value in defaults.items() if hasattr(args, key)}
        parser.set_defaults(**known)
        args = parser.parse_args(words)
    args.config = config
    return args


def _defaults(config: Config, *, look: bool) -> dict[str, Any]:
    """Return the file's settings by the names of the parsed options; with ``look``, only looks."""
    found = {
        name.replace("-", "_"): value
        for name, value in config.values.items()
        # The console chooses between the two themes once it knows its terminal's colors.
        if name not in ("theme", "theme-16") and (ENTRIES[name].look or not look)
    }
    if (hosts := found.pop("hosts", None)) is not None:
        found["host"] = ",".join(hosts)
    return found


def scrub_overdue_after(args: argparse.Namespace) -> float:
    """Return the seconds after which a full scrub is overdue; no option sets it, only the file."""
    config: Config | None = args.config
    default: float = ENTRIES[SCRUB].default
    return default if config is None else float(config.value(SCRUB))


def fault_of(args: argparse.Namespace) -> str:
    """Return why the configuration forbids changes: it has wrong entries; empty if it has none."""
    config: Config | None = args.config
    return FAULT if config is not None and config.wrong else ""


def refuse_denied(args: argparse.Namespace, what: str, *, undoes: bool) -> None:
    """Raise UsageError if changes are not allowed; ``what`` describes the change.

    A change that ``undoes`` or stops something is refused only if zconsole is read-only: a
    wrong entry in the configuration must not prevent it.
    """
    if undoes and fault_of(args) and not args.read_only:
        return
    if reason := denied(args):
        raise UsageError(f"{what}: {reason}")


def denied(args: argparse.Namespace) -> str:
    """Return why changes are not allowed; empty if they are."""
    if fault := fault_of(args):
        return fault
    config: Config | None = args.config
    if args.read_only and config is not None and config.value("read-only"):
        return f"not allowed with read-only = true in {config.path}"
    return "not allowed with --read-only" if args.read_only else ""


def checked(config: Config) -> Config:
    """Return the configuration without entries that the parts of the program using them refuse."""
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
    """Raise ZconsoleError if the part of the program that uses a setting refuses its value."""
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
