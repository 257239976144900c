"""The order of packages: each imports only lower ones, and some imports are allowed in few."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from collections import defaultdict
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.table import rows
from tests.unit.source import PACKAGE, modules, tree_of
from tests.unit.zfs.sources.source_fakes import TEXT

pytestmark = pytest.mark.slow

ORDER = (
    "errors",
    "units",
    "keyed_text",
    "pool",
    "system",
    "config",
    "zfs",
    "hardware",
    "tunables",
    "diagnosis",
    "timeline",
    "output",
    "scan_report",
    "rebalance",
    "actions",
    "swap",
    "ui",
    "sim",
    "cli",
)
"""Packages, lowest first. Each imports itself and those before it; ``sim`` comes so late that only
``cli`` can use it: code that acts on real pools does not depend on simulated ones."""

INSIDE = {"rebalance": ("engine", "planning", "job")}
"""The order of folders within one package."""


FOREIGN = {
    "textual": ("ui/",),
    "rich": ("ui/", "output/text.py"),
    "prometheus_client": ("output/prometheus/", "cli/export.py"),
    "sqlite3": ("rebalance/", "cli/rebalance.py"),
}
"""Packages that are heavy or not everywhere installed, with the modules that may import them."""


class Names(NamedTuple):
    """Imports of one module, the public classes it defines, and calls that may spawn processes."""

    imports: frozenset[str]
    classes: tuple[tuple[str, int], ...]
    calls: frozenset[str]


@cache
def names_of(module: str) -> Names:
    nodes = list(ast.walk(tree_of(module)))
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    return Names(
        frozenset(name for node in nodes for name in imported_by(node)),
        tuple((made.name, made.lineno) for made in classes if not made.name.startswith("_")),
        frozenset(ast.unparse(node.func) for node in nodes if spawns(node)),
    )


def spawns(node: ast.AST) -> bool:
    """Return whether a node is a call named like one that spawns, of whatever module."""
    if not isinstance(node, ast.Call):
        return False
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    return name in SPAWNED or "create_subprocess" in name or "posix_spawn" in name


def imported_by(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return []


def pulls_in(module: str, name: str) -> bool:
    return any(n == name or n.startswith(name + ".") for n in names_of(module).imports)


def package_of(module: str) -> str:
    return module.split("/")[0].removesuffix(".py")


def packages_used(module: str) -> set[str]:
    own = (name.split(".")[1] for name in names_of(module).imports if name.startswith("zconsole."))
    return set(own) - {"__version__"}


def files_used(module: str) -> set[str]:
    """Return the modules of the package that a module imports; packages by ``__init__``."""
    found = set()
    for name in names_of(module).imports:
        path = "/".join(name.split(".")[1:])
        found |= {path + ".py", path + "/__init__.py"} & set(modules())
    return found - {module}


def upward(module: str) -> set[str]:
    package = package_of(module)
    if package.startswith("__"):
        return set()
    above = ORDER[ORDER.index(package) + 1 :]
    return packages_used(module) & set(above)


def test_every_package_has_its_place_in_the_order():
    assert {package_of(m) for m in modules()} == {*ORDER, "__init__", "__main__"}


def test_a_package_imports_only_those_below_it():
    assert {m: found for m in modules() if (found := upward(m))} == {}


def above_in_package(module: str) -> set[str]:
    package, *rest = module.split("/")
    order = INSIDE.get(package, ())
    if len(rest) < 2 or rest[0] not in order:
        return set()
    above = order[order.index(rest[0]) + 1 :]
    return {name for name in above if pulls_in(module, f"zconsole.{package}.{name}")}


def test_folders_of_a_package_import_only_those_below_them():
    assert {m: found for m in modules() if (found := above_in_package(m))} == {}


def test_no_files_import_each_other_in_a_circle():
    graph = {
        m: {f for f in files_used(m) if not f.endswith("__init__.py")}
        for m in modules()
        if not m.endswith("__init__.py")
    }
    assert circle(graph) == []


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Return files that import each other in a circle, in order; empty if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@rows("name", FOREIGN)
def test_what_is_heavy_is_imported_only_where_it_belongs(name):
    assert [m for m in modules() if not m.startswith(FOREIGN[name]) and pulls_in(m, name)] == []


def test_only_the_command_line_imports_the_simulated_pools():
    assert {package_of(m) for m in modules() if pulls_in(m, "zconsole.sim")} <= {"sim", "cli"}


def test_no_public_class_name_stands_for_two_things():
    found = defaultdict(list)
    for module in modules():
        for name, line in names_of(module).classes:
            found[name].append(f"{module}:{line}")
    assert {name: places for name, places in found.items() if len(places) > 1} == {}


SPAWNERS = ("subprocess", "os.system", "os.popen", "pty", "multiprocessing")
SPAWNED = {spawner.split(".")[-1] for spawner in SPAWNERS}
SEAM = ("system/process.py", "system/async_process.py")
"""The modules that spawn processes, without and with an event loop."""


def spawning(module: str) -> list[str]:
    calls = names_of(module).calls
    named = [name for name in SPAWNERS if pulls_in(module, name) or name in calls]
    return named + [c for c in calls if "create_subprocess" in c or "posix_spawn" in c]


def test_one_seam_spawns_processes():
    assert {m: found for m in modules() if m not in SEAM and (found := spawning(m))} == {}


UNUSED = ("textual", "rich", "lzma", "zconsole.zfs.decode.text")
"""Modules that commands without a console must not load. For the width of a help, argparse would
import shutil, which loads all compression."""


HEADLESS = (
    ["--help"],
    ["demo", "--json", "--count", "1"],
    ["themes", "--json"],
    ["demo", "--list"],
)


def test_headless_commands_load_no_textual_compression_or_reader_of_text():
    code = (
        "import sys, zconsole.cli.main\n"
        f"for words in {HEADLESS}:\n"
        "    try:\n        zconsole.cli.main.main(words)\n    except SystemExit:\n        pass\n"
        f"    if loaded := [m for m in {UNUSED} if m in sys.modules]:\n"
        "        sys.exit(f'{words} loads {loaded}')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


HEAVY = {"asyncio", "shutil", "socket", "statistics", "tempfile"}
"""Each takes five to fifteen milliseconds of a start."""


def loaded_at_once(module: str) -> set[str]:
    body = tree_of(module).body
    plain = [node for node in body if isinstance(node, ast.Import)]
    named = [node.module or "" for node in body if isinstance(node, ast.ImportFrom)]
    return {*named, *(alias.name for node in plain for alias in node.names)}


def test_a_job_has_no_event_loop_to_load():
    code = "import sys, zconsole.rebalance.job.runner; sys.exit('asyncio' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_report_of_saved_output_loads_nothing_heavy_of_its_own_accord(tmp_path):
    saved = tmp_path / "status.txt"
    saved.write_text(TEXT)
    code = (
        "import sys, zconsole.cli.main\n"
        "for words in ([], ['--json'], ['--exit-status']):\n"
        "    zconsole.cli.main.main(['status', '--from', sys.argv[1], *words])\n"
        "ours = [m for n, m in sys.modules.items() if n.startswith('zconsole')]\n"
        "print('\\n'.join(m.__file__ for m in ours), file=sys.stderr)"
    )
    command = [sys.executable, "-c", code, str(saved)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    files = [Path(line) for line in done.stderr.splitlines()]
    assert len(files) > 30
    heavy = {str(f): HEAVY & loaded_at_once(str(f.relative_to(PACKAGE))) for f in files}
    assert {file: names for file, names in heavy.items() if names} == {}


@rows("path", sorted((PACKAGE.parent / "tests/vm").glob("*.py")))
def test_what_the_virtual_machines_run_finds_all_it_imports(path: Path):
    """They run rarely, and a renamed import would be noticed only then."""
    assert importlib.import_module(f"tests.vm.{path.stem}").__name__ == f"tests.vm.{path.stem}"
