"""Volumes, which no job moves: named on the screens of a pool whose data lies in them."""

from __future__ import annotations

import re

import pytest

from tests.ui.actions.acting import acting
from tests.ui.rebalance.steps import settled, to_tree


@pytest.mark.parametrize(("size", "said"), [((100, 30), "at best 34.2 %: "), ((60, 15), "B")])
async def test_the_main_screen_says_what_is_the_best_that_files_can_reach(size, said):
    async with acting("volumes", size=size) as a:
        assert said in a.screen


async def test_a_plan_says_it_before_anything_runs():
    async with acting("volumes", size=(100, 60)) as a:
        said = await a.read(to_tree(a, mark=False))
        left = re.search(r"Marking everything leaves a spread of (\S+) %: (.*)", said)
        await a.press("space", "enter", "enter")
        await settled(a)
        words = " ".join(a.screen.split())
        then = re.search(r"spread 77.5 %, then (\S+) %", words)
        assert left
        assert left[2].strip() == "9.46T in 14 volumes stay"
        # The directories hold less than all that lies outside of volumes.
        assert then
        assert 34.2 < float(left[1]) < float(then[1])
        assert "14 volumes hold 9.46T, which no rebalance moves" in words
        assert "to move a volume: zfs send and receive" in words


async def test_a_question_what_if_counts_files_only():
    async with acting("volumes", size=(100, 40)) as a:
        await a.press("w", *"mirror:2x8T")
        words = " ".join(a.screen.split())
        assert "rewriting all files once leaves a spread of" in words
        assert "14 volumes hold 9.46T" in words
