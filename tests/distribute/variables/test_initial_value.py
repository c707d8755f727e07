# SPDX-License-Identifier: Apache-2.0
"""The first value of a variable, as a whole and part by part."""

from functools import partial
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.distribute.seats import Pickled
from distinput.distribute.seats.threads import ThreadSeats
from distinput.distribute.variables import ShardedVariable
from distinput.distribute.variables.kinds import InitialValue
from distinput.values.leaves import TensorShape

FixedShards = di.distribute.experimental.partitioners.FixedShardsPartitioner
FLOAT = np.dtype("float32")
TABLE = np.arange(20, dtype=np.float32).reshape(5, 4)


def created(initial_value: Any, **facts: Any) -> Any:
    strategy = di.distribute.ParameterServerStrategy(
        variable_partitioner=FixedShards(2), seats=ThreadSeats(1, 2, packing=Pickled())
    )
    with strategy.scope():
        return di.Variable(initial_value, **facts)


def known(initial_value: Any) -> Any:
    return created(initial_value, shape=(5, 4), dtype="float32", name="table")


class Initializer:
    """As those of Keras: named arguments of any kind, and perhaps an error for these."""

    def __init__(self, error: type[Exception] | None = None) -> None:
        self.error, self.seen = error, list[Any]()

    def __call__(self, shape: Any, dtype: Any = None, **named: Any) -> Any:
        self.seen.append(named)
        if named and self.error is not None:
            raise self.error("partitions are not supported")
        if not named:
            return TABLE
        start, rows = named["partition_offset"][0], named["partition_shape"][0]
        return TABLE[start : start + rows]


def test_a_function_that_takes_the_place_of_a_part_never_makes_the_whole() -> None:
    seen: list[Any] = []

    def make(shape: Any, dtype: Any, partition_shape: Any = None, partition_offset: Any = None) -> Any:
        seen.append((partition_shape, partition_offset))
        return TABLE[partition_offset[0] : partition_offset[0] + partition_shape[0]]

    table = known(partial(make, shape=(5, 4), dtype=np.float32))
    assert isinstance(table, ShardedVariable)
    assert seen == [((3, 4), (0, 0)), ((2, 4), (3, 0))]
    np.testing.assert_array_equal(table.numpy(), TABLE)


@pytest.mark.parametrize("error, calls", [(None, 2), (ValueError, 3), (TypeError, 3)])
def test_an_initializer_may_refuse_parts(error: type[Exception] | None, calls: int) -> None:
    initializer = Initializer(error)
    np.testing.assert_array_equal(known(partial(initializer, (5, 4), dtype=np.float32)).numpy(), TABLE)
    assert len(initializer.seen) == calls  # the whole value is made once


def test_the_whole_value_is_cut() -> None:
    for initial in (lambda: TABLE, lambda **_: TABLE, TABLE):
        np.testing.assert_array_equal(known(initial).numpy(), TABLE)
    np.testing.assert_array_equal(
        created(partial(Initializer(), (5, 4))).numpy(), TABLE
    )  # the shape is not known before


def test_a_part_must_have_its_shape() -> None:
    with pytest.raises(ValueError, match=r"initial value's shape \(\(7, 4\)\) is not compatible with .* \(\(3, 4\)\)"):
        known(lambda partition_shape, partition_offset: np.zeros((7, 4), np.float32))

    def broken(partition_shape: Any, partition_offset: Any) -> Any:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        known(broken)


@pytest.mark.parametrize(
    "given, shape, dtype, parts",
    [
        (lambda partition_shape, partition_offset: 0, TensorShape([2]), FLOAT, True),
        (lambda **_: 0, TensorShape([2]), FLOAT, True),
        (lambda: 0, TensorShape([2]), FLOAT, False),
        (lambda partition_shape=None: 0, TensorShape([2]), FLOAT, False),
        (lambda **_: 0, TensorShape([None]), FLOAT, False),
        (lambda **_: 0, None, FLOAT, False),
        (lambda **_: 0, TensorShape([2]), None, False),
        (np.zeros(2), TensorShape([2]), FLOAT, False),
        (dict.fromkeys, TensorShape([2]), FLOAT, False),
    ],
)
def test_when_it_is_made_in_parts(given: Any, shape: Any, dtype: Any, parts: bool) -> None:
    assert InitialValue(given, dtype, shape, "v").made_in_parts == (((2,), FLOAT) if parts else None)


def test_a_whole_value_has_the_shape_that_was_asked_for() -> None:
    assert InitialValue(lambda: [1, 2], FLOAT, TensorShape([2]), "v")().tolist() == [1, 2]
    with pytest.raises(ValueError, match="is not compatible with the explicitly supplied `shape`"):
        InitialValue([1, 2, 3], FLOAT, TensorShape([2]), "v")()
