"""What other machines may write to: exported over NFS, over SMB, from here or from a container.

Where that cannot be known, it counts as exported, and the words say why.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from zconsole.rebalance.planning import nfs_exports, smb_shares
from zconsole.rebalance.planning.facts import Mount, Run
from zconsole.rebalance.planning.foreign_tree import Tree, UnreadableError
from zconsole.system import mounts
from zconsole.system.patient import NoAnswerError, Patient
from zconsole.system.printable import clean

MACHINE = Path("/")
DEADLINE = 5.0
"""Seconds for all containers; a filesystem of theirs may never answer."""
USER_SPACE = frozenset({"ganesha.nfsd", "unfsd"})
"""NFS servers that keep their exports to themselves."""
SERVERS = frozenset({"rpc.mountd", "smbd", "ksmbd.mountd"})
"""Processes whose mount namespace has the tables of a server."""
KERNEL_THREAD = "nfsd"
_CONFIGURATION = re.compile(r"-[DFSi]*s(.*)|--configfile(?:=(.*))?", re.DOTALL)
"""The options of smbd(8) that name its configuration, there or in the next word."""


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
    found = _found(Tree(machine), _mounts(machine / "proc/self"), run, named)
    real = {os.path.realpath(path) for path in found.smb}  # Samba follows links, exportfs did
    return found._replace(smb=tuple(dict.fromkeys((*found.smb, *sorted(real)))))


def _found(tree: Tree, table: tuple[Mount, ...], run: Run | None, named: Sequence[str]) -> Found:
    unknown: list[str] = []
    nfs: list[str] = []
    for name in (nfs_exports.ETAB, *nfs_exports.KERNEL):
        try:
            nfs += nfs_exports.exported_paths(tree, (name,))
        except UnreadableError as error:
            unknown.append(str(error))
    shares = smb_shares.shares_of(tree, run, named)
    return Found(tuple(nfs), tuple(shares.paths), (*unknown, *shares.unknown), table)


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
    found: list[Found] = []
    looking = partial(_look, machine, processes, found)
    work = threading.Thread(target=looking, daemon=True, name="exports")
    work.start()
    work.join(DEADLINE)
    if work.is_alive():
        return [_unknown("the files of a container give no answer")]
    if any(p.name == KERNEL_THREAD for p in processes):
        found += _unseen_servers(machine, processes, own, found)
    return found


def _look(machine: Path, processes: Sequence[ServerProcess], found: list[Found]) -> None:
    try:
        found.extend(_others(machine, processes))
    except OSError as error:
        found.append(_unknown(f"cannot inspect a container: {error}"))


def _unseen_servers(
    machine: Path, processes: Sequence[ServerProcess], own: Found, others: Sequence[Found]
) -> list[Found]:
    """The kernel's NFS server runs: whether it may be for a container that cannot be seen."""
    if any(not process.namespace for process in processes):
        return [_unknown("an NFS server is running, and other mount namespaces are hidden")]
    table = machine / nfs_exports.ETAB.lstrip("/")
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
    if serves_nfs and not found.unknown and _lacks(tree, nfs_exports.ETAB):
        why = f"the NFS server in the container of process {process.name} has no {nfs_exports.ETAB}"
        found = found._replace(unknown=(why,))
    yield found


def _lacks(tree: Tree, path: str) -> bool:
    try:
        return tree.text(path) is None
    except UnreadableError:
        return True


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
            found.update(dict.fromkeys(_named(machine / "proc" / process.number / "cmdline")))
    return tuple(found)


def _named(line: Path) -> Iterator[str]:
    try:
        text = Patient().call(line.read_bytes)  # of its memory: may hang
    except NoAnswerError:
        text = b"smbd\0-s\0"
    except OSError:
        return  # it ended
    words = os.fsdecode(text).split("\0")
    for word, after in pairwise(words):
        if named := _CONFIGURATION.fullmatch(word):
            yield named[1] or named[2] or after


def _namespace_of_this(machine: Path) -> str:
    return next((p.namespace for p in _processes(machine / "proc", ("self",))), "")


def _namespace(process: Path) -> str:
    """Names its mount namespace (namespaces(7)). Raises OSError for a process that has ended."""
    try:
        return os.readlink(process / "ns/mnt")  # noqa: PTH115 - no path: mnt:[4026531841]
    except PermissionError:
        return ""
