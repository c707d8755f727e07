# SPDX-License-Identifier: Apache-2.0
"""Arrays that are the same for all elements, and may be indexed by a stand-in: `table[x]`."""

from typing import Any

import numpy as np

from distinput.functions.vectorized.arrangement import picked
from distinput.functions.vectorized.rules import Rules
from distinput.functions.vectorized.stand_in import StandIn

__all__ = ["ConstantArray", "table_of"]


def table_of(array: Any, rules: Rules) -> "ConstantArray":
    """A view of an array that stand-ins may index."""
    made = array.view(ConstantArray)
    made.rules = rules
    return made  # type: ignore[no-any-return]


class ConstantArray(np.ndarray[Any, Any]):
    """An array that is the same for all elements."""

    rules: Rules

    def __array_finalize__(self, source: Any) -> None:
        rules = getattr(source, "rules", None)
        if rules is not None:
            self.rules = rules

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, StandIn) or (isinstance(key, tuple) and any(isinstance(part, StandIn) for part in key)):
            return picked(self.rules, self, key)
        return super().__getitem__(key)
