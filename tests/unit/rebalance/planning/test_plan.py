"""Plans of directories on any filesystem promise only what a run can do."""

from __future__ import annotations

import errno
import json
import os
import re
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.table import rows
from zconsole.errors import UsageError
from zconsole.pool.allocator import Space
from zconsole.pool.model import Volumes
from zconsole.pool.volumes import volume_limit
from zconsole.rebalance.engine.file_locks import Users
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.planning import plan
from zconsole.rebalance.planning.engine_choice import Choice
from zconsole.rebalance.planning.facts import (
    Dataset,
    Extent,
    FactsReader,
    JobDirectory,
    PoolFacts,
    Snapshot,
)
from zconsole.rebalance.planning.forecast import DirectoryPlan, RebalancePlan, growth_of
from zconsole.rebalance.planning.plan_document import PlanDocument
from zconsole.rebalance.planning.settings import Limits, Settings
from zconsole.rebalance.planning.survey import Ages, Survey
from zconsole.system.process import Completed
from zconsole.units import size

LARGE, SMALL = 3 << 20, 1 << 20
TOO_LARGE = "too large for the free space"


def made(
    root: Path, monkeypatch: pytest.MonkeyPatch, room: int, limits: Limits | None = None
) -> RebalancePlan:
    monkeypatch.setattr(plan.forecast, "room_in", lambda *_: (room, (0, 0.0)))
    found = plan.locate([str(root)], FactsReader())
    settings = Settings((), "copy", allow_non_zfs=True, limits=limits or Limits())
    return plan.make(FactsReader(), found, settings)


def tree(root: Path, *names: str) -> Path:
    root.mkdir()
    for name in names:
        (root / name).write_bytes(os.urandom(LARGE if name.startswith("l") else SMALL))
    return root


def test_what_there_is_no_room_for_is_not_among_what_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tree(tmp_path / "tree", "large", "small", "linked")
    (root / "again").hardlink_to(root / "linked")
    found = made(root, monkeypatch, 2 << 20)
    (directory,) = found.directories
    assert directory.found.skipped == {TOO_LARGE: 3}
    assert (directory.files, directory.bytes) == (1, SMALL)
    assert SMALL <= directory.document(SMALL).space_needed_bytes < LARGE
    assert found.document.refused is None


@rows(
    ("limits", "words", "told"),
    [
        (Limits(max_bytes=2 << 20), "1 of 2 files looked at exceed", True),
        (Limits(max_bytes=SMALL // 2), "2 of 2 files looked at exceed", True),
        (Limits(max_bytes=LARGE), "looked at exceed", False),
        (Limits(until_spread=0.1), "no pool: no spread to stop at", True),
        (Limits(), "spread", False),
        (Limits(), "not root: other users' files fail, and trusted attributes get lost", True),
    ],
)
def test_what_a_limit_and_a_user_leave_where_it_is_is_said(
    tmp_path: Path, limits: Limits, words: str, told: bool
) -> None:
    root = tmp_path / "tree"
    if not root.exists():
        tree(root, "large", "small")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: 1000)
        notes = made(root, patch, 1 << 30, limits).document.notes
    assert any(words in note for note in notes) == told


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "dataset", "refused"),
    [
        ((2, 4, 1), Dataset("tank", {}), r"OpenZFS 2\.4\.1: .* \(fixed in 2\.4\.2\): .*"),
        ((2, 4, 2), Dataset("tank", {}), ""),
        ((2, 4, 1), None, ""),
    ],
)
def test_a_copy_without_leases_is_refused_and_says_which_release_grants_them(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    version: tuple[int, ...],
    dataset: Dataset | None,
    refused: str,
) -> None:
    def lease(*_: object) -> None:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr(FactsReader, "version", lambda _: version)
    (place,) = plan.locate([str(tree(tmp_path / "tree", "small"))], FactsReader())
    if dataset:
        monkeypatch.setattr(FactsReader, "pool", lambda *_: PoolFacts("tank", {}, (), version))
        place = replace(place, dataset=dataset)
    for granted in (True, False):
        if not granted:
            monkeypatch.setattr(Sys, "lease", lease)
        for accepted in (False, True):
            settings = Settings((), "copy", allow_non_zfs=True, accept_races=accepted)
            (found,) = plan.make(FactsReader(), [place], settings).directories
            assert (found.choice.engine is not None) == (granted or accepted)
            if found.choice.engine is None:
                why = rf"no leases on this filesystem(; {refused})? \(--accept-races\)"
                assert re.fullmatch(why, found.choice.why)
                assert ("OpenZFS" in found.choice.why) == bool(refused)


