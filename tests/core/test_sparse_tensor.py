# SPDX-License-Identifier: Apache-2.0
"""Sparse tensors, their specs, and steps of replicas that hold them."""

import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.data.dataset import Dataset
from distinput.errors import InvalidArgumentError
from distinput.values.sparse_tensor import SparseTensor


def test_values_stand_at_their_places() -> None:
    sparse = SparseTensor(np.array([[0, 1], [1, 0]]), np.array([b"a", b"b"], object), np.array([2, 2]))
    assert (sparse.shape, sparse.dtype) == ((2, 2), object)
    assert sparse.to_dense().tolist() == [[b"", b"a"], [b"b", b""]]
    assert sparse.to_dense(b"?").tolist() == [[b"?", b"a"], [b"b", b"?"]]


@pytest.mark.parametrize("places", [np.zeros((0, 1)), np.zeros((0, 1), np.int64)])
def test_no_values_have_places_of_any_dtype(places: Any) -> None:
    assert SparseTensor(places, np.zeros(0), [3]).to_dense().tolist() == [0, 0, 0]


def test_lists_become_arrays() -> None:
    sparse = SparseTensor([[0, 1]], [7], (2, 3))
    assert [part.dtype for part in sparse] == [np.int64, np.int32, np.int64]
    assert SparseTensor(np.array([[0]], np.int32), [1.0], np.array([2], np.int16)).dense_shape.dtype == np.int64
    assert pickle.loads(pickle.dumps(sparse)).to_dense().tolist() == [[0, 7, 0], [0, 0, 0]]


UNFIT = [([[0]], [1], [2, 3]), ([[0, 0]], [1, 2], [2, 3]), ([[0, 0]], [[1]], [2, 3]), ([0], [1], [2])]


@pytest.mark.parametrize("parts", UNFIT)
def test_arrays_that_do_not_fit_are_refused(parts: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="SparseTensor: for m values there must be indices"):
        SparseTensor(*parts)


SPEC = di.SparseTensorSpec([None, 3], "int32")


def test_specs() -> None:
    sparse = SparseTensor([[0, 1]], [7], [2, 3])
    assert di.SparseTensorSpec.from_value(sparse) == di.SparseTensorSpec([2, 3], "int32")
    assert SPEC.is_compatible_with(sparse)
    assert not di.SparseTensorSpec([None, 4], "int32").is_compatible_with(sparse)
    assert not SPEC.is_compatible_with(np.zeros((2, 3), np.int32))
    assert not di.TensorSpec([2, 3], "int32").is_compatible_with(sparse)
    assert di.TensorSpec([None, 3], "int32") != SPEC
    assert di.SparseTensorSpec([2, 3], "int32").is_subtype_of(SPEC)
    assert SPEC.most_specific_common_supertype([di.SparseTensorSpec([2, 4], "int32")]).shape == (None, None)
    assert SPEC.value_type is di.SparseTensor
    assert repr(SPEC) == "SparseTensorSpec(shape=(None, 3), dtype=int32)"
    assert len({SPEC, di.SparseTensorSpec([None, 3], "int32")}) == 1


def growing(n: int = 6) -> Dataset:
    return Dataset.range(n).map(
        lambda i: SparseTensor(np.arange(i % 4)[:, None], np.full(i % 4, i), np.array([i % 4 + 1]))
    )


# Its arrays have two rows each, so they could be taken for rows of a nest.
SPARSE = SparseTensor(np.array([[0, 0], [2, 1]]), np.array([1, 2]), np.array([3, 2]))


def test_one_replica_is_given_it_whole() -> None:
    strategy = di.distribute.OneDeviceStrategy("CPU:0")
    (step,) = strategy.experimental_distribute_dataset(Dataset.from_tensors(SPARSE))
    assert step.to_dense().tolist() == SPARSE.to_dense().tolist()


def parts(step: Any) -> list[Any]:
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    return [part.to_dense().tolist() for part in strategy.experimental_local_results(step)]


@pytest.mark.parametrize("options", [{}, {"balanced_split": True}])
def test_replicas_get_rows(options: dict[str, Any]) -> None:
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    ds = strategy.experimental_distribute_dataset(Dataset.from_tensors(SPARSE), di.distribute.InputOptions(**options))
    (step,) = ds
    assert parts(step) == [[[1, 0], [0, 0]], [[0, 2]]]
    sums = strategy.run(lambda x: x.values.sum(), args=(step,))
    assert strategy.reduce("SUM", sums, axis=None) == 3


def test_padded_steps() -> None:
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    steps = Dataset.from_tensor_slices(SPARSE).batch(4)
    ds = strategy.experimental_distribute_dataset(steps, di.distribute.InputOptions(tail="pad"))
    ((step, mask),) = ds
    assert parts(step) == [[[1, 0], [0, 0]], [[0, 2], [0, 0]]]
    assert [each.tolist() for each in mask.values] == [[True, True], [True, False]]


def test_iterators_of_steps_restart() -> None:
    def steps() -> Any:
        strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        return strategy.experimental_distribute_dataset(growing(7).batch(3))

    whole = [parts(step) for step in steps()]
    for stop in range(len(whole)):
        first: Iterator[Any] = iter(steps())
        for _ in range(stop):
            next(first)
        assert [parts(step) for step in steps().restore(first.state())] == whole[stop:]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "use",
    [
        lambda strategy, step: strategy.reduce("SUM", step, axis=None),
        lambda strategy, step: strategy.gather(step, axis=0),
        lambda strategy, step: strategy.run(
            lambda x: di.distribute.get_replica_context().all_reduce("SUM", x), (step,)
        ),
        lambda strategy, step: strategy.run(lambda x: di.distribute.get_replica_context().all_gather(x, 0), (step,)),
    ],
)
def test_their_arrays_are_not_added_or_joined(use: Callable[[Any, Any], Any]) -> None:
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    (step,) = strategy.experimental_distribute_dataset(Dataset.from_tensors(SPARSE))
    with pytest.raises(InvalidArgumentError, match="a SparseTensor cannot be added or joined"):
        use(strategy, step)
