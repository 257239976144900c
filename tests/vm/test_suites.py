"""How the suites continue after being stopped, and their table; needs no machine."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.vm import suites
from tests.vm.image import Image
from tests.vm.suites import Recorder, Result, Results, judged, show

BUILT = Image(Path("2.2-0123"), "2.2", "2.2.11", "6.1.0-50-cloud-amd64", "3.11")
ONE, TWO = "tests/vm/test_live.py::test_one[2.2]", "tests/vm/test_live.py::test_two[2.2-copy]"


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZCONSOLE_VM_CACHE", str(tmp_path))


def collected(recorder: Recorder, *names: str) -> list[str]:
    """Return the tests that a recorder keeps of those that pytest found."""
    spec = SimpleNamespace(params={"built": "2.2"})
    items: list[Any] = [SimpleNamespace(nodeid=name, callspec=spec) for name in names]
    items.append(SimpleNamespace(nodeid="tests/vm/test_live.py::test_of_no_machine"))
    config = SimpleNamespace(hook=SimpleNamespace(pytest_deselected=lambda items: None))
    recorder.pytest_collection_modifyitems(cast("Any", config), items)
    return [item.nodeid for item in items]


def report(when: str, outcome: str, longrepr: object = None) -> Any:
    return SimpleNamespace(nodeid=ONE, when=when, outcome=outcome, longrepr=longrepr)


def fresh(tree: str = "a") -> Recorder:
    return Recorder({"2.2": Results.load(BUILT, [tree])}, tree)


def test_only_what_passed_on_this_tree_is_left_out() -> None:
    recorder = fresh()
    assert collected(recorder, ONE, TWO) == [ONE, TWO]
    for when in ("setup", "call", "teardown"):
        recorder.pytest_runtest_logreport(report(when, "passed"))
    assert collected(fresh(), ONE, TWO) == [TWO]
    assert collected(fresh("b"), ONE, TWO) == [ONE, TWO]
    older = Recorder({"2.2": Results.load(BUILT)}, "b")
    assert collected(older, ONE, TWO) == [TWO]


def test_a_failed_test_is_tried_again() -> None:
    recorder = fresh()
    recorder.results["2.2"].add(ONE, Result("failed", "AssertionError", "a"))
    assert collected(fresh(), ONE) == [ONE]


def test_the_worst_of_a_tests_parts_is_how_it_ended() -> None:
    passed, torn = report("setup", "passed"), report("teardown", "failed", "no machine\nlines")
    assert judged([passed, report("call", "passed")]) == ("passed", "")
    assert judged([passed, report("call", "passed"), torn]) == ("failed", "no machine")
    skip = report("setup", "skipped", ("test_live.py", 9, "Skipped: no rewrite before 2.3.4"))
    assert judged([skip, passed]) == ("skipped", "no rewrite before 2.3.4")


def test_the_table_has_each_reason_once(capsys: pytest.CaptureFixture[str]) -> None:
    recorder = fresh("b")
    collected(recorder, ONE, TWO)
    for name in (ONE, TWO):
        recorder.results["2.2"].add(name, Result("skipped", "no rewrite", "a"))
    assert show(recorder, {"2.2": BUILT}, {"sid": "skipped: no debootstrap"})
    shown = capsys.readouterr().out.splitlines()
    words = [line.split() for line in shown]
    assert words[2] == ["2.2", "2.2.11", "6.1.0-50-cloud-amd64", "3.11", "0", "0", "2", "0"]
    assert shown[shown.index("skipped: no rewrite") + 1] == "  2.2: test_one, test_two[copy]"
    assert "sid skipped: no debootstrap" in shown
    assert shown[-1].startswith("2 of these results are those of other versions")


def test_what_is_left_and_what_failed_is_not_well() -> None:
    recorder = fresh()
    collected(recorder, ONE)
    assert not show(recorder, {"2.2": BUILT}, {})
    recorder.results["2.2"].add(ONE, Result("passed", "", "a"))
    assert show(recorder, {"2.2": BUILT}, {})
    assert not show(recorder, {"2.2": BUILT}, {"sid": "failed: no rule to make zfs"})
    recorder.results["2.2"].add(ONE, Result("failed", "AssertionError", "a"))
    assert not show(recorder, {"2.2": BUILT}, {})


def test_a_changed_source_is_another_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suites, "TREE", tmp_path)
    for part in suites.SOURCES:
        (tmp_path / part).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / part).write_text(part)
    before = suites.sources()
    assert suites.sources() == before
    (tmp_path / "pyproject.toml").write_text("other")
    assert suites.sources() != before