def test_a_plan_has_what_is_known_of_quotas_shared_blocks_and_exports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tree(tmp_path / "tree", "small")
    monkeypatch.setattr(plan.plan_notes, "of_quotas", lambda run, plans: ["near a quota"])
    monkeypatch.setattr(plan.plan_notes, "of_shared_blocks", lambda pool, plans: ["shared"])
    assert {"near a quota", "shared"} <= set(made(root, monkeypatch, LARGE).document.notes)
    monkeypatch.setattr(plan.exports, "why_exported", lambda *_: "exported over NFS or SMB")
    assert "exported over NFS or SMB" in (made(root, monkeypatch, LARGE).document.refused or "")


class Noted(sqlite3.Connection):
    """A connection that is in ``open`` until it is closed."""

    open: ClassVar[list[sqlite3.Connection]] = []

    def __init__(self, *words: Any, **more: Any) -> None:
        super().__init__(*words, **more)
        self.open.append(self)

    def close(self) -> None:
        self.open.remove(self)
        super().close()


def test_a_plan_leaves_no_database_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    used = []

    def connect(*words: Any, **more: Any) -> sqlite3.Connection:
        used.append(Noted(*words, **more))
        return used[-1]

    monkeypatch.setattr(sqlite3, "connect", connect)
    made(tree(tmp_path / "tree", "small"), monkeypatch, 2 << 20)
    assert used
    assert Noted.open == []


def test_a_directory_named_twice_is_said_to_be_inside_itself_and_no_other(tmp_path: Path) -> None:
    other, twice = tree(tmp_path / "other", "a"), tree(tmp_path / "twice", "b")
    with pytest.raises(UsageError, match=f"^{twice} is inside {twice}$"):
        plan.locate([str(other), str(twice), str(twice)], FactsReader())


@pytest.mark.parametrize("aim", ["spread", "width", "recordsize"])
def test_what_is_refused_stays_so_whatever_there_is_to_gain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, aim: str
) -> None:
    pool = PoolFacts("tank", {}, (Space("raidz1-0", 100, 50, disks=5),), (2, 4, 2))
    monkeypatch.setattr(FactsReader, "version", lambda _: (2, 4, 2))
    monkeypatch.setattr(FactsReader, "pool", lambda *_: pool)
    monkeypatch.setattr(plan.forecast, "room_in", lambda *_: (2 << 20, (0, 0.0)))
    (place,) = plan.locate([str(tree(tmp_path / "tree", "large"))], FactsReader())
    place = replace(place, dataset=Dataset("tank", {}))
    found = plan.make(FactsReader(), [place], Settings((), "copy", aim=aim))
    assert (
        found.document.refused
        == "every file is too large for the 2M usable beyond what is kept free"
    )


TIB = 1 << 40


def directory(
    dataset: Dataset | None = None, engine: str = "rewrite", **figures: Any
) -> DirectoryPlan:
    """Return the plan of a directory on tank with these figures."""
    found = Survey(b"/tank", Ages(), **{"room": TIB, "files": 9, "bytes": 10, **figures})
    place = JobDirectory(b"/tank", "zfs", "tank", dataset or Dataset("tank", {}))
    return DirectoryPlan(place, found, Choice(engine, ""), found.files, found.bytes)


