"""The map of the chassis, at every width."""

from __future__ import annotations

from tests.records import replace
from tests.table import rows
from tests.ui import frames
from tests.ui.drawn import LOOK, plain, text
from zconsole.pool.chassis import Enclosure, LeafDisk, Slot, SlotLights
from zconsole.pool.model import ErrorCounters
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.panes.chassis import bays, chassis_legend, chassis_map, slot_lines, what_is_in
from zconsole.ui.widgets.draw import width_of
from zconsole.ui.widgets.graph import ASCII

KEY = "0x5001"


def shelf(slots: int, key: str = KEY, empty: tuple[int, ...] = (3,)) -> Enclosure:
    made = (Slot(f"Slot {n:02}", n, () if n in empty else (f"sd{n}",)) for n in range(1, slots + 1))
    return Enclosure(key, "LAB 24", tuple(made))


def frame(*shelves: Enclosure, at: int = 1, **fields: object):
    """Return ``many``, changed by ``fields``, with its first leaf in slot ``at``."""
    made = frames.many()
    rows = list(made.rows)
    index = next(i for i, row in enumerate(rows) if not row.vdev.children)
    disk = LeafDisk("", shelves[0].key, f"Slot {at:02}", serial="ZC1A", temperature=41.0)
    rows[index] = replace(rows[index], vdev=replace(rows[index].vdev, disk=disk, **fields))
    return replace(made, rows=tuple(rows), sample=replace(made.sample, enclosures=shelves))


def drawn(found, at: int = 0, lights=None, width: int = 80, look: DisplayFormat = LOOK) -> str:
    return text(chassis_map(bays([found]), lights or {}, at, look, width).lines)


def test_every_slot_is_there_in_order_with_what_is_in_it():
    said = drawn(frame(shelf(24), state="FAULTED"))
    assert "LAB 24  0x5001  24 slots, 1 empty" in said
    assert said.index("01   x FAULTED") < said.index("02     other") < said.index("03     empty")
    assert "24     other" in said


@rows("width", [20, 59, 80, 100, 200])
@rows("slots", [1, 12, 60])
def test_the_grid_fits_and_the_cursor_is_on_one_slot(slots, width):
    found = bays([frame(shelf(slots))])
    made = chassis_map(found, {}, slots - 1, LOOK, width)
    assert max(map(width_of, made.lines)) <= width
    lines = [line for line, _ in made.places]
    assert len(lines) == len(found) == slots
    marked = [i for i, line in enumerate(made.lines) if LOOK.glyphs.pointer in plain(line)]
    assert marked == [lines[-1]]


def test_lines_are_even_where_slots_allow_it():
    made = chassis_map(bays([frame(shelf(24))]), {}, 0, LOOK, 120)
    lines = [line for line, _ in made.places]
    counts = {lines.count(line) for line in lines}
    assert len(counts) == 1


def test_lights_and_states_are_told_without_color_and_in_ascii():
    lights = {(KEY, "Slot 01"): SlotLights(fault=True, locate=True)}
    found = frame(shelf(24), state="FAULTED")
    said = drawn(found, at=5, lights=lights, look=DisplayFormat(glyphs=ASCII))
    assert said.isascii()
    assert "01*F x FAULTED" in said
    assert "marks: * locate light on" in text(chassis_legend(LOOK, 80))


@rows("width", [60, 80])
def test_the_mark_of_a_light_stands_at_its_own_slot_number(width):
    lights = {(KEY, "Slot 05"): SlotLights(fault=True, locate=False)}
    said = drawn(frame(shelf(12), at=5, state="FAULTED"), lights=lights, width=width)
    assert "05F  x FAULTED" in said
    assert "F 06" not in said


def test_the_keys_that_switch_a_light_are_named_where_a_disk_is():
    found = bays([frame(shelf(24))])
    assert "to switch the light: Enter, then A" in text(slot_lines(found[0], {}, LOOK, 80))
    assert "then A" not in text(slot_lines(found[1], {}, LOOK, 80))


def test_a_slot_of_the_machine_is_not_taken_for_one_of_the_enclosure():
    flash = Enclosure("", "NVMe slots", (Slot("13", 13, ("nvme0n1",)),))
    said = drawn(frame(shelf(24), flash))
    assert "13     other" in said
    assert "NVMe 13     other" in said


