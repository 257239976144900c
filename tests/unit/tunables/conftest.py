"""A fake of the kernel's parameters, made of files."""

from __future__ import annotations

from pathlib import Path

import pytest

from zconsole.system.audit import MemoryLog
from zconsole.tunables.control import Control
from zconsole.tunables.parameters import Parameters
from zconsole.tunables.store import TunableStore

LIVE = {
    "zfs_resilver_min_time_ms": 3000,
    "zfs_scrub_min_time_ms": 1000,
    "zfs_vdev_async_write_min_active": 2,
    "zfs_vdev_async_write_max_active": 10,
    "zfs_vdev_scrub_min_active": 1,
    "zfs_vdev_scrub_max_active": 3,
    "zfs_scan_vdev_limit": 16 << 20,
    "zfs_scan_suspend_progress": 0,
    "zfs_no_scrub_io": 0,
}


class Kernel:
    """Files in place of the module's parameters; a reload or reboot creates them anew."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.boot_id = root / "boot_id"
        self.state = root / "state"
        self.state.mkdir()
        self.log = MemoryLog()
        self.boot("boot-1")

    def boot(self, boot_id: str, module: str = "zfs") -> None:
        """Boot, or load the module: every parameter has its default again."""
        self.boot_id.write_text(boot_id + "\n")
        self.module = self.root / boot_id / module
        (self.module / "parameters").mkdir(parents=True)
        (self.module / "version").write_text("2.3.9-1\n")
        (self.module / "uevent").touch(0o200)
        for name, value in LIVE.items():
            self.write(name, value)

    def write(self, name: str, value: int) -> None:
        (self.module / "parameters" / name).write_text(f"{value}\n")

    def read(self, name: str) -> int:
        return int((self.module / "parameters" / name).read_text())

    @property
    def parameters(self) -> Parameters:
        return Parameters(self.module, self.boot_id)

    def console(self, owner: str | None = None) -> Control:
        """Return another console on the same machine."""
        return Control(self.parameters, TunableStore(self.state), self.log, owner)


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    return Kernel(tmp_path)
