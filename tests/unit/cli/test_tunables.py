from __future__ import annotations

import errno
import json
import os
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.table import rows
from tests.unit.waiting import soon
from zconsole.cli import local, tunables
from zconsole.cli.options import parser_of
from zconsole.errors import ExitCode, UnavailableError, UsageError
from zconsole.pool.model import Pool, Scan, Vdev
from zconsole.system import record_file
from zconsole.system.audit import MemoryLog
from zconsole.system.host import process_mark
from zconsole.system.patient import in_time
from zconsole.system.state_dir import StateError, state_dir
from zconsole.timeline.feed import Update
from zconsole.tunables import autopilot
from zconsole.tunables.control import Control
from zconsole.tunables.parameters import Parameters
from zconsole.tunables.pilot import HoldOrder, Targets
from zconsole.tunables.store import PILOT, TunableStore
from zconsole.zfs.sources.base import Capabilities

TIME = "zfs_resilver_min_time_ms"
NAME = "zfs_vdev_scrub_max_active"


@pytest.fixture
def module(tmp_path: Path, monkeypatch) -> Path:
    parameters = tmp_path / "zfs" / "parameters"
    parameters.mkdir(parents=True)
    (tmp_path / "zfs" / "version").write_text("2.3.9-1\n")
    for name, value in {TIME: 3000, NAME: 3, "zfs_scan_suspend_progress": 0}.items():
        (parameters / name).write_text(f"{value}\n")
    monkeypatch.setenv("ZCONSOLE_STATE", str(tmp_path / "state"))

    async def nothing(_: object) -> Update:
        return Update((), Capabilities("none"))

    monkeypatch.setattr(local, "once", nothing)
    return tmp_path / "zfs"


def run(module: Path, *words: str) -> int:
    args = parser_of("tunables").parse_args(words)
    args.config = None
    return tunables.run(args, module)


def value(module: Path) -> int:
    return int((module / "parameters" / TIME).read_text())


def lines(capsys) -> dict[str, dict]:
    return {(o := json.loads(line))["name"]: o for line in capsys.readouterr().out.splitlines()}


@pytest.fixture
def hung(tmp_path: Path, monkeypatch):
    """A state directory on a disk that does not answer until the test is over."""
    answers, asking = threading.Event(), os.stat

    def stat(path, *args, **options):
        if str(path).startswith((str(tmp_path / "state"), "state")):
            answers.wait(60)
        return asking(path, *args, **options)

    opening = os.open

    def open_(path, *args, **options):
        if path == "state":
            answers.wait(60)
        return opening(path, *args, **options)

    monkeypatch.setattr(os, "stat", stat)
    monkeypatch.setattr(os, "open", open_)
    monkeypatch.setattr(in_time, "__defaults__", (0.1,))
    monkeypatch.setattr(record_file, "ANSWER", 0.1)
    yield
    answers.set()


@pytest.mark.parametrize(
    "words",
    [["list"], ["restore"], ["preset", "default"], ["set", f"{TIME}=5000"]],
)
@pytest.mark.usefixtures("hung")
@pytest.mark.slow
def test_a_disk_that_does_not_answer_is_told_of(module, words):
    with pytest.raises(StateError, match=r"state directory .*: no answer in 0.1 s. Check its disk"):
        run(module, *words)


def test_originals_that_cannot_be_read_are_told_of(module, tmp_path, capsys):
    assert run(module, "set", f"{TIME}=5000") == 0
    (tmp_path / "state/tunables.json").write_text("{half")
    for words in ([f"{TIME}=6000"], ["zfs_scan_suspend_progress=0"]):
        with pytest.raises(StateError, match=r"tunables\.json is damaged, or of another version"):
            run(module, "set", *words)
    for words in ([], [TIME]):
        with pytest.raises(StateError, match=r"tunables\.json is damaged, or of another version"):
            run(module, "restore", *words)
    capsys.readouterr()
    assert run(module, "list") == 0
    shown = capsys.readouterr()
    assert "tunables.json is damaged, or of another version" in shown.err
    assert "5000" in shown.out


def test_tunables_are_listed_though_the_home_may_not_be_looked_into(module, capsys, monkeypatch):
    def stat(path, *args, **options):
        if "state" in Path(path).parts:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return asking(path, *args, **options)

    asking = os.stat
    monkeypatch.setattr(os, "stat", stat)
    assert run(module, "list") == 0
    assert TIME in capsys.readouterr().out


def test_set_and_restore(module, capsys):
    assert run(module, "set", f"{TIME}=5000") == 0
    assert f"{TIME}: set to stay: nothing restores it" in capsys.readouterr().err
    assert run(module, "set", f"{TIME}=5001", "--json") == 0
    assert lines(capsys)[TIME]["set_by_us"] == 5001
    assert value(module) == 5001
    assert run(module, "list", "--json") == 0
    assert lines(capsys)[TIME]["original"] == 3000
    assert run(module, "restore") == 0
    assert value(module) == 3000


