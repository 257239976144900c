from __future__ import annotations

import errno
import json
import os
import threading
from functools import partial
from pathlib import Path

import pytest

from tests.unit.tunables.conftest import Kernel
from zconsole.errors import UnavailableError, UsageError, ZconsoleError
from zconsole.system.audit import AuditError, MemoryLog
from zconsole.system.patient import NoAnswerError
from zconsole.system.record_file import MOST_BYTES
from zconsole.system.state_dir import StateError, write_private
from zconsole.tunables import parameters
from zconsole.tunables.autopilot import PilotClaim
from zconsole.tunables.catalog import BY_NAME, HISTORICAL
from zconsole.tunables.control import Control
from zconsole.tunables.parameters import Parameters
from zconsole.tunables.store import TunableStore

TIME = "zfs_resilver_min_time_ms"


def test_original_is_remembered_once_and_put_back(kernel):
    console = kernel.console()
    console.set({TIME: 5000}, 1.0)
    kernel.console().set({TIME: 9000}, 2.0)
    assert kernel.read(TIME) == 9000
    setting = console.setting(TIME)
    assert (setting.original, setting.set_by_us, setting.ours) == (3000, 9000, True)
    assert [r.put_back for r in kernel.console().restore(3.0)] == [True]
    assert kernel.read(TIME) == 3000
    assert console.setting(TIME).original is None


def test_the_original_is_on_the_disk_before_the_kernel_has_another(kernel, monkeypatch):
    known = []

    def write(_parameters, name, value):
        known.append(kernel.console().setting(name).original)
        kernel.write(name, value)

    monkeypatch.setattr(Parameters, "write", write)
    console = kernel.console()
    console.set({TIME: 5000, "zfs_scrub_min_time_ms": 2000}, 1.0)
    console.set({TIME: 3000}, 2.0)
    assert known == [3000, 1000, 3000]
    assert console.setting(TIME).original is None


def test_a_death_just_before_a_later_write_loses_no_original(kernel, monkeypatch):
    """A console was killed after writing its file, before the kernel had the value."""
    file, kept = kernel.state / "tunables.json", []

    def write(_parameters, _name, _value):
        kept.append(file.read_bytes())
        raise UnavailableError("killed")

    def killed(value: int) -> None:
        file.write_bytes(kept[-1])
        kernel.write(TIME, value)

    kernel.console().set({TIME: 4000}, 1.0)
    with monkeypatch.context() as patch:
        patch.setattr(Parameters, "write", write)
        with pytest.raises(UnavailableError):
            kernel.console().set({TIME: 4005}, 2.0)
    killed(7777)
    (result,) = kernel.console().restore(3.0)
    assert (result.put_back, kernel.read(TIME)) == (False, 7777), "somebody else set it"
    killed(4000)
    kernel.console().set({TIME: 6000}, 3.0)
    assert kernel.console().setting(TIME).original == 3000
    killed(4000)
    setting = kernel.console().setting(TIME)
    assert (setting.set_by_us, setting.ours, setting.original) == (4000, True, 3000)
    assert kernel.console().past().in_place == (TIME,)
    (result,) = kernel.console().restore(3.0)
    assert (result.put_back, kernel.read(TIME)) == (True, 3000)
    changes = [(c.t, c.before, c.after) for c in kernel.console().past().changes]
    assert (changes[0], changes[-1]) == ((1.0, 3000, 4000), (3.0, 4000, 3000))


def test_an_interruption_as_the_kernel_gets_the_value_loses_no_original(kernel, monkeypatch):
    def write(_parameters, name, value):
        kernel.write(name, value)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Parameters, "write", write)
        with pytest.raises(KeyboardInterrupt):
            kernel.console().set({TIME: 5000}, 1.0)
    assert [entry.put_back for entry in kernel.console().restore(2.0)] == [True]
    assert kernel.read(TIME) == 3000


