"""Reading locks from a faked /proc."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from zconsole.rebalance.engine.file_locks import RECENT, FilesInUse, Users, locked_inodes
from zconsole.rebalance.engine.holders import Holders, name_of
from zconsole.system import mounts
from zconsole.system.mounts import Spot, View

DEVICE = os.makedev(0, 51)
TABLE = """\
20 1 8:1 / / rw - ext4 /dev/sda1 rw
22 20 0:51 / /tank rw - zfs tank rw
23 20 0:60 / /net rw - nfs4 server:/export rw,hard
24 20 0:61 / /sub rw - btrfs /dev/sdb rw
25 20 0:4 mnt:[77] /run/snapd/ns/x.mnt rw - nsfs nsfs rw
26 20 0:4 net:[78] /run/netns/x rw - nsfs nsfs rw
"""


@dataclass(frozen=True)
class Proc:
    """A directory like /proc, in which this process is number 5."""

    path: Path

    def add(self, number: int, name: str = "holder", namespace: str = "mnt:[1]") -> Path:
        place = self.path / str(number)
        for directory in ("fd", "fdinfo", "ns", f"task/{number}"):
            (place / directory).mkdir(parents=True)
        (place / "ns/mnt").symlink_to(namespace)
        (place / "root").symlink_to("/")
        (place / "comm").write_text(f"{name}\n")
        (place / "mountinfo").write_text(TABLE)
        return place

    def hold(self, number: int, link: str, mount: int, inode: int | None, fd: int = 3) -> None:
        place = self.path / str(number)
        told = "" if inode is None else f"ino:\t{inode}\n"
        (place / f"fd/{fd}").symlink_to(link)
        (place / f"fdinfo/{fd}").write_text(f"pos:\t0\nflags:\t012000000\nmnt_id:\t{mount}\n{told}")


@pytest.fixture
def proc(tmp_path: Path) -> Proc:
    made = Proc(tmp_path)
    made.add(5, "zconsole")
    (tmp_path / "self").symlink_to("5")
    return made


def user(proc: Proc, inode: int = 9, device: int = DEVICE) -> str | None:
    return Users(proc.path).look().user(device, inode)


@pytest.mark.parametrize(
    ("link", "mount", "inode", "held"),
    [
        ("/tank/file", 22, 9, True),
        ("/named/otherwise/there", 22, 9, True),
        ("/tank/file", 22, 8, False),
        ("/file", 20, 9, False),
        ("/detached", 99, 9, True),
        ("/sub/file", 24, 9, True),
        ("socket:[9]", 99, 9, False),
        ("pipe:[9]", 99, 9, False),
        ("anon_inode:[eventpoll]", 99, 9, False),
        ("/memfd:x (deleted)", 99, 9, False),
        ("/SYSV0000002a (deleted)", 99, 9, False),
        ("/dmabuf:", 99, 9, False),
        ("/SYSVOL/file", 22, 9, True),
        ("/memfd:x/file", 22, 9, True),
        ("/memfd:x (deleted)", 22, 9, True),
        ("/dmabuf:x", 22, 9, True),
    ],
)
def test_a_descriptor_is_known_by_its_filesystem_and_inode(
    proc: Proc, link: str, mount: int, inode: int, held: bool
) -> None:
    proc.add(7)
    proc.hold(7, link, mount, inode)
    assert user(proc) == ("in use by holder (pid 7)" if held else None)


def test_a_process_that_another_starts_during_a_look_is_looked_at(proc: Proc) -> None:
    """It may have inherited a file of one that has ended before its turn."""

    def listen() -> None:
        if not (proc.path / "8").exists():
            proc.add(8)
            proc.hold(8, "/tank/file", 22, 9)

    found = Holders.look(frozenset(), listen, proc.path)
    assert [held.process for held in found.by_inode[9]] == ["8"]


def test_this_process_does_not_count(proc: Proc) -> None:
    proc.hold(5, "/tank/file", 22, 9)
    assert user(proc) is None


def test_old_kernels_are_asked_on_filesystems_that_need_no_server(
    proc: Proc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, asked, stat = tmp_path / "file", [], Path.stat
    file.touch()
    monkeypatch.setattr(Path, "stat", lambda self: asked.append(self) or stat(self))
    proc.add(7)
    proc.hold(7, str(file), 22, None, fd=3)
    proc.hold(7, "/net/file", 23, None, fd=4)
    proc.hold(7, "/unknown", 99, None, fd=5)
    assert user(proc, stat(file).st_ino) == "in use by holder (pid 7)"
    assert asked == [proc.path / "7/fd/3"]


def test_threads_of_which_the_first_has_ended_are_looked_at(proc: Proc) -> None:
    ended, thread = proc.add(7), proc.add(8)
    (ended / "ns/mnt").unlink()
    thread.rename(ended / "task/8")
    proc.hold(7, "/tank/file", 22, 9)
    for kind in ("fd", "fdinfo"):
        (ended / kind / "3").rename(ended / "task/8" / kind / "3")
    assert user(proc) == "in use by holder (pid 7)"


def test_processes_that_may_not_be_looked_at_are_counted(
    proc: Proc, monkeypatch: pytest.MonkeyPatch
) -> None:
    proc.add(7)
    opening = os.open

    def denied(path: str, flags: int, *, dir_fd: int | None = None) -> int:
        if path == "7/fd":
            raise PermissionError
        return opening(path, flags, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", denied)
    assert Holders.look(frozenset(), proc=proc.path).hidden == ["7"]


def test_a_process_whose_threads_may_not_be_listed_ends_no_look(
    proc: Proc, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The option hidepid=1 does this (proc(5))."""
    proc.add(7)
    asking, denied = os.stat, []

    def stat(path: Any, **options: Any) -> os.stat_result:
        if path == "7/task":
            denied.append(path)
            raise PermissionError
        return asking(path, **options)

    monkeypatch.setattr(os, "stat", stat)
    assert Users(proc.path).look().lost == 0
    assert denied


