"""``zconsole config path|show|check``: where the configuration is, what it says, what is wrong."""

from __future__ import annotations

import argparse

from zconsole.cli.configuration import checked
from zconsole.cli.output import print_row, say
from zconsole.config.file import KEYS, Config, config_path, read_config, toml
from zconsole.config.settings import ENTRIES
from zconsole.errors import ExitCode
from zconsole.output import json
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
