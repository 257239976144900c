"""Other machines' pools over ssh: a real sshd, a real connection, and its loss."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.vm.machine import Machine
from tests.vm.pools import PoolFactory

pytestmark = pytest.mark.slow

CLOSED_PORT = 9
"""The discard port, on which nothing listens."""
INTERRUPTED = 130
Sample = dict[str, Any]


@pytest.fixture
def environment(vm: Machine, tmp_path: Path) -> dict[str, str]:
    """Environment in which ``ssh`` knows the guest by two names, and a third, dead host."""
    port, key = vm.ssh.port, vm.ssh.key
    hosts = {"one": port, "two": port, "away": CLOSED_PORT}
    blocks = [f"Host {name}\n  Port {number}" for name, number in hosts.items()]
    everywhere = f"""Host *
  HostName 127.0.0.1
  User root
  IdentityFile {key}
  IdentitiesOnly yes
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  KexAlgorithms curve25519-sha256
"""
    config = tmp_path / "config"
    config.write_text("\n".join((*blocks, everywhere)))
    wrapper = tmp_path / "bin/ssh"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {config} "$@"\n')
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
    path = f"{wrapper.parent}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "ZCONSOLE_STATE": str(tmp_path / "state")}


Zconsole = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def zconsole(environment: dict[str, str]) -> Iterator[Zconsole]:
    """Starts commands on this machine, and ends those still running."""
    begun: list[subprocess.Popen[str]] = []

    def begin(*words: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            (sys.executable, "-m", "zconsole", *words),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        begun.append(process)
        return process

    yield begin
    for process in begun:
        process.terminate()
        process.communicate(timeout=20)


def samples(process: subprocess.Popen[str]) -> list[Sample]:
    """Return the JSON samples of a command that ends by itself."""
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return [json.loads(line) for line in out.splitlines()]


def until(process: subprocess.Popen[str], wanted: Callable[[Sample], bool]) -> Sample:
    """Return the first sample that is wanted; fails if the command ends first."""
    assert process.stdout is not None
    for line in process.stdout:
        sample: Sample = json.loads(line)
        if wanted(sample):
            return sample
    pytest.fail("the command ended")


def leaves(node: Sample) -> Iterator[Sample]:
    """Yield the devices of a topology."""
    if not node["children"]:
        yield node
    for child in node["children"]:
        yield from leaves(child)


def test_a_pool_is_seen_over_ssh_as_it_is_there(
    vm: Machine, pool: PoolFactory, zconsole: Zconsole
) -> None:
    pool.create("raidz1 d0 d1 d2")
    vm.throttle(0, bps=4 << 20)
    pool.fill(60)
    pool.zpool("scrub", "tank")
    (found,) = samples(zconsole("status", "--host", "one", "--json"))
    assert found["pool"] == "tank"
    assert found["problem"] is None
    guid = vm.run("zpool get -H -o value guid tank").stdout.strip()
    assert found["guid"] == (guid if vm.image.zfs_version >= (2, 3) else None)  # text has none
    assert found["scan"]["function"] == "scrub"
    assert found["topology"]["children"][0]["name"] == "raidz1-0"
    assert [leaf["state"] for leaf in leaves(found["topology"])] == ["ONLINE"] * 3
    assert found["balance"]["vdevs"][0]["alloc_bytes"] > 60 << 20


def test_several_hosts_stand_side_by_side_and_one_that_is_away_is_a_stale_pool(
    pool: PoolFactory, zconsole: Zconsole
) -> None:
    pool.create("mirror d0 d1")
    found = samples(
        zconsole("watch", "--host", "one,away,two", "--json", "--interval", "2", "--count", "3")
    )
    last = {sample["pool"]: sample for sample in found[-3:]}
    assert sorted(last) == ["away", "one:tank", "two:tank"]
    assert "refused" in last["away"]["problem"]
    for name in ("one:tank", "two:tank"):
        assert last[name]["problem"] is None
        assert last[name]["state"] == "ONLINE"
    assert last["one:tank"]["guid"] == last["two:tank"]["guid"]


def test_a_lost_link_is_a_stale_pool_that_comes_back_by_itself(
    vm: Machine, pool: PoolFactory, zconsole: Zconsole
) -> None:
    pool.create("mirror d0 d1")
    watch = zconsole("watch", "--host", "one", "--json", "--interval", "1")
    before = until(watch, lambda sample: sample["problem"] is None)
    vm.set_link(up=False)
    try:
        stale = until(watch, lambda sample: bool(sample["problem"]))
        older = until(watch, lambda sample: sample["stale_seconds"] > stale["stale_seconds"] + 5)
        assert older["topology"] == before["topology"]
        assert older["state"] == "ONLINE"
    finally:
        vm.set_link(up=True)
    back = until(watch, lambda sample: sample["problem"] is None)
    assert back["stale_seconds"] < 5
    assert watch.poll() is None


def test_nothing_of_it_stays_behind_on_either_machine(
    vm: Machine, pool: PoolFactory, zconsole: Zconsole
) -> None:
    before = set(Path("/tmp").glob("zconsole-*"))
    pool.create("mirror d0 d1")
    samples(zconsole("watch", "--host", "one", "--json", "--count", "2"))
    ended = zconsole("watch", "--host", "one", "--json")
    until(ended, lambda sample: sample["problem"] is None)
    ended.terminate()
    assert ended.wait(timeout=30) == INTERRUPTED
    shells = "ps -o args= -C zpool,grep,date | grep -v 'grep -v' || true"
    assert vm.run(shells).stdout.strip() in ("", "grep -v grep -v")
    assert set(Path("/tmp").glob("zconsole-*")) <= before


def test_metrics_of_another_machine(pool: PoolFactory, zconsole: Zconsole, tmp_path: Path) -> None:
    pytest.importorskip("prometheus_client")
    pool.create("mirror d0 d1")
    page = tmp_path / "zconsole.prom"
    done = zconsole("export", "--host", "one,away", "--textfile", str(page), "--count", "4")
    assert done.wait(timeout=120) == 0
    text = page.read_text()
    assert 'zconsole_pool_up{pool="one:tank"} 1.0' in text
    assert 'zconsole_pool_up{pool="away"} 0.0' in text
    assert 'zconsole_redundancy_left{pool="one:tank",vdev="mirror-0"} 1.0' in text
