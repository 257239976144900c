"""Compares what the decoder reads with a sample's hand-written ``.expect.json``.

``ZCONSOLE_CORPUS=dir pytest tests/unit/zfs/decode`` runs it on another directory of samples with
the same layout. ``tests/fixtures/corpus/README.md`` has the conventions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from zconsole.pool.model import Pool, Sample, Scan, Vdev
from zconsole.units import parse_duration, size
from zconsole.zfs.decode import decode
from zconsole.zfs.decode.values import aux_text

_STATES = {"in_progress": "running"}
_UNITS = " KMGTPE"
_SECTIONS = {"logs": "log", "cache": "cache", "special": "special", "dedup": "dedup"}
_DESCRIPTIVE = {"note", "features", "raw"}
"""Keys of a pool or scan that describe the sample and are not compared."""


def differences(sample: Path) -> list[str]:
    """Return how the decoded sample differs from ``SAMPLE.expect.json``, one line each."""
    expected = json.loads(sample.with_name(f"{sample.stem}.expect.json").read_text())
    text = sample.read_text(errors="surrogateescape")
    form: dict[str, Any] = (
        {"status": json.loads(text)} if sample.suffix == ".json" else {"text": text}
    )
    samples = decode({"t": 1.8e9, **form})  # type: ignore[typeddict-item]
    pools = [s.pool for s in samples if isinstance(s, Sample)]
    if len(pools) != len(expected["pools"]):
        return [f"{len(pools)} pools, not {len(expected['pools'])}"]
    found = []
    for pool, wanted in zip(pools, expected["pools"], strict=True):
        found += [f"{wanted['name']}: {line}" for line in _pool(pool, wanted)]
    return found


def sized(value: float | None) -> str | None:
    """Return a number in zpool's own rounding, which two forms of one moment share."""
    return None if value is None else size(value)


def _check(what: str, got: object, wanted: object) -> Iterator[str]:
    if got != wanted:
        yield f"{what} is {got!r}, not {wanted!r}"


def _pool(pool: Pool, wanted: dict[str, Any]) -> Iterator[str]:
    readers = {
        "name": lambda: _check("name", pool.name or None, wanted["name"]),
        "state": lambda: _check("state", pool.state, wanted["state"]),
        "scan": lambda: _scan(pool, wanted["scan"]),
        "other_scans": lambda: _other_scans(pool, wanted["other_scans"]),
        "vdevs": lambda: _check("number of leaves", len(_leaves(pool)), wanted["vdevs"]),
        "top_level": lambda: _check("top level", _tops(pool), wanted["top_level"]),
        "leaves": lambda: _rows("leaf", _leaves(pool), wanted["leaves"]),
        "interior": lambda: _check("interior", _interior(pool), wanted["interior"]),
        "spares": lambda: _spares(pool, wanted["spares"]),
        "error_count": lambda: _check("error_count", pool.error_count, wanted["error_count"]),
        "errors_line": lambda: _errors(pool, wanted["errors_line"], wanted),
        "error_files": lambda: _check("files", list(pool.errors or ()), wanted["error_files"]),
        "root_note": lambda: _check("root note", pool.root.note, wanted["root_note"]),
        "root_counters": lambda: _counters("root", pool.root, wanted["root_counters"]),
    }
    for key in wanted:
        if key in readers:
            yield from readers[key]()
        elif key in _SECTIONS:
            leaves = [leaf for top in _of_class(pool, _SECTIONS[key]) for leaf in top.leaves()]
            yield from _rows(key, leaves, wanted[key])
        elif key.removesuffix("_top") in _SECTIONS:
            names = [v.name for v in _of_class(pool, _SECTIONS[key[:-4]]) if v.children]
            yield from _check(key, names, [_first(row) for row in wanted[key]])
    yield from _activities(pool, wanted)


def _first(row: Any) -> Any:
    return row if isinstance(row, str) else row[0]


def _of_class(pool: Pool, vclass: str) -> list[Vdev]:
    return [vdev for vdev in pool.root.children if vdev.vclass == vclass]


def _leaves(pool: Pool) -> list[Vdev]:
    return [leaf for top in _of_class(pool, "normal") for leaf in top.leaves()]


def _tops(pool: Pool) -> list[str]:
    return [vdev.name for vdev in _of_class(pool, "normal")]


def _interior(pool: Pool) -> list[list[Any]]:
    groups = [vdev for vdev in pool.root.walk() if vdev.kind in ("replacing", "spare")]
    return [[v.name, v.state, [c.name for c in v.children]] for v in groups if v.children]


def _spares(pool: Pool, wanted: list[list[str]]) -> Iterator[str]:
    got = [[vdev.name, vdev.state, vdev.note] for vdev in _of_class(pool, "spare")]
    yield from _check("spares", got, wanted)


