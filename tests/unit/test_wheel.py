"""A wheel contains all files of the package that the program reads."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

wheel = pytest.importorskip("hatchling.builders.wheel", reason="hatchling is a tool of `dev`")

TREE = Path(__file__).parents[2]


def test_a_wheel_holds_every_file_of_the_package(tmp_path: Path) -> None:
    (built,) = wheel.WheelBuilder(str(TREE)).build(directory=str(tmp_path), versions=["standard"])
    files = (path for path in (TREE / "zconsole").rglob("*") if path.is_file())
    wanted = {str(path.relative_to(TREE)) for path in files if path.suffix != ".pyc"}
    assert "zconsole/share/zconsole-rebalance.service" in wanted
    assert wanted <= set(zipfile.ZipFile(built).namelist())
