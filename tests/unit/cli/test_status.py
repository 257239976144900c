"""The health report of live pools."""

from __future__ import annotations

import json

import pytest

from tests.factory import frame, mirror_pool, noisy_pool
from zconsole.__main__ import main
from zconsole.cli.status import exit_status
from zconsole.config import file
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

errors: No known data errors
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


def test_where_no_pool_is_imported_a_monitoring_system_is_told(monkeypatch, capsys):
    """For example at boot, when the import failed."""

    async def none(_self):
        return ()

    monkeypatch.setattr(LiveSource, "sample", none)
    monkeypatch.setattr(LiveSource, "capabilities", Capabilities("libzfs"))
    for words, code in ((["status"], 0), (["status", "--exit-status"], 3)):
        assert main(words) == code
        assert capsys.readouterr() == ("", "zconsole: no pools are imported\n")


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


@pytest.mark.parametrize("command", [["status"], ["watch", "--count", "1"]])
@pytest.mark.parametrize(("entry", "overdue"), [("", True), ('scrub-overdue-after = "50d"', False)])
def test_an_overdue_scrub_is_told_by_the_configuration_and_is_no_bad_health(
    tmp_path, monkeypatch, capsys, command, entry, overdue
):
    (tmp_path / "config.toml").write_text(entry)
    monkeypatch.setattr(file, "config_path", lambda: tmp_path / "config.toml")
    monkeypatch.setenv("ZCONSOLE_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(LiveSource, "sample", _scrubbed)
    monkeypatch.setattr(LiveSource, "capabilities", Capabilities("json"))
    assert main([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["last_scrub"], found["scrub_overdue"]) == (ENDED, overdue)
    assert main(["status", "--exit-status"]) == 0
    said = "41 days ago, overdue" if overdue else "41 days ago"
    assert f", {said}\n" in capsys.readouterr().out


ENDED = 1_791_424_800.0
"""Thu Oct  8 02:00:00 2026 in UTC."""


async def _scrubbed(_self):
    stats = {"function": "SCRUB", "state": "FINISHED", "start_time": ENDED - 9, "end_time": ENDED}
    vdevs = {"tank": {"name": "tank", "vdev_type": "root", "state": "ONLINE", "vdevs": {}}}
    pool = {"name": "tank", "state": "ONLINE", "scan_stats": stats, "vdevs": vdevs}
    pool["error_count"] = 0
    raw = {"t": ENDED + 41 * 86400 + 9, "pool": "tank", "version": "2.3.9", "utc_offset": 0}
    return ({**raw, "status": {"pools": {"tank": pool}}},)
