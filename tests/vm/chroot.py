"""A Debian root tree, and commands run inside it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.vm.apt import host_mirror, shared_settings
from tests.vm.progress import Progress
from tests.vm.releases import Release

# A mount and process namespace of its own: when the command ends, or this process is
# killed, the kernel takes the mounts and every daemon left behind away with it.
ISOLATED = ("unshare", "--mount", "--pid", "--fork", "--kill-child")

_ENTER = """
set -e
mount -t proc proc "$0/proc"
mount --rbind /sys "$0/sys"
mount --rbind /dev "$0/dev"
exec chroot "$0" "$@"
"""

_HOST_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")

_PASSED_ON = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


@dataclass(frozen=True)
class Chroot:
    """A root tree in a directory of the host."""

    root: Path
    progress: Progress

    def run(self, *argv: str) -> str:
        """Run a command inside the tree; returns its stdout, raises VmError where it fails."""
        return self.progress.run(
            [*ISOLATED, "sh", "-c", _ENTER, str(self.root), *argv], env=_environment()
        )

    def install(self, packages: Iterable[str], suite: str | None = None) -> None:
        """Install Debian packages, from a suite where one is named."""
        target = ["-t", suite] if suite else []
        self.run("apt-get", "install", "-y", "--no-install-recommends", *target, *packages)

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        """Write a file of the tree, with its directories."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        target.chmod(mode)


def debootstrap(release: Release, root: Path, progress: Progress) -> Chroot:
    """Make a minimal Debian tree that starts no services and knows the release's suites.

    The mirror is the host's; where it names none, debootstrap's own default.
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
    """apt.conf(5) of the tree: the host's, and the release's own needs."""
    lines = [shared_settings(), 'Acquire::Languages "none";\n']
    if release.zfs_suite != release.suite:
        lines.append(f'APT::Default-Release "{release.suite}";\n')
        # An unstable suite's Release file expires between two updates of a mirror.
        lines.append('Acquire::Check-Valid-Until "false";\n')
    return "".join(lines)


def _environment() -> dict[str, str]:
    """The environment of commands inside the tree: the host's proxies, nothing else of it."""
    proxies = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LC_ALL": "C.UTF-8",
        "HOME": "/root",
        "DEBIAN_FRONTEND": "noninteractive",
        # The image's initramfs is made once, at the end.
        "INITRD": "No",
        **proxies,
    }
