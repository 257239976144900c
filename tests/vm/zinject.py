"""The fault injector zinject: part of Debian's OpenZFS tests, not of an image."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.vm import apt
from tests.vm.cache import subdirectory
from tests.vm.errors import NotAvailableError
from tests.vm.image import Image
from tests.vm.machine import Machine
from tests.vm.releases import RELEASES

PACKAGE = "zfs-test"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
PLACE = "/usr/sbin/zinject"


def install(machine: Machine) -> None:
    """Install zinject of the machine's OpenZFS release, unless it is there.

    Raises NotAvailableError if the package is not available.
    """
    if machine.run(["test", "-x", PLACE], check=False).returncode != 0:
        machine.put(_program(machine.image), PLACE)


def _program(image: Image) -> Path:
    """Return the program, from the cache or from the suite of the release's OpenZFS."""
    directory = subdirectory("zinject") / image.zfs
    program = directory / "zinject"
    if not program.exists():
        directory.mkdir(exist_ok=True)
        _fetch(RELEASES[image.release].zfs_suite, directory)
    return program


def _fetch(suite: str, directory: Path) -> None:
    mirror = apt.host_mirror()
    if mirror is None:
        raise NotAvailableError("apt has no mirror of Debian here, and zinject is not in the image")
    source = directory / "sources.list"
    source.write_text(f"deb [signed-by={KEYRING}] {mirror} {suite} main contrib\n")
    for name in ("lists", "archives"):
        (directory / name / "partial").mkdir(parents=True, exist_ok=True)
    settings = (
        *("-o", f"Dir::Etc::SourceList={source}", "-o", "Dir::Etc::SourceParts=-"),
        *("-o", f"Dir::State::Lists={directory}/lists", "-o", "APT::Sandbox::User=root"),
        *("-o", f"Dir::Cache={directory}", "-o", f"Dir::Cache::Archives={directory}/archives"),
    )
    for words in (("update",), ("download", PACKAGE)):
        _run(["apt-get", "-qq", *settings, *words], directory)
    [package] = directory.glob(f"{PACKAGE}_*.deb")
    tree = directory / "tree"
    _run(["dpkg-deb", "-x", str(package), str(tree)], directory)
    [found] = tree.glob("**/sbin/zinject")
    found.rename(directory / "zinject")


def _run(words: list[str], directory: Path) -> None:
    done = subprocess.run(words, cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        complaint = done.stderr.strip().splitlines()[-1:]
        raise NotAvailableError(f"{' '.join(words[:1])}: {' '.join(complaint)}")