def test_a_process_that_ends_meanwhile_holds_nothing(proc: Proc) -> None:
    proc.add(7)
    (proc.path / "7/fd").rmdir()
    proc.add(8)
    (proc.path / "8/fd/3").symlink_to("/tank/file")
    assert user(proc) is None
    assert Users(proc.path).look().holders.hidden == []


def test_others_have_their_turn_while_a_process_with_many_files_is_looked_at(proc: Proc) -> None:
    proc.add(7)
    for fd in range(600):
        (proc.path / f"7/fd/{fd}").symlink_to("socket:[1]")
    turns: list[int] = []
    Holders.look(frozenset({"5"}), lambda: turns.append(1), proc.path)
    assert len(turns) >= 3


def test_a_namespace_that_nobody_is_in_is_counted(proc: Proc) -> None:
    assert Users(proc.path).look().unseen == 1
    proc.add(7, namespace="mnt:[77]")
    assert Users(proc.path).look().unseen == 0


def test_a_namespace_that_only_a_descriptor_keeps_is_counted(proc: Proc) -> None:
    proc.add(7, namespace="mnt:[77]")
    (proc.path / "7/fd/3").symlink_to("mnt:[79]")
    (proc.path / "7/fd/4").symlink_to("mnt:[77]")
    assert Users(proc.path).look().unseen == 1


def test_overlays_whose_directories_are_found_nowhere_are_counted(proc: Proc) -> None:
    options = "rw,lowerdir=nowhere/l,upperdir=nowhere/u,workdir=nowhere/w"
    lines = [f"{n} 20 0:9{n} / /merged{n} rw - overlay o {options}\n" for n in (4, 5)]
    proc.add(7, namespace="mnt:[2]")
    (proc.path / "7/mountinfo").write_text(TABLE + "".join(lines))
    assert Users(proc.path).look().lost == 2


@pytest.mark.parametrize("kind", ["ecryptfs", "shiftfs"])
def test_a_directory_that_something_is_stacked_upon_is_in_use(
    proc: Proc, tmp_path: Path, kind: str
) -> None:
    (tmp_path / "lower").mkdir()
    (proc.path / "5/mountinfo").write_text(
        f"{TABLE}30 20 0:90 / {tmp_path}/upper rw - {kind} {tmp_path}/lower rw\n"
    )
    assert [spot.path for spot, _ in Users(proc.path).look().layers] == [bytes(tmp_path / "lower")]


def test_what_an_overlay_was_made_of_stays_in_use_once_that_is_mounted_nowhere(
    proc: Proc, tmp_path: Path
) -> None:
    (tmp_path / "lower").mkdir()
    line = f"30 20 0:90 / {tmp_path}/upper rw - ecryptfs {tmp_path}/lower rw\n"
    proc.add(7, namespace="mnt:[2]")
    (proc.path / "7/mountinfo").write_text(TABLE + line)
    users = Users(proc.path)
    (mounted,) = users.look().layers
    (proc.path / "7/mountinfo").write_text(TABLE)
    assert mounted[1] == "7"
    assert users.look().layers == ((mounted[0], ""),)


