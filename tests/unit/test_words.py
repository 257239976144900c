"""Phrases that were hard to read stay out of screens, messages, documents and code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.table import rows
from tests.unit.source import PACKAGE

ROOT = PACKAGE.parent
DOCUMENTS = (
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "zconsole/README.md")),
    *sorted((PACKAGE / "share").glob("*.*")),
)
BANNED = {
    r"all data alike": "assumes uniform data",
    r"all the same\?": "anyway?",
    r"appeared \(": "added (ONLINE)",
    r"at the pace of": "estimated from the last scrub's speed",
    r"at the rate of now": "at the present rate",
    r"back off above": "throttle above",
    r"checkpoint blocks completion": "a checkpoint prevents",
    r"checked now, and again": "preconditions (rechecked at run)",
    r"could try": "suggestion",
    r"do not touch": "do not remove",
    r"an empty word names": "empty argument",
    r"drop the hours": "scrub at any hour again",
    r"enter takes it": "Enter select",
    r"esc leaves it": "Esc back",
    r"ETA follows": "ETA 6h45m if it holds",
    r"everybody waits": "keeps the first paint fast",
    r"foretells?|foretold": "predicts, predicted",
    r"would gain nothing": "no benefit",
    r"go on without this console": "runs in the background",
    r"forced export": "do not reboot or export",
    r"gone since \d": "missing since",
    r"hold (?:the )?latency of": "limit application latency",
    r"how it was (?=\d)": "stale: 1m40s old",
    r"if it stays(?! stuck)": "if it holds",
    r"in it, is marked": "included via",
    r"is no (?:file|list|number|object|option|pool|recording|scan|size|vdev)\b": "is not a …",
    r"issuing at": "resilvering at, checking at",
    r"it is not possible": "what is in the way: resilver running (47.2 %)",
    r"it is not read any": "ZFS no longer reads this disk",
    r"it seems": "likely",
    r"here, now\b": "97 % of the estimated maximum",
    r"hold / end / go on with": "pause / stop / resume",
    r"is about changing": "not allowed with …",
    r"no terminal, so": "not a terminal: …",
    r"put back at the end": "restored",
    r"presets, set, put back": "restore",
    r"step asks nothing": "nothing to confirm here",
    r"swap open": "disk swap unfinished",
    r"tab, then type": "Type … to confirm",
    r"to move no more": "set the limit to …",
    r"(?-i:(?:read|write) wait)\b": "read latency, write latency",
    r"last ETA": "slowest ETA",
    r"late word": "a late signal",
    r"left and came back": "disconnected, returned",
    r"look there": "it may have failed: check it",
    r"look twice": "warnings",
    r"may be used before": "usable beyond what is kept free",
    r"mend(?:s|ed)?": "fix, fixed",
    r"no JSON\b(?! output)": "not JSON",
    r"no ZFS on this machine": "ZFS not found",
    r"no new device errors": "none since 12:04",
    r"nobody (?:gave|reads \S|runs a|takes it)": "say what is the case",
    r"not from here": "unavailable",
    r"nothing to take back": "no undo is needed here",
    r"only then its": "can only be checked then",
    r"out of place": "to move for an even pool",
    r"(?:pane|pool) before(?= *(?:[|\"]|$))": "previous pane, previous pool",
    r"part (?:goes|moves) back": "some data lands on the full vdevs again",
    r"put the cursor on the one": "select a device",
    r"question is answered": "after confirmation",
    r"\ba (?:bar|line|row) a \w+": "one row per device",
    r"(?-i:REPLACE \S+ BY)\b": "Replace bay05 with",
    r"remove no disk": "do not pull any other disk",
    r"rests on": "is based on",
    r"search for what to do": "type a command",
    r"seen by the console": "observed",
    r"that will be told": "you'll be notified",
    r"the disks themselves": "disk throughput",
    r"the same scans run": "no scan changed since planning",
    r"this pool tells": "unknown: no completed scan recorded",
    r"throws? it away": "discards this scrub",
    r"(?:a|one) (?:thirteenth|fourteenth|twentieth)": "1/14, 5 %",
    r"to even out": "to rebalance",
    r"told once": "each sent once",
    r"undoes the wrong pull": "no undo is needed here",
    r"wait until what runs": "wait for the resilver",
    r"wait\w* (?:for it )?without end": "hang",
    r"waits \S+ against": "latency 39ms, siblings 11ms",
    r"walking metadata": "finding blocks",
    r"what cannot be undone": "cannot be undone",
    r"what for, how far": "options",
    r"what prints": "commands that print",
    r"where it will lie": "predicted layout",
}
"""Banned phrases, matched as words in any case, and what to write instead."""
PATTERNS = {re.compile(rf"\b{banned}", re.IGNORECASE): better for banned, better in BANNED.items()}
ANY = re.compile(rf"\b(?:{'|'.join(BANNED)})", re.IGNORECASE)


def found(where: str, text: str) -> Iterator[str]:
    """Yield each banned phrase in a text, with its place and the replacement."""
    joined = " ".join(text.split())
    if not ANY.search(joined):
        return
    for pattern, better in PATTERNS.items():
        for match in pattern.finditer(joined):
            yield f"{where}: {match[0]!r}: better {better!r}"


def texts(source: str) -> Iterator[tuple[int, str]]:
    """Yield every string, docstring and comment of a module with its line; f-strings as text."""
    inside: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            inside.update(id(each) for each in node.values)
            yield node.lineno, "".join(_word(each) for each in node.values)
        elif isinstance(node, ast.Constant) and id(node) not in inside:
            yield node.lineno, node.value if isinstance(node.value, str) else ""
    yield from _comments(source)


def _word(part: ast.expr) -> str:
    return str(part.value) if isinstance(part, ast.Constant) else "0"


def _comments(source: str) -> Iterator[tuple[int, str]]:
    """Yield comments, with adjacent ones joined; also text after a # in a string."""
    block: list[str] = []
    for number, line in enumerate((*source.splitlines(), ""), 1):
        _, mark, comment = line.partition("#")
        if mark:
            block.append(comment.strip("# "))
        elif block:
            yield number - len(block), " ".join(block)
            block = []


@pytest.mark.slow
def test_no_banned_phrase_is_in_the_package():
    seen = [
        line
        for path in sorted(PACKAGE.rglob("*.py"))
        for number, text in texts(path.read_text("utf-8"))
        for line in found(f"{path.relative_to(ROOT)}:{number}", text)
    ]
    assert seen == []


@pytest.mark.slow
@rows("path", DOCUMENTS)
def test_no_banned_phrase_is_in_a_document(path: Path):
    assert list(found(path.name, path.read_text("utf-8"))) == []


PLANTED = '''
"""A row a device, and it rests on
two figures."""

def f(x):
    # Few ask, and
    # everybody waits for this.
    raise ValueError(f"{x} is no file: it {x} seems") from OSError("it seems")
'''


def test_a_phrase_is_found_wherever_it_is_written():
    said = [line for number, text in texts(PLANTED) for line in found(str(number), text)]
    assert {line.split("'")[1].lower() for line in said} == {
        "a row a device",
        "rests on",
        "everybody waits",
        "is no file",
        "it seems",
    }
    assert any(line.startswith("6: ") for line in said)


@rows("banned", BANNED)
def test_what_is_better_is_not_itself_banned(banned: str):
    assert list(found("", BANNED[banned])) == []


def test_documents_are_those_of_the_package():
    assert {path.suffix for path in DOCUMENTS} >= {".md", ".toml", ".json"}
