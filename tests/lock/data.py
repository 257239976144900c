"""Output of commands for simulated pools, recordings and saved output of zpool."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tests.lock.case import Case, digest
from tests.lock.outline import Named, changes, named, outline, parsed
from tests.lock.pinned import run, save

FIXTURES = Path(__file__).parents[1] / "fixtures"
SHARED = Path(__file__).parents[3] / "shared"
BESIDE = {"replay/traces/": SHARED / "traces", "status/traces/": SHARED / "traces"}
"""Directories next to the clone, by the name prefix of the cases that read them."""

SCENARIOS = (
    *("resilver", "failed-disk", "second-replace", "flaky", "suspended", "not-restored", "damaged"),
    *("hot-spare", "swap", "six-disk-swap", "new-disk", "scrub-delay", "nvme", "added-vdev"),
    *("mirror-scrub", "memory-limited", "foreground", "straggler", "shingled", "random"),
    *("few-requests", "shared-bus", "cpu", "sequential", "draid", "removal", "expansion", "trim"),
    *("paused", "thousand", "two-pools", "healthy", "overdue", "sit-out", "stuck"),
)
"""Scenarios that are run; the case "demo/list" holds all of `demo --list`."""
STATUS = ((), ("--json",), ("--exit-status",))
BALANCE = ((), ("--json",), ("--add-vdev", "mirror:2x4T", "--disk", "4T"))
LISTINGS = ("list", "iostat", "status.")
"""Forms of a capture that `balance` is given; it refuses all others with the same message."""
CUT = ("status.txt", "list-v.txt")
"""Forms of a capture that are truncated."""
CUTS = 2
"""Random line numbers per file after which it is truncated."""
LONGEST = 40
"""Longest text, in lines, that is shown whole."""


def cases() -> Iterator[Case]:
    """Return all cases."""
    yield Case("demo/list", partial(_printed, (("demo", "--list"),)))
    for name in SCENARIOS:
        yield Case(f"demo/{name}/run", partial(_demo, name), 12.0 if name == "thousand" else 0.4)
    for folder, file in _recordings():
        cost = 0.05 + file.stat().st_size / 4e5
        yield Case(f"replay/{folder}/{file.name}", partial(_replay, file), 2 * cost)
        yield Case(f"status/{folder}/{file.name}", partial(_saved_output, (file,), "status"), cost)
    for name, files in _saved():
        listings = [file for file in files if len(files) == 1 or file.name.startswith(LISTINGS)]
        for command, chosen in (("status", files), ("balance", listings)):
            cost = 0.02 * len(chosen)
            yield Case(f"{command}/{name}", partial(_saved_output, chosen, command), cost)
        for file in files:
            if file.suffix == ".txt" and (len(files) == 1 or file.name in CUT):
                for lines in _drawn(file):
                    cut = name if len(files) == 1 else f"{name}-{file.stem}"
                    yield Case(f"cuts/{cut}-{lines}", partial(_cut, file, lines), 0.04)
    for state, forms in _states().items():
        yield Case(f"states/{state}", partial(_state, forms), 0.02 * len(forms))


def _recordings() -> Iterator[tuple[str, Path]]:
    """Yield all recordings, each with the name of its group."""
    for file in sorted((FIXTURES / "limits").iterdir()):
        yield "fixtures", file
    for file in sorted((SHARED / "traces").glob("*/*.jsonl")):
        yield f"traces/{file.parent.name}", file


def _saved() -> Iterator[tuple[str, Sequence[Path]]]:
    """Yield names and files of saved output, with all forms of one moment together."""
    for file in sorted((FIXTURES / "corpus").glob("*/*")):
        if not file.name.endswith(".expect.json"):
            yield f"corpus/{file.parent.name}/{file.stem}", (file,)
    for folder in sorted((FIXTURES / "captures").glob("*/*")):
        # status.json comes first because it has the most; of the other forms, only differences are
        # shown.
        files = sorted(folder.iterdir(), key=lambda file: (file.name != "status.json", file.name))
        yield f"captures/{folder.parent.name}/{folder.name}", files
    for file in sorted((FIXTURES / "reports").iterdir()):
        yield f"reports/{file.stem}", (file,)


def _states() -> dict[str, dict[str, Any]]:
    """Return the raw forms that the sources gave of live pools, by state and release."""
    with gzip.open(FIXTURES / "agreement.jsonl.gz", "rt") as lines:
        return {
            f"{state.replace(' ', '-')}/{release}": forms
            for release, state, forms in map(json.loads, lines)
        }


def _drawn(file: Path) -> list[int]:
    """Return the line numbers after which a file is truncated, derived from its name."""
    last = len(file.read_bytes().splitlines()) - 1
    draws = (int(digest(f"{file.parent.name}/{file.name} {n}"), 16) for n in range(CUTS))
    return sorted({1 + draw % last for draw in draws}) if last > 0 else []


class _Printed:
    """Output of commands as text for people: nothing is repeated, and JSON is outlined."""

    def __init__(self, whole: bool, simulated: bool = False, outlined: bool = True) -> None:
        """Collect output; ``simulated`` as in `parsed`; without ``outlined``, hash objects."""
        self._whole = whole
        self._simulated = simulated
        self._outlined = outlined or whole
        self._firsts: dict[str, Named] = {}
        """The first object of each pool; later ones are shown as differences from it."""
        self._text_of: tuple[str, Sequence[str]] = "", ()
        """The first text, and the command that printed it."""
        self._earlier: dict[tuple[str, str], str] = {}
        self.lines: list[str] = []

    def add(self, *words: str) -> None:
        """Run a command and add its output."""
        done, command = run(*words), " ".join(words)
        known = self._earlier.get((done.out, done.err))
        self.lines.append(f"{command}: exit {done.code}{f', prints as {known}' if known else ''}")
        if known:
            return
        place = command.partition(" --from ")[2] or command
        self._earlier[done.out, done.err] = place
        lines = done.out.removesuffix("\n").split("\n") if done.out else []
        shown = self._objects(lines) if "--json" in words else self._text(lines, place)
        self.lines += (f" {line}" for line in shown)
        self.lines += (f" stderr: {line}" for line in done.err.splitlines())

    def _text(self, lines: Sequence[str], place: str) -> Iterator[str]:
        """Yield a text, or its difference from the first one if that is shorter."""
        as_first, first = self._text_of
        if not as_first and lines:
            self._text_of = place, lines
        other = [f"-{line}" for line in first if line not in lines]
        other += [f"+{line}" for line in lines if line not in first]
        if not self._whole and len(other) < len(lines):
            yield f"as {as_first} but for, sha256 {digest(chr(10).join(lines))}:"
            yield from (f" {line}" for line in other)
            return
        shown = lines if self._whole else lines[:LONGEST]
        yield from shown
        if rest := lines[len(shown) :]:
            yield f"{len(rest)} more lines, sha256 {digest(chr(10).join(rest))}"

    def _objects(self, lines: Sequence[str]) -> Iterator[str]:
        """Yield the first, middle and last object of each pool, and digests of all."""
        objects = [_object(line, self._simulated) for line in lines if line]
        pools = [str(found.get("pool")) for found in objects]
        counts: Counter[str] = Counter()
        for pool, found in zip(pools, objects, strict=True):
            count = counts[pool] = counts[pool] + 1
            first = self._firsts.setdefault(pool, found)
            told = found is first or count in (pools.count(pool) // 2 + 1, pools.count(pool))
            if not self._whole and not (told and self._outlined):
                yield f"sha256 {digest(json.dumps(found))}"
                continue
            yield f"{count} {pool} sha256 {digest(json.dumps(found))}"
            shown = found if found is first else changes(first, found)
            yield from (f" {line}" for line in outline(shown, self._whole))


def _object(line: str, simulated: bool) -> Named:
    """Return the object of a line, or the line itself if it is not JSON."""
    try:
        found = named(parsed(line, simulated))
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"no object": line}


def _printed(commands: Sequence[Sequence[str]], whole: bool) -> str:
    printed = _Printed(whole)
    for words in commands:
        printed.add(*words)
    return "\n".join(printed.lines)


def _demo(name: str, whole: bool) -> str:
    printed = _Printed(whole, simulated=True)
    words = ("demo", "--scenario", name, "--seed", "7")
    printed.add(*words)
    printed.add(*words, "--json", "--count", "40", "--speed", "60")
    return "\n".join(printed.lines)


def _replay(file: Path, whole: bool) -> str:
    name = save(file.name, file.read_bytes())
    return _printed((("replay", name), ("replay", name, "--json")), whole)


def _add(printed: _Printed, command: str, name: str) -> None:
    """Add the output of a command for saved output, in all its variants."""
    for more in STATUS if command == "status" else BALANCE:
        printed.add(command, "--from", name, *more)


def _saved_output(files: Sequence[Path], command: str, whole: bool) -> str:
    # For captures, which have several files, the part "libzfs" shows JSON of the same states.
    outlined = len(files) == 1 and files[0].parent.name != "reports"
    printed = _Printed(whole, outlined=outlined)
    for file in files:
        _add(printed, command, save(file.name, file.read_bytes()))
    return "\n".join(printed.lines)


def _cut(file: Path, lines: int, whole: bool) -> str:
    """Return the output for the first lines of a file where it differs from that for all."""
    printed, content = _Printed(whole, outlined=False), file.read_bytes()
    command = "balance" if "list" in (file.parent.name, file.name.partition("-")[0]) else "status"
    _add(printed, command, save(file.name, content))
    printed.lines.clear()
    cut = b"".join(content.splitlines(keepends=True)[:lines])
    _add(printed, command, save(f"cut-{file.name}", cut))
    return "\n".join(printed.lines)


def _state(forms: Mapping[str, Any], whole: bool) -> str:
    """Return the reports of recordings with one sample each."""
    printed = _Printed(whole, outlined=False)
    for form, raw in forms.items():
        _add(printed, "status", save(f"{form}.jsonl", json.dumps(raw).encode() + b"\n"))
    return "\n".join(printed.lines)
