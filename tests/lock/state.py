"""State left by this and earlier versions: each archive is opened and continued to the end.

`python -m tests.lock.leave` makes the archives. A case shows what commands report about the state
as it was left, what they do with it, and what exists afterwards.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from tests.lock import apart, left, order
from tests.lock.apart import Machine
from tests.lock.case import Case, digest
from tests.lock.leave import BOX, LIVE, NOON, NOW, environment, held

NIGHT = (*NOON[:3], 23)
"""Time of day at which jobs continue: in the window of the job that waits for one."""
HOUR = 3600.0
LED = "machine/" + BOX + "/Slot 0{}/locate"
PARAMETERS = "machine/sys/module/zfs/parameters"
BOOT = "machine/proc/sys/kernel/random/boot_id"
_FIGURES = re.compile(r'"(seconds|rate|mean_rate|eta_seconds)": [^,}]+')
"""Figures about a job's speed, which differ in each run."""
_SEEN_HERE = re.compile(r"^stderr\| (?:note: |enough space: ).*\n", re.MULTILINE)
"""Lines of a plan about this machine, not about the job."""
_HERE = re.compile(r"\(\w+ has no rewrite\)")
_ANOTHER = re.compile(r"filesystem now: .+, not ")


@dataclass(slots=True)
class Area:
    """An unpacked archive, and what was seen of it so far."""

    place: Path
    machine: Machine
    environ: dict[str, str] = field(default_factory=dict)
    whole: bool = False
    """Whether long texts are recorded whole, not as digests."""
    seen: list[str] = field(default_factory=list)

    def run(self, *words: str) -> None:
        """Run a command, and record its output."""
        self._note(" ".join(("zconsole", *words)), apart.run(words, self.environ, self.machine))

    def go_on(self, act: str, *words: str) -> None:
        """Continue with a function of `going_on`, and record its output."""
        said = apart.run(words, self.environ, self.machine, f"tests.lock.going_on:{act}")
        self._note(" ".join((f"({act}", *words)) + ")", said)

    def _note(self, title: str, said: apart.Said) -> None:
        text = _SEEN_HERE.sub("", str(said).replace(str(self.place), "AREA"))
        text = _HERE.sub("(... has no rewrite)", _FIGURES.sub(r'"\1": ...', text))
        self.seen.append(f"$ {title.replace(str(self.place), 'AREA')}\n{text}")

    def abridge(self) -> None:
        """Replace the last record with a digest, unless ``whole`` is set."""
        title, _, text = self.seen[-1].partition("\n")
        if not self.whole:
            self.seen[-1] = f"{title}\nsha256 {digest(text)}"

    def note(self, title: str, lines: Iterable[str]) -> None:
        """Add a record."""
        self.seen.append("\n".join((title, *lines)))

    def write(self, name: str, value: object) -> None:
        """Replace a small file."""
        (self.place / name).write_text(f"{value}\n")


@contextmanager
def _opened(packed: Path) -> Iterator[Area]:
    """Unpack an archive for the duration of the block."""
    shm = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="zc-", dir=shm if shm.is_dir() else None) as base:
        place = Path(base).resolve() / "area"
        left.unpack(packed, place)
        root = place / "machine"
        machine = Machine(str(root) if root.exists() else "", NOW + 120)
        yield Area(place, machine, environment(place))


def cases() -> Iterable[Case]:
    """Yield a case for each thing that can be done with each archive."""
    for packed in sorted(left.ARCHIVES.glob("*/*.tar.xz")):
        kind, _, name = packed.name.removesuffix(".tar.xz").partition("-")
        for case, act, cost in KINDS[kind](name):
            place = f"{packed.parent.name}/{kind}/{case}"
            see = partial(_seen, packed, act)
            if os.geteuid() and (kind, name) in ROOTS:
                see = partial(_not_seen, place)
            yield Case(place, see, cost)
    yield from order.cases()


Act = Callable[[Area], None]
Cases = Iterable[tuple[str, Act, float]]
"""Name, action and cost of each case of an archive."""


ROOTS = (("job", "exchanged"),)
"""Archives that only root can restore: the owners of their files matter."""