def test_a_device_with_errors_is_marked():
    bay = bays([frame(shelf(24), errors=ErrorCounters(0, 0, 3))])[0]
    assert what_is_in(bay) == ("! ONLINE", "warning")


def test_a_disk_that_was_pulled_leaves_its_device_in_the_slot():
    found = frame(shelf(24), at=3, state="REMOVED")
    bay = bays([found])[2]
    assert what_is_in(bay) == ("x REMOVED", "error")
    assert "none; it was serial ZC1A, 41C" in text(slot_lines(bay, {}, LOOK, 100))


def test_what_is_known_of_a_slot():
    found = frame(shelf(24), state="FAULTED", note="too many errors")
    first, second, third = bays([found])[:3]
    lights = {first.key: SlotLights(True, False, "OK")}
    said = text(slot_lines(first, lights, LOOK, 100))
    for wanted in ("Slot 01 of LAB 24", "FAULTED, too many errors", "serial ZC1A", "fault on"):
        assert wanted in said
    assert "sd2, of no pool shown here" in text(slot_lines(second, {}, LOOK, 100))
    assert "none" in text(slot_lines(third, {}, LOOK, 100))
    assert "not known" in text(slot_lines(third, {}, LOOK, 100))


@rows(("alias", "said"), [("bay01", "bay01, Slot 01 of LAB 24"), ("Slot 01", "Slot 01 of LAB 24")])
def test_a_slot_is_called_as_on_all_other_screens(alias, said):
    found = frame(shelf(24))
    rows = [
        replace(row, vdev=replace(row.vdev, disk=replace(row.vdev.disk, bay=alias)))
        if row.vdev.disk is not None and row.vdev.disk.slot == "Slot 01"
        else row
        for row in found.rows
    ]
    bay = bays([replace(found, rows=tuple(rows))])[0]
    assert text(slot_lines(bay, {}, LOOK, 100)).splitlines()[0].split(None, 1)[1] == said


def test_shelves_are_drawn_one_below_the_other_and_a_pool_of_two_machines_finds_both():
    one, other = shelf(4), shelf(4, "0x5002")
    assert drawn(frame(one, other)).count("LAB 24") == 2
    assert len(bays([frame(one), frame(other)])) == 8


def test_text_from_enclosures_is_made_safe():
    odd = Enclosure(KEY, "LAB\x1b[2J", (Slot("Slot\x1b 01", None, ("sd\x1b",)),))
    said = drawn(frame(odd)) + text(slot_lines(bays([frame(odd)])[0], {}, LOOK, 80))
    assert "\x1b" not in said


def test_without_enclosures_there_is_nothing_to_show():
    assert bays([frames.many()]) == ()


BY_COLUMN = f"{KEY}: 4x6 by-column from-bottom"


@rows("width", [50, 80, 200])
def test_slots_lie_as_the_configuration_says(width):
    found = bays([frame(shelf(24))])
    made = chassis_map(found, {}, 0, LOOK, width, [BY_COLUMN])
    assert max(map(width_of, made.lines)) <= width
    lowest, highest = plain(made.lines[-1]), plain(made.lines[1])
    assert [n for n in ("01", "07", "13", "19") if n in lowest] == ["01", "07", "13", "19"]
    assert [n for n in ("06", "12", "18", "24") if n in highest] == ["06", "12", "18", "24"]
    assert (made.places[0], made.places[23]) == ((6, 0), (1, 3))


def test_a_layout_wider_than_the_terminal_is_not_used():
    found = bays([frame(shelf(24))])
    assert chassis_map(found, {}, 0, LOOK, 60, [f"{KEY}: 12x2"]) == chassis_map(
        found, {}, 0, LOOK, 60
    )


def test_the_cursor_moves_as_slots_lie():
    made = chassis_map(bays([frame(shelf(24))]), {}, 0, LOOK, 80, [BY_COLUMN])
    assert made.below(0, -1) == 1
    assert made.beside(0, 1) == 6
    assert made.below(0, -9) == 5
    assert made.beside(18, 1) == 18
