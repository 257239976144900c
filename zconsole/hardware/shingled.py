"""Disks that record in shingled tracks (SMR), as the kernel or their maker says.

A resilver fills their cache; from then on each write rewrites a whole band of tracks.
"""

from __future__ import annotations

import re

HOST_MANAGED = "host-managed zones (SMR), which take writes in order only"
_START = r"(?<![A-Z0-9])"
_LISTED = tuple(
    (re.compile(_START + models), maker)
    for models, maker in (
        # blog.westerndigital.com/wd-red-nas-drives (April 2020) and the list it links; EZAZ and
        # EDAZ up to 6 TB also in WD's statement to heise.de (October 2025). WD80EFAX is none.
        (r"WD(?:[2346]0(?:EFAX|EZAZ|EDAZ)|10SP[SZ]X|20SPZX)", "WD"),
        # seagate.com/products/cmr-smr-list; Archive HDD: its data sheet DS1834 (2014).
        (
            r"ST(?:2000DM00[58]|3000DM007|4000DM004|6000DM003|8000DM004|500LM030|1000LM048"
            r"|2000LM015|[34]000LM024|5000LM000|5000AS0011|[68]000AS0002)",
            "Seagate",
        ),
        # toshiba.semicon-storage.com/ap-en/company/news/news-topics/2020/04/storage-20200428-1.html
        # names P300 and DT02 of 4 and 6 TB, L200 and MQ04 of 1 and 2 TB. Linux cuts the model of a
        # SATA disk to 16 characters: TOSHIBA MQ04ABF1.
        (r"(?:HDWD2[46]0|DT02ABA[46]|HDWL1[12]0|MQ04AB[DF])", "Toshiba"),
    )
)
"""Models in lists that their makers published; a model that is not here may be shingled, too."""


def shingled(zoned: str, model: str) -> str:
    """Return by whom a disk is said to be shingled, in words; empty if nothing says so.

    ``zoned`` is its attribute ``queue/zoned`` in /sys; Linux 6.9 and later no longer say
    host-aware. ``model`` is as the kernel or udev writes it.
    """
    if zoned == "host-managed":
        return HOST_MANAGED
    if zoned == "host-aware":
        return "shingled (SMR) by its own account"
    makers = (maker for models, maker in _LISTED if models.search(model))
    return next((f"shingled (SMR) by {maker}'s list" for maker in makers), "")
