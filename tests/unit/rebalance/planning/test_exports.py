"""Files that other machines may write to while they are copied, on faked machines."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from zconsole.rebalance.planning import exports
from zconsole.rebalance.planning.exports import look, why_exported
from zconsole.rebalance.planning.facts import Run
from zconsole.system.patient import Patient
from zconsole.system.process import Completed, DeadlineError

SMB = """\
# path = /tank/comment
[global]
   workgroup = HOME
[media]
   Path = "/tank/media"
; path = /tank/off
[wrapped]
   path = /tank/\\
wrapped
[users]
   path=/tank/users/%U
[named]
   path = /tank/by/u%U
[printers]
   path = /var/spool/samba
   printable = yes
[homes]
   browseable = no
"""
TABLE = (
    "21 1 8:1 / / rw - ext4 /dev/sda1 rw",
    "30 21 0:50 / /tank rw - zfs tank rw",
    "31 21 0:51 / /other rw - zfs other rw",
    "32 30 0:52 / /tank/below rw - zfs tank/below rw",
)
NFSD = "40 21 0:60 / /proc/fs/nfsd rw - nfsd nfsd rw"


def nothing(argv: Sequence[str], _deadline: float) -> Completed:
    raise FileNotFoundError(argv[0])


def printing(answers: Mapping[str, str]) -> Run:
    """Return a runner of commands that print these answers; others are not installed."""

    def run(argv: Sequence[str], _deadline: float) -> Completed:
        if argv[0] not in answers:
            raise FileNotFoundError(argv[0])
        return Completed(tuple(argv), 0, answers[argv[0]], "")

    return run


class Machine:
    """A faked machine below a directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.process("self", "python", "mnt:[1]", TABLE)

    def write(self, path: str, text: str) -> Path:
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def process(self, number: str, name: str, namespace: str, table: Sequence[str] = TABLE) -> None:
        self.write(f"proc/{number}/comm", f"{name}\n")
        self.write(f"proc/{number}/mountinfo", "\n".join(table))
        (self.root / f"proc/{number}/ns").mkdir()
        (self.root / f"proc/{number}/ns/mnt").symlink_to(namespace)

    def why(self, point: str, run: Run = nothing) -> str:
        return why_exported(point, look(run, self.root))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


ETAB, CONF = "/var/lib/nfs/etab", "/etc/samba/smb.conf"
BOUND = "\n".join((*TABLE, "34 21 0:50 /data /export/data rw - zfs tank rw"))
MINE, NFS, SMB_A = "path=/tank/mine\n", "exported over NFS", "exported over SMB (/tank/a)"
A = "[a]\npath = /tank/a\n"


@pytest.mark.parametrize(
    ("files", "point", "why"),
    [
        ({}, "/tank", ""),
        *(
            ({table: "#path domain(flags)\n/tank/a/share\thost(rw)\n# /other\tgone(rw)\n"},
             "/tank", f"{NFS} (/tank/a/share)")
            for table in (ETAB, "/proc/fs/nfsd/exports", "/proc/net/rpc/nfsd.export/content")
        ),
        # A directory that only leads to exports shows nothing.
        ({"/proc/fs/nfsd/exports": "/\t*(ro,fsid=0,v4root)\n"}, "/tank", ""),
        # An export shows what is mounted below, and nothing beside it.
        ({ETAB: "/tank/below/x\thost(rw)\n"}, "/tank/below", f"{NFS} (/tank/below/x)"),
        ({ETAB: "/tank/below/x\thost(rw)\n"}, "/tank", ""),
        ({ETAB: "/tank\thost(rw)\n"}, "/tank/below", f"{NFS} (/tank)"),
        # A bind mount is exported under another name.
        ({"proc/self/mountinfo": BOUND, ETAB: "/export\thost(rw)\n"}, "/tank", f"{NFS} (/export)"),
        ({CONF: "[homes]\n"}, "/home", "exported over SMB (/home)"),
        ({CONF: "[homes]\n"}, "/tank", ""),
        ({"/var/lib/samba/usershares/mine": f"#VERSION 2\n{MINE}comment=\n"},
         "/tank", "exported over SMB (/tank/mine)"),
        ({CONF: "[global]\nusershare path = /srv/shares\n", "/srv/shares/mine": MINE},
         "/tank", "exported over SMB (/tank/mine)"),
        ({CONF: "[global]\ncomment = /srv/shares\n", "/srv/shares/mine": MINE}, "/tank", ""),
        *(
            ({CONF: f"[global]\n{name} = /more.conf\n", "/more.conf": "include = /most.conf\n",
              "/most.conf": A}, "/tank", SMB_A)
            for name in ("include", "config file", "Include")
        ),
        # A path is the same however it is written.
        *(
            ({CONF: A.replace("/tank/a", path)}, "/tank", f"exported over SMB ({path})")
            for path in ("//tank/a", "/tank//a/", "/tank/./a")
        ),
    ],
)  # fmt: skip
def test_what_is_shared_is_known_and_nothing_else_is(
    machine: Machine, files: dict[str, str], point: str, why: str
) -> None:
    for path, text in files.items():
        machine.write(path, text)
    assert machine.why(point) == why
    assert machine.why("/other") == ""