def judged(
    limits: Limits,
    room: int,
    length: int = 10 * TIB,
    dataset: Dataset | None = None,
    extents: Sequence[Extent] = (),
    **pinned: int,
) -> PlanDocument:
    """Return the plan for files of ``length`` bytes, of which a compressed pool stores 10T."""
    spaces = (Space("mirror-0", 20 * TIB, 15 * TIB), Space("mirror-1", 20 * TIB, 0))
    pool = PoolFacts("tank", {}, spaces, (2, 3, 9), used=15 * TIB)
    each = directory(dataset, room=room, bytes=length, allocated=10 * TIB)
    each.pinned, each.listed = dict(pinned), {1: extents}
    return plan.judged([each], pool, Settings(("/tank",), limits=limits)).document


@rows(
    ("limits", "length", "pinned", "refused"),
    [
        (Limits(), 10, 10, True),
        (Limits(max_bytes=TIB), 10, 10, False),
        (Limits(max_bytes=4 * TIB), 10, 10, True),
        (Limits(max_bytes=4 * TIB), 10, 2, False),
        (Limits(max_bytes=4 * TIB), 40, 10, True),  # those stored whole may be among the first
        (Limits(max_bytes=2 * TIB), 5, 10, True),  # copies=2
        (Limits(until_spread=0.7), 10, 10, False),
        (Limits(until_spread=0.3), 10, 10, True),
    ],
)
def test_only_old_blocks_of_what_a_limit_lets_move_need_room(
    limits: Limits, length: int, pinned: int, refused: bool
) -> None:
    made = judged(limits, 3 * TIB, length * TIB, snapshots=pinned * TIB)
    assert ("beyond what is kept free" in (made.refused or "")) == refused, made.refused
    (directory,) = made.directories
    fits = directory.space_needed_bytes <= made.available_bytes
    assert fits != refused
    assert directory.pinned_bytes["snapshots"] == directory.space_needed_bytes


@rows(
    ("quotas", "above", "growth", "refused"),
    [
        ({}, None, 0, "8.00T, with only 10G"),
        ({"refquota": 20}, None, 0, None),
        ({"refquota": 20, "quota": 21}, None, 0, "8.00T, with only 6T"),
        ({"refquota": 20, "quota": 24}, None, 0, None),
        ({"refquota": 20}, 3, 0, "8.00T, with only 3T"),
        ({"refquota": 20}, 9, 0, None),
        # What files take once they are written again has only the room inside it.
        ({"refquota": 20}, 30, 9, None),
        ({"refquota": 20}, 30, 50, "50.2G, with only 10G"),
    ],
)
def test_old_blocks_that_stay_count_in_no_refquota(
    quotas: dict[str, int], above: int | None, growth: int, refused: str | None
) -> None:
    """10G were left for files, and 8T held by snapshots were expected to fit in them."""
    sizes = {name: str(number * TIB) for name, number in quotas.items()}
    known = {"used": 15 * TIB, "referenced": 8 * TIB, "written": 0}
    properties = {**{name: str(number) for name, number in known.items()}, **sizes}
    dataset = Dataset("tank/a", properties, (Snapshot(20, 0, False),))
    spaces = (Space("mirror-0", 20 * TIB, 15 * TIB), Space("mirror-1", 20 * TIB, 0))
    room = {"size": str(40 * TIB), "free": str(25 * TIB)}
    pool = PoolFacts("tank", room, spaces, (2, 3, 9), used=15 * TIB)
    found = Survey(b"/tank/a", Ages(21), 10 << 30, files=9, bytes=8 * TIB, allocated=8 * TIB)
    found.snapshot_allocated = 8 * TIB

    def run(argv: Sequence[str], _deadline: float) -> Completed:
        told = "-" if above is None else str(above * TIB)
        assert argv[-2:] == ("available", "tank")
        return Completed(tuple(argv), 0, f"{told}\n", "")

    place, settings = JobDirectory(b"/tank/a", "zfs", "tank/a", dataset), Settings(("/tank/a",))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FactsReader, "version", lambda _: (2, 3, 9))
        patch.setattr(plan.DirectoryPlan, "growth", lambda *_: growth << 30)
        reader, look = FactsReader(run), Users().look()
        each = plan._directory_plan(reader, place, pool, settings, found, look, [])
        made = plan.judged([each], pool, settings).document
    wanted = refused and f"needs {refused} usable beyond what is kept free"
    assert made.refused == wanted
    needs = sum(part.space_needed_bytes for part in made.directories)
    assert growth or (needs > made.available_bytes) == bool(refused)


