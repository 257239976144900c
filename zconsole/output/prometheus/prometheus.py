"""The gauges through the official client library: a page to scrape, or a textfile."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from zconsole.errors import UnavailableError, UsageError, ZconsoleError
from zconsole.output.prometheus.metrics import Family
from zconsole.units import parse_whole

if TYPE_CHECKING:
    from prometheus_client.core import GaugeMetricFamily
    from prometheus_client.registry import CollectorRegistry

LOOPBACK = "127.0.0.1"
MISSING = (
    "export needs the prometheus_client library: pip install 'zconsole[export]', or "
    "apt install python3-prometheus-client"
)


class Page:
    """The newest families, as the library collects them."""

    def __init__(self) -> None:
        self.families: tuple[Family, ...] = ()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Every family as the library's own (called in the server's thread)."""
        from prometheus_client.core import GaugeMetricFamily

        for family in self.families:
            metric = GaugeMetricFamily(family.name, family.help, labels=family.labels)
            for labels, value in family.samples:
                metric.add_metric(labels, value)
            yield metric


def registry_of(page: Page) -> CollectorRegistry:
    """A registry with this page alone. Raises UnavailableError without the library."""
    try:
        from prometheus_client.registry import CollectorRegistry
    except ImportError:
        raise UnavailableError(MISSING) from None
    registry = CollectorRegistry()
    registry.register(page)
    return registry


def address_of(word: str) -> tuple[str, int]:
    """``9617``, ``0.0.0.0:9617`` or ``[::1]:9617``; loopback where no address is given.

    Raises UsageError for anything else.
    """
    host, colon, digits = word.rpartition(":")
    host, port = host.strip("[]") if colon else LOOPBACK, parse_whole(digits) or 0
    if not 0 < port < 65536 or not host:
        raise UsageError(f"--listen {word!r} is not [ADDR:]PORT")
    return host, port


def serve(
    registry: CollectorRegistry,
    address: tuple[str, int],
    deadline: float | None = None,
    most: int | None = None,
) -> Callable[[], None]:
    """Serve the page at /metrics in a thread; returns what stops it.

    A connection ends after ``deadline`` seconds; of more than ``most`` the oldest ends. Raises
    ZconsoleError when the address cannot be had.
    """
    from prometheus_client import make_wsgi_app

    from zconsole.output.prometheus import server  # only here: a textfile needs none

    host, port = address
    try:
        return server.start(
            make_wsgi_app(registry),
            address,
            server.DEADLINE if deadline is None else deadline,
            server.MOST if most is None else most,
        )
    except OSError as error:
        raise ZconsoleError(f"--listen {host}:{port}: {error.strerror}") from None
    except UnicodeError:  # what getaddrinfo raises for a name that no host can have
        raise ZconsoleError(f"--listen {host}:{port}: not the name of a host") from None


def write(registry: CollectorRegistry, path: Path) -> None:
    """Replace a textfile of node_exporter's at once.

    Its directory is often another user's: the file written beside it first has a name that nobody
    can guess and is new, so that no link leads root to a file elsewhere. Raises ZconsoleError when
    it cannot be replaced, UnavailableError where it may not be.
    """
    from prometheus_client import generate_latest

    draft = path.parent / f".{path.name}.{os.urandom(8).hex()}"
    try:
        with draft.open("xb") as file:
            file.write(generate_latest(registry))
        draft.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            draft.unlink()
        if isinstance(error, PermissionError):
            raise UnavailableError(f"{path}: permission denied") from None
        raise ZconsoleError(f"{path}: {error.strerror}") from None
