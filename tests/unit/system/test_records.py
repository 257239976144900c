from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import pytest

from tests.table import rows
from zconsole.system.records import RecordError, from_json


class Point(NamedTuple):
    x: float
    y: float


@dataclass(frozen=True)
class Inner:
    name: str
    count: int = 0


@dataclass(frozen=True)
class Outer:
    name: str | None
    share: float
    on: bool
    inner: tuple[Inner, ...] = ()
    points: tuple[Point, ...] = ()
    pair: tuple[str, int] = ("", 0)
    by_name: Mapping[str, Inner] = field(default_factory=dict)


GOOD = {"name": None, "share": 1, "on": True}


def test_a_record_is_made_of_all_its_parts():
    parts = {"inner": [{"name": "a", "count": 2}], "by_name": {"b": {"name": "b"}}}
    found = from_json(Outer, {**GOOD, **parts, "points": [[1, 2.5]], "pair": ["p", 3]})
    assert found == Outer(
        *(None, 1, True, (Inner("a", 2),), (Point(1, 2.5),), ("p", 3), {"b": Inner("b")})
    )


@rows(
    ("data", "said"),
    [
        ([], "the record is not an object"),
        ({"share": 1, "on": True}, "name is missing"),
        ({**GOOD, "more": 1}, "more is unknown"),
        ({**GOOD, "name": 7}, "name is not text"),
        ({**GOOD, "share": "1"}, "share is not a number"),
        ({**GOOD, "share": True}, "share is not a number"),
        ({**GOOD, "share": None}, "share is not a number"),
        ({**GOOD, "share": float("nan")}, "share is out of range"),
        ({**GOOD, "share": float("inf")}, "share is out of range"),
        ({**GOOD, "share": 10**400}, "share is out of range"),
        ({**GOOD, "on": 1}, "on is not true or false"),
        ({**GOOD, "inner": {}}, "inner is not a list"),
        ({**GOOD, "inner": [{"name": "a"}, 3]}, "inner[1] is not an object"),
        ({**GOOD, "inner": [{"name": "a", "count": 1.5}]}, "inner[0].count is not a whole number"),
        ({**GOOD, "points": [[1]]}, "points[0] has 1 values, not 2"),
        ({**GOOD, "pair": ["p", "q"]}, "pair[1] is not a whole number"),
        ({**GOOD, "by_name": []}, "by_name is not an object"),
        ({**GOOD, "by_name": {"b": {}}}, "by_name.b.name is missing"),
    ],
)
def test_what_is_wrong_is_named(data, said):
    with pytest.raises(RecordError) as caught:
        from_json(Outer, data)
    assert str(caught.value) == said