def test_a_tunable_that_this_version_does_not_know_goes_back_as_well(kernel):
    """It was set by another version during this boot."""
    kernel.console().set({TIME: 5000, SCRUB: 2000}, 1.0)
    file = kernel.state / "tunables.json"
    file.write_text(file.read_text().replace(TIME, "zfs_new"))
    for value, back, text in (
        (5000, True, "restored to 3000"),
        (7777, False, "left at 7777: somebody else changed it (5000 was set here)"),
    ):
        content = file.read_bytes()
        kernel.write("zfs_new", value)
        done = {entry.name: entry for entry in kernel.console().restore(2.0)}
        assert (done["zfs_new"].put_back, done["zfs_new"].text) == (back, text)
        assert kernel.read("zfs_new") == (3000 if back else value)
        assert kernel.console().past().holds == {}
        file.write_bytes(content)


def test_setting_over_somebody_elses_value_returns_to_theirs(kernel):
    console = kernel.console()
    console.set({TIME: 5000}, 1.0)
    kernel.write(TIME, 7777)
    console.set({TIME: 6000}, 2.0)
    console.restore(3.0)
    assert kernel.read(TIME) == 7777


@pytest.mark.parametrize("load", [("boot-2", "zfs"), ("boot-1", "zfs-reloaded")])
def test_a_reboot_or_reload_forgets(kernel, load):
    kernel.console().set({TIME: 5000}, 1.0)
    kernel.boot(*load)
    kernel.write(TIME, 5000)  # by coincidence, or by modprobe.d
    assert kernel.console().setting(TIME).original is None
    assert kernel.console().restore(2.0) == ()
    assert kernel.read(TIME) == 5000


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({TIME: 0}, "out of range"),
        ({TIME: 60_001}, "out of range"),
        ({"zfs_vdev_async_write_min_active": 11}, "exceed"),
        ({"zfs_vdev_scrub_max_active": 1, "zfs_vdev_scrub_min_active": 2}, "exceed"),
        ({"zfs_no_scrub_io": 1}, "not written"),
        ({"zfs_scan_suspend_progress": 1}, "guard"),
        ({"zfs_scrub_delay": 0}, "0.8"),
        ({"zfs_scan_min_time_ms": 1}, "zfs_scrub_min_time_ms"),
        ({"vfs.zfs.resilver_min_time_ms": 1}, "zfs_resilver_min_time_ms"),
        ({"zfs_nonsense": 1}, "no tunable"),
    ],
)
def test_refused_before_anything_is_written(kernel, values, text):
    with pytest.raises(UsageError, match=text):
        kernel.console().set({"zfs_scan_vdev_limit": 32 << 20} | values, 1.0)
    assert kernel.read("zfs_scan_vdev_limit") == 16 << 20
    assert kernel.console().past().changes == ()


def test_both_ends_of_a_class_may_be_raised_together(kernel):
    kernel.console().set({"zfs_vdev_scrub_min_active": 8, "zfs_vdev_scrub_max_active": 16}, 1.0)
    assert kernel.read("zfs_vdev_scrub_min_active") == 8


def test_what_the_kernel_lacks_is_said(kernel):
    with pytest.raises(UnavailableError, match="does not exist"):
        kernel.console().set({"zfs_rebuild_vdev_limit": 64 << 20}, 1.0)
    listed = {s.tunable.name: s.value for s in kernel.console().list()}
    assert listed["zfs_rebuild_vdev_limit"] is None
    assert listed[TIME] == 3000
    assert set(listed) == BY_NAME.keys() - HISTORICAL.keys()


def test_what_only_old_releases_have_is_listed_and_set_there(kernel):
    """A suggestion to set zfs_scrub_delay led to a list without it, and was refused."""
    (kernel.module / "version").write_text("0.7.13-1\n")
    kernel.write("zfs_scrub_delay", 4)
    (delay,) = (s for s in kernel.console().list() if s.tunable.name == "zfs_scrub_delay")
    assert (delay.value, delay.default) == (4, 4)
    kernel.console().set({"zfs_scrub_delay": 0}, 1.0)
    assert kernel.read("zfs_scrub_delay") == 0


