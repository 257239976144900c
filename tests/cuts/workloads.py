"""Workloads of the experiments: trees with all kinds of files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.cuts.disk import PAGE, Disk, Tree
from tests.cuts.machine import Machine, machine_of
from tests.cuts.model_sys import ACL, CAPABILITY, DEFAULT_ACL, ModelSys, NoExchange
from tests.cuts.scripts import Step
from tests.cuts.timeline import WORST

OLDEST = 1_700_000_000_000_000_000
Build = Callable[[Tree], None]


@dataclass(frozen=True, slots=True)
class Workload:
    """A tree that is moved in batches of ``batch`` files."""

    name: str
    build: Build
    batch: int = 4000
    system: type[ModelSys] = ModelSys
    modes: int = WORST
    options: dict[str, Any] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    """Steps of another process, instead of one random action."""
    alone: bool = False
    """Whether nobody else may work in it: without exchange, their changes may be lost."""

    def machine(self) -> Machine:
        """A machine with this tree and a new job."""
        tree = Tree(Disk.empty(OLDEST), OLDEST)
        self.build(tree)
        machine = machine_of(tree.disk, self.batch, **self.options)
        machine.system = self.system
        return machine


def _one(tree: Tree) -> None:
    tree.file(b"file", b"content of the only file")


def _small(tree: Tree) -> None:
    tree.file(b"small", b"content of a small file")
    tree.file(b"empty")
    tree.file(b"page", b"p" * PAGE, mode=0o600, uid=1000, gid=1000)


def _holes(tree: Tree) -> None:
    data = b"a" * PAGE + bytes(2 * PAGE) + b"d" * 100
    tree.file(b"holes", data, holes=(1, 2))
    tree.file(b"only-a-hole", bytes(3 * PAGE), holes=(0, 1, 2))
    tree.file(b"zeros-written", bytes(2 * PAGE))


def _large(tree: Tree) -> None:
    tree.file(b"large", bytes(range(256)) * 16 * 40 + b"end")


def _two_links(tree: Tree) -> None:
    tree.file(b"linked", b"two names")
    tree.link(b"linked", b"linked-too")
    tree.file(b"alone", b"one name")


def _links_apart(tree: Tree) -> None:
    tree.directory(b"below")
    tree.file(b"linked", b"three names", mode=0o640)
    tree.link(b"linked", b"below/linked")
    tree.link(b"linked", b"again")


def _attributes(tree: Tree) -> None:
    tree.file(b"suid", b"#!/bin/sh\n", mode=0o4755, uid=12, gid=34)
    tree.file(b"capable", b"\x7fELF", mode=0o755, xattrs={CAPABILITY: b"\1\0\0\2" + bytes(16)})
    tree.file(b"listed", b"acl", xattrs={ACL: b"\2\0\0\0" + bytes(32), "user.colour": b"\0red"})
    tree.file(b"flagged", b"nodump", flags=0x40, project=7)


def _odd_names(tree: Tree) -> None:
    tree.file(b"line\nbreak", b"1")
    tree.file(b"n" * 255, b"2")
    tree.file(b"not-utf8-\xff", b"3")
    tree.file(b".zc-0123456789abcdef-1", b"named like a temporary of ours")


def _batches(tree: Tree) -> None:
    tree.directory(b"sub")
    for number in range(6):
        where = b"sub/" if number % 2 else b""
        tree.file(where + b"file%d" % number, b"%d" % number * (number * 1000 + 1))


def _inherited(tree: Tree) -> None:
    tree.directory(b"listed")
    listed = tree.disk.find(b"listed") or 0
    tree.file(b"listed/plain", b"older than the list of its directory")
    tree.disk.inodes[listed].xattrs[DEFAULT_ACL] = b"\2\0\0\0" + bytes(16)
    tree.file(b"listed/younger", b"with it", xattrs={ACL: b"\2\0\0\0" + bytes(16)})


WORKLOADS = (
    Workload("one file", _one),
    Workload("small files", _small),
    Workload("holes", _holes),
    Workload("a large file", _large),
    Workload("two links", _two_links),
    Workload("links in two directories", _links_apart),
    Workload("attributes", _attributes),
    Workload("odd names", _odd_names),
    Workload("several batches", _batches, batch=2),
    Workload("inherited lists", _inherited),
    Workload(
        "no exchange", _two_links, system=NoExchange, options={"accept_races": True}, alone=True
    ),
)  # fmt: skip
