"""Run inside the guest: a pool's config by libzfs and straight from the kernel, as JSON.

``python -m tests.vm.inside.stats POOL`` prints both, ``null`` for the kernel that did not answer.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from zconsole.zfs.raw import plain
from zconsole.zfs.sources.libzfs.library import LibzfsPool, kernel_stats, load_library
from zconsole.zfs.sources.libzfs.nvlist import ConfigReader, assembled


def by_libzfs(pool: str) -> Mapping[str, Any] | None:
    """As libzfs has it."""
    found = LibzfsPool(load_library(), pool).read()
    return assembled(found[0], iter(found[1])) if found and found[0] else None


def by_kernel(pool: str) -> Mapping[str, Any] | None:
    """As the kernel packed it."""
    kernel = kernel_stats(pool)
    packed = kernel.packed() if kernel else None
    if packed is None:
        return None
    form, values = ConfigReader().read(packed)
    return assembled(form, iter(values)) if form else None


if __name__ == "__main__":
    print(json.dumps([by_libzfs(sys.argv[1]), by_kernel(sys.argv[1])], default=plain))
