# SPDX-License-Identifier: Apache-2.0
"""Operators of distributed values: refused for per-replica values, applied to the local copy of mirrored ones."""

import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

__all__ = ["LocalOperators", "WithoutOperators"]

_BINARY = (
    "add",
    "and",
    "divmod",
    "floordiv",
    "lshift",
    "matmul",
    "mod",
    "mul",
    "or",
    "pow",
    "rshift",
    "sub",
    "truediv",
    "xor",
)
_UNARY = ("abs", "invert", "neg", "pos", "ge", "gt", "le", "lt")  # and comparisons, tried on either operand
_CONVERSIONS = ("complex", "float", "int", "round")


class WithoutOperators:
    """A value that differs from replica to replica: every operator, `+=` included, raises and names the cure."""

    __slots__ = ()
    __array_ufunc__ = None  # so that `array + value` calls this class instead of making an array of objects

    def __format__(self, spec: str) -> str:
        return _refused("__format__")(self) if spec else str(self)


def _refused(name: str) -> Callable[..., Any]:
    def refused(self: object, *_: object) -> Any:
        kind = type(self).__name__.removeprefix("Partial")
        raise TypeError(
            f"{kind} has no single value to compute with ({name}): compute in the function given to `strategy.run`, or make "
            "one value of it with `strategy.reduce` or `strategy.gather` first"
        )

    refused.__name__ = refused.__qualname__ = name
    return refused


for _name in [*_BINARY, *(f"r{name}" for name in _BINARY), *_UNARY, *_CONVERSIONS]:
    setattr(WithoutOperators, f"__{_name}__", _refused(f"__{_name}__"))


class LocalOperators:
    """A value that is the same on every replica: operators apply to the local copy and return a plain value.

    After `x += 1`, `x` is a plain value too, as in TensorFlow: the copies of the other replicas cannot be changed from
    here.
    """

    __slots__ = ()
    values: tuple[Any, ...]

    if TYPE_CHECKING:  # set below, for all of them alike

        def __add__(self, other: Any) -> Any: ...
        def __radd__(self, other: Any) -> Any: ...
        def __and__(self, other: Any) -> Any: ...
        def __rand__(self, other: Any) -> Any: ...
        def __divmod__(self, other: Any) -> Any: ...
        def __rdivmod__(self, other: Any) -> Any: ...
        def __floordiv__(self, other: Any) -> Any: ...
        def __rfloordiv__(self, other: Any) -> Any: ...
        def __lshift__(self, other: Any) -> Any: ...
        def __rlshift__(self, other: Any) -> Any: ...
        def __matmul__(self, other: Any) -> Any: ...
        def __rmatmul__(self, other: Any) -> Any: ...
        def __mod__(self, other: Any) -> Any: ...
        def __rmod__(self, other: Any) -> Any: ...
        def __mul__(self, other: Any) -> Any: ...
        def __rmul__(self, other: Any) -> Any: ...
        def __or__(self, other: Any) -> Any: ...
        def __ror__(self, other: Any) -> Any: ...
        def __pow__(self, other: Any) -> Any: ...
        def __rpow__(self, other: Any) -> Any: ...
        def __rshift__(self, other: Any) -> Any: ...
        def __rrshift__(self, other: Any) -> Any: ...
        def __sub__(self, other: Any) -> Any: ...
        def __rsub__(self, other: Any) -> Any: ...
        def __truediv__(self, other: Any) -> Any: ...
        def __rtruediv__(self, other: Any) -> Any: ...
        def __xor__(self, other: Any) -> Any: ...
        def __rxor__(self, other: Any) -> Any: ...
        def __eq__(self, other: object) -> Any: ...
        def __ne__(self, other: object) -> Any: ...
        def __ge__(self, other: Any) -> Any: ...
        def __gt__(self, other: Any) -> Any: ...
        def __le__(self, other: Any) -> Any: ...
        def __lt__(self, other: Any) -> Any: ...
        def __abs__(self) -> Any: ...
        def __invert__(self) -> Any: ...
        def __neg__(self) -> Any: ...
        def __pos__(self) -> Any: ...

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if any(isinstance(x, LocalOperators) for x in kwargs.get("out", ())):
            raise TypeError(
                f"numpy.{ufunc.__name__}: out must be an array, got a {type(self).__name__}, whose copies on other replicas "
                "would stay as they are"
            )
        given = [_local(x) for x in inputs]
        plain = _OF_UFUNC.get(ufunc) if method == "__call__" and not kwargs else None
        if plain is not None and any(hasattr(x, "at") for x in given):
            return plain(*given)  # JAX's arrays know the operators, not NumPy's functions
        return getattr(ufunc, method)(*given, **kwargs)

    def _here(self) -> Any:
        """The local copy."""
        return self.values[0]

    def __bool__(self) -> bool:
        return bool(self._here())

    def __complex__(self) -> complex:
        return complex(self._here())

    def __float__(self) -> float:
        return float(self._here())

    def __format__(self, spec: str) -> str:
        return format(self._here(), spec) if spec else str(self)

    def __getitem__(self, key: Any) -> Any:
        return self._here()[key]

    def __index__(self) -> int:
        return operator.index(self._here())

    def __int__(self) -> int:
        return int(self._here())

    def __iter__(self) -> Iterator[Any]:
        return iter(self._here())

    def __len__(self) -> int:
        return len(self._here())

    def __round__(self, digits: int | None = None) -> Any:
        return round(self._here(), digits)


def _local(value: Any) -> Any:
    return value._here() if isinstance(value, LocalOperators) else value


def _applied(function: Callable[..., Any]) -> Callable[..., Any]:
    def applied(self: LocalOperators, *others: Any) -> Any:
        return function(self._here(), *[_local(x) for x in others])

    return applied


def _reflected(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def reflected(self: LocalOperators, other: Any) -> Any:
        return function(_local(other), self._here())

    return reflected


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: divmod if name == "divmod" else getattr(operator, f"__{name}__") for name in _BINARY
}
_COMPARISONS = ("eq", "ge", "gt", "le", "lt", "ne")
_OF_UFUNC: dict[np.ufunc, Callable[..., Any]] = {
    getattr(np, ufunc): getattr(operator, f"__{name}__")
    for name, ufunc in (
        ("add", "add"),
        ("and", "bitwise_and"),
        ("eq", "equal"),
        ("floordiv", "floor_divide"),
        ("ge", "greater_equal"),
        ("gt", "greater"),
        ("le", "less_equal"),
        ("lshift", "left_shift"),
        ("lt", "less"),
        ("matmul", "matmul"),
        ("mod", "remainder"),
        ("mul", "multiply"),
        ("ne", "not_equal"),
        ("or", "bitwise_or"),
        ("pow", "power"),
        ("rshift", "right_shift"),
        ("sub", "subtract"),
        ("truediv", "true_divide"),
        ("xor", "bitwise_xor"),
    )
}
for _name, _function in _FUNCTIONS.items():
    setattr(LocalOperators, f"__{_name}__", _applied(_function))
    setattr(LocalOperators, f"__r{_name}__", _reflected(_function))
    if _name != "divmod":
        setattr(LocalOperators, f"__i{_name}__", _applied(_function))
for _name in (*_COMPARISONS, "abs", "invert", "neg", "pos"):
    setattr(LocalOperators, f"__{_name}__", _applied(getattr(operator, f"__{_name}__")))
