"""The one decoder: raw forms in, the immutable model out."""

from __future__ import annotations

from zconsole.zfs.decode.decoder import decode

__all__ = ["decode"]
