# SPDX-License-Identifier: Apache-2.0
"""Plots are well-formed, show what they are given to scale, and survive having nothing to show."""

import pytest

from distinput.reports.plots import PLOT_STYLE, bars, distribution, over_counts, over_time
from tests.reports.pictures import attribute_numbers, parsed, words_of

SVG = "{http://www.w3.org/2000/svg}"


def test_bars_are_to_scale() -> None:
    root = parsed(bars([("a", 10.0, "ten"), ("<b>", 5.0, "five")], "lengths"))
    widths = [attribute_numbers(rect, "width")[0] for rect in root.iter(f"{SVG}rect")]
    assert widths[0] == 2 * widths[1] > 0
    assert "<b>" in words_of(root)


def test_columns_are_to_scale() -> None:
    root = parsed(distribution([0.75, 0.25, 0.0], [0.5, 0.3, 0.2], ("0", "n"), "travel"))
    heights = [attribute_numbers(rect, "height")[0] for rect in root.iter(f"{SVG}rect")]
    assert heights[0] > 2.9 * heights[1]
    assert heights[2] == 0


def test_a_curve_goes_through_the_largest_numbers() -> None:
    points = [(i / 10_000, float(i == 5000)) for i in range(10_000)]
    root = parsed(over_time(points, 1.0, str, "peaks"))
    assert "at most 1.0" in words_of(root)
    curve = root.findall(f"{SVG}path")[1].attrib["d"]
    assert " 16.0" in curve, "the peak reaches the top though most points are left out"
    assert len(curve) < 20_000


def test_times_over_counts_stand_in_powers_of_two() -> None:
    root = parsed(
        over_counts([(1, 8.0, 4.0, "in<put"), (2, 4.0, 2.0, "in"), (8, 1.0, 1.0, "step")], ("a", "b"), "passes")
    )
    circles = [attribute_numbers(circle, "cx", "cy") for circle in root.iter(f"{SVG}circle")]
    (x1, y1), (x2, y2), (x8, y8) = circles
    assert x8 - x1 == pytest.approx(3 * (x2 - x1), abs=1), "one doubling and two"
    assert y8 - y1 == pytest.approx(3 * (y2 - y1), abs=1), "a half and two more halves"
    assert y1 < y2, "longer times stand above"
    assert "in<put" in words_of(root)
    assert parsed(over_counts([(4, 0.0, 0.0, "one")], ("a", "b"), "one")) is not None


def test_nothing_to_show() -> None:
    assert parsed(over_counts([], ("", ""), "nothing")) is not None
    assert parsed(over_time([], 0.0, str, "nothing")) is not None
    assert parsed(bars([], "nothing")) is not None
    assert parsed(distribution([], [], ("", ""), "nothing")) is not None
    assert ".di-plot" in PLOT_STYLE
