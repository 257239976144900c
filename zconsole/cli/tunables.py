"""``zconsole tunables``: lists, sets, restores and steers the tunables of scans and rebuilds."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from zconsole.actions.backend import make_way
from zconsole.cli import local
from zconsole.cli.config import refuse_denied
from zconsole.cli.output import say
from zconsole.errors import ExitCode, UnavailableError, UsageError, ZconsoleError
from zconsole.output import json
from zconsole.output.tunables import record, restore_lines, table
from zconsole.system.audit import MemoryLog, audit_log
from zconsole.system.patient import in_time, made_state_dir
from zconsole.system.printable import clean
from zconsole.system.state_dir import StateError, state_dir, state_dirs
from zconsole.tunables import autopilot, guard
from zconsole.tunables.catalog import BY_NAME, NAMES, named, preset
from zconsole.tunables.control import Control, Setting
from zconsole.tunables.hold_latency import LEVERS
from zconsole.tunables.holds import Hold, Setter
from zconsole.tunables.parameters import MODULE, NOT_LOADED, Parameters
from zconsole.tunables.pilot import order, plan
from zconsole.tunables.store import NAME, TunableStore

OFF = "off"
"""Word after ``hold-latency`` that stops it."""


def run(args: argparse.Namespace, module: Path = MODULE) -> int:
    """List or change the tunables of this machine; return the exit code."""
    parameters = Parameters(module)
    if args.action == "list":
        return _list(args, parameters)
    undoes = args.action == "restore" or args.words == [OFF]
    refuse_denied(args, f"{args.action} changes tunables", undoes=undoes)
    values = assignments(args.words) if args.action == "set" else {}
    _check(args)
    if not parameters.era:
        raise UnavailableError(NOT_LOADED)
    memory = TunableStore(state_dir(create=False))
    control = Control(parameters, memory, audit_log())
    if args.action == "hold-latency":
        _hold_latency(args, control, module)
        _show(args, [s for s in map(control.setting, LEVERS) if s.value is not None])
        return ExitCode.OK
    if args.action == "set":
        return _set(args, control, values, module)
    if args.action == "preset":
        return _preset(args, control, parameters)
    return _restore(args, control)


def _check(args: argparse.Namespace) -> None:
    """Raise UsageError for bad arguments; this needs no ZFS."""
    if args.action == "preset" and (len(args.words) != 1 or args.words[0] not in NAMES):
        raise UsageError(f"preset needs one of {', '.join(NAMES)}")
    if args.limit is not None and (args.action, args.words) != ("preset", ["faster-resilver"]):
        raise UsageError("--limit is only for preset faster-resilver")
    if args.action == "hold-latency" and args.words != [OFF]:
        order(args.words)
    if args.action == "restore":
        for name in args.words:
            named(name)


def assignments(words: Iterable[str]) -> dict[str, int]:
    """Parse words ``NAME=VALUE``. Raises UsageError for others, values out of range, or none."""
    values: dict[str, int] = {}
    for word in words:
        name, equals, text = word.partition("=")
        tunable = named(name)
        value = tunable.number(text)
        if not equals or value is None:
            raise UsageError(f"{word!r} is not NAME=VALUE with {tunable.kind}")
        values[name] = value
        if problem := tunable.problem(value):
            raise UsageError(problem)
    if not values:
        raise UsageError("set needs NAME=VALUE")
    return values


def _list(args: argparse.Namespace, parameters: Parameters) -> int:
    if args.words:
        raise UsageError(f"list takes no names: {args.words[0]!r}")
    control = Control(parameters, TunableStore(_originals_dir()), MemoryLog())
    _show(args, control.list())
    try:
        control.check_saved()
    except StateError as error:
        say(f"what was set is not known: {error}")
    if parameters.era:
        return ExitCode.OK
    say(f"no values to show: {NOT_LOADED}")
    return ExitCode.UNAVAILABLE


def _originals_dir() -> Path:
    """Return the directory that holds the original values: the user's own, else the machine's.

    Raises NoAnswerError if the disk doesn't answer.
    """
    places = state_dirs()

    def _first() -> Path:
        for place in places:
            with contextlib.suppress(OSError):  # no file there, or not readable by this user
                (place / NAME).stat()
                return place
        return places[0]

    return in_time(_first)


def _set(
    args: argparse.Namespace, control: Control, values: Mapping[str, int], module: Path
) -> int:
    guarded = {n: v for n, v in values.items() if named(n).guarded and v}
    plain = {n: v for n, v in values.items() if n not in guarded}
    problems = (control.problem(name, value) for name, value in guarded.items())
    if problem := next(filter(None, problems), None):
        raise UsageError(problem)
    place = made_state_dir()
    # Guarded ones last, when everything that can be refused has been checked.
    control.set(plain, time.time())
    guards: dict[str, Hold] = {}
    for name, value in guarded.items():
        now = control.setting(name)
        if now.value == value and not now.ours:
            say(f"{name} is already {value}, set by someone else: it will not be restored")
            continue
        guard.start(place, guard.GuardOrder(name, value, args.seconds), ("--module", str(module)))
        guards[name] = Hold(Setter.GUARD, "guard", seconds=args.seconds)
    settings = map(control.setting, values)
    _show(args, [replace(s, hold=guards.get(s.tunable.name, s.hold)) for s in settings])
    return ExitCode.OK


def _preset(args: argparse.Namespace, control: Control, parameters: Parameters) -> int:
    chosen = preset(args.words[0], parameters, args.limit)
    for warning in chosen.warnings:
        say(warning)
    made_state_dir()
    _show(args, control.set(chosen.values, time.time(), action=f"preset {args.words[0]}"))
    return ExitCode.OK


def _hold_latency(args: argparse.Namespace, control: Control, module: Path) -> None:
    """Start or stop the autopilot.

    Raises UnavailableError if no pool is scanning or its latencies can't be read, UsageError if
    tunables that were set earlier are in the way, ZconsoleError if it doesn't start or is not
    confirmed.
    """
    place = made_state_dir()
    if args.words == [OFF]:
        stopped = autopilot.stop(place)
        left = control.settle(time.time())
        if stopped:
            say("the autopilot ended; the original values are restored")
        else:
            back = any(entry.put_back for entry in left)
            say("no autopilot runs" + ": restored what a killed one left" * back)
        for entry in left:
            if not entry.put_back:
                say(f"{entry.name}: {entry.text}")
        return
    asked = order(args.words)
    make_way(control, time.time())
    frames = [f for f in asyncio.run(local.once(())).frames if f.sample]
    left_of = {f.seen.name: f.scan.left if f.scan else None for f in frames}
    made = plan(asked, [f.seen for f in frames], Parameters(module), left_of)
    for line in made.lines:
        say(clean(line))
    if asked.below and not args.yes:
        if not sys.stdin.isatty():
            raise UsageError("not a terminal, so nobody can confirm: pass --yes")
        say("Go below the defaults without redundancy? [y/N]")
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise ZconsoleError("canceled: nothing was changed")
    options = ("--module", str(module))
    autopilot.start(place, asked, options=options)
    say(f"holding latency at {asked.targets}; stop it with: zconsole tunables hold-latency off")


def _restore(args: argparse.Namespace, control: Control) -> int:
    done = control.restore(time.time(), args.words or None)
    for entry in done:
        say(f"{entry.name}: {entry.text}")
    if not done:
        _originals_dir()  # raises if the directory does not answer
        control.check_saved()
        say("nothing to restore")
    _show(args, [control.setting(entry.name) for entry in done if entry.name in BY_NAME])
    return ExitCode.OK


def _show(args: argparse.Namespace, settings: Iterable[Setting]) -> None:
    if args.json:
        for setting in settings:
            print(json.line(record(setting)))
        return
    shown = tuple(settings)
    for line in table(shown):
        print(clean(line))
    for line in restore_lines(shown):
        say(clean(line))
