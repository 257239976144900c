"""Saved answers of the sources on live pools, compared again without a machine.

``python -m tests.vm.kept DIR FILE`` packs a directory that `test_agreement` wrote (see its KEEP)
into one small file, such as `tests/fixtures/agreement.jsonl.gz`.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.vm.agreement import assert_agree, decoded, pools
from tests.vm.fields import assert_disks_known, assert_same_fields
from tests.vm.states import STATES, State

FIXTURE = Path(__file__).parents[1] / "fixtures" / "agreement.jsonl.gz"


class Kept(NamedTuple):
    """The raw forms of one state on one release, by source."""

    release: str
    state: State
    raws: dict[str, Any]

    def check(self) -> None:
        """Compare the sources. Raises AssertionError."""
        assert_agree(decoded(self.raws), self.state)
        found = pools(self.raws)
        assert_same_fields(found, self.state)
        assert_disks_known(found, self.raws)


def kept(path: Path = FIXTURE) -> Iterator[Kept]:
    """Yield every state of a packed file, or of a directory."""
    states = {state.name: state for state in STATES}
    for release, name, raws in _files(path) if path.is_dir() else _lines(path):
        yield Kept(release, states[name], raws)


def _files(directory: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path in sorted(directory.glob("*/*.json")):
        yield path.parent.name, path.stem, json.loads(path.read_text())


def _lines(path: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    with gzip.open(path, "rt") as lines:
        for line in lines:
            release, name, raws = json.loads(line)
            yield release, name, raws


def pack(directory: Path, path: Path) -> None:
    """Pack a directory into one file; the same directory gives the same bytes."""
    lines = [json.dumps(entry) for entry in _files(directory)]
    path.write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))


if __name__ == "__main__":
    pack(Path(sys.argv[1]), Path(sys.argv[2]))
