"""Theme files: where they are searched, their format, and which ones failed and why.

A theme is one TOML file. Shipped themes are files, too, so that a copy is the start of a new one.
textual is not imported here; ``zconsole.ui.theme.styles`` turns a theme into styles.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from zconsole.errors import ZconsoleError
from zconsole.system.safe_path import StateError, read_regular

DEFAULT = "dark"
SIXTEEN = "ansi16"
"""The theme for terminals with 16 colors."""

REQUIRED = ("background", "foreground", "warning", "error")

FALLBACKS = {
    "dim": "foreground",
    "notice": "foreground",
    "good": "notice",
    "key": "foreground",
    "spark": "foreground",
    "bar": "foreground",
    "track": "dim",
    "title": "foreground",
    "title-background": "background",
    "cursor-background": "title-background",
}
"""Replacement of each color that a theme leaves out: an earlier color of this table."""

COLORS = (*REQUIRED, *FALLBACKS)
"""Every color a theme may set."""

_LARGEST = 8192
"""Largest theme file in bytes, several times the size of every color with a comment.

The limit is low because Python takes the square of a dotted key's length to read it.
"""
_KEYS = {"name": str, "description": str, "dark": bool, "ansi": bool, "colors": dict}
_HEX = re.compile(r"#(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})")
_ANSI = re.compile(
    r"ansi_(?:default|(?:bright_)?(?:black|red|green|yellow|blue|magenta|cyan|white))"
)


class ThemeError(ZconsoleError):
    """A missing or unusable theme; the message says why."""


@dataclass(frozen=True, slots=True)
class ThemeFile:
    """One theme as in its file, with left-out colors filled in."""

    name: str
    path: Path
    colors: Mapping[str, str]
    description: str = ""
    dark: bool = True
    ansi: bool = False
    """Whether its colors are the terminal's own sixteen (``ansi_red``) instead of ``#rrggbb``."""


@dataclass(frozen=True, slots=True)
class Themes:
    """Result of a search for themes."""

    found: Mapping[str, ThemeFile] = field(default_factory=dict)
    failed: tuple[tuple[Path, str], ...] = ()
    """Files that could not be used, each with the reason."""


def packaged_directory() -> Path:
    """Return the shipped themes' directory: in the package, or beside it in a source checkout."""
    package = Path(__file__).parents[2]
    inside = package / "themes"
    checkout = package.parent
    # Only a source checkout has a pyproject.toml beside the package.
    if not inside.is_dir() and (checkout / "pyproject.toml").is_file():
        return checkout / "themes"
    return inside


def find_themes(environ: Mapping[str, str]) -> Themes:
    """Return all themes, the operator's first; they hide others of the same name."""
    base = environ.get("XDG_CONFIG_HOME", "")
    # The XDG Base Directory Specification says to ignore relative paths.
    config = Path(base) if base.startswith("/") else Path("/", environ.get("HOME", ""), ".config")
    found: dict[str, ThemeFile] = {}
    failed: list[tuple[Path, str]] = []
    for directory in (config / "zconsole" / "themes", packaged_directory()):
        try:
            paths = sorted(directory.glob("*.toml"))
        except OSError as error:
            failed.append((directory, error.strerror or str(error)))
            continue
        for path in paths:
            try:
                theme = read_theme(path)
            except ThemeError as error:
                failed.append((path, str(error)))
            else:
                found.setdefault(theme.name, theme)
    return Themes(found, tuple(failed))


def choose(wanted: str, themes: Themes) -> ThemeFile:
    """Return the theme of this name, or from the file at this path. Raises ThemeError."""
    if wanted in themes.found:
        return themes.found[wanted]
    if "/" in wanted or wanted.endswith(".toml"):
        return read_theme(Path(wanted))
    for path, why in themes.failed:
        if path.stem == wanted:
            raise ThemeError(f"theme {wanted}: {why}")
    raise ThemeError(f"no theme {wanted}; there are {', '.join(sorted(themes.found))}")


def read_theme(path: Path) -> ThemeFile:
    """Return the theme in a file. Raises ThemeError with the name of the wrong key."""
    try:
        data = tomllib.loads(read_regular(path, _LARGEST).decode())
    except OSError as error:
        raise ThemeError(error.strerror or str(error)) from error
    except StateError as error:
        raise ThemeError(str(error)) from error
    except RecursionError:
        raise ThemeError("not TOML: nested too deep") from None
    except ValueError as error:  # not only TOMLDecodeError: int() refuses thousands of digits
        raise ThemeError(f"not TOML: {error}") from error
    for key, value in data.items():
        if key not in _KEYS:
            raise ThemeError(f"unknown key {key!r}; there are {', '.join(_KEYS)}")
        if not isinstance(value, _KEYS[key]):
            raise ThemeError(f"{key} must be a {_KEYS[key].__name__}")
    ansi = data.get("ansi", False)
    return ThemeFile(
        name=data.get("name") or path.stem,
        path=path,
        colors=_colors(data.get("colors", {}), ansi=ansi),
        description=data.get("description", ""),
        dark=data.get("dark", True),
        ansi=ansi,
    )


def _colors(written: Mapping[str, Any], *, ansi: bool) -> dict[str, str]:
    for name, value in written.items():
        if name not in COLORS:
            raise ThemeError(f"unknown color {name!r}; there are {', '.join(COLORS)}")
        pattern, form = (_ANSI, "ansi_NAME") if ansi else (_HEX, "#rrggbb")
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise ThemeError(f"colors.{name} must be written {form}, not {value!r}")
    missing = [name for name in REQUIRED if name not in written]
    if missing:
        raise ThemeError(f"colors.{missing[0]} is missing")
    colors = dict(written)
    for name, other in FALLBACKS.items():
        colors.setdefault(name, colors[other])
    return colors
