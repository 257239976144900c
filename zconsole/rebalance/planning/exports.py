"""Directories that other machines may write to: exported over NFS or SMB, here or by a container.

Where that can't be determined, a directory counts as exported, and the reason says so. Formats:
exports(5), smb.conf(5), ksmbd.conf(5), net(8) ``usershare`` and ``conf``, testparm(1).
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
from zconsole.system.patient import Patient
from zconsole.system.printable import clean
from zconsole.system.process import DeadlineError
from zconsole.system.safe_path import StateError, contents

MACHINE = Path("/")
DEADLINE = 5.0
"""Seconds for all containers, whose filesystems may never answer; and for testparm or net."""
OWN = 3 * DEADLINE
"""Seconds for this machine's own shares, for which two of Samba's tools are asked as well."""
USER_SPACE = frozenset({"ganesha.nfsd", "unfsd"})
"""NFS servers in user space, which list their exports nowhere else."""
SERVERS = frozenset({"rpc.mountd", "smbd", "ksmbd.mountd"})
"""Server processes in whose mount namespace the server's tables are."""
KERNEL_THREAD = "nfsd"
_CONFIGURATION = re.compile(r"-[DFSi]*s(.*)|--configfile(?:=(.*))?", re.DOTALL)
"""Options of smbd(8) that name its configuration, in the same word or in the next one."""
_VARIABLE = "SMB_CONF_PATH="
"""Environment variable that names it instead (lib/cmdline/cmdline_s3.c)."""
ETAB = "/var/lib/nfs/etab"
"""Exports that exportfs(8) told the kernel; the kernel's tables list only those in use."""
KERNEL = ("/proc/fs/nfsd/exports", "/proc/net/rpc/nfsd.export/content")
"""The kernel's tables, with lines ``PATH<TAB>DOMAIN(OPTIONS)``.

A line that begins with # is a heading or no longer valid (svc_export_show, fs/nfsd/export.c).
"""
UNKNOWN = "cannot tell whether"
"""Start of the reason why a directory counts as exported, though no export is known."""
PSEUDO = "v4root"
"""Option of a directory that only leads to exported ones and shows nothing else."""


class ServerProcess(NamedTuple):
    """A process: its directory in /proc, its name and its mount namespace (empty if hidden)."""

    place: Path
    name: str
    namespace: str


def look(run: Run, machine: Path = MACHINE, patient: Patient | None = None) -> list[Shared]:
    """Return the shares of this machine and of each container in which a server runs.

    ``run`` runs Samba's tools; ``machine`` is the root of this machine's files; ``patient`` is that
    of earlier looks, so that what hangs since then is not asked again.
    """
    patient = patient or Patient()
    processes, here = list(processes_of(machine / "proc")), ""
    for process in processes:
        if process.name in USER_SPACE:  # anything may be exported: the rest doesn't matter
            return [Shared(server=process.name)]
    with contextlib.suppress(OSError):
        here = _namespace(machine / "proc/self")
    own = Shared(machine, _mounts(machine / "proc/self"), own=True)
    named = _configurations((at for at in processes if at.namespace in ("", here)), patient)
    try:  # an included file, or a link in a shared path, may be on a server that is dead
        patient.call(partial(own.read, named, run), OWN)
    except StateError:
        own = Shared(table=own.table, own=True, unknown=["what is shared here gives no answer"])
    found, unknown = list[Shared](), list[str]()
    try:
        found = patient.call(lambda: list(_others(processes, here, patient)), DEADLINE)
    except StateError:
        unknown.append("the files of a container give no answer")
    except OSError as error:
        unknown.append(f"cannot inspect a container: {error}")
    if any(process.name == KERNEL_THREAD for process in processes):
        # The kernel's NFS server runs: it may be for a container that cannot be seen.
        ours = (machine / ETAB.lstrip("/")).exists() and own.has_server
        if not all(process.namespace for process in processes):
            unknown.append("an NFS server is running, and other mount namespaces are hidden")
        elif not ours and not any(each.table for each in found):
            unknown.append("an NFS server runs in a container that cannot be found")
    return [own, *found, Shared(unknown=unknown)]


