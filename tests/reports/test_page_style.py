# SPDX-License-Identifier: Apache-2.0
"""The style of a page can stand inside a page that is HTML and XML."""

import re

from distinput.reports.html import page_style
from distinput.reports.plots import WIDTH


def test_nothing_in_it_needs_escaping_or_comes_from_elsewhere() -> None:
    style = page_style()
    assert not re.search(r"[<>&]|url\(|@import|http", style)
    assert style.count("{") == style.count("}")


def test_every_variable_that_is_used_has_a_value() -> None:
    style = page_style()
    assert set(re.findall(r"var\((--di-\w+)\)", style)) <= set(re.findall(r"(--di-\w+):", style))


def test_labels_of_plots_keep_their_size_on_a_phone() -> None:
    """A plot is not made narrower than its units, so that 11 of them are 11 pixels; it is moved sideways."""
    (least,) = re.findall(r"\.di-wide \.di-plot { min-width: (\d+)px; }", page_style())
    (size,) = re.findall(r"\.di-plot \.di-label { font-size: (\d+)px", page_style())
    assert int(size) * int(least) / WIDTH >= 11
    assert ".di-wide { overflow-x: auto;" in page_style()
