"""The columns of the device list: chosen by importance and width, never by current figures."""

from __future__ import annotations

import itertools

from tests.factory import view
from tests.records import replace
from tests.table import rows
from tests.ui import frames
from tests.ui.drawn import LOOK, plain
from zconsole.config import settings
from zconsole.pool.chassis import LeafDisk
from zconsole.pool.model import ErrorCounters, IoRates, Scan
from zconsole.ui.panes.device_columns import (
    COLUMNS,
    NO_NEEDS,
    Needs,
    Panel,
    TreeLine,
    arrange,
    heading,
    row_line,
    tree_facts,
)
from zconsole.ui.panes.devices import DeviceMemory
from zconsole.ui.panes.help import legend_lines

EVERY = [Needs(*each) for each in itertools.product((False, True), (False, True), (0, 12))]
PLAIN = {"name", "state", "note"}
"""Columns whose headings say all."""
COUNTERS = {"err_read", "err_write", "err_cksum"}


def keys(width, longest=20, number=5, has=NO_NEEDS):
    return [column.key for column in arrange(width, longest, number, has)]


def needs_after(frame, before):
    memory = DeviceMemory(before)
    memory.take(frame, LOOK)
    return memory.has


def panel(frame, width, has=None):
    has = needs_after(frame, NO_NEEDS) if has is None else has
    return Panel(frame, LOOK, arrange(width, 20, 5, has), {}, 64.0 * 2**20)


def drawn(frame, index, width, has=None):
    row = frame.rows[index]
    return plain(row_line(TreeLine(row.key, row.depth, row), panel(frame, width, has)))


def failing(frame, index, **fields):
    """Return the frame with this row, or its vdev, changed."""
    row = frame.rows[index]
    if "slow_sibling" in fields:
        changed = replace(row, **fields)
    else:
        changed = replace(row, vdev=replace(row.vdev, **fields))
    rows = (*frame.rows[:index], changed, *frame.rows[index + 1 :])
    return replace(frame, rows=rows)


@rows("has", EVERY)
@rows("width", range(12, 260, 3))
def test_columns_fit(width, has):
    columns = arrange(width, 60, 5, has)
    assert sum(c.width for c in columns) + len(columns) - 1 <= max(width, 15)


@rows("has", EVERY)
def test_a_wider_screen_never_has_fewer_facts(has):
    seen = 0
    for width in range(40, 260):
        facts = {"err" if k.startswith("err") else k for k in keys(width, has=has)}
        assert len(facts) >= seen
        seen = len(facts)


def test_the_order_never_changes():
    for width, has in itertools.product(range(20, 260, 7), EVERY):
        shown = keys(width, has=has)
        assert shown == [c.key for c in COLUMNS if c.key in shown]


def test_sixty_columns_keep_rates_latency_and_errors():
    for has in EVERY:
        assert keys(58, has=has) == ["name", "state", "read", "write", "lat", "err"]


def test_eighty_columns_have_sparklines_and_busy():
    assert {"read_spark", "write_spark", "busy", "err"} <= set(keys(78))


def test_eighty_columns_have_read_write_and_cksum_where_any_is_not_0():
    shown = keys(78, has=Needs(errors=True))
    assert set(shown) >= {*COUNTERS, "read", "write", "lat", "busy"}
    assert "err" not in shown


def test_notes_take_no_width_where_there_are_none():
    assert "note" not in keys(198)
    assert "note" in keys(128, has=Needs(notes=True))
    assert len(keys(128)) > len(keys(128, has=Needs(notes=True)))


def test_wide_screens_have_strips_of_latency_and_busy():
    for has in EVERY:
        width = 118 + (has.bay + 1 if has.bay else 0)
        assert {"lat_heat", "busy_heat"} <= set(keys(width, 41, has=has))


def test_two_hundred_have_everything():
    everything = {column.key for column in COLUMNS} - {"err"}
    assert set(keys(198, has=Needs(errors=True, notes=True, bay=7))) == everything


