# SPDX-License-Identifier: Apache-2.0
"""A variable that is split along its first axis into parts on several parameter servers."""

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from distinput.distribute.core.replica_reducer import IndexedSlices
from distinput.distribute.variables.policy import VariablePolicy, as_indices, as_operand
from distinput.distribute.variables.store import depth_of
from distinput.distribute.variables.variable import Variable
from distinput.errors import InvalidArgumentError
from distinput.values.leaves import TensorShape


def part_sizes(rows: int, parts: int) -> list[int]:
    """How many rows each part has: sizes differ by at most 1, larger ones first.

    >>> part_sizes(10, 4)
    [3, 3, 2, 2]

    Source: the "div" splitting of `tf.distribute.ParameterServerStrategy`.
    """
    least, more = divmod(rows, parts)
    return [least + (part < more) for part in range(parts)]


def number_of_parts(partitioner: Callable[..., Sequence[int]], shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    """How many parts a partitioner wants of a variable of this shape and dtype, at most one for each row.

    Raises:
      ValueError: it wants parts along other axes than the first, or none.
    """
    if not shape or not shape[0]:
        return 1
    wanted = partitioner(shape=TensorShape(shape), dtype=dtype)
    if not wanted or wanted[0] < 1 or any(parts != 1 for parts in wanted[1:]):
        raise ValueError(
            "variable_partitioner must return a list/tuple whose elements are 1 besides the first element (non-zero), got: "
            f"{wanted!r}"
        )
    return min(int(wanted[0]), shape[0])


class ShardedVariable(Variable):
    """One variable of several parts, each with some of its rows; a `variable_partitioner` of the strategy makes it.

    It is read, written and saved as a whole. Each part is changed at once, but not all of them together: a function that reads
    while another one writes may see old rows of one part and new rows of another.

    Args:
      variables: the parts, in order.
      name: the name.
      policy: what the user asked for.
      strategy: the strategy that it belongs to.

    Raises:
      TypeError: there are no parts, or something else than variables.
      ValueError: the parts differ in dtype or in the shape of a row.

    >>> import distinput as di
    >>> resolver = di.distribute.cluster_resolver.LocalClusterResolver(num_workers=1, num_ps=2)
    >>> two_parts = di.distribute.experimental.partitioners.FixedShardsPartitioner(2)
    >>> with di.distribute.ParameterServerStrategy(resolver, two_parts).scope():
    ...     table = di.Variable([1.0, 2.0, 3.0])
    >>> [part.numpy() for part in table.variables]
    [array([1., 2.], dtype=float32), array([3.], dtype=float32)]
    >>> table.assign_add([10.0, 10.0, 10.0]).numpy()
    array([11., 12., 13.], dtype=float32)

    Source: the `ShardedVariable` of `tf.distribute.ParameterServerStrategy`.
    """

    def __init__(
        self,
        variables: Sequence[Variable],
        name: str = "ShardedVariable",
        policy: VariablePolicy | None = None,
        strategy: Any = None,
    ) -> None:
        if not variables or not all(isinstance(part, Variable) for part in variables):
            raise TypeError(
                f"Argument `variables` should be a non-empty list of `variables.Variable`s. Received {variables}"
            )
        if len({part.dtype for part in variables}) > 1:
            raise ValueError(
                "All elements in argument `variables` must have the same dtype. Received dtypes: "
                f"{[str(part.dtype) for part in variables]}"
            )
        if len({tuple(part.shape[1:]) for part in variables}) > 1:
            raise ValueError(
                "All elements in argument `variables` must have the same shapes except for the first axis. Received shapes: "
                f"{[part.shape.as_list() for part in variables]}"
            )
        self._shards = tuple(variables)
        self._name, self._strategy = name, strategy
        self._policy = policy or variables[0]._policy
        self._starts = (0, *accumulate(int(part.shape[0] or 0) for part in variables))
        self._shape = TensorShape([self._starts[-1], *variables[0].shape[1:]])

    @property
    def name(self) -> str:
        """The name, without the ":0" of a variable that is in one place, as in TensorFlow."""
        return self._name

    @property
    def variables(self) -> list[Variable]:
        """The parts, in order."""
        return list(self._shards)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype."""
        return self._shards[0].dtype

    @property
    def device(self) -> str:
        """The device of the first part."""
        return self._shards[0].device

    def __iter__(self) -> Iterator[Variable]:
        return iter(self._shards)

    def sparse_read(self, indices: Any, name: str | None = None) -> Any:
        """Some rows, read from the parts that have them; only these are sent.

        Args:
          indices: integers [...].
          name: ignored.

        Returns:
          The rows, [..., *shape[1:]].

        Raises:
          InvalidArgumentError: there is no such row.
        """
        wanted = np.asarray(as_indices(indices, "sparse_read"))
        rows = np.empty((wanted.size, *self._shape[1:]), self.dtype)
        for part, chosen, own in self._chosen(wanted.reshape(-1), "sparse_read"):
            rows[chosen] = part.sparse_read(own)
        return rows.reshape((*wanted.shape, *self._shape[1:]))

    def _here(self) -> Any:
        return np.concatenate([np.asarray(part.value()) for part in self._shards])

    def _write(self, kind: str, value: Any, key: Any = None) -> Any:
        if kind.startswith("scatter"):
            self._scatter(kind, value)
        elif key is not None or kind not in ("assign", "assign_add", "assign_sub"):
            raise NotImplementedError(
                f"{kind}: a ShardedVariable is not assigned to by slices; use scatter_update, or assign all of it"
            )
        else:
            operand = as_operand(value.value() if isinstance(value, Variable) else value, self.dtype, kind)
            if tuple(operand.shape) != tuple(self._shape):
                raise ValueError(
                    f"Cannot assign value to variable '{self.name}': Shape mismatch. The variable shape {self._shape}, and the "
                    f"assigned value shape {tuple(operand.shape)} are incompatible."
                )
            for part, (start, stop) in zip(self._shards, pairwise(self._starts), strict=True):
                part._write(kind, operand[start:stop])
        return self

    def _scatter(self, kind: str, slices: Any) -> None:
        """Give each part its own rows. `indices` are [n], or [n, k] for the methods of several axes."""
        indices = np.asarray(as_indices(slices.indices, kind))
        updates = as_operand(slices.values, self.dtype, kind)
        several = kind.startswith("scatter_nd")
        depth = depth_of(kind, indices, len(self._shape)) if several else 0
        places = tuple(indices.shape[: indices.ndim - several])
        if updates.shape and tuple(updates.shape[: len(places)]) != places:
            raise InvalidArgumentError(
                f"{kind}: updates must be for places {list(places)}, as indices are, or a scalar, got shape "
                f"{list(updates.shape)}"
            )
        flat = indices.reshape(-1, depth) if several else indices.reshape(-1)
        first = flat[:, 0] if several else flat
        rest = tuple(updates.shape[len(places) :])
        spread = updates if not updates.shape else updates.reshape((len(flat), *rest))
        for part, chosen, own in self._chosen(first, kind):
            where = np.concatenate([own[:, None], flat[chosen, 1:]], axis=1) if several else own
            part._write(kind, IndexedSlices(spread[chosen] if spread.shape else spread, where))

    def _chosen(self, rows: Any, what: str) -> Iterator[tuple[Variable, Any, Any]]:
        """The parts that have some of the rows, which of them, and their places in the part."""
        wrong = (rows < 0) | (rows >= self._starts[-1])
        if wrong.any():
            raise InvalidArgumentError(f"{what}: index {rows[wrong][0]} is not in [0, {self._starts[-1]})")
        holders = np.searchsorted(self._starts[1:], rows, side="right")
        for number in np.unique(holders):
            chosen = np.flatnonzero(holders == number)
            yield self._shards[number], chosen, rows[chosen] - self._starts[number]

    def __deepcopy__(self, memo: dict[int, Any]) -> "ShardedVariable":
        made = ShardedVariable(
            [deepcopy(part, memo) for part in self._shards], self._name, self._policy, self._strategy
        )
        made._constraint = self._constraint
        return made

    def _saved(self) -> Any:
        return np.asarray(self._here())

    def _restored(self, array: Any) -> None:
        self._write("assign", array)
