# SPDX-License-Identifier: Apache-2.0
"""Turning elements into the parts of replicas: dealing one to each, cutting a batch, and the tail with too few rows."""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import chain, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from distinput.columns.block import balanced_slices
from distinput.columns.state import State
from distinput.data.dataset import Dataset
from distinput.distribute.core.replicas import Replicas
from distinput.distribute.core.values import PartialPerReplica, PerReplica
from distinput.errors import InvalidArgumentError, UnimplementedError
from distinput.names.lazy import dataclass, later
from distinput.plan.batch_sizes import Assignment
from distinput.sharding.own_rows import batch_size_of
from distinput.values.leaves import shape_of, zero
from distinput.values.nest import Structure, maker
from distinput.values.spec import LeafSpec, Spec, TensorSpec, no_rows

if TYPE_CHECKING:
    from distinput.columns import python_values
    from distinput.values import ragged_tensor, sparse_tensor
else:
    python_values = later("distinput.columns.python_values")  # for steps that are filled up
    # Few elements are ragged or sparse.
    ragged_tensor, sparse_tensor = later("distinput.values.ragged_tensor"), later("distinput.values.sparse_tensor")

# ----------------------------------------------------------------------------
# Turning elements into the parts of replicas: dealing one to each, cutting a batch, and placeholders without rows.
#
# All parts are views: no row is copied.
# ----------------------------------------------------------------------------


# ---- The spec of a leaf that has one component for each replica


@dataclass(frozen=True, slots=True, init=False, repr=False)
class PerReplicaSpec:
    """Describes a `PerReplica` leaf: one spec for each local replica.

    Args:
      value_specs: the specs in replica order.

    >>> import distinput as di
    >>> di.distribute.PerReplicaSpec(di.TensorSpec([None], "int64"), di.TensorSpec([None], "int64"))
    PerReplicaSpec(TensorSpec(shape=(None,), dtype=int64) × 2 replicas)

    Source: the type spec of the per-replica values of `tf.distribute`.
    """

    value_specs: tuple[Any, ...]

    def __init__(self, *value_specs: Any) -> None:
        object.__setattr__(self, "value_specs", value_specs)

    def __repr__(self) -> str:
        specs = self.value_specs
        if len(specs) > 1 and all(spec == specs[0] for spec in specs):
            return f"PerReplicaSpec({specs[0]!r} × {len(specs)} replicas)"
        return f"PerReplicaSpec({', '.join(map(repr, specs))})"


# ---- Drawing elements from an input: the next elements, their rows, and the input's state after them


class _End:
    def __repr__(self) -> str:
        return "<end>"


END = _End()
"""Marks the end: stands for a step or an element when there are no more."""


def drawn(iterator: Any, count: int) -> tuple[list[Any], State]:
    """The next elements of an input, at most `count`, and the input's state after them."""
    return list(islice(iterator, count)), place_of(iterator)


def place_of(iterator: Any, mark: Any = None) -> State:
    """The state of an input, now or at a mark; iterators of this library seal it only when it is needed."""
    place = getattr(iterator, "place", None)
    made: State = iterator.state() if place is None else place() if mark is None else place(mark)
    return made


def mark_of(iterator: Any) -> Any:
    """What `place_of` needs to tell this position later; None for iterators of other packages, which have no marks."""
    mark = getattr(iterator, "mark", None)
    return None if mark is None else mark()


_NO_ROWS = (
    "distribute: All components must have at least one dimension to be cut for the replicas; batch the dataset first"
)


def rows_in(structure: Structure, parts: list[Any]) -> int:
    """The total number of rows of elements; `END` counts as none.

    Raises:
      InvalidArgumentError: an element without an axis of rows.
    """
    nests = structure.folded
    shapes = [shape_of(nests.flatten(part)[0]) for part in parts if part is not END]
    if not all(shapes):
        raise InvalidArgumentError(_NO_ROWS)
    return sum([shape[0] for shape in shapes])