def _not_seen(place: str, _whole: bool) -> str:
    return order.skipped(place, "its files were root's")


def _seen(packed: Path, act: Act, whole: bool) -> str:
    with _opened(packed) as area:
        area.whole = whole
        act(area)
        return "\n\n".join(area.seen)


# Jobs.


def _jobs(moment: str) -> Cases:
    yield moment, _job, 0.3
    if moment == "stopped":
        yield "of-a-later-version", _later_job, 0.05
        yield "of-changed-files", _job_of_changed_files, 0.3
        yield "journals-gone", _jobs_without_journals, 0.1
    if moment == "rewrite":
        yield "of-a-pool-not-here", _job_of_another_pool, 0.05


def _job(area: Area) -> None:
    (record,) = (area.place / "state/rebalance").glob("*.json")
    area.machine = Machine(local=NIGHT, rewrites=True)
    area.run("rebalance", "status")
    area.run("rebalance", "status", record.stem)
    area.run("rebalance", "run", "--json", f"--journal={record.with_suffix('.db')}")
    area.run("rebalance", "status", "--json", record.stem)
    area.note("files", _files(area.place / "tree"))


def _later_job(area: Area) -> None:
    (journal,) = (area.place / "state/rebalance").glob("*.db")
    with closing(sqlite3.connect(journal)) as db:
        db.execute("UPDATE meta SET value = value + 1 WHERE key = 'format'")
        db.commit()
    area.run("rebalance", "status")
    area.run("rebalance", "run", "--json", f"--journal={journal}")


def _job_of_changed_files(area: Area) -> None:
    """Replace a file with a directory, and move one of two links away."""
    tree = area.place / "tree"
    (tree / "b").unlink()
    (tree / "b").mkdir()
    (tree / "below/c").rename(tree / "below/moved")
    (tree / "below/c").write_bytes(b"another")
    (tree / "below/of two").rename(tree / "below/of two moved")
    (tree / "below/of two").write_bytes(b"another")
    (journal,) = (area.place / "state/rebalance").glob("*.db")
    area.machine = Machine(local=NIGHT)
    area.run("rebalance", "run", "--json", f"--journal={journal}")


def _jobs_without_journals(area: Area) -> None:
    """Remove the journals of as many jobs as a message names, and of one more."""
    place = area.place / "state/rebalance"
    gone = area.place / "gone.db"
    for number in range(6):
        file = place / f"00000{number}.json"
        file.write_text(json.dumps({"journal": str(gone)}))
        file.chmod(0o600)
        os.utime(file, (number, number))
        if number >= 4:
            area.run("rebalance", "status")


def _job_of_another_pool(area: Area) -> None:
    (journal,) = (area.place / "state/rebalance").glob("*.db")
    keys = json.dumps({str(area.place / "tree"): "zfs:tank:3660582829107015484"})
    with closing(sqlite3.connect(journal)) as db:
        db.execute("UPDATE meta SET value = ? WHERE key = 'keys'", (keys,))
        db.commit()
    area.run("rebalance", "status")
    area.run("rebalance", "run", "--json", f"--journal={journal}")
    area.seen[-1] = _ANOTHER.sub("filesystem now: ..., not ", area.seen[-1])
    area.run("rebalance", "status", journal.stem)
    area.note("files", _files(area.place / "tree"))


def _files(root: Path) -> Iterator[str]:
    """Yield a line for each file: mode, modification time, content, the name it is a link to."""
    first: dict[int, str] = {}
    for path in (root, *sorted(root.rglob("*"))):
        status, name = path.lstat(), str(path.relative_to(root.parent))
        known = first.setdefault(status.st_ino, name)
        data = b"" if path.is_dir() else path.read_bytes()
        content = f"{len(data)} bytes {hashlib.sha256(data).hexdigest()[:12]}"
        same = f" = {known}" if known != name else ""
        what = "directory" if path.is_dir() else content
        yield f"{status.st_mode:o} {status.st_mtime_ns} {what} {name}{same}"


# Lights.


