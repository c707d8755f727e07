# SPDX-License-Identifier: Apache-2.0
"""Elements of HTML and SVG, well formed as XML too; text is escaped unless it is markup already."""

import re
from collections.abc import Iterable
from html import escape

__all__ = ["Markup", "tag"]

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_VOID = frozenset({"br", "circle", "col", "hr", "img", "line", "meta", "path", "polygon", "polyline", "rect", "wbr"})


class Markup(str):
    """Text that is HTML or SVG already, and is not escaped again."""

    __slots__ = ()

    @classmethod
    def of(cls, text: object) -> "Markup":
        """Markup that shows a text.

        >>> Markup.of("a < b & c")
        'a &lt; b &amp; c'
        """
        if isinstance(text, Markup):
            return text
        return cls(escape(_NOT_XML.sub("\ufffd", str(text))))

    @classmethod
    def join(cls, parts: Iterable[object], between: str = "") -> "Markup":
        """Parts one after the other."""
        return cls(between.join([cls.of(part) for part in parts]))


def tag(name: str, /, *inside: object, **attributes: object) -> Markup:
    """An element.

    Args:
      name: of the element.
      *inside: text, which is escaped, and markup.
      **attributes: `class_` is `class`, an underscore within a name is a hyphen; those that are None are left out.

    >>> tag("text", "1 < 2", x=3, class_="small", font_size="9")
    '<text x="3" class="small" font-size="9">1 &lt; 2</text>'
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{Markup.of(_short(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID and not inside:
        return Markup(f"<{name}{written}/>")
    return Markup(f"<{name}{written}>{Markup.join(inside)}</{name}>")


def _short(value: object) -> object:
    """A number with one digit behind the point, for places in pictures."""
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else value
