"""Images, built once per definition and kept in the cache; a failed build leaves none."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tests.vm import wheels
from tests.vm.cache import exclusive, half_done, remove_tree, subdirectory
from tests.vm.chroot import Chroot, debootstrap
from tests.vm.errors import NotAvailableError, VmError
from tests.vm.progress import Progress
from tests.vm.releases import (
    BASE_PACKAGES,
    BUILD_PACKAGES,
    BUILD_PLACE,
    BUILD_STEPS,
    GUEST,
    RELEASES,
    SHELF_PACKAGES,
    SHELF_PLACE,
    SHELF_STEPS,
    ZFS_PACKAGES,
    Release,
    SourceRelease,
)

HOST_PACKAGES = {
    "qemu-system-x86_64": "qemu-system-x86",
    "qemu-img": "qemu-utils",
    "debootstrap": "debootstrap",
    "mke2fs": "e2fsprogs",
    "ssh": "openssh-client",
    "xz": "xz-utils",
}
"""Programs that the harness runs, and the Debian packages that contain them."""

ROOT_SIZE = "4G"
ROOT_LABEL = "labroot"
DEVELOPED = 99
"""Patch level that marks the version under development (META)."""

_INITRAMFS_MODULES = "virtio_blk\nvirtio_pci\nvirtio_net\nvirtio_rng\next4\n"

# Not needed to run: compiler inputs, apt's lists, documentation.
_DROPPED = (
    "usr/src",
    "var/lib/dkms",
    "var/lib/apt/lists",
    "var/cache/apt",
    "usr/share/doc",
    "usr/share/locale",
    "usr/share/man",
    "boot",
    "root/wheels",
)


@dataclass(frozen=True)
class Image:
    """A bootable image in the cache, and the versions in its tree."""

    directory: Path
    release: str
    zfs: str
    kernel: str
    python: str

    @property
    def root(self) -> Path:
        """Return the raw ext4 root filesystem; it is never written to after the build."""
        return self.directory / "root.img"

    @property
    def ssh_key(self) -> Path:
        """Return the private key that the image's root account accepts."""
        return self.directory / "id_ed25519"

    @property
    def zfs_version(self) -> tuple[int, int]:
        """Return OpenZFS's (major, minor); 2.4.99, developed after 2.4, counts as (2, 5)."""
        major, minor, patch = (int(part) for part in f"{self.zfs}.0".split(".")[:3])
        return major, minor + (patch == DEVELOPED)


def missing_programs() -> list[str]:
    """Return the Debian packages that this machine lacks."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    return [pack for name, pack in HOST_PACKAGES.items() if not shutil.which(name, path=path)]


def why_unavailable() -> str | None:
    """Return why virtual machines cannot run here, in one line; None if they can."""
    if os.geteuid() != 0:
        return "building a virtual machine needs root"
    if missing := missing_programs():
        return f"missing Debian packages: {' '.join(missing)} (python -m tests.vm deps)"
    return None


def find(release: Release) -> Image | None:
    """Return the cached image of a release as currently defined; None if it is not built."""
    directory = _directory(release)
    try:
        facts = json.loads((directory / "image.json").read_text())
    except FileNotFoundError:
        return None
    return Image(directory=directory, **facts)


def build(name: str) -> Image:
    """Return the image of a release, built if the cache lacks it.

    Raises NotAvailableError if this machine cannot build it, VmError if a step fails; the cache
    then holds only the log.
    """
    release = RELEASES[name]
    if image := find(release):
        return image
    if reason := why_unavailable():
        raise NotAvailableError(reason)
    if isinstance(release, SourceRelease):
        release.archive()
    images = subdirectory("images")
    with exclusive(images / "build.lock"):
        if image := find(release):
            return image
        return _build(release, images)


def prune() -> list[str]:
    """Delete images whose definition has changed; returns their names."""
    images = subdirectory("images")
    kept = {_directory(release).name for release in RELEASES.values()}
    stale = [path for path in images.iterdir() if path.is_dir() and path.name not in kept]
    for path in stale:
        remove_tree(path)
    return [path.name for path in stale]


def _directory(release: Release) -> Path:
    """Return the directory of a release's image, which may not exist yet."""
    return subdirectory("images") / f"{release.name}-{release.key()}"


def _build(release: Release, images: Path) -> Image:
    """Build into a directory next to the images and rename it."""
    start = time.monotonic()
    log = subdirectory("logs") / f"build-{release.name}.log"
    log.unlink(missing_ok=True)
    print(f"building the {release.name} image; log: {log}", file=sys.stderr)
    with half_done(images, release.name) as work:
        output = work / "image"
        output.mkdir()
        _assemble(release, work / "root", output, Progress(log))
        output.rename(_directory(release))
    image = find(release)
    if image is None:
        raise VmError("the image vanished from the cache")
    print(f"zfs {image.zfs}, {time.monotonic() - start:.0f} s in all", file=sys.stderr)
    return image


