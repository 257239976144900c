"""What every test of a console shares."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual._compositor import Compositor

STEP = 0.002
"""Seconds textual's pilot sleeps before it looks whether all is still."""


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for stillness in small steps, and paint at once.

    Textual's pilot sleeps 20 ms for every key and every pause, several times the work of one.
    """
    monkeypatch.setattr("textual._wait.SLEEP_GRANULARITY", STEP)
    monkeypatch.setattr("textual._wait.SLEEP_IDLE", STEP / 2)
    monkeypatch.setattr("textual.screen.UPDATE_PERIOD", STEP / 2)


@pytest.fixture(autouse=True)
def unsent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw a screen when a test reads it, not also what a terminal would be sent, and is not."""
    render = Compositor.render_update

    def _render(compositor: Compositor, full: bool = False, **options: Any) -> object:
        if full:  # of a picture
            return render(compositor, full, **options)
        return compositor._dirty_regions.clear()

    monkeypatch.setattr(Compositor, "render_update", _render)


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Run in a directory of its own: a key saves a picture where the console was started."""
    monkeypatch.chdir(tmp_path)
