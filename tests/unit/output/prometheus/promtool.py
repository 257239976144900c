"""Prometheus' own tool (Debian's package prometheus); tests are skipped if it is missing."""

from __future__ import annotations

import shutil
import subprocess

import pytest

TOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(TOOL is None, reason="promtool is missing")


def promtool(*words: str, said: str = "") -> tuple[int, str]:
    """Run promtool; returns its exit status and output."""
    done = subprocess.run(
        [TOOL or "promtool", *words], input=said, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr
