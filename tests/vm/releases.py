"""What each image is made of: the releases the suite runs on and their packages."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.vm.errors import NotAvailableError
from tests.vm.wheels import TREE, requirements

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

ARCHIVES = "ZCONSOLE_OPENZFS"
"""Names the directory of OpenZFS's source archives; unset, it is looked for beside the project."""

BUILD_PACKAGES = (
    *("autoconf", "automake", "autopoint", "build-essential", "gawk", "gettext", "libtool"),
    *("libaio-dev", "libattr1-dev", "libblkid-dev", "libelf-dev", "libffi-dev", "libssl-dev"),
    *("libtirpc-dev", "libudev-dev", "uuid-dev", "zlib1g-dev"),
    *("python3-cffi", "python3-dev", "python3-packaging", "python3-setuptools"),
)
"""What compiles OpenZFS. None is Debian's own OpenZFS, whose libraries would be found first."""

BUILD_PLACE = "usr/src/build"
"""Where a source is unpacked; what it installs in /usr/src must not meet it."""

BUILD_STEPS = f"""
set -e
cd "/{BUILD_PLACE}/$1"
kernel=$(ls /lib/modules)
./autogen.sh
./configure --prefix=/usr --sysconfdir=/etc --localstatedir=/var --enable-systemd=no \\
  --enable-pyzfs --with-linux="/lib/modules/$kernel/source" \\
  --with-linux-obj="/lib/modules/$kernel/build"
make -j"$(nproc)"
make install INSTALL_MOD_STRIP=1
# What boots from ZFS; it wants busybox, and the root here is ext4.
find /usr/share/initramfs-tools -name 'zfs*' -delete
depmod "$kernel"
ldconfig
"""
"""Shell commands, run in the tree: they build and install the source in the directory $1."""


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
        return hashlib.sha256(json.dumps(self.parts(), sort_keys=True).encode()).hexdigest()[:16]

    def parts(self) -> dict[str, object]:
        """What the image is made of."""
        return {
            "release": asdict(self),
            "recipe": RECIPE,
            "packages": [*BASE_PACKAGES, *ZFS_PACKAGES],
            "python": requirements(),
            "files": {name: (GUEST / name).read_text() for name in GUEST_FILES},
        }


@dataclass(frozen=True)
class SourceRelease(Release):
    """A Debian suite with an OpenZFS that none has, built from its source."""

    source: str
    """The directory that the archive holds; the file has its name and ``.tar.xz``."""

    def parts(self) -> dict[str, object]:
        """What the image is made of."""
        packages = [*BASE_PACKAGES, *BUILD_PACKAGES]
        return super().parts() | {"packages": packages, "build": BUILD_STEPS}

    def archive(self) -> Path:
        """The archive. Raises NotAvailableError where it is missing."""
        directory = Path(os.environ.get(ARCHIVES) or TREE.parent / "shared" / "openzfs")
        path = directory / f"{self.source}.tar.xz"
        if not path.is_file():
            raise NotAvailableError(f"OpenZFS {self.name} needs {path} (${ARCHIVES})")
        return path


RELEASES = {
    release.name: release
    for release in (
        Release("bookworm", "bookworm", "bookworm"),
        SourceRelease("2.2", "bookworm", "bookworm", "zfs-2.2.11"),
        Release("trixie", "trixie", "trixie"),
        Release("trixie+sid", "trixie", "sid"),
        Release("sid", "sid", "sid"),
        # Its META names the kernels it builds for: 4.18 to 7.2; trixie's is 6.12, and stays so.
        SourceRelease("master", "trixie", "trixie", "zfs-master-be7657e3f2"),
    )
}
