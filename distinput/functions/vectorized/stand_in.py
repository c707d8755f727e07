# SPDX-License-Identifier: Apache-2.0
"""`StandIn`: what a function gets in the place of one element, and what answers for all elements of a block.

It holds a block [n, *shape] and behaves as an array of that shape does, or as a NumPy number where the shape is (). NumPy's
protocols lead every operation to a rule (`Rules`), which does it for all n elements. What has no rule is refused: above
all whatever would need one value, such as `if`, `int()` and `tolist()`.

Source: `__array_ufunc__` (NEP 13) and `__array_function__` (NEP 18).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn, Protocol

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

# ----------------------------------------------------------------------------
# Why a function is called element by element after all.
# ----------------------------------------------------------------------------


class Refused(BaseException):
    """The function cannot be called for a whole block; the message says why, as a clause after "since".

    It is no `Exception`, so that no handler of the user's swallows it.
    """


class Unfit(BaseException):
    """The values of this block need calls for each element: a warning, an overflow, a zero whose sign depends on the order.

    The next block is tried again.
    """


# ----------------------------------------------------------------------------
# The table of rules: for each function of NumPy, how it is answered for a block.
# ----------------------------------------------------------------------------


FUNCTIONS: dict[Any, Callable[..., Any]] = {}
"""By function: called with the `Rules` and the arguments of the function, of which at least one holds a stand-in."""


def rule(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a rule for these functions."""

    def enter(made: Callable[..., Any]) -> Callable[..., Any]:
        for function in functions:
            FUNCTIONS[function] = made
        return made

    return enter


