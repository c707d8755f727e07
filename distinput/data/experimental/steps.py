# SPDX-License-Identifier: Apache-2.0
"""Functions for `apply` under the older names of methods of `Dataset`."""

from collections.abc import Callable, Mapping
from typing import Any

from distinput.data.dataset import Dataset
from distinput.errors import UnimplementedError
from distinput.formats.features import Feature
from distinput.ops.identity import AssertCardinality
from distinput.ops.ignore_errors import IgnoreErrors
from distinput.ops.parse_example import ParseExample
from distinput.plan.check import AUTOTUNE, at_least, integer

__all__ = [
    "assert_cardinality",
    "copy_to_device",
    "enumerate_dataset",
    "ignore_errors",
    "parallel_interleave",
    "parse_example_dataset",
    "prefetch_to_device",
    "scan",
    "shuffle_and_repeat",
    "take_while",
    "unique",
]

Transformation = Callable[[Dataset[Any]], Dataset[Any]]


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
      TypeError: it is no text.
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
