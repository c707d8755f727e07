# SPDX-License-Identifier: Apache-2.0
"""Values that have one component for each local replica, their operators, and functions that split and regroup them."""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np

from distinput.distribute.core.array_arithmetic import NUMPY, ArrayOps
from distinput.errors import InvalidArgumentError
from distinput.names.lazy import later
from distinput.values.leaves import is_ragged
from distinput.values.nest import LEAF, Structure, map_leaves, structure_of

if TYPE_CHECKING:
    from distinput.names import words
else:
    words = later("distinput.names.words")  # for notebooks

# ---- Operators of distributed values: refused for per-replica values, applied to the local copy of mirrored ones

_BINARY = (
    "add", "and", "divmod", "floordiv", "lshift", "matmul", "mod", "mul", "or", "pow", "rshift", "sub", "truediv", "xor",
)  # fmt: skip
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

        def _binary(self, other: object) -> Any: ...
        def _unary(self) -> Any: ...

        __add__ = __and__ = __divmod__ = __floordiv__ = __lshift__ = __matmul__ = __mod__ = __mul__ = _binary
        __or__ = __pow__ = __rshift__ = __sub__ = __truediv__ = __xor__ = _binary
        __radd__ = __rand__ = __rdivmod__ = __rfloordiv__ = __rlshift__ = __rmatmul__ = __rmod__ = __rmul__ = _binary
        __ror__ = __rpow__ = __rrshift__ = __rsub__ = __rtruediv__ = __rxor__ = _binary
        __eq__ = __ge__ = __gt__ = __le__ = __lt__ = __ne__ = _binary
        __abs__ = __invert__ = __neg__ = __pos__ = _unary

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


_COMPARISONS = ("eq", "ge", "gt", "le", "lt", "ne")
_OF_UFUNC: dict[np.ufunc, Callable[..., Any]] = {
    np.add: operator.add, np.bitwise_and: operator.and_, np.equal: operator.eq, np.floor_divide: operator.floordiv,
    np.greater_equal: operator.ge, np.greater: operator.gt, np.less_equal: operator.le, np.left_shift: operator.lshift,
    np.less: operator.lt, np.matmul: operator.matmul, np.remainder: operator.mod, np.multiply: operator.mul,
    np.not_equal: operator.ne, np.bitwise_or: operator.or_, np.power: operator.pow, np.right_shift: operator.rshift,
    np.subtract: operator.sub, np.true_divide: operator.truediv, np.bitwise_xor: operator.xor,
}  # fmt: skip
for _name in _BINARY:
    _function = divmod if _name == "divmod" else getattr(operator, f"__{_name}__")
    setattr(LocalOperators, f"__{_name}__", _applied(_function))
    setattr(LocalOperators, f"__r{_name}__", _reflected(_function))
    if _name != "divmod":
        setattr(LocalOperators, f"__i{_name}__", _applied(_function))
for _name in (*_COMPARISONS, "abs", "invert", "neg", "pos"):
    setattr(LocalOperators, f"__{_name}__", _applied(getattr(operator, f"__{_name}__")))

# ---- Values that have one component for each local replica, and functions that split and regroup them

_LEAVES = (np.ndarray, np.generic, bool, int, float, complex, str, bytes, type(None))
_NESTS = (tuple, list, Mapping)
_PYTHON_NUMBERS = (bool, int, float, complex)


class DistributedValues:
    """The components of one value, one for each replica of this process.

    Args:
      values: the components in replica order.

    Raises:
      ValueError: `values` is empty.

    Source: `tf.distribute.DistributedValues`.
    """

    __slots__ = ("__weakref__", "values")

    passed_whole = False
    """True for classes whose values `Strategy.run` passes to every replica unchanged, such as variables."""

    mirrored = False
    """True for classes whose components are copies of one value, such as mirrored variables."""

    values: tuple[Any, ...]

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = tuple(values)
        if not self.values:
            raise ValueError(f"{type(self).__name__}: needs the value of at least one replica, got none")

    def _repr_html_(self) -> str:
        """What notebooks show: a row for each replica."""
        return words.html("values", self)

    def __repr__(self) -> str:
        lines = ",\n".join([f"  {i}: {value!r}" for i, value in enumerate(self.values)])
        return f"{type(self).__name__}:{{\n{lines}\n}}"


