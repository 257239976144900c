"""Clients that keep a connection to the metrics open, over loopback."""

from __future__ import annotations

import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException

import pytest
from prometheus_client.core import GaugeMetricFamily

from tests.unit.waiting import soon
from zconsole.output.prometheus import server
from zconsole.output.prometheus.metrics import Page
from zconsole.output.prometheus.server import serve

LOOPBACK = "127.0.0.1"
DEADLINE = 0.8
MOST = 4
SOON = 30.0
"""Timeout of the test's own waits, seconds; normally none takes that long."""
TRIES = 5


@contextmanager
def serving(deadline: float) -> Iterator[int]:
    """Serve a page of several megabytes, more than the kernel's send buffer takes."""
    page = Page()
    page.families = (GaugeMetricFamily("zconsole_big", "much", labels=("pool",)),)
    page.families[0].add_metric(("x" * 12_000_000,), 1.0)
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        found: int = probe.getsockname()[1]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(server, "DEADLINE", deadline)
        patched.setattr(server, "MOST", MOST)
        stop = serve(page, (LOOPBACK, found))
        yield found
        stop()


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """Port of a page server that soon cuts off idle clients."""
    with serving(DEADLINE) as found:
        yield found


def connected(port: int) -> socket.socket:
    client = socket.create_connection((LOOPBACK, port), SOON)
    client.settimeout(SOON)
    return client


def is_ended(client: socket.socket) -> bool:
    """Return whether the server ends the connection in time; discards any answer."""
    try:
        while client.recv(65536):
            pass
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False
    return True


def served(port: int) -> int:
    """Return the bytes of the page, as in a scrape; retried if a slow machine was cut off."""
    for attempt in range(TRIES):
        try:
            with urllib.request.urlopen(f"http://{LOOPBACK}:{port}/metrics", timeout=SOON) as page:
                return len(page.read())
        except (OSError, HTTPException):
            if attempt == TRIES - 1:
                raise
    raise AssertionError


@pytest.mark.slow
def test_a_client_that_says_nothing_is_cut_off(port: int) -> None:
    began = time.monotonic()
    with connected(port) as client:
        assert is_ended(client)
        assert time.monotonic() - began >= DEADLINE, "not sooner"


@pytest.mark.slow
def test_a_client_that_sends_a_byte_now_and_then_is_cut_off(port: int) -> None:
    with connected(port) as client:
        began = time.monotonic()
        with pytest.raises(OSError, match=r"reset|pipe"):
            dribble(client)
        assert time.monotonic() - began < SOON


@pytest.mark.slow
def test_a_client_that_never_reads_is_cut_off(port: int) -> None:
    with connected(port) as client:
        client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        assert soon(lambda: threads() > 0)
        assert soon(lambda: threads() == 0)


def test_slow_clients_hold_nobody_up_and_pile_nothing_up(port: int) -> None:
    clients = [connected(port) for _ in range(5 * MOST)]
    try:
        assert served(port) > 10_000_000
        assert threads() <= MOST + 1
    finally:
        for client in clients:
            client.close()


def test_the_oldest_gives_way() -> None:
    with serving(2 * SOON) as port, connected(port) as first:
        others = [connected(port) for _ in range(MOST)]
        assert is_ended(first)  # within half of the time that one is kept
        for client in others:
            client.close()


@pytest.mark.slow
def test_clients_that_leave_say_nothing_on_stderr(
    port: int, capfd: pytest.CaptureFixture[str]
) -> None:
    for said in (b"", b"GET /metrics HTTP/1.0\r\n\r\n", b"\x00\xff\r\n\r\n"):
        with connected(port) as client:
            client.sendall(said)
    assert served(port) > 0
    assert soon(lambda: threads() == 0)
    assert capfd.readouterr().err == ""


def dribble(client: socket.socket) -> None:
    for byte in b"GET /" + b"x" * 1000:
        client.send(bytes([byte]))
        time.sleep(DEADLINE / 8)


def threads() -> int:
    """Return the number of threads that serve a connection."""
    return sum("process_request_thread" in thread.name for thread in threading.enumerate())
