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
from zconsole.rebalance.planning.facts import Run
from zconsole.system import mounts
from zconsole.system.mounts import MountPoint, is_inside
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
    """A process: its directory in /proc, and its mount namespace, empty where that is hidden."""

    place: Path
    name: str
    namespace: str


def look(run: Run, machine: Path = MACHINE) -> list[Shared]:
    """What is shared by this machine, and by each container in which a server runs.

    ``run`` asks Samba's tools; ``machine`` is where this machine's files are.
    """
    processes, here = list(processes_of(machine / "proc")), ""
    for process in processes:
        if process.name in USER_SPACE:
            return [Shared(server=process.name)]
    with contextlib.suppress(OSError):
        here = _namespace(machine / "proc/self")
    own = Shared(machine, table=_mounts(machine / "proc/self"), own=True)
    named = _configurations(each for each in processes if each.namespace in ("", here))
    try:  # an included file, or a link in a shared path, may be on a server that is dead
        Patient().call(partial(own.read, named, run), OWN)
    except NoAnswerError:
        own = Shared(table=own.table, own=True, unknown=["what is shared here gives no answer"])
    try:
        found = Patient().call(lambda: list(_others(processes, here)), DEADLINE)
    except NoAnswerError:
        return [own, Shared(unknown=["the files of a container give no answer"])]
    except OSError as error:
        return [own, Shared(unknown=[f"cannot inspect a container: {error}"])]
    why = ""
    if any(process.name == KERNEL_THREAD for process in processes):
        # The kernel's NFS server runs: it may be for a container that cannot be seen.
        ours = (machine / ETAB.lstrip("/")).exists() and own.has_server
        if not all(process.namespace for process in processes):
            why = "an NFS server is running, and other mount namespaces are hidden"
        elif not ours and not any(each.table for each in found):
            why = "an NFS server runs in a container that cannot be found"
    return [own, *found, Shared(unknown=[why] if why else [])]


def why_exported(point: str, every: Sequence[Shared]) -> str:
    """Why what is on the mount at ``point`` counts as exported; empty when it is not."""
    mount = os.fsencode(point)
    tables = [each.table for each in every if each.own]
    device = next((m.device for t in tables for m in reversed(t) if m.point == mount), None)
    for found in every:
        if found.server:
            return f"exported over NFS: {found.server} is running, and may export anything"
        for protocol, paths in (("NFS", found.nfs), ("SMB", found.smb)):
            for path in paths:
                plain = os.fsencode(Path("/", path.lstrip("/")))
                if found.shows(plain, mount, device):
                    return f"exported over {protocol} ({clean(path)})"
    unknown = next((text for found in every for text in found.unknown), None)
    return f"cannot tell whether {clean(point)} is exported: {clean(unknown)}" if unknown else ""


def _others(processes: Sequence[ServerProcess], here: str) -> Iterator[Shared]:
    """What each other mount namespace shares, seen through one of its processes."""
    spaces: dict[str, list[ServerProcess]] = {}
    for process in processes:
        if not process.namespace and process.name in SERVERS:
            why = f"no permission to inspect process {process.place.name} ({process.name})"
            yield Shared(unknown=[why])
        if process.namespace not in ("", here):
            spaces.setdefault(process.namespace, []).append(process)
    for members in spaces.values():
        place, names = members[0].place, {member.name for member in members}
        found = Shared(place / "root", follow=False, table=_mounts(place))
        serves_nfs = "rpc.mountd" in names or found.has_server
        if serves_nfs or names & SERVERS:
            found.read(_configurations(members))
            if serves_nfs and not found.unknown and found.text(ETAB) is None:
                why = f"the NFS server in the container of process {place.name} has no {ETAB}"
                found.unknown.append(why)
            yield found


def _mounts(process: Path) -> tuple[MountPoint, ...]:
    """What a process sees mounted; nothing where that may not be read."""
    try:
        return tuple(mounts.rows(mounts.table_of(process)))
    except OSError:
        return ()


def processes_of(proc: Path) -> Iterator[ServerProcess]:
    """Every process that can be seen."""
    try:
        with holders.opened(os.fspath(proc)) as table:
            numbers = holders.processes(table)
    except OSError:
        return
    for place in (proc / number for number in numbers):
        with contextlib.suppress(OSError):  # it has ended
            name = (place / "comm").read_text(errors="replace").rstrip("\n")
            yield ServerProcess(place, name, _namespace(place))


