"""Mistakes of other rebalancers, one test each: every one of these lost data somewhere."""

from __future__ import annotations

import mmap
import os
import shutil
import signal
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults import trees
from tests.faults.harness import ALL, FaultySys, create, run
from zconsole.errors import ZconsoleError
from zconsole.rebalance.engine import file_locks, syscalls
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.job.locks import BusyTreeError, TreeLocks
from zconsole.rebalance.planning.walk import Walk


def outcome(area: Path, root: Path, **settings: object) -> dict[str, tuple[str, str | None]]:
    """Move a tree; returns (outcome, reason) by file name."""
    create(root, area / "job.db", **settings)
    return ran(area)


def ran(area: Path, system: Sys | None = None) -> dict[str, tuple[str, str | None]]:
    """Run the created job; returns (outcome, reason) by file name."""
    shown, _ = run(area / "job.db", system)
    return {Path(r["path"]).name: (r["outcome"], r["reason"]) for r in shown}


def tree(area: Path, **files: bytes) -> Path:
    root = area / "tree"
    root.mkdir()
    for name, content in files.items():
        (root / name).write_bytes(content)
    return root


def test_an_append_handle_loses_no_line(area: Path) -> None:
    root = tree(area, log=b"")
    with (root / "log").open("ab", buffering=0) as log:
        log.write(b"before\n")
        found = outcome(area, root)
        log.write(b"after\n")
    assert found["log"] == ("skipped", "open for writing")
    assert (root / "log").read_bytes() == b"before\nafter\n"


def test_a_shared_mapping_counts_as_open_for_writing(area: Path) -> None:
    root = tree(area, mapped=bytes(4096))
    with (root / "mapped").open("r+b") as file:
        memory = mmap.mmap(file.fileno(), 4096)
    found = outcome(area, root)
    memory[:5] = b"later"
    memory.close()
    assert found["mapped"][0] == "skipped"
    assert (root / "mapped").read_bytes()[:5] == b"later"