def test_a_script_can_tell_what_may_not_be_set_and_why(capsys, module):
    assert run(module, "list", "--json") == 0
    records = lines(capsys)
    assert records[TIME]["settable"] is True
    fixed = [record for record in records.values() if not record["settable"]]
    assert fixed
    assert all(record["note"].startswith("never set: ") for record in fixed)


@rows(
    "words",
    [
        ("set",),
        ("set", TIME),
        ("set", f"{TIME}=x"),
        ("set", f"{TIME}=0"),
        ("set", f"{TIME}=²"),
        ("set", f"{TIME}={'9' * 5000}"),
        ("set", "zfs_scrub_delay=0"),
        ("set", "nope=1"),
        ("preset",),
        ("preset", "warp"),
        ("preset", "gentle", "--limit", "memory"),
        ("set", f"{TIME}=5000", "--limit", "memory"),
        ("restore", "nope"),
        ("list", "x"),
        ("set", f"{TIME}=5000", "--read-only"),
        ("hold-latency", "0.02", "--read-only"),
        *(("hold-latency", *words) for words in ((), ("1", "2"))),
        *(("hold-latency", word) for word in ("fast", "0", "nan", "60")),
    ],
)
def test_bad_words_are_usage_errors_and_write_nothing(module, words):
    with pytest.raises(UsageError):
        run(module, *words)
    assert value(module) == 3000


@rows("words", [("preset",), ("preset", "warp"), ("restore", "nope")])
def test_bad_words_are_usage_errors_without_zfs_too(tmp_path, words):
    with pytest.raises(UsageError):
        run(tmp_path / "none", *words)


@rows("words", [("set", f"{TIME}=5000"), ("preset", "gentle"), ("restore",)])
def test_without_zfs_it_says_what_to_try(tmp_path, words):
    with pytest.raises(UnavailableError, match=r"Load it .modprobe zfs., or try: zconsole demo"):
        run(tmp_path / "none", *words)


def test_preset_warns_on_stderr(module, capsys):
    assert run(module, "preset", "faster-resilver") == 0
    assert "every pool" in capsys.readouterr().err
    assert value(module) == 6000


@pytest.mark.parametrize("name", ["zfs_scrub_delay", "zfs_resilver_delay"])
def test_a_preset_lifts_the_delays_of_old_releases_as_the_console_does(module, name):
    (module / "version").write_text("0.7.13-1\n")
    delay = module / "parameters" / name
    delay.write_text("4\n")
    assert run(module, "preset", "faster-resilver", "--limit", "scan-reads") == 0
    assert delay.read_text().strip() == "0"


def test_without_the_module_nothing_is_live(tmp_path, capsys):
    assert run(tmp_path / "none", "list", "--json") == ExitCode.UNAVAILABLE
    out, err = capsys.readouterr()
    assert {json.loads(line)["value"] for line in out.splitlines()} == {None}
    assert "try: zconsole demo" in err


@pytest.mark.slow
def test_freezing_is_put_back_by_a_guard(module, capsys):
    assert run(module, "set", "zfs_scan_suspend_progress=1", "--for", "0.3") == 0
    assert "guard" in capsys.readouterr().err
    live = module / "parameters" / "zfs_scan_suspend_progress"
    assert soon(lambda: live.read_text() == "0\n")


def test_a_value_that_somebody_else_has_frozen_is_left_to_them(module, capsys):
    live = module / "parameters" / "zfs_scan_suspend_progress"
    live.write_text("1\n")
    assert run(module, "set", "zfs_scan_suspend_progress=1", "--for", "0.1") == 0
    said = capsys.readouterr().err
    assert "is already 1, set by someone else: it will not be restored" in said
    assert "guard" not in said


def logged(tmp_path: Path, count: int) -> list[dict]:
    """Return the audit log's lines once there are ``count``; commands write them at the end."""
    path = tmp_path / "state/audit.jsonl"
    assert soon(lambda: path.read_text().count("\n") >= count)
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_audit_log_has_what_was_set_and_put_back(module, tmp_path):
    assert run(module, "preset", "faster-resilver") == 0
    logged(tmp_path, 2)
    assert run(module, "restore") == 0
    lines = logged(tmp_path, 4)
    assert [(line["event"], line["action"]) for line in lines] == [
        ("begun", "preset faster-resilver"),
        ("ended", "preset faster-resilver"),
        ("begun", "restore"),
        ("ended", "restore"),
    ]
    assert lines[0]["values"][0] == {"name": TIME, "old": 3000, "new": 6000}


def test_bytes_are_set_and_listed_with_a_suffix_and_exact_in_json(module, capsys):
    limit = module / "parameters" / "zfs_scan_vdev_limit"
    limit.write_text("16777216\n")
    assert run(module, "set", "zfs_scan_vdev_limit=1.5M") == 0
    assert int(limit.read_text()) == 3 << 19
    said = capsys.readouterr().out.split()
    assert said[:4] == ["zfs_scan_vdev_limit", "1.50M", "default", "16M"]
    assert said[-2:] == ["(was", "16M)"]
    assert run(module, "list", "--json") == 0
    assert lines(capsys)["zfs_scan_vdev_limit"]["value"] == 3 << 19
    assert run(module, "restore") == 0
    assert "restored to 16M" in capsys.readouterr().err
    with pytest.raises(UsageError, match="with a size such as 16M"):
        run(module, "set", "zfs_scan_vdev_limit=much")