class Answers(Protocol):
    """What answers for a stand-in; see `Rules`."""

    def ufunc(self, ufunc: Any, method: str, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
        """A ufunc, or one of its methods, called with stand-ins."""

    def function(self, function: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
        """Another function of NumPy called with stand-ins."""

    def measure(
        self, name: str, made: Any, inputs: Sequence[Any], call: Callable[..., Any], weight: int = 1
    ) -> "StandIn":
        """`made`, if calls for single elements give the same bits."""

    def item(self, element: "StandIn", key: Any) -> "StandIn":
        """`element[key]`."""

    def set_item(self, element: "StandIn", key: Any, value: Any) -> None:
        """`element[key] = value`."""

    def power(self, element: "StandIn", exponent: Any) -> Any:
        """`element ** exponent`."""

    def cast(self, element: "StandIn", dtype: Any, copy: bool) -> "StandIn":
        """`element.astype(dtype)`."""


class StandIn(NDArrayOperatorsMixin):
    """One element of a block, for all of them.

    Args:
      block: [n, *shape].
      rules: how operations are answered.
      own: nobody else holds the memory, so that it may be changed in place.
    """

    __slots__ = ("block", "own", "rules")
    __array_priority__ = 1000

    def __init__(self, block: Any, rules: Answers, *, own: bool = False) -> None:
        if block.dtype.kind not in "biuf" or block.dtype.itemsize > 8 or not block.dtype.isnative:
            raise Refused(f"it computes {block.dtype}; only booleans, integers and floats of up to 64 bits have rules")
        self.block, self.rules, self.own = block, rules, own

    @property
    def shape(self) -> tuple[int, ...]:
        """Of an element."""
        shape: tuple[int, ...] = self.block.shape[1:]
        return shape

    @property
    def ndim(self) -> int:
        """Of an element."""
        return int(self.block.ndim) - 1

    @property
    def dtype(self) -> Any:
        """Of the values."""
        return self.block.dtype

    @property
    def size(self) -> int:
        """Values of an element."""
        return int(np.prod(self.shape))

    @property
    def T(self) -> "StandIn":  # noqa: N802 - NumPy's name
        """All axes of an element reversed."""
        return self.transpose()

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            raise Refused("it iterates over a number")
        return iter([self[i] for i in range(len(self))])

    def _of_one(self, *_: Any) -> NoReturn:
        raise Refused("what it does next depends on a value of the element")

    __bool__ = __int__ = __float__ = __complex__ = __index__ = __round__ = __floor__ = __ceil__ = __trunc__ = _of_one
    __contains__ = item = tolist = tobytes = _of_one

    def _as_text(self, *_: Any) -> NoReturn:
        raise Refused("it makes text of the element")

    __str__ = __repr__ = __format__ = _as_text

    def __hash__(self) -> int:
        raise Refused("it looks something up by a value of the element")

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise Refused("it gives the element to code that has no rule")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return self.rules.ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, _: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
        return self.rules.function(function, args, options)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)  # other ways into NumPy than `__array__`, which refuses
        raise Refused(f"it uses .{name} of the element, which has no rule")

    def __getitem__(self, key: Any) -> "StandIn":
        return self.rules.item(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.rules.set_item(self, key, value)

    def __pow__(self, exponent: Any) -> Any:
        return self.rules.power(self, exponent)

    def lent(self, block: Any) -> "StandIn":
        """A view of this one: from now on neither may be changed in place."""
        self.own = False
        return StandIn(block, self.rules)

    def astype(self, dtype: Any, copy: bool = True) -> "StandIn":
        """Each value converted."""
        return self.rules.cast(self, np.dtype(dtype), copy)

    def copy(self) -> "StandIn":
        """The same values in memory of its own."""
        return StandIn(self.block.copy(), self.rules, own=True)

    def reshape(self, *shape: Any) -> "StandIn":
        """The values of an element in another shape."""
        wanted = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
        known = int(np.prod([d for d in wanted if d != -1]))
        sizes = [self.size // max(known, 1) if d == -1 else d for d in wanted]
        if int(np.prod(sizes)) != self.size:
            raise ValueError(f"cannot reshape array of size {self.size} into shape {wanted}")
        return self.lent(self.block.reshape(len(self.block), *sizes))

    def ravel(self) -> "StandIn":
        """The values of an element as a vector."""
        return self.reshape(self.size)

    def flatten(self) -> "StandIn":
        """A copy of `ravel`."""
        return self.ravel().copy()

    def transpose(self, *axes: Any) -> "StandIn":
        """The axes of an element in another order; reversed if none is given."""
        order: Any = axes[0] if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], tuple | list)) else axes
        order = order or range(self.ndim - 1, -1, -1)
        return self.lent(self.block.transpose(0, *[axis % self.ndim + 1 for axis in order]))

    def squeeze(self, axis: int | None = None) -> "StandIn":
        """An element without axes of size 1."""
        return self.rules.function(np.squeeze, (self,), {"axis": axis})  # type: ignore[no-any-return]

    def swapaxes(self, a: int, b: int) -> "StandIn":
        """Two axes of an element exchanged."""
        return self.lent(self.block.swapaxes(a % self.ndim + 1, b % self.ndim + 1))

    def clip(self, low: Any = None, high: Any = None) -> Any:
        """Values below `low` are `low`, above `high` they are `high`."""
        return self.rules.function(np.clip, (self, low, high), {})

    def round(self, decimals: int = 0) -> Any:
        """Each value rounded."""
        return self.rules.function(np.round, (self, decimals), {})

    def take(self, indices: Any, axis: int | None = None) -> Any:
        """Values at these places."""
        return self.rules.function(np.take, (self, indices), {"axis": axis})

    def dot(self, other: Any) -> Any:
        """As `numpy.dot`."""
        return self.rules.function(np.dot, (self, other), {})


def _reduction(name: str) -> Any:
    function = getattr(np, name)

    def method(self: StandIn, axis: Any = None, **options: Any) -> Any:
        return self.rules.function(function, (self,), {"axis": axis, **options})

    method.__name__, method.__doc__ = name, f"As `numpy.{name}` of an element."
    return method


for _name in ("all", "any", "argmax", "argmin", "cumsum", "max", "mean", "min", "prod", "std", "sum", "var"):
    setattr(StandIn, _name, _reduction(_name))


def rank(value: Any) -> int:
    """The number of dimensions of an element, or of a constant."""
    return value.ndim if isinstance(value, StandIn) else np.ndim(value)


def lifted(value: Any, ndim: int) -> Any:
    """A block whose elements have `ndim` dimensions, so that blocks broadcast as their elements do; a constant as it is."""
    if not isinstance(value, StandIn):
        return value
    return value.block.reshape(len(value.block), *(1,) * (ndim - value.ndim), *value.shape)