def _namespace(process: Path) -> str:
    """Names its mount namespace (namespaces(7)). Raises OSError for a process that has ended."""
    try:
        return os.readlink(process / "ns/mnt")  # noqa: PTH115 - no path: mnt:[4026531841]
    except PermissionError:
        return ""


def _configurations(processes: Iterable[ServerProcess]) -> Iterator[str]:
    """Configurations that servers of Samba were started with; empty for one that is not known."""
    for process in processes:
        if process.name != "smbd":
            continue
        words, variables = (_memory(process.place / name) for name in ("cmdline", "environ"))
        if words is None or variables is None:
            yield ""
            continue
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


LARGEST = 4 * 2**20
"""Bytes of a configuration file or table; a longer one is not what it claims to be."""
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
SMB = "/etc/samba/smb.conf"
CONFIGURATIONS = (SMB, "/etc/ksmbd/ksmbd.conf", "/etc/ksmbd/smb.conf")
USERSHARES = "/var/lib/samba/usershares"
DEEPEST = 16
"""Files that include one another; smb.conf(5) knows no limit, and a ring has no end."""
_TOOLS = ("testparm", "-s"), ("net", "conf", "list")
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
class Shared:
    """What one mount namespace shares, by the files below its root, read without going astray.

    Paths are absolute, as processes with that root name them.
    """

    root: Path = MACHINE
    follow: bool = True
    """Symbolic links; in another mount namespace an absolute one would lead back into this one."""
    table: Sequence[MountPoint] = ()
    """What is mounted in it."""
    own: bool = False
    """Whether it is this process's own."""
    server: str = ""
    """One that keeps its exports to itself."""
    unknown: list[str] = field(default_factory=list)
    """Why there may be more than was found, in words."""
    nfs: list[str] = field(default_factory=list)
    smb: list[str] = field(default_factory=list)
    _registry: str = ""
    """The file that refers to Samba's registry."""
    _homes: bool = False
    """Whether every user's home is shared."""
    _taken: set[tuple[str, int]] = field(default_factory=set)
    """Files, and how deep they may still include others: one that two include is read once."""

    @property
    def has_server(self) -> bool:
        """Whether the filesystem of the kernel's NFS server is mounted."""
        return any(mounted.kind == KERNEL_THREAD.encode() for mounted in self.table)

    def shows(self, path: bytes, point: bytes, device: bytes | None) -> bool:
        """Whether an exported path shows anything of the filesystem at ``point``.

        It shows the filesystem it is on and all that is mounted below: bind mounts included.
        """
        if self.own and is_inside(point, path):
            return True
        if device is None or not self.table:
            return not self.own or is_inside(path, point)
        above = [m for m in reversed(self.table) if is_inside(path, m.point)]
        holder = max(above, key=lambda m: len(m.point.rstrip(b"/")), default=None)
        below = (m for m in self.table if m.point != path and is_inside(m.point, path))
        return any(m.device == device for m in (holder, *below) if m is not None)

    def read(self, named: Iterable[str], run: Run | None = None) -> None:
        """Find out what is shared; ``named`` are configurations that running servers have.

        ``run`` asks this machine's own Samba; it is None for what is not this machine's.
        """
        for table in (ETAB, *KERNEL):
            for line in (self.text(table) or "").splitlines():
                name, _, clients = line.partition("\t" if "\t" in line else " ")
                heading = not line.strip() or line.startswith("#")
                if not heading and PSEUDO not in re.split(r"[(),]", clients):
                    self.nfs.append(os.fsdecode(mounts.plain(os.fsencode(name.strip('"')))))
        for file in CONFIGURATIONS:
            self._take_file(file, DEEPEST, missing_is_known=True)
        for file in named:
            if file.startswith("/"):
                self._take_file(file, DEEPEST)
            else:
                text = f"smbd was started with {file or 'a configuration'} of its own"
                self.unknown.append(text)
        self._take_users(USERSHARES)
        if run is not None:
            self._ask(run)
        elif self._registry:
            self.unknown.append(f"{self._registry} refers to Samba's registry")
        if self._homes:
            self.smb += (_HOMES, *self._people())
        if self.own:  # Samba follows links, exportfs did
            self.smb += sorted(set(map(os.path.realpath, self.smb)) - set(self.smb))

    def text(self, path: str) -> str | None:
        """What a regular file holds; None where there is none, or why is ``unknown``."""
        with self._noting(path):
            return contents(self._open(path), LARGEST).decode("utf-8", "surrogateescape")
        return None

    @contextlib.contextmanager
    def _noting(self, path: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            pass
        except (OSError, StateError) as error:  # of a link that is not followed ENOTDIR as well
            self.unknown.append(f"{path}: {getattr(error, 'strerror', error)}")

    def _open(self, path: str, flags: int = 0) -> int:
        if self.follow:
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

    def _ask(self, run: Run) -> None:
        """Take in what Samba's own tools print, where they are installed."""
        printed = ""
        for argv in _TOOLS:
            try:
                done = run(argv, DEADLINE)
            except (OSError, DeadlineError):
                continue
            if done.returncode == 0:
                printed = " ".join(argv).removesuffix(" -s")
                self._take(printed, done.stdout, 0)
        if self._registry and not printed.startswith("net"):
            why = f"{self._registry} refers to the registry, and net conf list fails"
            self.unknown.append(why)

    def _take_file(self, file: str, depth: int, missing_is_known: bool = False) -> None:
        if not depth:
            self.unknown.append(f"{file}: includes nested too deep")
            return
        if (file, depth) in self._taken:
            return
        self._taken.add((file, depth))
        text = self.text(file)
        if text is not None:
            self._take(file, text, depth)
        elif not missing_is_known:
            self.unknown.append(f"{file} is missing")

    def _take(self, file: str, text: str, depth: int) -> None:
        """Take in a configuration; without ``depth`` what it includes is in it."""
        section = ""
        for line in map(str.strip, text.replace("\\\n", "").splitlines()):
            if line.startswith("["):
                section = line.strip("[] ").lower()
                self._homes |= section == "homes"
            name, equals, value = line.partition("=")
            if not equals or line.startswith(("#", ";", "[")):
                continue
            name, value = "".join(name.lower().split()), value.strip()
            if name in ("path", "directory") and section not in _PRINTING:
                self._take_path(file, section, value)
            elif name in ("include", "configfile") and depth:
                self._include(file, value.strip('"'), depth)
            elif value.lower() in _BY_REGISTRY.get(name, ()):
                self._registry = file
            elif name == "usersharepath" and depth and value.strip('"') != USERSHARES:
                self._take_users(value.strip('"'))

    def _include(self, file: str, name: str, depth: int) -> None:
        if name.lower() == _REGISTRY:
            self._registry = file
        elif "%" in name:
            self.unknown.append(f"{file} includes {name}, which differs by client")
        elif not name.startswith("/"):
            self.unknown.append(f"{file} includes {name}, which is not an absolute path")
        else:
            self._take_file(name, depth - 1)

    def _take_path(self, file: str, section: str, value: str) -> None:
        """A path up to the directory from which on it varies by user or client."""
        path = value.strip('"')
        if path.startswith("/"):
            fixed, varies, _ = path.partition("%")
            self.smb.append(fixed.rpartition("/")[0] + "/" if varies else path)
        elif value:
            self.unknown.append(f"{file}: the path of [{section}] varies")

    def _take_users(self, directory: str) -> None:
        """Shares that users made (net(8), usershare): a file each."""
        names: list[str] = []
        with self._noting(directory):
            handle = self._open(directory, os.O_DIRECTORY)
            try:
                names = sorted(os.listdir(handle))  # noqa: PTH208 - of a descriptor
            finally:
                os.close(handle)
        for name in names:
            self._take_file(f"{directory}/{name}", 1, missing_is_known=True)

    def _people(self) -> Iterator[str]:
        """The homes of people (passwd(5)); the section shares them without naming them."""
        for line in (self.text("/etc/passwd") or "").splitlines():
            words = line.split(":")
            person = len(words) == 7 and words[2].isdecimal() and int(words[2]) >= _USERS
            if person and words[5].startswith("/") and words[5] not in ("/", "/nonexistent"):
                yield words[5]