def test_an_overlay_that_one_view_finds_all_of_is_not_lost(proc: Proc, tmp_path: Path) -> None:
    for name in "luw":
        (tmp_path / "layers" / name).mkdir(parents=True)
    paths = ",".join((f"lowerdir={tmp_path}/layers/l", "upperdir=u", "workdir=w"))
    line = f"30 20 0:90 / {tmp_path}/layers/merged rw - overlay o {paths}\n"
    (proc.path / "5/root").unlink()
    (proc.path / "5/root").symlink_to("/")
    (proc.path / "5/mountinfo").write_text(TABLE + line)
    look = Users(proc.path).look()
    assert (look.lost, len(look.layers)) == (0, 3)


@pytest.mark.parametrize("names", [("held", "held", "too"), ("held", "too", "held")])
def test_of_several_that_have_one_file_mounted_this_process_is_named(
    proc: Proc, tmp_path: Path, names: tuple[str, ...]
) -> None:
    (tmp_path / "held").touch()
    (tmp_path / "too").hardlink_to(tmp_path / "held")
    proc.add(7, namespace="mnt:[7]")
    proc.add(8, namespace="mnt:[8]")
    for number, name in zip((5, 7, 8), names, strict=True):
        (proc.path / f"{number}/mountinfo").write_text(
            f"{TABLE}29 20 0:77 / {tmp_path} rw - zfs a rw\n30 22 0:77 /{name} /x rw - zfs a rw\n"
        )
    status = (tmp_path / "held").stat()
    assert user(proc, status.st_ino, status.st_dev) == "in use by a mount"


@pytest.mark.parametrize("known", [True, False], ids=["mount known", "mount unknown"])
@pytest.mark.parametrize(("mounted", "pid"), [(None, " (pid 7)"), ("8", " (pid 7)"), ("", "")])
def test_a_mounted_file_without_a_local_path_is_found_in_its_directory(
    tmp_path: Path, known: bool, mounted: str | None, pid: str
) -> None:
    (tmp_path / "held").touch()
    (tmp_path / "free").touch()
    status = (tmp_path / "held").stat()
    own = View(mounts.SELF, mounts.parse(mounts.table_of(mounts.SELF)))
    top = own.top(bytes(tmp_path))
    assert top is not None
    spot = top.spot(bytes(tmp_path / "held"))
    if not known:
        own = View(mounts.SELF, {})
        spot = Spot(b"%d:%d" % (os.major(status.st_dev), os.minor(status.st_dev)), spot.path)
    before = {} if mounted is None else {(status.st_dev, status.st_ino): mounted}
    unreached = {spot.device: [(spot, "7")]}
    look = FilesInUse(0.0, own, (), Holders(), before, unreached, (), 0)
    directory = os.open(tmp_path, os.O_RDONLY)
    try:
        look.add_unreached(directory)
    finally:
        os.close(directory)
    assert look.user(status.st_dev, status.st_ino) == f"in use by a mount{pid}"
    assert look.user(status.st_dev, (tmp_path / "free").stat().st_ino) is None


def test_a_look_is_used_again_while_it_is_recent(proc: Proc) -> None:
    now = 100.0
    users = Users(proc.path, clock=lambda: now)
    first = users.recent()
    now += RECENT
    assert users.recent() is first
    now += 0.1
    assert users.recent() is not first


def test_a_table_that_changed_is_read_anew(proc: Proc) -> None:
    users = Users(proc.path)
    proc.hold(proc.add(7) and 7, "/x", 99, 9)
    assert users.look().user(DEVICE, 9) is not None
    with (proc.path / "5/mountinfo").open("a") as table:
        table.write("99 20 8:1 / /x rw - ext4 /dev/sda1 rw\n")
    assert users.look().user(DEVICE, 9) is None


def test_a_name_is_cut_and_obeyed_by_no_terminal(proc: Proc) -> None:
    proc.add(4194304, "\x1b[2Jname of more")
    assert name_of("4194304", proc.path) == "?[2Jname of mor (pid 4194304)"
    assert name_of("3", proc.path) == "a process (pid 3)"


def test_locks_of_others_count_but_not_those_of_this_process(tmp_path: Path) -> None:
    table = tmp_path / "locks"
    table.write_text(
        f"1: POSIX  ADVISORY  WRITE {os.getpid()} 00:33:7 0 EOF\n"
        "2: FLOCK  ADVISORY  WRITE 1 00:33:8 0 EOF\n"
        "2: -> FLOCK  ADVISORY  WRITE 2 00:33:8 0 EOF\n"
        "3: OFDLCK ADVISORY  READ -1 00:33:9 0 9223372036854775807\n"
        "4: LEASE  ACTIVE    READ 3 00:33:10 0 EOF\n"
    )
    assert locked_inodes(table) == {(DEVICE, 8), (DEVICE, 9)}
