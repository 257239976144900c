"""Whoever holds an inode without a write descriptor loses nothing that is written later."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import platform
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.faults.beside import apart, beside, mount
from tests.faults.harness import FaultySys, Killed, create, descriptors_closed, run
from zconsole.rebalance.engine.file_locks import Users
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.planning import plan
from zconsole.rebalance.planning.facts import FactsReader
from zconsole.rebalance.planning.settings import Settings

Found = dict[str, tuple[str, str | None]]


def tree(area: Path, *names: str) -> Path:
    root = area / "tree"
    root.mkdir()
    for name in names or ("held", "free"):
        (root / name).write_bytes(b"before\n")
    return root


def moved(area: Path, system: Sys | None = None) -> Found:
    """Run the created job; (outcome, reason) by file name."""
    shown, _ = run(area / "job.db", system, users=Users())
    return {Path(r["path"]).name: (r["outcome"], r["reason"]) for r in shown}


def append(path: Path | str) -> None:
    with Path(path).open("ab", buffering=0) as file:
        file.write(b"after\n")


def opened_again(fd: int) -> None:
    append(f"/proc/self/fd/{fd}")


def is_left_alone(found: Found, root: Path) -> None:
    """Whether ``held`` was skipped and has what was written to it later, and nothing else was."""
    outcome, reason = found.pop("held")
    assert (outcome, (reason or "")[:6]) == ("skipped", "in use")
    assert len(reason or "") <= 40
    assert set(found.values()) == {("moved", None)}
    assert (root / "held").read_bytes() == b"before\nafter\n"
    assert not [path for path in root.iterdir() if path.name.startswith(".zc-")]


# Mounts.


def bound(root: Path) -> Path:
    """The file, mounted somewhere else."""
    place = root.parent / "mounted"
    place.touch()
    mount(root / "held", place)
    return place


def test_a_bind_mounted_file_is_in_use(area: Path) -> None:
    root = tree(area)

    def scenario() -> tuple[Found, bytes]:
        place = bound(root)
        create(root, area / "job.db")
        found = moved(area)
        append(place)
        return found, (root / "held").read_bytes()

    found, content = apart(scenario)
    assert content == b"before\nafter\n"
    is_left_alone(found, root)


def test_a_file_bind_mounted_in_another_namespace_is_in_use(area: Path) -> None:
    root = tree(area)
    steps = (lambda: bound(root), lambda: append(area / "mounted"))
    with beside(*steps, own_mounts=True) as other:
        create(root, area / "job.db")
        found = moved(area)
        other.go()
    is_left_alone(found, root)


def test_another_name_of_a_bind_mounted_file_is_in_use(area: Path) -> None:
    root = tree(area)
    (root / "too").hardlink_to(root / "held")
    steps = (lambda: bound(root), lambda: append(area / "mounted"))
    with beside(*steps, own_mounts=True) as other:
        create(root, area / "job.db")
        found = moved(area)
        other.go()
    assert found.pop("too") == found["held"]
    is_left_alone(found, root)


def test_a_mount_point_in_another_namespace_is_in_use(area: Path) -> None:
    """The mount would be detached, and its container see what is below it."""
    root = tree(area)
    (area / "resolv.conf").write_bytes(b"of the host\n")
    steps = (
        lambda: mount(area / "resolv.conf", root / "held"),
        (root / "held").read_bytes,
    )
    with beside(*steps, own_mounts=True) as other:
        create(root, area / "job.db")
        found = moved(area)
        assert other.go() == b"of the host\n"
    append(root / "held")
    is_left_alone(found, root)


def test_a_mount_point_in_a_root_that_is_bound_elsewhere_is_in_use(area: Path) -> None:
    """A container sees the tree by another path, and with a name that has to be escaped."""
    root, elsewhere = tree(area), area / "a container\\040"
    elsewhere.mkdir()
    (area / "hosts").write_bytes(b"of the host\n")

    def begin() -> None:
        mount(root, elsewhere)
        mount(area / "hosts", elsewhere / "held")

    with beside(begin, (elsewhere / "held").read_bytes, own_mounts=True) as other:
        create(root, area / "job.db")
        found = moved(area)
        assert other.go() == b"of the host\n"
    append(root / "held")
    is_left_alone(found, root)


def test_mounts_of_other_files_change_nothing(area: Path) -> None:
    root = tree(area, "free")
    (area / "other").touch()
    (area / "place").touch()
    with beside(lambda: mount(area / "other", area / "place"), own_mounts=True):
        create(root, area / "job.db")
        assert moved(area) == {"free": ("moved", None)}


# Descriptors.


@pytest.mark.parametrize("flags", [os.O_PATH, os.O_RDONLY], ids=["path", "read"])
def test_a_file_that_is_open_elsewhere_is_in_use(area: Path, flags: int) -> None:
    root = tree(area)
    held: list[int] = []
    begin = lambda: held.append(os.open(root / "held", flags))  # noqa: E731
    with beside(begin, lambda: opened_again(held[0])) as other:
        create(root, area / "job.db")
        found = moved(area)
        other.go()
        assert found["held"][1] == f"in use by {comm(other.process)} (pid {other.process})"
    is_left_alone(found, root)


def test_nothing_is_copied_of_a_file_in_use(area: Path) -> None:
    root, held, system = tree(area, "held"), [], FaultySys()
    create(root, area / "job.db")
    with beside(lambda: held.append(os.open(root / "held", os.O_PATH))):
        assert moved(area, system)["held"][0] == "skipped"
    assert "pwrite" not in system.calls


def test_a_descriptor_of_another_namespace_is_seen(area: Path) -> None:
    """Its path there is none here."""
    root, elsewhere = tree(area), area / "elsewhere"
    elsewhere.mkdir()
    held: list[int] = []

    def begin() -> None:
        mount(root, elsewhere)
        held.append(os.open(elsewhere / "held", os.O_PATH))

    with beside(begin, lambda: opened_again(held[0]), own_mounts=True) as other:
        create(root, area / "job.db")
        found = moved(area)
        other.go()
    is_left_alone(found, root)


def comm(process: int) -> str:
    return Path(f"/proc/{process}/comm").read_text().strip()


def test_a_mapping_that_can_be_written_to_refuses_the_lease(area: Path) -> None:
    """It keeps the file open for writing when its descriptor is closed."""
    root, maps = tree(area), []

    def begin() -> None:
        with (root / "held").open("r+b") as file:
            maps.append(mmap.mmap(file.fileno(), 0))

    def write() -> None:
        maps[0][:6] = b"mapped"

    with beside(begin, write) as other:
        create(root, area / "job.db")
        assert moved(area) == {"held": ("skipped", "open for writing"), "free": ("moved", None)}
        other.go()
    assert (root / "held").read_bytes() == b"mapped\n"


def test_a_mapping_that_can_be_read_never_becomes_writable(area: Path) -> None:
    """So that nobody has to look for those."""
    root = tree(area)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    with (root / "held").open("rb") as file:
        place = libc.mmap(None, 7, mmap.PROT_READ, mmap.MAP_SHARED, file.fileno(), 0)
    both = mmap.PROT_READ | mmap.PROT_WRITE
    assert libc.mprotect(ctypes.c_void_p(place), ctypes.c_size_t(7), both) == -1
    assert ctypes.get_errno() == errno.EACCES
    libc.munmap(ctypes.c_void_p(place), ctypes.c_size_t(7))


EXIT = {"x86_64": 60, "aarch64": 93}
"""The call that ends one thread (asm/unistd.h)."""


@pytest.mark.skipif(platform.machine() not in EXIT, reason="the number of a call is not known")
def test_a_process_whose_first_thread_has_ended_is_seen(area: Path) -> None:
    root, held, end = tree(area), [], os.pipe()

    def hold() -> None:
        held.append(os.open(root / "held", os.O_PATH))
        os.write(end[1], b"1")
        os.close(end[1])
        threading.Event().wait(60)

    process = os.fork()
    if not process:
        threading.Thread(target=hold, daemon=True).start()
        ctypes.CDLL(None).syscall(EXIT[platform.machine()], 0)
    os.close(end[1])
    try:
        assert os.read(end[0], 1) == b"1"
        while alive(process):
            threading.Event().wait(0.01)
        create(root, area / "job.db")
        found = moved(area)
    finally:
        os.close(end[0])
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
    assert found["held"][0] == "skipped"
    assert (found["held"][1] or "").endswith(f"(pid {process})")


def alive(process: int) -> bool:
    """Whether the first thread of a process goes on."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


