"""What other machines may write to: exported over NFS, over SMB, from here or from a container.

Where that cannot be known, it counts as exported, and the words say why. Formats: exports(5),
smb.conf(5), ksmbd.conf(5), net(8) ``usershare`` and ``conf``, testparm(1).
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from zconsole.rebalance.engine import holders
from zconsole.rebalance.planning.facts import Mount, Run
from zconsole.system import mounts
from zconsole.system.mounts import plain
from zconsole.system.patient import NoAnswerError, Patient
from zconsole.system.printable import clean
from zconsole.system.process import DeadlineError
from zconsole.system.safe_path import StateError, contents

MACHINE = Path("/")
DEADLINE = 5.0
"""Seconds for all containers, where a filesystem may never answer; and for testparm or net."""
OWN = 3 * DEADLINE
"""The same for this machine's own, which two of Samba's tools are asked about."""
USER_SPACE = frozenset({"ganesha.nfsd", "unfsd"})
"""NFS servers that keep their exports to themselves."""
SERVERS = frozenset({"rpc.mountd", "smbd", "ksmbd.mountd"})
"""Processes whose mount namespace has the tables of a server."""
KERNEL_THREAD = "nfsd"
_CONFIGURATION = re.compile(r"-[DFSi]*s(.*)|--configfile(?:=(.*))?", re.DOTALL)
"""The options of smbd(8) that name its configuration, there or in the next word."""
_VARIABLE = "SMB_CONF_PATH="
"""What names it in the environment instead (lib/cmdline/cmdline_s3.c)."""
ETAB = "/var/lib/nfs/etab"
"""What exportfs(8) told the kernel; the kernel's tables hold only what clients have asked for."""
KERNEL = ("/proc/fs/nfsd/exports", "/proc/net/rpc/nfsd.export/content")
"""``PATH<TAB>DOMAIN(OPTIONS)``; a line that begins with # is a heading or no longer valid
(svc_export_show, fs/nfsd/export.c)."""
PSEUDO = "v4root"
"""The option of a directory that only leads to exported ones and shows nothing else."""


class ServerProcess(NamedTuple):
    """A process: its name, and its mount namespace, empty where that may not be seen."""

    number: str
    name: str
    namespace: str


class Found(NamedTuple):
    """What one mount namespace shares."""

    nfs: tuple[str, ...]
    smb: tuple[str, ...]
    unknown: tuple[str, ...]
    table: tuple[Mount, ...]


def why_exported(point: str, run: Run, machine: Path = MACHINE) -> str:
    """Why what is on the mount at ``point`` counts as exported; empty when it is not.

    ``run`` asks Samba's tools; ``machine`` is where this machine's files are.
    """
    processes = tuple(_processes(machine / "proc", _numbers(machine / "proc")))
    server = next((p.name for p in processes if p.name in USER_SPACE), None)
    if server is not None:
        return f"exported over NFS: {server} is running, and may export anything"
    own = _own(machine, run, processes)
    device = next((m.device for m in reversed(own.table) if m.point == point), None)
    founds = (own, *_containers(machine, processes, own))
    for found in founds:
        for protocol, paths in (("NFS", found.nfs), ("SMB", found.smb)):
            for path in paths:
                if _meets(path, point, device, found.table, found is own):
                    return f"exported over {protocol} ({clean(path)})"
    unknown = next((text for found in founds for text in found.unknown), None)
    return f"cannot tell whether {clean(point)} is exported: {clean(unknown)}" if unknown else ""


def _own(machine: Path, run: Run, processes: Sequence[ServerProcess]) -> Found:
    here = _namespace_of_this(machine)
    named = _configurations(machine, (p for p in processes if p.namespace in ("", here)))
    table = _mounts(machine / "proc/self")
    try:  # an included file, or a link in a shared path, may be on a server that is dead
        return Patient().call(partial(_shared_here, machine, table, run, named), OWN)
    except NoAnswerError:
        return Found((), (), ("what is shared here gives no answer",), table)


def _shared_here(machine: Path, table: tuple[Mount, ...], run: Run, named: Sequence[str]) -> Found:
    found = _found(Tree(machine), table, run, named)
    real = {os.path.realpath(path) for path in found.smb}  # Samba follows links, exportfs did
    return found._replace(smb=tuple(dict.fromkeys((*found.smb, *sorted(real)))))


def _found(tree: Tree, table: tuple[Mount, ...], run: Run | None, named: Sequence[str]) -> Found:
    nfs = tuple(path for name in (ETAB, *KERNEL) for path in exported_paths(tree, name))
    shares = shares_of(tree, run, named)
    return Found(nfs, tuple(shares.paths), (*tree.unread, *shares.unknown), table)


def _meets(path: str, point: str, device: str | None, table: Sequence[Mount], own: bool) -> bool:
    """Whether an exported path shows anything of the filesystem at ``point``.

    It shows the filesystem it is on and all that is mounted below: bind mounts included.
    """
    shared, mount = Path(path), Path(point)
    if own and (shared == mount or shared in mount.parents):
        return True
    if device is None or not table:
        return not own or mount in shared.parents
    above = [m for m in reversed(table) if Path(m.point) in (shared, *shared.parents)]
    holder = max(above, key=lambda m: len(Path(m.point).parts), default=None)
    below = (m for m in table if shared in Path(m.point).parents)
    return any(m.device == device for m in (holder, *below) if m is not None)


