from __future__ import annotations

import json

from tests.records import replace
from zconsole.cli import local
from zconsole.cli.main import main
from zconsole.sim.source import World
from zconsole.timeline.feed import Update
from zconsole.timeline.session import Session
from zconsole.zfs.sources.base import Capabilities


def sampled(monkeypatch, *frames):
    """Let a live command find these frames."""

    async def _once(_pools):
        return Update(frames, Capabilities("text"))

    monkeypatch.setattr(local, "once", _once)


def test_a_file_that_is_no_listing_is_named_with_the_command_that_saves_one(tmp_path, capsys):
    file = tmp_path / "list.txt"
    file.write_text("root:x:0:0\n")
    assert main(["balance", "--from", str(file)]) == 5
    said = f"zconsole: {file}: not `zpool list` output. Save it with: zpool list -v\n"
    assert capsys.readouterr().err == said


def test_a_pool_that_does_not_answer_hides_no_other(monkeypatch, capsys):
    frames = Session().advance(World("two-pools", 1).raws())
    silent, other = replace(frames[0], problem="no answer for 20 s"), frames[1]
    sampled(monkeypatch, silent, other)
    assert main(["balance"]) == 4
    said = capsys.readouterr()
    assert said.out.splitlines()[0] == other.pool
    assert said.err == f"zconsole: {silent.pool}: no answer for 20 s\n"


def test_what_volumes_hold_is_told_with_the_spread_that_files_can_reach(monkeypatch, capsys):
    (frame,) = Session().advance(World("volumes", 1).raws())
    sampled(monkeypatch, frame)
    assert main(["balance"]) == 0
    told = capsys.readouterr().out.splitlines()[-3:]
    assert told == [
        "  14 volumes hold 9.46T, which no rebalance moves",
        "  moving files leaves a spread of at least 34.2 %: the volumes on mirror-0, mirror-1",
        "  to move a volume: zfs send and receive, or the hypervisor's disk move",
    ]
    assert main(["balance", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["volumes"]
    assert found == {
        "count": 14,
        "bytes": 10_400_000_000_000,
        "least_spread": frame.balance.volumes.least_spread,
        "vdevs": ["mirror-0", "mirror-1"],
    }


def test_a_listing_tells_of_no_volumes(tmp_path, capsys):
    file = tmp_path / "list.txt"
    file.write_text(
        "NAME SIZE ALLOC FREE CAP DEDUP HEALTH ALTROOT\ntank 10G 1G 9G 10% 1.00x ONLINE -\n"
    )
    assert main(["balance", "--json", "--from", str(file)]) == 0
    assert json.loads(capsys.readouterr().out)["volumes"] is None


def test_what_more_vdevs_bring_leaves_volumes_where_they_are(monkeypatch, capsys):
    (frame,) = Session().advance(World("volumes", 1).raws())
    sampled(monkeypatch, frame)
    predicted = []
    for known in (frame.seen.volumes, None):
        seen = replace(frame.sample, pool=replace(frame.seen, volumes=known))
        sampled(monkeypatch, replace(frame, sample=seen))
        assert main(["balance", "--json", "--add-vdev", "mirror:2x8T"]) == 0
        predicted.append(json.loads(capsys.readouterr().out))
    least = predicted[0]["after"]["volumes"]["least_spread"]
    assert predicted[0]["rebalance"]["spread_after"] > least > 0.3
    assert predicted[1]["rebalance"]["spread_after"] < least
    sampled(monkeypatch, frame)
    assert main(["balance", "--add-vdev", "mirror:2x8T"]) == 0
    said = capsys.readouterr().out
    assert "rebalancing: rewriting all files once leaves a spread of" in said
    assert "14 volumes hold 9.46T, which no rebalance moves" in said
