# SPDX-License-Identifier: Apache-2.0
"""What is said about an unknown name: the known name that was probably meant, or all of them."""

from collections.abc import Collection

__all__ = ["meant"]

_ALIKE = 0.6
"""How similar a known name must be to be suggested."""


def meant(name: str, known: Collection[str], they: str) -> str:
    """A suggestion for a name that is not known.

    Args:
      name: what was written.
      known: the names that exist.
      they: what goes before the list of them where none is similar.

    >>> meant("deterministc", ["deterministic", "threading"], "it has")
    'did you mean deterministic?'
    >>> meant("threads", ["deterministic"], "it has")
    'it has deterministic'
    """
    from difflib import get_close_matches  # for messages alone

    near = get_close_matches(name, known, 1, _ALIKE)
    return f"did you mean {near[0]}?" if near else f"{they} {', '.join(known)}"
