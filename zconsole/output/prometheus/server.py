"""The HTTP server of the metrics: no client can keep a connection, or block others."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from zconsole.errors import UsageError, ZconsoleError
from zconsole.output.prometheus.metrics import Page
from zconsole.units import parse_whole

LOOPBACK = "127.0.0.1"
DEADLINE = 10.0
"""Seconds that a connection may last.

A scrape takes milliseconds; Prometheus itself waits ten seconds (scrape_timeout).
"""
MOST = 16
"""Most connections at a time, each with a thread; a new one replaces the oldest."""


class _Handler(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
        """Log nothing: stderr is for the operator."""


class Server(ThreadingMixIn, WSGIServer):
    """An HTTP server that serves each connection in a thread, until its deadline."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, address: tuple[str, int]) -> None:
        """Raises OSError for an unavailable address, UnicodeError for an invalid host name."""
        found = socket.getaddrinfo(*address, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        self.address_family = found[0][0]
        self._open: dict[socket.socket, float] = {}
        """When each connection began, oldest first."""
        self._lock = threading.Lock()
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start the thread of a new connection, after cutting off the oldest if there are MOST."""
        with self._lock:
            for old in list(self._open)[: len(self._open) + 1 - MOST]:
                self._cut(old)
            self._open[request] = time.monotonic()
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Forget a connection that has ended, and close it."""
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Cut off connections after DEADLINE, even busy ones; the server's loop calls this.

        Otherwise a client that sends a byte now and then could stay forever.
        """
        began_by = time.monotonic() - DEADLINE
        with self._lock:
            for request, began in list(self._open.items()):
                if began <= began_by:
                    self._cut(request)

    def server_close(self) -> None:
        """Release the address and every connection."""
        super().server_close()
        with self._lock:
            for request in list(self._open):
                self._cut(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors of a client that went away, or was cut off."""

    def _cut(self, request: socket.socket) -> None:
        """Cut off a connection; its thread, which waits to read or write, ends at once."""
        self._open.pop(request, None)
        with contextlib.suppress(OSError):  # it may be closed already
            request.shutdown(socket.SHUT_RDWR)


def address_of(word: str) -> tuple[str, int]:
    """Parse ``9617``, ``0.0.0.0:9617`` or ``[::1]:9617``; loopback if no address is given.

    Raises UsageError for anything else.
    """
    host, colon, digits = word.rpartition(":")
    host, port = host.strip("[]") if colon else LOOPBACK, parse_whole(digits) or 0
    if not 0 < port < 65536 or not host:
        raise UsageError(f"--listen {word!r} is not [ADDR:]PORT")
    return host, port


def serve(page: Page, address: tuple[str, int]) -> Callable[[], None]:
    """Serve the page at /metrics in a thread; return a function that stops the server.

    A connection ends after DEADLINE seconds; of more than MOST the oldest ends. Raises
    ZconsoleError if the address is unavailable.
    """
    from prometheus_client import make_wsgi_app

    host, port = address
    try:
        server = Server(address)
    except OSError as error:
        raise ZconsoleError(f"--listen {host}:{port}: {error.strerror}") from None
    except UnicodeError:  # from getaddrinfo, for a name that is not valid as a host name
        raise ZconsoleError(f"--listen {host}:{port}: not a host name") from None
    server.set_app(make_wsgi_app(page.registry))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()

    def _stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join(5.0)

    return _stop
