"""`python -m tests.vm`: build images, and run machines by hand."""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.lock import left
from tests.lock.leave import ON_ZFS
from tests.vm import image, named, packed, traces
from tests.vm.errors import NotAvailableError, VmError
from tests.vm.holding import FILL_MB
from tests.vm.machine import DEFAULT_DISKS, DEFAULT_MEMORY_MB, TREE_IN_GUEST, Machine
from tests.vm.pools import PoolFactory
from tests.vm.releases import RELEASES
from tests.vm.wheels import TREE
from zconsole import __version__

UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}

Handler = Callable[[argparse.Namespace], int]


def main(words: list[str] | None = None) -> int:
    """Run one command; returns its exit status."""
    arguments = _parser().parse_args(words)
    # Handle SIGTERM like ^C, so that everything is cleaned up: a build leaves nothing half-done.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        handler: Handler = arguments.handler
        return handler(arguments)
    except VmError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _deps(_arguments: argparse.Namespace) -> int:
    missing = image.missing_programs()
    if not missing:
        return 0
    subprocess.run(["apt-get", "update", "-q"], check=True)
    install = ["apt-get", "install", "-y", "-q", "--no-install-recommends"]
    return subprocess.run([*install, *missing], check=False).returncode


def _build(arguments: argparse.Namespace) -> int:
    for release in arguments.release or RELEASES:
        try:
            built = image.build(release)
        except NotAvailableError as error:
            if arguments.release or image.why_unavailable():
                raise
            print(f"{release}: skipped: {error}", file=sys.stderr)
            continue
        print(f"{built.release}: zfs {built.zfs}, Python {built.python}, {built.directory}")
    return 0


def _prune(_arguments: argparse.Namespace) -> int:
    for name in image.prune():
        print(f"deleted {name}")
    return 0


def _shell(arguments: argparse.Namespace) -> int:
    sizes = [arguments.size] * arguments.disks
    built = image.build(arguments.release)
    with Machine.boot(built, sizes, arguments.memory, disk_cache=arguments.cache) as machine:
        machine.push_tree()
        return subprocess.run(machine.ssh.command("-t"), check=False).returncode


def _up(arguments: argparse.Namespace) -> int:
    sizes = [arguments.size] * arguments.disks
    built = image.build(arguments.release)
    machine = named.up(arguments.name, built, sizes, arguments.memory, arguments.cache)
    machine.push_tree()
    return 0


def _run(arguments: argparse.Namespace) -> int:
    ssh = named.attach(arguments.name).ssh
    terminal = ("-t",) if sys.stdin.isatty() and sys.stdout.isatty() else ()
    return subprocess.run([*ssh.command(*terminal), *arguments.words], check=False).returncode


def _traces(arguments: argparse.Namespace) -> int:
    with Machine.boot(image.build(arguments.release)) as machine:
        machine.push_tree()
        traces.record_all(machine, arguments.names, arguments.directory)
    return 0


def _packed(arguments: argparse.Namespace) -> int:
    sizes = [DEFAULT_DISKS[0]] * packed.DISKS
    with Machine.boot(image.build(arguments.release), sizes) as machine:
        machine.push_tree()
        packed.save_all(machine, arguments.names)
    return 0


def _left(arguments: argparse.Namespace) -> int:
    python = ["env", "TMPDIR=/tank", f"PYTHONPATH={TREE_IN_GUEST}", "/opt/zc/bin/python"]
    with Machine.boot(image.build(arguments.release)) as machine:
        machine.push_tree()
        pool = PoolFactory(machine)
        pool.create("d0", options="-O compression=off")
        pool.fill(FILL_MB)
        pool.zpool("add", "-f", "tank", "d1")
        for name in ON_ZFS:
            leave = [*python, "-m", "tests.lock.leave", name]
            print(machine.run(["env", "-C", TREE_IN_GUEST, *leave], timeout=600).stdout)
            archive = left.archive(__version__, name)
            machine.get(f"{TREE_IN_GUEST}/{archive.relative_to(TREE)}", archive)
    return 0


def _push(arguments: argparse.Namespace) -> int:
    named.attach(arguments.name).push_tree()
    return 0


def _put(arguments: argparse.Namespace) -> int:
    named.attach(arguments.name).put(arguments.local, arguments.remote)
    return 0


def _get(arguments: argparse.Namespace) -> int:
    named.attach(arguments.name).get(arguments.remote, arguments.local)
    return 0


def _throttle(arguments: argparse.Namespace) -> int:
    named.attach(arguments.name).throttle(arguments.disk, arguments.bps, arguments.iops)
    return 0


def _pull(arguments: argparse.Namespace) -> int:
    named.attach(arguments.name).pull(arguments.disk)
    return 0


def _plug(arguments: argparse.Namespace) -> int:
    named.attach(arguments.name).plug(arguments.disk)
    return 0


def _corrupt(arguments: argparse.Namespace) -> int:
    machine = named.attach(arguments.name)
    machine.corrupt(arguments.disk, arguments.offset, arguments.length)
    return 0


