"""The report of a swap, saved where the console was started."""

from __future__ import annotations

from datetime import datetime, tzinfo
from functools import partial
from pathlib import Path

from zconsole.errors import ZconsoleError
from zconsole.swap.checklist import Checklist
from zconsole.swap.report import markdown
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.ui.new_file import keep_new


def report_directory() -> str:
    """Where the report goes, in words."""
    try:
        return str(Path.cwd())
    except OSError:  # it was removed: saving says so
        return "the directory in which zconsole was started"


async def keep_report(c: Checklist, zone: tzinfo | None, now: float) -> Path:
    """Write the report as a new file and return its path. Raises ZconsoleError."""
    when = datetime.fromtimestamp(now, zone)
    text = markdown(c, zone)
    try:
        job = partial(keep_new, text, Path.cwd(), when, "report", "md")
        return await in_daemon_thread(job)
    except OSError as error:
        raise ZconsoleError(f"no report: {error.strerror}") from error
