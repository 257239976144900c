"""A Debian root tree, and commands run inside it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.vm.apt import host_mirror, shared_settings
from tests.vm.progress import Progress
from tests.vm.releases import Release

# In a mount and process namespace of its own: when the command ends, or this process is killed, the
# kernel removes its mounts and every daemon it left behind.
ISOLATED = ("unshare", "--mount", "--pid", "--fork", "--kill-child")

MOUNTS = """
set -e
root=$1; shift
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t tmpfs -o mode=755,nosuid tmpfs "$root/dev"
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
mknod -m 666 "$root/dev/null" c 1 3
mknod -m 666 "$root/dev/zero" c 1 5
mknod -m 666 "$root/dev/full" c 1 7
mknod -m 666 "$root/dev/random" c 1 8
mknod -m 666 "$root/dev/urandom" c 1 9
mknod -m 666 "$root/dev/tty" c 5 0
ln -s /proc/self/fd "$root/dev/fd"
ln -s fd/0 "$root/dev/stdin"; ln -s fd/1 "$root/dev/stdout"; ln -s fd/2 "$root/dev/stderr"
"""
"""Shell commands that mount what the tree in $1 needs, without the host's own devices."""

# The shell stays as process 1 of the namespace: when apt temporarily changes its user, the kernel
# forgets that it must die with its parent (PR_SET_PDEATHSIG(2const)).
_ENTER = MOUNTS + 'chroot "$root" "$@"\nexit\n'

_HOST_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")

_PASSED_ON = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


@dataclass(frozen=True)
class Chroot:
    """A root tree in a directory of the host."""

    root: Path
    progress: Progress

    def run(self, *argv: str) -> str:
        """Run a command inside the tree; returns its stdout, raises VmError if it fails."""
        return self.progress.run(
            [*ISOLATED, "sh", "-c", _ENTER, "sh", str(self.root), *argv], env=_environment()
        )

    def install(self, packages: Iterable[str], suite: str | None = None) -> None:
        """Install Debian packages, from a suite if one is given."""
        target = ["-t", suite] if suite else []
        self.run("apt-get", "install", "-y", "--no-install-recommends", *target, *packages)

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        """Write a file of the tree, and make its directories."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        target.chmod(mode)


def debootstrap(release: Release, root: Path, progress: Progress) -> Chroot:
    """Create a minimal Debian tree that starts no services and has the release's suites.

    The mirror is the host's; if it has none, debootstrap's default.
    """
    mirror = host_mirror()
    options = ["--variant=minbase", "--components=main,contrib"]
    address = [mirror] if mirror else []
    progress.run(
        [*ISOLATED, "--mount-proc", "debootstrap", *options, release.suite, str(root), *address]
    )
    chroot = Chroot(root, progress)
    _configure(chroot, release)
    return chroot


def _configure(chroot: Chroot, release: Release) -> None:
    """Set up apt and dpkg inside the tree."""
    # 101 forbids every action, so that packages start no services (invoke-rc.d(8)).
    chroot.write("usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n", 0o755)
    chroot.write("etc/dpkg/dpkg.cfg.d/build", "force-unsafe-io\npath-exclude=/usr/share/man/*\n")
    chroot.write("etc/apt/apt.conf.d/90build", _apt_settings(release))
    listed = (chroot.root / "etc/apt/sources.list").read_text().split()
    mirror = next(word for word in listed if "://" in word)
    sources = [f"deb {mirror} {suite} main contrib\n" for suite in release.suites]
    chroot.write("etc/apt/sources.list", "".join(sources))
    if mirror.startswith("https:") and _HOST_CERTIFICATES.is_file():
        chroot.write(str(_HOST_CERTIFICATES)[1:], _HOST_CERTIFICATES.read_text())
    chroot.run("apt-get", "update")


def _apt_settings(release: Release) -> str:
    """Return the apt.conf(5) of the tree: the host's settings, and those the release needs."""
    lines = [shared_settings(), 'Acquire::Languages "none";\n']
    if release.zfs_suite != release.suite:
        lines.append(f'APT::Default-Release "{release.suite}";\n')
    if "sid" in release.suites:
        # The Release file of an unstable suite may expire before a mirror's next update.
        lines.append('Acquire::Check-Valid-Until "false";\n')
    return "".join(lines)


def _environment() -> dict[str, str]:
    """Return the environment of commands inside the tree: of the host's, only its proxies."""
    proxies = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LC_ALL": "C.UTF-8",
        "HOME": "/root",
        "DEBIAN_FRONTEND": "noninteractive",
        # The image's initramfs is made only once, at the end.
        "INITRD": "No",
        **proxies,
    }
