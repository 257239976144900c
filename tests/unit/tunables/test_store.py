from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from zconsole.tunables.store import NAME, Change, SavedTunable, TunableStore

KEPT = Path(__file__).parents[2] / "fixtures" / "state" / NAME


def kept_in(directory: Path, document: object) -> TunableStore:
    path = directory / NAME
    path.write_text(json.dumps(document))
    path.chmod(0o600)
    return TunableStore(directory)


def test_originals_of_an_earlier_version_are_read(tmp_path):
    saved = kept_in(tmp_path, json.loads(KEPT.read_text())).peek("boot:1")
    assert saved.values["zfs_txg_timeout"] == SavedTunable(5, 10, 1795166186.25, "12:345")
    assert saved.values["zfs_scan_vdev_limit"].until == "1027"
    assert saved.changes[0] == Change(1795166186.25, "zfs_txg_timeout", 5, 10)


@pytest.mark.parametrize("original", ["5", None, True, 1.5, [5], 2**70])
def test_an_original_that_is_no_number_is_never_handed_on(tmp_path, original):
    document = json.loads(KEPT.read_text())
    document["values"]["zfs_txg_timeout"]["original"] = original
    assert kept_in(tmp_path, document).peek("boot:1").values == {}


def test_what_a_simulated_kernel_had_set_is_kept_in_memory_and_knows_its_autopilot():
    store = TunableStore(None, "pilot")
    with store.open("demo") as saved:
        saved.values["zfs_txg_timeout"] = SavedTunable(5, 10, 1.0, "pilot")
    kept = store.peek("demo")
    assert (kept.values["zfs_txg_timeout"].value, kept.pilot) == (10, "pilot")
    assert store.peek("another demo").values == {}


def test_originals_whose_file_was_removed_are_those_read_last(tmp_path):
    """Also for the keeper's other process, which shares them in memory."""
    tmp_path.chmod(0o700)
    with os.fdopen(os.memfd_create("tunables")) as memory:
        child = TunableStore(tmp_path, shared=memory.fileno())
        with child.open("boot:1") as saved:
            saved.values["zfs_txg_timeout"] = SavedTunable(5, 10, 1.0, "1:1")
        (tmp_path / NAME).unlink()
        for store in (child, TunableStore(tmp_path, shared=memory.fileno())):
            assert store.peek("boot:1").values.keys() == {"zfs_txg_timeout"}
            assert store.peek("boot:2").values == {}
            with store.open("boot:1") as saved:
                assert saved.values.keys() == {"zfs_txg_timeout"}
        with child.open("boot:1") as saved:
            saved.values.clear()
        assert TunableStore(tmp_path).peek("boot:1").values == {}