def _assemble(release: Release, root: Path, output: Path, progress: Progress) -> None:
    """Run every step from an empty directory to the finished files."""
    with progress.step(f"debootstrap {release.suite}"):
        chroot = debootstrap(release, root, progress)
    with progress.step("kernel, Python and tools"):
        chroot.install(BASE_PACKAGES)
    if isinstance(release, SourceRelease):
        _build_zfs(release, chroot)
    else:
        with progress.step("zfs, its module compiled by dkms"):
            chroot.install(ZFS_PACKAGES, release.zfs_suite)
    with progress.step("an enclosure for its disks"):
        chroot.install(SHELF_PACKAGES)
        chroot.write(f"{SHELF_PLACE}/shelf.c", (GUEST / "shelf.c").read_text())
        chroot.run("sh", "-c", SHELF_STEPS)
    facts = _read_versions(release, chroot)
    with progress.step(f"Python {facts['python']} environment"):
        _make_venv(chroot, facts["python"])
    with progress.step("guest configuration and initramfs"):
        _configure_guest(chroot, output, facts["kernel"])
    with progress.step("root filesystem"):
        _make_root(chroot, output / "root.img")
    (output / "image.json").write_text(json.dumps(facts))


def _build_zfs(release: SourceRelease, chroot: Chroot) -> None:
    """Compile and install the release's own OpenZFS."""
    with chroot.progress.step("what compiles zfs"):
        chroot.install(BUILD_PACKAGES)
    with chroot.progress.step("zfs, compiled from its source"):
        place = chroot.root / BUILD_PLACE
        place.mkdir(parents=True)
        unpack = ["tar", "--no-same-owner", "-xf", str(release.archive()), "-C", str(place)]
        chroot.progress.run(unpack)
        chroot.run("sh", "-c", BUILD_STEPS, "sh", release.source)


def _read_versions(release: Release, chroot: Chroot) -> dict[str, str]:
    """Return the versions in the tree; raises VmError if the module is missing."""
    [kernel] = [path.name for path in (chroot.root / "lib/modules").iterdir()]
    zfs = chroot.run("modinfo", "-k", kernel, "-F", "version", "zfs").strip()
    python = chroot.run("python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])")
    return {
        "release": release.name,
        "zfs": zfs.partition("-")[0],
        "kernel": kernel,
        "python": python.strip(),
    }


def _make_venv(chroot: Chroot, python: str) -> None:
    """Create /opt/zc, which sees the distribution's libzfs_core, from wheels of the host."""
    directory = chroot.root / "root/wheels"
    chroot.progress.run(wheels.download_command(python, directory))
    chroot.run("python3", "-m", "venv", "--system-site-packages", "/opt/zc")
    offline = ["--no-index", "--find-links", "/root/wheels", "--no-compile"]
    chroot.run("/opt/zc/bin/pip", "install", *offline, *wheels.requirements())
    chroot.run("/opt/zc/bin/python", "-m", "compileall", "-q", "/opt/zc/lib")


def _configure_guest(chroot: Chroot, output: Path, kernel: str) -> None:
    """Install init, sshd's settings and key; move kernel and initramfs out of the tree."""
    chroot.write("sbin/zcvm-init", (GUEST / "init").read_text(), 0o755)
    chroot.write("usr/local/bin/zconsole", (GUEST / "zconsole").read_text(), 0o755)
    sshd = (GUEST / "sshd.conf").read_text()
    chroot.write("etc/ssh/sshd_config.d/vm.conf", sshd)
    key = str(output / "id_ed25519")
    chroot.progress.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "vm", "-f", key])
    chroot.write("root/.ssh/authorized_keys", Path(f"{key}.pub").read_text(), 0o600)
    chroot.write("etc/hosts", "127.0.0.1 localhost zcvm\n")
    chroot.write("etc/initramfs-tools/modules", _INITRAMFS_MODULES)
    chroot.write("etc/initramfs-tools/conf.d/vm", "MODULES=list\n")
    chroot.run("mkinitramfs", "-o", "/boot/initrd", kernel)
    shutil.copyfile(chroot.root / "boot/initrd", output / "initrd")
    shutil.copyfile(chroot.root / f"boot/vmlinuz-{kernel}", output / "kernel")


def _make_root(chroot: Chroot, image: Path) -> None:
    """Write the tree, without build-only files, into an ext4 image."""
    for path in _DROPPED:
        remove_tree(chroot.root / path)
    chroot.write("boot/.keep", "")
    subprocess.run(["truncate", "-s", ROOT_SIZE, str(image)], check=True)
    fill = ["mke2fs", "-q", "-t", "ext4", "-L", ROOT_LABEL, "-d", str(chroot.root), str(image)]
    chroot.progress.run(fill)