def why_exported(point: str, every: Sequence[Shared]) -> str:
    """Reason why the filesystem mounted at ``point`` counts as exported; empty if it does not."""
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
    return f"{UNKNOWN} {clean(point)} is exported: {clean(unknown)}" if unknown else ""


def _others(processes: Sequence[ServerProcess], here: str, patient: Patient) -> Iterator[Shared]:
    """Yield the shares of each other mount namespace, seen through one of its processes."""
    spaces: dict[str, list[ServerProcess]] = {}
    for process in processes:
        if not process.namespace and process.name in SERVERS:
            why = f"no permission to inspect process {process.place.name} ({process.name})"
            yield Shared(unknown=[why])
        if process.namespace not in ("", here):
            spaces.setdefault(process.namespace, []).append(process)
    for members in spaces.values():
        place, names = members[0].place, {member.name for member in members}
        found = Shared(place / "root", _mounts(place))
        serves_nfs = "rpc.mountd" in names or found.has_server
        if serves_nfs or names & SERVERS:
            found.read(_configurations(members, patient))
            if serves_nfs and not found.unknown and found.text(ETAB) is None:
                why = f"the NFS server in the container of process {place.name} has no {ETAB}"
                found.unknown.append(why)
            yield found


def _mounts(process: Path) -> tuple[MountPoint, ...]:
    """Return the mount table of a process; empty if it may not be read."""
    try:
        return tuple(mounts.rows(mounts.table_of(process)))
    except OSError:
        return ()


def processes_of(proc: Path) -> Iterator[ServerProcess]:
    """Yield every process that this one can see."""
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
    """Return the name of a process's mount namespace (namespaces(7)), empty without permission.

    Raises OSError for a process that has ended.
    """
    try:
        return os.readlink(process / "ns/mnt")  # noqa: PTH115 - no path: mnt:[4026531841]
    except PermissionError:
        return ""


def _configurations(processes: Iterable[ServerProcess], patient: Patient) -> Iterator[str]:
    """Yield the configuration that each smbd was started with; empty if reading it hangs."""
    for process in processes:
        if process.name != "smbd":
            continue
        words, variables = (
            _memory(process.place / name, patient) for name in ("cmdline", "environ")
        )
        if words is None or variables is None:
            yield ""
            continue
        for word, after in pairwise(words):
            if named := _CONFIGURATION.fullmatch(word):
                yield named[1] or named[2] or after
        for variable in variables:
            if variable.startswith(_VARIABLE) and variable != _VARIABLE:
                yield variable.removeprefix(_VARIABLE)


def _memory(file: Path, patient: Patient) -> list[str] | None:
    """Read NUL-separated words from a process's memory.

    Empty for a process that has ended or is hidden, None if reading hangs.
    """
    try:
        return os.fsdecode(patient.call(file.read_bytes)).split("\0")
    except StateError:
        return None
    except OSError:
        return []


LARGEST = 4 * 2**20
"""Most bytes of a configuration file or table; a larger file can't be one."""
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC  # O_NONBLOCK: a FIFO must not hang
SMB = "/etc/samba/smb.conf"
CONFIGURATIONS = (SMB, "/etc/ksmbd/ksmbd.conf", "/etc/ksmbd/smb.conf")
USERSHARES = "/var/lib/samba/usershares"
DEEPEST = 16
"""Most levels of nested includes; smb.conf(5) sets no limit, and a cycle would never end."""
_TOOLS = ("testparm", "-s"), ("net", "conf", "list")
_PRINTING = ("printers", "print$")
_HOMES = "/home"
_USERS = 1000
"""First user id of human users (UID_MIN, login.defs(5))."""
_REGISTRY = "registry"
_BY_REGISTRY = {
    "configbackend": (_REGISTRY,),
    "registryshares": ("yes", "true", "1", "on"),
}
"""Parameters, and the values that make Samba read its registry."""


