# SPDX-License-Identifier: Apache-2.0
"""Reading pictures and pages as XML, and names that would break them if they were not escaped."""

import xml.etree.ElementTree as ET
from xml.etree.ElementTree import Element

from hypothesis import strategies as st

__all__ = ["HOSTILE", "attribute_numbers", "parsed", "words_of"]

HOSTILE = st.one_of(
    st.text(min_size=1, max_size=30),
    st.sampled_from(
        ["</title><script>alert(1)</script>", "\"' onload='x", "]]>", "a\x00b\x1b[31m", "&amp;", "`code`;end", "\ud800"]
    ),
)
"""Names of steps that a careless writer would let through."""


def parsed(text: str) -> Element:
    """The root of a text that must be well-formed XML, and encode as UTF-8."""
    return ET.fromstring(text.encode("utf-8"))


def words_of(root: Element) -> str:
    """All text that is shown, without style sheets."""
    parts: list[str] = []

    def collect(element: Element) -> None:
        if element.tag.split("}")[-1] != "style":
            parts.append(element.text or "")
            for child in element:
                collect(child)
                parts.append(child.tail or "")

    collect(root)
    return " ".join(parts)


def attribute_numbers(element: Element, *names: str) -> list[float]:
    """Attributes of an element that are numbers."""
    return [float(element.attrib[name]) for name in names]
