"""No regular expression of the program takes more than linear time, whatever text it is given.

Each pattern is run with the methods it is used with, on texts made from itself: a repeated part, or
the whole, many times over, with an end that does not match. Four times the length may take at most
eight times the CPU time of this thread; a pattern that tries every end of a run from every start
takes sixteen times.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import importlib
import math
import pkgutil
import random
import re
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import zconsole
from tests.table import rows
from zconsole.errors import NotUnderstoodError
from zconsole.system.patient import cpu_limit
from zconsole.timeline.session import Session
from zconsole.zfs.decode import decode
from zconsole.zfs.decode.listing import capacities
from zconsole.zfs.raw import Raw
from zconsole.zfs.sources import saved
from zconsole.zfs.sources.saved import as_printed
from zconsole.zfs.sources.zpool import config_names

pytestmark = pytest.mark.slow

LENGTH = 1000
TOO_SOON = 0.002
"""CPU seconds; if four times the length takes less, it is not measured again."""
MOST_GROWTH = 8.0
GIVE_UP = 3
"""CPU seconds after which a pattern is assumed to never end."""
METHODS = ("match", "fullmatch", "search", "finditer")
LIKE = {"sub": "finditer", "subn": "finditer", "split": "finditer", "findall": "finditer"}
"""Methods that scan a text like another one does."""
_CALLED = re.compile(rf"\.(?:{'|'.join((*METHODS, *LIKE))})\b")
_parser, _codes = importlib.import_module("re._parser"), importlib.import_module("re._constants")


class Used(NamedTuple):
    """A pattern, and the methods the program uses it with."""

    pattern: re.Pattern[Any]
    methods: frozenset[str]


def _sources() -> Iterator[tuple[str, str]]:
    for found in pkgutil.walk_packages(zconsole.__path__, "zconsole."):
        if not found.name.endswith("__main__"):
            source = importlib.util.find_spec(found.name)
            assert source is not None
            assert source.origin is not None
            yield found.name, Path(source.origin).read_text()


def _uses(source: str) -> Iterator[tuple[str, str, ast.Call | None]]:
    """Yield every ``name.method`` or ``module.name.method`` that searches, and its call.

    The call is None if the method is passed on: ``takewhile(_NAME.match, …)``.
    """
    if not _CALLED.search(source):
        return
    nodes = list(ast.walk(ast.parse(source)))
    calls = {id(node.func): node for node in nodes if isinstance(node, ast.Call)}
    for node in nodes:
        if not isinstance(node, ast.Attribute):
            continue
        if (method := LIKE.get(node.attr, node.attr)) in METHODS:
            name = getattr(node.value, "id", None) or getattr(node.value, "attr", "")
            yield name, method, calls.get(id(node))


@cache
def patterns() -> dict[str, Used]:
    by_name: defaultdict[str, set[str]] = defaultdict(set)
    found: dict[str, Used] = {}
    sources = dict(_sources())
    for module, source in sources.items():
        private: defaultdict[str, set[str]] = defaultdict(set)
        for name, method, call in _uses(source):
            (private if name.startswith("_") else by_name)[name].add(method)
            if name == "re" and call and isinstance(call.args[0], ast.Constant):
                text, flags = call.args[0].value, "MULTILINE" in ast.unparse(call)
                pattern = re.compile(text, re.MULTILINE if flags else 0)
                found[f"{module}:{text!r}"] = Used(pattern, frozenset({method}))
        for name, value in vars(importlib.import_module(module)).items():
            if isinstance(value, re.Pattern) and name.startswith("_"):
                found[f"{module}.{name}"] = Used(value, frozenset(private[name]))
    for module in sources:
        for name, value in vars(importlib.import_module(module)).items():
            if isinstance(value, re.Pattern) and not name.startswith("_"):
                found[f"{name}:{value.pattern!r}"] = Used(value, frozenset(by_name[name]))
    return found


class Writer:
    """Writes texts that a pattern matches, and records what is repeated in it."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.repeated: set[tuple[str, str]] = set()
        """Text before a part that may be repeated without limit, and the part."""

    def write(self, parsed: Any) -> str:
        text = ""
        for code, given in parsed:
            text += self._part(str(code), given, text)
        return text

    def _part(self, code: str, given: Any, before: str) -> str:  # noqa: PLR0911 - one a kind
        match code:
            case "LITERAL":
                return chr(given)
            case "NOT_LITERAL":
                return "a" if given != ord("a") else "b"
            case "ANY":
                return self._random.choice("a1 ")
            case "IN":
                return self._random.choice(_members(given))
            case "BRANCH":
                return self.write(self._random.choice(given[1]))
            case "SUBPATTERN":
                return self.write(given[3])
            case "ATOMIC_GROUP":
                return self.write(given)
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                least, most, inner = given
                piece = self.write(inner)
                if piece and most > 100:
                    self.repeated.add((before, piece))
                return piece * max(least, self._random.randint(0, 1))
        return ""  # assertions


