"""Fixtures: a booted machine per release (`vm`), pools on its disks (`pool`), actions (`act`)."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator

import pytest

from tests.vm import image
from tests.vm.actor import Actor
from tests.vm.errors import NotAvailableError
from tests.vm.machine import Machine
from tests.vm.pools import PoolFactory, clear
from tests.vm.releases import RELEASES

DISKS = 10
DISK_SIZE = 1 << 30

_MACHINE = pytest.StashKey[Machine]()
_UNAVAILABLE = pytest.StashKey[dict[str, None]]()


def releases() -> list[str]:
    """Return the releases to test: `$ZCONSOLE_VM_RELEASES`, comma-separated; all if unset."""
    chosen = os.environ.get("ZCONSOLE_VM_RELEASES")
    names = chosen.split(",") if chosen else list(RELEASES)
    if unknown := sorted(set(names) - set(RELEASES)):
        raise pytest.UsageError(f"ZCONSOLE_VM_RELEASES: not a release: {', '.join(unknown)}")
    return names


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one test per release, or only one if none will run: collecting takes seconds."""
    if "built" in metafunc.fixturenames:
        none = metafunc.config.getoption("markexpr") == "not zfs"
        chosen = releases()[:1] if none else releases()
        metafunc.parametrize("built", chosen, indirect=True, scope="session")


@pytest.fixture(scope="session")
def built(request: pytest.FixtureRequest) -> image.Image:
    """The image of each release, built if the cache lacks it.

    Skips if machines cannot run here; fails instead with `ZCONSOLE_VM_REQUIRED=1`.
    """
    try:
        if reason := image.why_unavailable():
            raise NotAvailableError(reason)
        with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            return image.build(request.param)
    except NotAvailableError as error:
        if os.environ.get("ZCONSOLE_VM_REQUIRED") == "1":
            pytest.fail(str(error), pytrace=False)
        request.config.stash.setdefault(_UNAVAILABLE, {})[str(error)] = None
        pytest.skip(f"no virtual machine of {request.param} here: {error}")


@pytest.fixture(scope="session")
def booted(built: image.Image) -> Iterator[Machine]:
    """One machine per release for the whole session, with the source tree under test."""
    with Machine.boot(built, [DISK_SIZE] * DISKS) as machine:
        machine.push_tree()
        yield machine


@pytest.fixture
def vm(booted: Machine, request: pytest.FixtureRequest) -> Iterator[Machine]:
    """The session's machine, without pools or limits before and after each test."""
    request.node.stash[_MACHINE] = booted
    yield booted
    if request.session.exitstatus is not pytest.ExitCode.INTERRUPTED:
        clear(booted)


@pytest.fixture
def pool(vm: Machine) -> PoolFactory:
    """Factory of pools on the machine's disks; `vm` destroys them afterwards."""
    return PoolFactory(vm)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that needs a machine, so that no test has to do it."""
    for item in items:
        if "built" in getattr(item, "fixturenames", ()):
            item.add_marker("zfs")


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print why tests on a real OpenZFS were skipped, one line per reason."""
    for reason in config.stash.get(_UNAVAILABLE, {}):
        terminalreporter.write_line(f"tests on a real OpenZFS are skipped here: {reason}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep the console log of a machine whose test failed, and name it in the report."""
    report = yield
    machine = item.stash.get(_MACHINE, None)
    if report.failed and machine is not None:
        report.sections.append(("VM console", str(machine.keep_console_log())))
    return report


@pytest.fixture
def act(pool: PoolFactory) -> Actor:
    """Runner of actions in the guest, with a new state directory for the test."""
    pool.machine.run("rm -rf /root/state")
    return Actor(pool)
