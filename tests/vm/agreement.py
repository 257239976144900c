"""Comparison of libzfs, JSON and text for the same pool, with the omissions allowed to each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.vm.states import NOT_UTF8, NOTHING, State
from zconsole.output.json import line, sample_object
from zconsole.pool.model import Pool, Sample
from zconsole.timeline.session import Session
from zconsole.units import parse_size, size, size_resolution
from zconsole.zfs.decode import decode

BYTES = ("total_bytes", "scanned_bytes", "issued_bytes", "processed_bytes")
MOVEMENT = 0.5
"""Share of a running scan's total by which it may advance while the sources are read."""

Node = dict[str, Any]


def decoded(raws: Mapping[str, Any]) -> dict[str, Node]:
    """Decode each source's raw form into a sample, as the guest did with the same forms."""
    frames = {source: Session().advance([raw]) for source, raw in raws.items()}
    return {source: json.loads(line(sample_object(frame))) for source, (frame,) in frames.items()}


def pools(raws: Mapping[str, Any]) -> dict[str, Pool]:
    """Return the pool of each source's raw form."""
    found = {source: decode(raw) for source, raw in raws.items()}
    return {s: sample.pool for s, (sample,) in found.items() if isinstance(sample, Sample)}


def nodes(tree: Node) -> Iterator[Node]:
    yield tree
    for child in tree["children"]:
        yield from nodes(child)


def shape(tree: Node) -> tuple[Any, ...]:
    note = "" if tree["note"].startswith("(uninit") else tree["note"]
    words = (tree["name"], tree["kind"], tree["class"], tree["state"], note)
    marks = (tree["resilvering"], tree["awaiting_resilver"])
    return (*words, *marks, tuple(shape(child) for child in tree["children"]))


def unmarked(tree: Node, below: bool = False) -> Node:
    """Return the tree without marks on the disks of a dRAID.

    JSON does not show which of them a rebuild has reached.
    """
    below = below or tree["kind"].startswith("draid")
    marked = below and tree["note"] == "(resilvering)"
    changes = {"note": "", "resilvering": False} if marked else {}
    return tree | changes | {"children": [unmarked(child, below) for child in tree["children"]]}


def counters(tree: Node) -> list[tuple[int | None, ...]]:
    return [(n["read"], n["write"], n["cksum"]) for n in nodes(tree)]


def same_to_rounding(text: int | None, exact: int | None, moved: float) -> bool:
    """Return whether a printed figure matches an exact one that is off by up to ``moved`` bytes."""
    if text is None or exact is None:
        return True
    slack = size_resolution(size(exact)) + size_resolution(size(text)) + 1
    return abs(text - (parse_size(size(exact)) or 0)) <= moved + slack


def assert_agree(found: Mapping[str, Node], state: State) -> None:
    """Compare the samples of one state, by source (`zconsole status --json` of each)."""
    problems = {source: sample["problem"] for source, sample in found.items()}
    assert not any(problems.values()), problems
    text = found["text"]
    for source, sample in found.items():
        assert sample["exact"] is (source != "text"), source
        assert (sample["pool"], sample["state"]) == (text["pool"], text["state"]), source
        blind = source == "json" and state.shows == "rebuild running"
        trees = [each["topology"] for each in (sample, text)]
        one, other = (shape(unmarked(tree) if blind else tree) for tree in trees)
        assert one == other, source
        assert counters(sample["topology"]) == counters(text["topology"]), source
        assert sample["redundancy"] == text["redundancy"], source
        assert sample["error_count"] == text["error_count"], source
        assert sample["message"] == text["message"], source
        assert told(sample) == told(text), source
        assert state.shows in shown(sample), (source, shown(sample))
        assert_damage_agrees(sample, state, source)
        assert_scans_agree(sample, text, state.moving, source)


def told(sample: Node) -> list[tuple[Any, ...]]:
    """Return the activities that every source reports: text omits a trim that is over."""
    return [
        (found["kind"], found["state"], found["vdev"])
        for found in sample["activities"]
        if found["kind"] not in ("trim", "initialize") or found["state"] == "running"
    ]


def shown(sample: Node) -> set[str]:
    """Return every scan and activity in two words: ``scrub paused``."""
    scans = {f"{scan['function']} {scan['state']}" for scan in sample["scans"]}
    return scans | {f"{kind} {state}" for kind, state, _ in told(sample)} or {NOTHING}


def assert_damage_agrees(sample: Node, state: State, source: str) -> None:
    """Check the names of damaged files; zpool's JSON stops at a name that is not UTF-8."""
    unnamed = source == "json" and NOT_UTF8 in state.damaged
    expected = None if unnamed else sorted(state.damaged)
    names = sample["errors"]
    assert (names if names is None else sorted(names)) == expected, source


def assert_scans_agree(sample: Node, text: Node, moving: bool, source: str) -> None:
    for scan, printed in zip(sample["scans"], text["scans"], strict=False):
        for key in ("function", "state", "vdev", "stage"):
            assert scan[key] == printed[key], (source, key)
        if scan["state"] == "finished":
            assert scan["errors"] == printed["errors"], source
        moved = (
            MOVEMENT * (scan["total_bytes"] or 0) if moving and scan["state"] == "running" else 0
        )
        for key in BYTES:
            shown = (source, key, scan, printed)
            assert same_to_rounding(printed[key], scan[key], moved), shown
