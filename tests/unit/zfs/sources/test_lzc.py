"""OpenZFS' own Python module, where there is one."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from zconsole.zfs.sources.lzc import load_lzc, pool_exists


def test_openzfs_own_module_is_asked_in_bytes():
    asked = []
    module = SimpleNamespace(lzc_exists=lambda name: asked.append(name) or True)
    assert pool_exists(module, "ta\udcff") is True
    assert asked == [b"ta\xff"]


@pytest.mark.parametrize("name", ["tank/data", "tank@snapshot", "tank#mark"])
def test_a_dataset_is_no_pool(name):
    assert pool_exists(SimpleNamespace(lzc_exists=lambda _: True), name) is False


def test_without_it_or_when_it_fails_nothing_is_known():
    def fail(_name):
        raise OSError("no libzfs_core.so")

    assert pool_exists(None, "tank") is None
    assert pool_exists(SimpleNamespace(lzc_exists=fail), "tank") is None


def test_the_package_of_that_name_on_pypi_is_not_taken(monkeypatch):
    monkeypatch.setitem(sys.modules, "libzfs_core", SimpleNamespace())
    assert load_lzc() is None
    ours = SimpleNamespace(lzc_pool_checkpoint=None)
    monkeypatch.setitem(sys.modules, "libzfs_core", ours)
    assert load_lzc() is ours
