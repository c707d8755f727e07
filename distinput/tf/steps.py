# SPDX-License-Identifier: Apache-2.0
"""Functions for `apply`: steps of `tf.data.experimental`, some under the older names of methods of `Dataset`."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from distinput.data.dataset import Dataset
from distinput.errors import InvalidArgumentError, UnimplementedError
from distinput.formats.features import Feature
from distinput.names.lazy import dataclass
from distinput.ops.batch import RaggedBatch, SparseBatch
from distinput.ops.group_by_reducer import GroupByReducer
from distinput.ops.identity import AssertCardinality
from distinput.ops.on_error import IgnoreErrors
from distinput.ops.parse_example import ParseExample
from distinput.plan.check import AUTOTUNE, at_least, callable_argument, integer
from distinput.values.leaves import zero
from distinput.values.spec import TensorSpec

# ----------------------------------------------------------------------------
# Functions for `apply` that make batches, take them apart, or pad a dataset to a length.
# ----------------------------------------------------------------------------


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
      InvalidArgumentError: the elements are not dicts, or have a component of that name or of unknown shape; the number of
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


# ----------------------------------------------------------------------------
# Functions for `apply` that group elements by a key, or choose among them.
# ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Reducer:
    """How `group_by_reducer` makes one element of all elements of a key.

    Args:
      init_func: key -> the first value for that key, any nest.
      reduce_func: (value, element) -> the next value, of the same structure and dtypes.
      finalize_func: value -> the element to deliver; the components of a tuple are its arguments.

    Raises:
      TypeError: something is not callable.

    Source: `tf.data.experimental.Reducer`.
    """

    init_func: Callable[[Any], Any]
    reduce_func: Callable[[Any, Any], Any]
    finalize_func: Callable[..., Any]

    def __post_init__(self) -> None:
        for name in ("init_func", "reduce_func", "finalize_func"):
            callable_argument("Reducer", name, getattr(self, name))


def group_by_reducer(key_func: Callable[..., Any], reducer: Reducer) -> Transformation:
    """A function for `apply` that reduces the elements of each key to one, in ascending order of the keys.

    Elements come once the input has ended; the reduced value of every key is kept in memory.

    Args:
      key_func: element -> integer; the components of a tuple are its arguments.
      reducer: what to do with the elements of a key.

    Raises:
      TypeError: `reducer` is no `Reducer`; at iteration, `key_func` returns no integer, or a value changes its structure or
        a dtype.

    >>> import distinput as di
    >>> reducer = di.data.experimental.Reducer(lambda key: np.int64(0), lambda total, x: total + x, lambda total: total)
    >>> di.data.Dataset.range(10).apply(di.data.experimental.group_by_reducer(lambda x: x % 3, reducer)).to_list()
    [18, 12, 15]

    Source: `tf.data.experimental.group_by_reducer`.
    """
    if not isinstance(reducer, Reducer):
        raise TypeError(f"group_by_reducer: reducer must be a Reducer, got {reducer!r}")
    functions = key_func, reducer.init_func, reducer.reduce_func, reducer.finalize_func
    return lambda dataset: Dataset(GroupByReducer(dataset.node, *functions))


def group_by_window(
    key_func: Callable[..., Any],
    reduce_func: Callable[[Any, Dataset[Any]], Dataset[Any]],
    window_size: int | None = None,
    window_size_func: Callable[[Any], Any] | None = None,
) -> Transformation:
    """`Dataset.group_by_window`, for `apply`.

    Args:
      key_func: element -> integer.
      reduce_func: (key, dataset of the group's elements) -> dataset.
      window_size: elements in a group.
      window_size_func: key -> elements in a group of that key.

    Raises:
      InvalidArgumentError: not exactly one of the two sizes is given.

    >>> import distinput as di
    >>> group = di.data.experimental.group_by_window(lambda x: x % 2, lambda key, group: group.batch(2), 2)
    >>> di.data.Dataset.range(4).apply(group).to_list()
    [[0, 2], [1, 3]]

    Source: `tf.data.experimental.group_by_window`.
    """
    if (window_size is None) == (window_size_func is None):
        raise InvalidArgumentError("group_by_window: give exactly one of window_size and window_size_func")
    return lambda dataset: dataset.group_by_window(key_func, reduce_func, window_size, window_size_func)


def rejection_resample(
    class_func: Callable[..., Any], target_dist: Any, initial_dist: Any = None, seed: int | None = None
) -> Transformation:
    """`Dataset.rejection_resample`, for `apply`.

    Args:
      class_func: element -> its class, an integer from 0 to `len(target_dist) - 1`.
      target_dist: the wanted share of each class.
      initial_dist: the share that each class has; None: estimated from the elements so far.
      seed: any integer; None draws one, which a saved state remembers.

    >>> import distinput as di
    >>> ds = di.data.Dataset.range(4).apply(di.data.experimental.rejection_resample(lambda x: x % 2, [1.0, 0.0], [0.5, 0.5]))
    >>> ds.to_list()
    [(0, 0), (0, 2)]

    Source: `tf.data.experimental.rejection_resample`.
    """
    return lambda dataset: dataset.rejection_resample(class_func, target_dist, initial_dist, seed)


# ----------------------------------------------------------------------------
# Functions for `apply` under the older names of methods of `Dataset`.
# ----------------------------------------------------------------------------


def assert_cardinality(expected_cardinality: int) -> Transformation:
    """A function for `apply` that states how many elements a dataset has.

    Args:
      expected_cardinality: a number, or INFINITE_CARDINALITY.

    Raises:
      FailedPreconditionError: at iteration, when there are more or fewer.

    >>> import distinput as di
    >>> ds = di.data.Dataset.range(6).filter(lambda x: x > 3)
    >>> len(ds.apply(di.data.experimental.assert_cardinality(2)))
    2

    Source: `tf.data.experimental.assert_cardinality`.
    """
    return lambda dataset: Dataset(AssertCardinality(dataset.node, expected_cardinality))


def copy_to_device(target_device: str, source_device: str = "/cpu:0") -> Transformation:
    """A function for `apply` that leaves elements where they are: in the memory of the host.

    Args:
      target_device: a CPU, such as "/cpu:0".
      source_device: a CPU.

    Raises:
      UnimplementedError: a device that is no CPU; the message says what puts elements there.

    >>> import distinput as di
    >>> di.data.Dataset.range(3).apply(di.data.experimental.copy_to_device("/cpu:0")).to_list()
    [0, 1, 2]

    Source: `tf.data.experimental.copy_to_device`.
    """
    _on_host("copy_to_device", "target_device", target_device)
    _on_host("copy_to_device", "source_device", source_device)
    return lambda dataset: dataset


def enumerate_dataset(start: int = 0) -> Transformation:
    """`Dataset.enumerate`, for `apply`.

    Args:
      start: the first number.

    >>> import distinput as di
    >>> di.data.Dataset.from_tensor_slices(["a", "b"]).apply(di.data.experimental.enumerate_dataset(4)).to_list()
    [(4, b'a'), (5, b'b')]

    Source: `tf.data.experimental.enumerate_dataset`.
    """
    return lambda dataset: dataset.enumerate(start)


def ignore_errors(log_warning: bool = False) -> Transformation:
    """`Dataset.ignore_errors`, for `apply`.

    Args:
      log_warning: log each error with the logger "distinput".

    >>> import distinput as di
    >>> ds = di.data.Dataset.from_tensor_slices(["1", "two", "3"]).map(int)
    >>> ds.apply(di.data.experimental.ignore_errors()).to_list()
    [1, 3]

    Source: `tf.data.experimental.ignore_errors`.
    """
    return lambda dataset: Dataset(IgnoreErrors(dataset.node, log_warning))


def parallel_interleave(
    map_func: Callable[..., Dataset[Any]],
    cycle_length: int,
    block_length: int = 1,
    sloppy: bool = False,
    buffer_output_elements: int | None = None,
    prefetch_input_elements: int | None = None,
) -> Transformation:
    """`Dataset.interleave` with a thread for each open dataset, for `apply`.

    Args:
      map_func: element -> dataset.
      cycle_length: datasets that are open at a time.
      block_length: consecutive elements of each.
      sloppy: True: whichever has an element ready comes next.
      buffer_output_elements: accepted as TensorFlow's; what is read ahead is bounded by bytes.
      prefetch_input_elements: accepted as TensorFlow's.

    >>> import distinput as di
    >>> twice = di.data.experimental.parallel_interleave(lambda x: di.data.Dataset.from_tensors(x).repeat(2), cycle_length=2)
    >>> di.data.Dataset.range(2).apply(twice).to_list()
    [0, 1, 0, 1]

    Source: `tf.data.experimental.parallel_interleave`.
    """
    del buffer_output_elements, prefetch_input_elements
    return lambda dataset: dataset.interleave(
        map_func, cycle_length, block_length, num_parallel_calls=cycle_length, deterministic=not sloppy
    )


def parse_example_dataset(
    features: Mapping[str, Feature], num_parallel_calls: int | None = 1, deterministic: bool | None = None
) -> Transformation:
    """`Dataset.parse_example`, for `apply`.

    Args:
      features: from name to `FixedLenFeature` or `VarLenFeature`.
      num_parallel_calls: accepted as TensorFlow's.
      deterministic: accepted as TensorFlow's.

    >>> import distinput as di
    >>> ds = di.data.Dataset.from_tensors(di.io.encode_example({"x": [7]}))
    >>> parse = di.data.experimental.parse_example_dataset({"x": di.io.FixedLenFeature([], "int64")})
    >>> ds.apply(parse).to_list()
    [{'x': 7}]

    Source: `tf.data.experimental.parse_example_dataset`.
    """
    return lambda dataset: Dataset(ParseExample(dataset.node, features, num_parallel_calls, deterministic).added())


def prefetch_to_device(device: str, buffer_size: int | None = None) -> Transformation:
    """A function for `apply` that makes elements ahead of time, in the memory of the host.

    Args:
      device: a CPU, such as "/cpu:0".
      buffer_size: elements made ahead; None chooses.

    Raises:
      UnimplementedError: a device that is no CPU; the message says what puts elements there.

    >>> import distinput as di
    >>> di.data.Dataset.range(3).apply(di.data.experimental.prefetch_to_device("/cpu:0")).to_list()
    [0, 1, 2]

    Source: `tf.data.experimental.prefetch_to_device`.
    """
    _on_host("prefetch_to_device", "device", device)
    return lambda dataset: dataset.prefetch(AUTOTUNE if buffer_size is None else buffer_size)


def scan(initial_state: Any, scan_func: Callable[[Any, Any], tuple[Any, Any]]) -> Transformation:
    """`Dataset.scan`, for `apply`.

    Args:
      initial_state: the first value of the state, any nest.
      scan_func: (state, element) -> (state, output).

    >>> import distinput as di
    >>> import numpy as np
    >>> di.data.Dataset.range(4).apply(di.data.experimental.scan(np.int64(0), lambda s, x: (s + x, s + x))).to_list()
    [0, 1, 3, 6]

    Source: `tf.data.experimental.scan`.
    """
    return lambda dataset: dataset.scan(initial_state, scan_func)


def shuffle_and_repeat(buffer_size: int, count: int | None = None, seed: int | None = None) -> Transformation:
    """`shuffle` and `repeat`, for `apply`.

    Args:
      buffer_size: elements among which the next is drawn.
      count: how often; None or -1: without an end.
      seed: any integer; None draws one.

    >>> import distinput as di
    >>> ds = di.data.Dataset.range(3).apply(di.data.experimental.shuffle_and_repeat(3, 2, seed=1))
    >>> sorted(ds.to_list())
    [0, 0, 1, 1, 2, 2]

    Raises:
      InvalidArgumentError: `count` is neither positive nor -1.

    Source: `tf.data.experimental.shuffle_and_repeat`.
    """
    if count is not None and integer("shuffle_and_repeat", "count", count) != -1:
        at_least("shuffle_and_repeat", "count", count, 1)
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


def take_while(predicate: Callable[..., Any]) -> Transformation:
    """`Dataset.take_while`, for `apply`.

    Args:
      predicate: element -> one boolean.

    >>> import distinput as di
    >>> di.data.Dataset.range(9).apply(di.data.experimental.take_while(lambda x: x < 3)).to_list()
    [0, 1, 2]

    Source: `tf.data.experimental.take_while`.
    """
    return lambda dataset: dataset.take_while(predicate)


def unique() -> Transformation:
    """`Dataset.unique`, for `apply`.

    >>> import distinput as di
    >>> di.data.Dataset.range(4).map(lambda x: x // 2).apply(di.data.experimental.unique()).to_list()
    [0, 1]

    Source: `tf.data.experimental.unique`.
    """
    return lambda dataset: dataset.unique()


def _on_host(op: str, name: str, device: Any) -> None:
    """Refuse a device that is no CPU.

    Raises:
      TypeError: it is not a text.
      UnimplementedError: it is another device.
    """
    if not isinstance(device, str):
        raise TypeError(f"{op}: {name} must be the name of a device, such as '/cpu:0', got {device!r}")
    kind = device.lower().rpartition("/")[2].removeprefix("device:")
    if kind.partition(":")[0] != "cpu":
        raise UnimplementedError(
            f"{op}: {name} must be a CPU, got {device!r}: elements of a dataset are NumPy's; iterate "
            "strategy.experimental_distribute_dataset(dataset), which puts them on the devices of the strategy ahead of time"
        )
