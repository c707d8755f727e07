# SPDX-License-Identifier: Apache-2.0
"""Elements of HTML and SVG, and the colours and fonts of pictures and pages."""

import re
from collections.abc import Iterable
from html import escape

# ----------------------------------------------------------------------------
# Colours and fonts of pictures and pages, light and dark; readable also for eyes that tell red and green not apart.
# ----------------------------------------------------------------------------


SANS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'DejaVu Sans', Arial, sans-serif"
MONOSPACE = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace"

_COLOURS = {
    "page": ("#ffffff", "#0e131a"),
    "soft": ("#f6f8fa", "#161c25"),
    "box": ("#ffffff", "#1a212b"),
    "line": ("#c4ccd5", "#465160"),
    "ink": ("#1f2328", "#e8edf2"),
    "dim": ("#57606a", "#a3afbb"),
    "blue": ("#0b6bcb", "#59a5f5"),
    "orange": ("#b8500a", "#f29a4e"),
    "green": ("#12744a", "#4cc38a"),
    "violet": ("#7a3fb0", "#bd93f0"),
    "grey": ("#b6bec8", "#566270"),
}
"""Light and dark, by the name of the variable."""

_NOTEBOOKS = (
    "html[theme=dark]",
    "body.vscode-dark",
    "body[data-jp-theme-light='false']",
    "[data-md-color-scheme='slate']",
)
"""How notebooks and sites say that they are dark, whatever the system says."""


def colours(root: str) -> str:
    """Style sheet rules that give `root` the colours as variables, such as `--di-ink`.

    Args:
      root: a selector, such as `.di`.
    """
    light, dark = (" ".join(f"--di-{name}: {each[dark]};" for name, each in _COLOURS.items()) for dark in (0, 1))
    elsewhere = ", ".join(f"{where} {root}" for where in _NOTEBOOKS)
    return (
        f"{root} {{ {light} color-scheme: light dark; }}\n"
        f"@media (prefers-color-scheme: dark) {{ {root} {{ {dark} }} }}\n"
        f"{elsewhere} {{ {dark} }}\n"
    )


# ----------------------------------------------------------------------------
# Elements of HTML and SVG, well formed as XML too; text is escaped unless it is markup already.
# ----------------------------------------------------------------------------


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
    def join(cls, parts: Iterable[object]) -> "Markup":
        """Parts one after the other."""
        return cls("".join([cls.of(part) for part in parts]))


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


def quiet(text: str) -> Markup:
    """A paragraph that few need."""
    return tag("p", text, class_="di-quiet")


def wide(inside: Markup) -> Markup:
    """What is scrolled where a page is narrow."""
    return tag("div", inside, class_="di-wide")


def _short(value: object) -> object:
    """A number with one digit behind the point, for places in pictures."""
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else value