class PerReplica(WithoutOperators, DistributedValues):
    """A value that differs from replica to replica; distributed datasets and `Strategy.run` return such values.

    It is not an array: look at it with `Strategy.experimental_local_results`, compute with it inside `Strategy.run`,
    or combine its components with `Strategy.reduce` or `Strategy.gather`. A value of numbers equals a number if each of them
    does, and is a condition if all of them are true or none is; otherwise `bool` raises TypeError.

    Args:
      values: the components in replica order.

    >>> import distinput as di
    >>> di.distribute.PerReplica([1, 2])
    PerReplica:{
      0: 1,
      1: 2
    }

    Source: the containers of `tf.distribute` that differ per replica.
    """

    __slots__ = ()
    __hash__ = DistributedValues.__hash__

    def __bool__(self) -> bool:
        truths = {bool(value) for value in self.values} if self._of_numbers() else {True}
        if len(truths) > 1:
            raise TypeError(several_numbers(self, "bool"))
        return truths.pop()

    def __eq__(self, other: object) -> Any:
        if is_number(other) and self._of_numbers():
            return all(value == other for value in self.values)
        return NotImplemented

    def _of_numbers(self) -> bool:
        """True if all components are numbers."""
        return all(map(is_number, self.values))

    @property
    def present(self) -> tuple[bool, ...]:
        """For each replica of this process, True if its component is data, False if it is a placeholder of zeros."""
        return (True,) * len(self.values)

    @property
    def row_counts(self) -> tuple[int, ...]:
        """The number of rows of data in each component: its first dimension; 1 for a scalar, 0 for a placeholder.

        >>> import distinput as di
        >>> strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> [step.row_counts for step in strategy.experimental_distribute_dataset(di.data.Dataset.range(3).batch(2))]
        [(1, 1), (1, 0)]
        """
        sizes = [(np.shape(value) or (1,))[0] for value in self.values]
        return tuple([size if there else 0 for size, there in zip(sizes, self.present, strict=True)])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise ValueError(
            "It looks like you are using a PerReplica object while not inside a replica context, where it has no "
            "single value; take the parts with `strategy.experimental_local_results`, or use `strategy.run`, "
            "`reduce` or `gather`"
        )


class PartialPerReplica(PerReplica):
    """A `PerReplica` with placeholders of zeros for replicas without data; `reduce` and `gather` leave those out.

    Args:
      values: the components in replica order.
      present: which of them are data.
    """

    __slots__ = ("_present",)

    def __init__(self, values: Sequence[Any], present: Sequence[bool]) -> None:
        super().__init__(values)
        self._present = tuple(present)

    @property
    def present(self) -> tuple[bool, ...]:
        return self._present

    def __repr__(self) -> str:
        told = [
            repr(value) + " (no data)" * (not there) for value, there in zip(self.values, self._present, strict=True)
        ]
        return "PerReplica:{\n" + ",\n".join([f"  {i}: {text}" for i, text in enumerate(told)]) + "\n}"


class AgreedNumber(LocalOperators, PerReplica):
    """The Python numbers that replicas give to a merge function: data of each, or a setting that is the same on all.

    It is a `PerReplica` whether they are equal or not, and may be used as one number where they are.

    Args:
      values: the numbers in replica order.
    """

    __slots__ = ()
    __hash__ = DistributedValues.__hash__
    __array_ufunc__ = LocalOperators.__array_ufunc__  # type: ignore[assignment] # the base class refuses

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self._here(), dtype)

    def _here(self) -> Any:
        """The number of all replicas.

        Raises:
          TypeError: they differ.
        """
        first = self.values[0]
        if any(value != first for value in self.values):
            raise TypeError(several_numbers(self, "as one number"))
        return first


class Mirrored(LocalOperators, DistributedValues):
    """A value that is the same on every replica and behaves like its local copy; operators return plain values.

    Args:
      values: the equal components in replica order.

    >>> import distinput as di
    >>> int(di.distribute.Mirrored([2, 2]) + 1)
    3

    Source: the mirrored containers of `tf.distribute`.
    """

    __slots__ = ()
    __hash__ = DistributedValues.__hash__

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.values[0], dtype) if copy is not False else np.asarray(self.values[0], dtype)


def is_number(value: Any) -> bool:
    """True for Python numbers, which Python may keep once for all, and for NumPy scalars."""
    return isinstance(value, np.generic | Number)


def several_numbers(value: DistributedValues, use: str) -> str:
    """The message for a use of the numbers of several replicas as one."""
    return (
        f"PerReplica has no single value ({use}), got {', '.join(map(repr, value.values))}: look at each number with "
        "`strategy.experimental_local_results`, or make one of them with `strategy.reduce`"
    )


def merged_values(parts: Sequence[Any]) -> PerReplica:
    """What a merge function gets of the values of all replicas."""
    return (AgreedNumber if all(isinstance(part, _PYTHON_NUMBERS) for part in parts) else PerReplica)(parts)


def is_distributed(value: Any) -> bool:
    """True for a leaf that has one component per replica."""
    return isinstance(value, DistributedValues)


