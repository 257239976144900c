"""Guarantees of every source of samples."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.zfs.sources.sampled import JSON, PLAIN, source
from tests.unit.zfs.sources.source_fakes import settle
from zconsole.zfs.decode import decode
from zconsole.zfs.sources.recording import Recorder
from zconsole.zfs.sources.replay import ReplaySource


async def recording(tmp_path) -> str:
    path = str(tmp_path / "recording")
    taken = source(tmp_path)
    with Recorder(path) as recorder:
        for _ in range(3):
            recorder.write(await taken.sample())
    await taken.aclose()
    return path


@pytest.fixture(params=["libzfs", "json", "text", "replay", "demo"])
async def any_source(request, tmp_path):
    """Every source of samples, to check what all guarantee."""
    if request.param == "replay":
        made = ReplaySource(await recording(tmp_path), None)
    elif request.param == "demo":
        from zconsole.sim.source import SimulatedSource

        made = SimulatedSource()
    else:
        answers = PLAIN if request.param == "text" else JSON
        made = source(tmp_path, answers=answers, prefer=request.param)
    yield made
    await made.aclose()
    await settle()


async def test_every_source_gives_samples_the_decoder_reads(any_source):
    for _ in range(2):
        raws = await any_source.sample()
        assert raws
        for raw in raws:
            (sample,) = decode(raw)
            assert sample.pool.name == raw["pool"]
            assert sample.pool.state in ("ONLINE", "DEGRADED")
            assert sample.source == any_source.capabilities.name
            assert list(sample.pool.root.leaves())


async def test_every_source_may_be_closed_at_once_and_twice(any_source):
    await any_source.aclose()
    await any_source.aclose()
    assert asyncio.all_tasks() == {asyncio.current_task()}