@rows(
    ("figures", "properties", "least", "most"),
    [
        # chown has changed every inode of 8T, or it is a VM image in use.
        ({}, {"referenced": 9 * TIB, "written": TIB}, 0, 8 * TIB),
        ({}, {"referenced": 20 * TIB, "written": TIB}, 0, 10 * TIB),
        ({}, {}, 0, 10 * TIB),
        ({"snapshot_allocated": 10 * TIB}, {"referenced": 10 * TIB, "written": 0}, 10, 10 * TIB),
        # Rewritten since the snapshot, which does not change ctime.
        ({"snapshot_allocated": 10 * TIB}, {"referenced": 10 * TIB, "written": 10 * TIB}, 0, 0),
        ({"clone_allocated": 10 * TIB}, {"referenced": 10 * TIB, "written": 8 * TIB}, 2, 2 * TIB),
        ({"snapshot_allocated": 2 * TIB}, {"referenced": TIB, "written": 4 * TIB}, 0, 0),
    ],
)
def test_what_snapshots_hold_is_between_whole_files_and_all_that_is_not_new(
    figures: dict[str, int], properties: dict[str, int], least: int, most: int
) -> None:
    dataset = Dataset("tank", {k: str(v) for k, v in properties.items()}, (Snapshot(1, 0, False),))
    each = directory(allocated=10 * TIB, **figures)
    pool = PoolFacts("tank", {}, (), (2, 3, 9))
    each.pinned, each.held_most = plan._pinned(dataset, pool, each.found)
    assert (each.pinned_least, each.pinned_most) == (least * TIB, most)
    told = list(plan.plan_notes.of_pins(1 << 60, "", [each]))
    assert bool(told) == (least * TIB < most), told


@rows(
    ("held", "goal", "refused"),
    [
        (9 * TIB, 0.05, "volumes keep it at 15.0 % or more. Choose a larger spread"),
        (9 * TIB, 0.8, None),
        (2 * TIB, 0.05, "Choose more directories or a larger spread"),
    ],
)
def test_volumes_stay_where_they_are(held: int, goal: float, refused: str | None) -> None:
    spaces = (Space("mirror-0", 20 * TIB, 15 * TIB), Space("mirror-1", 20 * TIB, 0))
    pool = PoolFacts("tank", {}, spaces, (2, 3, 9), used=15 * TIB, volumes=Volumes(3, held))
    each = directory(room=20 * TIB, bytes=6 * TIB, allocated=6 * TIB)
    settings = Settings(("/tank",), limits=Limits(until_spread=goal))
    made = plan.judged([each], pool, settings).document
    assert made.volumes == volume_limit(pool.volumes, spaces)
    assert (refused is None) == (made.refused is None)
    assert refused is None or (made.refused or "").endswith(refused)
    said = [note for note in made.notes if "volume" in note]
    assert f"3 volumes hold {size(held)}, which no rebalance moves" in said
    assert len(said) == (3 if held == 9 * TIB else 1)
    assert PlanDocument.from_json(json.loads(json.dumps(made.as_json()))) == made