def refuse_sparse_values(call: str, structure: Structure) -> None:
    """Refuse sparse tensors where values are added or joined: their three arrays are not values each for itself.

    Raises:
      InvalidArgumentError: there is one.
    """
    if structure.sparse:
        raise InvalidArgumentError(
            f"{call}: a SparseTensor cannot be added or joined as arrays are; make arrays with .to_dense() first, or take its "
            "values"
        )


def replica_leaves(value: Any) -> tuple[Structure, list[Any]]:
    """The structure of a nest of tuples, lists, dicts, namedtuples and dataclasses, and its leaves."""
    structure = structure_of(value, lists=True, is_leaf=is_distributed)
    return structure, structure.flatten(value)


def has_distributed(value: Any) -> bool:
    """True if the nest contains a distributed value."""
    if isinstance(value, DistributedValues):
        return True
    if isinstance(value, _LEAVES):
        return False
    return any(map(is_distributed, replica_leaves(value)[1]))


def present_in(value: Any) -> tuple[bool, ...] | None:
    """Which replicas have data in a nest; None if all of them have."""
    if isinstance(value, _LEAVES):
        return None
    leaves = [value] if isinstance(value, DistributedValues) else replica_leaves(value)[1]
    found = [leaf.present for leaf in leaves if isinstance(leaf, PartialPerReplica)]
    return tuple([all(each) for each in zip(*found, strict=True)]) if found else None


def marked(value: Any, present: Sequence[bool]) -> Any:
    """The nest with its `PerReplica` leaves marked with which of their components are data."""

    def leaf(part: Any) -> Any:
        return PartialPerReplica(part.values, present) if isinstance(part, PerReplica) else part

    return map_leaves(leaf, value, lists=True)


def rows_of(given: Any, replica: int) -> int:
    """The rows of the arrays that a replica got of distributed arguments.

    Raises:
      RuntimeError: there is no such array, or their numbers of rows differ.
    """
    leaves = [x for x in replica_leaves(given)[1] if isinstance(x, DistributedValues) and not x.passed_whole]
    found = {shape[0] for shape in [np.shape(leaf.values[replica]) for leaf in leaves] if shape}
    if len(found) != 1:
        raise RuntimeError(
            "row_mask: the arguments of run must have rows, and all as many, got "
            f"{f'arrays of {sorted(found)} rows' if found else 'no distributed array with rows'}; pass a mask as an argument"
        )
    return int(found.pop())


def row_counts(value: Any, count: int) -> tuple[int, ...]:
    """The rows of data of each of `count` replicas in a value or nest; see `Strategy.row_counts`.

    Raises:
      InvalidArgumentError: there is no leaf, or leaves have different numbers of rows.
    """
    sizes: dict[tuple[int, ...], str] = {}
    structure, leaves = replica_leaves(value)
    for leaf, path in zip(leaves, structure.paths, strict=True):
        each = leaf if isinstance(leaf, PerReplica) else PerReplica(local_results(leaf, count))
        counts = each.row_counts if len(each.values) == count else each.row_counts * count
        sizes.setdefault(counts, path)
    if len(sizes) != 1:
        had = ", ".join([f"{counts} of {path or 'the value'}" for counts, path in sizes.items()])
        raise InvalidArgumentError(
            f"row_counts: all leaves must have as many rows, got {had or 'no leaf'}; ask for one leaf"
        )
    return next(iter(sizes))


def only_masked(what: str, value: Any, mask: Any, ops: ArrayOps | None = None) -> Any:
    """The rows of a distributed value, or of a nest of them, for which the mask is true: `[n, ...] -> [m, ...]`.

    Args:
      what: the method, for messages.
      value: the value.
      mask: true for the rows to keep. It is looked at on the host, since the number of rows depends on it.
      ops: the library of arrays on devices, whose rows stay there; None if all arrays are NumPy's.

    Raises:
      TypeError: the mask is not one vector of booleans for each replica.
      InvalidArgumentError: a component and its mask have different numbers of rows.
    """
    given = mask.values if isinstance(mask, DistributedValues) else (mask,)
    masks = [ops.to_host(part) if ops is not None and ops.owns(part) else np.asarray(part) for part in given]
    if any(part.dtype != bool or part.ndim != 1 for part in masks):
        raise TypeError(f"{what}: mask must be one vector of booleans for each replica, got {mask!r}")

    def rows(part: Any, mask: Any) -> Any:
        if is_ragged(part) and len(part) == len(mask):
            return part if mask.all() else part[mask]
        library = NUMPY if ops is None or not ops.owns(part) else ops
        array = library.array(part)
        if array.shape[:1] != mask.shape:
            raise InvalidArgumentError(
                f"{what}: a value must have a row for each of the {len(mask)} values of its mask, got shape {list(array.shape)}"
            )
        return array if mask.all() else library.take(array, np.flatnonzero(mask))

    def leaf(part: Any) -> Any:
        if isinstance(part, DistributedValues):
            if len(part.values) != len(masks):
                raise TypeError(
                    f"{what}: mask must be one vector of booleans for each of {len(part.values)} replicas, got {len(masks)}"
                )
            kept = [rows(x, m) for x, m in zip(part.values, masks, strict=True)]
            return PartialPerReplica(kept, part.present) if isinstance(part, PartialPerReplica) else PerReplica(kept)
        return rows(part, masks[0])

    return leaf(value) if isinstance(value, DistributedValues) else map_leaves(leaf, value, lists=True)


