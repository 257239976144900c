"""The paths that Samba and ksmbd share: their files, the registry, users' own shares.

Formats: smb.conf(5), ksmbd.conf(5), net(8) ``usershare`` and ``conf``, testparm(1).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from zconsole.rebalance.planning.facts import Run
from zconsole.system.process import DeadlineError
from zconsole.system.safe_path import StateError, contents

LARGEST = 4 * 2**20
"""Bytes of a configuration file or table; a longer one is not what it claims to be."""
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


class Tree:
    """The files below ``root``, which may be another mount namespace's, read without going astray.

    Paths are absolute, as processes with that root name them.
    """

    def __init__(self, root: Path, follow: bool = True) -> None:
        """Without ``follow`` no symbolic link is followed.

        In another mount namespace an absolute one would lead back into this one.
        """
        self.root = root
        self._follow = follow
        self.unread: list[str] = []
        """What is there and could not be read, and why."""

    def text(self, path: str) -> str | None:
        """What a regular file holds; None where there is none, or it is among ``unread``."""
        with self._noting(path):
            return contents(self._open(path), LARGEST).decode("utf-8", "surrogateescape")
        return None

    def names(self, path: str) -> list[str]:
        """The names in a directory, sorted; none where there is none, or it is among ``unread``."""
        with self._noting(path):
            directory = self._open(path, os.O_DIRECTORY)
            try:
                return sorted(os.listdir(directory))  # noqa: PTH208 - of a descriptor
            finally:
                os.close(directory)
        return []

    @contextlib.contextmanager
    def _noting(self, path: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            pass
        except (OSError, StateError) as error:  # of a link that is not followed ENOTDIR as well
            self.unread.append(f"{path}: {getattr(error, 'strerror', error)}")

    def _open(self, path: str, flags: int = 0) -> int:
        if self._follow:
            return os.open(self.root / path.lstrip("/"), _FLAGS | flags)
        *above, name = path.strip("/").split("/")
        directory = os.open(self.root, _FLAGS | os.O_DIRECTORY)
        try:
            for part in above:
                below = os.open(part, _FLAGS | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
                os.close(directory)
                directory = below
            return os.open(name, _FLAGS | os.O_NOFOLLOW | flags, dir_fd=directory)
        finally:
            os.close(directory)


SMB = "/etc/samba/smb.conf"
CONFIGURATIONS = (SMB, "/etc/ksmbd/ksmbd.conf", "/etc/ksmbd/smb.conf")
USERSHARES = "/var/lib/samba/usershares"
DEADLINE = 5.0
"""Seconds for testparm or net, which read a few files."""
DEEPEST = 16
"""Files that include one another; smb.conf(5) knows no limit, and a ring has no end."""
_PRINTING = ("printers", "print$")
_HOMES = "/home"
_USERS = 1000
"""The first user id of people (login.defs(5), UID_MIN)."""
_REGISTRY = "registry"
_BY_REGISTRY = {
    "configbackend": (_REGISTRY,),
    "registryshares": ("yes", "true", "1", "on"),
}
"""Parameters, and the values with which they have Samba read its registry."""


@dataclass(slots=True)
class Shares:
    """Shared paths, and why there may be others than for what the tree could not read: in words."""

    paths: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    registry: str = ""
    """The file that refers to Samba's registry."""
    homes: bool = False
    """Whether every user's home is shared."""
    taken: set[tuple[str, int]] = field(default_factory=set)
    """Files, and how deep they may still include others: one that two include is read once."""


def shares_of(tree: Tree, run: Run | None, named: Sequence[str] = ()) -> Shares:
    """What is shared by the files of a tree, those ``named`` to a running server among them.

    ``run`` asks this machine's own Samba; it is None for a tree that is not this machine's.
    """
    found = Shares()
    for file in CONFIGURATIONS:
        _take_file(found, tree, file, DEEPEST, missing_is_known=True)
    for file in named:
        if file.startswith("/"):
            _take_file(found, tree, file, DEEPEST)
        else:
            found.unknown.append(f"smbd was started with {file or 'a configuration'} of its own")
    _take_users(found, tree, USERSHARES)
    if run is not None:
        _ask(found, run)
    elif found.registry:
        found.unknown.append(f"{found.registry} refers to Samba's registry")
    if found.homes:
        found.paths += (_HOMES, *_homes(tree))
    return found


