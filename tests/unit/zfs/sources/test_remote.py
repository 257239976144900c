"""Another machine's pools, through a fake ``ssh`` that runs its command line here, like sshd."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import shlex
import stat
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from tests.table import rows
from tests.unit.zfs.sources.source_fakes import TEXT, gone
from zconsole.cli.main import main
from zconsole.errors import ExitCode, UnavailableError, UsageError
from zconsole.system.host import Clocks
from zconsole.system.process import Completed, DeadlineError
from zconsole.zfs.sources.remote import (
    DEADLINE,
    LIST_EVERY,
    PATIENCE,
    RemoteSource,
    SshRunner,
    hosts_of,
    next_patience,
    remote_words,
)

pytestmark = pytest.mark.slow

REFUSED = "ssh: connect to host b port 22: Connection refused"
CAPTURES = Path(__file__).parents[3] / "fixtures" / "captures"

END_OF_WORD, END_OF_CALL = "\037", "\036"
SSH = r"""#!/bin/sh
printf '%s\037' "$@" $(printf '\036') >>"LOG"
while [ "$1" != -- ]; do
    case $1 in
        -O) [ -e "LOG.slow" ] && exec sleep 1000; exit 0 ;;
        ControlPath=none) ;;
        ControlPath=*) shared=${1#*=}; [ -d "${shared%/*}" ] || exit 1 ;;
    esac
    shift
done
if [ -e "LOG.$2.down" ]; then
    echo "ssh: connect to host $2 port 22: Connection refused" >&2
    exit 255
fi
exec sh -c "${3%%PATH=*}PATH=TOOLS:${3#*PATH=}"
"""
"""Written in sh, because starting Python takes several times as long as all the rest."""

ZPOOL = """#!/bin/sh
here={capture}
case "$*" in
    "list -H -o name") echo tank ;;
    "version") printf 'zfs-{version}-1\\nzfs-kmod-{version}-1\\n' ;;
    "status -jP"*) cat $here/status.json ;;
    "status -j "*) cat $here/status-names.json ;;
    "list -vjP"*) cat $here/list.json ;;
    "status -P "*) cat $here/status-P.txt ;;
    "status "*) cat $here/status.txt ;;
    "list -v -p"*) cat $here/list-vHp.txt ;;
    "iostat"*|"wait"*) sleep 0 ;;
    *) echo "unexpected: $*" >&2; exit 1 ;;
