"""Lists of devices and questions about tunables, including narrow screens."""

from __future__ import annotations

from typing import Any

from tests.table import rows
from tests.ui.drawn import plain
from zconsole.actions.candidates import Candidate
from zconsole.actions.plan import ActionPlan
from zconsole.hardware.device import Device
from zconsole.tunables.catalog import Tunable, named
from zconsole.tunables.control import Setting
from zconsole.tunables.effect import TunableEffect
from zconsole.tunables.store import Change
from zconsole.ui.actions.menu import Entry, menu_lines
from zconsole.ui.actions.plan_lines import (
    candidate_about,
    candidate_lines,
    plan_lines,
    said_lines,
)
from zconsole.ui.actions.tunables_pane import (
    ChangeEffect,
    TunableRow,
    about_lines,
    changes_text,
    question_lines,
    tunable_lines,
)
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.widgets.draw import Span, width_of

LOOK = DisplayFormat()
USED = "in this pool already"


def candidate(name: str, *problems: str, **fields: object) -> Candidate:
    device = Device(f"/dev/disk/by-id/{name}", size=4 << 40, **fields)  # type: ignore[arg-type]
    return Candidate(device, problems)


def listed(**fields: Any) -> list[str]:
    """Return the lines of a plan of nothing but these."""
    return [
        plain(line).strip() for line in plan_lines(ActionPlan("x", "X", (), **fields), "", LOOK, 80)
    ]


def test_each_part_of_a_plan_stands_under_its_own_heading_and_a_refused_one_promises_nothing():
    assert listed(hazards=("it can hang",), warnings=("look",)) == [
        *("Known bugs of this OpenZFS", "it can hang", "Warnings", "look")
    ]
    assert not any("OpenZFS" in line for line in listed())
    doubted = listed(doubts=("bay03 has failed",), consequences=("fills it",))
    assert doubted[:2] == ["Check first", "bay03 has failed"], "before all else"
    where = "sda: Slot 07, serial ZC1A"
    assert listed(where=(where,)) == ["Where the disks are", where]
    for refused, heading in ((None, "What it does"), ("too small", "What it would do")):
        assert listed(consequences=("resilvers",), refused=refused)[-2:] == [heading, "resilvers"]


def test_long_names_are_cut_so_that_lines_fit_and_short_ones_leave_room_for_reasons() -> None:
    (short,) = candidate_lines([candidate("bay01", USED)], LOOK, 80)
    assert plain(short).endswith(USED)
    made = [candidate("ata-" + "x" * 60, USED), candidate("bay01", USED)]
    lines = candidate_lines(made, LOOK, 80)
    assert {width_of(line) <= 80 for line in lines} == {True}
    assert len({plain(line).index("4T") for line in lines}) == 1


def test_a_bay_is_in_the_line_and_not_said_twice() -> None:
    (line,) = candidate_lines([candidate("a", bay="Slot 07", serial="ZC1A")], LOOK, 80)
    assert "Slot 07  ZC1A" in plain(line)
    made = [candidate("bay14", bay="bay14"), candidate("ata-X", bay="bay15")]
    one, other = (plain(line) for line in candidate_lines(made, LOOK, 80))
    assert one.count("bay14") == 1
    assert "bay15" in other


def test_the_columns_are_explained_at_every_line() -> None:
    made = [candidate("a", logical=512, physical=4096), candidate("b")]
    for index in (0, 1):
        assert "sectors (logical/physical bytes)" in plain(
            candidate_about(made, index, LOOK, 80)[-1]
        )


def test_sectors_that_nobody_knows_are_no_question_marks() -> None:
    known, half, unknown = candidate_lines(
        [
            candidate("a", logical=512, physical=4096),
            candidate("b", logical=512),
            candidate("c"),
        ],
        LOOK,
        80,
    )
    assert "512/4096" in plain(known)
    assert "512/?" in plain(half)
    assert "?" not in plain(unknown)


@rows("width", [60, 80])
def test_a_question_about_a_tunable_is_wrapped_and_not_cut(width: int) -> None:
    note = "stretches every transaction group: synchronous writes of every pool wait longer"
    tunable = Tunable("zfs_x_ms", "least time", "ms", 1, 60_000, (), "scrub", note=note)
    lines = [plain(line) for line in question_lines(Setting(tunable, 5, 3, ""), "", LOOK, width)]
    assert max(map(len, lines)) <= width
    assert note in " ".join(line.strip() for line in lines).lower()
    assert "Now 5; values 1 to 60000 ms, default 3" in lines[1]


def test_the_question_for_a_value_keeps_the_suggested_one_in_sight() -> None:
    setting = Setting(named("zfs_resilver_min_time_ms"), 3000, 3000, "")
    told = "\n".join(map(plain, question_lines(setting, "raise it from 3000 to 6000", LOOK, 80)))
    assert "Suggested: raise it from 3000 to 6000." in told


