# SPDX-License-Identifier: Apache-2.0
"""A format by its name and options."""

from typing import Any

from distinput.formats import FORMATS
from distinput.formats.format import Format

__all__ = ["format_named"]

_INDEXED = "indexed_"
"""What the names of formats whose files have an index begin with."""


def format_named(name: str, index: bool | str = False, **options: Any) -> Format:
    """The format of a name.

    Args:
      name: of a format of `FORMATS`.
      index: true for files with an index; a path is a folder to keep the indices in.
      **options: those of the format.

    Raises:
      ValueError: an unknown format, or one without index.
      TypeError: unknown options, or the name is not that of a format.

    >>> format_named("text").name, format_named("text", "indices").index_folder
    ('text', 'indices')
    """
    if index and _INDEXED + name not in FORMATS:
        FORMATS.find(name)
        known = [known.removeprefix(_INDEXED) for known in FORMATS if known.startswith(_INDEXED)]
        raise ValueError(f"{name}: files of this format have no index; there is one for {', '.join(known)}")
    if index:
        options["index_folder"] = None if index is True else str(index)
    found: Any = FORMATS.find(_INDEXED + name if index else name)
    made = getattr(found, "of_options", found)(**options)  # what was registered may be a function
    if not isinstance(made, Format):
        raise TypeError(f"{name!r} is registered as a format, but makes {made!r}, which is no Format")
    return made
