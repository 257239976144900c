"""Pictures of the screen."""

from __future__ import annotations

import errno
import os
from datetime import datetime

import pytest

from tests.ui import frames
from tests.ui.fakes import until, view_state
from zconsole.errors import ZconsoleError
from zconsole.ui.new_file import keep_new

NOW = datetime(2026, 11, 24, 3, 4, 5)  # noqa: DTZ001 - a time on the wall


async def test_the_key_saves_one_and_says_where(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    async with view_state(frames.resilver(), size=(120, 24)) as (_, pilot, read):
        await pilot.press("i")
        await until(pilot, lambda: "picture saved: " in read())
    (picture,) = tmp_path.iterdir()
    assert picture.name.startswith("zconsole-")
    svg = picture.read_text()
    assert "DEGRADED" in svg
    assert "cdnjs" not in svg


async def test_a_directory_that_takes_none_says_so(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    async with view_state(frames.resilver()) as (app, pilot, _):
        await pilot.press("i")
        await until(pilot, lambda: list(app.messages))
        (message,) = app.messages
        assert "No such file" in message.message


def test_a_full_disk_leaves_no_half_a_picture(tmp_path, monkeypatch):
    def full(handle, *_, **__):
        os.close(handle)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fdopen", full)
    with pytest.raises(ZconsoleError, match="No space left"):
        keep_new("<svg/>", tmp_path, NOW, "picture", "svg")
    assert list(tmp_path.iterdir()) == []
