from __future__ import annotations

import json

import pytest

from zconsole.diagnosis.device_errors.faults import (
    Deltas,
    DeviceFault,
    ProbeResults,
    SmartCounts,
    judge,
    judged,
)
from zconsole.diagnosis.device_errors.probes import (
    kernel_messages,
    messages_about,
    smart_counts,
    smart_of,
)
from zconsole.system.process import Completed, DeadlineError

LOG = """\
2026-11-20T10:00:00,0 ata3: hard resetting link
2026-11-20T10:00:01,0 ata3.00: failed command: READ FPDMA QUEUED
2026-11-20T10:00:02,0 sd 2:0:0:0: [sdc] tag#3 Sense Key : Medium Error [current]
2026-11-20T10:00:02,0 critical medium error, dev sdc, sector 12345
2026-11-20T10:00:03,0 sdcc: unrelated
2026-11-20T10:00:04,0 EXT4-fs (sda1): mounted
"""


@pytest.mark.parametrize(
    ("deltas", "flaps", "smart", "kernel", "cause"),
    [
        (Deltas(cksum=40), 2, None, (), "cable"),
        (Deltas(read=3, cksum=40), 1, SmartCounts(True, 0, 0, 0, 512), (), "cable"),
        (Deltas(write=9), 0, SmartCounts(crc=8), ("ata3: hard resetting link",), "cable"),
        (Deltas(read=40), 0, SmartCounts(True, 80, 12, 3, 0), (), "disk"),
        (Deltas(read=12, slow=4), 0, None, ("dev sdc: Medium Error",), "disk"),
        (Deltas(), 0, SmartCounts(passed=False), (), "disk"),
        (Deltas(cksum=40), 1, SmartCounts(pending=4, reallocated=10), (), "unclear"),
        (Deltas(write=2), 0, None, (), "unclear"),
        (Deltas(slow=2), 0, None, (), "unclear"),
        (Deltas(slow=2, read=1), 0, SmartCounts(pending=3), (), "disk"),
    ],
)
def test_signs_tell_a_cable_from_a_disk(deltas, flaps, smart, kernel, cause):
    assert judge(deltas, flaps, ProbeResults(smart, kernel))[0] == cause


def ata(**counts):
    numbers = {"reallocated": 5, "pending": 197, "uncorrectable": 198, "crc": 199}
    rows = [{"id": numbers[k], "raw": {"value": v, "string": str(v)}} for k, v in counts.items()]
    return json.dumps({"smart_status": {"passed": True}, "ata_smart_attributes": {"table": rows}})


def test_smart_counts_of_every_kind_of_device():
    assert smart_counts(ata(reallocated=8, crc=3)) == SmartCounts(True, 8, None, None, 3)
    nvme = {
        "smart_status": {"passed": False},
        "nvme_smart_health_information_log": {"media_errors": 2},
    }
    assert smart_counts(json.dumps(nvme)) == SmartCounts(False, uncorrectable=2)
    assert smart_counts('{"scsi_grown_defect_list": 7}') == SmartCounts(reallocated=7)


@pytest.mark.parametrize(
    "text", ["", "no JSON", "[]", "{}", '{"ata_smart_attributes": {"table": [3]}}']
)
def test_what_is_no_smartctl_output_gives_nothing(text):
    assert smart_counts(text) is None


def test_kernel_messages_are_those_of_that_device_alone():
    found = messages_about(LOG, ("sdc", "ata3"))
    assert len(found) == 4
    assert not [line for line in found if "sdcc" in line or "sda1" in line]
    assert messages_about(LOG, ("sda",)) == ("2026-11-20T10:00:04,0 EXT4-fs (sda1): mounted",)
    assert messages_about(LOG, ()) == ()


class Answers:
    def __init__(self, outcome):
        self.outcome = outcome

    async def run(self, argv, deadline, stdin=None):
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return Completed(tuple(argv), 0, self.outcome, "")


async def test_a_machine_without_smartctl_or_with_a_stuck_disk_gives_no_counts():
    assert await smart_of(Answers(FileNotFoundError("smartctl")), "/dev/sdc") is None
    assert await smart_of(Answers(DeadlineError("stuck")), "/dev/sdc") is None
    assert await smart_of(Answers(ata(pending=1)), "/dev/sdc") == SmartCounts(True, pending=1)
    assert len(await kernel_messages(Answers(LOG), ("sdc",))) == 2


@pytest.mark.parametrize(
    ("deltas", "said"),
    [
        (Deltas(cksum=1, seconds=33.0), "1 checksum error in 33s"),
        (Deltas(read=1, write=1, seconds=33.0), "1 read, 1 write errors in 33s"),
        (Deltas(slow=1, seconds=33.0), "1 slow I/O"),
    ],
)
def test_one_error_is_not_called_errors(deltas: Deltas, said: str):
    assert said in judged(DeviceFault("1", "sdc", deltas, last=0.0)).text
