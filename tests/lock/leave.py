"""`python -m tests.lock.leave [NAME ...]`: leave state as this version does, and archive it.

For each name, an archive is made in tests/fixtures/state, in a directory of this version: a process
of zconsole started something and was killed. Existing archives are not made again; a later version
adds its own directory, and `tests.lock.state` opens them all. State on ZFS needs a machine that has
it: `python -m tests.vm left`.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from tests.lock import apart, left
from tests.lock.apart import Machine, Said

NOON = (2026, 1, 15, 12)
"""Time of day at which jobs are left: outside the window of the job that waits for one."""
HOURS = "22:00-06:00"
OLD = 10**18
"""Modification time of the files that a job moves, epoch nanoseconds."""


def environment(area: Path) -> dict[str, str]:
    """Return the environment of a command in an area, without any of the user's variables."""
    return {
        "ZCONSOLE_STATE": str(area / "state"),
        "XDG_CONFIG_HOME": str(area / "config"),
        "HOME": str(area),
        "PATH": str(area / "bin"),
        "TZ": "UTC",
        "COLUMNS": "100",
        "LC_ALL": "C.UTF-8",
    }


def begin_area(base: Path) -> Path:
    """Return a new area with an empty state directory."""
    area = base / "area"
    (area / "state").mkdir(parents=True, mode=0o700)
    area.chmod(0o700)
    return area


# Jobs.


def build(root: Path) -> None:
    """Make the files that jobs move."""
    below = root / "below"
    below.mkdir(parents=True)
    for name, data in {
        "a": b"a" * 20_000,
        "b": bytes(range(256)) * 40,
        "below/c": b"content of c",
        "below/empty": b"",
        "below/of two": b"of two names",
    }.items():
        (root / name).write_bytes(data)
    (root / "a").chmod(0o640)
    (root / "below/c").chmod(0o755)
    (root / "of two").hardlink_to(below / "of two")
    for path in (*sorted(root.rglob("*"), reverse=True), root):
        os.utime(path, ns=(OLD, OLD))


def _dies(owner: Any, name: str, number: int = 1, after: bool = False) -> None:
    """Kill this process at the given call of a method."""
    call, calls = getattr(owner, name), 0
    static = isinstance(vars(owner)[name], staticmethod)

    def dying(*arguments: Any, **more: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == number and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        result = call(*arguments, **more)
        if calls == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, name, staticmethod(dying) if static else dying)


def _ordered(order: str) -> None:
    """Make another process send the job an order when its first copy is started."""
    from zconsole.rebalance.engine.syscalls import Sys
    from zconsole.rebalance.job import holds, job_store

    holds.CHECK_INTERVAL = 0.0
    create = Sys.open_new

    def ordering(*arguments: Any) -> Any:
        (record,) = job_store.records()
        words = (sys.executable, "-m", "zconsole", "rebalance", order, record.job)
        subprocess.run(words, cwd=apart.TREE, check=True, stderr=subprocess.DEVNULL)
        Sys.open_new = create
        return create(*arguments)

    Sys.open_new = ordering


def _waiting() -> None:
    from zconsole.rebalance.job.accounts import JobAccounts

    _dies(JobAccounts, "wait", after=True)


def _paused() -> None:
    _ordered("pause")
    _waiting()


def _engine(name: str, number: int = 1) -> Callable[[], None]:
    def _killed() -> None:
        from zconsole.rebalance.engine.copy_engine import CopyPipeline
        from zconsole.rebalance.engine.journal import Journal
        from zconsole.rebalance.engine.syscalls import Sys

        owners = {"_commit_intents": CopyPipeline, "_finish_all": CopyPipeline}
        _dies(owners.get(name, Journal if name == "finish_walk" else Sys), name, number)

    return _killed


MOMENTS: dict[str, tuple[Callable[[], None], tuple[str, ...]]] = {
    "walking": (_engine("finish_walk"), ()),
    "copying": (_engine("pwrite", 2), ()),
    "batch-copied": (_engine("_commit_intents"), ()),
    "intent": (_engine("exchange"), ()),
    "exchanged": (_engine("exchange", 4), ()),
    "grace": (_engine("_finish_all"), ()),
    "removing": (_engine("unlink", 3), ()),
    "rewrite": (_engine("rewrite", 2), ("--engine=rewrite",)),
    "paused": (_paused, ()),
    "waiting": (_waiting, (f"--window={HOURS}",)),
    "stopped": (lambda: _ordered("stop"), ()),
}
"""By state: how a job gets to the point where it is killed, and its options."""


def job(words: Sequence[str]) -> int:
    """Run a job that is killed at a given point: ``words`` are its name, then the command."""
    from zconsole.cli.main import main

    MOMENTS[words[0]][0]()
    return main(words[1:])


