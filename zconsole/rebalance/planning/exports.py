"""What other machines may write to: exported over NFS, over SMB, from here or from a container.

Where that cannot be known, it counts as exported, and the words say why.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from zconsole.rebalance.planning import smb_shares
from zconsole.rebalance.planning.facts import Mount, Run
from zconsole.rebalance.planning.smb_shares import Tree
from zconsole.system import mounts
from zconsole.system.mounts import plain
from zconsole.system.patient import NoAnswerError, Patient
from zconsole.system.printable import clean

MACHINE = Path("/")
DEADLINE = 5.0
"""Seconds for all containers; a filesystem of theirs may never answer."""
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
    shares = smb_shares.shares_of(tree, run, named)
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
    holders = [m for m in reversed(table) if Path(m.point) in (shared, *shared.parents)]
    holder = max(holders, key=lambda m: len(Path(m.point).parts), default=None)
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
        return [entry.name for entry in proc.iterdir() if entry.name.isdecimal()]
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
