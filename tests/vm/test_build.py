"""Naming, caching and cleanup of images; needs no virtual machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.vm import chroot, image, progress, releases, rundir
from tests.vm.apt import host_mirror
from tests.vm.cache import half_done, try_lock
from tests.vm.errors import NotAvailableError, VmError
from tests.vm.machine import written_stretches
from tests.vm.releases import ARCHIVES, RELEASES, SourceRelease
from tests.vm.wheels import TREE

MIB = 1 << 20


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ZCONSOLE_VM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def listed(apt: Path, name: str, text: str) -> str | None:
    path = apt / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return host_mirror(apt)


def test_mirror_from_one_line_sources(tmp_path: Path) -> None:
    text = (
        "# deb http://old.test/debian trixie main\n"
        "deb-src http://source.test/debian trixie main\n"
        "deb http://safe.test/security trixie-security main\n"
        "deb [arch=amd64 signed-by=/k.gpg] http://mirror.test/debian/ trixie main contrib\n"
    )
    assert listed(tmp_path, "sources.list", text) == "http://mirror.test/debian"


def test_mirror_from_deb822_sources(tmp_path: Path) -> None:
    text = (
        "Types: deb\nURIs: http://safe.test/s\nSuites: bookworm-security\n\n"
        "Types: deb\nURIs: http://off.test/d\nSuites: bookworm\nEnabled: no\n\n"
        "Types: deb deb-src\n# a note\nURIs: http://mirror.test/d\n"
        "Suites: bookworm bookworm-updates\n"
    )
    assert listed(tmp_path, "sources.list.d/debian.sources", text) == "http://mirror.test/d"


def test_no_mirror_where_only_others_are_listed(tmp_path: Path) -> None:
    text = "deb http://packages.test/tool nodistro main\n"
    assert listed(tmp_path, "sources.list.d/tool.list", text) is None


def test_key_follows_what_the_image_is_made_of(monkeypatch: pytest.MonkeyPatch) -> None:
    trixie = RELEASES["trixie"]
    assert trixie.key() == replace(trixie).key()
    assert len({release.key() for release in RELEASES.values()}) == len(RELEASES)
    before = trixie.key()
    monkeypatch.setattr(releases, "requirements", lambda: ["rich", "one-more"])
    assert trixie.key() != before


def test_half_done_work_goes_with_the_failure_and_with_the_next_build(tmp_path: Path) -> None:
    (tmp_path / ".building-killed" / "root").mkdir(parents=True)

    def fail() -> None:
        with half_done(tmp_path, "new") as work:
            assert [path.name for path in tmp_path.iterdir()] == [work.name]
            (work / "file").write_text("x")
            raise RuntimeError("disk full")

    with pytest.raises(RuntimeError, match="disk full"):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_failed_build_leaves_only_the_log(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image, "why_unavailable", lambda: None)
    monkeypatch.setattr(chroot, "ISOLATED", ("sh", "-c", "echo no mirror >&2; exit 3"))
    with pytest.raises(VmError, match="no mirror"):
        image.build("trixie")
    assert [path.name for path in (cache / "images").iterdir()] == ["build.lock"]
    assert "no mirror" in (cache / "logs" / "build-trixie.log").read_text()


@pytest.fixture(params=["2.2", "master"])
def source(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> SourceRelease:
    """A release built from its source, with an archive of it."""
    release = RELEASES[request.param]
    assert isinstance(release, SourceRelease)
    tree = tmp_path / release.source
    tree.mkdir()
    # Not compressed, despite its name: a bare Debian has no xz.
    with tarfile.open(tmp_path / f"{release.source}.tar.xz", "w") as archive:
        archive.add(tree, release.source)
    monkeypatch.setenv(ARCHIVES, str(tmp_path))
    return release


def test_key_of_a_source_follows_how_it_is_built(
    source: SourceRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = source.key()
    assert replace(source, source="zfs-2.2.0").key() != before
    monkeypatch.setattr(releases, "BUILD_STEPS", "make")
    assert source.key() != before


def test_a_missing_archive_is_said_before_anything_is_made(
    cache: Path, source: SourceRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image, "why_unavailable", lambda: None)
    monkeypatch.setenv(ARCHIVES, str(cache))
    with pytest.raises(NotAvailableError) as caught:
        image.build(source.name)
    told = f"OpenZFS {source.name} needs {cache}/{source.source}.tar.xz (${ARCHIVES})"
    assert str(caught.value) == told
    assert list((cache / "images").iterdir()) == []


# Replaces the isolation of commands: makes the tree that debootstrap would make, and runs only what
# replaces a compiler, which may write to the tree ($4).
COMPILER = """
if [ "$1" = debootstrap ]; then
  mkdir -p "$5/etc/apt"
  echo deb http://mirror.test/debian bookworm main >"$5/etc/apt/sources.list"
