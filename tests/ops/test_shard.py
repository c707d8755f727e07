# SPDX-License-Identifier: Apache-2.0
from typing import Any

import pytest

import distinput as di
from distinput.errors import FailedPreconditionError, InvalidArgumentError
from tests.ops.iterating import until_error

RANGE = di.data.Dataset.range
HINT = di.data.experimental.SHARD_HINT


@pytest.mark.parametrize("size", [0, 1, 2, 3, 10])
def test_the_shards_are_every_nth_element(size: int) -> None:
    for index in range(3):
        shard = RANGE(size).shard(3, index)
        assert shard.to_list() == list(range(index, size, 3))
        assert len(shard) == len(shard.to_list())


@pytest.mark.parametrize(
    "args, error, message",
    [
        ((0, 0), InvalidArgumentError, "Number of shards must be greater than zero, got num_shards=0"),
        ((-2, 0), InvalidArgumentError, "Number of shards must be greater than zero, got num_shards=-2"),
        ((2, 2), InvalidArgumentError, "Index must be between 0 and 1, got index=2"),
        ((2, -1), InvalidArgumentError, "Index must be between 0 and 1, got index=-1"),
        ((1.5, 0), TypeError, "num_shards must be an integer, got 1.5"),
        ((2, None), TypeError, "index must be an integer, got None"),
    ],
)
def test_arguments_are_checked(args: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"shard: {message}"):
        RANGE(3).shard(*args)


def test_the_placeholder_cannot_be_iterated() -> None:
    before, error = until_error(RANGE(3).shard(HINT, HINT))
    assert before == []
    assert isinstance(error, FailedPreconditionError)
    assert "can only be used in `tf.distribute.Strategy.experimental_distribute_dataset()`" in str(error)
    assert any(f"made at {__file__}:" in note for note in error.__notes__)


def test_not_even_by_an_op_that_does_not_look_at_its_input() -> None:
    # TensorFlow 2.21 answers so: the first batch, of no rows, does not come.
    before, error = until_error(RANGE(3).shard(HINT, HINT).batch(2).rebatch([0, 1]))
    assert before == []
    assert isinstance(error, FailedPreconditionError)
