from __future__ import annotations

from tests.unit.zfs.sources.source_fakes import machine
from zconsole.zfs.sources.kstat import arc_bytes, module_version, pool_states


def test_pools_and_their_words(tmp_path):
    root = machine(tmp_path, {"tank": "ONLINE", "b b": "SUSPENDED"})
    assert pool_states(root) == {"b b": "SUSPENDED", "tank": "ONLINE"}


def test_the_arc_and_the_version(tmp_path):
    root = machine(tmp_path, {}, "2.1.11-1+deb12u1")
    assert (arc_bytes(root), module_version(root)) == (4096, "2.1.11")


def test_without_the_module_nothing_is_known(tmp_path):
    assert pool_states(tmp_path) == {}
    assert arc_bytes(tmp_path) is None
    assert module_version(tmp_path) is None