esac
"""


PEAK = """
import sys
from tests.unit.zfs.sources.source_fakes import TEXT, gone
from zconsole.cli.main import main
code = main()
sys.stdout.flush()
print(open("/proc/self/status").read().partition("VmHWM:")[2].split()[0], file=sys.stderr)
sys.exit(code)
"""
"""Runs a command, then prints its peak memory in KiB."""


class Remote:
    """The fake host: its calls, and a switch for the link."""

    def __init__(self, log: Path) -> None:
        self.log = log

    @property
    def calls(self) -> list[list[str]]:
        kept = self.log.read_text().split(f"{END_OF_CALL}{END_OF_WORD}")[:-1]
        return [call.split(END_OF_WORD)[:-1] for call in kept]

    def sockets(self) -> Path:
        """Return the directory of the one connection that all calls shared."""
        words = {word for call in self.calls for word in call if word.startswith("ControlPath=")}
        (path,) = words
        return Path(path.removeprefix("ControlPath=")).parent

    async def asked(self, words: str) -> None:
        """Wait until a command was requested: a sample does not wait for background commands."""
        async with asyncio.timeout(30):
            while not any(words in call[-1] for call in self.calls):
                await asyncio.sleep(0.01)

    def cut(self, host: str = "root@box") -> None:
        Path(f"{self.log}.{host}.down").touch()

    def delay_exit(self) -> None:
        Path(f"{self.log}.slow").touch()

    def mend(self, host: str = "root@box") -> None:
        Path(f"{self.log}.{host}.down").unlink()


@pytest.fixture
def host(tmp_path, monkeypatch):
    def make(version="2.3.9", capture="checkpoint"):
        tools = tmp_path / "tools"
        tools.mkdir(exist_ok=True)
        log = tmp_path / "log"
        log.touch()
        where = CAPTURES / version / capture
        script(tmp_path / "bin/ssh", SSH.replace("LOG", str(log)).replace("TOOLS", str(tools)))
        script(tools / "zpool", ZPOOL.format(capture=shlex.quote(str(where)), version=version))
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
        monkeypatch.setenv("ZCONSOLE_STATE", str(tmp_path / "state"))
        # On a busy machine even this one is slow to start.
        monkeypatch.setattr("zconsole.zfs.sources.remote.PATIENCE", DEADLINE)
        return Remote(log)

    return make


def script(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@rows("word", ["x y", "$(id)", "a'b", "`id`;id", "*", "~", "a\nb", "é", ""])
def test_every_word_reaches_the_other_side_as_it_is(word):
    shown = remote_words((sys.executable, "-c", "import sys; print(sys.argv[1:])", word))
    done = subprocess.run(["sh", "-c", shown], capture_output=True, text=True, check=True)
    assert done.stdout == f"{[word]}\n"


def test_hosts_are_told_apart_and_options_are_none():
    assert hosts_of("root@a,b,root@a") == ("root@a", "b")
    assert hosts_of("ssh://root@a:2222") == ("ssh://root@a:2222",)
    for bad in ("", "-oProxyCommand=id", "a,,b", "a b", "$(id)", "a;id"):
        with pytest.raises(UsageError):
            hosts_of(bad)


def test_status_of_another_machine_needs_its_zpool_and_one_connection_that_lends_nothing(
    host, capsys
):
    remote = host()
    assert main(["status", "--host", "root@box", "--json"]) == ExitCode.OK
    found = json.loads(capsys.readouterr().out)
    assert (found["pool"], found["source"], found["problem"]) == ("tank", "json", None)
    assert remote.calls[0][-3:-1] == ["--", "root@box"]
    *commands, last = remote.calls
    given = {"BatchMode=yes", "ControlMaster=auto", "ServerAliveInterval=5"} | {
        *("ForwardAgent=no", "ForwardX11=no", "ClearAllForwardings=yes", "PermitLocalCommand=no")
    }
    assert all(given <= set(call) for call in commands)
    assert "-O" in last
    assert not remote.sockets().exists()


async def test_a_cleaner_may_remove_the_directory_of_the_connection(host, tmp_path):
    """It may clean up old files in /tmp: the next connection is made in a new directory."""
    remote = host()
    sockets = tmp_path / "sockets"
    source = RemoteSource("root@box", (), 1.0, sockets)
    for _ in range(2):
        (raw,) = await source.sample()
        assert raw.get("problem") is None, raw
        assert stat.S_IMODE(sockets.stat().st_mode) == 0o700
        sockets.rmdir()
    sockets.mkdir()
    sockets.chmod(0o777)  # whoever made this one could plant a connection there
    (raw,) = await source.sample()
    assert raw.get("problem") is None, raw
    assert "ControlPath=none" in remote.calls[-1]
    await source.aclose()


def test_before_json_the_text_is_read(host, capsys):
    host("2.1.11", "replace-offline-old")
    assert main(["status", "--host", "root@box", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["source"], found["exact"]) == ("text", False)
    assert found["scan"]["function"] == "resilver"


def pool_of(inside: str) -> str:
    return '{"pools": {"tank": {"name": "tank", "state": "ONLINE", ' + inside + "}}}"


NONSENSE = {
    "nested lists": "[" * 100_000,
    "nested objects": '{"a":' * 100_000,
    "nested vdevs": pool_of('"vdevs": ' + '{"a": {"vdevs": ' * 450 + "{}" + "}}" * 450),
    "a list of vdevs": pool_of('"vdevs": [1]'),
    "a vdev that is a number": pool_of('"vdevs": {"tank": {"vdevs": {"a": 5}}}'),
    "a pool that is a number": pool_of('"error_count": "0"')[:-2] + ', "other": 3}}',
    "errors without end": pool_of('"error_count": 1e400'),
}


@rows("printed", NONSENSE.values())
def test_nonsense_of_another_machine_is_a_problem_of_its_pool(host, capsys, tmp_path, printed):
    host()
    (tmp_path / "printed").write_text(printed)
    answers = f"#!/bin/sh\n[ $1 = list ] && echo tank || cat {tmp_path / 'printed'}\n"
    script(tmp_path / "tools/zpool", answers)
    assert main(["status", "--host", "root@box", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["pool"], found["problem"].partition(" ")[0]) == ("tank", "zpool")


def test_millions_of_values_of_another_machine_are_not_kept(host, tmp_path):
    host()
    lists = "print('[' + '[],' * 3_000_000 + '0]')"
    answers = f'#!/bin/sh\n[ $1 = list ] && echo tank || {sys.executable} -c "{lists}"\n'
    script(tmp_path / "tools/zpool", answers)
    argv = [sys.executable, "-c", PEAK, "status", "--host", "root@box"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert "too many values" in done.stdout
    assert int(done.stderr.splitlines()[-1]) < 200 * 1024


def test_a_host_of_more_pools_than_there_are_is_a_problem_of_the_host(host, capsys, tmp_path):
    host()
    script(tmp_path / "tools/zpool", "#!/bin/sh\nseq 1 200000\n")
    assert main(["status", "--host", "root@box"]) == 4
    assert "names more than 1000 pools" in capsys.readouterr().err


BESIDE = ("*** Welcome ***\\ntank", "tank\\0x\\n", "\\377\\376 \\033[2J", "t" * 256)


@rows("printed", BESIDE)
def test_what_a_host_prints_beside_its_pools_is_a_problem_of_the_host(
    host, capsys, tmp_path, printed
):
    host()
    script(tmp_path / "tools/zpool", f"#!/bin/sh\nprintf '{printed}'\n")
    assert main(["status", "--host", "root@box"]) == ExitCode.UNAVAILABLE
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("zconsole: root@box: zpool list printed what is not a pool: ")
    assert told.err.isascii()
    assert "\0" not in told.err


async def test_names_that_change_all_the_time_are_not_kept_without_end(host, tmp_path, monkeypatch):
    host()
    monkeypatch.setattr("zconsole.zfs.sources.remote.MOST_POOLS", 10)
    monkeypatch.setattr("zconsole.zfs.sources.remote.LIST_EVERY", 0.0)
    names = "for i in 1 2 3 4; do echo tank$$.$i; done"
    script(tmp_path / "tools/zpool", f"#!/bin/sh\n[ $1 = list ] && {{ {names}; }}\n")
    source = RemoteSource("root@box", (), 1.0, tmp_path)
    try:
        for _ in range(3):
            raws = await source.sample()
        assert len(raws) <= 10
        assert "names more than" in source.failure
    finally:
        await source.aclose()


def test_a_host_that_floods_is_said_to(host, capsys, tmp_path):
    host()
    script(tmp_path / "tools/zpool", "#!/bin/sh\nexec yes\n")
    assert main(["status", "--host", "root@box"]) == 4
    assert "wrote more than 64 MiB" in capsys.readouterr().err


def test_several_hosts_carry_their_names_and_one_that_cannot_be_reached_is_no_pool(host, capsys):
    remote = host()
    assert main(["status", "--host", "a,b", "--json"]) == ExitCode.OK
    told = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["pool"] for line in told] == ["a:tank", "b:tank"]
    remote.cut("b")
    assert main(["status", "--host", "a,b", "--json"]) == ExitCode.UNAVAILABLE
    told = capsys.readouterr()
    assert [json.loads(line)["pool"] for line in told.out.splitlines()] == ["a:tank"]
    assert told.err == f"zconsole: b: zpool list: {REFUSED}\n"


@rows("words", [["status"], ["watch", "--count", "1"]])
def test_a_pool_that_no_host_has_is_not_found(host, capsys, words):
    host()
    assert main([*words, "nosuch", "--host", "root@box"]) == ExitCode.NOT_FOUND
    assert capsys.readouterr() == ("", "zconsole: root@box: no such pool: nosuch\n")
    assert main([*words, "nosuch", "--host", "a,b"]) == ExitCode.NOT_FOUND
    assert capsys.readouterr().err == "zconsole: a, b: no such pool: nosuch\n"


@rows("words", [["status"], ["watch", "--count", "1"]])
def test_a_host_without_zpool_or_out_of_reach_is_unavailable(host, capsys, tmp_path, words):
    remote = host()
    (tmp_path / "tools" / "zpool").write_text("#!/bin/sh\necho zpool: not found >&2; exit 127\n")
    assert main([*words, "--host", "root@box"]) == ExitCode.UNAVAILABLE
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1)
    assert "root@box: zpool list: zpool: not found" in told.err
    remote.cut()
    assert main([*words, "--host", "root@box"]) == ExitCode.UNAVAILABLE
    assert "Connection refused" in capsys.readouterr().err
    remote.mend()


def test_a_host_without_pools_has_nothing_to_report(host, capsys, tmp_path):
    host()
    (tmp_path / "tools" / "zpool").write_text("#!/bin/sh\n")
    assert main(["status", "--host", "root@box"]) == ExitCode.OK
    assert capsys.readouterr() == ("", "zconsole: no pools are imported\n")


def test_with_exit_status_the_pools_shown_come_before_the_host_that_is_away(host):
    remote = host(capture="unavail-leaf")
    remote.cut("b")
    assert main(["status", "--host", "a,b", "--exit-status"]) == ExitCode.DEGRADED
    assert main(["status", "--host", "b", "--exit-status"]) == ExitCode.UNAVAILABLE


def test_a_host_never_seen_has_no_age(host, capsys):
    remote = host()
    remote.cut("b")
    assert main(["watch", "--host", "a,b", "--json", "--count", "1"]) == ExitCode.OK
    seen = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(each["pool"], each["stale_seconds"]) for each in seen] == [("a:tank", 0), ("b", None)]
    assert main(["watch", "--host", "a,b", "--count", "1"]) == ExitCode.OK
    assert " old)" not in capsys.readouterr().out


async def test_a_lost_link_is_a_stale_pool_and_it_comes_back(host, tmp_path):
    remote = host()
    source = RemoteSource("root@box", (), 1.0, tmp_path)
    try:
        (first,) = await source.sample()
        assert "status" in first
        remote.cut()
        (lost,) = await source.sample()
        assert lost["pool"] == "tank"
        assert "Connection refused" in lost["problem"]
        remote.mend()
        (again,) = await source.sample()
        assert "status" in again
    finally:
        await source.aclose()


async def test_its_own_zpool_is_asked_over_the_same_link(host, tmp_path):
    remote = host()
    source = RemoteSource("root@box", (), 1.0, tmp_path)
    try:
        with pytest.raises(UnavailableError, match="root@box: no answer yet"):
            await source.zpool_outputs("tank")
        await source.sample()
        status, iostat, events = await source.zpool_outputs("tank")
        printed = (CAPTURES / "2.3.9/checkpoint/status.txt").read_text().strip("\n")
        assert status.lines == tuple(printed.expandtabs().split("\n"))
        assert iostat.command == "zpool iostat -v tank"
        assert events.lines == ("unexpected: events tank",)
        assert remote.sockets() == tmp_path
        remote.cut()
        await source.sample()
        with pytest.raises(UnavailableError, match=r"root@box: ssh: .*Connection refused"):
            await source.zpool_outputs("tank")
    finally:
        await source.aclose()


async def test_a_lost_pool_of_another_machine_carries_its_kernels_word(host, tmp_path):
    host()
    source = RemoteSource("root@box", (), 1.0, tmp_path)
    try:
        for word in ("ONLINE", "UNAVAIL", "FAULTED", "SUSPENDED"):
            kstat = "/proc/spl/kstat/zfs/tank/state"
            script(tmp_path / "tools/grep", f"#!/bin/sh\necho {kstat}:{word}\n")
            (raw,) = await source.sample()
            assert raw["kstat"] == word
            assert ("problem" in raw) == (word != "ONLINE")
    finally:
        await source.aclose()


class Stuck:
    """Never finishes a command, except when told to."""

    answers: tuple[str, ...] = ()

    async def run(self, argv, deadline):
        if any(argv[-1].endswith(each) for each in self.answers):
            return Completed(argv, 0, "", "")
        raise DeadlineError("ssh gave no answer")


async def test_a_command_that_hangs_on_the_other_side_is_asked_ever_more_seldom(
    tmp_path, monkeypatch
):
    """Each stuck call stays in the other kernel: within a day they would fill the machine."""
    now, begun = 0.0, []
    monkeypatch.setattr("zconsole.zfs.sources.remote.steady_clock", lambda: now)
    process = Stuck()
    runner = SshRunner("box", process, process, tmp_path)
    hung = None
    for minute in range(24 * 60):
        now = 60.0 * minute
        process.answers = ("other",)
        await runner.run(("zpool", "status", "other"), 1.0)
        if hung is None or not hung.alive():
            begun.append(minute)
            with pytest.raises(DeadlineError) as raised:
                await runner.run(("zpool", "status", "tank"), 1.0)
            hung = raised.value
    assert begun[:6] == [0, 1, 3, 7, 15, 30]
    assert {later - earlier for earlier, later in pairwise(begun[5:])} == {15}
    process.answers = ("tank",)
    await runner.run(("zpool", "status", "tank"), 1.0)
    process.answers = ()
    with pytest.raises(DeadlineError) as raised:
        await runner.run(("zpool", "status", "tank"), 1.0)
    now += 60.0
    assert not raised.value.alive()


class Link:
    """Carries a command and its answer to a host with one pool, unless it fails."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.carries = lambda words: True
        self.fails: Exception | Completed = DeadlineError("ssh gave no answer")

    async def run(self, argv, deadline):
        words = argv[-1].partition(" PATH=")[2].partition(" ")[2]
        self.asked.append(words)
        if not self.carries(words):
            if isinstance(self.fails, Exception):
                raise self.fails
            return self.fails
        answers = {"zpool list -H": "tank\n", "zpool version": "zfs-2.1.11-1\n", "date": "+0200\n"}
        found = (answers[key] for key in answers if words.startswith(key))
        return Completed(argv, 0, next(found, TEXT), "")

    async def spawn(self, argv, cwd=None):
        raise FileNotFoundError


