"""The engines against cp, a shell loop, dd and `zfs rewrite`, side by side on the same files.

Run on the filesystem to be measured: ``python -m tests.bench.rebalance DIR [--rounds N]
[--files N] [--loop N] [--large MIB] [--rewrite MIB] [--walk N]``. Prints medians; both sides end
with one sync of the filesystem. Dropping caches for the large file needs root. The job itself is
timed, without the plan before it, which the others don't have; the whole command is printed too.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

LOOP = (
    'for f; do cp --reflink=never -p "$f" "$f.new" && cmp -s "$f" "$f.new"'
    ' && mv "$f.new" "$f"; done'
)


def timed(work: Callable[[], object], area: Path) -> float:
    """Return the seconds of some work and one sync after it, until all data is on the disks.

    On ZFS, the pool is synced: syncfs(2) only writes the intent log, which `zfs rewrite` doesn't
    use.
    """
    sync = syncing(area)
    began = time.perf_counter()
    work()
    command(*sync)
    return time.perf_counter() - began


def syncing(area: Path) -> tuple[object, ...]:
    """Return the command that waits for a filesystem's disks."""
    if words_of("stat", "-f", "-c", "%T", area) != "zfs":
        return ("sync", "-f", area)
    dataset = words_of("findmnt", "-n", "-o", "SOURCE", "-T", area)
    return ("zpool", "sync", dataset.split("/")[0])


def words_of(*words: object) -> str:
    """Return the output of a command."""
    argv = [str(word) for word in words]
    return subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def command(*words: object) -> None:
    """Run a command that must succeed."""
    subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL)


def rebalance(root: Path, journal: Path, engine: str = "copy") -> float:
    """Move a tree with the command that users run; returns the job's seconds, without its plan."""
    argv = [
        sys.executable, "-m", "zconsole", "rebalance", "run", str(root), "--engine", engine,
        "--allow-non-zfs", "--yes", "--json", "--journal", str(journal),
    ]  # fmt: skip
    done = subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True)
    summary = json.loads(done.stdout.splitlines()[-1])["summary"]
    if summary["files_skipped"] or summary["files_failed"] or summary["stopped_by"] != "done":
        raise SystemExit(f"not all was moved: {summary}")
    seconds: float = summary["seconds"]
    return seconds


def job(root: Path, journal: Path, area: Path, engine: str = "copy") -> float:
    """Return the seconds of a job, without its plan, and of one sync after it."""
    return rebalance(root, journal, engine) + timed(lambda: None, area)


def fill(root: Path, files: int, size: int) -> None:
    """Create files with random content."""
    root.mkdir()
    for number in range(files):
        (root / f"f{number:06d}").write_bytes(os.urandom(size))
    command("sync", "-f", root)


def small_files(area: Path, files: int, rounds: int, looped: int) -> None:
    """Compare files per second: cp -a and the copy engine on all files, a shell loop on some."""
    root = area / "small"
    fill(root, files, 4096)
    names = [str(path) for path in sorted(root.iterdir())[:looped]]
    ways = ("cp -a", "shell loop", "with its plan", "rebalance")
    times: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(rounds):
        copy, journal = area / f"copy{number}", area / f"{number}.db"
        cp = partial(command, "cp", "-a", "--reflink=never", root, copy)
        warm(root)
        times["cp -a"].append(files / timed(cp, area))
        warm(root)
        began = time.perf_counter()
        times["rebalance"].append(files / job(root, journal, area))
        times["with its plan"].append(files / (time.perf_counter() - began))
        loop = partial(command, "sh", "-c", LOOP, "sh", *names)
        warm(root)
        times["shell loop"].append(len(names) / timed(loop, area))
    show("small files", "files/s", times, {"cp -a": 0.25, "shell loop": 20})


def warm(root: Path) -> None:
    """Start from a clean state: earlier changes are on the disks, and the tree is cached.

    Before ext4 without a journal uses an inode, it checks all those removed in the last minutes
    whose block is in memory (recently_deleted, fs/ext4/ialloc.c): without this, each way would pay
    for what the one before it removed. For the same reason no copy is removed before all rounds are
    over.
    """
    drop_caches()
    for path in root.iterdir():
        path.read_bytes()


