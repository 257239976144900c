"""The gauges through the official client library: a page to scrape, or a textfile."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from zconsole.errors import UnavailableError, ZconsoleError

if TYPE_CHECKING:
    from prometheus_client.core import GaugeMetricFamily

MISSING = (
    "export needs the prometheus_client library: pip install 'zconsole[export]', or "
    "apt install python3-prometheus-client"
)


class Page:
    """The newest families, in a registry of their own."""

    def __init__(self) -> None:
        """Raises UnavailableError without the library."""
        try:
            from prometheus_client.registry import CollectorRegistry
        except ImportError:
            raise UnavailableError(MISSING) from None
        self.families: tuple[GaugeMetricFamily, ...] = ()
        self.registry = CollectorRegistry()
        self.registry.register(self)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Every family (called in the server's thread)."""
        yield from self.families


def write(page: Page, path: Path) -> None:
    """Replace a textfile of node_exporter's at once.

    Its directory is often another user's: the file written beside it first has a name that nobody
    can guess and is new, so that no link leads root to a file elsewhere. Raises ZconsoleError when
    it cannot be replaced, UnavailableError where it may not be.
    """
    from prometheus_client import generate_latest

    draft = path.parent / f".{path.name}.{os.urandom(8).hex()}"
    try:
        with draft.open("xb") as file:
            file.write(generate_latest(page.registry))
        draft.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            draft.unlink()
        if isinstance(error, PermissionError):
            raise UnavailableError(f"{path}: permission denied") from None
        raise ZconsoleError(f"{path}: {error.strerror}") from None
