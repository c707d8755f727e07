# SPDX-License-Identifier: Apache-2.0
"""Texts stand out from what is behind them, in light and dark, as the accessibility guidelines ask."""

import re

import pytest

from distinput.reports.markup import colours


def themes() -> dict[str, dict[str, str]]:
    """The variables of both themes, as a browser would read them."""
    light, dark = (dict(re.findall(r"--di-(\w+): (#\w{6});", part)) for part in colours(".di").split("@media")[:2])
    return {"light": light, "dark": dark}


def luminance(colour: str) -> float:
    """Source: WCAG 2.2, relative luminance."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("ink", ["ink", "dim", "blue", "orange", "green", "violet"])
@pytest.mark.parametrize("behind", ["page", "soft", "box"])
def test_texts_can_be_read(theme: str, ink: str, behind: str) -> None:
    a, b = sorted(luminance(themes()[theme][name]) for name in (ink, behind))
    assert (b + 0.05) / (a + 0.05) >= 4.5


def test_both_themes_have_the_same_variables() -> None:
    assert themes()["light"].keys() == themes()["dark"].keys()
    assert themes()["light"] != themes()["dark"]