NO_PROCESS = OSError(errno.EAGAIN, "Resource temporarily unavailable")


async def test_a_moment_in_which_ssh_cannot_be_started_is_a_problem_and_no_pool_is_asked(tmp_path):
    link = Link()
    source = RemoteSource("box", (), 1.0, tmp_path)
    source._ssh = SshRunner("box", link, link, tmp_path)
    await source.sample()
    link.carries, link.fails = lambda words: False, NO_PROCESS
    link.asked.clear()
    (raw,) = await source.sample()
    assert raw["problem"] == "ssh: Resource temporarily unavailable"
    assert not any("status" in words for words in link.asked)
    link.carries = lambda words: True
    (raw,) = await source.sample()
    assert raw["text"] == TEXT
    await source.aclose()


HUNG, LOST = DeadlineError("ssh gave no answer"), Completed((), 255, "", REFUSED)


@rows(
    "carried, fails",
    [
        (("zpool list -H",), HUNG),
        (("zpool list -H",), LOST),
        (("zpool", "grep"), HUNG),
        (("zpool list -H",), NO_PROCESS),
    ],
)
async def test_a_link_that_dies_before_the_host_has_told_about_itself_is_a_problem_until_it_is_back(
    tmp_path, monkeypatch, carried, fails
):
    now, link = 0.0, Link()
    monkeypatch.setattr("zconsole.zfs.sources.remote.steady_clock", lambda: now)
    source = RemoteSource("box", (), 1.0, tmp_path, Clocks(steady=lambda: now))
    source._ssh = SshRunner("box", link, link, tmp_path)
    link.carries, link.fails = lambda words: words.startswith(carried), fails
    for now in (0.0, 10.0, 20.0):  # noqa: B007
        (raw,) = await source.sample()
        assert raw["problem"].startswith(("ssh: ", "zpool on box gave", "date on box gave"))
    if fails is HUNG:
        assert sum(words.startswith("date") for words in link.asked) == 1, "it may still hang there"
    link.carries, now = lambda words: True, 1000.0
    (raw,) = await source.sample()
    assert (raw["pool"], raw["text"]) == ("tank", TEXT)
    assert (raw["version"], raw["utc_offset"]) == ("2.1.11", 7200.0)
    await source.aclose()