def leave_job(area: Path, moment: str) -> Said:
    """Leave a job in a given state."""
    build(area / "tree")
    if moment == "rewrite":
        (area / "tree/large").write_bytes(bytes(range(256)) * (9 << 12))
        for path in (area / "tree/large", area / "tree"):
            os.utime(path, ns=(OLD, OLD))
    run = ("rebalance", "run", "--engine=copy", "--allow-non-zfs", "--yes", "--json")
    words = (moment, *run, *MOMENTS[moment][1], str(area / "tree"))
    environ = {**environment(area), "PATH": os.environ["PATH"]}
    return apart.run(words, environ, Machine(local=NOON), "tests.lock.leave:job")


# Lights, scrub windows and tunables of a faked machine.

NOW = 1_795_000_000.0
"""The time at which these are left, epoch seconds."""
LIVE = {
    "zfs_resilver_min_time_ms": 3000,
    "zfs_scrub_min_time_ms": 1000,
    "zfs_vdev_async_write_max_active": 10,
    "zfs_vdev_scrub_min_active": 1,
    "zfs_vdev_scrub_max_active": 3,
    "zfs_scan_vdev_limit": 16 << 20,
    "zfs_scan_suspend_progress": 0,
}
"""Parameters of the machine's ZFS module."""
BOX = "sys/class/enclosure/0:0:8:0"
ORDERED = "zfs_vdev_async_write_max_active=6"


def build_machine(root: Path) -> None:
    """Create a faked machine with two disks in an enclosure; one disk's light is on."""
    files: dict[str, object] = {f"{BOX}/id": "0x50050cc10c4010aa"}
    files["proc/sys/kernel/random/boot_id"] = "boot-1"
    files["sys/module/zfs/version"] = "2.3.9-1"
    files |= {f"sys/module/zfs/parameters/{name}": value for name, value in LIVE.items()}
    for number, name in enumerate(("sda", "sdb"), 1):
        files[f"{BOX}/Slot 0{number}/locate"] = number - 1
        files[f"sys/block/{name}/size"] = 2**32
        files[f"sys/block/{name}/device/serial"] = f"S{number}"
        files[f"sys/block/{name}/device/wwid"] = f"naa.S{number}"
    for place, value in files.items():
        path = root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}\n")
    for number, name in enumerate(("sda", "sdb"), 1):
        link = root / f"sys/block/{name}/device/enclosure_device:Slot 0{number}"
        link.symlink_to(f"../../../class/enclosure/0:0:8:0/Slot 0{number}")


@contextmanager
def held(lock: Path) -> Iterator[None]:
    """Hold the lock of a background process, so that none is started."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def leave_lights(area: Path) -> Said:
    """Leave two lights on."""
    build_machine(area / "machine")
    machine = Machine(str(area / "machine"), NOW)
    with held(area / "state/lights.holder"):
        apart.run(("light", "on", "S1"), environment(area), machine)
        return apart.run(("light", "on", "S2"), environment(area), machine)


def leave_tunables(area: Path, how: str) -> Said:
    """Leave tunables set, by the command line and by a process that is killed."""
    build_machine(area / "machine")
    machine, environ = Machine(str(area / "machine"), NOW), environment(area)
    apart.run(("tunables", "set", ORDERED), environ, machine)
    return apart.run((how,), environ, machine, "tests.lock.leave:tunables")


def tunables(words: Sequence[str]) -> int:
    """Set tunables as a console, a guard or the autopilot does, then be killed."""
    from zconsole.system.audit import MemoryLog
    from zconsole.system.host import process_mark
    from zconsole.system.record_file import encoded
    from zconsole.system.state_dir import state_dir, write_private
    from zconsole.tunables import autopilot
    from zconsole.tunables.control import Control
    from zconsole.tunables.hold_latency import LEVERS, values
    from zconsole.tunables.parameters import Parameters
    from zconsole.tunables.store import TunableStore

    state, mark, parameters = state_dir(True), process_mark(os.getpid()), Parameters()
    control = Control(parameters, TunableStore(state), MemoryLog(), mark)
    if words == ["autopilot"]:
        autopilot.PilotClaim(state, mark or "").take(parameters)
        live = {name: LIVE[name] for name in LEVERS if name in LIVE}
        control.set(values(-2.0, live), NOW + 60, action="hold-latency 0.02")
        status = autopilot.Status(mark or "", NOW + 60, ("20ms",), -2.0, ("tank",))
        write_private(state / autopilot.STATUS, encoded(status))
    else:
        control.set({"zfs_resilver_min_time_ms": 9000, "zfs_scrub_min_time_ms": 2000}, NOW + 60)
        control.set({"zfs_scan_suspend_progress": 1}, NOW + 90, guard=True)
        if words == ["scan"]:
            control.until("1027")
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def leave_hours(area: Path, looks: str) -> Said:
    """Leave a scrub with a window, after ``looks`` checks of it."""
    return apart.run((looks,), environment(area), Machine(), "tests.lock.leave:hours")


def hours(words: Sequence[str]) -> int:
    """Run a simulated pool's scrub with a window for a while, then be killed."""
    from tests.lock import going_on

    going_on.Hours().left(int(words[0]))
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


