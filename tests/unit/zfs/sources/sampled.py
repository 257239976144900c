"""Live sources of faked machines."""

from __future__ import annotations

import json

from tests.unit.zfs.sources.source_fakes import (
    CONFIG,
    STATUS,
    TEXT,
    CannedRunner,
    FakeProcess,
    FakeSpawner,
    helper,
    machine,
    printed,
    system,
)
from zconsole.zfs.sources.live import LiveSource

JSON = {
    ("zpool", "status", "-jP"): printed(json.dumps(STATUS)),
    ("zpool", "status", "-j"): printed(json.dumps(STATUS)),
    ("zpool", "status", "-jvP"): printed(json.dumps(STATUS)),
    ("zpool", "list"): printed('{"pools": {}}'),
}
PLAIN = {("zpool", "status"): printed(TEXT), ("zpool", "list"): printed("")}


def config_of(pool):
    return {"config": {**CONFIG, "name": pool}}


def spawner(answer=config_of) -> FakeSpawner:
    return FakeSpawner({"helper": lambda: helper(answer), "zpool": FakeProcess})


def source(tmp_path, pools=None, answers=None, spawn=None, **options) -> LiveSource:
    imported = {"tank": "ONLINE"} if pools is None else pools
    root = machine(tmp_path, imported, options.pop("version", "2.3.9-1"))
    runner = CannedRunner(JSON if answers is None else answers)
    chosen = options.pop("names", ())
    prefer = options.pop("prefer", None)
    return LiveSource(chosen, prefer, system(root, runner, spawn or spawner(), **options))
