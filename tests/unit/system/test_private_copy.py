"""The private copy of a single-file program: complete, private, and kept for the next start."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.unit.source import PACKAGE
from zconsole.system import private_copy as module
from zconsole.system.private_copy import private_copy
from zconsole.system.safe_path import StateError

FILES = {"__main__.py": "raise SystemExit", "tool/__init__.py": "", "tool/words.toml": "a = 1\n"}
STARTER = PACKAGE.parent / ".ci/parts/pyz_main.py"


def archive(tmp_path: Path, files: dict[str, str] = FILES) -> Path:
    path = tmp_path / "tool.pyz"
    with zipfile.ZipFile(path, "w") as made:
        for name, text in files.items():
            made.writestr(name, text)
    return path


def environ(tmp_path: Path) -> dict[str, str]:
    return {"ZCONSOLE_STATE": str(tmp_path / "state")}


def held(copy: Path) -> dict[str, str]:
    files = (path for path in copy.rglob("*") if path.is_file() and path.name != ".lock")
    return {str(path.relative_to(copy)): path.read_text() for path in files}


def test_a_copy_holds_all_but_what_starts_the_archive(tmp_path: Path) -> None:
    copy = private_copy(archive(tmp_path), environ(tmp_path))
    assert copy.is_relative_to(tmp_path / "state")
    assert held(copy) == {name: text for name, text in FILES.items() if name != "__main__.py"}
    assert copy.stat().st_mode & 0o777 == 0o700


def test_only_what_was_lost_or_cut_short_is_written_again(tmp_path: Path) -> None:
    path = archive(tmp_path)
    copy = private_copy(path, environ(tmp_path))
    before = (copy / "tool/words.toml").stat().st_mtime_ns
    private_copy(path, environ(tmp_path))
    assert (copy / "tool/words.toml").stat().st_mtime_ns == before
    (copy / "tool/__init__.py").unlink()
    (copy / "tool/words.toml").write_text("a")
    assert private_copy(path, environ(tmp_path)) == copy
    assert held(copy)["tool/words.toml"] == "a = 1\n"
    assert "tool/__init__.py" in held(copy)


def test_another_program_has_another_copy(tmp_path: Path) -> None:
    first = private_copy(archive(tmp_path), environ(tmp_path))
    second = private_copy(archive(tmp_path, {"tool/words.toml": "a = 2\n"}), environ(tmp_path))
    assert first != second
    assert held(first)["tool/words.toml"] == "a = 1\n"


def refused(tmp_path: Path) -> Path:
    state = tmp_path / "state"
    state.mkdir()
    state.chmod(0o777)
    return state


@pytest.mark.skipif(os.geteuid() != 0, reason="what root must not do")
def test_root_unpacks_nowhere_but_in_the_state_directory_and_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused(tmp_path)
    monkeypatch.setattr(module, "RUNTIME", tmp_path / "run")
    copy = private_copy(archive(tmp_path), environ(tmp_path))
    assert copy.is_relative_to(tmp_path / "run/zconsole")
    (tmp_path / "run").chmod(0o777)
    with pytest.raises(StateError, match="others may write"):
        private_copy(archive(tmp_path), environ(tmp_path))


def test_others_have_a_copy_for_the_session_or_for_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused(tmp_path)
    ending: list[Path] = []
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid or 1000)
    monkeypatch.setattr(module.atexit, "register", lambda _, made, **__: ending.append(made))
    monkeypatch.setattr(module.tempfile, "tempdir", str(tmp_path))
    session = environ(tmp_path) | {"XDG_RUNTIME_DIR": str(tmp_path / "session")}
    copy = private_copy(archive(tmp_path), session)
    assert copy.is_relative_to(tmp_path / "session/zconsole")
    assert ending == []
    copy = private_copy(archive(tmp_path), environ(tmp_path))
    assert [made for made in ending if copy.is_relative_to(made)] == ending != []


def test_the_program_runs_on_from_its_copy(tmp_path: Path) -> None:
    files = {"__main__.py": STARTER.read_text()}
    for path in [*PACKAGE.glob("*.py"), *(PACKAGE / "system").glob("*.py")]:
        files[str(path.relative_to(PACKAGE.parent))] = path.read_text()
    files["zconsole/cli/__init__.py"] = ""
    files["zconsole/cli/main.py"] = MAIN
    path = archive(tmp_path, files)
    run = [sys.executable, str(path), "word"]
    settings = {**os.environ, **environ(tmp_path)}
    done = subprocess.run(run, env=settings, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["word", "True", str(tmp_path / "state/program")]


MAIN = """
import sys
from pathlib import Path

def main():
    Path(sys.argv[0]).unlink()
    from zconsole.system import process
    from zconsole.system.process import PACKAGE_ROOT
    print(sys.argv[1], Path(process.__file__).is_relative_to(PACKAGE_ROOT), PACKAGE_ROOT.parent)
"""


def test_a_python_too_old_is_told_which_one_is_needed() -> None:
    ast.parse(STARTER.read_text(), feature_version=(3, 7))
    code = "import sys; sys.version_info = (3, 9, 2); exec(sys.stdin.read())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=STARTER.read_text(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr == "zconsole needs Python 3.11 or later, this is 3.9\n"
    assert done.returncode == 1
