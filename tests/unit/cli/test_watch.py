from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import json
import os
import subprocess
import sys

import pytest

from tests.factory import frame, mirror_pool
from tests.records import replace
from tests.table import rows
from zconsole.cli.main import main
from zconsole.cli.watch import _rounds, ending_code, scans_ended
from zconsole.errors import ExitCode
from zconsole.pool.health import unreachable
from zconsole.pool.model import SampleFailure, Scan, Vdev
from zconsole.pool.scan_outcome import GRACE
from zconsole.timeline.feed import Update
from zconsole.zfs.sources.base import Capabilities
from zconsole.zfs.sources.live import LiveSource

RUNNING = Scan("resilver", "running", start=1.0)
FINISHED = Scan("resilver", "finished", start=1.0, end=900.0, errors=0)
CANCELED = Scan("scrub", "canceled", start=1.0, end=900.0)


def unrestored():
    pool = mirror_pool(FINISHED, state="DEGRADED")
    pair = Vdev("replacing-0", "replacing", children=pool.root.children[0].children)
    top = replace(pool.root.children[0], children=(pair,))
    root = replace(pool.root, children=(top,))
    return replace(pool, root=root)


SCRUBBED = Scan("scrub", "finished", start=1000.0, end=1100.0, errors=0)


@rows(
    ("pools", "code"),
    [
        ([mirror_pool(FINISHED)], ExitCode.OK),
        ([mirror_pool(CANCELED)], ExitCode.CANCELED),
        ([mirror_pool(replace(FINISHED, errors=2))], ExitCode.DEGRADED),
        ([unrestored()], ExitCode.DEGRADED),
        ([replace(unrestored(), state="ONLINE", scans=(SCRUBBED,))], ExitCode.DEGRADED),
        ([replace(unrestored(), state="ONLINE", scans=())], ExitCode.DEGRADED),
        ([mirror_pool()], ExitCode.OK),
        ([mirror_pool(FINISHED), mirror_pool(CANCELED)], ExitCode.CANCELED),
        ([mirror_pool(FINISHED), mirror_pool(CANCELED), unrestored()], ExitCode.DEGRADED),
    ],
)
def test_how_the_worst_pool_ended_is_the_exit_code(pools, code):
    assert ending_code([frame(pool, over_since=0.0) for pool in pools]) == code


def exported(*scans):
    """Return the frame of another pool, ``usb``, that was exported with these scans."""
    failure = SampleFailure("usb", 901.0, 901.0, "no longer imported", absent=True)
    last = frame(mirror_pool(*scans), 900.0)
    return replace(last, pool="usb", failure=failure, health=unreachable(failure, 1.0))


@rows(
    ("other", "seen", "code"),
    [
        (exported(), (), ExitCode.OK),
        (exported(SCRUBBED), (), ExitCode.OK),
        # Whether it is restored is unknown, if it was this that was waited for.
        (exported(FINISHED), (RUNNING,), ExitCode.DEGRADED),
    ],
)
def test_a_pool_that_is_exported_meanwhile_keeps_no_watch_from_its_end(other, seen, code):
    frames = [frame(mirror_pool(FINISHED), t=901.0), other]
    assert scans_ended(frames)
    seen_running = {"tank": {"resilver": RUNNING}, "usb": {scan.function: scan for scan in seen}}
    assert ending_code(frames, seen_running) == code


def test_a_pool_that_is_exported_during_its_scan_is_waited_for():
    assert not scans_ended([frame(mirror_pool(FINISHED), t=901.0), exported(RUNNING)])


WELL = replace(unrestored(), state="ONLINE")
"""Just after a resilver's end, health doesn't report a vdev that may go any moment."""


@rows(
    ("frames", "over"),
    [
        ([], False),
        ([frame(mirror_pool(RUNNING), t=1.0)], False),
        ([frame(mirror_pool(FINISHED), t=901.0)], True),
        ([frame(mirror_pool(FINISHED), problem="no answer")], False),
        ([frame(mirror_pool(RUNNING)), frame(mirror_pool(FINISHED))], False),
        # What is not restored gets time to settle.
        ([frame(unrestored(), t=1000.0)], False),
        ([frame(unrestored(), t=1000.0 + GRACE / 2, over_since=1000.0)], False),
        ([frame(unrestored(), t=1000.0 + GRACE, over_since=1000.0)], True),
        ([frame(WELL, t=901.0)], False),
    ],
)
def test_scans_are_over_once_all_have_ended_and_settled(frames, over):
    assert scans_ended(frames) == over


