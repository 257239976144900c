"""Files that are part of an overlay mount are left alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.faults.beside import MNT_DETACH, apart, beside, mount, umount
from tests.faults.harness import create, run
from tests.faults.holding import append
from zconsole.rebalance.engine.file_locks import Users
from zconsole.rebalance.planning import plan
from zconsole.rebalance.planning.facts import FactsReader
from zconsole.rebalance.planning.forecast import RebalancePlan
from zconsole.rebalance.planning.settings import Settings


def layers(root: Path) -> Path:
    """Create the directories of an overlay; returns its mount point."""
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
    """Return why a job on these directories is refused, or None."""
    return planned(*roots, **settings).document.refused


def notes_on(root: Path) -> Sequence[str]:
    """Return the notes of a copy job's plan."""
    return planned(root, engine="copy").document.notes


def planned(*roots: Path, **settings: Any) -> RebalancePlan:
    wanted = Settings(tuple(map(str, roots)), allow_non_zfs=True, **settings)
    reader = FactsReader()
    found = plan.locate(wanted.dirs, reader)
    return plan.make(reader, found, wanted)


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
    create(root, area / "job.db", others=True)
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
    """A container engine names its layers that way."""
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


def enter(place: Path, how: str) -> None:
    """Keep hold of something in a mount, and remove the mount from every table."""
    above = os.open(place.parent, os.O_PATH)
    if how == "directory":
        os.open(place, os.O_RDONLY)
    elif how == "working directory":
        os.chdir(place)
    else:
        os.chroot(place)
    os.fchdir(above) if how != "working directory" else None
    umount(f"/proc/self/fd/{above}/{place.name}" if how != "root" else place.name, MNT_DETACH)


@pytest.mark.parametrize("how", ["working directory", "directory", "root"])
def test_a_process_in_an_overlay_that_is_mounted_nowhere_is_named(area: Path, how: str) -> None:
    """It goes on writing to the upper directory, and no mount table has the overlay."""
    root = area / "tree"
    place = layers(root)

    def begin() -> None:
        mount("overlay", place, "overlay", over(f"{root}/low", root / "up", root / "work"))
        enter(place, how)

    with beside(begin, own_mounts=True) as other:
        (note,) = (each for each in notes_on(root / "up") if "overlay" in each)
    assert f"(pid {other.process}) may use an overlay that is mounted nowhere" in note
    assert not [each for each in notes_on(root / "up") if "overlay" in each]


def test_what_is_written_through_an_overlay_that_left_all_tables_is_not_lost(area: Path) -> None:
    """A table had the mount earlier in the job."""
    root = area / "tree"
    place = layers(root)
    options = over(f"{root}/low", root / "up", root / "work")
    steps = (
        lambda: mount("overlay", place, "overlay", options),
        lambda: enter(place, "working directory"),
        lambda: append(Path("held")),
    )
    create(root, area / "job.db", others=True)
    users = Users()
    with beside(*steps, own_mounts=True) as other:
        users.look()
        other.go()
        users.last = None
        shown, _ = run(area / "job.db", users=users)
        other.go()
    found = {str(Path(r["path"]).relative_to(root)): r["reason"] for r in shown}
    in_use = "in use by an overlay"
    assert found == {"up/held": in_use, "low/lower": in_use, "files/held": None}
    assert (root / "up" / "held").read_bytes() == b"before\nafter\n"
