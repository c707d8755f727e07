# SPDX-License-Identifier: Apache-2.0
"""Functions for `apply` that make batches, take them apart, or pad a dataset to a length."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from distinput.core.leaves import zero
from distinput.core.spec import TensorSpec
from distinput.data.dataset import Dataset
from distinput.errors import InvalidArgumentError
from distinput.ops.ragged_batch import RaggedBatch
from distinput.ops.sparse_batch import SparseBatch
from distinput.plan.check import at_least

__all__ = [
    "bucket_by_sequence_length",
    "dense_to_ragged_batch",
    "dense_to_sparse_batch",
    "map_and_batch",
    "pad_to_cardinality",
    "unbatch",
]

Transformation = Callable[[Dataset[Any]], Dataset[Any]]


def bucket_by_sequence_length(
    element_length_func: Callable[..., Any],
    bucket_boundaries: Any,
    bucket_batch_sizes: Any,
    padded_shapes: Any = None,
    padding_values: Any = None,
    pad_to_bucket_boundary: bool = False,
    no_padding: bool = False,
    drop_remainder: bool = False,
) -> Transformation:
    """`Dataset.bucket_by_sequence_length`, for `apply`.

    Args:
      element_length_func: element -> its length.
      bucket_boundaries: lengths at which the next bucket begins.
      bucket_batch_sizes: the batch size of each bucket, one more than boundaries.
      padded_shapes: as for `padded_batch`.
      padding_values: as for `padded_batch`.
      pad_to_bucket_boundary: pad to one below the upper boundary of the bucket, rather than to the longest element.
      no_padding: elements of a bucket are stacked as they are.
      drop_remainder: leave out batches that are not full.

    >>> import distinput as di
    >>> ds = di.data.Dataset.range(1, 5).map(lambda n: np.full(n, n), output_signature=di.TensorSpec([None], "int64"))
    >>> ds.apply(di.data.experimental.bucket_by_sequence_length(len, [3], [2, 2])).to_list()
    [[[1, 0], [2, 2]], [[3, 3, 3, 0], [4, 4, 4, 4]]]

    Source: `tf.data.experimental.bucket_by_sequence_length`.
    """
    return lambda dataset: dataset.bucket_by_sequence_length(
        element_length_func,
        bucket_boundaries,
        bucket_batch_sizes,
        padded_shapes,
        padding_values,
        pad_to_bucket_boundary,
        no_padding,
        drop_remainder,
    )


def dense_to_ragged_batch(
    batch_size: int, drop_remainder: bool = False, row_splits_dtype: Any = "int64"
) -> Transformation:
    """`Dataset.ragged_batch`, for `apply`.

    Args:
      batch_size: elements in a batch.
      drop_remainder: leave out a last batch that is not full.
      row_splits_dtype: accepted as TensorFlow's; row splits are int64.

    >>> import distinput as di
    >>> ds = di.data.Dataset.range(3).map(lambda n: np.full(n, n), output_signature=di.TensorSpec([None], "int64"))
    >>> ds.apply(di.data.experimental.dense_to_ragged_batch(3)).to_list()
    [[[], [1], [2, 2]]]

    Source: `tf.data.experimental.dense_to_ragged_batch`.
    """
    return lambda dataset: Dataset(RaggedBatch(dataset.node, batch_size, drop_remainder, row_splits_dtype))


def dense_to_sparse_batch(batch_size: int, row_shape: Any) -> Transformation:
    """`Dataset.sparse_batch`, for `apply`.

    Args:
      batch_size: elements in a batch.
      row_shape: the shape of each row; None or -1 in a dimension: the largest of the batch.

    >>> import distinput as di
    >>> ds = di.data.Dataset.from_tensor_slices([[7, 8]])
    >>> next(iter(ds.apply(di.data.experimental.dense_to_sparse_batch(1, [3])))).to_dense().tolist()
    [[7, 8, 0]]

    Source: `tf.data.experimental.dense_to_sparse_batch`.
    """
    return lambda dataset: Dataset(SparseBatch(dataset.node, batch_size, row_shape))


def map_and_batch(
    map_func: Callable[..., Any],
    batch_size: int,
    num_parallel_batches: int | None = None,
    drop_remainder: bool = False,
    num_parallel_calls: int | None = None,
) -> Transformation:
    """`map` and `batch`, for `apply`; the two together run as one step anyway.

    Args:
      map_func: as for `map`.
      batch_size: elements in a batch.
      num_parallel_batches: how many batches are made at a time; `num_parallel_calls` is this times `batch_size`.
      drop_remainder: leave out a last batch that is not full.
      num_parallel_calls: as for `map`.

    Raises:
      InvalidArgumentError: both numbers of parallel calls are given.

    >>> import distinput as di
    >>> di.data.Dataset.range(5).apply(di.data.experimental.map_and_batch(lambda x: x + 1, 2)).to_list()
    [[1, 2], [3, 4], [5]]

    Source: `tf.data.experimental.map_and_batch`.
    """
    if num_parallel_batches is not None:
        if num_parallel_calls is not None:
            raise InvalidArgumentError(
                "map_and_batch: give num_parallel_batches or num_parallel_calls, got both; the second is the first times "
                "batch_size"
            )
        at_least("map_and_batch", "num_parallel_batches", num_parallel_batches, 1)
        num_parallel_calls = num_parallel_batches * at_least("map_and_batch", "batch_size", batch_size, 1)
    return lambda dataset: dataset.map(map_func, num_parallel_calls).batch(batch_size, drop_remainder)


def pad_to_cardinality(cardinality: int, mask_key: str = "valid") -> Transformation:
    """A function for `apply` that adds elements of zeros until there are as many as said, and says which are real.

    Args:
      cardinality: the number of elements to reach.
      mask_key: the name of a further component, True for elements of the dataset and False for added ones.

    Raises:
      InvalidArgumentError: the elements are no dicts, or have a component of that name or of unknown shape; the number of
        elements is not known, or is larger than `cardinality`.

    >>> import distinput as di
    >>> ds = di.data.Dataset.from_tensor_slices({"a": [1, 2]})
    >>> ds.apply(di.data.experimental.pad_to_cardinality(3)).to_list()
    [{'a': 1, 'valid': True}, {'a': 2, 'valid': True}, {'a': 0, 'valid': False}]

    Source: `tf.data.experimental.pad_to_cardinality`; a component named as the mask is replaced there.
    """
    at_least("pad_to_cardinality", "cardinality", cardinality, 0)

    def padded(dataset: Dataset[Any]) -> Dataset[Any]:
        n = dataset.cardinality()
        spec = dataset.element_spec
        if not isinstance(spec, Mapping):
            raise InvalidArgumentError(
                f"pad_to_cardinality: elements must be dicts, got {spec}; make them dicts with map"
            )
        if mask_key in spec:
            raise InvalidArgumentError(
                f"pad_to_cardinality: mask_key must be a new name, got {mask_key!r}, which elements have; give another one"
            )
        if n < 0:
            raise InvalidArgumentError(
                f"pad_to_cardinality: the number of elements must be known and finite, got {n}; state it with "
                "apply(assert_cardinality(n))"
            )
        if n > cardinality:
            raise InvalidArgumentError(
                f"pad_to_cardinality: the dataset must have at most {cardinality} elements, got {n}"
            )
        leaves = dataset.node.spec
        for leaf, path in zip(leaves.tensors("pad_to_cardinality"), leaves.structure.paths, strict=True):
            if leaf.size is None:
                raise InvalidArgumentError(
                    f"pad_to_cardinality: the shape of each component must be known, got {leaf} for {path}; batch with "
                    "padded_batch first, or give output_signature= to map"
                )
        zeros = leaves.structure.build([_zero(leaf) for leaf in leaves.tensors("pad_to_cardinality")])
        fill = Dataset.from_tensors({**zeros, mask_key: np.False_}).repeat(cardinality - n)
        said = {**spec, mask_key: TensorSpec([], np.bool_)}
        real = dataset.map(lambda element: {**element, mask_key: np.True_}, output_signature=said)
        return real.concatenate(fill)

    return padded


def _zero(leaf: Any) -> Any:
    made = zero(leaf.dtype, tuple(leaf.shape))
    return made[()] if isinstance(made, np.ndarray) and not made.shape else made


def unbatch() -> Transformation:
    """`Dataset.unbatch`, for `apply`.

    >>> import distinput as di
    >>> di.data.Dataset.range(3).batch(2).apply(di.data.experimental.unbatch()).to_list()
    [0, 1, 2]

    Source: `tf.data.experimental.unbatch`.
    """
    return lambda dataset: dataset.unbatch()