@dataclass(slots=True)
class Shared:
    """Shares of one mount namespace, read from the configuration files below its root.

    Paths are absolute, as processes with that root name them.
    """

    root: Path = MACHINE
    table: Sequence[MountPoint] = ()
    """Mounts in this namespace."""
    own: bool = False
    """Whether this is the namespace of this process.

    Only there symbolic links are followed: in another, an absolute one would lead back into this.
    """
    server: str = ""
    """Name of a running NFS server in user space, which may export anything."""
    unknown: list[str] = field(default_factory=list)
    """Reasons why there may be more shares than were found."""
    nfs: list[str] = field(default_factory=list)
    smb: list[str] = field(default_factory=list)
    _registry: str = ""
    """Configuration file that refers to Samba's registry; empty if none does."""
    _homes: bool = False
    """Whether the home directory of every user is shared."""
    _taken: set[tuple[str, int]] = field(default_factory=set)
    """Files read so far, with the levels of includes left, so that none is read twice."""

    @property
    def has_server(self) -> bool:
        """Whether the filesystem of the kernel's NFS server is mounted."""
        return any(mounted.kind == KERNEL_THREAD.encode() for mounted in self.table)

    def shows(self, path: bytes, point: bytes, device: bytes | None) -> bool:
        """Whether an exported path shows any part of the filesystem mounted at ``point``.

        A path shows the filesystem that it is on and all mounts below it, bind mounts included.
        """
        if self.own and is_inside(point, path):
            return True
        # Without devices only paths can be compared. Those in another namespace mean something
        # else, so assume the worst of it.
        if device is None or not self.table:
            return not self.own or is_inside(path, point)
        # Reversed: of several mounts at one point, the last one is visible.
        above = [m for m in reversed(self.table) if is_inside(path, m.point)]
        holder = max(above, key=lambda m: len(m.point.rstrip(b"/")), default=None)
        below = (m for m in self.table if m.point != path and is_inside(m.point, path))
        return any(m.device == device for m in (holder, *below) if m is not None)

    def read(self, named: Iterable[str], run: Run | None = None) -> None:
        """Collect the shares; ``named`` are the configurations of running servers.

        ``run`` runs the tools of this machine's own Samba; None for any other namespace.
        """
        for table in (ETAB, *KERNEL):
            for line in (self.text(table) or "").splitlines():
                name, _, clients = line.partition("\t" if "\t" in line else " ")
                heading = not line.strip() or line.startswith("#")
                if not heading and PSEUDO not in re.split(r"[(),]", clients):
                    # Paths have octal escapes (\040), as in mount tables.
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
        if self.own:  # Samba resolves links when it serves, exportfs already has
            self.smb += sorted(set(map(os.path.realpath, self.smb)) - set(self.smb))

    def text(self, path: str) -> str | None:
        """Return the content of a regular file, or None; an error goes to ``unknown``."""
        with self._noting(path):
            return contents(self._open(path), LARGEST).decode("utf-8", "surrogateescape")
        return None

    @contextlib.contextmanager
    def _noting(self, path: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            pass
        except (OSError, StateError) as error:  # ENOTDIR or ELOOP for a link not followed
            self.unknown.append(f"{path}: {getattr(error, 'strerror', error)}")

    def _open(self, path: str, flags: int = 0) -> int:
        if self.own:
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
        """Add the shares that Samba's own tools print, if they are installed."""
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
        """Add the shares of a configuration; ``depth`` 0: the text has its includes inlined."""
        section = ""
        for line in map(str.strip, text.replace("\\\n", "").splitlines()):
            if line.startswith("["):
                section = line.strip("[] ").lower()
                self._homes |= section == "homes"
            name, equals, value = line.partition("=")
            if not equals or line.startswith(("#", ";", "[")):
                continue
            # Case and blanks in names of parameters don't matter (smb.conf(5)).
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
        """Add a path, cut above the component that varies by user or client."""
        path = value.strip('"')
        if path.startswith("/"):
            fixed, varies, _ = path.partition("%")
            self.smb.append(fixed.rpartition("/")[0] + "/" if varies else path)
        elif value:
            self.unknown.append(f"{file}: the path of [{section}] varies")

    def _take_users(self, directory: str) -> None:
        """Add the shares that users made (``net usershare``, net(8)), one file each."""
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
        """Yield the home directories of users (passwd(5)); [homes] shares them without names."""
        for line in (self.text("/etc/passwd") or "").splitlines():
            words = line.split(":")
            person = len(words) == 7 and words[2].isdecimal() and int(words[2]) >= _USERS
            if person and words[5].startswith("/") and words[5] not in ("/", "/nonexistent"):
                yield words[5]
