"""Notes of a plan: quotas, shared blocks, and nothing to gain."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.table import rows
from tests.unit.rebalance.planning.listing import listed, status_of
from zconsole.pool.allocator import Space
from zconsole.rebalance.engine.file_locks import FilesInUse
from zconsole.rebalance.engine.holders import Holders
from zconsole.rebalance.planning import plan_notes
from zconsole.rebalance.planning.engine_choice import COPIES, Choice, flags_of
from zconsole.rebalance.planning.facts import (
    Dataset,
    FactsReader,
    JobDirectory,
    PoolFacts,
    Quota,
    Snapshot,
)
from zconsole.rebalance.planning.forecast import DirectoryPlan
from zconsole.rebalance.planning.plan import judged
from zconsole.rebalance.planning.plan_document import PlanDocument, PredictedFill
from zconsole.rebalance.planning.plan_notes import (
    INITIAL,
    of_options,
    of_other_users,
    of_plan,
    of_quotas,
)
from zconsole.rebalance.planning.settings import Settings
from zconsole.rebalance.planning.survey import Ages, Survey
from zconsole.system.mounts import MountPoint, View
from zconsole.system.patient import Patient
from zconsole.system.process import Completed

MIB = 1 << 20
USERS = (
    "POSIX User\troot\t1024\t0\n"
    f"POSIX User\tbob\t{95 * MIB}\t{100 * MIB}\n"
    f"POSIX User\tann\t{2 * MIB}\t{900 * MIB}\n"
    f"SMB User\tc\x1bd@dom\t{100 * MIB}\t{90 * MIB}\n"
)
GROUPS = "POSIX Group\tstaff\t7\tnone\n"
PROJECTS = f"Project\t7\t{MIB}\t{2 * MIB}\n"
KIB = 1 << 10
MIRROR = PoolFacts("tank", {}, (Space("mirror-0", 100, 50, disks=2),), (2, 3, 9))
RAIDZ = PoolFacts("tank", {}, (Space("raidz1-0", 100, 50, disks=5),), (2, 3, 9))
WIDE = "  0  L0 0:1000:28000 20000L/20000P F=1 B=9/9 cksum=1\n"
SQUEEZED = WIDE.replace("/20000P", "/8000P")
NARROW = "  0  L0 0:1000:2c000 20000L/20000P F=1 B=9/9 cksum=1\n"


def zfs(argv: Sequence[str], _deadline: float) -> Completed:
    """Fake an OpenZFS on which tank/old has no project quotas."""
    if argv[-1] == "tank/old" and argv[1] == "projectspace":
        return Completed(tuple(argv), 1, "", "cannot get used/quota: feature not enabled")
    said = {"userspace": USERS, "groupspace": GROUPS, "projectspace": PROJECTS}
    return Completed(tuple(argv), 0, said[argv[1]], "")


def planned(name: str = "tank/a", engine: str = "copy", **properties: str) -> DirectoryPlan:
    place = JobDirectory(b"/" + name.encode(), "zfs", name, Dataset(name, properties))
    found = DirectoryPlan(place, Survey(b"/", Ages(), 1 << 40), Choice(engine, ""), 1, 1)
    found.pinned, found.in_flight = {"snapshots": 5000 * MIB}, 64 * MIB
    return found


def test_the_quotas_of_everybody_are_read_and_matter_to_copies() -> None:
    assert FactsReader(zfs).quotas("tank/a") == [
        Quota("user bob", 95 * MIB, 100 * MIB),
        Quota("user ann", 2 * MIB, 900 * MIB),
        Quota(r"user c\x1bd@dom", 100 * MIB, 90 * MIB),
        Quota("project 7", MIB, 2 * MIB),
    ]
    assert len(FactsReader(zfs).quotas("tank/old")) == 3
    assert len(list(of_quotas(FactsReader(zfs), [planned(), planned()]))) == 1
    assert list(of_quotas(FactsReader(zfs), [planned(engine="rewrite")])) == []


@rows(
    ("kind", "source", "engine", "sync", "told"),
    [
        (b"zfs", b"rpool/var", "copy", "disabled", True),
        (b"zfs", b"rpool/var", "copy", "standard", False),
        (b"zfs", b"tank/var", "copy", "disabled", False),  # in one pool the order is kept
        (b"zfs", b"rpool/var", "rewrite", "disabled", False),
        (b"ext4", b"/dev/sda1", "copy", "disabled", False),
    ],
)
def test_a_journal_that_a_power_cut_takes_back_is_told(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: bytes,
    source: bytes,
    engine: str,
    sync: str,
    told: bool,
) -> None:
    mount = MountPoint(1, 0, b"", b"/", b"/", kind, b"", source)
    monkeypatch.setattr(plan_notes, "mount_of", lambda _number: mount)

    def run(argv: Sequence[str], _deadline: float) -> Completed:
        assert list(argv[-2:]) == ["sync", source.decode()]
        return Completed(tuple(argv), 0, f"{sync}\n", "")

    reader, plans = FactsReader(run), [planned(engine=engine)]
    found = list(plan_notes.of_journal(reader, tmp_path / "job.db", plans))
    assert [note.partition(":")[0] for note in found] == ["sync=disabled on rpool/var"] * told
    assert list(plan_notes.of_journal(reader, None, plans)) == []


def plan(*files: tuple[int, int], known: int | None = None) -> DirectoryPlan:
    """Return a directory of files by size and block; ``known`` is its number of files."""
    found = Survey(b"/tank", Ages(), 1 << 40, files=len(files) if known is None else known)
    found.sample.files = [
        status_of(inode, size, block) for inode, (size, block) in enumerate(files)
    ]
    place = JobDirectory(b"/tank", "zfs", "tank", Dataset("tank", {"recordsize": "65536"}))
    return DirectoryPlan(place, found, Choice("copy", ""), len(files), 0)


@rows(
    ("text", "known", "said"),
    [
        (NARROW, 1, (None, [])),
        (WIDE, 1, ("every file is as wide as it would be written now", [])),
        (WIDE, 9, (None, ["each of 1 files looked at is as wide as it would be written now"])),
    ],
)
def test_width_is_told_by_the_blocks(
    text: str, known: int, said: tuple[str | None, list[str]]
) -> None:
    looked = plan((1, 1), known=known)
    looked.listed = listed({0: text})
    assert plan_notes.nothing_to_gain("width", [looked], RAIDZ) == said


def test_without_zdb_nobody_knows_the_width() -> None:
    assert plan_notes.nothing_to_gain("width", [plan((1, 1))], RAIDZ) == (None, [])


@rows(
    ("files", "vain"),
    [
        ([(200 * KIB, 64 * KIB), (3 * KIB, 3 * KIB), (0, 512)], True),
        ([(200 * KIB, 128 * KIB)], False),
        ([(60 * KIB, 16 * KIB)], False),
        ([(0, 512)], False),
    ],
)
def test_recordsize_is_told_by_the_files(files: list[tuple[int, int]], vain: bool) -> None:
    found = plan_notes.nothing_to_gain("recordsize", [plan(*files)], MIRROR)
    assert (found != (None, [])) == vain


@rows(
    ("text", "engine", "properties", "said"),
    [
        (WIDE, "rewrite", {}, []),
        (NARROW, "rewrite", {}, ["parity takes less of what is written now"]),
        (
            WIDE,
            "rewrite",
            {"compression": "lz4"},
            ["compression=lz4: what is there is not compressed"],
        ),
        (
            WIDE.replace("/20000P", "/8000P"),
            "rewrite",
            {},
            ["compression=off: what is there is compressed"],
        ),
        (WIDE, "rewrite", {"copies": "2"}, ["copies=2: what is there has another number"]),
        (WIDE, "copy", {"recordsize": "4096"}, ["recordsize: 1 of 1 files looked at have another"]),
    ],
)
def test_settings_that_files_were_not_written_with_are_named(
    text: str, engine: str, properties: dict[str, str], said: list[str]
) -> None:
    made = planned(engine=engine, **{"recordsize": "65536", **properties})
    made.found.sample.files = [status_of(0, 200 * KIB, 64 * KIB)]
    made.listed = listed({0: text})
    found = tuple(plan_notes.differing("balance", made, RAIDZ))
    assert [each for each in found if "parity" not in each or text == NARROW] == said


def test_without_zdb_a_plan_says_that_sizes_may_change() -> None:
    made = planned(engine="rewrite", compression="zstd")
    assert not [*plan_notes.differing("balance", made, RAIDZ)]
    (said,) = plan_notes.differing("properties", made, RAIDZ)
    assert said == "compression=zstd, copies=1: only zdb tells what is there (root)"


@rows(("grown", "engine", "said"), [(4, "copy", True), (2, "copy", False), (4, "rewrite", False)])
def test_files_whose_copies_do_not_fit_are_said_to_stay(
    grown: float, engine: str, said: bool
) -> None:
    made = planned(engine=engine)
    made.found.room, made.found.largest, made.grown = 90 * MIB, 40 * MIB, grown
    notes = of_plan(PlanDocument(()), [made], MIRROR, Settings(()))
    assert any("those above 22.5M are left" in note for note in notes) == said


@rows(
    ("fills", "pinned", "said"),
    [
        ((0.75, 0.54), 0, "100M"),
        ((0.75, 0.44), 0, ""),
        ((0.75, 0.34), 0, ""),
        ((0.75, 0.54), 100 * MIB, ""),
    ],
)
def test_raw_space_that_the_move_takes_for_parity_is_said(
    fills: tuple[float, float], pinned: int, said: str
) -> None:
    """Free space fell by 1.6T beside "the move needs no extra space"."""
    spaces = (Space("raidz1-0", 1000 * MIB, 0), Space("raidz1-1", 1000 * MIB, 0))
    pool = PoolFacts("tank", {}, spaces, (2, 3, 9))
    made = planned(engine="rewrite")
    made.bytes = made.found.bytes = made.found.allocated = 1000 * MIB
    made.pinned = {"snapshots": pinned}
    vdevs = tuple(
        PredictedFill(space.name, before, after)
        for space, before, after in zip(spaces, (0.93, 0.26), fills, strict=True)
    )
    document = PlanDocument((made.document(made.bytes),), raw_factor=1.0, vdevs=vdevs)
    notes = of_plan(document, [made], pool, Settings(()))
    (told,) = [note for note in notes if "raw free space" in note] or [""]
    assert (f"falls by about {said}: " in told) if said else not told


@rows("aim", ["balance", "properties"])
def test_other_aims_are_not_judged_by_it(aim: str) -> None:
    assert plan_notes.nothing_to_gain(aim, [plan((1, 1))], MIRROR) == (None, [])


LOOK = FilesInUse(0.0, View(Path("/nowhere"), {}), (), Holders(), {}, {}, (), 0)


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A /proc with all processes, and one more."""
    stat = Path.stat
    (tmp_path / "1/ns").mkdir(parents=True)
    (tmp_path / "1/ns/pid").touch()
    (tmp_path / "7/ns").mkdir(parents=True)
    for process in ("1", "7"):
        (tmp_path / process / "ns/mnt").symlink_to("mnt:[1]")
    (tmp_path / "1/comm").write_text("systemd\n")
    (tmp_path / "7/comm").write_text("sh\n")

    def all_of_them(self: Path, **_: Any) -> Any:
        return SimpleNamespace(st_ino=INITIAL) if self.name == "pid" else stat(self)

    monkeypatch.setattr(Path, "stat", all_of_them)
    return tmp_path


