from __future__ import annotations

from tests.records import replace
from zconsole.cli import local
from zconsole.cli.main import main
from zconsole.sim.source import World
from zconsole.timeline.feed import Update
from zconsole.timeline.session import Session
from zconsole.zfs.sources.base import Capabilities


def test_a_file_that_is_no_listing_is_named_with_the_command_that_saves_one(tmp_path, capsys):
    file = tmp_path / "list.txt"
    file.write_text("root:x:0:0\n")
    assert main(["balance", "--from", str(file)]) == 5
    said = f"zconsole: {file}: not `zpool list` output. Save it with: zpool list -v\n"
    assert capsys.readouterr().err == said


def test_a_pool_that_does_not_answer_hides_no_other(monkeypatch, capsys):
    frames = Session().advance(World("two-pools", 1).raws())
    silent, other = replace(frames[0], problem="no answer for 20 s"), frames[1]

    async def _once(_pools):
        return Update((silent, other), Capabilities("text"))

    monkeypatch.setattr(local, "once", _once)
    assert main(["balance"]) == 4
    said = capsys.readouterr()
    assert said.out.splitlines()[0] == other.pool
    assert said.err == f"zconsole: {silent.pool}: no answer for 20 s\n"
