"""Styles of the shipped themes: readable on every background, and different for each meaning."""

from __future__ import annotations

import colorsys
import itertools

from rich.color import ColorType
from rich.style import Style

from tests.table import rows
from tests.ui.theme.contrast import contrast
from zconsole.ui.theme.files import find_themes
from zconsole.ui.theme.styles import palette
from zconsole.ui.widgets.draw import GROUNDS, ROLES

SHIPPED = find_themes({"HOME": "/nonexistent"}).found
LOOKS = {name: palette(theme) for name, theme in SHIPPED.items()}
COLORED = [name for name, theme in SHIPPED.items() if not theme.ansi]
MEANINGS = ("good", "warning", "error", "key", "spark")
READ = [role for role in ROLES if role != "track"]
NEEDED = {"high-contrast": 7.0}
XTERM = (
    *("#000000", "#cd0000", "#00cd00", "#cdcd00", "#0000ee", "#cd00cd", "#00cdcd", "#e5e5e5"),
    *("#7f7f7f", "#ff0000", "#00ff00", "#ffff00", "#5c5cff", "#ff00ff", "#00ffff", "#ffffff"),
)
"""Default colors of xterm for the sixteen ANSI colors."""


def hexed(color, default):
    if color is None or color.type is ColorType.DEFAULT:
        return default
    if color.type is ColorType.STANDARD:
        return XTERM[color.number]
    return color.get_truecolor().hex


def pair(style):
    """Return foreground and background, as on a dark xterm."""
    front, back = hexed(style.color, "#e5e5e5"), hexed(style.bgcolor, "#000000")
    return (back, front) if style.reverse else (front, back)


def read(style):
    return contrast(*pair(style))


def beside(one, other):
    return contrast(pair(one)[1], pair(other)[1])


@rows("name", SHIPPED)
@rows(("ground", "role"), list(itertools.product(GROUNDS, READ)))
def test_every_role_can_be_read_on_every_ground(name, ground, role):
    assert read(LOOKS[name][ground][role]) >= NEEDED.get(name, 4.5)


def test_the_cursor_of_sixteen_colors_is_one_bar_that_only_trouble_stands_out_of():
    looks = LOOKS["ansi16"]["cursor"]
    grounds = {role: pair(looks[role])[1] for role in ROLES}
    patches = {role for role, ground in grounds.items() if ground != grounds[""]}
    assert patches == {"warning", "error", "badge-warning", "badge-error"}


@rows("name", SHIPPED)
def test_the_cursor_stands_out_from_the_lines_and_the_title_beside_it(name):
    looks = LOOKS[name]
    for other in (looks[""][""], looks["tint"][""], looks[""]["title"], looks[""]["focus"]):
        assert looks["cursor"][""] != other
    assert beside(looks["cursor"][""], looks[""][""]) >= 3
    assert beside(looks["cursor"][""], looks[""]["title"]) >= 3


@rows("name", COLORED)
@rows("ground", GROUNDS)
def test_body_text_is_the_strongest_on_every_ground(name, ground):
    looks = LOOKS[name][ground]
    assert all(read(looks[""]) >= read(looks[role]) for role in ("dim", "notice", "good", "spark"))


@rows("name", SHIPPED)
def test_the_pane_in_focus_stands_out_from_the_others(name):
    looks = LOOKS[name][""]
    assert beside(looks["focus"], looks["title"]) >= 3


@rows("name", SHIPPED)
def test_no_two_grounds_look_alike(name):
    assert len({LOOKS[name][ground][""] for ground in GROUNDS}) == len(GROUNDS)


@rows("name", SHIPPED)
@rows("ground", GROUNDS)
def test_every_role_has_a_look(name, ground):
    assert set(LOOKS[name][ground]) == set(ROLES)
    assert set(palette(SHIPPED[name], no_color=True)[ground]) == set(ROLES)


@rows("name", SHIPPED)
def test_each_meaning_has_a_color_of_its_own(name):
    looks = LOOKS[name][""]
    for one, other in itertools.combinations(("", *MEANINGS[:4], "notice"), 2):
        assert looks[one] != looks[other]


def hue(color):
    red, green, blue = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return colorsys.rgb_to_hsv(red, green, blue)


@rows("name", ["dark", "light", "high-contrast"])
def test_the_hues_of_meanings_lie_apart(name):
    hues = {role: hue(SHIPPED[name].colors[role])[0] for role in MEANINGS[:4]}
    for one, other in itertools.combinations(hues, 2):
        apart = abs(hues[one] - hues[other])
        assert min(apart, 1 - apart) > 0.08, (one, other)


@rows("name", COLORED)
def test_the_past_is_paler_than_progress_and_trouble(name):
    colors = SHIPPED[name].colors
    pale = hue(colors["spark"])[1]
    assert all(pale < hue(colors[role])[1] for role in ("bar", "warning", "error"))


def without(color, red_weight, blue_weight):
    """Return a color as seen without one cone type, roughly (Viénot, Brettel and Mollon 1999)."""
    red, green, blue = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    red, green, blue = (p**2.2 for p in (red, green, blue))
    mixed = red_weight * red + (1 - red_weight) * green
    blue += blue_weight * (red - green)
    return tuple(max(0.0, p) ** (1 / 2.2) for p in (mixed, mixed, blue))


EYES = {"without green cones": (0.29275, -0.02234), "without red cones": (0.11238, 0.00401)}


@rows("eye", EYES)
@rows(
    ("one", "other"), list(itertools.combinations(("good", "notice", "key", "warning", "error"), 2))
)
def test_the_colorblind_theme_tells_meanings_apart_to_every_eye(eye, one, other):
    colors = SHIPPED["colorblind"].colors
    seen, also = (without(colors[role], *EYES[eye]) for role in (one, other))
    assert sum((a - b) ** 2 for a, b in zip(seen, also, strict=True)) ** 0.5 > 0.2


def test_without_color_attributes_tell_roles_and_grounds_apart():
    looks = palette(SHIPPED["dark"], no_color=True)
    every = [style for styles in looks.values() for style in styles.values()]
    assert all(style.color is None and style.bgcolor is None for style in every)
    assert looks[""]["error"] != looks[""][""] != looks[""]["dim"]
    assert looks["cursor"][""].reverse
    assert looks[""][""] == Style()


@rows("looks", [LOOKS["ansi16"], palette(SHIPPED["dark"], no_color=True)])
def test_no_text_is_faint_on_a_cursor_that_reverses(looks):
    assert not [role for role, style in looks["cursor"].items() if style.dim]
    assert looks[""]["dim"].dim
