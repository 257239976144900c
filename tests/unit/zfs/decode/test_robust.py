"""Damaged input is decoded as far as possible, or refused with the one documented error."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.unit.zfs.decode.typed import mistyped
from zconsole.errors import NotUnderstoodError
from zconsole.pool.model import Pool, Sample, SampleFailure
from zconsole.zfs.decode import decode
from zconsole.zfs.decode.decoder import latest
from zconsole.zfs.decode.listing import capacities

pytestmark = pytest.mark.slow

FIXTURES = Path(__file__).parents[3] / "fixtures"
TEXTS = [
    path.read_text()
    for pattern in ("corpus/status/*.txt", "captures/*/*/status*.txt")
    for path in sorted(FIXTURES.glob(pattern))
]
TABLES = [
    path.read_text()
    for pattern in ("corpus/list/*.txt", "corpus/iostat/*.txt", "captures/*/*/list*")
    for path in sorted(FIXTURES.glob(pattern))
]
DOCUMENTS = [
    ("libzfs" if path.name == "libzfs.json" else "status", json.loads(path.read_text()))
    for path in sorted(FIXTURES.glob("captures/2.[34]*/*/*.json"))
    if path.name != "list.json"
]
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(["12.9T", "-", "", "CANT_OPEN", "SCANNING", "disk", "raidz"]),
    st.lists(st.integers(0, 9), max_size=5),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)
PIECES = ("\n", "\t", "  pool: x\n", " state:", "config:\n", "errors: ", "NAME STATE\n")
SNIPPETS = st.one_of(st.text(max_size=8), st.sampled_from(PIECES))


def outcome(read: Callable[[], Any]) -> Any:
    """Return a reader's result, or the one-line message of the documented error."""
    try:
        return read()
    except NotUnderstoodError as error:
        return str(error)


def assert_decodes(raw: dict[str, Any]) -> None:
    """Check that decoding gives samples or the documented error, in one line."""
    found = outcome(lambda: decode(raw))  # type: ignore[arg-type]
    if isinstance(found, str):
        assert found
        assert "\n" not in found
    else:
        assert all(isinstance(sample, (Sample, SampleFailure)) for sample in found)
        assert [line for sample in found for line in mistyped(sample)] == []
        assert all(_showable(sample.pool) for sample in found if isinstance(sample, Sample))


def _showable(pool: Pool) -> bool:
    """Return whether every time in it can be shown as a date."""
    times = [t for scan in pool.scans for t in (scan.start, scan.end, scan.paused_since)]
    return all(datetime.fromtimestamp(t, UTC).year > 1900 for t in times if t is not None)


@st.composite
def damaged(draw: st.DrawFn, texts: list[str]) -> str:
    """Draw a real output cut short, with pieces of it deleted, moved or replaced."""
    text = draw(st.sampled_from(texts))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 40)))
        text = text[:start] + draw(SNIPPETS) + text[end:]
    return text[: draw(st.integers(0, len(text)))] if draw(st.booleans()) else text


def _with_damage(draw: st.DrawFn, value: Any, depth: int) -> Any:
    if not depth or not isinstance(value, (dict, list)) or not value:
        return draw(ODD)
    if isinstance(value, dict):
        key = draw(st.sampled_from(sorted(value)))
        if draw(st.integers(0, 4)) == 0:
            return {k: v for k, v in value.items() if k != key}
        return {**value, key: _with_damage(draw, value[key], depth - 1)}
    index = draw(st.integers(0, len(value) - 1))
    if draw(st.integers(0, 4)) == 0:
        return value[:index]
    return [*value[:index], _with_damage(draw, value[index], depth - 1), *value[index + 1 :]]


def _places(value: Any) -> list[tuple[Any, ...]]:
    """Return the path to every member of a document."""
    if isinstance(value, dict):
        inner = value.items()
    elif isinstance(value, list):
        inner = enumerate(value)  # type: ignore[assignment]
    else:
        return []
    return [place for key, v in inner for place in [(key,), *((key, *p) for p in _places(v))]]


@cache
def _form(index: int) -> tuple[str, str, list[tuple[Any, ...]]]:
    form, document = DOCUMENTS[index]
    return form, json.dumps(document), _places(document)


@st.composite
def spoilt_documents(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a document with one member of the wrong type, somewhere."""
    form, text, places = _form(draw(st.integers(0, len(DOCUMENTS) - 1)))
    document = json.loads(text)
    *path, last = places[draw(st.integers(0, len(places) - 1))]
    node = document
    for key in path:
        node = node[key]
    node[last] = draw(ODD)
    return {"t": 1.0, form: document}


@st.composite
def damaged_documents(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a document with pieces missing, cut short or replaced."""
    form, document = draw(st.sampled_from(DOCUMENTS))
    for _ in range(draw(st.integers(1, 3))):
        document = _with_damage(draw, document, draw(st.integers(1, 9)))
        if not isinstance(document, dict):
            break
    return {"t": 1.0, form: document}


@given(damaged(TEXTS))
@example("NAME STATE\n")
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_damaged_text(text: str) -> None:
    assert_decodes({"t": 1.0, "text": text})


@given(st.text())
@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
def test_any_text(text: str) -> None:
    assert_decodes({"t": 1.0, "text": text})


@given(spoilt_documents())
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_one_member_of_the_wrong_type(raw: dict[str, Any]) -> None:
    assert_decodes(raw)


@given(damaged_documents())
@example({"t": 1.0, "status": {"pools": {"\n": 0}}})
@example({"t": 1.0, "status": {"pools": {"\n": {}}}})
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_damaged_documents(raw: dict[str, Any]) -> None:
    assert_decodes(raw)


@given(st.dictionaries(st.sampled_from(["t", "libzfs", "status", "text", "problem", "list"]), ODD))
@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
def test_any_record(raw: dict[str, Any]) -> None:
    assert_decodes(raw)


@given(damaged(TABLES))
@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
def test_damaged_listings(text: str) -> None:
    for reader in (capacities, partial(latest, pool="tank")):
        assert "\n" not in str(outcome(partial(reader, text)))


@given(st.just(TEXTS[0]) | damaged(TEXTS), damaged(TABLES), damaged(TABLES), st.text(max_size=30))
@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
def test_damaged_additions_leave_the_sample(text: str, rows: str, listing: str, wait: str) -> None:
    raw = {"t": 1.0, "text": text, "iostat": rows, "list": listing, "wait": wait}
    assert_decodes(raw)
    if text == TEXTS[0]:
        assert len(decode(raw)) == 1  # type: ignore[arg-type]