@pytest.mark.parametrize(
    ("euid", "error", "said"),
    [
        (1000, errno.EACCES, f"{TIME}: Permission denied. Run it as root"),
        (0, errno.EACCES, f"{TIME}: Permission denied"),
        (0, errno.EROFS, f"{TIME}: Read-only file system"),
    ],
)
@pytest.mark.parametrize("steers", [False, True])
def test_who_may_not_write_is_told_why_and_nothing_is_remembered(
    kernel, monkeypatch, euid, error, said, steers
):
    """A user who is root is not told to become root: in a container that does not help."""

    def refused(path, *args, **options):
        if str(path).endswith(TIME) and args[0] & os.O_WRONLY:
            raise OSError(error, os.strerror(error))
        return opening(path, *args, **options)

    opening = os.open
    monkeypatch.setattr(os, "open", refused)
    monkeypatch.setattr(parameters, "is_root", lambda: euid == 0)
    console, claim = kernel.console(), PilotClaim(kernel.state, "1:1")
    act = partial(claim.take, kernel.parameters) if steers else partial(console.set, {TIME: 5}, 1.0)
    with pytest.raises(UnavailableError) as caught:
        act()
    assert str(caught.value) == said
    assert console.setting(TIME).set_by_us is None


def cut_off(file: Path) -> None:
    file.write_text(file.read_text()[:-9])


def of_another_version(file: Path) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), "new": 1}))


def too_large(file: Path) -> None:
    file.write_text(file.read_text() + " " * MOST_BYTES)


def not_private(file: Path) -> None:
    file.chmod(0o666)


@pytest.mark.parametrize("harm", [cut_off, of_another_version, too_large, not_private])
def test_originals_that_cannot_be_read_are_not_written_over(kernel, harm):
    kernel.console().set({TIME: 5000}, 1.0)
    file = kernel.state / "tunables.json"
    harm(file)
    before = file.read_bytes()
    for change in (
        lambda console: console.set({TIME: 6000}, 2.0),
        lambda console: console.set({SCRUB: 6000}, 2.0),
        lambda console: console.until("77"),
        lambda console: console.check_saved(),
    ):
        with pytest.raises(StateError, match=r"tunables\.json"):
            change(kernel.console("1:1"))
    assert (kernel.read(TIME), kernel.read(SCRUB), file.read_bytes()) == (5000, 1000, before)


def test_originals_that_do_not_answer_are_not_written_over(kernel, monkeypatch):
    """The lock was taken, then the disk hung: what another console set is not known."""
    kernel.console().set({TIME: 5000}, 1.0)
    before, answers = (kernel.state / "tunables.json").read_bytes(), threading.Event()
    with monkeypatch.context() as patch:
        patch.setattr("zconsole.system.record_file.ANSWER", 0.1)
        patch.setattr("zconsole.system.record_file.read_private", lambda *_: answers.wait(60))
        with pytest.raises(NoAnswerError):
            kernel.console().set({SCRUB: 2000}, 2.0)
        answers.set()
    assert (kernel.read(SCRUB), (kernel.state / "tunables.json").read_bytes()) == (1000, before)


def test_one_that_the_kernel_refuses_keeps_no_other_from_going_back(kernel, monkeypatch):
    kernel.console().set({TIME: 5000, "zfs_scrub_min_time_ms": 2000}, 1.0)
    refused = Parameters.write

    def write(parameters, name, value):
        if name == TIME:
            raise ZconsoleError(f"{name}={value}: refused: Invalid argument")
        refused(parameters, name, value)

    monkeypatch.setattr(Parameters, "write", write)
    with pytest.raises(ZconsoleError, match=f"{TIME}=3000: refused"):
        kernel.console().restore(2.0)
    assert kernel.read("zfs_scrub_min_time_ms") == 1000
    assert kernel.console().setting(TIME).original == 3000
    assert not kernel.log.records[-1]["ok"]