def _members(parsed: Any) -> list[str]:
    """Return some characters of a class."""
    known = {"DIGIT": "1", "SPACE": " \n\t", "WORD": "a1_", "NOT_SPACE": "a1-"}
    negated = str(parsed[0][0]) == "NEGATE"
    chars = ""
    for code, given in parsed:
        match str(code):
            case "LITERAL":
                chars += chr(given)
            case "RANGE":
                chars += (
                    "".join(map(chr, range(given[0], given[1] + 1))) if negated else chr(given[0])
                )
            case "CATEGORY":
                chars += known.get(str(given).removeprefix("CATEGORY_"), "")
    return [char for char in "a1 A-/.:(<{" if char not in chars] if negated else list(chars)


def texts(pattern: re.Pattern[Any]) -> set[tuple[str, str]]:
    """Return prefixes and the parts to repeat after them."""
    parsed = _parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)
    found: set[tuple[str, str]] = set()
    for seed in range(6):
        writer = Writer(seed)
        whole = writer.write(parsed)
        for before, piece in writer.repeated:
            found |= {("", piece), (before, piece), ("", before + piece)}
        found |= {("", whole), ("", whole[:-1]), ("", whole[: len(whole) // 2]), ("", whole + "\n")}
    return {(before, piece) for before, piece in found if piece}


def _cpu(call: Callable[[Any], object], text: Any) -> float:
    gc.disable()  # collecting would take longer the more the process holds
    try:
        began = time.thread_time()
        call(text)
        return time.thread_time() - began
    finally:
        gc.enable()


def _grows(call: Callable[[Any], object], text: Callable[[int], Any], length: int) -> bool:
    """Return whether four times the length takes more than linear time, best of three tries."""
    long = short = math.inf
    for _ in range(3):
        long = min(long, _cpu(call, text(4 * length)))
        if long < TOO_SOON:
            return False
        short = min(short, _cpu(call, text(length)))
        if long < MOST_GROWTH * short:
            return False
    return True


@rows("place", lambda: sorted(patterns()))
def test_a_pattern_takes_linear_time(place: str) -> None:
    pattern, used = patterns()[place]
    methods = used & set(METHODS) or METHODS  # a passed-on method may be any
    for start, piece in sorted(texts(pattern)):
        for end in ("\x00", "!\n"):

            def text(length: int, parts: tuple[str, str, str] = (start, piece, end)) -> Any:
                whole = parts[0] + parts[1] * (length // len(parts[1]) + 1) + parts[2]
                return whole.encode() if isinstance(pattern.pattern, bytes) else whole

            for method in methods:
                found = getattr(pattern, method)
                call = _exhausted(found) if method == "finditer" else found
                with cpu_limit(GIVE_UP):
                    assert not _grows(call, text, LENGTH), (method, start, piece, end)


def _exhausted(found: Callable[[Any], Iterator[Any]]) -> Callable[[Any], object]:
    return lambda text: deque(found(text), 0)


STATUS = """\
  pool: tank
 state: DEGRADED
status: One or more devices is currently being resilvered.  The pool will
\tcontinue to function, possibly in a degraded state.
action: Wait for the resilver to complete.
  scan: resilver in progress since Sun Aug  3 15:14:45 2014
\t1.27T / 3.71T scanned at 1.1G/s, 780G / 3.71T issued at 675M/s
\t97.5G resilvered, 20.53% done, 01:16:40 to go
remove: Evacuation of sdb in progress since Sun Aug  3 15:14:45 2014
\t1.27T copied out of 3.71T at 675M/s, 20.53% done, 01:16:40 to go
checkpoint: created Sun Aug  3 15:14:45 2014, consumes 97.5G
config:

\tNAME                        STATE     READ WRITE CKSUM
\ttank                        DEGRADED     0     0     0
\t  raidz2-0                  DEGRADED     0     0     0
\t    replacing-0             DEGRADED     0     0     0
\t      12345678901234567890  UNAVAIL      0     0     0  was /dev/sda1
\t      sdb                   ONLINE       0     0     0  (resilvering)
\t    sdc                     ONLINE       0     0     3  (12% trimmed, started at Sun Aug  3)
\t    sdd                     ONLINE       0     0     0  block size: 512B configured, 4096B native
\tspares
\t  sde                       AVAIL

errors: Permanent errors have been detected in the following files:

        /tank/a b
        tank/data:<0x12>
"""
LIST = """\
NAME           SIZE  ALLOC   FREE  CKPOINT  EXPANDSZ   FRAG    CAP  DEDUP    HEALTH  ALTROOT
tank          3.62T  1.27T  2.35T        -         -     9%    35%  1.00x    ONLINE  -
  raidz2-0    3.62T  1.27T  2.35T        -         -     9%  35.1%      -    ONLINE
    sda       1.81T      -      -        -         -      -      -      -    ONLINE
special           -      -      -        -         -      -      -      -         -
"""
SHORT = 8192
"""Length of texts, in characters."""
LINES = ("0,0,0,0,\n", "xxxxxxxx\n", " 0000000\n")
"""Lines that may continue a row or a name; shorter ones would only add more of the same."""


def _longer(printed: str) -> Iterator[Callable[[int], str]]:
    """Yield functions that lengthen an output: they repeat a line of it, or a part of a line.

    Adjacent rows, which the same code reads, share the ways among them.
    """
    whole = printed.splitlines(keepends=True)
    for at, line in enumerate(whole):
        before, after = "".join(whole[:at]), "".join(whole[at + 1 :])
        word = line.split()[-1] if line.split() else ""
        last = line[:-1].rstrip()[-1:]
        ways = (
            (line, ""), (line[:-1] + ",\n", ""), (line[:-1] + " ", "\n"),
            (line[:-1].rstrip() + "0" + ",", "\n"), (word + " ", "\n"), (last, "\n"), ("0", "\n"),
            ("(", "\n"), (" ", "x\n"), ("\t", "x\n"), *((often, "") for often in LINES),
        )  # fmt: skip
        for piece, end in ways[at % 3 :: 3] if line.startswith(("\t  ", "  raid")) else ways:
            if piece:
                first = line[:-1] if end else line

                def made(
                    length: int, parts: tuple[str, ...] = (before + first, piece, end + after)
                ) -> str:
                    return parts[0] + parts[1] * (length // len(parts[1])) + parts[2]

                yield made


def _read(text: str) -> None:
    """Do everything that is done with saved output, or with output of another machine."""
    printed = as_printed(text, saved.STATUS)
    with contextlib.suppress(NotUnderstoodError):
        decode(Raw(t=0.0, pool="tank", text=printed))
    deque(config_names(text), 0)


def _read_list(text: str) -> None:
    with contextlib.suppress(NotUnderstoodError):
        capacities(as_printed(text, saved.LIST))


@rows(("printed", "read"), [(STATUS, _read), (LIST, _read_list)])
def test_an_output_takes_linear_time(printed: str, read: Callable[[str], None]) -> None:
    for made in _longer(printed):
        with cpu_limit(10 * GIVE_UP):
            assert not _grows(read, made, SHORT), made(200)


def _pool(count: int) -> Raw:
    """Return a status with ``count`` spares in use, as another machine may print it."""

    def leaf(name: str, state: str) -> dict[str, str]:
        return {"name": name, "vdev_type": "disk", "guid": str(int(name, 36)), "state": state}

    groups = {
        f"spare-{at}": {
            "name": f"spare-{at}", "vdev_type": "spare", "guid": f"8{at}", "state": "DEGRADED",
            "vdevs": {f"d{at}": leaf(f"d{at}", "FAULTED"), f"s{at}": leaf(f"s{at}", "ONLINE")},
        }
        for at in range(count)
    }  # fmt: skip
    root = {"name": "tank", "vdev_type": "root", "guid": "1", "state": "ONLINE", "vdevs": groups}
    spares = {f"s{at}": leaf(f"s{at}", "INUSE") for at in range(count)}
    pool = {"name": "tank", "state": "ONLINE", "pool_guid": "1", "error_count": "0"}
    pools = {"tank": {**pool, "vdevs": {"tank": root}, "spares": spares}}
    return Raw(t=1e9, pool="tank", status={"pools": pools})


def test_many_devices_take_linear_time() -> None:
    grown = _cpu(lambda raw: Session().advance([raw]), _pool(1600)) / min(
        _cpu(lambda raw: Session().advance([raw]), _pool(200)) for _ in range(3)
    )
    assert grown < 2 * MOST_GROWTH
