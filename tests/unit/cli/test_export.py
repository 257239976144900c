"""The exporter's figures for past scans do not depend on how long it has run."""

from __future__ import annotations

import configparser
import contextlib
import errno
import io
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest

from tests.factory import frame, mirror_pool
from tests.records import replace
from tests.table import rows
from tests.unit.output.prometheus.shipped import SHARE
from tests.unit.system.test_no_threads import refuse_threads
from tests.unit.waiting import soon
from zconsole.cli import export
from zconsole.cli.export import INSTALLED, for_program, publish, shipped
from zconsole.cli.main import main
from zconsole.cli.options import COMMANDS, SHIPPED, parser_of
from zconsole.errors import NotFoundError, ZconsoleError
from zconsole.output.prometheus.metrics import Page
from zconsole.pool.model import Scan
from zconsole.scan_report.recorder import ReportKeeper
from zconsole.scan_report.store import ReportStore
from zconsole.system.state_dir import StateError
from zconsole.timeline.feed import Update
from zconsole.zfs.sources.base import Capabilities

SCRUB = Scan("scrub", "finished", start=100.0, end=400.0, errors=3)
RESILVER = Scan("resilver", "finished", start=500.0, end=600.0, errors=0)


async def exported(*frames) -> dict[str, float]:
    """Return the last page of a run of the exporter that sees these frames."""

    async def rounds():
        for seen in frames:
            yield Update((seen,), Capabilities("demo"))

    page = Page()
    await publish(rounds(), page, None)
    return figures(page)


def figures(page: Page) -> dict[str, float]:
    """Return what a page says about the last scans."""
    samples = [sample for family in page.families for sample in family.samples]
    return {
        f"{sample.name}{{{','.join(sample.labels.values())}}}": sample.value
        for sample in samples
        if "_last_" in sample.name
    }


def recorded(directory: Path) -> None:
    """Record a run that watched the scrub from beginning to end."""
    store = ReportStore(directory)
    keeper = ReportKeeper(store)
    keeper.push(frame(mirror_pool(replace(SCRUB, state="running", end=None)), t=200.0))
    keeper.push(frame(mirror_pool(SCRUB), t=1000.0))
    keeper.close()


@pytest.fixture
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("ZCONSOLE_STATE", str(tmp_path))
    tmp_path.chmod(0o700)
    return tmp_path


SCRUB_END = "zconsole_last_scan_end_timestamp_seconds{tank,scrub}"


async def test_last_scans_survive_a_restart_of_the_exporter(state):
    recorded(state)
    for _ in range(2):
        assert await exported(frame(mirror_pool(RESILVER))) == {
            "zconsole_last_scan_result{tank,scrub,not restored}": 1.0,
            "zconsole_last_scan_end_timestamp_seconds{tank,scrub}": 400.0,
            "zconsole_last_scan_duration_seconds{tank,scrub}": 300.0,
            "zconsole_last_scan_errors{tank,scrub}": 3.0,
            "zconsole_last_scan_result{tank,resilver,restored}": 1.0,
            "zconsole_last_scan_end_timestamp_seconds{tank,resilver}": 600.0,
            "zconsole_last_scan_duration_seconds{tank,resilver}": 100.0,
            "zconsole_last_scan_errors{tank,resilver}": 0.0,
        }


async def test_reports_that_cannot_be_read_are_tried_again(state, monkeypatch):
    recorded(state)
    answers = [StateError("an earlier call still hangs")]
    reports = ReportStore.reports

    def asked(*args, **named):
        if answers:
            raise answers.pop()
        return reports(*args, **named)

    monkeypatch.setattr(ReportStore, "reports", asked)
    seen = frame(mirror_pool(RESILVER))
    assert SCRUB_END not in await exported(seen)
    answers.append(StateError("an earlier call still hangs"))
    assert SCRUB_END in await exported(seen, seen)


async def test_a_moment_without_threads_does_not_end_the_exporter(state):
    recorded(state)
    page, seen = Page(), frame(mirror_pool(RESILVER))

    async def rounds():
        with pytest.MonkeyPatch.context() as patch:
            refuse_threads(patch)
            yield Update((seen,), Capabilities("demo"))
        assert page.families
        yield Update((seen,), Capabilities("demo"))

    await publish(rounds(), page, None)
    assert SCRUB_END in figures(page)


def several(count):
    async def rounds():
        for t in range(count):
            yield Update((frame(mirror_pool(), float(t)),), Capabilities("demo"))

    return rounds()


@rows(
    "error, said",
    [
        (OSError(errno.ENOSPC, "No space left on device"), "No space left on device"),
        (OSError(errno.EIO, "Input/output error"), "Input/output error"),
        (PermissionError(errno.EACCES, "denied"), "permission denied"),
    ],
)
async def test_a_file_that_cannot_be_written_for_a_while_is_written_again_later(error, said):
    with (
        tempfile.TemporaryDirectory() as place,
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stderr(io.StringIO()) as err,
    ):
        patch.setenv("ZCONSOLE_STATE", place)
        path, left, opened = Path(place, "f.prom"), [None, error, error, None], Path.open

        def broken(self, *how, **more):
            if self.name.startswith(".f.prom") and (failure := left.pop(0)):
                raise failure
            return opened(self, *how, **more)

        patch.setattr(Path, "open", broken)
        await publish(several(4), Page(), str(path))
        assert 'sample_timestamp_seconds{pool="tank"} 3.0' in path.read_text()
    assert err.getvalue() == f"zconsole: {path}: {said}\n"


