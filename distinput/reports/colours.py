# SPDX-License-Identifier: Apache-2.0
"""Colours and fonts of pictures and pages, light and dark; readable also for eyes that tell red and green not apart."""

__all__ = ["MONOSPACE", "SANS", "colours"]

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
