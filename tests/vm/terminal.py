"""zconsole in a guest: its command line, and the console in tmux."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from typing import Any

from tests.vm.errors import VmError
from tests.vm.machine import Machine

ZCONSOLE = (
    "env PYTHONPATH=/root/zconsole LANG=C.UTF-8 TERM=xterm-256color /opt/zc/bin/python -m zconsole"
)
SESSION = "con"


def samples(text: str) -> list[dict[str, Any]]:
    """Parse JSON lines."""
    return [json.loads(line) for line in text.splitlines()]


@dataclass(frozen=True)
class Terminal:
    """An 80×24 console in a guest's tmux, one per guest."""

    machine: Machine
    program: str = ZCONSOLE

    def open(self, *words: str) -> None:
        """Restart the console with these pools."""
        self.end()
        command = f"tmux new-session -d -s {SESSION} -x 80 -y 24"
        self.machine.run(f"{command} {shlex.quote(' '.join((self.program, *words)))}")

    def end(self) -> None:
        """End the console like a lost connection: its terminal goes away."""
        self.machine.run("tmux kill-server 2>/dev/null; true")

    def screen(self) -> str:
        """Return the current screen; empty once the console has ended."""
        return self.machine.run(f"tmux capture-pane -p -t {SESSION}", check=False).stdout

    def wait(self, pattern: str, seconds: int = 60) -> str:
        """Return the screen once it matches an extended regular expression; VmError on timeout."""
        test = f"tmux capture-pane -p -t {SESSION} | grep -Eq -- {shlex.quote(pattern)}"
        look = ["timeout", str(seconds), "sh", "-c", f"until {test}; do sleep 0.2; done"]
        if self.machine.run(look, check=False, timeout=seconds + 60).returncode != 0:
            raise VmError(f"not on the screen within {seconds} s: {pattern}\n{self.screen()}")
        return self.screen()

    def press(self, *keys: str) -> None:
        """Type keys, by tmux's names."""
        self.machine.run(["tmux", "send-keys", "-t", SESSION, *keys])

    def seconds_to_quit(self) -> float:
        """Press ``q``; returns the seconds, to a tenth, until the console's process is gone."""
        gone = f"tmux has-session -t {SESSION} 2>/dev/null || exit 0"
        loop = f"for i in $(seq 100); do {gone}; sleep 0.05; done; exit 1"
        clock = "date +%s.%N"
        line = f"{clock}; tmux send-keys -t {SESSION} q; ({loop}) && {clock}"
        began, ended = map(float, self.machine.run(line).stdout.split())
        return round(ended - began, 1)