def at_bays(frame, bays):
    """Return the frame with its first leaves in these bays."""
    rows, left = [], list(bays)
    for row in frame.rows:
        if left and not row.vdev.children:
            disk = LeafDisk(bay=left.pop(0))
            rows.append(replace(row, vdev=replace(row.vdev, disk=disk)))
        else:
            rows.append(row)
    return replace(frame, rows=tuple(rows))


def test_bays_have_a_column_where_one_is_known_that_names_do_not_tell():
    calm = frames.many()
    leaf = next(row.vdev.name for row in calm.rows if not row.vdev.children)
    assert needs_after(at_bays(calm, [leaf]), NO_NEEDS).bay == 0
    seen = needs_after(at_bays(calm, ["", "Slot 07"]), NO_NEEDS)
    assert seen.bay == 7
    assert needs_after(calm, seen) == seen
    assert "bay" in keys(118, has=seen)


def test_eighty_columns_have_the_bay_where_a_device_has_errors():
    assert "bay" in keys(78, has=Needs(errors=True, bay=7))
    assert "bay" not in keys(78, has=Needs(bay=7))


def test_a_bay_stands_in_its_row():
    frame = at_bays(frames.many(), ["Slot 07"])
    index = next(i for i, row in enumerate(frame.rows) if not row.vdev.children)
    assert "Slot 07" in drawn(frame, index, 118)


def test_exact_numbers_get_room():
    assert next(c for c in arrange(120, 20, 12) if c.key == "read").width == 12


def test_a_pool_without_errors_or_notes_needs_neither_column():
    assert needs_after(frames.many(), NO_NEEDS) == NO_NEEDS


def test_one_counter_that_is_not_0_brings_the_columns_and_0_does_not_take_them_away():
    calm = frames.many()
    seen = needs_after(failing(calm, 9, errors=ErrorCounters(0, 0, 1, 0)), NO_NEEDS)
    assert seen == Needs(errors=True)
    assert needs_after(calm, seen) == seen


@rows(
    "fields",
    [{"note": "was /dev/sdq"}, {"slow_sibling": "61ms, siblings 8ms"}],
)
def test_one_note_brings_its_column(fields):
    calm = frames.many()
    assert needs_after(failing(calm, 9, **fields), NO_NEEDS).notes
    assert not needs_after(failing(calm, 9, note="(resilvering)"), NO_NEEDS).notes


def test_headings_are_those_of_zpool_and_say_what_a_strip_means():
    title = plain(heading(panel(frames.flaky(), 198, Needs(True, True)), "tree"))
    for word in ("READ/s", "WRITE/s", "LATENCY", " READ WRITE CKSUM ", "░5▒20▓80█", "░25▒50▓75█"):
        assert word in title
    narrow = plain(heading(panel(frames.flaky(), 58), "tree"))
    assert narrow.split() == ["NAME", "STATE", "READ/s", "WRITE/s", "LAT", "ERR"]


@rows("width", [58, 78, 118, 198])
def test_no_number_moves_a_column(width):
    calm = frames.resilver()
    row = calm.rows[-1]
    wild = IoRates(9e13, 1.0, 99999.0, 3.0, 130.0, 1.0)
    rows = (*calm.rows[:-1], replace(row, rates=wild))
    assert len(drawn(replace(calm, rows=rows), -1, width)) == len(drawn(calm, -1, width))


def test_a_device_that_collects_errors_is_marked_though_it_is_online():
    marked = drawn(failing(frames.many(), 9, errors=ErrorCounters(0, 0, 4, 0)), 9, 78)
    assert "! ONLINE" in marked
    assert marked.split()[-3:] == ["0", "0", "4"]


def test_a_device_that_is_gone_keeps_its_errors_beside_its_note():
    frame = failing(
        frames.resilver(),
        5,
        state="REMOVED",
        note="was /dev/sdq",
        errors=ErrorCounters(3, 0, 40, 0),
    )
    said = drawn(frame, 5, 78)
    assert "was /dev/sdq" in said
    assert said.split()[-3:] == ["3", "0", "40"]


