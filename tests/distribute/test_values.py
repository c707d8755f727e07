# SPDX-License-Identifier: Apache-2.0
import dataclasses
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest

from distinput.distribute.core.array_arithmetic import ReduceOp
from distinput.distribute.core.values import (
    DistributedValues,
    Mirrored,
    PartialPerReplica,
    PerReplica,
    merged_values,
    regroup,
    row_counts,
    select_replica,
)
from distinput.distribute.input.dealing import PerReplicaSpec
from distinput.errors import InvalidArgumentError
from distinput.values.spec import TensorSpec


class Pair(NamedTuple):
    a: Any
    b: Any


@dataclasses.dataclass
class Record:
    x: Any
    y: Any


def test_it_is_shown_as_tensorflow_shows_it() -> None:
    assert repr(PerReplica([np.array([0]), np.array([2])])) == "PerReplica:{\n  0: array([0]),\n  1: array([2])\n}"
    assert repr(Mirrored([1, 1])) == "Mirrored:{\n  0: 1,\n  1: 1\n}"


def test_a_per_replica_value_is_no_array() -> None:
    value = PerReplica([np.ones(2), np.ones(2)])
    with pytest.raises(ValueError, match="It looks like you are using a PerReplica object"):
        np.asarray(value)
    pairs: list[tuple[Any, Any]] = [(value, 1), (1, value), (np.ones(2), value), (value, np.ones(2))]
    for left, right in pairs:
        with pytest.raises(TypeError):
            left + right
    with pytest.raises(TypeError):
        len(value)  # type: ignore[arg-type]
    assert bool(value)


def test_a_mirrored_value_is_used_like_its_copy() -> None:
    value = Mirrored([np.arange(2), np.arange(2)])
    assert (value + 1).tolist() == [1, 2]
    assert np.sum(np.asarray(value)) == 1


def test_a_value_without_components_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one replica"):
        DistributedValues([])


@pytest.mark.parametrize("same", ["s", b"s", None, object(), np.ones(1), print])
def test_the_very_same_object_comes_back_plain(same: Any) -> None:
    assert regroup([same, same, same]) is same


@pytest.mark.parametrize("same", [5, True, 1.5, float("nan"), 2j, 10**30, Fraction(1, 2), np.float32(2), np.True_])
def test_numbers_stay_separate_also_where_they_are_one_object(same: Any) -> None:
    made = regroup([same, same, same])
    assert (type(made), made.values) == (PerReplica, (same, same, same))
    assert regroup([same]) is same


def test_numbers_of_replicas_are_compared_one_by_one() -> None:
    assert PerReplica([2, 2]) == 2
    assert PerReplica([2, 3]) != 2
    assert PerReplica([np.ones(1)] * 2) != 1
    assert len({PerReplica([2, 2]), PerReplica([2, 2])}) == 2


def test_numbers_of_replicas_are_a_condition_if_they_agree() -> None:
    assert not PerReplica([False, False])
    assert not PerReplica([np.False_, 0])
    assert PerReplica([True, 2])
    assert PerReplica([np.zeros(1), np.zeros(1)])  # no numbers: an object like any other
    with pytest.raises(TypeError, match=r"PerReplica has no single value \(bool\), got True, False: look at each"):
        bool(PerReplica([True, False]))


def test_a_merge_function_may_use_a_number_that_all_replicas_gave() -> None:
    number = merged_values([3, 3])
    assert isinstance(number, PerReplica)
    assert (number.values, number + 1, range(number), np.zeros(2) + number) == ((3, 3), 4, range(3), pytest.approx(3))
    assert not merged_values([False, False])
    with pytest.raises(TypeError, match=r"PerReplica has no single value \(as one number\), got 3, 4"):
        merged_values([3, 4]) + 1
    assert type(merged_values([np.int64(3), np.int64(3)])) is PerReplica


@pytest.mark.parametrize("values", [[0.0, -0.0], [1, 1.0], [1, True], ["a", b"a"], [None, 1], [1, 2]])
def test_what_differs_in_value_or_type_stays_separate(values: list[Any]) -> None:
    assert regroup(values).values == tuple(values)


def test_arrays_are_compared_by_identity() -> None:
    array = np.ones(2)
    assert regroup([array, array]) is array
    assert isinstance(regroup([array, array.copy()]), PerReplica)
    assert isinstance(regroup([np.float32(1), np.float32(1)]), PerReplica)


def test_nests_are_regrouped_leaf_by_leaf() -> None:
    made = regroup([{"b": (1, 5), "a": [2]}, {"b": (3, 5), "a": [4]}])
    assert list(made) == ["b", "a"]
    assert made["b"][0].values == (1, 3)
    assert made["b"][1] == 5
    assert made["a"][0].values == (2, 4)
    assert regroup([Pair(1, 2), Pair(3, 2)]).a.values == (1, 3)
    assert regroup([Record(1, 2), Record(3, 2)]).x.values == (1, 3)
    assert regroup([(), ()]) == ()