# Holders that come late.


def at_call(name: str, number: int, act: Callable[[], object]) -> FaultySys:
    """System calls of which the so manyth of a name is followed by something."""
    count = 0

    def after(_: int, called: str, _result: Any) -> None:
        nonlocal count
        count += called == name
        if called == name and count == number:
            act()

    return FaultySys(after=after)


LATE = {
    "while it is copied": ("pwrite", 1),
    "when names are replaced": ("exchange", 1),
}


@pytest.mark.parametrize("moment", LATE)
def test_a_descriptor_that_comes_late_is_seen(area: Path, moment: str) -> None:
    root, held = tree(area, "held"), []
    inode = (root / "held").stat().st_ino

    def opening() -> None:
        name = next(path for path in root.iterdir() if path.stat().st_ino == inode)
        held.append(os.open(name, os.O_PATH))

    create(root, area / "job.db")
    with beside(lambda: None, opening, lambda: opened_again(held[0])) as other:
        system = at_call(*LATE[moment], other.go)
        found = moved(area, system)
        other.go()
    assert ("exchange" in system.calls) is (LATE[moment][0] == "exchange")
    outcome, reason = found["held"]
    assert (outcome, (reason or "")[:6]) == ("skipped", "in use")
    assert (root / "held").read_bytes() == b"before\nafter\n"
    assert (root / "held").stat().st_ino == inode
    assert len(list(root.iterdir())) == 1