def _ask(found: Shares, run: Run) -> None:
    """Take in what Samba's own tools print, where they are installed."""
    printed = _printed(run, "testparm", "-s")
    _take(found, None, "testparm", printed or "", 0)
    registry = _printed(run, "net", "conf", "list")
    _take(found, None, "net conf list", registry or "", 0)
    if found.registry and registry is None:
        found.unknown.append(f"{found.registry} refers to the registry, and net conf list fails")


def _printed(run: Run, *argv: str) -> str | None:
    try:
        done = run(argv, DEADLINE)
    except (OSError, DeadlineError):
        return None
    return done.stdout if done.returncode == 0 else None


def _take_file(
    found: Shares, tree: Tree, file: str, depth: int, missing_is_known: bool = False
) -> None:
    if not depth:
        found.unknown.append(f"{file}: includes nested too deep")
        return
    if (file, depth) in found.taken:
        return
    found.taken.add((file, depth))
    text = tree.text(file)
    if text is not None:
        _take(found, tree, file, text, depth)
    elif not missing_is_known:
        found.unknown.append(f"{file} is missing")


def _take(found: Shares, tree: Tree | None, file: str, text: str, depth: int) -> None:
    """Take in a configuration; ``tree`` has the files it includes, None where they are in it."""
    for section, name, value in _parameters(text):
        if name in ("path", "directory") and section not in _PRINTING:
            _take_path(found, file, section, value)
        elif name in ("include", "configfile") and tree is not None:
            _include(found, tree, file, value, depth)
        elif value.lower() in _BY_REGISTRY.get(name, ()):
            found.registry = file
        elif name == "usersharepath" and tree is not None and value.strip('"') != USERSHARES:
            _take_users(found, tree, value.strip('"'))
        elif not name and section == "homes":
            found.homes = True


def _include(found: Shares, tree: Tree, file: str, value: str, depth: int) -> None:
    name = value.strip('"')
    if name.lower() == _REGISTRY:
        found.registry = file
    elif "%" in name:
        found.unknown.append(f"{file} includes {name}, which differs by client")
    elif not name.startswith("/"):
        found.unknown.append(f"{file} includes {name}, which is not an absolute path")
    else:
        _take_file(found, tree, name, depth - 1)


def _take_path(found: Shares, file: str, section: str, value: str) -> None:
    """A path up to the directory from which on it varies by user or client."""
    path = value.strip('"')
    if path.startswith("/"):
        fixed, varies, _ = path.partition("%")
        found.paths.append(fixed.rpartition("/")[0] + "/" if varies else path)
    elif value:
        found.unknown.append(f"{file}: the path of [{section}] varies")


def _take_users(found: Shares, tree: Tree, directory: str) -> None:
    """Shares that users made (net(8), usershare): a file each."""
    for name in tree.names(directory):
        _take_file(found, tree, f"{directory}/{name}", 1, missing_is_known=True)


def _parameters(text: str) -> Iterator[tuple[str, str, str]]:
    """Section, name (lower case, without blanks) and value; a section's head has no name."""
    section = ""
    for line in map(str.strip, text.replace("\\\n", "").splitlines()):
        if line.startswith(("#", ";")):
            continue
        if line.startswith("["):
            section = line.strip("[] ").lower()
            yield section, "", ""
            continue
        name, equals, value = line.partition("=")
        if equals:
            yield section, "".join(name.lower().split()), value.strip()


def _homes(tree: Tree) -> Iterator[str]:
    """The homes of people (passwd(5)); the section shares them without naming them."""
    for line in (tree.text("/etc/passwd") or "").splitlines():
        words = line.split(":")
        person = len(words) == 7 and words[2].isdecimal() and int(words[2]) >= _USERS
        if person and words[5].startswith("/") and words[5] not in ("/", "/nonexistent"):
            yield words[5]
