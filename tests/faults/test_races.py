"""Writers, renamers, unlinkers, link swappers and truncators that work while files are moved."""

from __future__ import annotations

import contextlib
import os
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tests.faults.harness import create, run

ROUNDS = int(os.environ.get("ZCONSOLE_RACE_ROUNDS", "3"))
FILES = 60


def populate(root: Path) -> None:
    root.mkdir()
    for number in range(FILES):
        (root / f"f{number}").write_bytes(f"{number}:0\n".encode() * 50)


def disturbed(area: Path, disturb: Callable[[Path, threading.Event], None]) -> Path:
    """Return a tree that was moved repeatedly while ``disturb`` worked on it."""
    root = area / "tree"
    populate(root)
    ended = threading.Event()
    worker = threading.Thread(target=disturb, args=(root, ended))
    worker.start()
    try:
        for number in range(ROUNDS):
            create(root, area / f"job{number}.db")
            run(area / f"job{number}.db")
    finally:
        ended.set()
        worker.join()
    leftovers = [p.name for p in root.iterdir() if p.name.startswith(".zc-")]
    assert leftovers == []
    return root


def test_no_write_is_lost(area: Path) -> None:
    """Every line that a writer appended is there afterwards."""
    written: dict[str, int] = {f"f{number}": 0 for number in range(FILES)}
    chance = random.Random(1)

    def append(root: Path, ended: threading.Event) -> None:
        while not ended.is_set():
            name = chance.choice(list(written))
            with (root / name).open("ab", buffering=0) as file:
                for _ in range(chance.randrange(1, 4)):
                    file.write(b"line\n")
                    written[name] += 1
                    time.sleep(chance.random() * 0.0005)

    root = disturbed(area, append)
    assert sum(written.values()) > 0
    for name, lines in written.items():
        assert (root / name).read_bytes().count(b"line\n") == lines, name


def test_no_replaced_file_comes_back(area: Path) -> None:
    """An editor writes a new file and renames it over the name: the newest version wins."""
    latest: dict[str, int] = {}
    chance = random.Random(2)

    def replace(root: Path, ended: threading.Event) -> None:
        version = 0
        while not ended.is_set():
            version += 1
            name = f"f{chance.randrange(FILES)}"
            (root / "editing").write_bytes(f"version {version}\n".encode())
            (root / "editing").rename(root / name)
            latest[name] = version
            time.sleep(chance.random() * 0.0005)

    root = disturbed(area, replace)
    (root / "editing").unlink(missing_ok=True)
    assert latest
    for name, version in latest.items():
        assert (root / name).read_bytes() == f"version {version}\n".encode(), name


def test_unlinked_files_stay_away_and_renamed_ones_stay_whole(area: Path) -> None:
    chance = random.Random(3)
    gone: set[str] = set()
    moved: dict[str, bytes] = {}

    def disturb(root: Path, ended: threading.Event) -> None:
        names = [f"f{number}" for number in range(FILES)]
        chance.shuffle(names)
        for name in names:
            if ended.is_set():
                return
            if chance.random() < 0.5:
                (root / name).unlink()
                gone.add(name)
            else:
                moved[name] = (root / name).read_bytes()
                (root / name).rename(root / f"renamed-{name}")
            time.sleep(chance.random() * 0.005)

    root = disturbed(area, disturb)
    assert not any((root / name).exists() for name in gone)
    for name, content in moved.items():
        assert not (root / name).exists()
        assert (root / f"renamed-{name}").read_bytes() == content
    left = FILES - len(gone) - len(moved)
    assert len(list(root.iterdir())) == left + len(moved)


def test_truncations_are_kept(area: Path) -> None:
    chance = random.Random(4)
    cut: dict[str, int] = {}

    def truncate(root: Path, ended: threading.Event) -> None:
        while not ended.is_set():
            name = f"f{chance.randrange(FILES)}"
            length = cut.get(name, 150) - 1
            if length >= 0:
                os.truncate(root / name, length)
                cut[name] = length
            time.sleep(chance.random() * 0.001)

    root = disturbed(area, truncate)
    assert cut
    for name, length in cut.items():
        assert (root / name).stat().st_size == length, name


def test_swapped_links_lead_nowhere(area: Path) -> None:
    """A user who replaces files and directories by links to the outside gains nothing."""
    outside = area / "outside"
    outside.mkdir()
    for name in ("f0", "secret"):
        (outside / name).write_bytes(b"secret")
        os.utime(outside / name, ns=(5, 5))
    inodes = {p.name: p.stat().st_ino for p in outside.iterdir()}
    chance = random.Random(5)

    def swap(root: Path, ended: threading.Event) -> None:
        while not ended.is_set():
            name = f"f{chance.randrange(FILES)}"
            with contextlib.suppress(OSError):
                (root / name).rename(root / "aside")
                (root / name).symlink_to(outside / "secret")
                time.sleep(chance.random() * 0.0005)
                (root / "aside").rename(root / name)
                root.rename(root.with_name("away"))
                root.symlink_to(outside)
                time.sleep(chance.random() * 0.0005)
                root.unlink()
                root.with_name("away").rename(root)

    root = area / "tree"
    populate(root)
    inner = area / "top"
    inner.mkdir()
    root.rename(inner / "tree")
    ended = threading.Event()
    worker = threading.Thread(target=swap, args=(inner / "tree", ended))
    worker.start()
    try:
        for number in range(ROUNDS):
            create(inner, area / f"job{number}.db")
            run(area / f"job{number}.db")
    finally:
        ended.set()
        worker.join()
    assert {p.name: p.stat().st_ino for p in outside.iterdir()} == inodes
    assert all(p.read_bytes() == b"secret" for p in outside.iterdir())
    whole = [p for p in (inner / "tree").iterdir() if p.name != "aside"]
    assert len(whole) == FILES
    assert not any(p.name.startswith(".zc-") for p in whole)


def test_a_chmod_during_the_move_is_kept(area: Path) -> None:
    latest: dict[str, int] = {}
    chance = random.Random(6)

    def change(root: Path, ended: threading.Event) -> None:
        while not ended.is_set():
            name, mode = f"f{chance.randrange(FILES)}", chance.choice((0o600, 0o640, 0o755))
            (root / name).chmod(mode)
            latest[name] = mode
            time.sleep(chance.random() * 0.0003)

    root = disturbed(area, change)
    wrong = {n for n, mode in latest.items() if (root / n).stat().st_mode & 0o777 != mode}
    assert not wrong