DEAD = "999999999:1"
"""The process mark of no process."""


def left_by(module: Path, owner: str | None) -> None:
    """Set a tunable as the process with this mark does."""
    store = TunableStore(state_dir(create=True))
    Control(Parameters(module), store, MemoryLog(), owner).set({TIME: 5000}, 1.0)


HELD = [
    (None, None, "set to stay: nothing restores it before the next boot"),
    (
        DEAD,
        "nobody",
        "its console is gone; restored by zconsole in the background once no scan runs",
    ),
    (
        process_mark(os.getpid()),
        "console",
        f"kept while the console of process {os.getpid()} is open, even after the scan's end;"
        " restored by zconsole in the background once it is gone and no scan runs",
    ),
]


@pytest.mark.parametrize(("owner", "held_by", "said"), HELD, ids=["stays", "left", "held"])
def test_who_holds_a_value_and_what_restores_it_is_said(module, capsys, owner, held_by, said):
    left_by(module, owner)
    assert run(module, "list") == 0
    assert capsys.readouterr().err == f"zconsole: {TIME}: {said}\n"
    assert run(module, "list", "--json") == 0
    listed = lines(capsys)
    assert (listed[TIME]["held_by"], listed[TIME]["promise"]) == (held_by, said)
    assert listed["zfs_scan_suspend_progress"]["promise"] is None


def test_what_another_version_set_is_listed_no_more_once_it_is_restored(module, tmp_path, capsys):
    assert run(module, "set", f"{TIME}=5000") == 0
    file = tmp_path / "state/tunables.json"
    file.write_text(file.read_text().replace(TIME, "zfs_new"))
    (module / "parameters/zfs_new").write_text("5000\n")
    capsys.readouterr()
    assert run(module, "restore") == 0
    assert capsys.readouterr() == ("", "zconsole: zfs_new: restored to 3000\n")
    assert run(module, "restore") == 0
    assert "nothing to restore" in capsys.readouterr().err


def test_restoring_what_a_running_console_holds_says_so(module, capsys):
    left_by(module, process_mark(os.getpid()))
    assert run(module, "restore") == 0
    held = f", which the console of process {os.getpid()} held"
    assert f"{TIME}: restored to 3000{held}" in capsys.readouterr().err
    assert value(module) == 3000


def test_nothing_to_steer_without_a_scan(module):
    with pytest.raises(UnavailableError, match="nothing to steer"):
        run(module, "hold-latency", "0.02")


def test_what_was_set_before_is_to_be_restored_first(module):
    run(module, "set", f"{NAME}=5")
    with pytest.raises(UsageError, match=f"restore {NAME} first"):
        run(module, "hold-latency", "0.02")


def test_off_where_none_runs_says_so(module, capsys):
    assert run(module, "hold-latency", "off") == 0
    assert "no autopilot runs" in capsys.readouterr().err


def test_off_does_not_say_restored_of_what_somebody_changed_since(module, capsys):
    state = state_dir(create=True)
    parameters = Parameters(module)
    Control(parameters, TunableStore(state), MemoryLog(), DEAD).set({NAME: 8}, 1.0)
    (state / PILOT).write_text(DEAD)
    parameters.write(NAME, 7)
    assert run(module, "hold-latency", "off") == 0
    assert parameters.read(NAME) == 7
    said = capsys.readouterr().err
    assert "restored" not in said
    assert f"{NAME}: left at 7: somebody else changed it" in said


@pytest.fixture
def scanned(module, monkeypatch) -> Path:
    """The module, while a pool without redundancy is scrubbed."""
    read = tuple(1000 if bucket == 20 else 0 for bucket in range(37))
    root = Vdev("tank", "root", children=(Vdev("sda", "disk", histograms={"sync_r": read}),))
    seen = Pool("tank", "ONLINE", root, scans=(Scan("scrub", "running"),))

    async def once(_: object):
        return SimpleNamespace(frames=(SimpleNamespace(sample=True, scan=None, seen=seen),))

    monkeypatch.setattr(local, "once", once)
    return module


def test_below_the_defaults_nobody_goes_unasked(scanned, capsys):
    with pytest.raises(UsageError, match="pass --yes"):
        run(scanned, "hold-latency", "20ms", "below-defaults")
    assert "may take up to" in capsys.readouterr().err


def test_yes_goes_below_the_defaults(scanned, monkeypatch):
    started = []

    def start(*args, **_):
        started.append(args[1:])

    monkeypatch.setattr(autopilot, "start", start)
    assert run(scanned, "hold-latency", "20ms", "below-defaults", "--yes") == 0
    assert started == [(HoldOrder(Targets(0.02), below=True),)]
