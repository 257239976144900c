from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from pathlib import Path

import pytest

from tests.table import rows
from zconsole.errors import ZconsoleError
from zconsole.system.audit import (
    LONGEST,
    NAME,
    PRIORITY,
    Audit,
    AuditError,
    append_line,
    audit_log,
    recall,
    send_line,
)
from zconsole.system.state_dir import StateError

SHORT = 0.6
"""Seconds that each destination is given here."""
AT_ONCE = 0.5


@pytest.fixture
def hung():
    """A disk that answers no write until the test is over, and the writes tried."""
    back, tried = threading.Event(), []

    def append(line: str) -> None:
        tried.append(line)
        back.wait()

    yield append, tried
    back.set()


@pytest.fixture
def reader(tmp_path):
    """A fake system log: a socket that is read."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(tmp_path / "log"))
        receiver.settimeout(5.0)
        yield receiver


def audit(**chosen) -> Audit:
    return Audit({"uid": 0}, chosen, SHORT)


def lines(directory: Path) -> list[dict]:
    return [json.loads(line) for line in (directory / NAME).read_text().splitlines()]


def seconds(work) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def test_a_line_is_on_disk_when_write_returns(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_size))
    log = audit_log(lambda: tmp_path)
    log.write(5.0, "begun", argv=["zpool", "scrub", "tank"])
    assert synced == [(tmp_path / NAME).stat().st_size]
    (line,) = lines(tmp_path)
    assert (line["t"], line["event"], line["argv"]) == (5.0, "begun", ["zpool", "scrub", "tank"])
    assert line["who"]["uid"] == os.getuid()


@pytest.mark.parametrize("name", ["a\nb", "a\r\x1b[2Kb", "\udcff", "\u2028", "\x85", "\0"])
def test_no_name_breaks_a_line(tmp_path, name):
    log = audit_log(lambda: tmp_path)
    log.write(1.0, "begun", argv=[name], pool=name)
    log.write(2.0, "ended", result=name)
    text = (tmp_path / NAME).read_text()
    assert text.isascii()
    assert text.replace("\n", "").isprintable()
    assert [line.get("pool", line.get("result")) for line in lines(tmp_path)] == [name, name]


def test_a_line_that_was_cut_off_does_not_swallow_the_next(tmp_path):
    (tmp_path / NAME).write_text('{"t": 1')
    audit_log(lambda: tmp_path).write(2.0, "begun")
    cut_off, whole = (tmp_path / NAME).read_text().splitlines()
    assert (cut_off, json.loads(whole)["t"]) == ('{"t": 1', 2.0)


def test_where_the_file_cannot_be_written_the_systems_log_has_the_line(tmp_path, reader):
    def full() -> Path:
        raise ZconsoleError("No space left on device")

    audit_log(full, tmp_path / "log").write(1.0, "begun", argv=["zpool", "clear", "tank"])
    head, _, line = reader.recv(9000).decode().partition(": ")
    assert head == f"<85>zconsole[{os.getpid()}]"
    assert json.loads(line)["argv"] == ["zpool", "clear", "tank"]


def test_refused_only_when_both_fail_with_both_reasons(tmp_path):
    log = audit_log(lambda: tmp_path / "gone", tmp_path / "no-socket")
    with pytest.raises(AuditError) as error:
        log.write(1.0, "begun")
    assert str(error.value).count("No such file or directory") == 2


@rows("error", [OSError(28, "full"), ZconsoleError("full"), KeyError("full")])
def test_whatever_ends_a_write_is_no_line(error):
    def append(_line: str) -> None:
        raise error

    kept: list[str] = []
    audit(file=append, syslog=kept.append).write(1.0, "begun")
    assert len(kept) == 1
    with pytest.raises(AuditError, match=r"file: '?full"):
        audit(file=append).write(1.0, "begun")


@pytest.mark.parametrize("make", ["link", "others", "pipe"])
def test_a_file_that_somebody_else_could_have_made_is_not_written(tmp_path, make):
    (tmp_path / "victim").write_text("keep")
    if make == "link":
        (tmp_path / NAME).symlink_to(tmp_path / "victim")
    elif make == "pipe":
        os.mkfifo(tmp_path / NAME)
    else:
        (tmp_path / NAME).touch(0o666)
        (tmp_path / NAME).chmod(0o666)
    with pytest.raises(AuditError):
        audit_log(lambda: tmp_path, tmp_path / "no-socket").write(1.0, "begun")
    assert (tmp_path / "victim").read_text() == "keep"


def test_a_log_that_is_rotated_between_two_lines_is_begun_anew(tmp_path):
    log = audit_log(lambda: tmp_path, tmp_path / "no-socket")
    log.write(1.0, "begun")
    (tmp_path / NAME).rename(tmp_path / "audit.jsonl.1")
    log.write(2.0, "ended")
    (ended,) = lines(tmp_path)
    assert (ended["t"], ended["event"]) == (2.0, "ended")
    assert json.loads((tmp_path / "audit.jsonl.1").read_text())["event"] == "begun"


@pytest.mark.slow
def test_a_disk_that_hangs_is_given_up_and_not_waited_for_again(hung):
    place, tried = hung
    kept: list[str] = []
    log = audit(file=place, syslog=kept.append)
    assert SHORT <= seconds(lambda: log.write(1.0, "begun")) < SHORT + 30.0
    assert seconds(lambda: log.write(2.0, "begun")) < AT_ONCE
    assert [json.loads(line)["t"] for line in kept] == [1.0, 2.0]
    assert len(tried) == 1


@pytest.mark.slow
def test_a_disk_that_is_back_is_written_again():
    back, written = threading.Event(), []

    def append(line: str) -> None:
        back.wait()
        written.append(json.loads(line)["t"])

    log = audit(file=append)
    with pytest.raises(AuditError):
        log.write(1.0, "begun")
    back.set()
    while written[1:] != [2.0]:
        with contextlib.suppress(AuditError):
            log.write(2.0, "ended")
    assert written == [1.0, 2.0]


@pytest.mark.usefixtures("reader")
def test_a_reader_of_the_systems_log_that_hangs_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr("zconsole.system.audit.SENDING", 0.05)
    address = tmp_path / "log"

    def fill() -> None:
        for _ in range(10_000):
            send_line("x" * 1000, address)

    with pytest.raises(OSError, match="timed out"):
        fill()
    log = audit(syslog=lambda line: send_line(line, address))
    with pytest.raises(AuditError, match="timed out"):
        log.write(1.0, "begun")


@pytest.mark.parametrize("over", [0, 1, 2000])
def test_a_line_too_long_for_the_systems_log_says_how_much_is_cut(tmp_path, reader, over):
    head = f"<{PRIORITY}>zconsole[{os.getpid()}]: "
    line = "x" * (LONGEST - len(head) + over)
    send_line(line, tmp_path / "log")
    text, sign, cut = reader.recv(1 << 20).decode().partition("... (")
    assert len(text + sign + cut) <= LONGEST
    gone = int(cut.removesuffix(" bytes cut)")) if sign else 0
    assert (len(text) + gone, bool(sign)) == (len(head + line), over > 0)


def test_a_note_waits_for_nobody_and_raises_nothing(hung):
    place, _ = hung
    log = audit(file=place)
    assert seconds(lambda: log.note(1.0, "begun")) < AT_ONCE
    assert seconds(lambda: log.note(2.0, "ended")) < AT_ONCE
    assert not log.settle(0.01)


def test_notes_are_written_in_their_order(tmp_path):
    log = audit(file=lambda line: append_line(tmp_path / NAME, line))
    for t in range(50):
        log.note(float(t), "begun")
    assert log.settle(10.0)
    assert [line["t"] for line in lines(tmp_path)] == [float(t) for t in range(50)]


def test_the_newest_records_are_read_back_within_a_bound(tmp_path):
    path = tmp_path / NAME
    for t in range(100):
        append_line(path, json.dumps({"t": t, "event": "ended"}))
    assert [record["t"] for record in recall(path)] == list(range(100))
    newest = [record["t"] for record in recall(path, most=200)]
    assert newest == list(range(100 - len(newest), 100))
    assert 0 < len(newest) < 10


@pytest.mark.parametrize(
    "line", ["", "{", "[1]", "null", '{"t": "x"}', '{"t": NaN}', "{}", "[" * 9999]
)
def test_lines_that_are_no_records_are_left_out(tmp_path, line):
    path = tmp_path / NAME
    for each in ('{"t": 1}', line, '{"t": 2}'):
        append_line(path, each)
    assert [record["t"] for record in recall(path)] == [1, 2]


def test_no_log_has_no_records_and_a_link_is_not_followed(tmp_path):
    assert recall(tmp_path / NAME) == []
    (tmp_path / "elsewhere").write_text('{"t": 1}\n')
    (tmp_path / NAME).symlink_to("elsewhere")
    with pytest.raises(StateError):
        recall(tmp_path / NAME)
