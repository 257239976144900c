"""Run a shell command in a bare Debian, on a copy of this tree: `bare_root.py RELEASE COMMAND`.

With `--source`, on what is in that archive instead. The Debian is a minimal one with the packages
that the README asks for. Its tree is kept in the cache of tests.vm, and made again after two weeks
or when what it is made of changes. It is read-only while the command runs, unless `--writable`
gives it a layer of its own. The command sees devices, processes and temporary directories of its
own, which the kernel takes away when it ends. pip installs from wheels fetched with the tree.
"""

from __future__ import annotations

import argparse
import hashlib
import inspect
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TREE = Path(__file__).parents[1]
sys.path.insert(0, str(TREE))

from tests.vm import chroot, wheels  # noqa: E402 - found through the path above
from tests.vm.cache import exclusive, half_done, remove_tree, subdirectory  # noqa: E402
from tests.vm.errors import VmError  # noqa: E402
from tests.vm.progress import Progress  # noqa: E402
from tests.vm.releases import Release  # noqa: E402

RELEASES = ("bookworm", "trixie", "sid")
PACKAGES = ("python3", "python3-venv", "git")
"""What the README says is needed."""

USER = "ordinary"
MOST_AGE = 14 * 86400.0
"""Seconds after which a tree is made again."""

# Arguments of these scripts are the tree, the archive of the source, the user and the command.
READ_ONLY = """
set -e
mount --bind "$1" "$1"
mount -o remount,bind,ro "$1"
"""
WRITABLE = """
set -e
mount -t tmpfs tmpfs "$1/srv"
mkdir "$1/srv/upper" "$1/srv/work" "$1/srv/root"
layers="lowerdir=$1,upperdir=$1/srv/upper,workdir=$1/srv/work"
mount -t overlay overlay -o "$layers" "$1/srv/root"
root=$1/srv/root; shift; set -- "$root" "$@"
"""
RUN = f"""
{chroot.MOUNTS}
for entry in sys sysrq-trigger; do
  [ -e "$root/proc/$entry" ] || continue
  mount --bind "$root/proc/$entry" "$root/proc/$entry"
  mount -o remount,bind,ro "$root/proc/$entry"
done
for directory in src tmp var/tmp run root home; do
  mount -t tmpfs -o mode=755,nosuid,nodev tmpfs "$root/$directory"
done
chmod 1777 "$root/tmp" "$root/var/tmp"
tar -xf "$1" --no-same-owner -C "$root/src"
mkdir "$root/home/{USER}"
chroot "$root" chown -R {USER}: /src /home/{USER}
[ "$2" = {USER} ] || chown -R 0:0 "$root/src"
setpriv --bounding-set=-mknod,-sys_rawio,-sys_module,-sys_boot,-sys_time \\
  chroot --userspec="$2:" "$root" sh -c "cd /src && $3"
exit
"""


def main() -> int:
    """Returns the exit status of the command, or 1 where the tree cannot be made."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--user", action="store_true", help="run as an ordinary user, not as root")
    parser.add_argument("--writable", action="store_true", help="let the command change the Debian")
    parser.add_argument("--source", metavar="ARCHIVE", help="run it on the files of a tar archive")
    parser.add_argument("release", choices=RELEASES)
    parser.add_argument("command")
    args = parser.parse_args()
    home = subdirectory("bare") / args.release
    home.mkdir(exist_ok=True)
    try:
        with exclusive(home / "lock"):
            root = prepared(args.release, home)
            if args.source:
                return run(root, args, args.source)
            with tempfile.NamedTemporaryFile(dir=root.parent) as archive:
                pack(archive.name)
                return run(root, args, archive.name)
    except VmError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def prepared(release: str, home: Path) -> Path:
    """The tree of a release, made where it is missing, old or of other things."""
    root = home / key(release)
    if root.is_dir() and time.time() - root.stat().st_mtime < MOST_AGE:
        return root
    log = subdirectory("logs") / f"bare-{release}.log"
    log.unlink(missing_ok=True)
    print(f"making a bare {release}; log: {log}", file=sys.stderr)
    with half_done(home, release) as work:
        build(release, work / "root", Progress(log))
        for old in [path for path in home.iterdir() if path.is_dir() and path != work]:
            remove_tree(old)
        (work / "root").rename(root)
    return root


def key(release: str) -> str:
    """A hash of what a tree is made of and how."""
    steps = [inspect.getsource(of) for of in (build, chroot, wheels)]
    parts = [release, *PACKAGES, *steps, *wheels.requirements(), *wheels.build_requirements()]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def build(release: str, root: Path, progress: Progress) -> None:
    """Make the tree of a release. Raises VmError where a step fails."""
    with progress.step(f"debootstrap {release}"):
        made = chroot.debootstrap(Release(release, release, release), root, progress)
    with progress.step(" ".join(PACKAGES)):
        made.install(PACKAGES)
        made.run("apt-get", "clean")
        made.run("useradd", "--create-home", USER)
    for directory in ("src", "wheels"):
        (root / directory).mkdir()
    version = "import sys; print('%d.%d' % sys.version_info[:2])"
    python = made.run("python3", "-c", version).strip()
    with progress.step(f"wheels for Python {python}"):
        more = wheels.build_requirements()
        progress.run(wheels.download_command(python, root / "wheels", *more))
    os.utime(root)


def run(root: Path, args: argparse.Namespace, archive: str) -> int:
    """Run the command on the files of an archive; its exit status."""
    user = USER if args.user else "root"
    script = (WRITABLE if args.writable else READ_ONLY) + RUN
    words = [str(root), archive, user, args.command]
    return subprocess.run(
        [*chroot.ISOLATED, "--ipc", "--uts", "sh", "-c", script, "sh", *words],
        env=environment("/root" if user == "root" else f"/home/{user}"),
        check=False,
    ).returncode


def pack(archive: str) -> None:
    """Write the files of this tree that git does not ignore into a tar file."""
    git = ["git", "-c", "safe.directory=*", "-C", str(TREE), "ls-files", "-z"]
    listing = subprocess.run(
        [*git, "--cached", "--others", "--exclude-standard"], capture_output=True, check=True
    ).stdout
    names = [name for name in listing.split(b"\0") if name]
    there = b"\0".join(name for name in names if os.path.lexists(TREE / os.fsdecode(name)))
    tar = ["tar", "-C", str(TREE), "--null", "--no-recursion", "-T", "-", "-cf", archive]
    subprocess.run(tar, input=there, check=True)


def environment(home: str) -> dict[str, str]:
    """What a login would have set, and the wheels in place of an index."""
    return {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": home,
        "LANG": "C.UTF-8",
        "TERM": os.environ.get("TERM", "dumb"),
        "PYTEST_ADDOPTS": "-rs",  # what is left out there says why
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": "/wheels",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_ROOT_USER_ACTION": "ignore",
    }


if __name__ == "__main__":
    sys.exit(main())