def test_no_spread_is_predicted_that_only_files_could_reach() -> None:
    """The directory seems to hold more than the pool has beside its volumes: shared blocks."""
    spaces = (Space("mirror-0", 20 * TIB, 15 * TIB), Space("mirror-1", 20 * TIB, 0))
    known = PoolFacts("tank", {}, spaces, (2, 3, 9), used=15 * TIB, volumes=Volumes(3, 14 * TIB))
    spreads = []
    for pool in (known, replace(known, volumes=None)):
        each = directory(room=20 * TIB, bytes=15 * TIB, allocated=15 * TIB)
        spreads.append(plan.judged([each], pool, Settings(("/tank",))).document.spread_after or 0)
    assert spreads[0] > 0.65 > spreads[1]


def test_an_even_pool_says_nothing_of_its_volumes() -> None:
    spaces = (Space("mirror-0", 20 * TIB, 10 * TIB), Space("mirror-1", 20 * TIB, 10 * TIB))
    pool = PoolFacts("tank", {}, spaces, (2, 3, 9), used=20 * TIB, volumes=Volumes(3, TIB))
    each = directory(room=9 * TIB, bytes=TIB, allocated=TIB)
    made = plan.judged([each], pool, Settings(("/tank",))).document
    assert not any("volume" in note for note in made.notes)


def test_a_spread_is_out_of_reach_where_a_vdev_takes_no_writes() -> None:
    spaces = [Space(f"mirror-{n}", 10 * TIB, n * TIB, float(n != 1)) for n in (9, 1, 2)]
    pool = PoolFacts("tank", {}, tuple(spaces), (2, 4, 0), used=12 * TIB)
    each = directory(room=9 * TIB, bytes=12 * TIB, allocated=12 * TIB)
    settings = Settings(("/tank",), limits=Limits(until_spread=0.05))
    made = plan.judged([each], pool, settings).document
    assert "out of reach" in (made.refused or "")
    assert any("no new writes go to mirror-1" in note for note in made.notes)


@rows(
    ("pinned", "held", "least", "most"),
    [
        ({"snapshots": 2, "block_clones": 2}, 0, 2, 4),
        ({"snapshots": 2, "clones": 2, "block_clones": 2}, 3, 2, 5),  # a clone's are a snapshot's
        ({"snapshots": 2, "dedup": 10}, 2, 10, 10),
        ({"checkpoint": 10, "block_clones": None}, 0, 10, 10),
        ({"snapshots": None}, 0, 0, 0),
    ],
)
def test_what_holds_old_blocks_may_overlap_or_not(
    pinned: dict[str, int | None], held: int, least: int, most: int
) -> None:
    each = directory(allocated=10)
    each.pinned, each.held_most = pinned, held
    assert (each.pinned_least, each.pinned_most) == (least, most)


def extent(length: int, stored: int, copies: int = 1) -> Extent:
    """Return a block on a mirror, sizes in sectors."""
    length, stored = length * 4096, stored * 4096
    return Extent(0, "0", stored, length, stored, copies, stored * copies)


@rows(
    ("compression", "copies", "extents", "grown"),
    [
        ("lz4", 1, [extent(300, 100)], 0),
        ("off", 1, [extent(300, 100), extent(100, 100)], 10),
        ("zstd", 2, [extent(300, 100)], 10),
        ("zstd", 1, [extent(300, 100, 2)], 0),
        ("off", 2, [extent(300, 100, 2)], 20),
        ("off", 1, [], 0),
    ],
)
def test_what_is_written_larger_than_it_was_needs_room(
    compression: str, copies: int, extents: list[Extent], grown: int
) -> None:
    dataset = Dataset("tank", {"compression": compression, "copies": str(copies)})
    for room, limits, needed in (
        (30 * TIB, Limits(), grown),
        (2 * TIB, Limits(), grown),
        (2 * TIB, Limits(max_bytes=TIB), grown / 10),
    ):
        made = judged(limits, room, dataset=dataset, extents=extents)
        assert made.directories[0].space_needed_bytes == needed * TIB
        assert ("beyond what is kept free" in (made.refused or "")) == (needed * TIB > room)


