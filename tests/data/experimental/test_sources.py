# SPDX-License-Identifier: Apache-2.0
"""Sources of `tf.data.experimental`; the expected elements are TensorFlow 2.21's."""

from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError

X = di.data.experimental
RANGE = di.data.Dataset.range


@pytest.mark.parametrize(
    "items, spec",
    [
        ([1, 2], di.TensorSpec([], "int32")),
        ([[1], [2, 3]], di.TensorSpec([None], "int32")),
        ([(1, "a"), (2, "b")], (di.TensorSpec([], "int32"), di.TensorSpec([], "string"))),
        ([{"a": [1.5, 2.0]}, {"a": [0.0, 1.0]}], {"a": di.TensorSpec([2], "float32")}),
        ([np.zeros(2), np.zeros((2, 2))], di.TensorSpec(None, "float64")),
    ],
)
def test_from_list_gives_the_items(items: list[Any], spec: Any) -> None:
    ds = X.from_list(items)
    assert ds.element_spec == spec
    assert len(ds) == 2
    found = [x.tolist() if isinstance(x, np.ndarray) else x for x in ds]
    wanted = [x.tolist() if isinstance(x, np.ndarray) else x for x in items]
    if spec != di.TensorSpec(None, "float64"):
        wanted = [x if not isinstance(x, tuple) else (x[0], x[1].encode()) for x in wanted]
        found = [x if not isinstance(x, dict) else {"a": x["a"].tolist()} for x in found]
    assert found == wanted


def test_from_list_of_datasets() -> None:
    assert [inner.to_list() for inner in X.from_list([RANGE(1), RANGE(2)])] == [[0], [0, 1]]


def test_items_of_a_list_are_reached_by_position_and_sharded() -> None:
    ds = X.from_list([[i] * i for i in range(1, 10)])
    assert ds[[6, 1]][1].tolist() == [2, 2]
    assert ds.shard(3, 1).map(len).to_list() == [2, 5, 8]


@pytest.mark.parametrize(
    "items, error, says",
    [
        ([], InvalidArgumentError, "elements must not be empty"),
        ((1, 2), InvalidArgumentError, "elements must be a list, got tuple"),
        ([1, 2.0], TypeError, "the items must be alike: the elements differ in dtype: int32 and float32"),
        ([(1, 2), (1,)], TypeError, "the items must be alike: the structures differ"),
    ],
)
def test_from_list_refuses(items: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=f"from_list: {says}"):
        X.from_list(items)


def test_older_names() -> None:
    assert X.Counter(1, 2).take(3).to_list() == [1, 3, 5]
    assert X.RandomDataset(seed=4).take(3).to_list() == di.data.Dataset.random(seed=4).take(3).to_list()
    choices = di.data.Dataset.from_tensor_slices(np.array([0, 0, 1], np.int64))
    assert X.choose_from_datasets([RANGE(1), RANGE(5, 6)], choices).to_list() == [0, 5]  # the end of one is passed over
    assert X.sample_from_datasets([RANGE(3), RANGE(3)], [1.0, 0.0]).to_list() == [0, 1, 2]
