"""Standard input, output and error that are closed, full, broken, or not a terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.table import rows
from tests.unit.cli.commandline import STATUS, run, saved_in

pytestmark = pytest.mark.slow


@pytest.fixture
def saved(tmp_path):
    return saved_in(tmp_path)


def test_a_closed_pipe_is_quiet():
    read, write = os.pipe()
    os.close(read)
    done = run("demo", "--json", "--count", "50", stdout=write)
    os.close(write)
    assert done.stderr == b""
    assert done.returncode in (0, 141)


@rows(
    ("state", "how", "code"),
    [("ONLINE", (), 0), ("DEGRADED", ("--json",), 10), ("FAULTED", (), 11)],
)
def test_the_exit_status_of_a_pool_does_not_hang_on_who_reads(tmp_path, state, how, code):
    path = saved_in(tmp_path, STATUS.replace("DEGRADED", state).replace("REMOVED", state))
    read, write = os.pipe()
    os.close(read)
    done = run("status", "--from", path, "--exit-status", *how, stdout=write)
    os.close(write)
    assert (done.returncode, done.stderr) == (code, b"")


@rows(
    ("words", "code", "out", "err"),
    [
        ("/nonexistent 2>&-", 3, b"", b""),  # a message stays out of the data
        ("{saved} >&-", 0, b"", b""),  # data goes nowhere
        ("- <&-", 5, b"", b"zconsole: standard input: empty\n"),
    ],
)
def test_a_closed_standard_stream_is_no_failure_of_its_own(saved, words, code, out, err):
    command = f"{sys.executable} -m zconsole status --from {words.format(saved=saved)}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (code, out, err)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_gets_one_line(saved):
    with Path("/dev/full").open("wb") as full:
        done = run("status", "--from", saved, stdout=full)
    assert (done.returncode, done.stderr) == (1, b"zconsole: No space left on device\n")


@pytest.mark.usefixtures("saved")
def test_standard_input_is_read_for_a_dash():
    done = run("status", "--from", "-", "--json", input=STATUS.encode())
    assert json.loads(done.stdout)["pool"] == "tank"