@pytest.mark.parametrize(
    ("text", "answers"),
    [("[global]\ninclude = registry\n", "net"), ("[global]\n", "testparm")],
)
def test_what_samba_itself_tells(machine: Machine, text: str, answers: str) -> None:
    machine.write(CONF, text)
    run = printing({answers: f"[global]\n{A}"})
    assert machine.why("/tank", run) == SMB_A
    assert machine.why("/other", run) == ""


@pytest.mark.parametrize(
    ("words", "environment"),
    [
        ("-s\0/srv/my.conf", ""),
        ("-Ds\0/srv/my.conf", ""),
        ("-F\0-s/srv/my.conf", ""),
        ("-D\0--configfile=/srv/my.conf", ""),
        ("--configfile\0/srv/my.conf\0-D", ""),
        ("-F", "HOME=/root\0SMB_CONF_PATH=/srv/my.conf\0"),
    ],
)
@pytest.mark.parametrize("namespace", ["mnt:[1]", "mnt:[2]"])
def test_a_configuration_that_samba_was_started_with(
    machine: Machine, words: str, environment: str, namespace: str
) -> None:
    machine.process("70", "smbd", namespace)
    machine.write("proc/70/cmdline", f"/usr/sbin/smbd\0{words}\0")
    machine.write("proc/70/environ", environment)
    root = "" if namespace == "mnt:[1]" else "proc/70/root"
    machine.write(f"{root}/srv/my.conf", A)
    assert machine.why("/tank") == SMB_A
    assert machine.why("/other") == ""


