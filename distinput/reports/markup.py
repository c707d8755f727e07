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

_LIGHT = {
    "page": "#ffffff",
    "soft": "#f6f8fa",
    "box": "#ffffff",
    "line": "#c4ccd5",
    "ink": "#1f2328",
    "dim": "#57606a",
    "blue": "#0b6bcb",
    "orange": "#b8500a",
    "green": "#12744a",
    "violet": "#7a3fb0",
    "grey": "#b6bec8",
}
_DARK = {
    "page": "#0e131a",
    "soft": "#161c25",
    "box": "#1a212b",
    "line": "#465160",
    "ink": "#e8edf2",
    "dim": "#a3afbb",
    "blue": "#59a5f5",
    "orange": "#f29a4e",
    "green": "#4cc38a",
    "violet": "#bd93f0",
    "grey": "#566270",
}

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
    dark = _variables(_DARK)
    elsewhere = ", ".join(f"{where} {root}" for where in _NOTEBOOKS)
    return (
        f"{root} {{ {_variables(_LIGHT)} color-scheme: light dark; }}\n"
        f"@media (prefers-color-scheme: dark) {{ {root} {{ {dark} }} }}\n"
        f"{elsewhere} {{ {dark} }}\n"
    )


def _variables(values: dict[str, str]) -> str:
    return " ".join(f"--di-{name}: {value};" for name, value in values.items())


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
