from __future__ import annotations

from typing import Any

from tests.factory import mirror_pool
from tests.table import rows
from zconsole.pool.model import ErrorCounters, IoCounters, Vdev
from zconsole.pool.topology import placed, placed_as

ROOT = mirror_pool().root


def places(root: Vdev) -> dict[str, Any]:
    return {place.key: place for place in placed(root)}


def changed(root: Vdev, **change: Any) -> Vdev:
    """With one of the devices changed."""
    top, *others = root.children
    first, *rest = top.children
    top = top._replace(children=(first._replace(**change), *rest))
    return root._replace(children=(top, *others))


def test_where_only_counters_moved_every_vdev_is_in_its_place_again() -> None:
    counted = changed(ROOT, io=IoCounters(7.0, 1, 2, 3, 4))
    assert placed_as(places(ROOT), counted) == places(counted)
    assert list(placed_as(places(ROOT), counted) or ()) == list(places(counted))


@rows(
    "change",
    [
        {"name": "sdx"},
        {"guid": "17"},
        {"state": "FAULTED"},
        {"errors": ErrorCounters(0, 0, 1)},
        {"alloc_bytes": 1},
        {"children": (Vdev("sdy", "disk"),)},
    ],
)
def test_anything_else_is_a_change(change: dict[str, Any]) -> None:
    assert placed_as(places(ROOT), changed(ROOT, **change)) is None


def test_a_device_that_moved_to_another_vdev_is_a_change() -> None:
    a, b, c = (Vdev(name, "disk", guid=name) for name in "abc")
    one, two = Vdev("one", "mirror"), Vdev("two", "mirror")

    def tree(first: tuple[Vdev, ...], second: tuple[Vdev, ...]) -> Vdev:
        tops = (one._replace(children=first), two._replace(children=second))
        return Vdev("tank", "root", children=tops)

    assert placed_as(places(tree((a, b), (c,))), tree((a,), (b, c))) is None


def test_before_the_first_sample_nothing_is_in_its_place() -> None:
    assert placed_as({}, ROOT) is None