@pytest.mark.parametrize(
    ("written", "path"),
    [("/tank/a\\040b", "/tank/a b"), ("/tank/\\303\\251", "/tank/é"), ("/tank/\\134", "/tank/\\")],
)
def test_escaped_characters_of_the_tables(machine: Machine, written: str, path: str) -> None:
    row = f"33 30 0:53 / {written} rw - zfs tank/odd rw"
    machine.write("proc/self/mountinfo", "\n".join((*TABLE, row)))
    machine.write("/var/lib/nfs/etab", f"{written}\thost(rw)\n")
    assert path in machine.why(path)
    assert machine.why("/tank") == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "shared"),
    [
        ("/tank/media", True),
        ("/tank/media/below", True),
        ("/tank/wrapped", True),
        ("/tank/users", True),
        ("/tank/by/una", True),
        ("/home/ann", True),
        ("/people/eve", True),
        ("/tank/comment", False),
        ("/tank/off", False),
        ("/var/spool", False),
        ("/tank/mediathek", False),
    ],
)
@pytest.mark.parametrize("file", ["/etc/samba/smb.conf", "/etc/ksmbd/ksmbd.conf"])
def test_shares_of_samba_and_ksmbd(machine: Machine, file: str, path: str, shared: bool) -> None:
    machine.write(
        "/etc/passwd", "root:x:0:0::/root:/bin/sh\neve:x:1001:1001::/people/eve:/bin/sh\n"
    )
    row = f"33 30 0:53 / {path} rw - zfs tank/it rw"
    machine.write("proc/self/mountinfo", "\n".join((*TABLE, row)))
    machine.write(file, SMB)
    assert machine.why(path).startswith("exported over SMB") == shared


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("-s\0my.conf", "smbd was started with my.conf of its own"),
        ("-s\0/srv/gone.conf", "/srv/gone.conf is missing"),
        ("-D\0-p\x00445\0-l\0/var/log/s", ""),
    ],
)
def test_a_configuration_that_cannot_be_read_counts_as_exporting(
    machine: Machine, words: str, why: str
) -> None:
    machine.process("70", "smbd", "mnt:[1]")
    machine.write("proc/70/cmdline", f"/usr/sbin/smbd\0{words}\0")
    assert machine.why("/tank").endswith(why)
    assert bool(machine.why("/tank")) == bool(why)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("include = /etc/samba/%m.conf", "includes /etc/samba/%m.conf, which differs by client"),
        ("include = /etc/samba/absent.conf", "absent.conf is missing"),
        ("include = /etc/samba/smb.conf", "includes nested too deep"),
        ("include = /etc/samba/smb.conf\n" * 4, "includes nested too deep"),
        ("include = /etc/samba/directory", "directory: not a file"),
        ("include = more.conf", "not an absolute path"),
        ("include = registry", "net conf list fails"),
        ("config backend = registry", "net conf list fails"),
        ("registry shares = yes", "net conf list fails"),
        ("[odd]\npath = %H/shared", "the path of [odd] varies"),
    ],
)
def test_what_cannot_be_known_counts_as_exported(machine: Machine, line: str, why: str) -> None:
    (machine.root / "etc/samba/directory").mkdir(parents=True)
    machine.write("/etc/samba/smb.conf", f"[global]\n{line}\n")
    found = machine.why("/tank")
    assert found.startswith("cannot tell whether /tank is exported: /etc/samba/")
    assert why in found


def test_samba_that_gives_no_answer_hides_no_registry(machine: Machine) -> None:
    asked = []

    def run(argv: Sequence[str], deadline: float) -> Completed:
        asked.append((*argv, deadline < 60))
        raise DeadlineError("no answer")

    machine.write("/etc/samba/smb.conf", "[global]\ninclude = registry\n")
    assert "net conf list fails" in machine.why("/tank", run)
    assert asked == [("testparm", "-s", True), ("net", "conf", "list", True)]


def test_a_shared_path_on_a_dead_server_is_waited_for_only_so_long(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "OWN", 0.1)
    answered = threading.Event()
    monkeypatch.setattr(os.path, "realpath", lambda path: answered.wait(60) and path)
    machine.write("/etc/samba/smb.conf", "[a]\npath = /dead/a\n")
    began = time.monotonic()
    assert machine.why("/tank").endswith("what is shared here gives no answer")
    assert time.monotonic() - began < 30
    answered.set()


def test_what_hangs_is_not_asked_again_at_the_next_look(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "OWN", 0.1)
    answered, asked, patient = threading.Event(), list[str](), Patient()

    def realpath(path: str) -> str:
        if path.startswith("/dead"):
            asked.append(path)
            answered.wait(60)
        return path

    monkeypatch.setattr(os.path, "realpath", realpath)
    machine.write("/etc/samba/smb.conf", "[a]\npath = /dead/a\n")
    for _ in range(3):
        shares = look(nothing, machine.root, patient)
        assert "cannot tell" in why_exported("/tank", shares)
    assert asked == ["/dead/a"]
    answered.set()


