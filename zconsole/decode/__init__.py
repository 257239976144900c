"""The one decoder: raw forms in, the immutable model out."""

from __future__ import annotations

from datetime import UTC, tzinfo

from zconsole.model import Sample, Trouble
from zconsole.raw import Raw


def decode(raw: Raw, zone: tzinfo = UTC) -> tuple[Sample | Trouble, ...]:
    """Every pool in a raw form: libzfs before ``status`` before ``text``.

    ``zone`` reads the zoneless dates of text, unless the raw form has ``utc_offset``.
    Raises NotUnderstoodError when no form is there or the form is no ZFS output.
    """
    raise NotImplementedError
