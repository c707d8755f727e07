# SPDX-License-Identifier: Apache-2.0
"""What is said of names of TensorFlow that are not there: sections of the documentation, and members of classes."""

from typing import Any

__all__ = ["CHANGE", "EMBEDDING", "GRAPHS", "MEMBERS", "PAGE", "Cure", "declined", "told"]

Cure = tuple[str, str]
"""What to do instead, and the section of the documentation that says more."""

CHANGE = "What to change"
EMBEDDING = "TPU embedding"
GRAPHS = "Graph mode"

PAGE = "docs/tensorflow.md"
"""The page that has these sections."""

_TRACED = "there are no graphs through which a spec takes values apart: leave it out", GRAPHS
_PROTO = "a spec is a Python object: pickle it, or print it", GRAPHS

MEMBERS: dict[str, dict[str, Cure]] = {
    "TypeSpec": {
        "cast": _TRACED,
        "experimental_as_proto": _PROTO,
        "experimental_from_proto": _PROTO,
        "experimental_type_proto": _PROTO,
        "flatten": _TRACED,
        "from_tensors": _TRACED,
        "placeholder_value": _TRACED,
        "to_tensors": _TRACED,
    },
}
"""By the name of the class; classes derived from it have the same. Those of `distribute` are in `data/absent.py`."""


def told(cure: Cure) -> str:
    """What to do instead, with the page that says more.

    >>> told(("use NumPy", CHANGE))
    'use NumPy ("What to change" in docs/tensorflow.md)'
    """
    what, section = cure
    return f'{what} ("{section}" in {PAGE})'


def declined(cls: type, name: str, members: dict[str, dict[str, Cure]] = MEMBERS) -> AttributeError:
    """The error for a member that the objects of a class do not have.

    Args:
      cls: the class.
      name: the missing member.
      members: the table of those that have a reason.
    """
    start = f"{cls.__name__!r} object has no attribute {name!r}"
    for base in cls.__mro__:
        cure: Any = members.get(base.__name__, {}).get(name)
        if cure is not None:
            return AttributeError(f"{start}: {told(cure)}")
    return AttributeError(start)