async def test_a_file_that_could_never_be_written_or_not_at_last_is_a_failure(state):
    with pytest.raises(ZconsoleError, match="No such file"):
        await publish(several(2), Page(), str(state / "absent" / "f.prom"))

    async def rounds():
        async for update in several(2):
            yield update
            if not (state / "f.prom").is_dir():
                (state / "f.prom").unlink()
                (state / "f.prom").mkdir()

    with pytest.raises(NotFoundError, match="is a directory"):
        await publish(rounds(), Page(), str(state / "f.prom"))


async def test_a_file_whose_disk_hangs_holds_no_round_up(state, monkeypatch):
    release, begun = threading.Event(), []

    def hangs(_page, path):
        begun.append(path)
        monkeypatch.setattr(export, "ANSWER", 0.05)  # from the second round on
        if len(begun) > 1:
            release.wait()

    monkeypatch.setattr(export, "write", hangs)
    page = Page()
    with pytest.raises(StateError):
        await publish(several(4), page, str(state / "f.prom"))
    assert soon(lambda: len(begun) == 2)  # its thread may run only after the deadline
    release.set()
    (t,) = [f for f in page.families if f.name == "zconsole_pool_sample_timestamp_seconds"]
    assert t.samples[0].value == 3.0


UNITS = sorted(name for name in SHIPPED.values() if name.endswith(".service"))
TOOL = shutil.which("systemd-analyze")


def unit_of(name: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=False, delimiters="=")
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string((SHARE / name).read_text())
    return parser


def test_every_unit_of_the_package_is_here():
    assert sorted(path.name for path in SHARE.glob("*.service")) == UNITS


@rows("name", UNITS)
def test_a_unit_starts_a_command_with_options_it_has(name):
    program, command, *words = unit_of(name)["Service"]["ExecStart"].split()
    assert program == INSTALLED
    assert command in COMMANDS
    parser_of(command).parse_args([word for word in words if word != "$OPTIONS"])


@rows("name", ["zconsole-export.service", "zconsole-watch@.service"])
def test_a_pool_that_is_not_there_is_looked_for_again_without_a_storm(name):
    unit = unit_of(name)
    assert unit["Service"]["Restart"] == "on-failure"
    assert int(unit["Service"]["RestartSec"]) >= 60
    assert unit["Unit"]["StartLimitIntervalSec"] == "0"
    assert unit["Service"]["RestartPreventExitStatus"] == "2"


@pytest.mark.slow
@pytest.mark.skipif(TOOL is None, reason="systemd-analyze is missing")
@pytest.mark.parametrize("name", UNITS)
def test_systemd_understands_every_line(name, tmp_path):
    path = tmp_path / name.replace("@", "@tank-1")
    text = (SHARE / name).read_text().replace(INSTALLED, shutil.which("true") or "true")
    path.write_text(text.replace("Documentation=man:zconsole(1)\n", ""))
    done = subprocess.run(
        [str(TOOL), "verify", str(path)], capture_output=True, text=True, check=False
    )
    said = [line for line in done.stderr.splitlines() if path.name in line]
    assert [line for line in said if "KillMode=none" not in line] == []
    assert done.returncode == 0


@rows(
    ("program", "command"),
    [
        ("/opt/zconsole/bin/zconsole", "/opt/zconsole/bin/zconsole"),
        ("/srv/my tools/zconsole", '"/srv/my tools/zconsole"'),
        ("/srv/50%/zconsole", '"/srv/50%%/zconsole"'),
        ("/lib/zconsole/__main__.py", "/usr/bin/python3 -m zconsole"),
        ("/srv/my tools/zconsole.pyz", '/usr/bin/python3 "/srv/my tools/zconsole.pyz"'),
    ],
)
def test_systemd_finds_the_program(program: str, command: str) -> None:
    text = (SHARE / "zconsole-rebalance.service").read_text()
    unit = for_program(text, program, "/usr/bin/python3")
    assert f"ExecStart={command} rebalance resume --all\n" in unit
    assert f"ExecStart=-{command} light resume\n" in unit


@rows("name", SHIPPED)
def test_a_file_is_printed_without_zfs(name, capsys):
    assert main(["export", "--print", name]) == 0
    assert capsys.readouterr().out == shipped(name)
    assert name.endswith("-unit") or shipped(name) == (SHARE / SHIPPED[name]).read_text()


@rows("words", [(), ("resume",)])
def test_the_help_of_rebalance_says_where_its_unit_goes(words, capsys):
    with pytest.raises(SystemExit):
        main(["rebalance", *words, "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert f"rebalance-unit` prints to /etc/systemd/system/{SHIPPED['rebalance-unit']}, and" in said
