# SPDX-License-Identifier: Apache-2.0
"""Which policies exist, and what they mean."""

import numpy as np
import pytest

import distinput as di
from distinput.distribute.core.array_arithmetic import ReduceOp
from distinput.distribute.variables.policy import VariableAggregation, VariablePolicy, VariableSynchronization


def test_the_members_are_those_of_tensorflow() -> None:
    assert [member.name for member in di.VariableSynchronization] == ["AUTO", "NONE", "ON_WRITE", "ON_READ"]
    assert [member.name for member in di.VariableAggregation] == ["NONE", "SUM", "MEAN", "ONLY_FIRST_REPLICA"]


def test_auto_becomes_on_write() -> None:
    policy = VariablePolicy.of(None, None, None).distributed("w", np.dtype("float32"))
    assert policy == VariablePolicy(VariableSynchronization.ON_WRITE, VariableAggregation.NONE, True)


@pytest.mark.parametrize("trainable, want", [(None, False), (True, True), (False, False)])
def test_on_read_is_not_trainable_unless_asked_for(trainable: bool | None, want: bool) -> None:
    assert VariablePolicy.of(VariableSynchronization.ON_READ, None, trainable).trainable is want


def test_no_synchronization_is_refused_under_a_strategy() -> None:
    policy = VariablePolicy.of("NONE", None, None)
    with pytest.raises(ValueError, match=r"`NONE` variable synchronization mode is not supported .* for variable: w"):
        policy.distributed("w", np.dtype("float32"))


@pytest.mark.parametrize("dtype", ["int32", "uint8", "bool", "complex64", object])
def test_the_mean_is_for_floats(dtype: str) -> None:
    policy = VariablePolicy.of(None, VariableAggregation.MEAN, None)
    with pytest.raises(ValueError, match=r"aggregation=MEAN and a non-floating dtype"):
        policy.distributed("w", np.dtype(dtype))


@pytest.mark.parametrize("word", ["MAX", 7])
def test_unknown_modes_list_the_known(word: object) -> None:
    with pytest.raises(
        ValueError, match=r"Invalid variable aggregation mode: .* for variable: w; use one of NONE, SUM"
    ):
        VariablePolicy.of(None, word, None, "w")
    with pytest.raises(ValueError, match=r"Invalid variable synchronization mode: .* for variable: w; use one of AUTO"):
        VariablePolicy.of(word, None, None, "w")


def test_only_sums_and_means_are_reductions() -> None:
    assert VariablePolicy(aggregation=VariableAggregation.SUM).reduce_op is ReduceOp.SUM
    assert VariablePolicy(aggregation=VariableAggregation.MEAN).reduce_op is ReduceOp.MEAN
    for other in (VariableAggregation.NONE, VariableAggregation.ONLY_FIRST_REPLICA):
        with pytest.raises(ValueError, match=r"Could not convert from `tf.VariableAggregation`"):
            VariablePolicy(aggregation=other).reduce_op  # noqa: B018 - the property raises


def test_names_and_numbers_are_modes_too() -> None:
    assert VariablePolicy.of(3, "MEAN", None) == VariablePolicy.of(
        VariableSynchronization.ON_READ, VariableAggregation.MEAN, None
    )
