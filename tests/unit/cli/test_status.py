"""The health report of live pools."""

from __future__ import annotations

from tests.factory import frame, mirror_pool, noisy_pool
from zconsole.__main__ import main
from zconsole.cli.status import exit_status
from zconsole.zfs.sources.base import NO_READER, Capabilities
from zconsole.zfs.sources.live import LiveSource

PROBLEM = {"t": 1.0, "clock": 1.0, "pool": "tank", "problem": "cannot read the pool: no zpool"}

NOISY = """\
  pool: tank
 state: ONLINE
config:

\tNAME        STATE     READ WRITE CKSUM
\ttank        ONLINE       0     0     0
\t  sda       ONLINE       0     0    12
"""


async def _sample(_self):
    return (PROBLEM,)


def test_pools_that_nothing_here_can_read_are_code_4(monkeypatch, capsys):
    none = Capabilities(NO_READER, "libzfs: not here; text: no zpool")
    monkeypatch.setattr(LiveSource, "sample", _sample)
    monkeypatch.setattr(LiveSource, "capabilities", none)
    assert main(["status"]) == 4
    printed = capsys.readouterr()
    assert "tank" in printed.out
    assert "cannot read pools: libzfs: not here; text: no zpool" in printed.err


def test_a_pool_that_does_not_answer_now_is_no_failure_of_the_report(monkeypatch):
    monkeypatch.setattr(LiveSource, "sample", _sample)
    monkeypatch.setattr(LiveSource, "capabilities", Capabilities("libzfs"))
    assert main(["status"]) == 0
    assert main(["status", "--exit-status"]) == 10


def test_devices_that_collect_errors_leave_the_exit_status_at_0(tmp_path, capsys):
    assert exit_status([frame(noisy_pool())]) == 0
    assert exit_status([frame(noisy_pool()), frame(mirror_pool(state="DEGRADED"))]) == 10
    saved = tmp_path / "status"
    saved.write_text(NOISY)
    assert main(["status", "--from", str(saved), "--exit-status"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("tank: ATTENTION (ONLINE)\n  sda: 12 checksum errors\n")
    assert main(["status", "--from", str(saved), "--json"]) == 0
    assert '"health": {"word": "ATTENTION", ' in capsys.readouterr().out