def test_where_no_thread_can_be_started_nothing_is_known(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("_thread.start_new_thread", refuse)
    assert machine.why("/tank").startswith("cannot tell")


def test_a_file_that_is_too_large_is_not_taken_for_a_short_one(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "LARGEST", 100)
    machine.write("/etc/samba/smb.conf", "#" * 101)
    assert "larger than 100 bytes" in machine.why("/tank")


def test_a_pipe_in_the_place_of_a_table_is_not_waited_for(machine: Machine) -> None:
    (machine.root / "var/lib/nfs").mkdir(parents=True)
    os.mkfifo(machine.root / "var/lib/nfs/etab")
    assert "/var/lib/nfs/etab: not a file" in machine.why("/tank")


CONTAINER = (
    "81 80 0:90 / / rw - overlay overlay rw",
    "82 81 0:50 /data /exports rw - zfs tank rw",
)


SERVED = (*CONTAINER, NFSD)
TABLES = {"proc/self/mountinfo": "\n".join((*TABLE, NFSD)), ETAB: "/other\thost(rw)\n"}


@pytest.mark.parametrize(
    ("name", "namespace", "table", "files", "point", "why"),
    [
        ("ganesha.nfsd", "mnt:[2]", (), {}, "/tank", f"{NFS}: ganesha.nfsd is running, and may"),
        ("unfsd", "mnt:[2]", (), {}, "/tank", f"{NFS}: unfsd is running, and may export anything"),
        # A kernel server exports under its own names.
        ("sh", "mnt:[2]", SERVED, {f"R{ETAB}": "/exports\t*(rw)\n"}, "/tank", f"{NFS} (/exports)"),
        ("sh", "mnt:[2]", SERVED, {f"R{ETAB}": "/exports\t*(rw)\n"}, "/other", ""),
        # A path of a container is not one of this machine.
        ("rpc.mountd", "mnt:[2]", CONTAINER, {f"R{ETAB}": "/other\t*(rw)\n"}, "/other", ""),
        ("smbd", "mnt:[2]", CONTAINER, {f"R{CONF}": "[a]\npath = /exports/a\n"},
         "/tank", "exported over SMB (/exports/a)"),
        ("smbd", "mnt:[2]", CONTAINER, {f"R{CONF}": "[global]\ninclude = registry\n"},
         "/tank", "refers to Samba's registry"),
        # One without a server is not read; one that shows no table counts as exporting.
        ("sh", "mnt:[2]", CONTAINER, {f"R{CONF}": "[a]\npath = /exports/a\n"}, "/tank", ""),
        ("sh", "mnt:[2]", SERVED, {"R/none": ""}, "/other", "process 70 has no /var/lib/nfs/etab"),
        # Kernel threads serve what this machine's table has, or somebody who can't be found.
        ("nfsd", "mnt:[1]", TABLE, {}, "/tank", "NFS server runs in a container that cannot be"),
        ("nfsd", "mnt:[1]", TABLE, TABLES, "/tank", ""),
        ("nfsd", "mnt:[1]", TABLE, TABLES, "/other", NFS),
    ],
)  # fmt: skip
def test_servers_are_seen_in_every_mount_namespace(
    machine: Machine,
    name: str,
    namespace: str,
    table: Sequence[str],
    files: dict[str, str],
    point: str,
    why: str,
) -> None:
    machine.process("70", name, namespace, table)
    for path, text in files.items():
        machine.write(path.replace("R/", "proc/70/root/"), text)
    found = machine.why(point, printing({"net": ""}))
    assert why in found
    assert bool(found) == bool(why)


class TestContainers:
    @pytest.mark.parametrize("link", ["etc", "etc/samba", "etc/samba/smb.conf"])
    def test_a_link_does_not_lead_out_of_the_container(self, machine: Machine, link: str) -> None:
        machine.process("70", "smbd", "mnt:[2]", CONTAINER)
        machine.write("/safe", "")
        place = machine.root / "proc/70/root" / link
        place.parent.mkdir(parents=True)
        place.symlink_to("/safe")
        assert "cannot tell whether /tank is exported: /etc/samba/smb.conf" in machine.why("/tank")

    def test_a_container_that_gives_no_answer_is_not_waited_for(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        machine.process("70", "smbd", "mnt:[2]", CONTAINER)
        (machine.root / "proc/70/root").mkdir()
        monkeypatch.setattr(exports, "DEADLINE", 0.05)
        answered = threading.Event()
        monkeypatch.setattr(exports, "_others", lambda *args: iter([answered.wait(60)][1:]))
        assert "give no answer" in machine.why("/tank")
        answered.set()

    def test_kernel_threads_where_processes_may_not_be_looked_at(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        machine.process("9", "nfsd", "mnt:[1]")

        def refuse(_process: Path) -> str:
            return ""

        monkeypatch.setattr(exports, "_namespace", refuse)
        assert "namespaces are hidden" in machine.why("/tank")