def test_the_harm_of_a_tunable_comes_before_its_meaning() -> None:
    setting = Setting(named("zfs_resilver_min_time_ms"), 3000, 3000, "")
    told = " ".join(plain(line).strip() for line in about_lines(TunableRow(setting), LOOK, 80))
    assert told.index(setting.tunable.note) < told.index(setting.tunable.meaning)


def test_the_harm_comes_with_what_is_suggested_before_what_was_done() -> None:
    setting = Setting(named("zfs_resilver_min_time_ms"), 6000, 3000, "", 6000, 3000)
    shown = TunableRow(setting, suggested="raise it to 12000")
    told = " ".join(plain(line).strip() for line in about_lines(shown, LOOK, 80))
    assert told.index("Suggested") < told.index(setting.tunable.note) < told.index("set here")
    assert told.count(setting.tunable.note) == 1


@rows(
    ("before", "fields", "said"),
    [
        (None, {"over": True}, "effect unknown, no scan watched long enough before it"),
        (1e8, {"over": True}, "effect unknown, no scan watched long enough after it"),
        (1e8, {}, "after some minutes"),
        (
            None,
            {"over": True, "crowded": True},
            "effect unknown, others changed too soon before it",
        ),
    ],
)
def test_an_effect_is_promised_only_while_it_may_come_else_why_it_is_unknown(
    before: float | None, fields: dict[str, bool], said: str
) -> None:
    setting = Setting(named("zfs_resilver_min_time_ms"), 6000, 3000, "", 6000, 3000)
    change = Change(1.0, "zfs_resilver_min_time_ms", 3000, 6000)
    effect = TunableEffect(before, None, None, None, **fields)
    for together in (1, 12):
        shown = TunableRow(setting, done=ChangeEffect(change, effect, together))
        assert any(said in plain(line) for line in about_lines(shown, LOOK, 80)), "not cut"


def test_what_a_preset_did_is_told_once_and_claimed_of_none_of_its_tunables() -> None:
    setting = Setting(named("zfs_vdev_nia_delay"), 2, 5, "", 2, 5)
    change = Change(1.0, "zfs_vdev_nia_delay", 5, 2)
    effect = TunableEffect(120 << 20, 150 << 20, None, None, issue_clear=True)
    shown = TunableRow(setting, done=ChangeEffect(change, effect, 7, "20:08"))
    assert "%" not in plain(tunable_lines([shown], LOOK, 140)[0])
    about = "\n".join(map(plain, about_lines(shown, LOOK, 140)))
    rates = "issued 120M/s in the minutes before, 150M/s in the minutes after (+25 %)"
    assert f"7 tunables set 20:08: {rates}" in about


def test_what_a_restore_did_is_not_taken_for_what_the_preset_did() -> None:
    setting = Setting(named("zfs_vdev_nia_delay"), 5, 5, "")
    slower = TunableEffect(270 << 20, 221 << 20, 0.035, 0.051, issue_clear=True)
    faster = TunableEffect(200 << 20, 270 << 20, None, None, issue_clear=True)
    undone = ChangeEffect(Change(1.0, "zfs_vdev_nia_delay", 5, 2), faster, 11)
    done = ChangeEffect(Change(2.0, "zfs_vdev_nia_delay", 2, 5), slower, 11)
    told = " ".join(
        plain(line).strip()
        for line in about_lines(TunableRow(setting, done=done, undone=undone), LOOK, 80)
    )
    restored = "issued 270M/s in the minutes before, 221M/s in the minutes after (-18 %)"
    waits = "mean latency 35ms before, 51ms after: it varies by as much"
    assert f"restored: {restored}; {waits}" in told
    before = "issued 200M/s in the minutes before, 270M/s in the minutes after (+35 %)"
    assert f"before that, 11 tunables set at once: {before}" in told


def test_a_switch_is_one_of_two() -> None:
    tunable = Tunable("zfs_x", "whether it does", "0/1", 0, 1, (), "scrub")
    setting = Setting(tunable, 1, 0, "")
    said = [*about_lines(TunableRow(setting), LOOK, 80), *question_lines(setting, "", LOOK, 80)]
    assert ["values 0 or 1," in plain(line) for line in said].count(True) == 2
    assert "0/1" not in "".join(map(plain, said))


