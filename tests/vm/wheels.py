"""Python packages of an image, fetched by the host for the guest's interpreter."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

TREE = Path(__file__).parents[2]
"""The source tree under test."""

PLATFORMS = ("manylinux2014_x86_64", "manylinux_2_28_x86_64", "manylinux_2_17_x86_64")


def requirements() -> list[str]:
    """Return the dependencies of zconsole in pyproject.toml, including its test tools."""
    project = tomllib.loads((TREE / "pyproject.toml").read_text())["project"]
    return sorted([*project["dependencies"], *project["optional-dependencies"]["test"]])


def build_requirements() -> list[str]:
    """Return the requirements for building zconsole's own wheel."""
    return sorted(tomllib.loads((TREE / "pyproject.toml").read_text())["build-system"]["requires"])


def download_command(python: str, directory: Path, *more: str) -> list[str]:
    """Return the pip command that downloads wheels for a guest's Python ("3.13") to a directory.

    The wheels are those of ``requirements`` and of ``more``.
    """
    platforms = [word for name in PLATFORMS for word in ("--platform", name)]
    target = ["--implementation", "cp", "--python-version", python, *platforms]
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:"]
    return [*pip, *target, "-d", str(directory), *requirements(), *more]
