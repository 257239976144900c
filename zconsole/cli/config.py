"""``zconsole config path|show|check``: where the configuration is, what it says, what is wrong."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from zconsole.cli.configuration import checked
from zconsole.cli.output import say
from zconsole.config.file import KEYS, Config, config_path, read_config
from zconsole.config.saving import toml
from zconsole.config.settings import ENTRIES
from zconsole.errors import ExitCode
from zconsole.output import json
from zconsole.system.printable import clean


def run(args: argparse.Namespace) -> int:
    """Print what was asked for; returns the exit code, 5 if any entry is wrong."""
    if args.action == "path":
        path = str(config_path())
        print(json.line({"path": path}) if args.json else clean(path))
        return ExitCode.OK
    config = checked(read_config())
    if args.action == "show":
        _show(config, as_json=args.json)
    else:
        _check(config, as_json=args.json)
    return ExitCode.NOT_UNDERSTOOD if config.wrong else ExitCode.OK


def _show(config: Config, *, as_json: bool) -> None:
    """Every setting, its value and where that came from; wrong entries on stderr."""
    for setting in _settings(config):
        if as_json:
            print(json.line(setting))
        else:
            value = toml(setting["value"]) if setting["value"] is not None else "not set"
            print(clean(f"{setting['name']:<19} {value}  ({setting['from']})"))
    for line in config.lines():
        say(line)


def _settings(config: Config) -> Iterator[Mapping[str, Any]]:
    path = str(config.path)
    for name in ENTRIES:
        origin = path if name in config.values else "default"
        yield {"name": name, "value": config.value(name), "from": origin}
    for name, keys in config.keys.items():
        yield {"name": f"{KEYS}.{name}", "value": keys, "from": path}


def _check(config: Config, *, as_json: bool) -> None:
    """OK, or each wrong entry."""
    if as_json:
        for key, problem in config.wrong:
            print(json.line({"path": str(config.path), "key": key or None, "problem": problem}))
        return
    for line in config.lines():
        print(clean(line))
    if not config.wrong:
        why = "" if config.exists else " (there is no such file: every setting has its default)"
        print(clean(f"OK: {config.path}{why}"))