# ---- How elements are dealt


def dealer(structure: Structure, replicas: int) -> Callable[..., Any]:
    """A compiled function from R elements to their nest, with a `PerReplica` of R components for each leaf."""
    names: dict[str, Any] = {"P": PerReplica}
    elements = [f"e{i}" for i in range(replicas)]
    source = f"lambda {', '.join(elements)}: {_source(structure, elements, names)}"
    return _compiled(source, tuple(names.items()))


@lru_cache(maxsize=256)
def _compiled(source: str, names: tuple[tuple[str, Any], ...]) -> Callable[..., Any]:
    return eval(source, dict(names))  # type: ignore[no-any-return]  # noqa: S307 - the source is generated here


def _source(structure: Structure, paths: list[str], names: dict[str, Any]) -> str:
    kind = structure.kind
    if kind == "leaf":
        return f"P(({', '.join(paths)},))"
    if kind == "none":
        return "None"

    def name_of(value: Any) -> str:
        names[f"k{len(names)}"] = value
        return f"k{len(names) - 1}"

    if kind == "dict":
        steps = [f"[{name_of(key)}]" for key in structure.keys]
    elif kind == "dataclass":
        steps = [f".{key}" for key in structure.keys]
    else:
        steps = [f"[{i}]" for i in range(len(structure.children))]
    parts = [
        _source(child, [path + step for path in paths], names)
        for child, step in zip(structure.children, steps, strict=True)
    ]
    if kind == "tuple":
        return "(" + "".join([part + ", " for part in parts]) + ")"
    if kind == "list":
        return "[" + ", ".join(parts) + "]"
    if kind == "dict":
        by_key = dict(zip(structure.keys, parts, strict=True))
        items = "{" + ", ".join([f"{name_of(key)}: {by_key[key]}" for key in structure.order or structure.keys]) + "}"
        return items if structure.mapping is None else f"{name_of(structure.mapping)}({items})"
    assert structure.cls is not None, "of a namedtuple or dataclass"
    made = name_of(maker(structure.cls))
    return made + "(" + ", ".join([f"{key}={part}" for key, part in zip(structure.keys, parts, strict=True)]) + ")"


