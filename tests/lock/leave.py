"""`python -m tests.lock.leave [NAME ...]`: leave state as this version does, and keep it.

For each name an archive in tests/fixtures/state, in a folder of this version: a process of
zconsole began something and was killed. What has an archive is not made again; a later version
adds its own folder, and `tests.lock.state` opens them all.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.lock import apart, left
from tests.lock.apart import Machine, Said

NOON = (2026, 1, 15, 12)
"""The time of day at which jobs are left: outside the hours of the one that waits."""
HOURS = "22:00-06:00"
OLD = 10**18
"""When the files were changed that a job moves, epoch nanoseconds."""


def environment(area: Path) -> dict[str, str]:
    """Return the environment of a command on an area; none of the user's is in it."""
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
    """Have this process killed at a call of a method."""
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
    """Have another process give the job an order when its first copy is begun."""
    from zconsole.rebalance.engine.syscalls import Sys
    from zconsole.rebalance.job import job_store, wait_conditions

    wait_conditions.LOOK = 0.0
    create = Sys.open_new

    def ordering(*arguments: Any) -> Any:
        (record,) = job_store.records()
        words = (sys.executable, "-m", "zconsole", "rebalance", order, record.job)
        subprocess.run(words, cwd=apart.TREE, check=True, stderr=subprocess.DEVNULL)
        Sys.open_new = create  # type: ignore[method-assign]
        return create(*arguments)

    Sys.open_new = ordering  # type: ignore[method-assign]


def _rewrites() -> None:
    """Have the job rewrite its files in place, and killed in the midst of the first."""
    from zconsole.rebalance.engine.syscalls import Sys
    from zconsole.rebalance.planning import engine_choice

    def chosen(*_: object) -> engine_choice.Choice:
        return engine_choice.Choice("rewrite", "made up")

    engine_choice._without_zfs = chosen
    _dies(Sys, "rewrite", 2)


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
    "rewrite": (_rewrites, ()),
    "paused": (_paused, ()),
    "waiting": (_waiting, (f"--window={HOURS}",)),
    "stopped": (lambda: _ordered("stop"), ()),
}
"""How a job comes to the state that it is killed in, and its options."""


def job(words: Sequence[str]) -> int:
    """Run a job that is killed at a moment: its name, then the command."""
    from zconsole.cli.main import main

    MOMENTS[words[0]][0]()
    return main(words[1:])


def leave_job(area: Path, moment: str) -> Said:
    """Leave a job in a state."""
    build(area / "tree")
    if moment == "rewrite":
        with (area / "tree/large").open("wb") as file:
            file.truncate(9 << 20)
    run = ("rebalance", "run", "--engine=copy", "--allow-non-zfs", "--yes", "--json")
    words = (moment, *run, *MOMENTS[moment][1], str(area / "tree"))
    machine = Machine(local=NOON, rewrites=moment == "rewrite")
    environ = {**environment(area), "PATH": os.environ["PATH"]}
    return apart.run(words, environ, machine, "tests.lock.leave:job")


LEAVE: dict[str, Callable[[Path], Said]] = {
    f"job-{moment}": (lambda area, moment=moment: leave_job(area, moment)) for moment in MOMENTS
}


def main(names: Sequence[str]) -> int:
    """Leave what is named, or all that this version has not left yet."""
    from zconsole import __version__

    for name in names or LEAVE:
        to = left.archive(__version__, name)
        if to.exists() and not names:
            continue
        shm = Path("/dev/shm")
        base = tempfile.mkdtemp(prefix="zc-", dir=shm if shm.is_dir() else None)
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
