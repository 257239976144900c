"""State that earlier versions and this one left: each archive opened, and gone on with to the end.

`python -m tests.lock.leave` makes the archives. A case says what commands say of the state as it
was left, what they do about it, and what is there afterwards.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tests.lock import apart, left
from tests.lock.apart import Machine, Said
from tests.lock.case import Case
from tests.lock.leave import NOON, environment

NIGHT = (2026, 1, 15, 23)
"""The time of day at which jobs go on: in the hours of the one that waits."""
_SEEN_HERE = re.compile(r"^stderr\| (note: |it fits: ).*\n", re.MULTILINE)
"""What a plan says of this machine, not of the job."""


def cases() -> Iterable[Case]:
    """Return a case for each thing that can be done with each archive."""
    for packed in sorted(left.ARCHIVES.glob("*/*.tar.xz")):
        name, version = packed.name.removesuffix(".tar.xz"), packed.parent.name
        if name.startswith("job-"):
            moment = name.removeprefix("job-")
            yield Case(f"{version}/jobs/{moment}", partial(_job, packed), 0.5)


@contextmanager
def _opened(packed: Path) -> Iterator[Path]:
    """Unpack an archive for a while."""
    shm = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="zc-", dir=shm if shm.is_dir() else None) as base:
        left.unpack(packed, Path(base) / "area")
        yield Path(base) / "area"


def _told(said: Said, area: Path) -> str:
    """Return what was said, without what depends on this machine."""
    text = str(said).replace(str(area), "AREA")
    text = re.sub(r'"(seconds|mean_rate)": [0-9.e+-]+', r'"\1": ...', text)
    text = re.sub(r"\(\w+ has no rewrite\)", "(... has no rewrite)", text)
    return _SEEN_HERE.sub("", text)


# Jobs.


def _job(packed: Path, _whole: bool) -> str:
    with _opened(packed) as area:
        (record,) = (area / "state/rebalance").glob("*.json")
        machine = Machine(local=NIGHT, rewrites=True)
        environ, journal = environment(area), record.with_suffix(".db")

        def said(*words: str) -> str:
            found = apart.run(("rebalance", *words), environ, machine)
            return f"$ zconsole rebalance {words[0]}\n{_told(found, area)}"

        parts = [
            said("status"),
            said("status", "--json", record.stem),
            said("run", "--json", f"--journal={journal}"),
            said("status", "--json", record.stem),
            "\n".join(_files(area / "tree")),
        ]
    return "\n\n".join(parts)


def _files(root: Path) -> Iterator[str]:
    """Yield a line for each file: mode, time of change, content, and the name it is a link to."""
    first: dict[int, str] = {}
    for path in (root, *sorted(root.rglob("*"))):
        status, name = path.lstat(), str(path.relative_to(root.parent))
        known = first.setdefault(status.st_ino, name)
        content = "directory" if path.is_dir() else _digest(path)
        same = f" = {known}" if known != name else ""
        yield f"{status.st_mode:o} {status.st_mtime_ns} {content} {name}{same}"


def _digest(path: Path) -> str:
    data = path.read_bytes()
    return f"{len(data)} bytes {hashlib.sha256(data).hexdigest()[:12]}"