def test_nothing_is_plain_when_everything_is_wrapped() -> None:
    assert regroup([(7,)], always_wrap=True)[0].values == (7,)


@pytest.mark.parametrize(
    "values",
    [[(1,), (1, 2)], [(1,), [1]], [{"a": 1}, {"b": 1}], [(1,), 1], [1, (1,)], [(1,), None], [Pair(1, 2), (1, 2)]],
)
def test_different_structures_are_refused(values: list[Any]) -> None:
    with pytest.raises(AssertionError, match=r"len\(v\) ==.*replica 0 gave"):
        regroup(values)


@pytest.mark.parametrize(
    "values, told",
    [
        ([[1] * 100, [1] * 99], "replica 0 gave a list of 100, replica 1 gave a list of 99"),
        (
            [{"a": 1, "b": (1, {"c": 2})}, {"a": 1, "b": (1, {})}],
            r"0 gave a dict of \['c'\], replica 1 gave a dict of 0",
        ),
        ([[Pair(1, 2)], [(1, 2)]], r"0 gave a Pair of \['.*', '.*'\], replica 1 gave a tuple of 2"),
        ([(1, [2]), (1, 2)], "0 gave a list of 1, replica 1 gave a leaf"),
    ],
)
def test_the_first_nests_that_differ_are_told(values: list[Any], told: str) -> None:
    with pytest.raises(AssertionError, match=f"the same keys\\): .*{told}$"):
        regroup(values)


def test_a_replica_sees_its_components() -> None:
    value = PerReplica([1, 2])
    shared = [1, {"a": 2}]
    assert select_replica(1, (value, {"x": [value, 3]}, shared)) == (2, {"x": [2, 3]}, shared)
    assert select_replica(1, shared) is shared
    assert select_replica(0, Pair(value, 4)) == Pair(1, 4)
    assert select_replica(0, Record(value, 4)) == Record(1, 4)


def test_a_kind_that_is_passed_whole() -> None:
    class Variable(DistributedValues):
        passed_whole = True

    variable = Variable([1, 2])
    assert select_replica(1, (variable,))[0] is variable


def test_specs_are_compared_by_their_parts() -> None:
    one, two = TensorSpec([None], "int64"), TensorSpec([2], "int64")
    assert PerReplicaSpec(one, one) == PerReplicaSpec(one, TensorSpec([None], "int64"))
    assert PerReplicaSpec(one, one) != PerReplicaSpec(one, two)
    assert len({PerReplicaSpec(one), PerReplicaSpec(one)}) == 1
    assert PerReplicaSpec(one, two).value_specs == (one, two)


def test_a_spec_that_all_replicas_share_is_printed_once() -> None:
    one, two = TensorSpec([None], "int64"), TensorSpec([2], "int64")
    assert repr(PerReplicaSpec(*[one] * 8)) == "PerReplicaSpec(TensorSpec(shape=(None,), dtype=int64) × 8 replicas)"
    assert repr(PerReplicaSpec(one)) == "PerReplicaSpec(TensorSpec(shape=(None,), dtype=int64))"
    assert repr(PerReplicaSpec(one, two)).count("TensorSpec") == 2


def test_rows_are_counted_on_any_number_of_replicas() -> None:
    three = PerReplica([np.ones((2, 5)), np.ones((1, 5)), np.ones((0, 5))])
    assert row_counts(three, 3) == row_counts({"x": three, "y": (three,)}, 3) == (2, 1, 0)
    assert row_counts(PartialPerReplica([4, 0], [True, False]), 2) == (1, 0)
    assert row_counts(np.ones((4, 2)), 1) == row_counts({"x": np.ones(4), "y": [b"one"] * 0}, 1) == (4,)
    assert row_counts(np.ones(4), 3) == (4, 4, 4)  # a plain value is that of every replica
    with pytest.raises(
        InvalidArgumentError, match=r"as many rows, got \(2, 1, 0\) of ..x.., \(1, 1, 1\) of ..y..; ask for one leaf"
    ):
        row_counts({"x": three, "y": PerReplica([1, 1, 1])}, 3)
    with pytest.raises(InvalidArgumentError, match="got no leaf"):
        row_counts((), 2)


def test_a_reduce_op_is_made_from_any_case() -> None:
    assert ReduceOp("sum") is ReduceOp.of("Sum") is ReduceOp.SUM
    assert ReduceOp.of(ReduceOp.MEAN) is ReduceOp.MEAN
    with pytest.raises(ValueError, match="'MAX' is not a valid ReduceOp"):
        ReduceOp.of("MAX")
    with pytest.raises(TypeError, match="Expected `reduce_op`"):
        ReduceOp.of(1)


def test_leaves_are_wrapped_in_the_class_asked_for() -> None:
    made = regroup([{"a": np.ones(1), "b": 1}, {"a": np.ones(1), "b": 1}], wrap=Mirrored)
    assert (type(made["a"]), made["b"]) == (Mirrored, 1)