def test_a_strip_says_by_how_dark_it_is_how_long_a_disk_takes():
    frame = frames.resilver()
    slow, usual = drawn(frame, 6, 198), drawn(frame, 5, 198)
    assert "▓▓▓" in slow
    assert "▓" not in usual
    assert "▒▒▒" in usual


@rows("hidden", sorted(set(settings.COLUMNS) - {"bay"}))
def test_every_group_that_is_not_wanted_is_hidden_and_no_other(hidden):
    every = Needs(errors=True, notes=True, bay=7)
    left = every._replace(wanted=every.wanted - {hidden})
    gone = set(keys(260, has=every)) - set(keys(260, has=left))
    assert gone
    assert not gone & {"name", "state"}


def test_every_column_other_than_name_and_state_can_be_hidden():
    for has in EVERY:
        assert keys(260, has=has._replace(wanted=frozenset())) == ["name", "state"]


def test_the_legend_has_every_heading():
    """Those of strips and sparklines are their scales."""
    legend = " ".join(plain(line) for line in legend_lines(LOOK, 200))
    for column in COLUMNS:
        if not column.key.endswith(("_heat", "_spark")) and column.key not in PLAIN:
            assert column.title in legend


def test_before_a_rate_is_known_no_scale_is_given():
    shown = panel(frames.many(), 198)
    assert "scale 64M" in plain(heading(shown, "tree"))
    bare = plain(heading(replace(shown, top=1.0), "tree"))
    assert "scale" not in bare
    assert "=" not in bare


def test_a_scale_without_room_for_the_word_is_that_of_a_full_bar():
    """ "0-128K" was read as a range of request sizes."""
    shown = panel(frames.many(), 198)
    narrow = tuple(column._replace(width=min(6, column.width)) for column in shown.columns)
    assert " █=64M" in plain(heading(replace(shown, columns=narrow), "tree"))


@rows("width", [1, 6, 8, 9, 10, 12])
def test_a_scale_has_the_same_form_whatever_its_top(width):
    """ "scale 1M" and "█=512M" took turns in one heading."""
    shown = panel(frames.many(), 198)
    column = next(column for column in shown.columns if column.key == "read_spark")
    columns = (column._replace(width=width),)
    forms = {
        "scale" in plain(heading(replace(shown, columns=columns, top=top), "tree"))
        for top in (2.0**9, 2.0**20, 2.0**29, 2.0**34, 2.0**43)
    }
    assert len(forms) == 1


def changed(frame, index, **fields):
    rows = list(frame.rows)
    rows[index] = rows[index]._replace(vdev=rows[index].vdev._replace(**fields))
    return replace(frame, rows=tuple(rows))


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


def test_a_new_disk_has_the_mark_of_a_resilver_before_its_first_block_is_written():
    frame = frames.healthy()
    index = next(n for n, row in enumerate(frame.rows) if not row.vdev.children)
    assert "~ waiting" in drawn(changed(frame, index, unfilled=True), index, 80)


def test_a_new_disk_whose_own_resilver_runs_does_not_wait_for_it():
    frame = frames.healthy()
    index = next(n for n, row in enumerate(frame.rows) if not row.vdev.children)
    top = next(t.name for t in frame.root.children if frame.rows[index].vdev in t.leaves())
    new = changed(frame, index, unfilled=True)
    for scan, word in (
        (Scan("resilver", "running"), "resilvering"),
        (Scan("rebuild", "running", vdev=top), "resilvering"),
        (Scan("rebuild", "running", vdev="another"), "waiting"),
        (Scan("resilver", "finished"), "waiting"),
        (Scan("scrub", "running"), "waiting"),
    ):
        assert f"~ {word}" in drawn(replace(new, scans=(view(scan),)), index, 80)
    later = changed(frame, index, unfilled=True, awaiting_resilver=True)
    repaired = replace(later, scans=(view(Scan("resilver", "running")),))
    assert "~ waiting" in drawn(repaired, index, 80)
