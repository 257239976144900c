"""Definitions of images: the releases that the suite runs on, and their packages."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.vm.errors import NotAvailableError
from tests.vm.wheels import TREE, requirements

RECIPE = 1
"""Increase this when the build steps change what an image holds."""

GUEST = Path(__file__).parent / "guest"
GUEST_FILES = ("init", "shelf.c", "sshd.conf", "zconsole")
"""Files of ours that an image holds."""

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
"""Installed first: zfs-dkms needs the kernel's headers to compile its module."""

ZFS_PACKAGES = ("zfs-dkms", "zfsutils-linux", "python3-pyzfs")

ARCHIVES = "ZCONSOLE_OPENZFS"
"""Variable with the directory of OpenZFS's source archives; by default, next to the project."""

BUILD_PACKAGES = (
    *("autoconf", "automake", "autopoint", "build-essential", "gawk", "gettext", "libtool"),
    *("libaio-dev", "libattr1-dev", "libblkid-dev", "libelf-dev", "libffi-dev", "libssl-dev"),
    *("libtirpc-dev", "libudev-dev", "uuid-dev", "zlib1g-dev"),
    *("python3-cffi", "python3-dev", "python3-packaging", "python3-setuptools"),
)
"""Packages that compile OpenZFS. Debian's own OpenZFS is not among them: its libraries would be
found first."""

BUILD_PLACE = "usr/src/build"
"""Directory where a source is unpacked; must not collide with what it installs in /usr/src."""

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
"""Shell commands, run in the tree, that build and install the source in the directory $1."""


SHELF_PACKAGES = ("linux-source", "xz-utils")
SHELF_PLACE = "usr/src/shelf"
"""Directory of the enclosure's source, ``shelf.c``."""

SHELF_STEPS = """
set -e
cd /usr/src/shelf
kernel=$(ls /lib/modules)
tar -xJf /usr/src/linux-source-*.tar.xz --strip-components=3 \
--wildcards '*/drivers/misc/enclosure.c'
echo 'obj-m := enclosure.o shelf.o' >Kbuild
make -C "/lib/modules/$kernel/build" M="$PWD" modules modules_install
depmod "$kernel"
"""
"""Shell commands that build the enclosure, and the kernel's own driver of enclosures, which a cloud
kernel lacks."""


@dataclass(frozen=True)
class Release:
    """A kind of image: a Debian suite, and the suite that its ZFS comes from."""

    name: str
    suite: str
    zfs_suite: str

    @property
    def suites(self) -> tuple[str, ...]:
        """Return the suites that apt needs, the base system's first."""
        return tuple(dict.fromkeys((self.suite, self.zfs_suite)))

    def key(self) -> str:
        """Return a hash of everything the image is made of; another key means another image."""
        return hashlib.sha256(json.dumps(self.parts(), sort_keys=True).encode()).hexdigest()[:16]

    def parts(self) -> dict[str, object]:
        """Return everything the image is made of."""
        return {
            "release": asdict(self),
            "recipe": RECIPE,
            "packages": [*BASE_PACKAGES, *ZFS_PACKAGES],
            "python": requirements(),
            "files": {name: (GUEST / name).read_text() for name in GUEST_FILES},
            "shelf": [*SHELF_PACKAGES, SHELF_STEPS],
        }


@dataclass(frozen=True)
class SourceRelease(Release):
    """A Debian suite with an OpenZFS that no suite has, built from source."""

    source: str
    """Name of the archive's top directory; the file has the same name with ``.tar.xz``."""

    def parts(self) -> dict[str, object]:
        """Return everything the image is made of."""
        packages = [*BASE_PACKAGES, *BUILD_PACKAGES]
        return super().parts() | {"packages": packages, "build": BUILD_STEPS}

    def archive(self) -> Path:
        """Return the path of the archive. Raises NotAvailableError if it is missing."""
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
        # Its META supports kernels 4.18 to 7.2; trixie's is 6.12, and stays so.
        SourceRelease("master", "trixie", "trixie", "zfs-master-be7657e3f2"),
    )
}
