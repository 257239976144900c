from __future__ import annotations

from tests.records import replace
from tests.ui import frames
from zconsole.pool.chassis import LeafDisk
from zconsole.pool.model import ErrorCounters
from zconsole.ui.panes.tree_facts import has_failed, tree_facts


def changed(frame, index, **fields):
    rows = list(frame.rows)
    rows[index] = rows[index]._replace(vdev=rows[index].vdev._replace(**fields))
    return replace(frame, rows=tuple(rows))


def test_what_failed_or_counted_errors_is_a_failed_device():
    calm = frames.healthy()
    assert not has_failed(calm)
    assert has_failed(changed(calm, -1, state="UNAVAIL"))
    assert has_failed(changed(calm, -1, errors=ErrorCounters(0, 1, 0)))
    assert not has_failed(changed(calm, -1, state="OFFLINE"))


def test_disks_that_are_filled_and_names_are_known_wherever_they_are():
    calm = frames.healthy()
    assert tree_facts(calm).filled == frozenset()
    facts = tree_facts(changed(calm, -1, unfilled=True, name="a-very-long-name-of-a-disk"))
    assert facts.filled == {calm.rows[-1].key}
    assert facts.longest == len("a-very-long-name-of-a-disk") + calm.rows[-1].depth
    assert "a-very-long-name-of-a-disk" in facts.names


def test_names_and_bays_of_wide_characters_have_room_for_all_their_cells():
    calm = frames.healthy()
    disk = LeafDisk(bay="スロット十二番目の棚")
    facts = tree_facts(changed(calm, -1, name="ディスク一号機の名前は長い", disk=disk))
    assert facts.longest == 26 + calm.rows[-1].depth
    assert facts.widest_bay == 20
