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


def test_a_machine_that_exports_nothing_says_nothing(machine: Machine) -> None:
    assert machine.why("/tank") == ""


@pytest.mark.parametrize(
    "table", ["/var/lib/nfs/etab", "/proc/fs/nfsd/exports", "/proc/net/rpc/nfsd.export/content"]
)
def test_every_table_of_the_kernel_server(machine: Machine, table: str) -> None:
    machine.write(table, "#path domain(flags)\n/tank/a/share\thost(rw)\n# /other\tgone(rw)\n")
    assert machine.why("/tank") == "exported over NFS (/tank/a/share)"
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


def test_a_directory_that_only_leads_to_exports_shows_nothing(machine: Machine) -> None:
    machine.write("/proc/fs/nfsd/exports", "/\t*(ro,fsid=0,v4root)\n/other\t*(rw)\n")
    assert (machine.why("/tank"), "NFS" in machine.why("/other")) == ("", True)


def test_an_export_shows_what_is_mounted_below_and_nothing_beside(machine: Machine) -> None:
    machine.write("/var/lib/nfs/etab", "/tank/below/x\thost(rw)\n")
    assert machine.why("/tank/below") == "exported over NFS (/tank/below/x)"
    assert machine.why("/tank") == ""
    machine.write("/var/lib/nfs/etab", "/tank\thost(rw)\n")
    assert machine.why("/tank/below") == "exported over NFS (/tank)"


def test_a_bind_mount_is_exported_under_another_name(machine: Machine) -> None:
    row = "34 21 0:50 /data /export/data rw - zfs tank rw"
    machine.write("proc/self/mountinfo", "\n".join((*TABLE, row)))
    machine.write("/var/lib/nfs/etab", "/export\thost(rw)\n")
    assert machine.why("/tank") == "exported over NFS (/export)"
    assert machine.why("/other") == ""


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
    "words", ["-s\0/srv/my.conf", "-Ds\0/srv/my.conf", "-F\0-s/srv/my.conf",
              "-D\0--configfile=/srv/my.conf", "--configfile\0/srv/my.conf\0-D"],
)  # fmt: skip
@pytest.mark.parametrize("namespace", ["mnt:[1]", "mnt:[2]"])
def test_a_configuration_that_samba_was_started_with(
    machine: Machine, words: str, namespace: str
) -> None:
    machine.process("70", "smbd", namespace)
    machine.write("proc/70/cmdline", f"/usr/sbin/smbd\0{words}\0")
    root = "" if namespace == "mnt:[1]" else "proc/70/root"
    machine.write(f"{root}/srv/my.conf", "[a]\npath = /tank/a\n")
    assert machine.why("/tank") == "exported over SMB (/tank/a)"
    assert machine.why("/other") == ""


@pytest.mark.parametrize("namespace", ["mnt:[1]", "mnt:[2]"])
def test_a_configuration_that_sambas_environment_names(machine: Machine, namespace: str) -> None:
    machine.process("70", "smbd", namespace)
    machine.write("proc/70/cmdline", "/usr/sbin/smbd\0-F\0")
    machine.write("proc/70/environ", "HOME=/root\0SMB_CONF_PATH=/srv/my.conf\0")
    root = "" if namespace == "mnt:[1]" else "proc/70/root"
    machine.write(f"{root}/srv/my.conf", "[a]\npath = /tank/a\n")
    assert machine.why("/tank") == "exported over SMB (/tank/a)"
    assert machine.why("/other") == ""


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


def test_homes_are_shared_also_where_nobody_says_whose(machine: Machine) -> None:
    machine.write("/etc/samba/smb.conf", "[homes]\n")
    assert machine.why("/home") == "exported over SMB (/home)"
    assert machine.why("/tank") == ""


def test_shares_that_users_made(machine: Machine) -> None:
    machine.write("/var/lib/samba/usershares/mine", "#VERSION 2\npath=/tank/mine\ncomment=\n")
    assert machine.why("/tank") == "exported over SMB (/tank/mine)"
    assert machine.why("/other") == ""


def test_usershares_elsewhere(machine: Machine) -> None:
    machine.write("/etc/samba/smb.conf", "[global]\nusershare path = /srv/shares\n")
    machine.write("/srv/shares/mine", "path=/tank/mine\n")
    assert machine.why("/tank") == "exported over SMB (/tank/mine)"


def test_only_the_path_of_usershares_names_a_directory_of_them(machine: Machine) -> None:
    machine.write("/etc/samba/smb.conf", "[global]\ncomment = /srv/shares\n")
    machine.write("/srv/shares/mine", "path=/tank/mine\n")
    assert machine.why("/tank") == ""