def test_a_mount_that_comes_late_is_seen(area: Path) -> None:
    root = tree(area, "held")
    create(root, area / "job.db")
    steps = (lambda: None, lambda: bound(root), lambda: append(area / "mounted"))
    with beside(*steps, own_mounts=True) as other:
        found = moved(area, at_call("link_fd", 1, other.go))
        other.go()
    is_left_alone(found | {"free": ("moved", None)}, root)


def test_both_versions_in_use_are_kept(area: Path) -> None:
    """Whoever holds the copy and whoever holds the original may write: the operator chooses."""
    root, held = tree(area, "held"), []

    def both() -> None:
        held.extend(os.open(path, os.O_PATH) for path in root.iterdir())

    create(root, area / "job.db")
    with beside(lambda: None, both) as other:
        found = moved(area, at_call("exchange", 1, other.go))
    outcome, reason = found["held"]
    assert outcome == "failed"
    assert "the other version is .zc-" in (reason or "")
    assert len(list(root.iterdir())) == 2


# After a death.


@pytest.mark.parametrize("both", [False, True], ids=["original", "both"])
def test_recovery_keeps_what_is_in_use(area: Path, both: bool) -> None:
    """The job died between replacing the name and removing the original."""
    root, held = tree(area, "held"), []
    inode = (root / "held").stat().st_ino

    def hold() -> None:
        paths = [path for path in root.iterdir() if both or path.stat().st_ino == inode]
        paths.sort(key=lambda path: path.stat().st_ino != inode)
        held.extend(os.open(path, os.O_PATH) for path in paths)

    create(root, area / "job.db")
    dying = at_call("exchange", 1, lambda: dying.die())  # noqa: PLW0108 (not there yet)
    with beside(lambda: None, hold, lambda: opened_again(held[0])) as other:
        with descriptors_closed(), pytest.raises(Killed):
            run(area / "job.db", dying, users=Users())
        other.go()
        found = moved(area)
        other.go()
    if not both:
        is_left_alone(found | {"free": ("moved", None)}, root)
        return
    assert len(list(root.iterdir())) == 2
    assert (root / "held").read_bytes() == b"before\n"


# Overlays.


