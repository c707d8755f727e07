# SPDX-License-Identifier: Apache-2.0
"""Whatever is put into an element is read back from it, but for characters that XML has no way to write."""

import xml.etree.ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from distinput.reports.markup import Markup, tag


def plain(text: str) -> str:
    """What a reader of XML gets: line ends are one, and what XML cannot hold is replaced."""
    legal = "".join(c if c in "\t\n\r" or (c >= " " and c not in "\ufffe\uffff") else "\ufffd" for c in text)
    return (
        "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in legal).replace("\r\n", "\n").replace("\r", "\n")
    )


@given(st.text(), st.text())
def test_text_and_attributes_are_read_back(inside: str, value: str) -> None:
    element = ET.fromstring(tag("p", inside, title=value).encode())
    assert (element.text or "") == plain(inside)
    assert element.attrib["title"] == plain(value).replace("\n", " ").replace("\t", " ")


def test_markup_is_not_escaped_again() -> None:
    assert tag("p", tag("b", "1 < 2"), " & ") == "<p><b>1 &lt; 2</b> &amp; </p>"
    assert Markup.join(["<", tag("br")]) == "&lt;<br/>"


def test_only_elements_that_are_void_in_html_or_drawn_close_themselves() -> None:
    assert [tag("div"), tag("td"), tag("br"), tag("rect", x=1)] == [
        "<div></div>",
        "<td></td>",
        "<br/>",
        '<rect x="1"/>',
    ]


def test_names_and_numbers_of_attributes() -> None:
    assert tag("g", class_="a", font_size=1.25, rx=2.0, id=None) == '<g class="a" font-size="1.2" rx="2"></g>'
