# SPDX-License-Identifier: Apache-2.0
"""Sparse tensors as rows of blocks and elements of datasets; `tests/golden/held_elements.json` has TensorFlow's answers."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.data.dataset import Dataset
from distinput.errors import InvalidArgumentError
from distinput.testing import check_dataset
from distinput.values.sparse_tensor import SparseTensor


def random_sparse(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> SparseTensor:
    dense = rng.integers(0, 2, shape)
    places = np.argwhere(dense)
    values = rng.integers(1, 9, len(places))
    made = np.array([str(v).encode() for v in values], object) if dtype == "string" else values.astype(dtype)
    return SparseTensor(places, made, np.array(shape))


def dense(sparse: SparseTensor, shape: tuple[int, ...]) -> Any:
    """With zeros up to a shape."""
    out = np.zeros(shape, object)
    out[tuple(slice(0, size) for size in sparse.shape)] = sparse.to_dense()
    out[out == b""] = 0
    return out


@pytest.mark.parametrize("dtype", ["int64", "float32", "string"])
@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("size", [1, 3, 7])
def test_batches_are_those_of_the_whole_arrays(dtype: str, alike: bool, rank: int, size: int) -> None:
    rng = np.random.default_rng([rank, size, alike])
    shapes = [tuple(map(int, [3] * rank if alike else rng.integers(0, 4, rank))) for _ in range(7)]
    items = [random_sparse(rng, shape, dtype) for shape in shapes]
    ds = Dataset.from_generator(lambda: iter(items), output_signature=di.SparseTensorSpec([None] * rank, dtype))
    batches = list(ds.batch(size))
    for number, batch in enumerate(batches):
        members = items[number * size : (number + 1) * size]
        largest = tuple(np.max([item.shape for item in members], axis=0).tolist())
        assert batch.shape == (len(members), *largest)
        assert dense(batch, batch.shape).tolist() == [dense(item, largest).tolist() for item in members]
        assert batch.indices.dtype == batch.dense_shape.dtype == np.int64
    for number, row in enumerate(ds.batch(size).unbatch()):
        assert row.shape == batches[number // size].shape[1:]
        assert dense(row, row.shape).tolist() == dense(items[number], row.shape).tolist()
    again = list(ds.batch(size).rebatch(2))
    assert [len(batch.to_dense()) for batch in again] == [2, 2, 2, 1]
    assert sum(len(batch.values) for batch in again) == sum(len(item.values) for item in items)


def growing(n: int = 6) -> Dataset:
    return Dataset.range(n).map(
        lambda i: SparseTensor(np.arange(i % 4)[:, None], np.full(i % 4, i), np.array([i % 4 + 1]))
    )


PIPELINES: dict[str, Callable[[], Dataset]] = {
    "batch": lambda: growing(5).batch(2),
    "batch of batches": lambda: growing(5).batch(2).batch(2),
    "unbatch": lambda: growing(5).batch(3).unbatch(),
    "rebatch in a cycle": lambda: growing(5).batch(3).rebatch([1, 0, 2]),
    "slices": lambda: Dataset.from_tensor_slices((np.arange(3), SparseTensor([[0, 1], [2, 0]], [7, 8], [3, 2]))),
    "sparse batches apart": lambda: Dataset.from_tensor_slices(np.eye(5)).sparse_batch(3, [5]).unbatch().batch(2),
    "window": lambda: growing(5).window(2, shift=1).flat_map(lambda w: w.batch(2)),
    "cache": lambda: growing(5).cache().batch(4).unbatch(),
    "shard_batches": lambda: growing(9).batch(4).shard_batches(2, 1),
    "group_by_window": lambda: growing(5).group_by_window(lambda s: s.shape[0] % 2, lambda _, w: w.batch(2), 2),
    "concatenate": lambda: growing(3).batch(2).concatenate(growing(3).batch(3)).unbatch(),
    "another rank": lambda: growing(3).concatenate(Dataset.from_tensors(SparseTensor([[0, 1]], [7], [1, 2])).map(wide)),
}


def wide(s: Any) -> Any:
    return SparseTensor(s.indices, s.values.astype(np.int64), s.dense_shape)


@pytest.mark.parametrize("name", PIPELINES)
def test_pipelines_of_sparse_tensors_keep_the_laws(name: str) -> None:
    assert "restart" in check_dataset(PIPELINES[name])


REFUSED: dict[str, Callable[[Dataset], Dataset]] = {
    "padded_batch": lambda ds: ds.padded_batch(2),
    "map_rows": lambda ds: ds.map_rows(lambda *x: x),
    "batch_by_tokens": lambda ds: ds.batch_by_tokens(4),
    "padded_batch ": lambda ds: ds.bucket_by_sequence_length(lambda *_: 1, [2], [2, 2]),
    "pack": lambda ds: ds.pack(4),
}


@pytest.mark.parametrize("how", REFUSED)
@pytest.mark.parametrize("nest", [False, True])
@pytest.mark.parametrize("known", [False, True])
def test_what_pads_or_counts_refuses_them(how: str, nest: bool, known: bool) -> None:
    ds = growing().map(lambda s: {"s": s}) if nest else growing()
    assert not known or ds.element_spec
    with pytest.raises(
        InvalidArgumentError, match=f"{how.strip()}: elements must be arrays, got elements with a SparseTensor"
    ):
        list(REFUSED[how](ds))


WRONG = {
    "rank 2 or more to be taken apart": lambda: growing().unbatch(),
    "indices in order, each once, got .0, 1. behind .2, 0.": lambda: Dataset.from_tensors(
        SparseTensor([[2, 0], [0, 1]], [7, 8], [3, 2])
    ).unbatch(),
    "indices inside of dense_shape, got .3, 0. for .3, 2.": lambda: Dataset.from_tensors(
        SparseTensor([[3, 0]], [7], [3, 2])
    ).unbatch(),
    "component .1.: a SparseTensor can be taken apart from rank 2 on, got rank 1": lambda: Dataset.from_tensor_slices(
        ([1], SparseTensor([[0]], [1], [1]))
    ),
    "first element had shape .1., another one has .1, 2.": lambda: (
        growing(1).concatenate(Dataset.from_tensors(SparseTensor([[0, 1]], [7], [1, 2])).map(wide)).batch(2)
    ),
}


@pytest.mark.parametrize("says", WRONG)
def test_what_cannot_be_batched_or_taken_apart(says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=says):
        list(WRONG[says]())


def test_batches_before_one_of_several_ranks_are_delivered() -> None:
    items = [SparseTensor([[0]], [1], [2])] * 3 + [SparseTensor([[0, 1]], [7], [1, 2])] * 3
    ds = Dataset.from_generator(lambda: iter(items), output_signature=di.SparseTensorSpec(None, "int32"))
    assert [batch.shape for batch in ds.batch(3)] == [(3, 2), (3, 1, 2)]
    found = iter(ds.batch(2))
    assert next(found).shape == (2, 2)
    with pytest.raises(InvalidArgumentError, match="different shapes"):
        next(found)
    assert next(found).shape == (2, 1, 2)


def test_stated_sizes_are_checked() -> None:
    stated = di.SparseTensorSpec([None, 3], "int32")
    wrong = SparseTensor([[0, 1]], [7], [2, 4])
    with pytest.raises(
        TypeError, match=r"a SparseTensor of shape \[2, 4\] where one of shape \[None, 3\] was expected"
    ):
        list(Dataset.from_generator(lambda: iter([wrong]), output_signature=stated))
    with pytest.raises(TypeError, match="output_signature"):
        list(Dataset.range(1).map(lambda _: wrong, output_signature=stated))
    right = Dataset.range(2).map(lambda _: SparseTensor([[0, 1]], [7], [2, 3]), output_signature=stated)
    assert right.batch(2).element_spec == di.SparseTensorSpec([None, None, 3], "int32")
    assert next(iter(right.batch(2))).shape == (2, 2, 3)


def test_another_process_loads_what_was_saved(tmp_path: Any) -> None:
    growing(3).batch(2).save(str(tmp_path / "saved"))
    program = (
        "import distinput as di\n"
        f"ds = di.data.Dataset.load({str(tmp_path / 'saved')!r})\n"
        "print(ds.element_spec, [batch.to_dense().tolist() for batch in ds])"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout == "SparseTensorSpec(shape=(None, None), dtype=int64) [[[0, 0], [1, 0]], [[2, 2, 0]]]\n"


def test_through_processes() -> None:
    ds = growing(4).map(wide, processes=True, num_parallel_calls=2).batch(2)
    assert [batch.shape for batch in ds] == [(2, 2), (2, 4)]