fi
case "$7" in *autogen*) test -d "$4/usr/src/build/$9" && {compiler} ;; esac
"""


def test_failed_compilation_leaves_only_the_log(
    cache: Path, source: SourceRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = COMPILER.format(compiler="{ echo rule $((6 * 7)) >&2; exit 3; }")
    monkeypatch.setattr(image, "why_unavailable", lambda: None)
    monkeypatch.setattr(chroot, "ISOLATED", ("sh", "-c", compiler))
    with pytest.raises(VmError, match="rule 42"):
        image.build(source.name)
    assert [path.name for path in (cache / "images").iterdir()] == ["build.lock"]
    assert "rule 42" in (cache / "logs" / f"build-{source.name}.log").read_text()


BUILD = """
import sys
from tests.vm import __main__, chroot, image
image.why_unavailable = lambda: None
chroot.ISOLATED = ("sh", "-c", sys.argv[1])
sys.exit(__main__.main(["build", sys.argv[2]]))
"""


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Restore SIGINT: what a shell starts in the background ignores it, as do its children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_build_leaves_only_the_log(
    cache: Path, source: SourceRelease, end: signal.Signals
) -> None:
    begun = cache / "compiles"
    compiler = COMPILER.format(compiler=f"{{ touch {begun}; exec sleep 60; }}")
    command = [sys.executable, "-c", BUILD, compiler, source.name]
    with subprocess.Popen(command, cwd=TREE) as build:
        wait_until(begun.exists)
        assert (cache / "images" / f".building-{source.name}").exists()
        build.send_signal(end)
    assert build.returncode != 0
    assert [path.name for path in (cache / "images").iterdir()] == ["build.lock"]


def wait_until(met: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not met():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_command_is_over_with_all_that_it_started(tmp_path: Path) -> None:
    """Otherwise they would go on writing to a tree that is being deleted."""
    writer = f"for n in 1 2 3 4 5 6; do sleep 0.2; done; touch {tmp_path}/last"
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        progress.Progress(tmp_path / "log").run(["sh", "-c", f"({writer}) & wait"])
    assert (tmp_path / "last").exists()


# Replaces apt, which changes its user for a while: the kernel then forgets that it must die with
# its parent.
OTHER_USER = """
exec 9>"$1"
exec setpriv --reuid=65534 sh -c 'echo begun >&9; sleep 30; echo ended >&9'
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_command_of_a_tree_is_over_at_once_whoever_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter = chroot._ENTER.removeprefix(chroot.MOUNTS)
    monkeypatch.setattr(chroot, "_ENTER", f"root=$1; shift\n{enter}")  # / has its mounts
    told = tmp_path / "told"
    told.touch()

    def interrupt() -> None:
        wait_until(lambda: told.read_text() == "begun\n")
        os.kill(os.getpid(), signal.SIGINT)

    tree = chroot.Chroot(Path("/"), progress.Progress(tmp_path / "log"))
    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        tree.run("sh", "-c", OTHER_USER, "sh", str(told))
    assert told.read_text() == "begun\n"


@pytest.mark.usefixtures("cache")
def test_finished_build_appears_whole_and_is_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    builds: list[str] = []

    def assemble(
        release: releases.Release, _root: Path, output: Path, _log: progress.Progress
    ) -> None:
        builds.append(release.name)
        facts = '{"release": "trixie", "zfs": "2.3.9", "kernel": "6.12", "python": "3.13"}'
        (output / "image.json").write_text(facts)

    monkeypatch.setattr(image, "why_unavailable", lambda: None)
    monkeypatch.setattr(image, "_assemble", assemble)
    assert image.build("trixie") == image.build("trixie")
    assert builds == ["trixie"]
    assert image.build("trixie").zfs_version == (2, 3)


@pytest.mark.parametrize(
    ("zfs", "version"), [("2.4.4", (2, 4)), ("2.4.99", (2, 5)), ("2.4", (2, 4))]
)
def test_what_comes_after_a_release_counts_as_the_next(zfs: str, version: tuple[int, int]) -> None:
    built = image.Image(Path("master-0123"), "master", zfs, "6.12", "3.13")
    assert built.zfs_version == version


@pytest.mark.usefixtures("cache")
def test_build_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image, "why_unavailable", lambda: "missing Debian packages: qemu-utils")
    with pytest.raises(NotAvailableError, match="qemu-utils"):
        image.build("trixie")


def test_prune_deletes_only_what_no_definition_asks_for(cache: Path) -> None:
    stale = cache / "images" / "trixie-0123456789abcdef"
    stale.mkdir(parents=True)
    current = cache / "images" / f"trixie-{RELEASES['trixie'].key()}"
    current.mkdir()
    assert image.prune() == [stale.name]
    assert current.exists()
    assert not stale.exists()


def test_run_directories_of_dead_processes_are_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "zcvm-dead").mkdir()
    (tmp_path / "zcvm-dead" / "lock").touch()
    with held(tmp_path / "zcvm-alive"):
        mine = rundir.RunDirectory.create()
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
            ["zcvm-alive", mine.path.name]
        )
        mine.remove()
        mine.remove()
    assert [path.name for path in tmp_path.iterdir()] == ["zcvm-alive"]


@contextmanager
def held(directory: Path) -> Iterator[None]:
    """Create a run directory that another process has locked."""
    directory.mkdir()
    command = f"exec 9>{directory}/lock; flock 9; echo held; read line"
    with subprocess.Popen(
        ["sh", "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield
        process.communicate(b"\n")


def test_written_stretches_leave_holes_alone(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(20 * MIB)
        os.pwrite(file.fileno(), b"x" * 2 * MIB, 4 * MIB)
        os.pwrite(file.fileno(), b"y" * MIB, 12 * MIB)
    with path.open("rb") as file:
        pieces = list(written_stretches(file.fileno(), 5 * MIB, 20 * MIB))
        assert list(written_stretches(file.fileno(), 13 * MIB, 20 * MIB)) == []
    assert pieces == [(5 * MIB, 6 * MIB), (12 * MIB, 13 * MIB)]


def test_only_one_process_holds_a_lock(tmp_path: Path) -> None:
    with (tmp_path / "lock").open("w") as one, (tmp_path / "lock").open("w") as two:
        assert try_lock(one.fileno())
        assert not try_lock(two.fileno())
