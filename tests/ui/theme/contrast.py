"""Contrast of colors, computed as WCAG 2 defines it."""

from __future__ import annotations


def luminance(color):
    value = color.lstrip("#")
    parts = (int(value[i : i + 2], 16) / 255 for i in (0, 2, 4))
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    """Return the contrast of ``#rrggbb`` colors: 1 if equal, up to 21 for black on white."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)