def _lights(_name: str) -> Cases:
    yield "go-on", _lights_go_on, 0.06
    yield "time-over", partial(_lights_resumed, later=5 * HOUR), 0.06
    yield "clock-set-back", partial(_lights_resumed, later=-24 * HOUR), 0.06
    yield "somebody-switched-one-off", partial(_lights_resumed, leds=(0, 1)), 0.06
    yield "after-a-reboot", partial(_lights_resumed, boot="boot-2", leds=(0, 0)), 0.06
    yield "enclosure-gone", _lights_of_none, 0.06
    yield "record-with-a-path", _lights_of_a_path, 0.06


def _lights_go_on(area: Area) -> None:
    with held(area.place / "state/lights.holder"):
        area.run("light", "list")
        area.run("light", "list", "--json")
        area.run("light", "resume")
        area.run("light", "off", "S2")
        area.run("light", "off")
    _leds(area)


def _lights_resumed(
    area: Area, later: float = 120.0, boot: str = "boot-1", leds: Sequence[int] = (1, 1)
) -> None:
    area.machine = replace(area.machine, now=NOW + later)
    area.write(BOOT, boot)
    for number, value in enumerate(leds, 1):
        area.write(LED.format(number), value)
    with held(area.place / "state/lights.holder"):
        area.run("light", "resume")
        area.run("light", "list", "--json")
    _leds(area)


def _lights_of_none(area: Area) -> None:
    box = area.place / "machine" / BOX
    box.rename(box.with_name("away"))
    area.write(f"machine/{BOX.replace('0:0:8:0', 'away')}/id", "another")
    with held(area.place / "state/lights.holder"):
        area.run("light", "resume")
        area.run("light", "off")
        area.run("light", "list", "--json")


def _lights_of_a_path(area: Area) -> None:
    file = area.place / "state/lights.json"
    file.write_text(file.read_text().replace(': "Slot', ': "../0:0:8:0/Slot'))
    with held(area.place / "state/lights.holder"):
        area.run("light", "off")
    _leds(area)


def _leds(area: Area) -> None:
    texts = [(area.place / LED.format(number)).read_text().strip() for number in (1, 2)]
    area.note("lights", texts)


# Tunables.


def _tunables(name: str) -> Cases:
    yield f"{name}-restored", _tunables_restored, 0.1
    yield f"{name}-one-restored", _tunables_one_restored, 0.1
    yield f"{name}-changed-by-others", _tunables_changed, 0.1
    yield f"{name}-after-a-reboot", _tunables_rebooted, 0.1
    yield f"{name}-set-again", _tunables_set_again, 0.1
    if name == "autopilot":
        yield "autopilot-off", _autopilot_off, 0.1


def _tunables_restored(area: Area) -> None:
    _listed(area)
    area.go_on("tunables")
    area.run("tunables", "restore")
    area.run("tunables", "restore")
    area.go_on("tunables")
    _parameters(area)


def _tunables_one_restored(area: Area) -> None:
    area.run("tunables", "restore", "zfs_scrub_min_time_ms")
    area.run("tunables", "restore")
    _parameters(area)


def _tunables_changed(area: Area) -> None:
    area.write(f"{PARAMETERS}/zfs_scrub_min_time_ms", 1234)
    area.go_on("tunables")
    area.run("tunables", "restore")
    _parameters(area)


def _tunables_rebooted(area: Area) -> None:
    area.write(BOOT, "boot-2")
    for name, value in LIVE.items():
        area.write(f"{PARAMETERS}/{name}", value)
    _listed(area)
    area.run("tunables", "restore")
    area.go_on("tunables")


def _tunables_set_again(area: Area) -> None:
    area.run("tunables", "set", "zfs_scrub_min_time_ms=2500", "--json")
    area.run("tunables", "restore")
    _parameters(area)


def _autopilot_off(area: Area) -> None:
    area.run("tunables", "hold-latency", "off")
    area.go_on("tunables")
    _parameters(area)


def _listed(area: Area) -> None:
    """Record the list of tunables that were set, or differ from their defaults."""
    area.run("tunables", "list")
    area.run("tunables", "list", "--json")
    for at, mark in ((-2, " (was "), (-1, '"set_by_us": ')):
        title, *lines, code = area.seen[at].split("\n")
        told = [line for line in lines if mark in line and '"set_by_us": null' not in line]
        area.seen[at] = "\n".join((title, *told, code))


