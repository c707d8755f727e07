# SPDX-License-Identifier: Apache-2.0
"""Methods of a dataset from the extensions of installed packages, which are loaded when an unknown one is named."""

from typing import Any

from distinput.core.extensions import failures, load_extensions
from distinput.core.meant import meant

__all__ = ["method_of_an_extension"]


def method_of_an_extension(dataset: Any, name: str) -> Any:
    """Load the extensions and look up an attribute that a dataset lacks.

    Raises:
      AttributeError: it still lacks it.
    """
    kind = type(dataset)
    if not name.startswith("_"):
        if load_extensions() and hasattr(kind, name):
            return getattr(dataset, name)
        known = sorted(known for known in dir(kind) if not known.startswith("_"))
        raise AttributeError(
            f"{kind.__name__} has no method {name!r}; {meant(name, known, 'it has')}{failures()}",
            name=name,
            obj=dataset,
        )
    raise AttributeError(f"{kind.__name__} has no attribute {name!r}", name=name, obj=dataset)
