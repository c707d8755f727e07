# SPDX-License-Identifier: Apache-2.0
"""HTML of values: what draws it is on a floor above, which says in this table where."""

from collections.abc import Callable

from distinput.core.registry import Registry

__all__ = ["HTML"]

HTML: Registry[Callable[..., str]] = Registry("kind of HTML", {})
"""Kinds of values, and the functions that draw them; `distinput/__init__.py` fills it."""