def _rows(what: str, leaves: list[Vdev], wanted: list[list[Any]]) -> Iterator[str]:
    names = [leaf.name for leaf in leaves]
    yield from _check(f"{what} names", names, [row[0] for row in wanted])
    for leaf, row in zip(leaves, wanted, strict=False):
        yield from _check(f"{leaf.name} state", leaf.state, row[1])
        yield from _counters(leaf.name, leaf, row[2:5])
        yield from _check(f"{leaf.name} note", leaf.note, _note(row[5]))


def _note(text: str) -> str:
    """Return a note, or the text for an auxiliary state that a JSON sample should have."""
    return aux_text(text) if re.fullmatch(r"[A-Z]+(_[A-Z]+)*", text) else text


def _counters(what: str, vdev: Vdev, wanted: list[Any]) -> Iterator[str]:
    errors = vdev.errors
    got = [errors.read, errors.write, errors.cksum]
    yield from _check(f"{what} counters", got, [parsed(value) for value in wanted])


def parsed(value: Any) -> int | None:
    """Return the bytes of a printed size or rate, without the package's own parser."""
    if value is None or isinstance(value, int):
        return value
    number, unit = re.fullmatch(r"([\d.,]+)([BKMGTPE]?)(?:/s)?", value).groups()  # type: ignore[union-attr]
    exponent = _UNITS.index(unit) if unit and unit != "B" else 0
    return round(float(number.replace(",", ".")) * 1024**exponent)


def _time(value: Any) -> float | None:
    if value is None or isinstance(value, (int, float)):
        return value
    return datetime.strptime(value, "%a %b %d %H:%M:%S %Y").replace(tzinfo=UTC).timestamp()


def _scan(pool: Pool, wanted: dict[str, Any]) -> Iterator[str]:
    """Compare the running scan; if none runs, the sample's first with the model's newest."""
    candidates = pool.scans if pool.scans and not pool.scans[0].active else (pool.scan,)
    tries = [list(_one_scan(scan, wanted)) for scan in candidates]
    yield from min(tries, key=len)


def _other_scans(pool: Pool, wanted: list[dict[str, Any]]) -> Iterator[str]:
    yield from _check("number of scans", len(pool.scans), len(wanted) + 1)
    for other in wanted:
        yield from min((list(_one_scan(scan, other)) for scan in pool.scans), key=len)


def _one_scan(scan: Scan, wanted: dict[str, Any]) -> Iterator[str]:
    total = scan.total_bytes
    got: dict[str, Any] = {
        "function": scan.function,
        "state": scan.state,
        "stage": scan.stage,
        "vdev": scan.vdev,
        "scanned": scan.scanned_bytes,
        "issued": scan.issued_bytes,
        "total": total,
        "issued_total": None if total is None else total - (scan.skipped_bytes or 0),
        "processed": scan.processed_bytes,
        "rate_scan": scan.zpool_scan_rate,
        "rate_issue": scan.zpool_issue_rate,
        "percent": scan.percent,
        "eta": scan.zpool_eta,
        "errors": scan.errors,
        "started": scan.start,
        "ended": scan.end,
        "paused": scan.paused_since,
        "duration": scan.duration,
    }
    exact = isinstance(wanted.get("scanned"), int)
    for key, value in wanted.items():
        if key in _DESCRIPTIVE or (exact and key in ("duration", "percent", "eta", "rate_issue")):
            continue  # JSON samples lack these; the decoder computes them
        if key not in got:
            yield f"scan has an expectation {key} that nothing compares"
        else:
            yield from _check(f"scan {key}", got[key], _scan_value(key, value))


def _scan_value(key: str, value: Any) -> Any:
    if key == "state":
        return _STATES.get(value, value)
    if key in ("started", "ended", "paused"):
        return _time(value)
    if key in ("eta", "duration"):
        return None if value is None else parse_duration(value)
    if key in ("function", "stage", "vdev", "percent", "errors"):
        return value
    return parsed(value)


def _errors(pool: Pool, line: str | None, wanted: dict[str, Any]) -> Iterator[str]:
    if line is None:
        if "error_count" not in wanted:
            yield from _check("error_count", pool.error_count, None)
    elif "No known data errors" in line:
        yield from _check("errors", (pool.error_count, pool.errors), (0, ()))
    elif match := re.match(r"errors: (\d+) data error", line):
        yield from _check("errors", (pool.error_count, pool.errors), (int(match[1]), None))
    elif "error_files" in wanted:
        yield from _check("error_count", pool.error_count, len(wanted["error_files"]))


def _activities(pool: Pool, wanted: dict[str, Any]) -> Iterator[str]:
    kinds = {"expand": "expansion", "remove": "removal", "checkpoint": "checkpoint"}
    for key, kind in kinds.items():
        if wanted.get(key) and not any(a.kind == kind for a in pool.activities):
            yield f"no {kind}"
