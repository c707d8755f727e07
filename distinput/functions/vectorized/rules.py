# SPDX-License-Identifier: Apache-2.0
"""`Rules`: answers for stand-ins, from the table of rules."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from distinput.functions.vectorized import arrangement, elementwise
from distinput.functions.vectorized.stand_in import FUNCTIONS, Refused, StandIn

__all__ = ["Rules", "same_bits"]

_VALUES, _ROWS, _LATER = 1 << 13, 512, 2
"""A measured operation is compared for so many values before it is trusted, for at most so many elements of a block; later for
so many elements of each block."""


class Rules:
    """How operations on stand-ins are answered.

    Args:
      measured: whether operations may be answered that are not exact by construction: the first results of each, for a shape
        and dtype, are compared with calls for single elements, and a few in each later block.
    """

    def __init__(self, *, measured: bool) -> None:
        self.measured = measured
        self._compared: dict[Any, int] = {}

    def ufunc(self, ufunc: Any, method: str, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
        """A ufunc, or one of its methods, called with stand-ins."""
        if method == "__call__" and ufunc is np.matmul:
            return self.function(ufunc, inputs, options)
        if method == "__call__":
            return elementwise.applied(self, ufunc, inputs, dict(options))
        if method == "reduce" and ufunc in elementwise.OF_UFUNCS:
            return self.function(elementwise.OF_UFUNCS[ufunc], inputs, options)
        raise Refused(f"np.{ufunc.__name__}.{method} has no rule")

    def function(self, function: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
        """Another function of NumPy called with stand-ins."""
        answer = FUNCTIONS.get(function)
        if answer is None:
            raise Refused(f"np.{getattr(function, '__name__', function)} has no rule")
        try:
            return answer(self, *args, **options)
        except TypeError as error:
            raise Refused(f"np.{function.__name__} is called in a way that has no rule ({error})") from error

    def item(self, element: StandIn, key: Any) -> StandIn:
        """`element[key]`."""
        return arrangement.item(self, element, key)

    def set_item(self, element: StandIn, key: Any, value: Any) -> None:
        """`element[key] = value`."""
        arrangement.set_item(element, key, value)

    def power(self, element: StandIn, exponent: Any) -> Any:
        """`element ** exponent`."""
        return elementwise.power(self, element, exponent)

    def cast(self, element: StandIn, dtype: Any, copy: bool) -> StandIn:
        """`element.astype(dtype)`."""
        return elementwise.cast(self, element, dtype, copy)

    def measure(
        self, name: str, made: Any, inputs: Sequence[Any], call: Callable[..., Any], weight: int = 1
    ) -> StandIn:
        """`made`, if calls for single elements give the same bits.

        Args:
          name: of the operation.
          made: its results for all elements.
          inputs: stand-ins and constants.
          call: the operation for one element.
          weight: for how many values one counts; a sum shows at once where it is added up in another order.

        Raises:
          Refused: they do not, or nothing may be measured.
        """
        if not self.measured:
            raise Refused(f"np.{name} is not exact by construction; vectorize=True measures whether it is here")
        shapes = [(v.shape, v.dtype, v.block.strides[1:]) if isinstance(v, StandIn) else np.shape(v) for v in inputs]
        key = (name, str(shapes))
        known = self._compared.get(key, 0)
        size = max(1, made.size // max(1, len(made))) * weight
        rows = min(len(made), _ROWS, -(-(_VALUES - known) // size)) if known < _VALUES else _LATER
        for row in np.linspace(0, len(made) - 1, min(len(made), max(rows, _LATER))).astype(int).tolist():
            alone = call(*[value.block[row] if isinstance(value, StandIn) else value for value in inputs])
            if not same_bits(alone, made[row]):
                raise Refused(f"np.{name} gives other last digits for a block than for one element")
            known += size
        self._compared[key] = known
        return StandIn(made, self, own=True)


def same_bits(a: Any, b: Any) -> bool:
    """Whether two arrays or numbers are the same to the bit; any NaN equals any other."""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.tobytes() == b.tobytes():
        return True
    if a.dtype.kind != "f":
        return False
    numbers = ~(np.isnan(a) & np.isnan(b))
    return bool(a[numbers].tobytes() == b[numbers].tobytes())
