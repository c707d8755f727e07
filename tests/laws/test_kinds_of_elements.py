# SPDX-License-Identifier: Apache-2.0
"""Law: the class of an element, and whether it is ragged, is what the spec says, and never depends on the data.

So a batch of rows that happen to have one length is what every other batch is, and so is a last batch of one row.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.values.spec import RaggedTensorSpec, Spec
from tests.depth import crossed

Dataset = di.data.Dataset
RANGE = Dataset.range
INT64 = np.dtype(np.int64)
LENGTHS: dict[str, list[int]] = {
    "of several lengths": [2, 0, 1, 3, 2],
    "of one length": [2, 2, 2, 2, 2],
    "one row": [3],
    "empty rows": [0, 0, 0],
    "alike in each batch": [2, 2, 3, 3, 1],
}


def filled(lengths: list[int]) -> Dataset:
    return Dataset.from_tensor_slices(np.array(lengths)).map(lambda n: np.full(n, n))


def stated(lengths: list[int]) -> Dataset:
    return RANGE(len(lengths)).map(
        lambda i: np.full(lengths[int(i)], i), output_signature=di.TensorSpec([None], "int64")
    )


def generated(lengths: list[int]) -> Dataset:
    return Dataset.from_generator(
        lambda: (np.arange(n) for n in lengths), output_signature=di.TensorSpec([None], "int64")
    )


def texts(lengths: list[int]) -> Dataset:
    return Dataset.from_tensor_slices([" ".join("a" * n) or " " for n in lengths]).map(
        lambda t: np.array(t.split(), object)
    )


def rows(lengths: list[int]) -> Dataset:
    return Dataset.from_tensor_slices(di.RaggedTensor.from_list([list(range(n)) for n in lengths], "int64"))


def tensors(lengths: list[int]) -> Dataset:
    return RANGE(len(lengths)).map(
        lambda i: di.RaggedTensor.from_list([list(range(lengths[int(i)]))] * lengths[int(i)], "int64", 1)
    )


def nested(lengths: list[int]) -> Dataset:
    return stated(lengths).map(
        lambda x: {"a": x, "b": np.zeros((2, len(x))), "c": x.sum()},
        output_signature={
            "a": di.TensorSpec([None], "int64"),
            "b": di.TensorSpec([2, None], "float64"),
            "c": di.TensorSpec([], "int64"),
        },
    )


SOURCES: dict[str, Callable[[list[int]], Dataset]] = {
    "map of numbers": filled,
    "map with a signature": stated,
    "from_generator": generated,
    "map of texts": texts,
    "nests": nested,
    "rows of a ragged tensor": rows,
    "ragged tensors": tensors,
}


def through_processes(ds: Dataset) -> Dataset:
    return ds.map(same, num_parallel_calls=1, processes=True, output_signature=ds.element_spec)


def same(x: Any) -> Any:
    return x


def shuffled(ds: Dataset) -> Dataset:
    return ds.shuffle(3, seed=1, reshuffle_each_iteration=False)


THEN: dict[str, Callable[[Dataset], Dataset]] = {
    "ragged_batch": lambda ds: ds.ragged_batch(2),
    "ragged_batch of one": lambda ds: ds.ragged_batch(1),
    "ragged_batch of all": lambda ds: ds.ragged_batch(9),
    "ragged_batch, batch": lambda ds: ds.ragged_batch(2).batch(1),
    "ragged_batch, ragged_batch": lambda ds: ds.ragged_batch(1).ragged_batch(2),
    "ragged_batch, unbatch": lambda ds: ds.ragged_batch(2).unbatch(),
    "ragged_batch, unbatch, ragged_batch": lambda ds: ds.ragged_batch(2).unbatch().ragged_batch(3),
    "ragged_batch, unbatch, batch": lambda ds: ds.ragged_batch(2).unbatch().batch(2),
    "ragged_batch, rebatch": lambda ds: ds.ragged_batch(2).rebatch(3),
    "ragged_batch, map": lambda ds: ds.ragged_batch(2).map(same),
    "ragged_batch, map on threads": lambda ds: ds.ragged_batch(2).map(same, num_parallel_calls=2),
    "ragged_batch, cache": lambda ds: ds.ragged_batch(2).cache(),
    "ragged_batch, shuffle": lambda ds: shuffled(ds.ragged_batch(1)),
    "cache, shuffle, ragged_batch": lambda ds: shuffled(ds.cache()).ragged_batch(2),
    "ragged_batch, concatenate": lambda ds: ds.ragged_batch(2).concatenate(ds.ragged_batch(1)),
    "ragged_batch, take": lambda ds: ds.ragged_batch(1).take(1),
    "ragged_batch, interleave": lambda ds: RANGE(2).interleave(lambda _: ds.ragged_batch(2), cycle_length=2),
    "ragged_batch, zip": lambda ds: Dataset.zip((ds.ragged_batch(2), ds.ragged_batch(1))),
    "ragged_batch, filter": lambda ds: ds.ragged_batch(1).filter(lambda _: True),
    "ragged_batch, scan": lambda ds: ds.ragged_batch(1).scan(np.int64(0), lambda s, x: (s, x)),
    "ragged_batch, unbatch, cache, batch": lambda ds: ds.ragged_batch(2).unbatch().cache().batch(2),
    "ragged_batch, unbatch, shuffle, batch": lambda ds: shuffled(ds.ragged_batch(2).unbatch()).batch(2),
    "ragged_batch, unbatch, shard, batch": lambda ds: ds.ragged_batch(2).unbatch().shard(2, 0).batch(2),
    "ragged_batch, unbatch, concatenate, batch": lambda ds: (
        ds.ragged_batch(2).unbatch().concatenate(ds.ragged_batch(1).unbatch()).batch(2)
    ),
    "ragged_batch, sample": lambda ds: Dataset.sample_from_datasets([ds.ragged_batch(1), ds.ragged_batch(2)], seed=1),
}


def kinds(element: Any, spec: Any) -> list[Any]:
    """The class and what is ragged of each leaf of an element."""
    flat = Spec.of(spec)
    found = []
    for leaf, said in zip(flat.structure.flatten(element), flat.leaves, strict=True):
        assert said.fits_value(leaf), (leaf, said)
        ragged = bool(isinstance(said, RaggedTensorSpec) and said.ragged_rank)
        assert isinstance(leaf, di.RaggedTensor) == ragged, (leaf, said)
        found.append((type(leaf), leaf.ragged_rank if ragged else None, np.ndim(leaf)))
    return found


@pytest.mark.parametrize("source, then", crossed(SOURCES, THEN, together=1))
def test_the_data_never_decide(source: str, then: str) -> None:
    seen = set()
    for lengths in LENGTHS.values():
        dataset = THEN[then](SOURCES[source](lengths))
        seen |= {repr(kinds(element, dataset.element_spec)) for element in dataset}
        unasked = THEN[then](SOURCES[source](lengths))
        assert [repr(x) for x in unasked] == [repr(x) for x in dataset]
    assert len(seen) == 1


@pytest.mark.parametrize("source, how", crossed(SOURCES, ["save", "snapshot", "cache", "processes"], together=1))
def test_nor_does_the_way(source: str, how: str, tmp_path: Path) -> None:
    seen = set()
    for place, lengths in enumerate(LENGTHS.values()):
        folder = str(tmp_path / str(place))
        for step, batches in enumerate([SOURCES[source](lengths).ragged_batch(2), SOURCES[source](lengths)]):
            if how == "save":
                batches.save(f"{folder}{step}")
                made = Dataset.load(f"{folder}{step}")
                assert made.element_spec == batches.element_spec
            elif how == "processes":
                made = through_processes(batches) if place < 2 else batches
            else:
                made = getattr(batches, how)(f"{folder}{step}")
            for _ in range(2):
                seen.add((step, *[repr(kinds(element, batches.element_spec)) for element in made.take(1)]))
                list(made)
    assert len(seen) == 2


@pytest.mark.parametrize("lengths", [[2, 2], [0, 0], [1], [3, 1]])
def test_sparse_batches_have_the_shape_of_their_elements(lengths: list[int]) -> None:
    wide = Dataset.from_generator(
        lambda: (np.ones((n, 2), np.int64) for n in lengths), output_signature=di.TensorSpec([None, 2], "int64")
    )
    (batch,) = wide.sparse_batch(9, [None, None])
    assert batch.dense_shape.tolist() == [len(lengths), max(lengths), 2]
    (batch,) = wide.sparse_batch(9, [4, 2])
    assert batch.dense_shape.tolist() == [len(lengths), 4, 2]
    assert batch.indices.shape == (2 * sum(lengths), 3)


def sparse(i: Any) -> Any:
    return di.SparseTensor(np.array([[0], [1]]), np.array([i, i]), np.array([3]))


@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.parametrize("nest", [sparse, lambda i: {"a": sparse(i), "b": i}])
@pytest.mark.parametrize(
    "how",
    [
        lambda ds: ds.batch(2),
        lambda ds: ds.batch(2, drop_remainder=True),
        lambda ds: ds.ragged_batch(2),
        lambda ds: ds.batch(3).unbatch(),
        lambda ds: ds.batch(3).rebatch(2),
        lambda ds: ds.group_by_window(lambda *_: 0, lambda _, window: window.batch(2), 2),
        lambda ds: ds.batch(2).global_shuffle(seed=1),
    ],
)
def test_sparse_tensors_of_a_function_stay_sparse_tensors(how: Any, nest: Any, asked: bool) -> None:
    dataset = RANGE(4).map(nest)
    assert not asked or dataset.element_spec
    made = how(dataset)
    for element in made:
        found = element["a"] if isinstance(element, dict) else element
        assert type(found) is di.SparseTensor
        assert isinstance(element, dict) == isinstance(nest(0), dict)
