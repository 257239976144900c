"""What other machines may write to: exported over NFS by the kernel, over SMB by Samba or ksmbd."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

ETAB = Path("/var/lib/nfs/etab")
SHARES = (Path("/etc/samba/smb.conf"), Path("/etc/ksmbd/ksmbd.conf"))
USERSHARES = Path("/var/lib/samba/usershares")
_PRINTING = ("printers", "print$")
_HOMES = "/home"


def is_exported(
    point: str,
    table: Path = ETAB,
    shares: Sequence[Path] = SHARES,
    usershares: Path = USERSHARES,
) -> bool:
    """Whether a directory on the mount at ``point``, or one above it, is exported."""
    mount = Path(point)
    return any(
        _meets(Path(shared), mount) for shared in (*_by_nfs(table), *_by_smb(shares, usershares))
    )


def _meets(shared: Path, mount: Path) -> bool:
    if shared == mount or shared in mount.parents:
        return True
    return mount in shared.parents and _is_on(shared, mount)


def _is_on(shared: Path, mount: Path) -> bool:
    """Whether what is exported below a mount is not of another filesystem in it."""
    try:
        return shared.stat().st_dev == mount.stat().st_dev
    except OSError:
        return True


def _by_nfs(table: Path) -> Iterator[str]:
    """The paths of exportfs(8)'s table."""
    for line in _lines(table):
        yield line.split("\t")[0].split(" ")[0]


def _by_smb(files: Sequence[Path], usershares: Path) -> Iterator[str]:
    """The paths of shares (smb.conf(5), net(8) usershare), up to the first that varies by user."""
    try:
        named = sorted(usershares.iterdir())
    except OSError:
        named = []
    for file in (*files, *named):
        for path in _paths(file):
            fixed = path.strip('"').partition("%")[0]
            if fixed.startswith("/"):
                yield fixed


def _paths(file: Path) -> Iterator[str]:
    section = ""
    for line in map(str.strip, _lines(file)):
        if line.startswith("["):
            section = line.strip("[] ").lower()
            if section == "homes":
                yield _HOMES
        name, equals, value = line.partition("=")
        word = "".join(name.lower().split())
        if equals and word in ("path", "directory") and section not in _PRINTING:
            yield value.strip()


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return []
