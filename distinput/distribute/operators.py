# SPDX-License-Identifier: Apache-2.0
"""Operators of distributed values: refused for per-replica values, applied to the local copy of mirrored ones."""

import operator
from collections.abc import Callable, Iterator
from typing import Any

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


class WithoutOperators:
    """A value that differs from replica to replica: every operator, `+=` included, raises and names the cure."""

    __slots__ = ()
    __array_ufunc__ = None  # so that `array + value` calls this class instead of making an array of objects


def _refused(name: str) -> Callable[..., Any]:
    def refused(self: object, *_: object) -> Any:
        kind = type(self).__name__.removeprefix("Partial")
        raise TypeError(
            f"{kind} has no single value to compute with ({name}): compute in the function given to `strategy.run`, or make "
            "one value of it with `strategy.reduce` or `strategy.gather` first"
        )

    refused.__name__ = refused.__qualname__ = name
    return refused


for _name in [*_BINARY, *(f"r{name}" for name in _BINARY), *_UNARY]:
    setattr(WithoutOperators, f"__{_name}__", _refused(f"__{_name}__"))


class LocalOperators(np.lib.mixins.NDArrayOperatorsMixin):
    """A value that is the same on every replica: operators apply to the local copy and return a plain value.

    After `x += 1`, `x` is a plain value too, as in TensorFlow: the copies of the other replicas cannot be changed from
    here.
    """

    __slots__ = ()
    values: tuple[Any, ...]

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if any(isinstance(x, LocalOperators) for x in kwargs.get("out", ())):
            raise TypeError(
                f"numpy.{ufunc.__name__}: out must be an array, got a {type(self).__name__}, whose copies on other replicas "
                "would stay as they are"
            )
        return getattr(ufunc, method)(*[_local(x) for x in inputs], **kwargs)

    def __bool__(self) -> bool:
        return bool(self.values[0])

    def __complex__(self) -> complex:
        return complex(self.values[0])

    def __float__(self) -> float:
        return float(self.values[0])

    def __getitem__(self, key: Any) -> Any:
        return self.values[0][key]

    def __index__(self) -> int:
        return operator.index(self.values[0])

    def __int__(self) -> int:
        return int(self.values[0])

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values[0])

    def __len__(self) -> int:
        return len(self.values[0])


def _local(value: Any) -> Any:
    return value.values[0] if isinstance(value, LocalOperators) else value


for _name in set(_BINARY) - {"divmod"}:
    setattr(LocalOperators, f"__i{_name}__", getattr(LocalOperators, f"__{_name}__"))
