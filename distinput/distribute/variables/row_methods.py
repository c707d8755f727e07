# SPDX-License-Identifier: Apache-2.0
"""Methods of variables that read or write some of the rows: `sparse_read`, `gather_nd`, and the scatter methods."""

from typing import Any

import numpy as np

from distinput.distribute.values import DistributedValues
from distinput.distribute.variables.conversion import as_indices
from distinput.distribute.variables.indexed_slices import IndexedSlices
from distinput.distribute.variables.updates import check_within
from distinput.errors import InvalidArgumentError

__all__ = ["RowMethods", "rows_at"]


class RowMethods:
    """What can be done with some of the rows of a value, for classes that say how the value is read and written."""

    def _here(self) -> Any:
        """The value that the running code sees."""
        raise NotImplementedError

    def _write(self, kind: str, value: Any, key: Any = None) -> Any:
        """Change the value and return what the write method returns.

        Args:
          kind: a key of `UPDATES`.
          value: what to write, which replicas may have to aggregate: a value, or an `IndexedSlices`.
          key: the index of a slice.
        """
        raise NotImplementedError

    def _rows(self, what: str, indices: Any) -> Any:
        """The parts at these places, [..., k] for the first k axes."""
        return rows_at(what, self._here(), indices)

    def sparse_read(self, indices: Any, name: str | None = None) -> Any:
        """The rows at these places: value [n, ...], indices [...] -> [..., ...].

        Raises:
          TypeError: indices that are not integers.
          InvalidArgumentError: there is no such row.
        """
        return self._rows("sparse_read", as_indices(indices, "sparse_read")[..., None])

    def gather_nd(self, indices: Any, name: str | None = None) -> Any:
        """The parts at these places; the last axis of `indices` has the indices along the first axes of the value.

        Raises:
          As `sparse_read`.
        """
        return self._rows("gather_nd", as_indices(indices, "gather_nd"))

    def scatter_add(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Add rows to rows of the value.

        Rows that are named twice are added twice. The other scatter methods work alike.

        Args:
          sparse_delta: an `IndexedSlices`; its values are rows of the shape of the variable's rows, or a scalar for all.
          use_locking: ignored; every write is atomic.
          name: ignored.

        Raises:
          TypeError: not an `IndexedSlices`, or indices that are not integers.
          InvalidArgumentError: an index or a shape that does not fit.
          NotImplementedError: the policy does not allow it: ON_READ variables have no scatter methods, and the ones that
            are not sums need aggregation NONE or ONLY_FIRST_REPLICA.
        """
        return self._write("scatter_add", _slices("scatter_add", sparse_delta))

    def scatter_sub(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Subtract rows from rows of the value. See `scatter_add`."""
        return self._write("scatter_sub", _slices("scatter_sub", sparse_delta))

    def scatter_mul(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Multiply rows of the value by rows. See `scatter_add`."""
        return self._write("scatter_mul", _slices("scatter_mul", sparse_delta))

    def scatter_div(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Divide rows of the value by rows; integers are rounded towards zero. See `scatter_add`."""
        return self._write("scatter_div", _slices("scatter_div", sparse_delta))

    def scatter_max(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Replace rows of the value by the larger of the two, number by number. See `scatter_add`."""
        return self._write("scatter_max", _slices("scatter_max", sparse_delta))

    def scatter_min(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Replace rows of the value by the smaller of the two, number by number. See `scatter_add`."""
        return self._write("scatter_min", _slices("scatter_min", sparse_delta))

    def scatter_update(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Replace rows of the value. See `scatter_add`."""
        return self._write("scatter_update", _slices("scatter_update", sparse_delta))

    def batch_scatter_update(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Replace rows of each array of a batch: value [b, n, ...], indices [b, k], values [b, k, ...]."""
        slices = _slices("batch_scatter_update", sparse_delta)
        indices = np.asarray(slices.indices)
        batch = np.indices(indices.shape)[:-1]
        return self._write("scatter_nd_update", IndexedSlices(slices.values, np.stack([*batch, indices], axis=-1)))

    def scatter_nd_add(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Add parts to parts of the value.

        Args:
          indices: places, [..., k]: the last axis gives the indices along the first k axes of the variable.
          updates: what to write there, [..., *variable.shape[k:]].
          name: ignored.

        Raises:
          As `scatter_add`.
        """
        return self._write("scatter_nd_add", IndexedSlices(updates, indices))

    def scatter_nd_sub(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Subtract parts from parts of the value. See `scatter_nd_add`."""
        return self._write("scatter_nd_sub", IndexedSlices(updates, indices))

    def scatter_nd_update(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Replace parts of the value. See `scatter_nd_add`."""
        return self._write("scatter_nd_update", IndexedSlices(updates, indices))

    def scatter_nd_max(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Replace parts of the value by the larger of the two, number by number. See `scatter_nd_add`."""
        return self._write("scatter_nd_max", IndexedSlices(updates, indices))

    def scatter_nd_min(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Replace parts of the value by the smaller of the two, number by number. See `scatter_nd_add`."""
        return self._write("scatter_nd_min", IndexedSlices(updates, indices))


def _slices(what: str, value: Any) -> Any:
    if isinstance(value, IndexedSlices | DistributedValues):
        return value
    raise TypeError(
        f"{what}: sparse_delta is not IndexedSlices: {value!r}; write distinput.IndexedSlices(values, indices)"
    )


def rows_at(what: str, value: Any, indices: Any) -> Any:
    """The parts of a value at these places, [..., k] for the first k axes.

    Raises:
      InvalidArgumentError: there are none.
    """
    depth = indices.shape[-1] if indices.ndim else 0
    if not 0 < depth <= value.ndim:
        raise InvalidArgumentError(
            f"{what}: indices must be for 1 to {value.ndim} axes, the number of the variable's, got shape "
            f"{list(indices.shape)}"
        )
    for axis in range(depth):
        check_within(what, indices[..., axis], value.shape[axis])
    return value[tuple([indices[..., axis] for axis in range(depth)])]
