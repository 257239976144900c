"""Pytest setup for every test: no state of this machine is used, and modules are compiled once."""

import contextlib
import gc
import os
import signal
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import settings

# A slow test on a busy machine is not a failure, so examples have no deadline.
settings.register_profile("short", deadline=None, max_examples=10)
settings.register_profile("long", deadline=None, max_examples=1000)
settings.load_profile("short")
pytest.register_assert_rewrite("tests.vm.agreement", "tests.vm.fields")

# Keep compiled modules: otherwise each test that starts Python, and each worker, would compile the
# whole package again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A shell that starts the tests in the background makes them, and all their children, ignore ^C.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    """Stop Hypothesis from collecting the program's own constants, unless a profile is asked for.

    To find them, it reads and walks all modules in each process: 4 s of CPU in a fresh clone. With
    ten examples, hardly any of a few thousand constants would ever be drawn.
    """
    drawn_from = sys.modules.get("hypothesis.internal.conjecture.providers")
    if drawn_from is not None and config.getoption("--hypothesis-profile", None) is None:
        vars(drawn_from)["is_local_module_file"] = lambda _: False


def pytest_collection(session: pytest.Session) -> None:
    """Let each worker start importing at a different test, so that they share the compiling."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if not worker:
        return
    gc.disable()  # nothing that collection creates is garbage
    places = [Path(argument.partition("::")[0]).resolve() for argument in session.config.args]
    tests = [test for place in places for test in sorted(place.rglob("test_*.py"))]
    first = len(tests) * int(worker[2:]) // int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    for test in (*tests[first:], *tests[:first]):
        with contextlib.suppress(Exception, pytest.skip.Exception):  # collection reports it
            name = test.relative_to(session.config.rootpath).with_suffix("").parts
            import_module(".".join(name))


def pytest_collection_finish() -> None:
    """Make garbage collection rare, and exempt what lives to the end: modules and tests."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000)
    gc.enable()


@pytest.fixture(autouse=True, scope="session")
def _no_state_of_this_machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Point state and configuration at empty directories: no test may use those of the user."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ZCONSOLE_STATE", str(tmp_path_factory.mktemp("state")))
        nowhere = tmp_path_factory.mktemp("config")
        patch.setenv("XDG_CONFIG_HOME", str(nowhere))
        patch.setattr("zconsole.config.file.SYSTEM", nowhere / "zconsole" / "config.toml")
        # Effectively no time limit, however busy the machine is: only tests of a disk that hangs
        # need one.
        for name in ("ANSWER", "WRITTEN"):
            patch.setattr(f"zconsole.system.record_file.{name}", 60.0)
        yield


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return 1.5 workers per processor for ``-n logical``: slow tests wait for other processes."""
    processors = len(os.sched_getaffinity(0))
    return processors if "not slow" in config.getoption("markexpr") else (3 * processors + 1) // 2
