"""Advice of the directory screen on how much to choose."""

from __future__ import annotations

import re

import pytest

from tests.records import replace
from tests.ui import frames
from tests.ui.actions.acting import acting
from tests.ui.drawn import plain
from tests.ui.rebalance.steps import SCENARIO, to_tree, until
from zconsole.rebalance.planning.plan_document import PlanDocument
from zconsole.rebalance.planning.settings import EVEN, Limits, Settings
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.panes.balance import balance_title
from zconsole.ui.rebalance.folder_screen import evening_words
from zconsole.units import parse_size

LOOK = DisplayFormat()


async def test_the_amount_to_mark_is_the_one_that_the_plan_of_the_whole_pool_comes_to():
    async with acting(SCENARIO, size=(60, 15)) as a:
        said = (await a.read(to_tree(a))).splitlines()
        settings = Settings(("/storage",), limits=Limits(until_spread=EVEN))
        balance = a.session.frame.balance
        steps = [step async for step in a.session.jobs.rebalance_backend.plan(settings)]
    plan = steps[-1]
    assert isinstance(plan, PlanDocument)
    words = " ".join(line.strip() for line in said[-3:])
    form = (
        r"For an even pool mark (\S+) logical, less helps in part: (\S+) \(raw\) moves,"
        " the rest lands where it was"
    )
    found = re.search(form, words)
    assert found, words
    assert parse_size(found[1]) == pytest.approx(plan.bytes_to_target, rel=0.01)
    # The balance pane's figure, which seemed to contradict it.
    assert f" {found[2]} above the mean (raw) " in plain(balance_title(balance, LOOK, 120))
    assert "1 marked" in said[-1]


def test_nothing_is_to_be_marked_on_an_even_pool_or_one_not_known():
    assert evening_words(frames.ALL["healthy"](), LOOK) == ""
    assert evening_words(replace(frames.imbalance(), root=None), LOOK) == ""


def test_a_pool_that_no_pass_evens_out_says_what_spread_is_left():
    full = frames.imbalance()
    assert full.root is not None
    crowded, free = full.root.children
    nearly = crowded._replace(alloc_bytes=crowded.size_bytes - 1)
    fixed = free._replace(allocating=False)
    said = evening_words(replace(full, root=full.root._replace(children=(nearly, fixed))), LOOK)
    assert said.startswith("Marking everything leaves a spread of ")


async def test_a_directory_without_directories_inside_is_not_offered_to_be_opened():
    async with acting(SCENARIO, size=(80, 24)) as a:
        await to_tree(a, mark=False)
        await a.press("j")
        assert "Right open" in a.screen
        await a.press("right")
        await until(a, lambda: "no directories inside" in a.screen)
        assert "Right open" not in a.screen
        empty = "no directories inside"
        line = next(line for line in a.screen.splitlines() if empty in line)
        assert not {"▸", "▾", "▼"} & set(line)
        folded = await a.read(a.press("left"))
        assert empty not in folded
        name = line.partition(empty)[0].split()[-1]
        assert not any("▸" in each for each in folded.splitlines() if f" {name} " in f"{each} ")
        assert "DIRECTORY (sizes below a mountpoint: logical)" in folded
        assert "[+]" in await a.read(a.press("question_mark"))