@lru_cache(maxsize=1024)
def equal_slices(rows: int, replicas: int) -> tuple[slice, ...]:
    """Consecutive slices of ceil(rows / replicas) rows; the last ones may have fewer rows, or none.

    >>> from distinput.distribute.input.dealing import equal_slices
    >>> [s.stop - s.start for s in equal_slices(6, 4)]
    [2, 2, 2, 0]

    Source: `_LegacyRebatchDataset` of tensorflow/python/data/experimental/ops/distribute.py.
    """
    size = -(-rows // replicas)
    return tuple([slice(min(i * size, rows), min((i + 1) * size, rows)) for i in range(replicas)])


class Cutter:
    """Cuts global batches: an element of n rows -> the parts of this worker's replicas, all of them views.

    Args:
      spec: the spec of the global batches.
      assignment: the number and sizes of the pieces, and which of them are this worker's.
      rows: the rows of a full batch, which fixed pieces need.
    """

    __slots__ = ("_balanced", "_last", "_mine", "_replicas", "_rows", "_structure")

    def __init__(self, spec: Spec, assignment: Assignment, rows: int | None = None) -> None:
        self._structure, self._replicas, self._balanced = spec.structure, assignment.pieces, assignment.balanced
        self._rows = rows if assignment.fixed else None
        self._last: tuple[list[int], list[Callable[[Any], Any]]] = [], []
        """The rows of the components of the last batch, and what cuts them: those of the next one are mostly as many."""
        mine = assignment.numbers(0, assignment.each or 0).tolist()  # of each batch, at equal distances
        self._mine = slice(mine[0], mine[-1] + 1, mine[1] - mine[0] if len(mine) > 1 else 1)

    def __call__(self, batch: Any) -> Any:
        """The nest with each leaf `[n, ...]` cut into a `PerReplica` of views `[n_r, ...]`.

        Raises:
          InvalidArgumentError: components without rows, or with different numbers of rows.
        """
        structure = self._structure
        leaves = None if structure.is_plain_leaf else structure.folded.flatten(batch)
        try:
            rows = [batch.shape[0]] if leaves is None else [leaf.shape[0] for leaf in leaves]
        except (AttributeError, IndexError):  # of bytes, of a scalar
            raise InvalidArgumentError(_NO_ROWS) from None
        last, full = self._last, self._rows
        if last[0] != rows:
            if (self._balanced or full is not None) and len({*rows}) > 1:
                raise InvalidArgumentError(
                    f"distribute: all components of a global batch must have as many rows, got {rows}"
                )
            cut = balanced_slices if self._balanced and full is None else equal_slices
            each = [cut(size if full is None else full, self._replicas)[self._mine] for size in rows]
            cuts = [partial(_parts, slices) if structure.sparse else _cutting(slices) for slices in each]
            last = self._last = rows, cuts  # in one, so that no thread finds only half of it
        if leaves is None:
            return PerReplica(last[1][0](batch))
        parts = [cut(leaf) for leaf, cut in zip(leaves, last[1], strict=True)]
        return structure.build(list(chain.from_iterable(parts) if structure.sparse else map(PerReplica, parts)))

    def spec(self, spec: Spec) -> Spec:
        """The spec of a replica's part: the rows divided by R if that is exact, else unknown."""
        return spec.map(self._part)

    def _part(self, leaf: LeafSpec) -> LeafSpec:
        if not isinstance(leaf, TensorSpec) or not leaf.shape:
            return leaf
        rows = leaf.shape[0]
        part = rows // self._replicas if rows is not None and rows % self._replicas == 0 else None
        return leaf.with_shape((part, *leaf.shape[1:]))


def _cutting(slices: tuple[slice, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """A function, in C if there are several slices: a leaf -> its rows in each of them."""
    return itemgetter(*slices) if len(slices) > 1 else lambda leaf: (leaf[slices[0]],)


def _parts(slices: Sequence[slice], leaf: Any) -> list[PerReplica]:
    """The rows in each slice; of a sparse tensor, those of each of its three arrays."""
    if getattr(type(leaf), "is_sparse", False) is True:
        return list(map(PerReplica, zip(*[sparse_tensor.sparse_rows(leaf, rows) for rows in slices], strict=True)))
    return [PerReplica([leaf[rows] for rows in slices])]


class Placeholders:
    """Makes placeholders for replicas without data: elements of no rows, with the right dtypes and inner shapes.

    A scalar has no rows to leave out, so its placeholder is zero. Inner dimensions that the spec leaves open are those
    of the last element seen, or 0.

    Args:
      spec: of the pieces.

    Source: the dummy values of the distributed iterators of `tf.distribute`, which forget inner dimensions they have
      seen.
    """

    __slots__ = ("_spec", "watches")

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self.watches = any(_is_open(leaf) for leaf in spec.folded.leaves)
        """True when the last element matters."""

    def lacks(self, parts: Sequence[Any], replicas: int, *, cut: bool) -> bool:
        """True if one of the replicas has no row, so that its placeholder should have the shape of the rows of others.

        Args:
          parts: the elements of the first replicas; the others have none.
          replicas: how many there are.
          cut: True if an element without rows is an empty piece of a batch that was cut, not an element of the user.
        """
        return self.watches and (
            len(parts) < replicas or (cut and any(not has_rows(self.shapes(part)) for part in parts))
        )

    def shapes(self, last: Any) -> list[list[int]]:
        """The shapes of an element's leaves."""
        return [[size or 0 for size in shape_of(leaf)] for leaf in self._spec.structure.folded.flatten(last)]

    def element(self, seen: Sequence[Sequence[int]] | None) -> Any:
        """An element without rows.

        Args:
          seen: the leaves' shapes of the last element, or None when none was seen.

        Raises:
          InvalidArgumentError: a component is itself a dataset.
        """
        spec = self._spec.folded
        known = seen if seen is not None else [None] * len(spec.leaves)
        return spec.structure.build([_empty(leaf, shape) for leaf, shape in zip(spec.leaves, known, strict=True)])


def has_rows(shapes: Sequence[Sequence[int]]) -> bool:
    """True for the shapes of an element with rows; a scalar is one."""
    return any(not shape or shape[0] for shape in shapes)


def _is_open(leaf: LeafSpec) -> bool:
    if not isinstance(leaf, TensorSpec):
        return False
    return leaf.shape is None or None in leaf.shape[1 + (leaf.ragged_rank or 0) :]


def _empty(leaf: LeafSpec, seen: Sequence[int] | None) -> Any:
    if not isinstance(leaf, TensorSpec):
        raise InvalidArgumentError(
            "distribute: the data ended before every replica had an element, and there is nothing that stands for a "
            "dataset inside an element; use drop_remainder, or flat_map the inner datasets first"
        )
    shape = leaf.shape if leaf.shape is not None else (tuple(seen) if seen is not None else ())
    if not shape and not leaf.is_sparse:
        return zero(leaf.dtype, ())
    inner = [
        d if d is not None else (seen[i + 1] if seen is not None and len(seen) == len(shape) else 0)
        for i, d in enumerate(shape[1:])
    ]
    return no_rows(leaf, tuple(inner))


def per_replica_spec(spec: Spec, replicas: int) -> Any:
    """The nest of specs as users see it: each leaf's spec once for each replica."""
    spec = spec.folded
    return spec.structure.build([PerReplicaSpec(*[leaf] * replicas) for leaf in spec.leaves])


# ---- Builds a step from one element per replica, with placeholders for replicas that have none


class StepBuilder:
    """Builds steps from one element for each replica of this process.

    Args:
      spec: the spec of the elements.
      replicas: the replicas that they are for.
      seen: the shapes of the last element of a restored iteration.
    """

    __slots__ = ("_deal", "_last", "_replicas", "_seen", "_spec", "_watches", "stand_in")

    def __init__(self, spec: Spec, replicas: Replicas, seen: list[list[int]] | None) -> None:
        self._spec, self._replicas, self._seen = spec, replicas.count, seen
        self._deal = dealer(spec.structure, replicas.count) if replicas.wraps else None
        self.stand_in = Placeholders(spec)
        """Makes the placeholders."""
        self._watches = self.stand_in.watches
        self._last: Any = None

    def __call__(self, parts: list[Any], missing: int, seen: list[list[int]] | None = None) -> Any:
        """Build a step from these elements.

        Args:
          parts: the elements in replica order; `END`, or a missing one at the end, for a replica that has none. The
            list is completed with placeholders.
          missing: how many replicas have none.
          seen: the shapes of the rows of another worker in this step; placeholders take theirs.
        """
        present = self._fill(parts, seen) if missing else None
        if self._watches:
            self._last = parts[-1]
        step = parts[0] if self._deal is None else self._deal(*parts)
        return step if present is None else self._marked(step, present)

    @property
    def seen(self) -> list[list[int]] | None:
        """The shapes of the leaves of the last element; None if placeholders can be made from the spec alone."""
        if self._last is not None:
            self._seen, self._last = self.stand_in.shapes(self._last), None
        return self._seen

    def close(self) -> None:
        """Release the last element."""
        self._last = None

    def _fill(self, parts: list[Any], seen: list[list[int]] | None) -> list[bool]:
        """Put placeholders where there are no elements; return which components are data."""
        present = [part is not END for part in parts] + [False] * (self._replicas - len(parts))
        there = [part for part in parts if part is not END]
        if seen is not None:
            self._seen, self._last = seen, None
        elif self._last is not None or (there and self._watches):
            last = there[-1] if there else self._last
            self._seen, self._last = self.stand_in.shapes(last), None
        empty = self.stand_in.element(self._seen if self._watches else None)
        for i, part in enumerate(parts):
            if part is END:
                parts[i] = empty
        parts.extend([empty] * (self._replicas - len(parts)))
        return present

    def _marked(self, step: Any, present: Sequence[bool]) -> Any:
        """The step, with leaves that have no rows to leave out marked with where there is no data."""
        spec = self._spec
        leaves = [
            PartialPerReplica(value.values, present)
            if isinstance(value, PerReplica) and _stands_for_scalar(leaf, value, present)
            else value
            for value, leaf in zip(spec.structure.flatten(step), spec.leaves, strict=True)
        ]
        return spec.structure.build(leaves)


def _stands_for_scalar(leaf: LeafSpec, value: PerReplica, present: Sequence[bool]) -> bool:
    """Whether a placeholder of this leaf is a zero, which looks like data; of an unknown shape, as it was made."""
    if not isinstance(leaf, TensorSpec):
        return False
    return leaf.shape == () if leaf.shape is not None else not shape_of(value.values[present.index(False)])


# ----------------------------------------------------------------------------
# The tail: what happens to a step with fewer rows than the global batch size.
#
# `partial` delivers it as it is, as TensorFlow does; `pad` pads every replica's part with zeros and adds a mask of the rows
# that are data; `drop` leaves the step out; `error` raises.
# ----------------------------------------------------------------------------


def global_batch_size(dataset: Any, tail: str) -> int:
    """The number of rows of a full step.

    Raises:
      ValueError: it is unknown, so there is no telling which steps are full.
    """
    size = batch_size_of(dataset.node)
    if size is None:
        raise ValueError(
            f"InputOptions(tail={tail!r}): the global batch size must be known, which a function over whole batches or a "
            "parallel batch hides; call it on single elements, before batch"
        )
    return size


def only_full(dataset: Any) -> Any:
    """The dataset without partial batches, as if `batch` had been called with drop_remainder=True."""
    return Dataset(dataset.node.with_full_batches(), dataset._passes)


def check_rows(dataset: Any, rows: int) -> bool:
    """True if all batches are known to be full before anything is read; False if only reading can tell.

    Raises:
      InvalidArgumentError: some batch is known to be short.
    """
    sizes = dataset.node.batch_sizes()
    for there in [] if sizes is None else [size for pattern, _ in sizes.runs for size in pattern]:
        if there != rows:
            raise short(there, rows)
    return sizes is not None


def short(there: int, rows: int) -> InvalidArgumentError:
    """The error raised for tail='error'."""
    return InvalidArgumentError(
        f"InputOptions(tail='error'): every step needs {rows} rows, one has {there}; choose a batch size that divides "
        "the number of rows, or tail 'pad' or 'drop'"
    )


def _mappings_of(at: Structure) -> Iterator[Any]:
    """What each leaf becomes where a user gets it."""
    if at.is_leaf:
        yield at.mapping
    for child in at.children:
        yield from _mappings_of(child)


def _has_decimals(part: Any) -> bool:
    """Whether `as_decimal` has made them, where the spec does not say so."""
    return isinstance(part, np.ndarray) and part.dtype.kind == "O" and not isinstance(next(part.flat, b""), bytes)


class StepPadding:
    """Pads the parts of a step to the same number of rows: a step -> (step, mask).

    Args:
      spec: the spec of one replica's part.
      rows: the number of rows of each padded part.

    Raises:
      UnimplementedError: `as_rows` makes dicts of some part; what fills them up would look like data.
    """

    __slots__ = ("_decimals", "_dense_shapes", "_kept", "_leaves", "_rows", "_spec")

    def __init__(self, spec: Spec, rows: int) -> None:
        if spec.structure.makes_rows:
            raise UnimplementedError(
                "tail='pad': a step cannot be filled up with dicts, which as_rows or nested='rows' makes; take tail='drop' or "
                "'partial', or make rows of what a step holds"
            )
        self._spec, self._rows, structure = spec, rows, spec.structure
        self._kept = {place for first in structure.sparse for place in (first, first + 1)}  # rows without values
        self._dense_shapes = {first + 2 for first in structure.sparse}
        self._decimals = [mapping is python_values.as_decimals for mapping in _mappings_of(structure)]
        self._leaves = spec.tensors("pad")

    @property
    def spec(self) -> Spec:
        """The spec of a replica's part and its mask."""
        padded = self._spec.map(
            lambda leaf: (
                leaf.with_shape((self._rows, *leaf.shape[1:])) if isinstance(leaf, TensorSpec) and leaf.shape else leaf
            )
        )
        return Spec.of((padded.nest, TensorSpec([self._rows], "bool")))

    def __call__(self, step: Any) -> Any:
        """Pad the parts `[n, ...] -> [rows, ...]`; add for each a mask `[rows]` that is true for its n rows of data.

        Raises:
          InvalidArgumentError: a part has more than `rows` rows.
        """
        structure = self._spec.structure
        leaves = structure.flatten(step)
        padded = list(leaves)
        for place, (value, leaf) in enumerate(zip(leaves, self._leaves, strict=True)):
            if place in self._kept:
                continue
            parts = value.values if isinstance(value, PerReplica) else (value,)
            if place in self._dense_shapes:
                made = [self._padded_shape(part) for part in parts]
            elif all(len(part) == self._rows for part in parts):
                continue
            else:
                decimal = self._decimals[place] or any(map(_has_decimals, parts))
                made = [self._padded(part, leaf, decimal) for part in parts]
            padded[place] = PerReplica(made) if isinstance(value, PerReplica) else made[0]
        first, rows_of = (leaves[2], _rows_of_shape) if 2 in self._dense_shapes else (leaves[0], len)
        mask: Any
        if isinstance(first, PerReplica):
            mask = PerReplica([_mask(rows_of(part), self._rows) for part in first.values])
        else:
            mask = _mask(rows_of(first), self._rows)
        return structure.kept.build(padded), mask  # what `as_text` makes was made of the rows already

    def _padded_shape(self, part: Any) -> Any:
        """The `dense_shape` of a sparse tensor with the rows that it lacks, which have no values."""
        self._check(_rows_of_shape(part))
        return np.array([self._rows, *part[1:]], np.int64)

    def _check(self, there: int) -> None:
        if there > self._rows:
            raise InvalidArgumentError(
                f"InputOptions(tail='pad'): a replica's part must have at most {self._rows} rows, got {there}"
            )

    def _padded(self, part: Any, leaf: TensorSpec, decimal: bool) -> Any:
        there = len(part)
        if there == self._rows:
            return part
        self._check(there)
        if leaf.ragged_rank:
            splits = np.concatenate((part.row_splits, np.repeat(part.row_splits[-1:], self._rows - there)))
            return ragged_tensor.RaggedTensor(part.values, splits)  # rows without values
        shape = (self._rows, *part.shape[1:])
        made = np.zeros(shape, part.dtype) if part.dtype.kind == "T" else zero(leaf.dtype, shape)
        if decimal:
            made[:] = python_values.as_decimals(b"0")
        made[:there] = part
        return made


def _rows_of_shape(dense_shape: Any) -> int:
    return int(dense_shape[0])


@lru_cache(maxsize=1024)
def _mask(there: int, rows: int) -> Any:
    mask = np.arange(rows) < there
    mask.flags.writeable = False
    return mask
