"""Plans of the rebalance: of a tree of files, of faked pools, and of the simulated ones."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.lock.case import digest
from tests.lock.plans.table import safe
from zconsole.errors import ZconsoleError
from zconsole.rebalance.planning import plan
from zconsole.rebalance.planning.facts import FactsReader, JobDirectory
from zconsole.rebalance.planning.plan_document import PlanDocument, plan_lines
from zconsole.rebalance.planning.settings import Limits, Settings
from zconsole.rebalance.planning.survey import Ages, Survey, TooLarge
from zconsole.sim.backends.rebalance import SimulatedRebalance
from zconsole.sim.source import World
from zconsole.system.process import Completed

MEMORY = "/dev/shm"
"""A filesystem that every Linux has, where files use whole pages and leases are supported."""
OF_THE_MACHINE = ("cannot see which", "in a container", "not root", "exported over")
"""Prefixes of notes that depend on what else runs on the machine."""
UNSTABLE = {"available_bytes": "of the machine"}
PAGE, MIB, GIB = 1 << 16, 1 << 20, 1 << 30


def plans() -> Iterator[tuple[str, Callable[[bool], Iterable[str]]]]:
    """Yield all plans, each with its name; with True, their JSON is complete."""
    for name, words in _COMMANDS.items():
        answer = name.rpartition(" ")[2]
        yield f"files/{name}", lambda _, words=words, answer=answer: _planned(words, answer)
    for name, pool in _POOLS.items():
        yield f"pools/{name}", lambda whole, pool=pool: pool.told(whole)
    for scenario in ("added-vdev", "draid", "failed-disk", "two-pools"):
        yield f"demo/{scenario}", lambda whole, scenario=scenario: _simulated(scenario, whole)


_COMMANDS: Mapping[str, tuple[str, ...]] = {
    "refused": ("plan", "TREE"),
    "text": ("plan", "--allow-non-zfs", "TREE"),
    "json": ("plan", "--allow-non-zfs", "--json", "TREE"),
    "two directories": ("plan", "--allow-non-zfs", "--json", "TREE/a", "TREE/b"),
    "one in another": ("plan", "--allow-non-zfs", "TREE", "TREE/a"),
    "none there": ("plan", "--allow-non-zfs", "TREE/none"),
    "no rewrite": ("plan", "--allow-non-zfs", "--engine", "rewrite", "TREE"),
    **{f"run answered {word}": ("run", "--allow-non-zfs", "TREE/b") for word in ("no", "yes")},
}


def _planned(words: Sequence[str], answer: str) -> Iterator[str]:
    """Yield the output of `zconsole rebalance` for a tree of files, given an answer."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as place:
        _grow(Path(place, "tree"))
        named = [word.replace("TREE", f"{place}/tree") for word in words]
        state = {"ZCONSOLE_STATE": f"{place}/state", "XDG_CONFIG_HOME": f"{place}/config"}
        terminal, asked = os.openpty()
        os.write(terminal, f"{answer}\n".encode())
        done = subprocess.run(
            [sys.executable, "-m", "zconsole", "rebalance", *named],
            stdin=asked,
            env=os.environ | state,
            capture_output=True,
            text=True,
            check=False,
        )
        os.close(terminal)
        os.close(asked)
        shutil.rmtree(f"{place}/tree")
    out = done.stdout
    if out.startswith("{"):
        out = "\n".join(_rows(_steady(json.loads(out))))
    lines = (*out.splitlines(), *done.stderr.splitlines())
    # Reasons to skip files come in directory order, which differs between kernels.
    for line in sorted(lines, key=lambda line: line if "skipped" in line else ""):
        if not line.startswith(tuple(f"note: {words}" for words in OF_THE_MACHINE)):
            steady = re.sub(r"[\d.]+[KMGT]? is usable", "SOME is usable", line.replace(place, ""))
            yield safe(re.sub(r"^job [0-9a-f]{6}$", "job ID", steady))
    yield f"exit {done.returncode}"


def _grow(root: Path) -> None:
    """Create files that a plan counts, and some that it must leave out."""
    for name in ("a", "b", "b/deep"):
        (root / name).mkdir(parents=True)
    sizes = {"a/one": 2 * PAGE, "a/out": PAGE, "b/big": 3 * MIB, "b/deep/ro": PAGE, "a/empty": 0}
    for name, size in sizes.items():
        (root / name).write_bytes(b"x" * size)
    (root / "a/two").hardlink_to(root / "a/one")
    (root / "b/again").hardlink_to(root / "a/one")
    (root.parent / "outside").hardlink_to(root / "a/out")
    (root / "a/link").symlink_to("one")
    (root / "b/deep/ro").chmod(0o400)
    Path(os.fsdecode(b"%s/b/odd\n\xff" % os.fsencode(root))).write_bytes(b"x" * PAGE)
    os.mkfifo(root / "a/fifo")
    with (root / "a/sparse").open("wb") as file:
        file.truncate(GIB)