def layers(root: Path) -> Path:
    """Directories for an overlay, and where to mount it."""
    for name in ("low", "low,2", "low:3", "up", "work", "files"):
        (root / name).mkdir(parents=True)
        (root / name / "held").write_bytes(b"before\n") if name in ("up", "files") else None
    (root / "low" / "lower").write_bytes(b"before\n")
    place = root.parent / "merged"
    place.mkdir()
    return place


def over(lower: str, upper: Path, work: Path) -> str:
    return f"lowerdir={lower},upperdir={upper},workdir={work}"


def refusal(*roots: Path, **settings: Any) -> str | None:
    """Why a job on these directories is refused; None when it is not."""
    wanted = Settings(tuple(map(str, roots)), allow_non_zfs=True, **settings)
    reader = FactsReader()
    found = plan.places(wanted.dirs, reader)
    return plan.make(Sys(), reader, found, wanted.wish, wanted.goal).refused


@pytest.mark.parametrize("part", ["", "up", "low", "work", "up/below"])
@pytest.mark.parametrize("own", [True, False], ids=["here", "elsewhere"])
def test_a_tree_that_overlaps_a_mounted_overlay_is_refused(
    area: Path, part: str, own: bool
) -> None:
    root = area / "tree"
    place = layers(root)
    (root / "up" / "below").mkdir()

    def begin() -> None:
        mount("overlay", place, "overlay", over(f"{root}/low", root / "up", root / "work"))

    def scenario() -> tuple[str | None, str | None]:
        begin()
        return refusal(root / part), refusal(root / "files")

    if own:
        refused, other = apart(scenario)
    else:
        with beside(begin, own_mounts=True):
            refused, other = refusal(root / part), refusal(root / "files")
    assert "in use by an overlay" in refused
    assert other is None


def test_what_is_written_through_an_overlay_is_not_lost(area: Path) -> None:
    """The overlay is mounted after the plan was made."""
    root = area / "tree"
    place = layers(root)
    options = over(f"{root}/low", root / "up", root / "work")
    steps = (
        lambda: mount("overlay", place, "overlay", options),
        lambda: append(place / "held"),
    )
    create(root, area / "job.db")
    with beside(*steps, own_mounts=True) as other:
        shown, _ = run(area / "job.db", users=Users())
        other.go()
    found = {str(Path(r["path"]).relative_to(root)): (r["outcome"], r["reason"]) for r in shown}
    assert found == {
        "up/held": ("skipped", f"in use by an overlay (pid {other.process})"),
        "low/lower": ("skipped", f"in use by an overlay (pid {other.process})"),
        "files/held": ("moved", None),
    }
    assert (root / "up" / "held").read_bytes() == b"before\nafter\n"


LOWER: dict[str, tuple[str, Callable[[Path], str]]] = {
    "several": ("low", lambda root: f"{root}/files:{root}/low"),
    "a comma": ("low,2", lambda root: f"{root}/low:{root}/low\\,2"),
    "a colon": ("low:3", lambda root: f"{root}/low:{root}/low\\:3"),
    "relative": ("low", lambda root: "tree/files:tree/low"),
    "link": ("low", lambda root: f"{root}/files:{root.parent}/link"),
}


@pytest.mark.parametrize("kind", LOWER)
def test_every_way_to_name_a_layer_is_understood(area: Path, kind: str) -> None:
    root = area / "tree"
    place = layers(root)
    (area / "link").symlink_to("tree/low")
    name, lower = LOWER[kind]

    def begin() -> None:
        os.chdir(area)
        mount("overlay", place, "overlay", over(lower(root), root / "up", root / "work"))

    with beside(begin, own_mounts=True):
        assert "in use by an overlay" in (refusal(root / name) or "")


def test_a_layer_named_by_a_path_of_another_namespace_is_found(area: Path) -> None:
    """As an engine in a container names it."""
    root, elsewhere = area / "tree", area / "elsewhere"
    place = layers(root)
    elsewhere.mkdir()

    def begin() -> None:
        mount(root, elsewhere)
        options = over(f"{elsewhere}/low", elsewhere / "up", elsewhere / "work")
        mount("overlay", place, "overlay", options)

    with beside(begin, own_mounts=True):
        assert "in use by an overlay" in (refusal(root / "up") or "")
        assert refusal(root / "files") is None
