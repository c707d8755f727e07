# SPDX-License-Identifier: Apache-2.0
"""Environment variables, read with an error that names the variable."""

import os
from collections.abc import Mapping

__all__ = ["Environ", "current", "natural", "text"]

Environ = Mapping[str, str]


def current(environ: Environ | None) -> Environ:
    """The mapping given, or the current environment of this process."""
    return os.environ if environ is None else environ


def text(environ: Environ, name: str) -> str | None:
    """The value of a variable; None if it is missing or empty."""
    value = environ.get(name, "").strip()
    return value or None


def natural(environ: Environ, name: str, source: str, least: int = 0) -> int | None:
    """The integer in a variable; None if it is missing or empty.

    Raises:
      ValueError: the value is not an integer, or is below `least`.
    """
    value = text(environ, name)
    if value is None:
        return None
    if not (value.isascii() and value.isdigit()) or int(value) < least:
        raise ValueError(f"{source}: {name} must be an integer, at least {least}, got {environ[name]!r}")
    return int(value)
