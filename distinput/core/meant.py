# SPDX-License-Identifier: Apache-2.0
"""What is said about an unknown name: the known name that was probably meant, or all of them."""

from collections.abc import Callable, Collection

__all__ = ["UnknownNameError", "meant"]

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


class UnknownNameError(AttributeError):
    """An AttributeError whose words are looked up when they are read: Python raises and drops one in many imports.

    Args:
      words: gives the message.
    """

    def __init__(self, words: Callable[[], str]) -> None:
        super().__init__(words)

    def __str__(self) -> str:
        words: Callable[[], str] = self.args[0]
        return words()
