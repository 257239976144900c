"""Completions of bash, zsh and fish, tested in the shells themselves."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.unit.cli.shells import BASH, ZSH, InteractiveShell, fish_completes
from zconsole.cli.completion import SCRIPTS
from zconsole.cli.options import COMMANDS, PRESETS
from zconsole.sim import scenarios

pytestmark = pytest.mark.slow

BASH_COMPLETION = Path("/usr/share/bash-completion/bash_completion")
POOLS = {"tank", "backup", "odd pool"}
ZPOOL = """#!/bin/sh
[ "$*" = "list -H -o name" ] || exit 2
printf '%s\\n' tank backup 'odd pool'
"""
THEMES = {"ansi16", "colorblind", "dark", "high-contrast", "light", "mine"}
CASES = {
    "zconsole sta": {"status"},
    "zconsole ": {*COMMANDS, *POOLS},
    "zconsole --theme dark --read-only sta": {"status"},
    "zconsole --host root@nas,b:22 wa": {"watch"},
    "zconsole tank b": {"backup"},
    "zconsole status ": POOLS,
    "zconsole status tank o": {"odd pool"},
    "zconsole status --e": {"--exit-status"},
    "zconsole status --from f": {"file.txt"},
    "zconsole --theme m": {"mine"},
    "zconsole rebalance ": {"plan", "run", "status", "pause", "stop", "resume"},
    "zconsole rebalance --read-only r": {"run", "resume"},
    "zconsole rebalance run --engine ": {"auto", "copy", "rewrite"},
    "zconsole rebalance run --engine=c": {"--engine=copy"},
    "zconsole rebalance run --yes --wi": {"--window"},
    "zconsole rebalance pause ": {"abc123"},
    "zconsole tunables preset ": set(PRESETS),
    "zconsole tunables set zfs_scan_v": {"zfs_scan_vdev_limit="},
    "zconsole tunables restore zfs_scan_v": {"zfs_scan_vdev_limit"},
    "zconsole record f": {"file.txt"},
    "zconsole record file.txt ta": {"tank"},
    "zconsole report --compare file.txt f": {"file.txt"},
    "zconsole demo --scenario se": {n for n in scenarios.names() if n.startswith("se")},
    "zconsole completion ": set(SCRIPTS),
    "zconsole man st": {"status"},
}
"""Lines, with all completions of their last word."""
NOTHING = ("zconsole console stat", "zconsole -- stat", "zconsole watch --interval ta")
"""Lines to which nothing can be added."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with scripts as a distribution installs them, a zpool, a home and some files."""
    place = tmp_path_factory.mktemp("shells")
    for path in ("bin", "work/directory", "completions", "fish", "home/.config/zconsole/themes"):
        (place / path).mkdir(parents=True)
    for name, text in (("zpool", ZPOOL), ("zconsole", "#!/bin/sh\n")):  # fish asks for both
        (place / "bin" / name).write_text(text)
        (place / "bin" / name).chmod(0o755)
    (place / "work/file.txt").touch()
    (place / "home/.config/zconsole/themes/mine.toml").touch()
    (place / "home/.local/state/zconsole/rebalance").mkdir(parents=True)
    (place / "home/.local/state/zconsole/rebalance/abc123.json").touch()
    for name, shell in (
        ("completions/zconsole", "bash"),
        ("home/_zconsole", "zsh"),
        ("fish/zconsole.fish", "fish"),
    ):
        (place / name).write_text(SCRIPTS[shell]())
    return place


@pytest.fixture(scope="module")
def environment(place: Path) -> dict[str, str]:
    path = f"{place / 'bin'}:{os.environ['PATH']}"
    home = str(place / "home")
    own = {"PATH": path, "HOME": home, "ZDOTDIR": home, "BASH_COMPLETION_USER_DIR": str(place)}
    # Given explicitly; otherwise the machine's own state would also be used.
    state = str(place / "home/.local/state/zconsole")
    return {**own, "XDG_CONFIG_HOME": "", "XDG_STATE_HOME": "", "ZCONSOLE_STATE": state}


Completer = Callable[[str], set[str]]


@pytest.fixture(
    scope="module",
    params=["bash", "bash with bash-completion", "zsh", "zsh with a sourced script", "fish"],
)
def completes(
    request: pytest.FixtureRequest, place: Path, environment: dict[str, str]
) -> Iterator[Completer]:
    shell, _, how = request.param.partition(" ")
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    if how == "with bash-completion" and not BASH_COMPLETION.exists():
        pytest.skip("bash-completion is not installed")
    if shell == "fish":
        setup = f"set -p fish_complete_path {place / 'fish'}; cd {place / 'work'}"
        yield lambda line: fish_completes(setup, line, environment)
        return
    started = _started(shell, how, place, environment)
    yield started.complete
    started.close()


def _started(shell: str, how: str, place: Path, environment: dict[str, str]) -> InteractiveShell:
    setup, argv = place / "home/.zshrc", ["zsh", "-d", "-i"]
    if shell == "zsh":
        load = f"source {place}/home/_zconsole" if how else ""
        text = f"fpath=({'' if how else place / 'home'} $fpath)\n{ZSH}\n{load}"
    else:
        setup = place / "home/bashrc"
        argv = ["bash", "--noprofile", "--rcfile", str(setup), "-i"]
        text = f"{BASH}\nsource {BASH_COMPLETION if how else place / 'completions/zconsole'}"
    setup.write_text(f"{text}\ncd {place}/work\n")
    return InteractiveShell(argv, environment)


def test_a_shell_completes_all_there_is(completes: Completer) -> None:
    found = {line: {word.rstrip("/") for word in completes(line)} for line in CASES}
    assert found == CASES


def test_a_shell_adds_nothing_where_nothing_fits(completes: Completer) -> None:
    for line in NOTHING:
        assert completes(line) <= {line.split(" ")[-1]}
