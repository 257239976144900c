"""Run actions inside a guest as the console does, and return their output."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, field

from tests.vm.machine import TREE_IN_GUEST
from tests.vm.pools import PoolFactory


@dataclass
class Run:
    """The output of one run of tests.vm.act."""

    status: int
    events: list[dict] = field(default_factory=list)

    @property
    def plan(self) -> dict:
        return next(e for e in self.events if e["kind"] == "plan")

    @property
    def said(self) -> str:
        return "\n".join(self.plan["said"])

    @property
    def end(self) -> dict:
        return next((e for e in self.events if e["kind"] == "end"), {})

    def kinds(self) -> list[str]:
        return [e["kind"] for e in self.events]


@dataclass
class Actor:
    """Runs actions in the guest."""

    pool: PoolFactory

    def __call__(self, *words: str, **flags: object) -> Run:
        """Run ``act("replace", "d0=d4", follow=True)``, for example; disks by short name."""
        options = [f"--{name}" for name, value in flags.items() if value is True]
        options += [w for name, v in flags.items() if v is not True for w in (f"--{name}", str(v))]
        inner = [self._device(word) for word in words]
        argv = ["/opt/zc/bin/python", "-m", "tests.vm.act", *options, "tank", *inner]
        result = self.pool.machine.run(
            f"cd {TREE_IN_GUEST} && {shlex.join(argv)}", check=False, timeout=300
        )
        lines = [json.loads(x) for x in result.stdout.splitlines() if x.startswith("{")]
        assert lines, result.stderr
        return Run(result.returncode, lines)

    def _device(self, word: str) -> str:
        return "=".join(self.pool.device(part) for part in word.split("="))