@rows(
    ("clear", "said"), [(True, "150M/s in the minutes after (+25 %)"), (False, "no clear effect")]
)
def test_an_effect_is_claimed_only_where_it_is_clear(clear: bool, said: str) -> None:
    setting = Setting(named("zfs_resilver_min_time_ms"), 6000, 3000, "", 6000, 3000)
    change = Change(1.0, "zfs_resilver_min_time_ms", 3000, 6000)
    effect = TunableEffect(120 << 20, 150 << 20, None, None, issue_clear=clear)
    shown = TunableRow(setting, done=ChangeEffect(change, effect))
    lines = [*about_lines(shown, LOOK, 120), *tunable_lines([shown], LOOK, 120)]
    text = "\n".join(map(plain, lines))
    assert said in text
    assert ("150M/s in the minutes after: it varies by as much" in text) != clear
    assert ("150M/s in the minutes after (+25 %" in text) == clear
    listed = plain(tunable_lines([shown], LOOK, 120)[0])
    assert ("+25 %" in listed, "no clear effect" in listed) == (clear, not clear)
    assert ("+25 %" in changes_text([change], effect)) == clear


def test_that_no_figure_has_clearly_changed_is_told_once() -> None:
    setting = Setting(named("zfs_resilver_min_time_ms"), 6000, 3000, "", 6000, 3000)
    effect = TunableEffect(543 << 20, 578 << 20, 0.007, 0.008)
    done = ChangeEffect(Change(1.0, "zfs_resilver_min_time_ms", 3000, 6000), effect)
    about = " ".join(
        plain(each).strip() for each in about_lines(TunableRow(setting, done=done), LOOK, 80)
    )
    rates = "issued 543M/s in the minutes before, 578M/s in the minutes after"
    assert f"no clear effect: {rates}; mean latency 7ms before, 8ms after" in about
    assert "varies" not in about


def test_a_rough_effect_is_said_to_be_one() -> None:
    setting = Setting(named("zfs_resilver_min_time_ms"), 6000, 3000, "", 6000, 3000)
    change = Change(1.0, "zfs_resilver_min_time_ms", 3000, 6000)
    effect = TunableEffect(300 << 20, 510 << 20, None, None, issue_clear=True, rough=True)
    shown = TunableRow(setting, done=ChangeEffect(change, effect))
    about = "\n".join(map(plain, about_lines(shown, LOOK, 120)))
    said = "issued about 300M/s before, 510M/s in the minutes after (about +70 %)"
    assert f"set from 3000 to 6000: {said}" in about
    assert "about +70 %" in plain(tunable_lines([shown], LOOK, 120)[0])
    assert changes_text([change], effect).endswith("issue rate about +70 %")


def test_the_effect_comes_first_in_a_narrow_list() -> None:
    """ "was 3, no clear…" was all that a terminal of 80 columns had room for."""
    change = Change(1.0, "zfs_vdev_async_write_min_active", 2, 8)
    setting = Setting(named(change.name), 8, 2, "", 8, 2)
    for effect, said in (
        (TunableEffect(1e8, 1e8, None, None), "no clear effect"),
        (TunableEffect(1e8, 3e8, None, None, issue_clear=True), "+200 %, was 2"),
    ):
        (line,) = tunable_lines([TunableRow(setting, done=ChangeEffect(change, effect))], LOOK, 80)
        assert f"I/Os   {said}" in plain(line)


def test_where_an_effect_cannot_be_the_tunables_the_reason_is_told_and_no_percentage() -> None:
    setting = Setting(named("zfs_resilver_min_time_ms"), 6000, 3000, "", 6000, 3000)
    change = Change(1.0, "zfs_resilver_min_time_ms", 3000, 6000)
    effect = TunableEffect(120 << 20, 158 << 20, None, None, doubt="limited by a slow disk")
    for together in (1, 7):
        shown = TunableRow(setting, done=ChangeEffect(change, effect, together))
        about = " ".join(plain(line).strip() for line in about_lines(shown, LOOK, 120))
        assert "effect unmeasurable: limited by a slow disk" in about
        assert "issued" not in about, "158M/s after reads as a gain"
        assert "%" not in about
    assert "unmeasurable: limited by a slow disk" in changes_text([change], effect)
    assert "+32" not in plain(tunable_lines([shown], LOOK, 120)[0])


def test_reasons_are_as_readable_as_other_text() -> None:
    """A bar's track is faint, on purpose."""
    refused = Entry("Put it online", refused="bay02 is online")
    lines = [*candidate_lines([candidate("bay01", USED)], LOOK, 80)]
    lines += menu_lines([Entry("Take it offline"), refused], LOOK, 80)
    roles = {span.role for line in lines for span in line}
    assert roles == {"", "dim"}
    assert {span.role for span in lines[1]} == {""}


def test_the_lines_of_a_long_text_begin_below_each_other() -> None:
    lines = said_lines([Span("  one two three four five six seven eight")], LOOK, 24)
    starts = {len(plain(line)) - len(plain(line).lstrip()) for line in lines}
    assert len(lines) > 1
    assert starts == {4}
