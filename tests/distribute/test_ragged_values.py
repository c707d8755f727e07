# SPDX-License-Identifier: Apache-2.0
"""Ragged tensors over replicas: cut, gathered, reduced, padded; and over workers."""

from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from distinput.testing import check_distributed, check_workers
from tests.distribute.workers import on_workers

THREE = di.distribute.MirroredStrategy(["CPU:0", "CPU:1", "CPU:2"])
ROWS = di.RaggedTensor.from_list([[1, 2], [3], [], [4, 5, 6], [7], [8, 9], [10]])


def batches() -> di.data.Dataset[Any]:
    words = di.RaggedTensor.from_list([[b"a"] * n for n in (1, 0, 2, 0, 0, 3, 1)])
    elements = {"rows": ROWS, "words": words, "id": np.arange(7)}
    return di.data.Dataset.from_tensor_slices(elements).batch(4)


def per_replica(*rows: Any) -> Any:
    return di.distribute.PerReplica([di.RaggedTensor.from_list(each, "int64") for each in rows])


def test_replicas_get_the_rows_of_each_batch_and_everything_is_restored() -> None:
    check_distributed(THREE, batches())


def test_over_workers() -> None:
    check_workers(batches, workers=2, replicas=2, even=False)


def test_workers_gather_and_reduce_the_rows_of_all() -> None:
    def body(strategy: Any, worker: int) -> Any:
        mine = [[[1, 2], [3]], [[4, 5, 6]]][worker]
        value = di.distribute.PerReplica(
            [di.RaggedTensor.from_list(mine, "int64"), di.RaggedTensor.from_list([[]], "int64")]
        )
        rows = strategy.gather(value, axis=0)
        means = strategy.reduce("MEAN", value, axis=0)
        return rows.to_list(), means.tolist(), strategy.reduce("SUM", value, axis=(0, 1))

    for found in on_workers([2, 2], body):
        assert found == ([[1, 2], [3], [], [4, 5, 6], []], [8 / 3, 3.5, 6], 21)


def test_rows_of_rows_are_distributed() -> None:
    check_distributed(THREE, batches().map(lambda x: x["rows"]).batch(2))


def test_a_replica_without_rows_has_a_ragged_tensor_without_rows() -> None:
    distributed = THREE.experimental_distribute_dataset(batches().map(lambda x: x["rows"]))
    assert distributed.element_spec.value_specs == (di.RaggedTensorSpec([None, None], "int32", 1),) * 3
    first, second = distributed
    assert [part.to_list() for part in first.values] == [[[1, 2], [3]], [[], [4, 5, 6]], []]
    assert isinstance(first.values[2], di.RaggedTensor)
    assert first.row_counts == (2, 2, 0)
    assert THREE.gather(first, axis=0).to_list() == [[1, 2], [3], [], [4, 5, 6]]
    assert second.row_counts == (1, 1, 1)


def test_replicas_compute_on_ragged_tensors() -> None:
    def longest(x: Any) -> Any:
        return x["rows"].row_lengths().max(initial=0)

    found = [THREE.run(longest, args=(step,)) for step in THREE.experimental_distribute_dataset(batches())]
    assert [[int(n) for n in step.values] for step in found] == [[2, 3, 0], [1, 2, 1]]


def test_padded_parts_have_rows_without_values() -> None:
    options = di.distribute.InputOptions(tail="pad")
    step, mask = next(iter(THREE.experimental_distribute_dataset(batches(), options)))
    assert [part.to_list() for part in step["rows"].values] == [[[1, 2], [3]], [[], [4, 5, 6]], [[], []]]
    assert THREE.gather(step["rows"], axis=0, mask=mask).to_list() == [[1, 2], [3], [], [4, 5, 6]]
    assert THREE.reduce("MEAN", step["rows"], axis=(0, 1), mask=mask) == 3.5


def test_sums_and_means_over_rows_and_over_values() -> None:
    value = per_replica([[1, 2], [3]], [[], [4, 5, 6]], [])
    assert THREE.reduce("SUM", value, axis=0).tolist() == [8, 7, 6]
    assert THREE.reduce("MEAN", value, axis=0).tolist() == [8 / 3, 3.5, 6]
    assert THREE.reduce("SUM", value, axis=(0, 1)) == 21
    assert THREE.reduce("MEAN", value, axis=(0, 1), deterministic=True) == 3.5
    assert THREE.reduce("SUM", per_replica([[1, 2]], [[4]], [[]]), axis=1).tolist() == [7]
    assert THREE.reduce("MEAN", per_replica([[1, 2]], [[6]], [[]]), axis=1).tolist() == [3]