def _containers(machine: Path, processes: Sequence[ServerProcess], own: Found) -> list[Found]:
    """What servers in other mount namespaces share, as far as that can be seen."""
    try:
        found = Patient().call(lambda: list(_others(machine, processes)), DEADLINE)
    except NoAnswerError:
        return [_unknown("the files of a container give no answer")]
    except OSError as error:
        return [_unknown(f"cannot inspect a container: {error}")]
    if any(p.name == KERNEL_THREAD for p in processes):
        found += _unseen_servers(machine, processes, own, found)
    return found


def _unseen_servers(
    machine: Path, processes: Sequence[ServerProcess], own: Found, others: Sequence[Found]
) -> list[Found]:
    """The kernel's NFS server runs: whether it may be for a container that cannot be seen."""
    if any(not process.namespace for process in processes):
        return [_unknown("an NFS server is running, and other mount namespaces are hidden")]
    table = machine / ETAB.lstrip("/")
    ours = table.exists() and any(mounted.kind == KERNEL_THREAD for mounted in own.table)
    if ours or any(found.table for found in others):
        return []
    return [_unknown("an NFS server runs in a container that cannot be found")]


def _others(machine: Path, processes: Sequence[ServerProcess]) -> Iterator[Found]:
    here = _namespace_of_this(machine)
    spaces: dict[str, list[ServerProcess]] = {}
    for process in processes:
        if not process.namespace and process.name in SERVERS:
            yield _unknown(f"no permission to inspect process {process.number} ({process.name})")
        if process.namespace not in ("", here):
            spaces.setdefault(process.namespace, []).append(process)
    for members in spaces.values():
        yield from _other(machine, members)


def _other(machine: Path, members: Sequence[ServerProcess]) -> Iterator[Found]:
    """What one other mount namespace shares, seen through one of its processes."""
    process, names = machine / "proc" / members[0].number, {member.name for member in members}
    table = _mounts(process)
    serves_nfs = "rpc.mountd" in names or any(m.kind == KERNEL_THREAD for m in table)
    if not serves_nfs and not names & SERVERS:
        return
    tree = Tree(process / "root", follow=False)
    found = _found(tree, table, None, _configurations(machine, members))
    if serves_nfs and not found.unknown and tree.text(ETAB) is None:
        why = f"the NFS server in the container of process {process.name} has no {ETAB}"
        found = found._replace(unknown=(why,))
    yield found


def _unknown(why: str) -> Found:
    return Found((), (), (why,), ())


def _mounts(process: Path) -> tuple[Mount, ...]:
    """What a process sees mounted; nothing where that may not be read."""
    try:
        return tuple(map(Mount.of, mounts.rows(mounts.table_of(process))))
    except OSError:
        return ()


def _numbers(proc: Path) -> list[str]:
    try:
        with holders.opened(os.fspath(proc)) as table:
            return holders.processes(table)
    except OSError:
        return []


def _processes(proc: Path, numbers: Sequence[str]) -> Iterator[ServerProcess]:
    for number in numbers:
        try:
            name = (proc / number / "comm").read_text(errors="replace").rstrip("\n")
            yield ServerProcess(number, name, _namespace(proc / number))
        except OSError:
            continue  # it has ended


def _configurations(machine: Path, processes: Iterable[ServerProcess]) -> tuple[str, ...]:
    """Configurations that servers of Samba were started with; empty for one that is not known."""
    found: dict[str, None] = {}
    for process in processes:
        if process.name == "smbd":
            found.update(dict.fromkeys(_named(machine / "proc" / process.number)))
    return tuple(found)


def _named(process: Path) -> Iterator[str]:
    words, variables = _memory(process / "cmdline"), _memory(process / "environ")
    if words is None or variables is None:
        yield ""
        return
    for word, after in pairwise(words):
        if named := _CONFIGURATION.fullmatch(word):
            yield named[1] or named[2] or after
    for variable in variables:
        if variable.startswith(_VARIABLE) and variable != _VARIABLE:
            yield variable.removeprefix(_VARIABLE)


def _memory(file: Path) -> list[str] | None:
    """Words out of a process's memory, none of one that ended or is hidden; None if that hangs."""
    try:
        return os.fsdecode(Patient().call(file.read_bytes)).split("\0")
    except NoAnswerError:
        return None
    except OSError:
        return []


def _namespace_of_this(machine: Path) -> str:
    return next((p.namespace for p in _processes(machine / "proc", ("self",))), "")


def _namespace(process: Path) -> str:
    """Names its mount namespace (namespaces(7)). Raises OSError for a process that has ended."""
    try:
        return os.readlink(process / "ns/mnt")  # noqa: PTH115 - no path: mnt:[4026531841]
    except PermissionError:
        return ""


def exported_paths(tree: Tree, table: str) -> Iterator[str]:
    """The paths in a table of the kernel's or of exportfs(8)'s, if it is there."""
    for line in (tree.text(table) or "").splitlines():
        if line.strip() and not line.startswith("#"):
            yield from _path(line)


def _path(line: str) -> Iterator[str]:
    name, _, clients = line.partition("\t") if "\t" in line else line.partition(" ")
    options = re.split(r"[(),]", clients)
    if PSEUDO not in options:
        yield os.fsdecode(plain(os.fsencode(name.strip('"'))))


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