def _reboot(arguments: argparse.Namespace) -> int:
    machine = named.attach(arguments.name)
    machine.reboot()
    named.save(arguments.name, machine)
    return 0


def _down(arguments: argparse.Namespace) -> int:
    named.down(arguments.name)
    return 0


def _list(_arguments: argparse.Namespace) -> int:
    for name in named.names():
        machine = named.attach(name)
        print(f"{name}: {machine.image.release}, {len(machine.disks)} disks, pid {machine.pid}")
    return 0


def _release(text: str) -> str:
    """Return the name of a known release, as an argparse type."""
    if text not in RELEASES:
        raise argparse.ArgumentTypeError(f"not one of {', '.join(RELEASES)}: {text}")
    return text


def _size(text: str) -> int:
    """Return the bytes of "1G", "500M" or a plain number, as an argparse type."""
    number, unit = (text[:-1], text[-1].upper()) if text[-1:].isalpha() else (text, "")
    if not number.isdigit() or (unit and unit not in UNITS):
        raise argparse.ArgumentTypeError(f"not a size: {text}")
    return int(number) * UNITS.get(unit, 1)


def _disk(text: str) -> int:
    """Return a disk's index from "d3" or "3", as an argparse type."""
    if not text.removeprefix("d").isdigit():
        raise argparse.ArgumentTypeError(f"not a disk: {text}")
    return int(text.removeprefix("d"))


def _parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.vm", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, handler: Handler, summary: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=summary, description=summary)
        command.set_defaults(handler=handler)
        return command

    _add_image_commands(add)
    _add_machine_commands(add)
    _add_disk_commands(add)
    return parser


Add = Callable[[str, Handler, str], argparse.ArgumentParser]


def _add_image_commands(add: Add) -> None:
    """Add the commands about images."""
    add("deps", _deps, "install the Debian packages this needs")
    build = add("build", _build, "build the images the cache lacks (default: all)")
    build.add_argument("release", nargs="*", type=_release, metavar="RELEASE")
    add("prune", _prune, "delete images whose definition has changed")


def _add_machine_commands(add: Add) -> None:
    """Add the commands about machines."""
    shell = add("shell", _shell, "boot, give a shell, and throw everything away")
    start = add("up", _up, "boot a machine that stays, with the tree under test in it")
    for command in (shell, start):
        command.add_argument("release", type=_release, metavar="|".join(RELEASES))
        command.add_argument("--disks", type=int, default=len(DEFAULT_DISKS))
        command.add_argument("--size", type=_size, default=DEFAULT_DISKS[0], help="of each: 1G")
        command.add_argument("--memory", type=int, default=DEFAULT_MEMORY_MB, help="MiB")
        command.add_argument("--cache", default="unsafe", help="QEMU cache mode of the disks")
    run = add("run", _run, "run a command line in the guest, or a shell where none is given")
    others = (
        start,
        run,
        add("push", _push, "copy the tree under test into the guest again"),
        add("reboot", _reboot, "cut the power and boot again on the same disks"),
        add("down", _down, "switch the machine off and delete it"),
    )
    for command in others:
        command.add_argument("--name", required=True)
    run.add_argument("words", nargs="*", metavar="-- COMMAND")
    record = add("traces", _traces, "record real scans into a directory (default: all of them)")
    record.add_argument("--release", type=_release, default="trixie", metavar="|".join(RELEASES))
    record.add_argument("directory", type=Path)
    record.add_argument("names", nargs="*", metavar="NAME")
    save = add(
        "packed", _packed, "save packed configs of pools in all states, an archive a release"
    )
    save.add_argument("release", type=_release, metavar="|".join(RELEASES))
    save.add_argument("names", nargs="*", metavar="STATE")
    leave = add("left", _left, "keep what jobs leave that are killed on ZFS, for the lock")
    leave.add_argument("release", type=_release, metavar="|".join(RELEASES))
    add("list", _list, "machines that are up")


def _add_disk_commands(add: Add) -> None:
    """Add the commands about a machine's files and disks."""
    put = add("put", _put, "copy a file into the guest")
    get = add("get", _get, "copy a file out of the guest")
    throttle = add("throttle", _throttle, "limit a disk's speed; 0 lifts the limit")
    corrupt = add("corrupt", _corrupt, "overwrite a stretch of a disk")
    pull = add("pull", _pull, "unplug a disk")
    plug = add("plug", _plug, "put a pulled disk back")
    for command in (put, get, throttle, corrupt, pull, plug):
        command.add_argument("--name", required=True)
    for command in (throttle, corrupt, pull, plug):
        command.add_argument("disk", type=_disk, help="d0, d1, …")
    for command in (put, get):
        order = (("local", Path), ("remote", str))
        for name, kind in order if command is put else reversed(order):
            command.add_argument(name, type=kind)
    throttle.add_argument("bps", type=_size, help="bytes/s: 5M")
    throttle.add_argument("--iops", type=int, default=0)
    corrupt.add_argument("offset", type=_size)
    corrupt.add_argument("length", type=_size)


if __name__ == "__main__":
    sys.exit(main())
