"""The program starts further processes of itself, however it was installed and called."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipapp
from pathlib import Path

import pytest

import zconsole
from tests.unit.waiting import soon

pytestmark = pytest.mark.slow

PACKAGE = Path(zconsole.__file__).parent
PARTS = PACKAGE.parent / ".ci/parts"
PATIENCE = 120.0
STRANGE = "import os; os.write(2, b'a stranger ran'); os._exit(99)"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as installed by the Debian package, without its dependencies."""
    place = tmp_path_factory.mktemp("installed")
    leave = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE, place / "lib/zconsole", ignore=leave)
    return place


def command(how: str, installed: Path, tmp_path: Path) -> list[str]:
    if how == "checkout":
        return [sys.executable, "-c", f"{CODE.format(str(PACKAGE.parent))}"]
    if how == "isolated":
        return [sys.executable, "-Ic", f"{CODE.format(str(PACKAGE.parent))}"]
    if how == "deb":
        text = (PARTS / "zconsole").read_text().replace("/usr/lib/zconsole", f"{installed}/lib")
        script = tmp_path / "zconsole"
        script.write_text(text.replace("/usr/bin/python3", sys.executable))
        script.chmod(0o755)
        return [str(script)]
    shutil.copy(PARTS / "pyz_main.py", installed / "lib/__main__.py")
    zipapp.create_archive(installed / "lib", tmp_path / "zconsole.pyz", sys.executable)
    (installed / "lib/__main__.py").unlink()
    return [sys.executable, str(tmp_path / "zconsole.pyz")]


CODE = "import sys; sys.path.insert(0, {!r}); import zconsole.cli.main as m; sys.exit(m.main())"


@pytest.mark.parametrize("how", ["checkout", "isolated", "deb", "pyz"])
def test_a_job_in_the_background_is_of_the_same_program(
    how: str, installed: Path, tmp_path: Path
) -> None:
    """The working directory does not matter, nor does PYTHONPATH for an isolated program."""
    strange, tree = tmp_path / "strange", tmp_path / "tree"
    for directory in (strange / "zconsole", tree):
        directory.mkdir(parents=True)
    (tree / "file").write_bytes(b"x" * 5000)
    isolated = how in ("isolated", "deb")
    for name in ("zconsole/__init__", "runpy", "sqlite3"):
        (strange / f"{name}.py").write_text(STRANGE)
    argv = command(how, installed, tmp_path)
    environment = {**os.environ, "ZCONSOLE_STATE": str(tmp_path / "state")}
    environment["PYTHONPATH"] = str(strange) if isolated else ""
    cwd = strange if isolated else tmp_path

    def ask(*words: str) -> str:
        return subprocess.run(
            [*argv, "rebalance", *words], cwd=cwd, env=environment, check=True,
            stdout=subprocess.PIPE, text=True, timeout=PATIENCE,
        ).stdout  # fmt: skip

    inode = (tree / "file").stat().st_ino
    ask("run", str(tree), "--allow-non-zfs", "--accept-races", "--yes", "--detach")
    assert soon(lambda: (tree / "file").stat().st_ino != inode, PATIENCE), ask("status")
    states: list[str] = []

    def _ended() -> bool:
        states.append(json.loads(ask("status", "--json"))["state"])
        return states[-1] in ("finished", "dead")

    assert soon(_ended, PATIENCE), states
    assert states[-1] == "finished"
