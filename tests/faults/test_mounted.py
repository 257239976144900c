"""Files that are mounted somewhere, or mounted on, keep everything that is written later."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.faults.beside import apart, beside, mount
from tests.faults.harness import create
from tests.faults.holding import Found, append, bound, is_left_alone, moved, tree
from zconsole.system import mounts


def test_a_bind_mounted_file_is_in_use(area: Path) -> None:
    root = tree(area)

    def scenario() -> tuple[Found, bytes]:
        place = bound(root)
        create(root, area / "job.db", others=True)
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
        create(root, area / "job.db", others=True)
        found = moved(area)
        other.go()
    is_left_alone(found, root)


def test_another_name_of_a_bind_mounted_file_is_in_use(area: Path) -> None:
    root = tree(area)
    (root / "too").hardlink_to(root / "held")
    steps = (lambda: bound(root), lambda: append(area / "mounted"))
    with beside(*steps, own_mounts=True) as other:
        create(root, area / "job.db", others=True)
        found = moved(area)
        other.go()
    assert found.pop("too") == found["held"]
    is_left_alone(found, root)


def test_no_server_on_the_way_hides_a_bind_mounted_file(
    area: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the root is on NFS, mounted files are still reached from the directories of the job."""
    root = tree(area)
    (root / "below").mkdir()
    (root / "below/too").hardlink_to(root / "held")
    monkeypatch.setattr(mounts, "LOCAL", frozenset())
    steps = (lambda: bound(root), lambda: append(area / "mounted"))
    with beside(*steps, own_mounts=True) as other:
        create(root, area / "job.db", others=True)
        found = moved(area)
        other.go()
    assert found.pop("too") == found["held"]
    is_left_alone(found, root)


def test_a_mount_point_in_another_namespace_is_in_use(area: Path) -> None:
    """Otherwise the mount would be detached, and its container would see the file below it."""
    root = tree(area)
    (area / "resolv.conf").write_bytes(b"of the host\n")
    steps = (
        lambda: mount(area / "resolv.conf", root / "held"),
        (root / "held").read_bytes,
    )
    with beside(*steps, own_mounts=True) as other:
        create(root, area / "job.db", others=True)
        found = moved(area)
        assert other.go() == b"of the host\n"
    append(root / "held")
    is_left_alone(found, root)


def test_a_mount_point_in_a_root_that_is_bound_elsewhere_is_in_use(area: Path) -> None:
    """A container sees the tree by another path, with a name that has to be escaped."""
    root, elsewhere = tree(area), area / "a container\\040"
    elsewhere.mkdir()
    (area / "hosts").write_bytes(b"of the host\n")

    def begin() -> None:
        mount(root, elsewhere)
        mount(area / "hosts", elsewhere / "held")

    with beside(begin, (elsewhere / "held").read_bytes, own_mounts=True) as other:
        create(root, area / "job.db", others=True)
        found = moved(area)
        assert other.go() == b"of the host\n"
    append(root / "held")
    is_left_alone(found, root)


def test_mounts_of_other_files_change_nothing(area: Path) -> None:
    root = tree(area, "free")
    (area / "other").touch()
    (area / "place").touch()
    with beside(lambda: mount(area / "other", area / "place"), own_mounts=True):
        create(root, area / "job.db", others=True)
        assert moved(area) == {"free": ("moved", None)}


def test_an_image_of_another_namespace_s_loop_device_is_in_use(area: Path) -> None:
    """The kernel reports the path by which it was attached, which leads nowhere here."""
    root, elsewhere = tree(area), area / "a container"
    elsewhere.mkdir()
    (root / "held").write_bytes(bytes(1 << 20))

    def begin() -> None:
        mount(root, elsewhere)
        attach = ["losetup", "--read-only", "--find", elsewhere / "held"]
        subprocess.run(attach, capture_output=True, check=False)

    named = ["losetup", "--noheadings", "--output", "NAME", "--associated", root / "held"]
    with beside(begin, own_mounts=True):
        device = subprocess.run(named, capture_output=True, text=True, check=True).stdout.strip()
        if not device:
            pytest.skip("loop devices are not permitted")
        try:
            create(root, area / "job.db", others=True)
            found = moved(area)
        finally:
            subprocess.run(["losetup", "--detach", device], check=True)
    assert found["free"] == ("moved", None)
    assert found["held"] == ("skipped", "in use by a mount")


@pytest.mark.parametrize("options", [["--read-only"], []], ids=["read-only", "writable"])
def test_an_image_of_a_loop_device_is_in_use(area: Path, options: list[str]) -> None:
    """The kernel keeps the image's block map, and would go on reading the old blocks."""
    root = tree(area)
    (root / "held").write_bytes(bytes(1 << 20))
    argv = ["losetup", *options, "--show", "--find", root / "held"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("loop devices are not permitted")
    device = done.stdout.strip()
    try:
        create(root, area / "job.db", others=True)
        found = moved(area)
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)
    assert found["free"] == ("moved", None)
    assert found["held"][0] == "skipped"
    assert found["held"][1] == ("in use by a mount" if options else "open for writing")
