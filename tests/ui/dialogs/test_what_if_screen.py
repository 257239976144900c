"""The what-if screen: its answer at every width; typing it is a case of the lock (what-if)."""

from __future__ import annotations

import pytest

from tests.records import replace
from tests.ui import frames
from tests.ui.drawn import plain
from tests.ui.fakes import FakeFeed, console, screen_text
from zconsole.pool.model import Vdev
from zconsole.scan_report.report import DeviceReport, ScanReport
from zconsole.scan_report.resilver_time import PastRate
from zconsole.ui.dialogs.what_if_screen import Question, whatif_lines
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.widgets.draw import width_of
from zconsole.ui.widgets.graph import ASCII

TIB, MIB = 1 << 40, 1 << 20
PACE = PastRate(100.0 * MIB, "the last resilver", 0.0, 1)


def text(words: str, width: int = 100, look: DisplayFormat | None = None, **fields: object) -> str:
    question = Question(words, frames.ALL["imbalance"](), **fields)
    return "\n".join(plain(line) for line in whatif_lines(question, look or DisplayFormat(), width))


def test_with_nothing_typed_it_is_how_it_is_and_what_can_be_typed():
    shown = text("")
    assert "now" in shown
    assert "then" not in shown
    assert "NAME=SIZE" in shown
    assert "rebalance " not in shown


def test_what_rebalancing_would_cost_and_the_command_for_it_are_told():
    shown = text("+mirror:2x8T raidz1-0=7x30T disk=8T")
    assert "rebalance " in shown
    assert "to rewrite" in shown or "rewriting everything" in shown
    assert "zconsole balance media --add-vdev mirror:2x8T --resize raidz1-0=7x30T" in shown


def test_a_vdev_without_redundancy_is_called_that():
    shown = " ".join(text("+4T").split())
    assert "caution new-2 has no redundancy" in shown
    assert "no redundancy" not in text("+mirror:2x4T")


def test_what_is_added_does_not_read_as_if_it_made_the_balance_worse():
    assert "at first" in text("+mirror:2x8T")
    assert "what is added is empty" in text("+mirror:2x8T")


def test_the_resilver_of_a_typed_size_or_of_the_device_at_the_cursor():
    assert "a disk of 16T: unknown" in text("disk=16T")
    assert "100M/s per disk" in text("disk=16T", paces=(PACE,))
    frame = frames.ALL["imbalance"]()
    leaf = next(row for row in frame.rows if not row.vdev.children)
    shown = text("", paces=(PACE,), row=leaf)
    assert f"of {leaf.vdev.name}: " in shown
    top = next(row for row in frame.rows if row.depth == 1)
    assert "resilver  " not in text("", paces=(PACE,), row=top)


@pytest.mark.parametrize("words", ["big", "nope=5T", "raidz1-0=1T", "'", "disk="])
def test_what_cannot_be_read_is_told_in_one_place_and_the_help_stays(words):
    shown = text(words).splitlines()
    assert shown[0].strip()
    assert "now" not in "\n".join(shown)
    assert any("NAME=SIZE" in line for line in shown)


@pytest.mark.parametrize("width", [54, 60, 80, 200])
@pytest.mark.parametrize("words", ["", "+6x4T disk=4T", "x" * 300, "raidz1-0=7x30T"])
def test_no_line_is_wider_than_the_screen(width, words):
    question = Question(words, frames.ALL["imbalance"](), (PACE,))
    assert all(width_of(line) <= width for line in whatif_lines(question, DisplayFormat(), width))


def test_in_ascii_there_is_nothing_else():
    assert text("+6x4T", look=DisplayFormat(ASCII)).isascii()


def test_names_from_outside_are_made_safe():
    frame = frames.ALL["imbalance"]()
    root = frame.rows[0].vdev
    evil = replace(root.children[0], name="raidz1\x1b[2J")
    rows_ = (replace(frame.rows[0], vdev=replace(root, children=(evil,))),)
    lines = whatif_lines(Question("x=1T", replace(frame, rows=rows_)), DisplayFormat(), 80)
    assert "\x1b" not in "".join(plain(line) for line in lines)


def test_a_pool_that_was_never_seen_has_no_answer():
    frame = replace(frames.ALL["imbalance"](), rows=(), problem="refused", stale_seconds=None)
    (line,) = whatif_lines(Question("4T", frame), DisplayFormat(), 80)
    assert "nothing is known" in plain(line)


async def test_reports_kept_of_the_pool_time_a_resilver():
    asked: list[str] = []
    new = DeviceReport("new", True, 0.0, 3600e8, 3600.0, 0.9, 0.01, 0.02)
    kept = ScanReport("storage", "1", "resilver", None, 1.0, "finished", 1.0, devices=(new,))

    async def past(guid: str) -> tuple[ScanReport, ...]:
        asked.append(guid)
        return (kept,)

    app = console(FakeFeed((replace(frames.ALL["imbalance"](), guid="7"),)), past=past)
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        await pilot.press("w", *"disk=4T")
        await pilot.pause()
        assert asked == ["7"]
        assert "estimated from the last watched resilver's speed (95.4M/s per disk" in " ".join(
            screen_text(app).split()
        )


def test_a_leaf_of_a_cache_or_spare_is_not_timed():
    spare = Vdev("sdz", "disk", vclass="spare")
    frame = frames.ALL["imbalance"]()
    row = replace(frame.rows[1], key="spare", vdev=spare)
    shown = whatif_lines(Question("", frame, (PACE,), row), DisplayFormat(), 80)
    assert not any(plain(line).startswith(" resilver") for line in shown)
