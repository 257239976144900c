"""Devices to build scenarios from; rates as their makers and reviewers measured them."""

from __future__ import annotations

from zconsole.sim.disk import DiskModel

GB, TB = 10**9, 10**12
MIB = 1 << 20

RED_4T = DiskModel("ata-WDC_WD40EFRX-68N32N0", 4 * TB, 175e6, 82e6, 0.0125)
RED_8T = DiskModel("ata-WDC_WD80EFZZ-68BTXN0", 8 * TB, 196e6, 95e6, 0.0115)
EXOS_16T = DiskModel("ata-ST16000NM001G-2KK103", 16 * TB, 261e6, 124e6, 0.0085)
ULTRASTAR_18T = DiskModel("scsi-SWDC_WUH721818AL5204", 18 * TB, 269e6, 128e6, 0.0083)
GREEN_3T = DiskModel("ata-WDC_WD30EZRX-00MMMB0", 3 * TB, 142e6, 64e6, 0.0155)
DESKTOP_5T = DiskModel("ata-ST5000DM000-1FK178", 5 * TB, 170e6, 78e6, 0.0145)
SHINGLED_8T = DiskModel(
    "ata-ST8000DM004-2CX188", 8 * TB, 190e6, 92e6, 0.0125, cache_bytes=110e9, collapsed=21e6
)
NVME_1T5 = DiskModel("nvme-INTEL_SSDPED1K015TA", 1500 * GB, 3.58e9, 3.58e9, 0.0, 0.00006, 0.52)
NVME_2T = DiskModel("nvme-Samsung_SSD_980_PRO_2TB", 2 * TB, 5.2e9, 5.2e9, 0.0, 0.00007, 0.55)
OPTANE_100G = DiskModel("nvme-INTEL_SSDPEL1D100GA", 100 * GB, 2.2e9, 2.2e9, 0.0, 0.00002, 0.6)
SSD_400G = DiskModel("ata-INTEL_SSDSC2BA400G4", 400 * GB, 480e6, 480e6, 0.00005, 0.0001, 0.9)
SSD_1T = DiskModel("ata-Samsung_SSD_870_EVO_1TB", 10**12, 530e6, 530e6, 0.00006, 0.0001, 0.95)
REMOTE_4T = DiskModel("scsi-SLIO-ORG_iblock", 4 * TB, 230e6, 230e6, 0.002, 0.0045)
"""A disk behind a network: fast enough, but every request takes its time."""