def _steady(document: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON of a plan without the values that depend on the machine."""
    notes = [note for note in document["notes"] if not note.startswith(OF_THE_MACHINE)]
    return document | UNSTABLE | {"notes": notes}


def _rows(value: Any, head: str = "") -> Iterator[str]:
    """Yield a JSON value as lines of a path and a value."""
    if isinstance(value, dict) and value:
        for name, part in value.items():
            yield from _rows(part, f"{head}.{name}" if head else name)
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for number, part in enumerate(value):
            yield from _rows(part, f"{head}[{number}]")
    else:
        yield f"{head}: {json.dumps(value)}"


@dataclass
class _Pool:
    """A faked pool with one dataset, as zfs and zpool print it, and the result of a walk."""

    version: str = "2.3.9"
    vdevs: tuple[tuple[str, int, int], ...] = (
        ("mirror-0", 1000 * GIB, 900 * GIB),
        ("mirror-1", 1000 * GIB, 100 * GIB),
    )
    """Name, size and allocated bytes of each vdev."""
    special: tuple[tuple[str, int, int], ...] = ()
    pool: Mapping[str, str] = field(default_factory=dict)
    dataset: Mapping[str, str] = field(default_factory=dict)
    snapshots: str = ""
    status: str = " state: ONLINE\n  scan: none requested\n"
    quotas: str = ""
    settings: tuple[Settings, ...] = ()
    found: Mapping[str, Any] = field(default_factory=dict)
    """Unusual results of the walk."""

    def told(self, whole: bool) -> Iterable[str]:
        """Return the plans for all settings."""
        told = _Told()
        with tempfile.TemporaryDirectory() as place:
            module = Path(place, "sys/module/zfs/version")
            module.parent.mkdir(parents=True)
            module.write_text(f"{self.version}-1\n")
            for settings in self.settings or _SETTINGS.values():
                limits = dict(_given(settings.limits))
                words = [settings.engine, settings.aim, settings.rewrite_options or "no options"]
                words += ["races accepted"] * settings.accept_races
                words += [f"{name} {value}" for name, value in limits.items()]
                try:
                    made = self._plan(FactsReader(self._run, Path(place)), settings)
                except ZconsoleError as error:
                    told.add(", ".join(words), [str(error)], None)
                else:
                    told.add(", ".join(words), plan_lines(made), made)
        return told.lines(whole)

    def _plan(self, reader: FactsReader, settings: Settings) -> PlanDocument:
        """Return a plan with these fakes, without a walk or anybody else on the machine."""
        dataset = reader.dataset("tank/a")
        place = JobDirectory(b"/made/up", "zfs", "tank/a", dataset)
        pool = reader.pool("tank")
        snapshots = [snapshot.creation for snapshot in dataset.snapshots]
        found = Survey(
            place.root,
            Ages(max(snapshots) + 1 if snapshots else None),
            max(0, round(plan.forecast.above_floor(pool, settings.limits))),
            **{
                "files": 4000,
                "bytes": 400 * GIB,
                "allocated": 390 * GIB,
                "largest": 3 * GIB,
                **self.found,
            },
        )
        made = plan._directory_plan(reader, place, pool, settings, found, _Nobody(), [])
        document = plan.judged([made], pool, settings).document
        quotas = plan.plan_notes.of_quotas(reader, [made])
        shared = plan.plan_notes.of_shared_blocks(pool, [made])
        vain, more = plan.plan_notes.nothing_to_gain(settings.aim, [made], pool)
        notes = (*document.notes, *quotas, *shared, *more)
        return replace(document, notes=notes, refused=document.refused or vain)

    def _run(self, argv: Sequence[str], _deadline: float) -> Completed:
        """Answer as zfs and zpool would."""
        words, held = " ".join(argv), sum(alloc for _, _, alloc in self.vdevs)
        answers = {
            "zfs get": self._properties(),
            "zfs list -Hp -t snapshot": self.snapshots,
            "zfs list -Hp -o type,used": f"filesystem\t{held * 9 // 10}\t0\n",
            "zpool get -Hp -o value ashift": "-\n12\n",
            "zpool get": "".join(f"{name}\t{value}\n" for name, value in self._pool().items()),
            "zpool list": self._listed(),
            "zpool status": f"  pool: tank\n{self.status}",
            "zfs userspace": self.quotas,
        }
        found = next((text for start, text in answers.items() if words.startswith(start)), None)
        return Completed(tuple(argv), int(found is None), found or "", "no such command")

    def _properties(self) -> str:
        usual = {
            "compression": "lz4",
            "checksum": "on",
            "dedup": "off",
            "recordsize": "131072",
            "encryption": "off",
            "origin": "-",
            "creation": "1700000000",
            "available": str(800 * GIB),
            "guid": "7",
            "acltype": "posix",
            "xattr": "sa",
        }
        return "".join(f"{name}\t{value}\n" for name, value in {**usual, **self.dataset}.items())

    def _pool(self) -> dict[str, str]:
        size = sum(size for _, size, _ in self.vdevs)
        free = size - sum(alloc for _, _, alloc in self.vdevs)
        rewrite = {"feature@physical_rewrite": "enabled"} if self.version >= "2.4" else {}
        found = {"size": str(size), "free": str(free), "health": "ONLINE", **rewrite}
        return {**found, "guid": "1", "ashift": "12", **self.pool}

    def _listed(self) -> str:
        def _row(name: str, size: int, alloc: int) -> str:
            return f"\t{name}\t{size}\t{alloc}\t{size - alloc}\t-\t-\t21\t9\t-\tONLINE\n"

        size, alloc = (sum(vdev[at] for vdev in self.vdevs) for at in (1, 2))
        pool = f"tank\t{size}\t{alloc}\t{size - alloc}\t-\t-\t17\t39\t1.00\tONLINE\t-\n"
        special = "special\t-\t-\t-\t-\t-\t-\t-\t-\t-\n" if self.special else ""
        return "".join(
            (
                pool,
                *(_row(*each) for each in self.vdevs),
                special,
                *(_row(*x) for x in self.special),
            )
        )


@dataclass
class _Told:
    """Plans of one pool."""

    every: list[str] = field(default_factory=list)
    short: list[str] = field(default_factory=list)
    """The text of the first plan; of later ones, the differences."""
    first: Sequence[str] = ()

    def add(self, head: str, text: Sequence[str], made: PlanDocument | None) -> None:
        """Add a plan."""
        text, rows = list(map(safe, text)), () if made is None else _rows(made.as_json())
        self.every += [f"-- {head}", *text, *map(safe, rows)]
        unlike = [line for line in text if line not in self.first]
        self.short += [f"-- {head}", *unlike] if unlike else []
        self.first = self.first or text

    def lines(self, whole: bool) -> Sequence[str]:
        """Return all plans; without ``whole``, the differences and one digest."""
        return self.every if whole else (*self.short, f"sha256 {digest(chr(10).join(self.every))}")


class _Nobody:
    """A machine on which no other process uses the files."""

    def overlay(self, _descriptor: int) -> None:
        """Return None: no overlay uses the directory."""


def _given(limits: Limits) -> Iterator[tuple[str, object]]:
    for name in ("rate", "max_bytes", "until_spread", "min_free", "window", "max_latency"):
        if (value := getattr(limits, name)) is not None:
            yield name.replace("_", " "), value


_DIRS = ("/made/up",)
_SETTINGS = {
    "usual": Settings(_DIRS),
    "copy": Settings(_DIRS, "copy"),
    "rewrite": Settings(_DIRS, "rewrite"),
    "races": Settings(_DIRS, "copy", accept_races=True),
    "width": Settings(_DIRS, aim="width"),
    "properties": Settings(_DIRS, aim="properties"),
    "record": Settings(_DIRS, aim="recordsize"),
    "options": Settings(_DIRS, rewrite_options="P"),
    "more options": Settings(_DIRS, "rewrite", rewrite_options="SC"),
    "spread": Settings(_DIRS, limits=Limits(until_spread=0.3)),
    "no spread": Settings(_DIRS, limits=Limits(until_spread=0.0)),
    "bytes": Settings(_DIRS, limits=Limits(max_bytes=10 * GIB, min_free=0.2)),
    "floor": Settings(_DIRS, limits=Limits(min_free=0.6)),
}
_RAIDZ = (("raidz2-0", 8000 * GIB, 6100 * GIB), ("raidz2-1", 8000 * GIB, 300 * GIB))
_HELD = "1700000000\t0\t-\n1700009999\t1\t-\n1700019999\t0\ttank/clone\n"
_POOLS: Mapping[str, _Pool] = {
    "two mirrors": _Pool(),
    "two mirrors of 2.1": _Pool(version="2.1.11"),
    "two mirrors of 2.2": _Pool(version="2.2.2"),
    "two raidz of 2.4": _Pool(version="2.4.4", vdevs=_RAIDZ),
    "a bug of 2.4.1": _Pool(version="2.4.1", vdevs=_RAIDZ),
    "one vdev": _Pool(vdevs=(("raidz1-0", 3000 * GIB, 1500 * GIB),)),
    "nearly full": _Pool(vdevs=(("mirror-0", 900 * GIB, 880 * GIB), ("mirror-1", GIB, 0))),
    "full": _Pool(vdevs=(("mirror-0", 900 * GIB, 899 * GIB), ("mirror-1", 900 * GIB, 899 * GIB))),
    "even": _Pool(vdevs=(("mirror-0", 900 * GIB, 480 * GIB), ("mirror-1", 900 * GIB, 470 * GIB))),
    "special": _Pool(special=(("mirror-2", 100 * GIB, 80 * GIB),), version="2.4.4"),
    "snapshots": _Pool(
        snapshots=_HELD,
        found={"snapshot_allocated": 380 * GIB, "snapshot_bytes": 385 * GIB},
        version="2.4.4",
    ),
    "clones": _Pool(
        snapshots=_HELD, found={"clone_allocated": 20 * GIB, "snapshot_allocated": 30 * GIB}
    ),
    "checkpoint": _Pool(
        status=" state: ONLINE\n  scan: none requested\n"
        "checkpoint: created Fri Nov 20 10:01:11 2026, consumes 1G\n"
    ),
    "dedup": _Pool(dataset={"dedup": "on"}, pool={"dedupratio": "2.50"}),
    "dedup of before": _Pool(pool={"dedupratio": "2.50x"}),
    "block clones": _Pool(pool={"bclonesaved": str(5 * GIB)}),
    "nop-write": _Pool(dataset={"checksum": "sha256"}),
    "shared": _Pool(dataset={"sharenfs": "rw"}),
    "ACLs of NFSv4": _Pool(dataset={"acltype": "nfsv4"}),
    "no ACLs": _Pool(dataset={"acltype": "off"}, version="2.2.2"),
    "no attributes": _Pool(dataset={"xattr": "off"}),
    "encrypted": _Pool(dataset={"encryption": "aes-256-gcm"}),
    "a clone": _Pool(dataset={"origin": "tank/b@c"}),
    "quotas": _Pool(
        version="2.2.2",
        dataset={"quota": str(500 * GIB), "refquota": str(2 * GIB), "available": str(2 * GIB)},
        quotas=f"POSIX User\tann\t{9 * GIB}\t{10 * GIB}\nPOSIX User\tbob\t1\t{800 * GIB}\n",
    ),
    "degraded, with a resilver": _Pool(
        pool={"health": "DEGRADED"},
        status=" state: DEGRADED\n  scan: resilver in progress since Fri Nov 20 10:12:13 2026\n"
        "\t642M scanned at 35.7M/s, 244M issued at 13.6M/s, 642M total\n"
        "\t50.8M resilvered, 38.04% done, 00:00:29 to go\n",
    ),
    "skipped files": _Pool(
        version="2.2.2",
        found={
            "too_large": TooLarge(3, 90 * GIB, 90 * GIB),
            "sampled": Counter(opened=9, locked=2),
        },
    ),
    "no leases": _Pool(
        version="2.3.6", found={"sampled": Counter({"no leases on this filesystem": 3})}
    ),
    "an empty directory": _Pool(found={"files": 0, "bytes": 0, "allocated": 0, "largest": 0}),
    "an odd version": _Pool(version="unknown"),
}


def _simulated(scenario: str, whole: bool) -> Iterable[str]:
    """Return plans of the demo: for all directories of its pools, and for some."""
    world = World(scenario, 7)
    backend, told = SimulatedRebalance(world), _Told()
    for pool in world.pools:
        every = [directory.path for directory in pool.directories]
        for dirs in ([f"/{pool.name}"], every[:1], every[:2]):
            for name in ("usual", "copy", "width", "spread", "bytes", "options"):
                settings = replace(_SETTINGS[name], dirs=tuple(dirs))
                made = asyncio.run(_last(backend, settings))
                told.add(f"{', '.join(dirs)}: {name}", plan_lines(made), made)
    return told.lines(whole)


async def _last(backend: SimulatedRebalance, settings: Settings) -> PlanDocument:
    made = [each async for each in backend.plan(settings)][-1]
    assert isinstance(made, PlanDocument)
    return made
