from __future__ import annotations

import asyncio
from functools import partial

from textual.app import App

from zconsole.ui.themed_app import begin, begin_next


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


async def test_what_work_was_given_is_not_written_down():
    class Round:
        def __repr__(self) -> str:
            raise AssertionError("a round of frames takes long to write down")

    async def work(_: Round) -> None:
        return None

    app: App[None] = App()
    async with app.run_test():
        begin(app, partial(work, Round()), "jobs")
        await app.workers.wait_for_complete()
