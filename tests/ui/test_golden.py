"""Screens compared with the golden ones; ``python -m tests.golden`` draws them anew."""

from __future__ import annotations

import pytest

from tests.golden import PICTURES, TEXTS, draw


@pytest.mark.parametrize("shot", [*TEXTS, *PICTURES], ids=lambda shot: shot.path.name)
async def test_screen(shot):
    assert await draw(shot) == shot.path.read_text(encoding="utf-8")
