"""What plans say of those that use the files."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from zconsole.rebalance.engine.file_locks import FilesInUse
from zconsole.rebalance.engine.holders import Holders
from zconsole.rebalance.planning.company import INITIAL, notes
from zconsole.rebalance.planning.engine_choice import COPIES, Choice
from zconsole.system.mounts import View

LOOK = FilesInUse(0.0, View(Path("/nowhere"), {}), (), Holders(), {}, {}, (), 0)


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A /proc with all processes, and one more."""
    stat = Path.stat
    (tmp_path / "1/ns").mkdir(parents=True)
    (tmp_path / "1/ns/pid").touch()
    (tmp_path / "7").mkdir()
    (tmp_path / "1/comm").write_text("systemd\n")
    (tmp_path / "7/comm").write_text("sh\n")

    def all_of_them(self: Path, **_: Any) -> Any:
        return SimpleNamespace(st_ino=INITIAL) if self.name == "pid" else stat(self)

    monkeypatch.setattr(Path, "stat", all_of_them)
    return tmp_path


def told(
    proc: Path, look: FilesInUse = LOOK, engine: str = "copy", shared: bool = False
) -> list[str]:
    plan: Any = SimpleNamespace(choice=Choice(engine, ""), shared=shared)
    return list(notes(look, [plan], proc))


def test_a_copy_says_whom_it_touches_and_a_rewrite_touches_nobody(proc: Path) -> None:
    assert told(proc) == [COPIES]
    hidden = replace(LOOK, holders=Holders(hidden=["7"]), unseen=2)
    assert told(proc, hidden, engine="rewrite", shared=True) == []


@pytest.mark.parametrize(
    ("hidden", "whose"), [(["1"], "systemd (pid 1)"), (["1", "7"], "2 processes")]
)
def test_what_may_not_be_seen_is_said_and_whose_it_is(
    proc: Path, hidden: list[str], whose: str
) -> None:
    (line,) = told(proc, replace(LOOK, holders=Holders(hidden=hidden)))[1:]
    assert line == f"no permission to see the open files of {whose}: such files are moved"


def test_processes_that_are_not_even_listed_are_not_seen_either(
    proc: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (proc / "self").symlink_to("1")
    monkeypatch.setattr(Path, "exists", lambda self: False)
    (line,) = told(proc)[1:]
    assert line == "no permission to see the open files of other users: such files are moved"


def test_a_container_is_told_of(proc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    (line,) = told(proc)[1:]
    assert line.startswith("in a container")


def test_namespaces_without_a_process_are_counted(proc: Path) -> None:
    (line,) = told(proc, replace(LOOK, unseen=2))[1:]
    assert line.startswith("2 mount namespaces")


def test_overlays_that_nobody_knows_the_directories_of_are_counted(proc: Path) -> None:
    (line,) = told(proc, replace(LOOK, lost=2))[1:]
    assert line.startswith("2 overlays")


def test_other_hosts_are_told_of(proc: Path) -> None:
    (line,) = told(proc, shared=True)[1:]
    assert line.startswith("exported over NFS or SMB")


@pytest.mark.parametrize(
    ("name", "words", "shared"),
    [
        ("virtiofsd", b"", True),
        ("virtfs-proxy-he", b"", True),
        ("qemu-system-x86", b"qemu\0-virtfs\0local,path=/x\0", True),
        ("kvm", b"kvm\0-fsdev\0local,path=/x\0", True),
        ("qemu-system-x86", b"qemu\0-m\x001G\0", False),
        ("sh", b"sh\0-virtfs\0", False),
    ],
)
def test_virtual_machines_are_told_of(proc: Path, name: str, words: bytes, shared: bool) -> None:
    (proc / "7/comm").write_text(f"{name}\n")
    (proc / "7/cmdline").write_bytes(words)
    assert any("virtual machine" in line for line in told(proc)) is shared


def test_a_process_whose_command_line_gives_no_answer_is_not_waited_for(
    proc: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its arguments may be in a file of a filesystem that a user answers for (FUSE)."""
    answers = threading.Event()
    (proc / "7/comm").write_text("qemu-system-x86\n")
    monkeypatch.setattr(Path, "read_bytes", lambda self: answers.wait(30) and b"")
    try:
        assert any("virtual machine" in line for line in told(proc))
    finally:
        answers.set()
