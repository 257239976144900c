"""Every state file is opened by one module, which checks its owner: no plain open elsewhere."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.table import rows
from tests.unit.source import PACKAGE, modules, tree_of

pytestmark = pytest.mark.slow

SEAM = ("system/state_dir.py", "system/safe_path.py")

SYSTEM = "reads what the kernel makes (/proc, /sys, /dev) and the machine's configuration"
KERNEL = "writes a parameter of the kernel, or /dev/null in the place of a stream"
NAMED = "reads or writes a file that the operator names"
ENGINE = "moves the operator's files, by descriptors of their directories"
PACKAGED = "reads a file of the package itself"
CREATED = "makes a new file where the operator is, by a descriptor of that directory"
NAMELESS = "makes a temporary file without a name, or a private directory of a random one"
ELSEWHERE = {
    "actions/executor.py": PACKAGED,
    "hardware/light.py": "switches the LED of a bay, in sysfs",
    "hardware/machine.py": SYSTEM,
    "cli/completion.py": PACKAGED,
    "cli/keeper.py": KERNEL,
    "cli/main.py": KERNEL,
    "cli/man.py": PACKAGED,
    "cli/output.py": SYSTEM,
    "cli/export.py": PACKAGED,
    "rebalance/engine/file_locks.py": SYSTEM,
    "rebalance/engine/holders.py": SYSTEM,
    "rebalance/engine/namespaces.py": SYSTEM,
    "rebalance/engine/overlays.py": SYSTEM,
    "rebalance/engine/syscalls.py": ENGINE,
    "rebalance/planning/facts.py": "asks for the filesystem of the operator's directories",
    "rebalance/planning/plan_notes.py": SYSTEM,
    "rebalance/planning/exports.py": SYSTEM,
    "system/patient.py": SYSTEM,
    "system/host.py": SYSTEM,
    "system/mounts.py": SYSTEM,
    "system/private_copy.py": NAMELESS,
    "output/prometheus/metrics.py": NAMED,
    "pool/hazards.py": PACKAGED,
    "zfs/sources/kernel/helper.py": KERNEL,
    "zfs/sources/open_text.py": NAMED,
    "zfs/sources/replay.py": NAMED,
    "zfs/sources/recording.py": NAMED,
    "zfs/sources/remote.py": NAMELESS,
    "system/async_process.py": NAMELESS,
    "system/printable.py": KERNEL,
    "sim/source.py": PACKAGED,
    "tunables/catalog.py": PACKAGED,
    "tunables/parameters.py": SYSTEM,
    "ui/start.py": SYSTEM,
    "ui/keys.py": PACKAGED,
    "ui/new_file.py": CREATED,
}
"""Modules that open files which are not state."""

EXCUSED = {
    "scan_report/store.py": ["path.open('rb')"],
}
"""Other files that modules with state open: a report that the operator names, /proc."""

DATABASES = ("rebalance/engine/journal_database.py",)
IN_MEMORY = ("", ":memory:")
FUNCTIONS = {"open", "io.open", "os.open", "os.unlink", "os.rename", "os.replace", "os.link"}
METHODS = {"read_text", "write_text", "unlink", "mkdir", "hardlink_to", "symlink_to"}
CALLED = {"read_bytes", "write_bytes", "touch"}
"""Names that are also fields, or methods that take arguments."""
WORDS = {name.split(".")[-1] for name in FUNCTIONS} | METHODS | CALLED | {"tempfile"}
CONNECT = "sqlite3.connect"


def openings(tree: ast.AST) -> list[str]:
    """Return all calls that open, create or remove a file by path, but for the engine's ``sys``."""
    return [ast.unparse(node) for node in ast.walk(tree) if _opens(node)]


def _opens(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute) and node.attr in METHODS:
        return not ast.unparse(node.value).endswith(("sys", "os"))
    if not isinstance(node, ast.Call):
        return False
    name, first = node.func, node.args[0] if node.args else None
    if isinstance(name, ast.Attribute) and name.attr in CALLED:
        return first is None or name.attr == "write_bytes"
    if isinstance(name, ast.Attribute) and name.attr == "open" and isinstance(first, ast.Constant):
        return str(first.value)[:1] in tuple("rwax")  # a mode for a path; our own open takes none
    return _plain(name) in FUNCTIONS or _plain(name).startswith("tempfile.")


def _plain(name: ast.expr) -> str:
    """Return ``open`` or ``os.open``; empty for longer names."""
    if isinstance(name, ast.Attribute) and isinstance(name.value, ast.Name):
        return f"{name.value.id}.{name.attr}"
    return name.id if isinstance(name, ast.Name) else ""


def connections(tree: ast.AST) -> list[ast.Call]:
    """Return the calls that connect to a database on disk."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    sqlite = [call for call in calls if _plain(call.func) == CONNECT]
    return [
        call
        for call in sqlite
        if not (isinstance(call.args[0], ast.Constant) and call.args[0].value in IN_MEMORY)
    ]


def naming(pattern: str) -> Iterator[str]:
    """Yield the modules whose text matches a pattern: parsing all others would take seconds."""
    return (m for m in modules() if re.search(pattern, (PACKAGE / m).read_text()))


def test_files_of_state_are_opened_by_the_seam():
    mentioned = naming(rf"\b(?:{'|'.join(WORDS)})\b")
    found = {m: openings(tree_of(m)) for m in mentioned if m not in (*SEAM, *ELSEWHERE)}
    assert {module: lines for module, lines in found.items() if lines} == EXCUSED


def test_no_module_is_left_out_that_opens_nothing():
    assert [module for module in ELSEWHERE if not openings(tree_of(module))] == []


def test_a_database_on_disk_is_checked_before_it_is_connected_to():
    assert [m for m in naming(CONNECT) if connections(tree_of(m))] == list(DATABASES)
    for module in DATABASES:
        functions = [n for n in ast.walk(tree_of(module)) if isinstance(n, ast.FunctionDef)]
        for function in functions:
            if connections(function):
                calls = [_plain(n.func) for n in ast.walk(function) if isinstance(n, ast.Call)]
                assert calls.index("state_dir.check_database") < calls.index(CONNECT)


@rows(
    "line",
    [
        "open(path)",
        "path.open('rb')",
        "path.open('ab')",
        "os.open(path, flags, dir_fd=fd)",
        "os.unlink(path)",
        "path.read_bytes()",
        "(directory / name).write_text(x)",
        "to_thread(path.write_text, x)",
        "path.unlink(missing_ok=True)",
        "path.touch()",
        "tempfile.mkstemp(dir=d)",
    ],
)
def test_what_opens_a_file_is_seen(line):
    assert openings(ast.parse(line)) != []


@rows(
    "line",
    ["Journal.open(path)", "explorer.open(path)", "sys.unlink(fd, name)", "disk.read_bytes + 1"],
)
def test_what_only_sounds_like_it_is_not(line):
    assert openings(ast.parse(line)) == []
