"""Saved answers of libzfs, JSON and text from live pools of real releases agree."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from tests.table import rows
from tests.vm.fields import same_difference
from tests.vm.kept import Kept, kept

pytestmark = pytest.mark.slow

STATES = tuple(kept())
FROM_LIBZFS = (
    *("scan_stats", "org.openzfs:rebuild_stats", "removal_stats", "raidz_expand_stats"),
    *("checkpoint_stats", "vdev_stats_ex", "error_count", "whole_disk", "not_present"),
    *("alloc_bias", "nparity", "draid_ndata", "draid_nspares", "l2cache", "spares"),
    *("draid_nchildren", "com.klarasystems:condense_stats"),
)
FROM_SOURCES = (
    *(("libzfs", "message"), ("libzfs", "diskstats"), ("json", "list")),
    *(("text", "list"), ("text", "names"), ("libzfs", "sitting_out"), ("text", "sitting_out")),
)


@rows("state", STATES)
def test_every_source_tells_the_same(state: Kept) -> None:
    state.check()


@rows("name", FROM_LIBZFS)
def test_what_libzfs_is_not_asked_for_is_missed(name: str) -> None:
    assert is_noticed(lambda raws: drop(raws["libzfs"]["libzfs"], name))


@rows(("source", "key"), FROM_SOURCES)
def test_what_a_source_does_not_bring_is_missed(source: str, key: str) -> None:
    assert is_noticed(lambda raws: raws.get(source, {}).pop(key, None))


@rows(("printed", "same"), [(104857, True), (209715, True), (314572, False)])
def test_a_difference_of_two_printed_totals_is_rounded_twice(printed: int, same: bool) -> None:
    """Example: 50.2M minus 50.1M, where 110592 bytes were skipped of 52602368."""
    assert same_difference(110592, printed, 52602368, 0.0) == same


def is_noticed(change: Callable[[dict[str, Any]], object]) -> bool:
    """Return whether the sources of some state disagree after their raw forms were changed."""
    for state in STATES:
        raws = copy.deepcopy(state.raws)
        change(raws)
        if raws == state.raws:
            continue
        try:
            state._replace(raws=raws).check()
        except AssertionError:
            return True
    return False


def drop(value: Any, name: str) -> None:
    """Remove a key from every object, recursively."""
    if isinstance(value, dict):
        value.pop(name, None)
    if isinstance(value, dict | list):
        for below in value.values() if isinstance(value, dict) else value:
            drop(below, name)