def test_what_has_no_sum() -> None:
    value = per_replica([[1]], [[2]], [[3]])
    with pytest.raises(InvalidArgumentError, match=r"have no sum element by element.*give axis=0 for the rows"):
        THREE.reduce("SUM", value, axis=None)
    with pytest.raises(InvalidArgumentError, match="same size"):
        THREE.reduce("SUM", per_replica([[1]], [[2], [3]], []), axis=1)
    with pytest.raises(InvalidArgumentError, match="gathered along axis 0, their rows, got axis 1"):
        THREE.gather(value, axis=1)
    text = di.distribute.PerReplica([di.RaggedTensor.from_list([["a"]])] * 3)
    with pytest.raises(InvalidArgumentError, match="SUM needs numbers"):
        THREE.reduce("SUM", text, axis=0)
    mixed = di.distribute.PerReplica([ROWS, ROWS, np.zeros((2, 2), np.int32)])
    with pytest.raises(
        InvalidArgumentError, match=r"must be of one kind on all replicas, got shape .* and an array of shape"
    ):
        THREE.gather(mixed, axis=0)


def test_all_gather_gives_each_replica_its_own_copy() -> None:
    def everything(rows: Any) -> Any:
        return di.distribute.get_replica_context().all_gather(rows, axis=0)

    parts = THREE.run(everything, args=(per_replica([[1]], [[2, 3]], [[]]),)).values
    assert [part.to_list() for part in parts] == [[[1], [2, 3], []]] * 3
    assert not np.shares_memory(parts[0].values, parts[1].values)


def test_files_and_rows_are_divided_among_workers() -> None:
    for policy in ("DATA", "BALANCED"):
        seen: list[Any] = []
        for worker in range(2):
            options = di.data.Options()
            options.experimental_distribute.auto_shard_policy = di.data.experimental.AutoShardPolicy[policy]
            whole = di.data.Dataset.from_tensor_slices(ROWS).with_options(options).batch(4)
            cut = di.data.experimental.rebatch_for_worker(whole, 2, 1, worker)
            mine = di.data.experimental.auto_shard_dataset(cut, 2, worker, 2)
            seen += [row.tolist() for row in mine.unbatch()]
        assert sorted(seen) == sorted(ROWS.to_list())


def placeholder_of_one_row() -> tuple[Any, Any]:
    """A strategy, and ragged tensors of a last step in which replica 1 had a placeholder."""
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    steps = iter(strategy.distribute_datasets_from_function(lambda _: di.data.Dataset.from_tensor_slices([3, 5, 7])))
    steps.get_next_as_optional()
    step = steps.get_next_as_optional().get_value()
    return strategy, strategy.run(lambda x: di.RaggedTensor.from_list([[float(x)] * (3 if x else 4)]), args=(step,))


def test_what_was_made_of_a_placeholder_does_not_count() -> None:
    strategy, value = placeholder_of_one_row()
    assert strategy.gather(value, axis=0).to_list() == [[7.0, 7.0, 7.0]]
    assert strategy.reduce("MEAN", value, axis=(0, 1)) == 7
    assert strategy.reduce("MEAN", value, axis=0).tolist() == [7.0, 7.0, 7.0]
    assert strategy.reduce("SUM", value, axis=1).tolist() == [21.0]


def test_a_mistake_of_one_worker_fails_that_call_on_all_and_no_other() -> None:
    def body(strategy: Any, worker: int) -> list[str]:
        good = di.RaggedTensor.from_list([[1.0]])
        ragged = di.distribute.PerReplica([good, di.RaggedTensor.from_list([[1]], "int64") if worker else good])
        slices = di.IndexedSlices([[1.0]], [0], None if worker else [3, 1])
        sliced = di.distribute.PerReplica([slices, di.IndexedSlices([[1.0, 2.0]], [0], [3, 2]) if worker else slices])
        said = []
        for call in (
            lambda: strategy.gather(ragged, axis=0),
            lambda: strategy.reduce("SUM", ragged, axis=0),
            lambda: strategy.reduce("SUM", sliced, axis=None),
            lambda: strategy.reduce("SUM", sliced, axis=0),
        ):
            with pytest.raises(ValueError, match=r"one kind|same dtype and shape|dense_shape") as caught:
                call()
            said.append(str(caught.value).removeprefix("on worker 1 of 2: "))
            assert strategy.reduce("SUM", di.distribute.PerReplica([1.0, 2.0]), axis=None) == 6
        return said

    zero, one = on_workers([2, 2], body, timeout=60)
    assert zero == one