def test_a_slow_link_is_waited_for_longer_and_a_fast_one_not():
    assert next_patience(0.1) == PATIENCE
    assert PATIENCE < next_patience(PATIENCE) < DEADLINE
    assert next_patience(DEADLINE) == DEADLINE


async def test_a_lost_link_is_tried_once_a_sample(host, tmp_path):
    remote = host()
    source = RemoteSource("root@box", (), 1.0, tmp_path)
    try:
        await source.sample()
        await remote.asked("zpool iostat")
        remote.cut()
        await source.sample()
        before = len(remote.calls)
        (lost,) = await source.sample()
        assert "Connection refused" in lost["problem"]
        assert len(remote.calls) == before + 1
    finally:
        await source.aclose()


async def test_pools_that_may_have_joined_are_looked_for_now_and_then(host, tmp_path):
    remote, now = host(), 0.0
    source = RemoteSource("root@box", (), 1.0, tmp_path, Clocks(steady=lambda: now))
    asked = []
    try:
        for now in (0.0, 1.0, LIST_EVERY - 1, LIST_EVERY, LIST_EVERY + 1):  # noqa: B007
            assert "status" in (await source.sample())[0]
            words = " ".join(call[-1] for call in remote.calls)
            asked.append((words.count("zpool list -H"), words.count("/state")))
    finally:
        await source.aclose()
    assert asked == [(1, 1), (1, 2), (1, 3), (2, 4), (2, 5)]


