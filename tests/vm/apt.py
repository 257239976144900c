"""The host's own apt configuration, which the images' chroots share."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

APT = Path("/etc/apt")

# Settings for reaching the mirror: proxies, certificates, and expiry dates.
_SHARED = re.compile(r'^Acquire::(https?|Check-[\w-]+|ftp)(::\S+)? "[^"]+";$')


def host_mirror(root: Path = APT) -> str | None:
    """Return the host's mirror of Debian itself; None if its apt sources name none.

    Reads one-line and deb822 sources (sources.list(5)). Security and third-party sources are told
    apart by their suites.
    """
    for uri, suites in _sources(root):
        if any(_is_debian(suite) for suite in suites):
            return uri.rstrip("/")
    return None


def shared_settings() -> str:
    """Return the host's apt.conf(5) lines that say how to reach a mirror."""
    dump = subprocess.run(
        ["apt-config", "dump", "Acquire"], capture_output=True, text=True, check=True
    )
    return "".join(f"{line}\n" for line in dump.stdout.splitlines() if _SHARED.match(line))


def _is_debian(suite: str) -> bool:
    """Return whether a suite is a release of Debian proper, by its plain code name or alias."""
    return suite in {
        *("bullseye", "bookworm", "trixie", "forky", "sid"),
        *("oldstable", "stable", "testing", "unstable"),
    }


def _sources(root: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each source's address and suites."""
    parts = root / "sources.list.d"
    for path in [root / "sources.list", *sorted(parts.glob("*.list"))]:
        if path.is_file():
            yield from _one_line_sources(path.read_text())
    for path in sorted(parts.glob("*.sources")):
        yield from _deb822_sources(path.read_text())


def _one_line_sources(text: str) -> Iterator[tuple[str, list[str]]]:
    """Parse sources of the form `deb [options] URI SUITE COMPONENT…`."""
    for line in text.splitlines():
        found = re.match(r"deb\s+(?:\[[^\]]*\]\s+)?(\S+)\s+(\S+)\s", line + " ")
        if found:
            yield found[1], [found[2]]


def _deb822_sources(text: str) -> Iterator[tuple[str, list[str]]]:
    """Parse sources in paragraphs of `Field: value` lines."""
    for paragraph in re.split(r"\n\s*\n", text):
        fields = dict(re.findall(r"^([\w-]+):[ \t]*(.*)$", paragraph, re.MULTILINE))
        kinds = fields.get("Types", "").split()
        if "deb" not in kinds or fields.get("Enabled", "yes").lower() == "no":
            continue
        for uri in fields.get("URIs", "").split():
            yield uri, fields.get("Suites", "").split()