# Swaps, histories and reports.


def leave_swaps(area: Path, way: str) -> Said:
    """Leave a swap at each of its steps, each in a separate state directory."""
    words = (way, str(area / "state"))
    return apart.run(words, environment(area), Machine(), "tests.lock.leave:swaps")


def swaps(words: Sequence[str]) -> int:
    """Play a swap, and save its checklist after each action."""
    from tests.lock import going_on

    going_on.left(words[0], Path(words[1]))
    return 0


def leave_watch(area: Path, scenario: str) -> Said:
    """Leave the state of a console that watches a pool, with samples of the time afterwards."""
    words = (scenario, str(area / "after.jsonl"))
    return apart.run(words, environment(area), Machine(), "tests.lock.leave:watch")


WATCHED: dict[str, tuple[float, float, tuple[float, ...]]] = {
    "sequential": (60.0, 9000.0, (60.0, 120.0, 20_000.0)),
    "mirror-scrub": (30.0, 1800.0, (60.0, 120.0, 180.0)),
}
"""By scenario: seconds between samples, seconds watched, and times of samples afterwards."""


def watch(words: Sequence[str]) -> int:
    """Watch a simulated pool with a history on disk, then be killed."""
    from zconsole.cli import local
    from zconsole.sim.source import World
    from zconsole.zfs.sources.recording import Recorder

    world, session = World(words[0], 7), local.session(keep=True)
    interval, seconds, later = WATCHED[words[0]]
    for number in range(round(seconds / interval)):
        world.advance(number * interval)
        session.advance(world.raws())
    assert session._writer is not None
    session._writer.settle(10.0)
    with Recorder(words[1]) as recorder:
        for after in later:
            world.advance(seconds + after)
            recorder.write(world.raws())
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


CONFIGURATION = """\
# As somebody wrote it, and as the console changed it.
interval = 2.5
theme = "colorblind"
units = "decimal"
panes = ["scan", "devices", "events"]
columns = ["errors", "rates", "bay"]
sort = "latency"
chassis = ["SAS3x40: 4x6 by-column from-bottom"]
ascii = true
no-mouse = true
hosts = ["nas", "root@vault"]
stalled-after = 900
scrub-overdue-after = "60d"  # after the holidays
slip = "30%"
free-floor = 0.1
bell = 1
of-tomorrow = 1

[keys]
sort = "F"
quit = ["q", "x"]
"""


def leave_configuration(area: Path) -> Said:
    """Leave a configuration."""
    place = area / "config/zconsole"
    place.mkdir(parents=True, mode=0o700)
    (place / "config.toml").write_text(CONFIGURATION)
    return Said(0, "", "")


LEAVE: dict[str, Callable[[Path], Said]] = {
    **{f"job-{name}": partial(leave_job, moment=name) for name in MOMENTS},
    "lights": leave_lights,
    **{f"tunables-{how}": partial(leave_tunables, how=how) for how in ("console", "scan")},
    "tunables-autopilot": partial(leave_tunables, how="autopilot"),
    **{f"hours-{looks}": partial(leave_hours, looks=looks) for looks in "123"},
    **{f"swap-{way}": partial(leave_swaps, way=way) for way in ("pull", "replace", "spare")},
    **{f"watch-{name}": partial(leave_watch, scenario=name) for name in WATCHED},
    "configuration": leave_configuration,
}
ON_ZFS = ("job-rewrite",)
"""Archives that are made only when named, and only if temporary files are on ZFS."""


def main(names: Sequence[str]) -> int:
    """Leave what is named, or everything that this version has not left yet."""
    from zconsole import __version__

    for name in names or (name for name in LEAVE if name not in ON_ZFS):
        to = left.archive(__version__, name)
        if to.exists() and not names:
            continue
        shm = Path("/dev/shm")
        memory = shm.is_dir() and name not in ON_ZFS
        base = tempfile.mkdtemp(prefix="zc-", dir=shm if memory else None)
        area = begin_area(Path(base))
        said = LEAVE[name](area)
        print(name, said, sep="\n")
        if said.code not in (0, -signal.SIGKILL):
            return 1
        left.pack(area, to)
        print(to.stat().st_size)
        shutil.rmtree(base)
    return 0


if __name__ == "__main__":
    from tests.lock import leave

    sys.exit(leave.main(sys.argv[1:]))
