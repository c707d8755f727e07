# SPDX-License-Identifier: Apache-2.0
"""Shapes as specs tell them: tuples, with what `tf.TensorShape` knows besides."""

from collections.abc import Iterable, Iterator
from math import prod
from typing import Any, NoReturn, Self, SupportsIndex, overload

__all__ = ["Dims", "TensorShape"]

Dims = tuple[int | None, ...]
"""Sizes, None for one that is not known."""


class TensorShape(Dims):
    """The sizes of an array's dimensions, None for one that may vary; the counterpart of `tf.TensorShape`.

    It is a tuple, and equals lists as well. `TensorShape(None)` is the shape of which not even the rank is known; it has
    no sizes to look at. `TensorSpec.shape` is None in its place.

    Args:
      dims: the sizes, a number for a shape of one dimension, or None.

    Raises:
      ValueError: a size is negative.

    >>> import distinput as di
    >>> shape = di.data.Dataset.from_tensors([[1, 2, 3]]).batch(4).element_spec.shape
    >>> shape.as_list(), shape == [None, 1, 3], shape[1:].num_elements(), shape.rank
    ([None, 1, 3], True, 3, 3)

    Source: `tf.TensorShape`.
    """

    __slots__ = ()

    def __new__(cls, dims: Iterable[int | None] | int | None) -> Self:
        if dims is None or dims is _UNKNOWN:
            return _UNKNOWN  # type: ignore[return-value]
        # Arrays of one size for each dimension have the method of an integer too.
        one = isinstance(dims, int) or (isinstance(dims, SupportsIndex) and not getattr(dims, "shape", ()))
        sizes: Any = (dims,) if one else dims
        made = tuple.__new__(cls, [None if d is None else int(d) for d in sizes])
        if any(d is not None and d < 0 for d in made):
            raise ValueError(f"TensorShape: a size must be at least 0, or None, got {list(made)}")
        return made

    @property
    def rank(self) -> int | None:
        """How many dimensions there are; None where that is not known."""
        return len(self)

    @property
    def ndims(self) -> int | None:
        """`rank`, under its older name."""
        return self.rank

    @property
    def dims(self) -> list[int | None] | None:
        """The sizes as a list; None where the rank is not known."""
        return None if self.rank is None else list(self)

    def as_list(self) -> list[int | None]:
        """The sizes as a list.

        Raises:
          ValueError: the rank is not known.
        """
        return list(self)

    def num_elements(self) -> int | None:
        """How many numbers an array of this shape has; None where a size is not known."""
        return prod(self) if self.is_fully_defined() else None  # type: ignore[arg-type]

    def is_fully_defined(self) -> bool:
        """Whether all sizes are known."""
        return self.rank is not None and None not in self

    def is_compatible_with(self, other: Any) -> bool:
        """Whether an array could have this shape and the other one."""
        theirs = as_shape(other)
        if self.rank is None or theirs.rank is None:
            return True
        return len(self) == len(theirs) and all(
            a is None or b is None or a == b for a, b in zip(self, theirs, strict=True)
        )

    def assert_is_compatible_with(self, other: Any) -> None:
        """Refuse a shape that no array can have besides this one.

        Raises:
          ValueError: the two are not compatible.
        """
        if not self.is_compatible_with(other):
            raise ValueError(f"the shapes {self} and {as_shape(other)} are not compatible")

    def merge_with(self, other: Any) -> "TensorShape":
        """What is known of an array that has both shapes.

        Raises:
          ValueError: the two are not compatible.
        """
        theirs = as_shape(other)
        if self.rank is None or theirs.rank is None:
            return theirs if self.rank is None else self
        self.assert_is_compatible_with(theirs)
        return TensorShape([b if a is None else a for a, b in zip(self, theirs, strict=True)])

    def most_specific_compatible_shape(self, other: Any) -> "TensorShape":
        """The shape that both fit, None where they differ."""
        theirs = as_shape(other)
        if self.rank is None or theirs.rank is None:
            return _UNKNOWN
        if len(self) != len(theirs):
            return _UNKNOWN
        return TensorShape([a if a == b else None for a, b in zip(self, theirs, strict=True)])

    def concatenate(self, other: Any) -> "TensorShape":
        """The dimensions of this shape, then those of the other."""
        theirs = as_shape(other)
        if self.rank is None or theirs.rank is None:
            return _UNKNOWN
        return TensorShape([*self, *theirs])

    def with_rank(self, rank: int) -> "TensorShape":
        """This shape, which must have so many dimensions.

        Raises:
          ValueError: it has another number.
        """
        if self.rank is not None and self.rank != rank:
            raise ValueError(f"the shape {self} must have rank {rank}")
        return TensorShape([None] * rank) if self.rank is None else self

    def __eq__(self, other: object) -> bool:
        if isinstance(other, list):
            return list(self) == other
        return tuple.__eq__(self, other) is True and not isinstance(other, _Unknown)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__

    @overload
    def __getitem__(self, key: SupportsIndex) -> int | None: ...
    @overload
    def __getitem__(self, key: slice) -> "TensorShape": ...
    def __getitem__(self, key: Any) -> Any:
        found = tuple.__getitem__(self, key)
        return tuple.__new__(TensorShape, found) if isinstance(key, slice) else found

    def __add__(self, other: Any) -> "TensorShape":
        return self.concatenate(other)

    def __radd__(self, other: Any) -> "TensorShape":
        return as_shape(other).concatenate(self)

    def __str__(self) -> str:
        return tuple.__repr__(self)

    def __repr__(self) -> str:
        return f"TensorShape({list(self)})"


class _Unknown(TensorShape):
    """The shape of unknown rank."""

    __slots__ = ()

    def __new__(cls) -> Self:
        return tuple.__new__(cls)

    @property
    def rank(self) -> None:
        return None

    def as_list(self) -> NoReturn:
        raise ValueError("as_list() is not defined on a TensorShape of unknown rank")

    def __iter__(self) -> Iterator[int | None]:
        raise ValueError("the sizes of a TensorShape of unknown rank cannot be looked at")

    def __len__(self) -> int:
        raise ValueError("a TensorShape of unknown rank has no length")

    def __bool__(self) -> bool:
        return False

    def __getitem__(self, key: Any) -> Any:
        return self if isinstance(key, slice) else None

    def __eq__(self, other: object) -> bool:
        return other is self or other is None

    def __hash__(self) -> int:
        return hash(type(self))

    def __str__(self) -> str:
        return "<unknown>"

    def __repr__(self) -> str:
        return "TensorShape(None)"

    def __reduce__(self) -> tuple[Any, ...]:
        return TensorShape, (None,)


_UNKNOWN = _Unknown()


def as_shape(shape: Any) -> TensorShape:
    """A shape from sizes, a number, or None for an unknown rank."""
    return shape if isinstance(shape, TensorShape) else TensorShape(shape)
