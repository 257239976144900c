"""QEMU's control socket (QMP, QEMU's docs/interop/qmp-spec)."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.vm.errors import VmError

TIMEOUT_SECONDS = 60.0


class Qmp:
    """One conversation on a control socket."""

    def __init__(self, sock: socket.socket) -> None:
        self._file = sock.makefile("rw", encoding="utf-8")
        self._events: list[dict[str, Any]] = []
        self._read()
        self.execute("qmp_capabilities")

    def execute(self, command: str, **arguments: Any) -> Any:
        """Run a command; returns its result, raises VmError with QEMU's message."""
        json.dump({"execute": command, "arguments": arguments}, self._file)
        self._file.write("\n")
        self._file.flush()
        while True:
            answer = self._read()
            if "event" in answer:
                self._events.append(answer)
            elif "error" in answer:
                raise VmError(f"QEMU refused {command}: {answer['error']['desc']}")
            else:
                return answer["return"]

    def wait_event(self, name: str, **data: Any) -> None:
        """Wait for an event with these values in its data."""
        while True:
            event = self._events.pop(0) if self._events else self._read()
            found = event.get("data", {})
            if event.get("event") == name and all(found.get(k) == v for k, v in data.items()):
                return

    def monitor(self, line: str) -> str:
        """Return the human monitor's answer to a line."""
        return str(self.execute("human-monitor-command", **{"command-line": line}))

    def _read(self) -> dict[str, Any]:
        """Return the next message; raises VmError if QEMU is gone."""
        try:
            line = self._file.readline()
        except TimeoutError as error:
            raise VmError("QEMU does not answer on its control socket") from error
        if not line:
            raise VmError("QEMU closed its control socket")
        message: dict[str, Any] = json.loads(line)
        return message


@contextmanager
def connect(path: Path) -> Iterator[Qmp]:
    """Connect to the QEMU behind a control socket; other connections wait meanwhile."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(TIMEOUT_SECONDS)
        sock.connect(str(path))
        yield Qmp(sock)
