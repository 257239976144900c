"""The screens against what is kept; ``python -m tests.golden`` draws them anew."""

from __future__ import annotations

import pytest

from tests.golden.rebalance import SIZES, draw, path


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_screens(size):
    drawn = await draw(size)
    assert drawn == {name: path(name, size).read_text(encoding="utf-8") for name in drawn}
