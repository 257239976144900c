"""What each image is made of: the releases the suite runs on and their packages."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.vm.wheels import requirements

RECIPE = 1
"""Raised when the build steps change what an image holds."""

GUEST = Path(__file__).parent / "guest"
GUEST_FILES = ("init", "sshd.conf", "zconsole")
"""What an image holds of ours."""

BASE_PACKAGES = (
    "acl",
    "attr",
    "dkms",
    "e2fsprogs",
    "initramfs-tools",
    "iproute2",
    "kmod",
    "linux-headers-cloud-amd64",
    "linux-image-cloud-amd64",
    "openssh-server",
    "procps",
    "python3",
    "python3-venv",
    "rsync",
    "tmux",
    "udev",
    "zstd",
)
"""Installed first: zfs-dkms needs the kernel's headers in place to compile its module."""

ZFS_PACKAGES = ("zfs-dkms", "zfsutils-linux", "python3-pyzfs")


@dataclass(frozen=True)
class Release:
    """One kind of image: a Debian suite, and the suite its ZFS comes from."""

    name: str
    suite: str
    zfs_suite: str

    @property
    def suites(self) -> tuple[str, ...]:
        """The suites apt needs, the base system's first."""
        return tuple(dict.fromkeys((self.suite, self.zfs_suite)))

    def key(self) -> str:
        """A hash of everything the image is made of; another key means another image."""
        parts = {
            "release": asdict(self),
            "recipe": RECIPE,
            "packages": [*BASE_PACKAGES, *ZFS_PACKAGES],
            "python": requirements(),
            "files": {name: (GUEST / name).read_text() for name in GUEST_FILES},
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


RELEASES = {
    release.name: release
    for release in (
        Release("bookworm", "bookworm", "bookworm"),
        Release("trixie", "trixie", "trixie"),
        Release("trixie+sid", "trixie", "sid"),
    )
}