@rows(("until_done", "code"), [(False, ExitCode.OK), (True, ExitCode.NOT_FOUND)])
async def test_where_no_pool_is_imported_it_says_so_once(until_done, code, capsys):
    async def nothing():
        for _ in range(2):
            yield Update((), Capabilities("text"))

    args = argparse.Namespace(json=False, until_done=until_done)
    assert await _rounds(args, nothing()) == code
    assert capsys.readouterr().err == "zconsole: no pools are imported\n"


async def test_a_scan_that_still_runs_after_the_last_sample_is_not_done(capsys):
    """A script that goes on with ``&&`` must not take it for restored."""

    async def two():
        for t in (1.0, 2.0):
            yield Update((frame(mirror_pool(RUNNING), t=t),), Capabilities("text"))

    for until_done, code in ((True, ExitCode.FAILED), (False, ExitCode.OK)):
        args = argparse.Namespace(json=True, until_done=until_done)
        assert await _rounds(args, two()) == code
    said = "zconsole: --count is reached before every scan was seen to end\n"
    assert capsys.readouterr().err == said


LOST = {"t": 1.0, "clock": 1.0, "pool": "tank", "problem": "zpool hangs", "kstat": "SUSPENDED"}


@rows("words", [(), ("--json",), ("--bell",)])
def test_alerts_are_told_on_stderr_whether_or_not_they_are_sent_elsewhere(words):
    async def sample(_self):
        return (LOST,)

    err = io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(err),
    ):
        patch.setattr(LiveSource, "sample", sample)
        assert main(["watch", "--count", "1", *words]) == ExitCode.OK
    assert "zconsole: tank: the pool is SUSPENDED: all I/O waits\n" in err.getvalue()


@contextlib.contextmanager
def unread_pipe():
    """Make standard output a full pipe; yields its reading end."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writing, b"\n" * 4096)
    os.set_blocking(writing, True)
    with os.fdopen(writing, "w") as stdout, contextlib.redirect_stdout(stdout):
        yield reading
    os.close(reading)


@pytest.mark.slow
async def test_rounds_go_on_while_nobody_reads_what_is_printed():
    """Otherwise a pager, or ^S, would delay the hooks of alerts."""
    all_taken = asyncio.Event()

    async def taken():
        for t in range(5):
            yield Update((frame(mirror_pool(), float(t)),), Capabilities("text"))
        all_taken.set()

    args = argparse.Namespace(json=True, until_done=False)
    with unread_pipe() as reading:
        following = asyncio.create_task(_rounds(args, taken()))
        await asyncio.wait_for(all_taken.wait(), 60)
        assert not following.done()
        found = b""
        while found.count(b'{"version') < 5:
            found += (await asyncio.to_thread(os.read, reading, 65536)).lstrip()
        assert await following == ExitCode.OK
    assert [json.loads(line)["t"] for line in found.split(b"\n") if line] == [0, 1, 2, 3, 4]


ENDLESS = """
import sys
from zconsole.cli.main import main
from zconsole.zfs.sources.live import LiveSource
async def sample(self):
    print("sampled", file=sys.stderr, flush=True)
    return ({"t": 1.0, "clock": 1.0, "pool": "tank", "problem": "p" * 100000},)
LiveSource.sample = sample
sys.exit(main(["watch", "--json", "--interval", "0.1"]))
"""


@pytest.mark.slow
def test_told_to_end_it_does_though_nobody_reads_it():
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", ENDLESS], **pipes) as watch:
        for _ in range(5):
            assert watch.stderr.readline() == b"sampled\n"
        watch.terminate()
        assert watch.wait(60) == 130
        assert b"Fatal" not in watch.stderr.read()


OLDER = Scan("scrub", "finished", start=-900.0, end=-800.0, errors=0)


@rows(
    ("ends", "code"),
    [
        ((), ExitCode.DEGRADED),
        ((OLDER,), ExitCode.DEGRADED),
        ((FINISHED,), ExitCode.OK),
        ((Scan("resilver", "finished", end=900.0, errors=0),), ExitCode.OK),
        ((SCRUBBED,), ExitCode.OK),
    ],
)
async def test_a_scan_that_vanished_has_not_finished(ends, code, capsys):
    """Its pool was rewound: no sample shows how it ended, at best an older scan."""

    async def taken():
        for pool, over_since in ((mirror_pool(RUNNING), None), (mirror_pool(*ends), 901.0)):
            yield Update((frame(pool, over_since=over_since),), Capabilities("text"))

    args = argparse.Namespace(json=True, until_done=True)
    assert await _rounds(args, taken()) == code
    capsys.readouterr()