def large_file(area: Path, mebibytes: int, rounds: int) -> None:
    """Compare MiB/s for one large file with cold caches: dd, sync and cmp, and the copy engine."""
    root = area / "large"
    root.mkdir()
    source, target = root / "file", area / "dd"
    with source.open("wb") as file:
        for _ in range(mebibytes):
            file.write(os.urandom(1 << 20))
    times: dict[str, list[float]] = {"dd+sync+cmp": [], "with its plan": [], "rebalance": []}

    def dd() -> None:
        command("dd", f"if={source}", f"of={target}", "bs=1M", "conv=fsync", "status=none")
        drop_caches()
        command("cmp", source, target)

    for number in range(rounds):
        drop_caches()
        times["dd+sync+cmp"].append(mebibytes / timed(dd, area))
        target.unlink()
        drop_caches()
        began = time.perf_counter()
        seconds = job(root, area / f"large{number}.db", area)
        times["rebalance"].append(mebibytes / seconds)
        times["with its plan"].append(mebibytes / (time.perf_counter() - began))
    show("large file", "MiB/s", times, {"dd+sync+cmp": 0.9})


def rewrite(area: Path, mebibytes: int, rounds: int) -> None:
    """Compare MiB/s for rewriting one large file in place: `zfs rewrite` and the rewrite engine."""
    root = area / "rewritten"
    root.mkdir()
    with (root / "file").open("wb") as file:
        for _ in range(mebibytes):
            file.write(os.urandom(1 << 20))
    times: dict[str, list[float]] = {"zfs rewrite": [], "rebalance": []}
    for number in range(rounds):
        drop_caches()
        words = ("zfs", "rewrite", str(root / "file"))
        times["zfs rewrite"].append(mebibytes / timed(lambda words=words: command(*words), area))  # type: ignore[misc]
        drop_caches()
        seconds = job(root, area / f"rewrite{number}.db", area, "rewrite")
        times["rebalance"].append(mebibytes / seconds)
    show("rewrite", "MiB/s", times, {"zfs rewrite": 0.95})


def walk(area: Path, files: int, rounds: int) -> None:
    """Compare seconds to plan many empty files with find -printf; also show peak memory."""
    root = area / "walk"
    for number in range(files):
        if number % 10_000 == 0:
            (root / f"d{number}").mkdir(parents=True)
            directory = root / f"d{number}"
        (directory / f"f{number}").touch()
    times: dict[str, list[float]] = {"find -printf": [], "plan": []}
    plan = (sys.executable, "-m", "zconsole", "rebalance", "plan", root, "--allow-non-zfs")
    for _ in range(rounds):
        find = ("find", root, "-printf", "%p %s %n %i %T@ %C@\\n")
        times["find -printf"].append(files / timed(lambda find=find: command(*find), area))  # type: ignore[misc]
        times["plan"].append(files / timed(lambda: command(*plan), area))
    show("walk", "files/s", times, {"find -printf": 0.5})
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"  largest child process: {peak:.0f} MiB (at most 150)")


def drop_caches() -> None:
    """Drop cached file contents, as far as permitted."""
    command("sync")
    try:
        Path("/proc/sys/vm/drop_caches").write_text("3\n")
    except OSError as error:
        print(f"  caches stay warm: {error}", file=sys.stderr)


def show(title: str, unit: str, times: dict[str, list[float]], wanted: dict[str, float]) -> None:
    """Print medians, and the last entry's ratio to the others with its target."""
    medians = {name: statistics.median(values) for name, values in times.items()}
    ours = medians.get("rebalance", medians.get("plan", 0.0))
    print(title)
    for name, value in medians.items():
        ratio = (
            f"  ours is {ours / value:.2f} of it (wanted {wanted[name]:g})"
            if name in wanted
            else ""
        )
        print(f"  {name:14} {value:10.0f} {unit}{ratio}")


def main(words: Sequence[str] | None = None) -> int:
    """Measure in a new directory, which is removed afterwards."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--loop", type=int, default=20_000, metavar="FILES")
    parser.add_argument("--large", type=int, default=1024, metavar="MIB")
    parser.add_argument("--rewrite", type=int, default=0, metavar="MIB")
    parser.add_argument("--walk", type=int, default=0, metavar="FILES")
    args = parser.parse_args(words)
    area = args.directory / f"bench-{os.getpid()}"
    area.mkdir()
    os.environ["ZCONSOLE_STATE"] = str(area / "state")
    try:
        if args.files:
            small_files(area, args.files, args.rounds, args.loop)
        if args.large:
            large_file(area, args.large, args.rounds)
        if args.rewrite:
            rewrite(area, args.rewrite, args.rounds)
        if args.walk:
            walk(area, args.walk, args.rounds)
    finally:
        shutil.rmtree(area)
    return 0


if __name__ == "__main__":
    sys.exit(main())