@rows(
    ("engine", "name", "record", "grown"),
    [
        ("copy", "raidz2-0", 128, 1.0),
        ("copy", "raidz2-0", 4, 2.0),  # each sector of its own has two of parity
        ("rewrite", "raidz2-0", 4, 1.0),  # keeps the recordsize
        ("copy", "raidz2-0", 1024, 1.0),
        ("copy", "mirror-0", 4, 1.0),
    ],
)
def test_what_takes_more_parity_and_padding_needs_room(
    engine: str, name: str, record: int, grown: float
) -> None:
    # The mirror is full: it takes no writes.
    spaces = Space(name, 40 * TIB, 10 * TIB, disks=6), Space("mirror-1", TIB, TIB, disks=2)
    pool = PoolFacts("tank", {}, spaces, (2, 3, 9))
    dataset = Dataset("tank", {"recordsize": f"{record << 10}"})
    each = directory(dataset, engine, bytes=TIB, allocated=TIB)
    each.listed = {1: [Extent(0, "0", 192 << 10, 128 << 10, 128 << 10, 1, 192 << 10)]}
    assert growth_of(each, pool) == pytest.approx(grown)
    each.grown = grown
    assert each.growth(TIB // 2) == round(TIB * (grown - 1) / 2)


def walked(place: JobDirectory, files: Sequence[tuple[int, int, int]]) -> DirectoryPlan:
    """Return a counted directory of files: time of change, length and bytes of blocks."""
    found = Survey(b"/tank", plan._ages(place.dataset, None), TIB)
    named = [{"st_blocks": stored // 512, "st_blksize": 4096} for _, _, stored in files]
    statuses = [
        os.stat_result((0o100644, 7, 1, 1, 0, 0, size, when, when, when), more)
        for (when, size, _), more in zip(files, named, strict=True)
    ]
    found._count(statuses)
    found.bytes = sum(size for _, size, _ in files)
    return DirectoryPlan(place, found, Choice("rewrite", ""), len(files), found.bytes)


WHOLE = [(10, 5120, 5120), (30, 1024, 1024), (50, 512, 512)]
"""Files changed at 10, 30 and 50 seconds."""


@rows(
    ("snapshots", "bookmarks", "files", "sent"),
    [
        ("", "", WHOLE, 0),
        ("20\t0\t-", "", WHOLE, 5120),
        ("", "20\n", WHOLE, 5120),
        ("", "20\n40\n", WHOLE, 6144),
        ("20\t0\t-", "40\n", WHOLE, 6144),
        ("40\t0\t-", "20\n", WHOLE, 6144),
        ("40\t0\t-", None, WHOLE, 6144),
        ("20\t0\t-", "", [(10, 1 << 30, 5120)], 5120 * 2),  # mostly holes; the rest compressed 2x
    ],
)
def test_the_next_send_grows_by_what_a_snapshot_or_bookmark_is_newer_than(
    snapshots: str, bookmarks: str | None, files: list[tuple[int, int, int]], sent: int
) -> None:
    def run(argv: Sequence[str], _deadline: float) -> Completed:
        answers = {"get": "compressratio\t2.00\n", "snapshot": snapshots, "bookmark": bookmarks}
        text = answers["get" if argv[1] == "get" else argv[4]]
        return Completed(tuple(argv), int(text is None), text or "", "")

    dataset = FactsReader(run).dataset("tank/a")
    each = walked(JobDirectory(b"/tank", "zfs", "tank/a", dataset), files)
    assert each.document(1 << 40).next_incremental_bytes == sent
    each.spare_blocks("P")
    assert each.document(1).next_incremental_bytes == 0
