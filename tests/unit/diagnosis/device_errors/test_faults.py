from __future__ import annotations

import json

import pytest

from tests.table import rows
from zconsole.diagnosis.device_errors.faults import (
    Deltas,
    DeviceFault,
    ProbeResults,
    SmartCounts,
    likely_cause,
    returned,
    with_cause,
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


@rows(
    ("deltas", "moves", "smart", "kernel", "cause"),
    [
        (Deltas(cksum=40), returned(2), None, (), "cable"),
        (Deltas(read=3, cksum=40), returned(1), SmartCounts(True, 0, 0, 0, 512), (), "cable"),
        (Deltas(write=9), "", SmartCounts(crc=8), ("ata3: hard resetting link",), "cable"),
        (Deltas(read=40), "", SmartCounts(True, 80, 12, 3, 0), (), "disk"),
        (Deltas(read=12, slow=4), "", None, ("dev sdc: Medium Error",), "disk"),
        (Deltas(), "", SmartCounts(passed=False), (), "disk"),
        (Deltas(cksum=40), returned(1), SmartCounts(pending=4, reallocated=10), (), "unclear"),
        (Deltas(write=2), "", None, (), "unclear"),
        (Deltas(slow=2), "", None, (), "unclear"),
        (Deltas(slow=2, read=1), "", SmartCounts(pending=3), (), "disk"),
        # Every read of a device fails while it is disconnected.
        (Deltas(read=50), returned(1), None, (), "cable"),
        (Deltas(read=50), returned(1), SmartCounts(pending=4), (), "unclear"),
        # A failing disk has to be replaced, whatever else is wrong.
        (Deltas(), returned(1), SmartCounts(False, crc=9), ("ata3: SATA link down",), "disk"),
        # Two attributes of the same sectors are one sign.
        (Deltas(), "", SmartCounts(True, 5, 8, 8, 9), (), "unclear"),
        # Checksum errors that its siblings have as well say nothing.
        (Deltas(read=20, cksum=40, is_shared=True), "", None, (), "disk"),
        (Deltas(read=20, cksum=40), "", None, (), "unclear"),
        (Deltas(write=2), "", None, ("sd 2:0:0:0: [sdc] timed out in func 0x12",), "unclear"),
        (Deltas(write=2), "", None, ("sdc: trunc failed",), "unclear"),
        (Deltas(write=2), "", None, ("ata3.00: error: { UNC }",), "disk"),
        (Deltas(write=2), "", None, ("ata3.00: error: { UNC ABRT }",), "disk"),
    ],
)
def test_signs_tell_a_cable_from_a_disk(deltas, moves, smart, kernel, cause):
    assert likely_cause(deltas, moves, ProbeResults(smart, kernel))[0] == cause


def test_a_device_that_is_gone_is_not_blamed_for_its_failed_reads():
    fault = DeviceFault("1", "sdc", Deltas(read=50), last=0.0, gone=True)
    assert with_cause(fault).cause == "unclear"
    assert with_cause(fault).text == "sdc: 50 read errors in 1h00m; disconnected"
    assert with_cause(fault._replace(gone=False)).cause == "disk"


def test_of_two_attributes_of_the_same_sectors_the_one_that_grows_counts():
    before = SmartCounts(pending=1, uncorrectable=1)
    signs = ProbeResults(SmartCounts(pending=1, uncorrectable=8), before=before)
    assert likely_cause(Deltas(), signs=signs)[1] == ("8 uncorrectable errors, 7 new",)


def test_what_speaks_against_the_likely_cause_is_told_last():
    signs = ProbeResults(SmartCounts(True, 5, 0, 0, 40), before=SmartCounts(True, 5, 0, 0, 12))
    assert likely_cause(Deltas(), returned(1), signs) == (
        "cable",
        ("disconnected, returned", "40 CRC errors on its link, 28 new", "5 reallocated sectors"),
    )


def test_a_single_sector_is_not_called_sectors():
    signs = ProbeResults(SmartCounts(pending=1, reallocated=1, crc=1))
    assert likely_cause(Deltas(), signs=signs)[1] == (
        "1 CRC error on its link",
        "1 unreadable sector",
        "1 reallocated sector",
    )


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


def worn(**document) -> float | None:
    found = smart_counts(json.dumps({"smart_status": {"passed": True}, **document}))
    assert found is not None
    return found.wear


def attribute(number: int, name: str, value: int) -> dict:
    row = {"id": number, "name": name, "value": value, "raw": {"value": 7}}
    return {"ata_smart_attributes": {"table": [row]}}


def test_wear_is_smartctls_own_word_then_nvmes_then_an_attributes():
    nvme = {"nvme_smart_health_information_log": {"percentage_used": 12}}
    assert worn(**nvme) == 0.12
    assert worn(endurance_used={"current_percent": 3}, **nvme) == 0.03
    assert worn(**attribute(231, "SSD_Life_Left", 88)) == pytest.approx(0.12)
    assert worn(**attribute(233, "Media_Wearout_Indicator", 100)) == 0.0
    assert worn(**attribute(177, "Wear_Leveling_Count", 45)) == pytest.approx(0.55)


def test_attributes_of_those_numbers_that_count_something_else_are_no_wear():
    assert worn(**attribute(231, "Temperature_Celsius", 65)) is None
    assert worn(**attribute(202, "Data_Address_Mark_Errs", 100)) is None
    assert worn(**attribute(231, "SSD_Life_Left", 253)) is None


def test_spare_blocks_temperature_and_the_words_for_all_of_it():
    log = {"percentage_used": 104, "available_spare": 98, "media_errors": 0}
    found = smart_counts(
        json.dumps({"nvme_smart_health_information_log": log, "temperature": {"current": 41}})
    )
    assert found is not None
    assert (found.spare, found.temperature) == (0.98, 41.0)
    assert found.words() == "0 uncorrectable, 104 % worn, 98 % of its spare blocks left"


@rows("odd", [None, True, "3", [], {}, 1e300])
def test_odd_figures_of_wear_are_unknown(odd):
    log = {"percentage_used": odd, "available_spare": odd}
    document = {"endurance_used": odd, "temperature": {"current": odd}}
    assert worn(nvme_smart_health_information_log=log, **document) is None


@rows("text", ["", "no JSON", "[]", "{}", '{"ata_smart_attributes": {"table": [3]}}'])
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


@rows(
    ("deltas", "said"),
    [
        (Deltas(cksum=1, seconds=33.0), "1 checksum error in 33s"),
        (Deltas(read=1, write=1, seconds=33.0), "1 read, 1 write errors in 33s"),
        (Deltas(slow=1, seconds=33.0), "1 slow I/O"),
    ],
)
def test_one_error_is_not_called_errors(deltas: Deltas, said: str):
    assert said in with_cause(DeviceFault("1", "sdc", deltas, last=0.0)).text