def test_a_disk_that_fails_once_the_kernel_has_the_value_is_no_failure(kernel, monkeypatch):
    written = []

    def save(path, data):
        if written:
            raise StateError(f"{path}: No space left on device")
        written.append(data)
        write_private(path, data)

    monkeypatch.setattr("zconsole.system.record_file.write_private", save)
    (setting,) = kernel.console().set({TIME: 5000}, 1.0)
    assert (kernel.read(TIME), setting.original) == (5000, 3000)


TIME, SCRUB = "zfs_resilver_min_time_ms", "zfs_scrub_min_time_ms"


class Unwritable(MemoryLog):
    """A log for which neither file nor system log works."""

    def write(self, t, event, **fields):
        raise AuditError("audit log not writable")


def told(kernel: Kernel) -> list[tuple[str, str, list[tuple[str, int, int]]]]:
    return [
        (
            line["event"],
            line["action"],
            [(value["name"], value["old"], value["new"]) for value in line["values"]],
        )
        for line in kernel.log.records
    ]


def test_a_write_is_told_before_and_after_with_old_and_new(kernel, monkeypatch):
    known = []

    def write(_parameters, name, value):
        known.append([line["event"] for line in kernel.log.records])
        kernel.write(name, value)

    monkeypatch.setattr(Parameters, "write", write)
    console = kernel.console()
    console.set({TIME: 5000, SCRUB: 1000}, 1.0)
    console.set({TIME: 6000}, 2.0, action="preset faster-resilver")
    console.restore(3.0)
    assert told(kernel) == [
        ("begun", "set", [(TIME, 3000, 5000)]),
        ("ended", "set", [(TIME, 3000, 5000)]),
        ("begun", "preset faster-resilver", [(TIME, 5000, 6000)]),
        ("ended", "preset faster-resilver", [(TIME, 5000, 6000)]),
        ("begun", "restore", [(TIME, 6000, 3000)]),
        ("ended", "restore", [(TIME, 6000, 3000)]),
    ]
    assert [seen[-1] for seen in known] == ["begun"] * 3
    assert [line["kind"] for line in kernel.log.records] == ["tunable"] * 6


def test_what_changes_nothing_is_not_told(kernel):
    kernel.console().set({TIME: 3000}, 1.0)
    kernel.console().restore(2.0)
    assert kernel.log.records == []


def test_a_write_that_the_kernel_refuses_is_told_as_failed(kernel, monkeypatch):
    def write(_parameters, name, value):
        if name == SCRUB:
            raise ZconsoleError("refused")
        kernel.write(name, value)

    monkeypatch.setattr(Parameters, "write", write)
    with pytest.raises(ZconsoleError):
        kernel.console().set({TIME: 5000, SCRUB: 2000}, 1.0)
    begun, ended = kernel.log.records
    assert (begun["event"], ended["event"]) == ("begun", "ended")
    assert (ended["ok"], ended["result"]) == (False, "failed: refused")
    assert [value["name"] for value in ended["values"]] == [TIME]
    assert kernel.console().setting(SCRUB).original is None


@pytest.mark.parametrize("harmed", [(), ("make_directory",), ("write_private",)])
def test_without_a_line_in_some_log_nothing_is_set_and_all_is_put_back(kernel, monkeypatch, harmed):
    """Also on a full or read-only disk, where the changes are known but can't be forgotten."""
    kernel.console().set({TIME: 5000}, 1.0)

    def full(*_) -> None:
        raise StateError("No space left on device")

    for name in harmed:
        monkeypatch.setattr(f"zconsole.system.record_file.{name}", full)
    stuck = Control(kernel.parameters, TunableStore(kernel.state), Unwritable())
    with pytest.raises(ZconsoleError):
        stuck.set({SCRUB: 2000}, 2.0)
    assert kernel.read(SCRUB) == 1000
    assert [entry.put_back for entry in stuck.restore(3.0)] == [True]
    assert kernel.read(TIME) == 3000