def told(
    proc: Path,
    look: FilesInUse = LOOK,
    engine: str = "copy",
    shared: bool = False,
    kind: str = "ext4",
) -> list[str]:
    place = SimpleNamespace(kind=kind)
    plan: Any = SimpleNamespace(choice=Choice(engine, ""), shared=shared, place=place)
    return list(of_other_users(look, [plan], proc))


def test_a_copy_says_whom_it_touches_and_a_rewrite_touches_nobody(proc: Path) -> None:
    assert told(proc) == [COPIES]
    assert "files that others change meanwhile are skipped" in COPIES
    assert told(proc, kind="tmpfs")[0].startswith("tmpfs: blocks reserved")
    hidden = replace(LOOK, holders=Holders(hidden=["7"]), unseen=2)
    assert told(proc, hidden, engine="rewrite", shared=True) == []


def test_processes_that_are_not_even_listed_are_not_seen_either(
    proc: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (proc / "self").symlink_to("1")
    monkeypatch.setattr(Path, "exists", lambda self: False)
    (line,) = told(proc)[1:]
    assert line == "cannot see which files other users have open: those files are moved too"


def test_a_container_is_told_of(proc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    (line,) = told(proc)[1:]
    assert line.startswith("in a container")


@pytest.mark.parametrize(
    ("look", "shared", "said"),
    [
        ({"unseen": 2}, False, "2 mount namespaces"),  # without a process
        ({"lost": 2}, False, "2 overlays"),  # of unknown directories
        ({}, True, "exported over NFS or SMB"),
        (
            {"holders": Holders(hidden=["1"])}, False,
            "cannot see which files systemd (pid 1) have open: those files are moved too",
        ),
        ({"holders": Holders(hidden=["1", "7"])}, False, "cannot see which files 2 processes have"),
    ],
)  # fmt: skip
def test_who_may_use_the_files_unseen_is_told(
    proc: Path, look: dict[str, Any], shared: bool, said: str
) -> None:
    (line,) = told(proc, replace(LOOK, **look), shared=shared)[1:]
    assert line.startswith(said)


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
    """Its arguments may be in a file on a user's FUSE filesystem."""
    answers = threading.Event()
    (proc / "7/comm").write_text("qemu-system-x86\n")
    monkeypatch.setattr(Path, "read_bytes", lambda self: answers.wait(30) and b"")
    monkeypatch.setattr(Patient.call, "__defaults__", (0.05, lambda _: None))
    try:
        assert any("virtual machine" in line for line in told(proc))
    finally:
        answers.set()


REWRITE = Choice("rewrite", "in place")
V24, MASTER = (2, 4, 4), (2, 4, 99)


def optional_pool(version: tuple[int, ...] = MASTER, feature: str = "enabled") -> PoolFacts:
    spaces = (Space("mirror-0", 100, 50, disks=2),)
    properties = {"feature@physical_rewrite": feature, "bclonesaved": "5"}
    return PoolFacts("tank", properties, spaces, version)


def kept(choice: Choice = REWRITE, snapshot: int = 60) -> DirectoryPlan:
    place = JobDirectory(b"/tank", "zfs", "tank", Dataset("tank", {}, (Snapshot(1, 0, False),)))
    found = Survey(
        b"/tank",
        Ages(),
        1000,
        files=3,
        bytes=100,
        allocated=100,
        old_allocated=80,
        snapshot_allocated=snapshot,
        snapshot_bytes=snapshot,
    )
    pinned = {"snapshots": snapshot, "clones": 10, "block_clones": 5, "checkpoint": 0}
    return DirectoryPlan(place, found, choice, found.files, found.bytes, pinned)


def test_p_keeps_sends_from_growing_and_snapshots_as_they_are():
    plan = kept()
    plan.spare_blocks("P")
    assert plan.document(plan.bytes).next_incremental_bytes == 0
    assert plan.document(plan.bytes).pinned_bytes["snapshots"] == 60
    assert plan.bytes == 100
    effect, active = of_options("P", [plan], optional_pool(V24))
    assert "snapshots keep the old blocks" in effect
    assert "only import the pool read-only" in active
    assert len(list(of_options("P", [plan], optional_pool(V24, "active")))) == 1


def test_s_and_c_leave_alone_what_snapshots_and_clones_hold():
    plan = kept()
    plan.spare_blocks("SC")
    assert plan.bytes == 40
    assert plan.document(plan.bytes).pinned_bytes == {
        "snapshots": 0,
        "clones": 0,
        "block_clones": 0,
        "checkpoint": 0,
    }
    assert plan.document(plan.bytes).next_incremental_bytes == 0
    assert (plan.found.allocated, plan.found.old_allocated) == (40, 20)
    assert len(list(of_options("SC", [plan], optional_pool()))) == 2


def test_where_snapshots_have_everything_nothing_is_left_to_do():
    settings = Settings((), rewrite_options="S")
    for held, refused in ((100, True), (60, False)):
        plan = kept(snapshot=held)
        plan.spare_blocks("S")
        said = judged([plan], optional_pool(), settings).document.refused or ""
        assert ("the newest snapshots have every block" in said) == refused


def test_a_copied_directory_is_planned_as_without_options():
    plan = kept(Choice("copy", ""))
    plan.spare_blocks("PSC")
    assert plan.bytes == 100
    assert list(of_options("", [plan], optional_pool())) == []


def test_without_options_the_plan_says_what_they_could_spare():
    said = list(of_options("", [kept()], optional_pool()))
    assert [note.split(" (")[0] for note in said] == [
        "--rewrite-options P",
        "--rewrite-options SC",
    ]
    assert list(of_options("", [kept()], optional_pool((2, 3, 9)))) == []


@rows(
    ("letters", "said"),
    [("P", ["makes the pool feature"]), ("S", []), ("C", []), ("", [])],
)
def test_nothing_is_said_of_snapshots_and_clones_that_are_not_there(letters, said):
    plan = kept(snapshot=0)
    plan.place = JobDirectory(b"/tank", "zfs", "tank", Dataset("tank", {}))
    plan.pinned = {"snapshots": 0, "clones": 0, "block_clones": 0, "checkpoint": 60, "dedup": 60}
    bare = replace(optional_pool(), properties={"feature@physical_rewrite": "enabled"})
    notes = list(of_options(letters, [plan], bare))
    assert len(notes) == len(said)
    assert all(words in note for words, note in zip(said, notes, strict=True))
    cloned = replace(plan.place, dataset=Dataset("tank", {"origin": "tank/b@1"}))
    plan.place = cloned
    assert bool(list(of_options("S", [plan], bare)))


def test_each_letter_has_the_kernels_flag():
    assert [flags_of(letters) for letters in ("", "P", "S", "C", "PSC")] == [0, 1, 2, 4, 7]
