"""Shingled disks by what the kernel says, and by their makers' lists."""

from __future__ import annotations

from tests.table import rows
from zconsole.hardware.shingled import HOST_MANAGED, shingled


@rows(
    ("model", "maker"),
    [
        ("WDC WD40EFAX-68J", "WD"),
        ("WDC_WD60EFAX-68JH4N1", "WD"),
        ("WDC WD20EZAZ-00L", "WD"),
        ("WDC WD10SPZX-00Z", "WD"),
        ("ST8000DM004-2CX1", "Seagate"),
        ("ST2000LM015-2E81", "Seagate"),
        ("ST8000AS0002-1NA", "Seagate"),
        ("TOSHIBA HDWD240", "Toshiba"),
        ("TOSHIBA DT02ABA4", "Toshiba"),
        ("TOSHIBA MQ04ABF1", "Toshiba"),
        ("WDC WD80EFAX-68K", ""),
        ("WDC WD120EFAX-68", ""),
        ("WDC WD40EFRX-68N", ""),
        ("WDC WD40EFZX-68A", ""),
        ("ST4000VN008-2DR1", ""),
        ("ST1000DM010-2EP1", ""),
        ("ST16000NM001G-2K", ""),
        ("TOSHIBA HDWD120", ""),
        ("TOSHIBA DT02ABA2", ""),
        ("TOSHIBA HDWG440", ""),
        ("", ""),
    ],
)
def test_a_model_that_its_maker_lists(model, maker):
    assert shingled("none", model) == (f"shingled (SMR) by {maker}'s list" if maker else "")


@rows(
    ("zoned", "said"),
    [
        ("host-managed", HOST_MANAGED),
        ("host-aware", "shingled (SMR) by its own account"),
        ("none", ""),
        ("", ""),
    ],
)
def test_the_kernel_is_asked_before_any_list(zoned, said):
    assert shingled(zoned, "LAB 2T") == said
    assert shingled(zoned, "ST8000DM004-2CX1") == (said or "shingled (SMR) by Seagate's list")
