"""The direction of imports, kept by running them: what a package may not pull in."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.sources.source_fakes import TEXT

PACKAGE = Path(__file__).parents[2] / "zconsole"
RICH_ALLOWED = ("ui/", "report/text.py")


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


def modules() -> list[str]:
    return sorted(str(p.relative_to(PACKAGE)) for p in PACKAGE.rglob("*.py"))


def pulls_in(module: str, name: str) -> bool:
    return any(n == name or n.startswith(name + ".") for n in imported(PACKAGE / module))


@pytest.mark.parametrize("module", modules())
def test_only_the_ui_imports_textual_and_only_ui_and_report_import_rich(module):
    if not module.startswith("ui/"):
        assert not pulls_in(module, "textual")
    if not module.startswith(RICH_ALLOWED):
        assert not pulls_in(module, "rich")


LAYERS = (
    "model.py",
    "raw.py",
    "units.py",
    "topology.py",
    "balance.py",
    "redundancy.py",
    "siblings.py",
    "frame.py",
    "health.py",
    "assemble.py",
    "session.py",
    *(name for name in modules() if name.startswith(("eta/", "history/", "decode/"))),
)
HIGHER = ("ui", "commands", "report", "sources", "sim", "actions", "rebalance", "cli")


@pytest.mark.parametrize("module", LAYERS)
def test_the_pure_core_looks_at_nothing_above_it(module):
    reached = {name for name in HIGHER if pulls_in(module, f"zconsole.{name}")}
    assert reached == set()


@pytest.mark.parametrize("package", ["sources", "decode", "sim"])
def test_sources_know_nothing_of_what_is_made_of_their_samples(package):
    forbidden = ("zconsole.ui", "zconsole.frame", "zconsole.report", "zconsole.commands")
    for module in modules():
        if module.startswith(f"{package}/"):
            assert not [name for name in forbidden if pulls_in(module, name)], module


@pytest.mark.parametrize(
    ("package", "above"), [("engine", ("planning", "running")), ("planning", ("running",))]
)
def test_engines_know_nothing_of_plans_and_neither_of_jobs(package, above):
    for module in modules():
        if module.startswith(f"rebalance/{package}/"):
            for other in (*above, "cli"):
                assert not pulls_in(module, f"zconsole.rebalance.{other}"), module


SPAWNERS = ("subprocess", "os.system", "os.popen", "pty", "multiprocessing")
SEAM = ("sources/blocking.py", "sources/runner.py")
"""Without an event loop, and with one."""


@pytest.mark.parametrize("module", [m for m in modules() if m not in SEAM])
def test_one_seam_spawns_processes(module):
    tree = ast.parse((PACKAGE / module).read_text())
    calls = {ast.unparse(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
    assert not [name for name in SPAWNERS if pulls_in(module, name) or name in calls]
    assert not [call for call in calls if "create_subprocess" in call or "posix_spawn" in call]


@pytest.mark.parametrize(
    "words",
    [["--help"], ["demo", "--json", "--count", "1"], ["themes", "--json"], ["demo", "--list"]],
)
def test_headless_commands_never_load_textual(words):
    code = (
        "import sys, zconsole.cli\n"
        "try:\n    zconsole.cli.main(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        "loaded = [m for m in ('textual', 'rich') if m in sys.modules]\n"
        "sys.exit(','.join(loaded) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


HEAVY = {"asyncio", "dataclasses", "inspect", "shutil", "socket", "statistics", "tempfile"}
"""Each is five to fifteen milliseconds of a start."""


def loaded_at_once(module: str) -> set[str]:
    body = ast.parse((PACKAGE / module).read_text()).body
    plain = [node for node in body if isinstance(node, ast.Import)]
    named = [node.module or "" for node in body if isinstance(node, ast.ImportFrom)]
    return {*named, *(alias.name for node in plain for alias in node.names)}


def test_a_job_has_no_event_loop_to_load():
    code = "import sys, zconsole.rebalance.running.run; sys.exit('asyncio' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("words", [[], ["--json"], ["--exit-status"]])
def test_a_report_of_saved_output_loads_nothing_heavy_of_its_own_accord(words, tmp_path):
    saved = tmp_path / "status.txt"
    saved.write_text(TEXT)
    code = (
        "import sys, zconsole.cli\n"
        "zconsole.cli.main(sys.argv[1:])\n"
        "ours = [m for n, m in sys.modules.items() if n.startswith('zconsole')]\n"
        "print('\\n'.join(m.__file__ for m in ours), file=sys.stderr)"
    )
    command = [sys.executable, "-c", code, "status", "--from", str(saved), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    files = [Path(line) for line in done.stderr.splitlines()]
    assert len(files) > 30
    heavy = {str(f): HEAVY & loaded_at_once(str(f.relative_to(PACKAGE))) for f in files}
    assert {file: names for file, names in heavy.items() if names} == {}
