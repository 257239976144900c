"""Named machines that outlive the command that starts them, for interactive work."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from tests.vm import qemu
from tests.vm.cache import remove_tree, subdirectory
from tests.vm.errors import VmError
from tests.vm.image import Image
from tests.vm.machine import Machine, keep_console, make_hardware
from tests.vm.qemu import Disk, Hardware


def up(name: str, image: Image, sizes: Sequence[int], memory_mb: int, cache: str) -> Machine:
    """Boot a machine under a name; raises VmError if the name is taken."""
    directory = _directory(name)
    if _is_up(directory):
        raise VmError(f"machine {name} is up already")
    _clear(directory)
    directory.mkdir()
    hardware = make_hardware(image, directory, sizes, memory_mb=memory_mb, cache=cache)
    try:
        machine = Machine(hardware, qemu.start(hardware, detached=True), detached=True)
        machine.wake()
    except BaseException:
        keep_console(directory, image.release)
        _clear(directory)
        raise
    save(name, machine)
    return machine


def save(name: str, machine: Machine) -> None:
    """Save the state that `attach` needs."""
    hardware = machine.hardware
    state = {
        "pid": machine.pid,
        "image": {**vars(hardware.image), "directory": str(hardware.image.directory)},
        "disks": len(hardware.disks),
        "cache": hardware.disks[0].cache if hardware.disks else "unsafe",
        "memory_mb": hardware.memory_mb,
        "cpus": hardware.cpus,
    }
    (_directory(name) / "machine.json").write_text(json.dumps(state))


def attach(name: str) -> Machine:
    """Return the running machine of a name; raises VmError if there is none."""
    directory = _directory(name)
    if not _is_up(directory):
        raise VmError(f"no machine named {name} is up ({', '.join(names()) or 'none is'})")
    state = json.loads((directory / "machine.json").read_text())
    facts = state["image"]
    image = Image(**{**facts, "directory": Path(facts["directory"])})
    disks = [
        Disk(index, directory / f"disk{index}.raw", state["cache"])
        for index in range(state["disks"])
    ]
    hardware = Hardware(image, directory, disks, state["memory_mb"], state["cpus"])
    return Machine(hardware, state["pid"], detached=True)


def down(name: str) -> None:
    """Switch a machine off and delete its disks."""
    attach(name)
    _clear(_directory(name))


def names() -> list[str]:
    """Return the names of running machines."""
    return sorted(path.name for path in subdirectory("machines").iterdir() if _is_up(path))


def _directory(name: str) -> Path:
    """Return the directory of a named machine; raises VmError for an invalid name."""
    if not re.fullmatch(r"[\w.-]+", name):
        raise VmError(f"not a machine name: {name}")
    return subdirectory("machines") / name


def _clear(directory: Path) -> None:
    """End all QEMU processes of a directory, and delete it."""
    for pid in qemu.running_in(directory):
        qemu.kill(pid, directory)
    remove_tree(directory)


def _is_up(directory: Path) -> bool:
    """Return whether a directory's machine is running."""
    try:
        state = json.loads((directory / "machine.json").read_text())
    except FileNotFoundError:
        return False
    return qemu.is_running(state["pid"], directory)
