"""Owners that a user namespace, or a mount, does not map are preserved."""

from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.faults.beside import beside
from tests.faults.harness import create
from tests.faults.holding import moved
from zconsole.rebalance.engine.namespaces import Owners
from zconsole.rebalance.job import runner
from zconsole.rebalance.planning.plan_notes import of_rights
from zconsole.system import safe_path

CLONE_NEWUSER = 0x1000_0000
FIRST, MANY = 100_000, 65_536
"""First id and number of ids of an unprivileged container on its host."""


def leave_users() -> None:
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWUSER):
        raise PermissionError(1, "user namespaces are not permitted")


def as_root_inside() -> None:
    """Become root of the namespace, which has no root directory of its own here."""
    safe_path._check_directory = lambda *_: None  # type: ignore[assignment]
    os.setgroups([])
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_container_moves_no_file_of_owners_it_does_not_map(area: Path) -> None:
    """The container, in which a job should move nothing, was not recognized as one."""
    root = area / "tree"
    root.mkdir()
    owners = {"plain": (0, 0), "group": (0, None), "owner": (None, 0)}
    for name in owners:
        (root / name).write_bytes(os.urandom(5000))
    create(root, area / "job.db", others=True, accept_races=True)
    subprocess.run(["chown", "-R", f"{FIRST}:{FIRST}", area], check=True)
    for name, (user, group) in owners.items():
        os.chown(root / name, *(1000 if each is None else FIRST for each in (user, group)))
    before = {name: (root / name).stat() for name in owners}

    def work() -> Any:
        as_root_inside()
        runner.hidden = lambda *_: ""
        return moved(area), list(of_rights())

    with beside(leave_users, work) as other:
        for kind in ("uid", "gid"):
            Path(f"/proc/{other.process}/{kind}_map").write_text(f"0 {FIRST} {MANY}\n")
        found, notes = other.go()
    assert found["plain"] == ("moved", None)
    assert found["group"] == found["owner"] == ("skipped", "owner not mapped here")
    after = {name: (root / name).stat() for name in owners}
    assert after["plain"].st_ino != before["plain"].st_ino
    for name in ("group", "owner"):
        assert after[name].st_ino == before[name].st_ino
    for name in owners:
        assert (after[name].st_uid, after[name].st_gid) == (
            before[name].st_uid,
            before[name].st_gid,
        )
    assert any("trusted attributes" in note for note in notes)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_container_is_told_to_run_the_job_on_its_host(area: Path) -> None:
    """Attributes that only the host's root sees would be lost."""
    (area / "tree").mkdir()
    subprocess.run(["chown", "-R", f"{FIRST}:{FIRST}", area], check=True)

    def plan() -> str:
        as_root_inside()
        with pytest.raises(AssertionError) as refused:
            create(area / "tree", area / "job.db", others=True, accept_races=True)
        return str(refused.value)

    with beside(leave_users, plan) as other:
        for kind in ("uid", "gid"):
            Path(f"/proc/{other.process}/{kind}_map").write_text(f"0 {FIRST} {MANY}\n")
        assert "run the job on the host" in other.go()


WHOLE, PART = "         0          0 4294967295\n", "0 100000 65536\n"


@pytest.mark.parametrize(
    ("owner", "group", "users", "groups", "options", "hidden"),
    [
        (0, 0, PART, PART, "rw", False),
        (65534, 0, WHOLE, WHOLE, "rw", False),  # a file that really belongs to nobody
        (65534, 0, PART, WHOLE, "rw", True),
        (0, 65533, WHOLE, PART, "rw", True),
        (0, 65533, PART, WHOLE, "rw", False),
        (65534, 0, WHOLE, WHOLE, "rw,idmapped", True),
        (0, 0, WHOLE, WHOLE, "rw,idmapped", False),
    ],
)
def test_overflow_ids_count_where_not_all_are_mapped(
    tmp_path: Path, owner: int, group: int, users: str, groups: str, options: str, hidden: bool
) -> None:
    for name, text in {
        "self/uid_map": users,
        "self/gid_map": groups,
        "self/mountinfo": f"36 25 8:1 / /t {options} - ext4 /dev/sda1 rw\n",
        "sys/kernel/overflowuid": "65534\n",
        "sys/kernel/overflowgid": "65533\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    status: Any = SimpleNamespace(st_uid=owner, st_gid=group)
    assert Owners(tmp_path, lambda fd: 36).hidden(-1, status) is hidden