async def test_an_exported_pool_is_said_to_be_gone_until_it_is_imported_again(host, tmp_path):
    remote, now = host(), 0.0
    source = RemoteSource("root@box", (), 1.0, tmp_path, Clocks(steady=lambda: now))
    zpool, grep = tmp_path / "tools/zpool", tmp_path / "tools/grep"
    imported = zpool.read_text()
    try:
        assert "status" in (await source.sample())[0]
        script(zpool, imported.replace("echo tank", ":"))
        now = LIST_EVERY
        (exported,) = await source.sample()
        assert (exported["problem"], exported["absent"]) == ("no longer imported", True)
        remote.cut()
        (lost,) = await source.sample()
        assert "Connection refused" in lost["problem"]
        assert lost["absent"]
        remote.mend()
        assert (await source.sample())[0]["absent"]
        script(zpool, imported)
        # The kernel's word comes with every sample, the list only now and then.
        script(grep, "#!/bin/sh\necho /proc/spl/kstat/zfs/tank/state:ONLINE\n")
        assert "status" in (await source.sample())[0]
    finally:
        await source.aclose()


def test_watch_follows_it_and_lets_go_of_the_connection_when_told_to_end(host):
    remote = host()
    words = [sys.executable, "-m", "zconsole", "watch", "--host", "root@box", "--interval", "0.1"]
    watch = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(2):
        assert watch.stdout.readline()
    watch.terminate()
    watch.communicate(timeout=30)
    assert watch.returncode == 130
    assert "-O" in remote.calls[-1]
    assert remote.sockets().name.startswith("zconsole-")
    assert not remote.sockets().exists()


def children() -> set[str]:
    found: set[str] = set()
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError):  # a thread that has just ended
            found.update((task / "children").read_text().split())
    return found


async def test_closing_is_cut_short_and_leaves_no_process_behind(host, tmp_path):
    remote = host()
    before = children()
    source = RemoteSource("root@box", (), 1.0, tmp_path)
    await source.sample()
    remote.delay_exit()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(source.aclose(), 0.5)
    await gone(lambda: not children() <= before)


def test_nothing_can_be_changed_over_the_link(tmp_path):
    assert RemoteSource("root@box", (), 1.0, tmp_path).capabilities.denied


@rows(
    "words",
    [
        ["status", "--host=-x"],
        ["watch", "--host", "a b"],
        ["status", "--from", "x", "--host", "a"],
    ],
)
def test_bad_hosts_and_a_host_beside_a_file_are_one_line(words, capsys):
    assert main(words) == ExitCode.USAGE
    assert capsys.readouterr().err.count("\n") == 1
