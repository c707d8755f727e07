# SPDX-License-Identifier: Apache-2.0
"""The style of a page can stand inside a page that is HTML and XML."""

import re

from distinput.reports.html import page_style


def test_nothing_in_it_needs_escaping_or_comes_from_elsewhere() -> None:
    style = page_style()
    assert not re.search(r"[<>&]|url\(|@import|http", style)
    assert style.count("{") == style.count("}")


def test_every_variable_that_is_used_has_a_value() -> None:
    style = page_style()
    assert set(re.findall(r"var\((--di-\w+)\)", style)) <= set(re.findall(r"(--di-\w+):", style))