def local_results(value: Any, count: int) -> tuple[Any, ...]:
    """The components of a value or nest for each of `count` replicas; see `Strategy.experimental_local_results`."""
    if isinstance(value, DistributedValues):
        return value.values
    structure, leaves = replica_leaves(value)
    if structure.is_leaf or value is None:
        return (value,)
    return tuple([structure.build([x.values[i] if is_distributed(x) else x for x in leaves]) for i in range(count)])


def select_replica(index: int, value: Any) -> Any:
    """The nest as replica `index` sees it: its components of distributed values, everything else unchanged.

    >>> from distinput.distribute.core.values import PerReplica, select_replica
    >>> select_replica(1, {"x": PerReplica([3, 4]), "y": 5})
    {'x': 4, 'y': 5}

    Source: the argument rule of `tf.distribute.Strategy.run`.
    """
    if isinstance(value, DistributedValues):
        return value if value.passed_whole else value.values[index]
    if isinstance(value, _LEAVES):
        return value
    structure, leaves = replica_leaves(value)
    if not any(map(is_distributed, leaves)):
        return value  # the same object, so that replicas can share it
    return structure.build([select_replica(index, leaf) for leaf in leaves])


Wrap = Callable[[Sequence[Any]], DistributedValues]
"""Makes one value of the values of all replicas."""


def regroup(results: Sequence[Any], always_wrap: bool = False, wrap: Wrap = PerReplica) -> Any:
    """Combine the nests that the replicas returned into one nest.

    A leaf is plain if it is the very same object on every replica, such as None, an array that all were given, or a literal
    text; otherwise it is a `PerReplica`, and so are numbers of several replicas always: whether Python keeps two equal numbers
    as one object depends on the numbers.

    Args:
      results: one nest for each replica.
      always_wrap: wrap every leaf, even equal ones.
      wrap: makes one value of the leaves of all replicas.

    Raises:
      AssertionError: the structures differ.

    >>> from distinput.distribute.core.values import regroup
    >>> regroup([("loss", 5), ("loss", 5)])
    ('loss', PerReplica:{
      0: 5,
      1: 5
    })

    Source: the result rule of `tf.distribute.Strategy.run`, which compares objects, numbers too.
    """
    # Most results are leaves, whose structures need not be compared.
    leaf = isinstance(results[0], _PLAIN)
    first = LEAF if leaf else structure_of(results[0], lists=True, is_leaf=_is_whole)
    if first.is_leaf and not any(isinstance(result, _NESTS) for result in results):
        return _together(results, always_wrap, wrap)
    structures = [structure_of(result, lists=True, is_leaf=_is_whole) for result in results]
    if any(other != structures[0] for other in structures):
        told = ", ".join([f"replica {i} gave {_told(nest)}" for i, nest in enumerate(_apart(structures))])
        raise AssertionError(
            f"run: the results of all replicas must have the same structure (len(v) == len(v0), the same keys): {told}"
        )
    leaves = zip(*map(first.flatten, results), strict=True)
    return first.build([_together(parts, always_wrap, wrap) for parts in leaves])


def _is_whole(value: Any) -> bool:
    return value is None or isinstance(value, DistributedValues)


def _apart(nests: Sequence[Structure]) -> Sequence[Structure]:
    """The first nests in these, one of each, that differ in their own members."""
    first = replace(nests[0], children=())
    if any(len(nest.children) != len(nests[0].children) or replace(nest, children=()) != first for nest in nests):
        return nests
    return _apart(
        next(members for members in zip(*[nest.children for nest in nests], strict=True) if len({*members}) > 1)
    )


def _told(nest: Structure) -> str:
    """The outermost nest in words."""
    kind = nest.kind if nest.cls is None else nest.cls.__name__
    return f"a {kind}" if nest.is_leaf else f"a {kind} of {list(nest.keys) or len(nest.children)}"


def _together(parts: Sequence[Any], always_wrap: bool, wrap: Wrap) -> Any:
    """One leaf of those of all replicas."""
    return parts[0] if not always_wrap and _same(parts) else wrap(parts)


def _same(results: Sequence[Any]) -> bool:
    first = results[0]
    return all(other is first for other in results) and (len(results) == 1 or not is_number(first))


_PLAIN = (*_LEAVES, DistributedValues)
