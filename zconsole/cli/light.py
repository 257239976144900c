"""``zconsole light``: lists and switches the locate lights of bays."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

from zconsole.actions.locate import MachineLights
from zconsole.actions.plan import LightOrder
from zconsole.cli.config import refuse_denied
from zconsole.cli.output import print_row, say
from zconsole.errors import ExitCode, NotFoundError, UsageError
from zconsole.hardware.device import Contents, Device
from zconsole.hardware.light import LocateLights
from zconsole.hardware.machine import disks
from zconsole.system.host import ROOT
from zconsole.system.patient import in_time

FIND_WITHIN = 10.0
"""Seconds for finding the machine's disks, without reading any of them."""


def run(args: argparse.Namespace) -> int:
    """List or switch lights; return the exit code. Raises ZconsoleError."""
    if args.action == "on" and args.disk is None:
        raise UsageError("on needs a DISK: its path, or its serial number")
    if args.disk == "":
        raise UsageError("empty DISK: name its path or its serial number")
    if args.action in ("list", "resume") and args.disk:
        raise UsageError(f"{args.action} takes no DISK")
    if args.action == "list":
        return _list(args)
    refuse_denied(args, f"{args.action} switches lights", undoes=args.action == "off")
    actions: dict[str, Callable[[], str]] = {
        "on": lambda: MachineLights().switch(LightOrder(True, _disk(args.disk))),
        "off": lambda: _off(args.disk),
        "resume": lambda: "\n".join(LocateLights().tidy()),
    }
    if said := actions[args.action]():
        say(said)
    return ExitCode.OK


def _list(args: argparse.Namespace) -> int:
    found = LocateLights().lit()
    if not found and not args.json:
        say("no light is on")
    for lit in found:
        until = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(lit.until))
        record = {
            "bay": lit.bay,
            "enclosure": lit.slot.enclosure or None,
            "slot": lit.slot.component,
            "serial": lit.serial or None,
            "since": lit.t,
            "until": lit.until,
            "on_before": lit.before,
        }
        print_row(record, f"{lit.name}  on until {until}", args.json)
    return ExitCode.OK


def _off(word: str | None) -> str:
    """Switch off one light, or all of them, and return what was done.

    ``word`` is a path or serial number of a disk, or a bay or serial number that ``list`` prints:
    the disk may be gone.
    """
    if word is None:
        return MachineLights().switch(LightOrder(False))
    lights = LocateLights()
    for lit in lights.lit():
        if word in (lit.serial, lit.bay):
            return lights.unlight(lit.slot) or ""
    return MachineLights().switch(LightOrder(False, _disk(word)))


def _disk(word: str) -> Device:
    """Return the disk of a path or serial number.

    Raises NotFoundError if there is none, UsageError if several disks have that serial number.
    """
    known = in_time(partial(disks, ROOT, lambda _: Contents(unread=True)), FIND_WITHIN)
    found = [disk for disk in known if word in (disk.path, disk.node, disk.serial, *disk.aliases)]
    if not found:
        raise NotFoundError(
            f"{word} is not a disk of this machine: name its path (/dev/…) or its serial number"
        )
    # With multipath, several devices are one disk, which has one WWN.
    if len(found) > 1 and len({disk.wwn or disk.node for disk in found}) > 1:
        paths = ", ".join(disk.path for disk in found)
        raise UsageError(
            f"{word} is the serial number of {len(found)} disks: {paths}. Name the path"
        )
    return found[0]
