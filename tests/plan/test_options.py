# SPDX-License-Identifier: Apache-2.0
import copy
import pickle
from typing import Any

import pytest

import distinput as di

Dataset = di.data.Dataset
RANGE = Dataset.range
Policy = di.data.experimental.AutoShardPolicy


def policy(value: Any) -> di.data.Options:
    options = di.data.Options()
    options.experimental_distribute.auto_shard_policy = value
    return options


def policy_of(dataset: di.data.Dataset) -> Any:
    return dataset.options().experimental_distribute.auto_shard_policy


def test_the_policy_is_auto_unless_told() -> None:
    assert policy_of(RANGE(3)) is Policy.AUTO


@pytest.mark.parametrize(
    "first, second, want",
    [
        (Policy.OFF, Policy.DATA, Policy.DATA),
        (Policy.AUTO, Policy.OFF, Policy.OFF),
        # TensorFlow 2.21 answers so: a setting that equals the default counts as not made.
        (Policy.OFF, Policy.AUTO, Policy.OFF),
    ],
)
def test_the_later_setting_wins(first: Any, second: Any, want: Any) -> None:
    assert policy_of(RANGE(3).with_options(policy(first)).batch(2).with_options(policy(second))) is want
    assert policy_of(Dataset.zip(RANGE(3).with_options(policy(first)), RANGE(3).with_options(policy(second)))) is want


def test_settings_of_different_names_add_up() -> None:
    threads = di.data.Options()
    threads.threading.private_threadpool_size = 3
    merged = RANGE(3).with_options(threads).with_options(policy(Policy.OFF)).options()
    assert merged.to_dict() == {
        "experimental_distribute": {"auto_shard_policy": Policy.OFF},
        "threading": {"private_threadpool_size": 3},
    }


def test_types_are_checked() -> None:
    options = di.data.Options()
    with pytest.raises(TypeError, match="option 'auto_shard_policy' must be of type AutoShardPolicy, got 'OFF'"):
        options.experimental_distribute.auto_shard_policy = "OFF"
    with pytest.raises(TypeError, match="option 'deterministic' must be of type bool, got 1"):
        options.deterministic = 1
    with pytest.raises(TypeError, match="option 'private_threadpool_size' must be of type int, got True"):
        options.threading.private_threadpool_size = True
    with pytest.raises(TypeError, match="option 'threading' must be a ThreadingOptions, got 3"):
        options.threading = 3


def test_an_unknown_option_lists_the_known_ones() -> None:
    options = di.data.Options()
    with pytest.raises(AttributeError, match=r"^Options has no option 'determinstic'; did you mean deterministic\?$"):
        options.determinstic = True
    with pytest.raises(
        AttributeError, match="ThreadingOptions has no option 'size'; it has max_intra_op_parallelism, "
    ):
        options.threading.size  # asking is the act  # noqa: B018
    with pytest.raises(AttributeError, match="Options has no option 'LEAST'"):
        options.LEAST = {}


def test_older_names_of_tensorflow_are_the_same_options() -> None:
    options = di.data.Options()
    options.experimental_deterministic = False
    options.experimental_threading.private_threadpool_size = 3
    assert options.deterministic is False
    assert options.experimental_deterministic is False
    assert options.threading.private_threadpool_size == 3
    options.experimental_threading = di.data.ThreadingOptions()
    assert options.threading.private_threadpool_size is None
    assert options.to_dict() == {"deterministic": False}
    with pytest.raises(TypeError, match="option 'deterministic' must be of type bool, got 1"):
        options.experimental_deterministic = 1


def test_run_ahead_is_not_negative() -> None:
    options = di.data.Options()
    with pytest.raises(ValueError, match="option 'run_ahead' must be at least 0, got -1"):
        options.run_ahead = -1


def test_a_merge_leaves_both_as_they_were() -> None:
    first, second = policy(Policy.OFF), di.data.Options()
    second.threading.private_threadpool_size = 2
    merged = first.merge(second)
    merged.threading.private_threadpool_size = 5
    merged.experimental_distribute.auto_shard_policy = Policy.DATA
    assert first == policy(Policy.OFF)
    assert second.to_dict() == {"threading": {"private_threadpool_size": 2}}
    assert first.threading.private_threadpool_size is None


def test_options_can_be_copied_and_sent() -> None:
    options = policy(Policy.OFF)
    for made in (copy.deepcopy(options), pickle.loads(pickle.dumps(options))):
        assert made == options
        made.experimental_distribute.auto_shard_policy = Policy.DATA
        assert options.experimental_distribute.auto_shard_policy is Policy.OFF
