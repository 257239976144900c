"""The bare Debian trees in which the README's commands run: when and how they are built."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import tarfile
from pathlib import Path
from types import ModuleType

import pytest

from tests.vm.errors import VmError
from tests.vm.progress import Progress

SCRIPT = Path(__file__).parents[2] / ".ci/bare_root.py"


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, with a cache of its own and a build that does nothing."""
    monkeypatch.setenv("ZCONSOLE_VM_CACHE", str(tmp_path / "cache"))
    spec = importlib.util.spec_from_file_location("bare_root", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "key", lambda release: f"{release}-1")
    monkeypatch.setattr(module, "build", made)
    return module


def made(release: str, root: Path, _progress: Progress) -> None:
    root.mkdir()
    (root / "release").write_text(release)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "bare"
    path.mkdir()
    return path


def test_a_root_is_kept_until_it_is_two_weeks_old(bare: ModuleType, home: Path) -> None:
    root = bare.prepared("trixie", home)
    (root / "mark").touch()
    assert (bare.prepared("trixie", home) / "mark").exists()
    old = root.stat().st_mtime - bare.MOST_AGE - 60
    os.utime(root, (old, old))
    assert bare.prepared("trixie", home) == root
    assert not (root / "mark").exists()
    assert [path.name for path in home.iterdir()] == [root.name]


def test_a_root_of_other_things_replaces_the_one_before(
    bare: ModuleType, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = bare.prepared("trixie", home)
    monkeypatch.setattr(bare, "key", lambda release: f"{release}-2")
    assert bare.prepared("trixie", home) != before
    assert not before.exists()


def test_a_build_that_fails_leaves_the_root_before_and_nothing_else(
    bare: ModuleType, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = bare.prepared("trixie", home)

    def fail(release: str, root: Path, progress: Progress) -> None:
        made(release, root, progress)
        raise VmError("no mirror")

    monkeypatch.setattr(bare, "key", lambda release: f"{release}-2")
    monkeypatch.setattr(bare, "build", fail)
    with pytest.raises(VmError):
        bare.prepared("trixie", home)
    assert list(home.iterdir()) == [before]


def test_what_git_ignores_or_no_longer_has_is_not_in_the_copy(
    bare: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = tmp_path / "tree"
    (tree / "sub").mkdir(parents=True)
    (tree / ".gitignore").write_text("*.log\n")
    for name in ("sub/kept", "gone", "left.log"):
        (tree / name).write_text(name)
    subprocess.run(["git", "init", "-q", tree], check=True)
    subprocess.run(["git", "-C", tree, "add", "-A"], check=True)
    (tree / "gone").unlink()
    (tree / "new").write_text("new")
    monkeypatch.setattr(bare, "TREE", tree)
    bare.pack(str(tmp_path / "copy.tar"))
    with tarfile.open(tmp_path / "copy.tar") as archive:
        assert set(archive.getnames()) == {".gitignore", "sub/kept", "new"}