def _parameters(area: Area) -> None:
    place = area.place / PARAMETERS
    area.note("parameters", (f"{p.name}={p.read_text().strip()}" for p in sorted(place.iterdir())))


# Scrub windows.


def _hours(looks: str) -> Cases:
    yield f"after-{looks}-looks", partial(_hours_go_on, looks=looks), 0.35


def _hours_go_on(area: Area, looks: str) -> None:
    area.machine = Machine(local=(2026, 11, 30, 11))
    area.run("scrub", "list")
    area.run("scrub", "list", "--json")
    area.go_on("hours", looks)
    area.run("scrub", "list", "--json")


# Swaps.


def _swaps(way: str) -> Cases:
    yield f"{way}-listed", _swaps_listed, 0.5
    yield f"{way}-goes-on", partial(_swap, way=way), 0.5
    yield f"{way}-of-a-later-version", _later_swap, 0.05


def _swaps_listed(area: Area) -> None:
    for state in _without_zfs(area):
        area.environ["ZCONSOLE_STATE"] = str(state)
        area.run("swap")
        area.run("swap", "--json")
        if state.name != "0":
            area.abridge()


def _swap(area: Area, way: str) -> None:
    area.go_on("swap", way, str(area.place / "state"))


def _later_swap(area: Area) -> None:
    area.environ["ZCONSOLE_STATE"] = str(_without_zfs(area)[0])
    (file,) = (area.place / "state/0").glob("swap-*.json")
    document = json.loads(file.read_text())
    file.write_text(json.dumps({**document, "format": document["format"] + 1}))
    area.run("swap", "--json")


def _without_zfs(area: Area) -> list[Path]:
    """Make the machine one without pools; return the state directories of the swap."""
    area.machine = Machine(str(area.place / "machine"), NOW)
    return sorted((area.place / "state").iterdir(), key=lambda path: int(path.name))


# Histories and reports.


def _watches(scenario: str) -> Cases:
    yield f"{scenario}-goes-on", _watch, 0.3
    yield f"{scenario}-goes-on-as-json", _as_json, 0.3
    yield f"{scenario}-reports", _reports, 0.2
    yield f"{scenario}-of-a-later-version", _later_watch, 0.3
    yield f"{scenario}-of-another-pool", _other_watch, 0.3


def _watch(area: Area) -> None:
    area.go_on("watch", str(area.place / "after.jsonl"))
    area.run("report", "--list", "--json")
    area.run("report")


def _as_json(area: Area) -> None:
    area.go_on("watch", str(area.place / "after.jsonl"), "--json")
    area.abridge()


def _reports(area: Area) -> None:
    area.run("report", "--list")
    area.run("report", "--list", "--json")
    area.run("report")
    area.run("report", "--compare", "1", "1")
    for form in ("--json", "--svg"):
        area.run("report", form)
        area.abridge()


def _later_watch(area: Area) -> None:
    _edited(area, lambda document: {**document, "format": document["format"] + 1})
    area.go_on("watch", str(area.place / "after.jsonl"))
    area.run("report", "--list", "--json")


def _other_watch(area: Area) -> None:
    _edited(area, lambda document: {**document, "guid": "1" + document["guid"]})
    area.go_on("watch", str(area.place / "after.jsonl"))
    area.run("report", "--list", "--json")


def _edited(area: Area, edit: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> None:
    for file in (area.place / "state").glob("*.json"):
        file.write_text(json.dumps(edit(json.loads(file.read_text()))))


# The configuration.


def _configuration(_name: str) -> Cases:
    yield "shown", _config, 0.1


def _config(area: Area) -> None:
    area.machine = Machine(ordinary=True)
    for action in ("path", "show", "check"):
        area.run("config", action)
        area.run("config", action, "--json")


KINDS: dict[str, Callable[[str], Cases]] = {
    "job": _jobs,
    "lights": _lights,
    "tunables": _tunables,
    "hours": _hours,
    "swap": _swaps,
    "watch": _watches,
    "configuration": _configuration,
}
"""The cases of an archive, by the first word of its name; takes the rest of the name."""
