from __future__ import annotations

import asyncio

from textual.app import App

from zconsole.ui.background import begin_next


async def test_what_takes_long_is_not_begun_again_before_its_end():
    gate, begun = asyncio.Event(), []

    async def work() -> None:
        begun.append(len(begun))
        await gate.wait()

    app: App[None] = App()
    async with app.run_test() as pilot:
        for _ in range(3):
            begin_next(app, work, "jobs")
            await pilot.pause()
        begin_next(app, work, "others")
        await pilot.pause()
        assert begun == [0, 1]
        gate.set()
        await app.workers.wait_for_complete()
        begin_next(app, work, "jobs")
        await pilot.pause()
        assert begun == [0, 1, 2]