@pytest.mark.parametrize("name", ["include", "config file", "Include"])
def test_included_files(machine: Machine, name: str) -> None:
    machine.write("/etc/samba/smb.conf", f"[global]\n{name} = /etc/samba/more.conf\n")
    machine.write("/etc/samba/more.conf", "include = /etc/samba/most.conf\n")
    machine.write("/etc/samba/most.conf", "[a]\npath = /tank/a\n")
    assert machine.why("/tank") == "exported over SMB (/tank/a)"
    assert machine.why("/other") == ""


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


def test_shares_in_the_registry(machine: Machine) -> None:
    machine.write("/etc/samba/smb.conf", "[global]\ninclude = registry\n")
    run = printing({"net": "[global]\n[a]\n\tpath = /tank/a\n"})
    assert machine.why("/tank", run) == "exported over SMB (/tank/a)"
    assert machine.why("/other", run) == ""


@pytest.mark.parametrize("path", ["//tank/a", "/tank//a/", "/tank/./a"])
def test_a_path_is_the_same_however_it_is_written(machine: Machine, path: str) -> None:
    machine.write("/etc/samba/smb.conf", f"[a]\npath = {path}\n")
    assert machine.why("/tank").startswith("exported over SMB")
    assert machine.why("/other") == ""


def test_what_samba_itself_reads(machine: Machine) -> None:
    run = printing({"testparm": "[global]\n[a]\n\tpath = /tank/a\n"})
    assert machine.why("/tank", run) == "exported over SMB (/tank/a)"
    assert machine.why("/other", run) == ""


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


@pytest.mark.parametrize("name", ["ganesha.nfsd", "unfsd"])
def test_a_server_that_keeps_its_exports_to_itself_may_export_anything(
    machine: Machine, name: str
) -> None:
    machine.process("70", name, "mnt:[2]")
    assert machine.why("/tank") == f"exported over NFS: {name} is running, and may export anything"


CONTAINER = (
    "81 80 0:90 / / rw - overlay overlay rw",
    "82 81 0:50 /data /exports rw - zfs tank rw",
)


class TestContainers:
    def test_a_kernel_server_exports_under_its_own_names(self, machine: Machine) -> None:
        machine.process("70", "sh", "mnt:[2]", (*CONTAINER, NFSD))
        machine.write("proc/70/root/var/lib/nfs/etab", "/exports\t*(rw)\n")
        assert machine.why("/tank") == "exported over NFS (/exports)"
        assert machine.why("/other") == ""

    def test_a_path_of_a_container_is_not_one_of_this_machine(self, machine: Machine) -> None:
        machine.process("70", "rpc.mountd", "mnt:[2]", CONTAINER)
        machine.write("proc/70/root/var/lib/nfs/etab", "/other\t*(rw)\n")
        assert machine.why("/other") == ""

    def test_samba_shares_too(self, machine: Machine) -> None:
        machine.process("70", "smbd", "mnt:[2]", CONTAINER)
        machine.write("proc/70/root/etc/samba/smb.conf", "[a]\npath = /exports/a\n")
        assert machine.why("/tank") == "exported over SMB (/exports/a)"

    def test_a_registry_of_a_container_is_not_this_machines(self, machine: Machine) -> None:
        machine.process("70", "smbd", "mnt:[2]", CONTAINER)
        machine.write("proc/70/root/etc/samba/smb.conf", "[global]\ninclude = registry\n")
        assert "refers to Samba's registry" in machine.why("/tank", printing({"net": ""}))

    def test_one_without_a_server_is_not_read(self, machine: Machine) -> None:
        machine.process("70", "sh", "mnt:[2]", CONTAINER)
        machine.write("proc/70/root/etc/samba/smb.conf", "[a]\npath = /exports/a\n")
        assert machine.why("/tank") == ""

    def test_a_server_that_shows_no_table_counts_as_exporting(self, machine: Machine) -> None:
        machine.process("70", "sh", "mnt:[2]", (*CONTAINER, NFSD))
        (machine.root / "proc/70/root").mkdir()
        assert "process 70 has no /var/lib/nfs/etab" in machine.why("/other")

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

    def test_kernel_threads_without_any_table_serve_somebody(self, machine: Machine) -> None:
        machine.process("9", "nfsd", "mnt:[1]")
        assert "an NFS server runs in a container that cannot be found" in machine.why("/tank")

    def test_kernel_threads_of_this_machine_serve_what_its_table_has(
        self, machine: Machine
    ) -> None:
        machine.write("proc/self/mountinfo", "\n".join((*TABLE, NFSD)))
        machine.process("9", "nfsd", "mnt:[1]")
        machine.write("/var/lib/nfs/etab", "/other\thost(rw)\n")
        assert (machine.why("/tank"), "NFS" in machine.why("/other")) == ("", True)

    def test_kernel_threads_where_processes_may_not_be_looked_at(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        machine.process("9", "nfsd", "mnt:[1]")

        def refuse(_process: Path) -> str:
            return ""

        monkeypatch.setattr(exports, "_namespace", refuse)
        assert "namespaces are hidden" in machine.why("/tank")