def test_a_file_that_a_client_has_locked_is_left_alone(
    area: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client on another machine holds the lock: no process here has the file open."""
    root = tree(area, lock=b"", free=b"")
    number, device = (root / "lock").stat().st_ino, area.stat().st_dev
    monkeypatch.setattr(file_locks, "locked_inodes", lambda: {(device, number)})
    found = outcome(area, root)
    assert found == {"lock": ("skipped", "locked"), "free": ("moved", None)}


def test_a_link_replaced_by_an_editor_keeps_the_new_content(area: Path) -> None:
    root = tree(area, one=b"old")
    os.link(root / "one", root / "two")
    create(root, area / "job.db")
    (root / "new").write_bytes(b"new")
    (root / "new").rename(root / "two")
    found = ran(area)
    assert (root / "one").read_bytes() == b"old"
    assert (root / "two").read_bytes() == b"new"
    assert {word for word, _ in found.values()} == {"skipped"}


@pytest.mark.parametrize("lost", ["one", "two"])
def test_a_link_replaced_while_another_appears_is_not_split(area: Path, lost: str) -> None:
    """The number of links is the same as before."""
    root = tree(area, one=b"old")
    os.link(root / "one", root / "two")
    create(root, area / "job.db")
    os.link(root / "one", area / "outside")
    (root / "new").write_bytes(b"new")
    (root / "new").rename(root / lost)
    reasons = {("skipped", "changed"), ("skipped", "replaced since the walk")}
    assert set(ran(area).values()) <= reasons
    left = "two" if lost == "one" else "one"
    assert (root / left).stat().st_ino == (area / "outside").stat().st_ino
    assert (root / lost).read_bytes() == b"new"


def test_links_that_leave_the_set_are_not_split(area: Path) -> None:
    root = tree(area, inside=b"shared")
    os.link(root / "inside", area / "outside")
    create(root, area / "job.db")
    _, summary = run(area / "job.db")
    assert summary["skipped"] == {"hard links outside the set": 1}
    assert (root / "inside").stat().st_ino == (area / "outside").stat().st_ino


def test_a_link_that_appears_after_the_walk_is_not_split(area: Path) -> None:
    root = tree(area, inside=b"shared")
    create(root, area / "job.db")
    os.link(root / "inside", area / "outside")
    assert ran(area)["inside"] == ("skipped", "hard links outside the set")
    assert (root / "inside").stat().st_ino == (area / "outside").stat().st_ino


def test_a_file_replaced_after_the_walk_is_left_alone(area: Path) -> None:
    root = tree(area, file=b"old")
    create(root, area / "job.db")
    (root / "new").write_bytes(b"new")
    (root / "new").rename(root / "file")
    assert ran(area)["file"][0] == "skipped"
    assert (root / "file").read_bytes() == b"new"


def test_the_verification_verifies(area: Path) -> None:
    """A wrong copy is discarded."""

    class Liar(Sys):
        def pwrite(self, fd: int, data: bytes, offset: int) -> int:  # type: ignore[override]
            return os.pwrite(fd, b"!" + bytes(data)[1:], offset)

    root = tree(area, file=b"content")
    create(root, area / "job.db")
    inode = (root / "file").stat().st_ino
    assert ran(area, Liar())["file"][0] == "failed"
    assert (root / "file").read_bytes() == b"content"
    assert (root / "file").stat().st_ino == inode
    assert [p.name for p in root.iterdir()] == ["file"]


def test_metadata_that_cannot_be_kept_keeps_the_file(area: Path) -> None:
    class Forgetful(Sys):
        def setxattr(self, fd: int, name: str, value: bytes) -> None:
            """Pretend to set the attribute."""

    root = tree(area, file=b"content")
    os.setxattr(root / "file", "user.colour", b"red")
    create(root, area / "job.db")
    assert ran(area, Forgetful())["file"] == ("skipped", "xattrs cannot be kept")
    assert os.getxattr(root / "file", "user.colour") == b"red"


class Marking(Sys):
    """A filesystem with project ids and DOS attributes (of 8 bytes each, by inode)."""

    def __init__(self, root: Path, keeps: bool = True) -> None:
        self.keeps = keeps
        inode = (root / "file").stat().st_ino
        self.values = {("project", inode): 42, ("dos", inode): 1 << 34}

    def ioctl(self, fd: int, request: int, argument: bytes) -> bytes:
        kinds = {
            syscalls.FS_IOC_FSGETXATTR: "project",
            syscalls.FS_IOC_FSSETXATTR: "project",
            syscalls.ZFS_IOC_GETDOSFLAGS: "dos",
            syscalls.ZFS_IOC_SETDOSFLAGS: "dos",
        }
        kind = kinds.get(request)
        if kind is None:
            return super().ioctl(fd, request, argument)
        form = struct.Struct("=12xI12x" if kind == "project" else "=Q")
        key = (kind, os.fstat(fd).st_ino)
        if request in (syscalls.FS_IOC_FSSETXATTR, syscalls.ZFS_IOC_SETDOSFLAGS) and self.keeps:
            self.values[key] = form.unpack(argument)[0]
        return form.pack(self.values.get(key, 0))


def test_project_and_dos_attributes_are_kept(area: Path) -> None:
    root = tree(area, file=b"content", other=b"of no project")
    create(root, area / "job.db")
    marking = Marking(root)
    assert set(ran(area, marking).values()) == {("moved", None)}
    new, other = (root / "file").stat().st_ino, (root / "other").stat().st_ino
    kept = {key: value for key, value in marking.values.items() if key[1] in (new, other)}
    assert kept == {("project", new): 42, ("dos", new): 1 << 34}


def test_a_project_that_cannot_be_kept_keeps_the_file(area: Path) -> None:
    root = tree(area, file=b"content")
    create(root, area / "job.db")
    assert ran(area, Marking(root, keeps=False))["file"][0] == "skipped"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another owner")
def test_no_copy_is_ever_open_to_others(area: Path) -> None:
    """Until it has its owner, only this process may open a copy."""
    seen: list[int] = []

    def after(_number: int, name: str, result: object) -> None:
        if name == "open_new":
            seen.append(os.fstat(int(str(result))).st_mode & 0o777)

    root = tree(area, file=b"secret")
    (root / "file").chmod(0o666)
    create(root, area / "job.db")
    ran(area, FaultySys(after=after))
    assert seen == [0o600]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another owner")
def test_a_copy_is_never_open_to_more_than_its_original(area: Path) -> None:
    modes = {"a": 0o644, "b": 0o644, "c": 0o640, "d": 0o666, "e": 0o4755, "f": 0o644}
    root = tree(area, **dict.fromkeys(modes, b"secret"))
    for name, mode in modes.items():
        (root / name).chmod(mode)
    os.chown(root / "f", 1000, 1000)
    seen: dict[int, int] = {}

    def after(_number: int, name: str, result: object) -> None:
        if name == "open_new":
            status = os.fstat(int(str(result)))
            seen[status.st_ino] = status.st_mode & 0o7777

    create(root, area / "job.db")
    ran(area, FaultySys(after=after))
    names = {(root / name).stat().st_ino: name for name in modes}
    (first, private), *others = [(names[inode], mode) for inode, mode in seen.items()]
    wanted = {"a": 0o644, "b": 0o644, "c": 0o640, "d": 0o600, "e": 0o600, "f": 0o600}
    assert private == 0o600
    assert dict(others) == {name: mode for name, mode in wanted.items() if name != first}
    assert {name: (root / name).stat().st_mode & 0o7777 for name in modes} == modes


def test_other_filesystems_are_not_entered() -> None:
    reasons = [r for p in Walk(b"/dev") for _, r in p.skipped]
    assert "other dataset" in reasons
    assert not any(p.directory.name == b"pts" for p in Walk(b"/dev"))


def test_two_jobs_on_one_tree_cannot_run(area: Path) -> None:
    root = tree(area)
    (root / "below").mkdir()
    for first, second in ((root, root), (root, root / "below"), (root / "below", root)):
        locks = TreeLocks(Sys(), [os.fsencode(first)])
        with pytest.raises(BusyTreeError):
            TreeLocks(Sys(), [os.fsencode(second)])
        locks.close()
    (root / "beside").mkdir()
    one = TreeLocks(Sys(), [os.fsencode(root / "below")])
    TreeLocks(Sys(), [os.fsencode(root / "beside")]).close()
    one.close()


def test_without_exchange_it_is_refused_unless_races_are_accepted(area: Path) -> None:
    class Old(Sys):
        def exchange(self, directory: int, name: bytes, other: bytes) -> None:
            raise OSError(22, "Invalid argument")

    root = area / "tree"
    trees.build(root)
    before = trees.manifest(root)
    create(root, area / "job.db")
    with pytest.raises(ZconsoleError, match="--accept-races"):
        run(area / "job.db", Old())
    assert trees.manifest(root) == before
    (area / "job.db").rename(area / "first.db")
    create(root, area / "job.db", accept_races=True)
    assert {word for word, _ in ran(area, Old()).values()} == {"moved"}
    assert trees.manifest(root) == before


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_no_call_that_clones_blocks(area: Path) -> None:
    root = tree(area, large=os.urandom(3 << 20), small=b"x")
    trace = area / "trace"
    argv = [
        "strace", "-f", "--seccomp-bpf", "-o", str(trace),
        "-e", "trace=copy_file_range,sendfile,splice,ioctl",
        sys.executable, "-m", "zconsole", "rebalance", "run", str(root), "--allow-non-zfs",
        "--yes", "--journal", str(area / "job.db"),
    ]  # fmt: skip
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    if "PTRACE" in done.stderr:
        pytest.skip("tracing is not permitted here")
    assert done.returncode == 0, done.stderr
    calls = trace.read_text()
    assert not any(word in calls for word in ("copy_file_range", "sendfile", "splice", "FICLONE"))


TEMPLATE = """
import os, signal, sys
from pathlib import Path
from tests.faults.harness import ALONE, FaultySys, run
def after(count, name, result):
    if count == number:
        os.kill(os.getpid(), signal.SIGKILL)
for line in sys.stdin:
    number, journal = line.rstrip().split(" ", 1)
    number = int(number)
    child = os.fork()
    if not child:
        run(Path(journal), FaultySys(after=after), ALONE)
        os._exit(0)
    print(os.waitpid(child, 0)[1], flush=True)
"""
"""Starts processes that kill themselves, without the start-up time of Python."""


@pytest.mark.slow
def test_a_real_sigkill(area: Path) -> None:
    """Kill a real process, not a simulated one, at every 160th call."""
    step = 1 if ALL else 160
    root = area / "tree"
    trees.build(root)
    before = trees.manifest(root)
    with subprocess.Popen(
        [sys.executable, "-c", TEMPLATE], cwd=Path(__file__).parents[2], text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as template:  # fmt: skip
        assert template.stdin is not None
        assert template.stdout is not None
        for number in range(5, 2000, step):
            journal = area / f"job{number}.db"
            create(root, journal)
            template.stdin.write(f"{number} {journal}\n")
            template.stdin.flush()
            status = int(template.stdout.readline())
            _, summary = run(journal)
            assert trees.manifest(root) == before, number
            assert summary["files_failed"] == 0
            if status == 0:
                return
            assert os.WTERMSIG(status) == signal.SIGKILL
    raise AssertionError("the job never ended")
