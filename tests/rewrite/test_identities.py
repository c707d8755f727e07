# SPDX-License-Identifier: Apache-2.0
"""Steps that do nothing, alone or together, are left out; those that only look so are not."""

from typing import Any

import numpy as np
import pytest

import distinput as di
from tests.rewrite.running import fires, ops_after

RANGE = di.data.Dataset.range
AUTOTUNE = di.data.AUTOTUNE


@pytest.mark.parametrize(
    "rule, dataset, ops",
    [
        ("take_everything", RANGE(5).repeat(2).take(-1), ["range", "repeat"]),
        ("take_of_take", RANGE(5).repeat(2).take(7).take(3), ["range", "repeat", "take"]),
        ("skip_nothing", RANGE(5).repeat(2).skip(0), ["range", "repeat"]),
        ("skip_of_skip", RANGE(5).repeat(2).skip(1).skip(2), ["range", "repeat", "skip"]),
        ("shard_of_one", RANGE(5).shard(1, 0), ["range"]),
        ("shuffle_of_one", RANGE(5).shuffle(1), ["range"]),
        ("batch_then_unbatch", RANGE(5).batch(2).unbatch(), ["range"]),
        ("prefetch_of_views", RANGE(5).batch(2).copied().prefetch(1), ["range", "batch", "copied"]),
        ("prefetch_of_prefetch", RANGE(5).map(abs).prefetch(1).prefetch(2), ["range", "map", "prefetch"]),
    ],
)
def test_it_is_left_out(rule: str, dataset: Any, ops: list[str]) -> None:
    assert ops_after(dataset, rule) == ops


@pytest.mark.parametrize(
    "rule, dataset",
    [
        ("take_of_take", RANGE(5).take(3).take(-1)),
        ("skip_of_skip", RANGE(5).repeat(2).skip(-1).skip(2)),
        ("shard_of_one", RANGE(5).shard(2, 0)),
        ("shuffle_of_one", RANGE(5).shuffle(2, seed=1)),
        ("batch_then_unbatch", RANGE(5).batch(2, drop_remainder=True).unbatch()),
        ("batch_then_unbatch", RANGE(1, 5).map(lambda x: np.ones(x)).batch(1).unbatch()),
        ("batch_then_unbatch", RANGE(5).map(lambda x: 1 / x).batch(2).unbatch()),
        ("prefetch_of_views", RANGE(5).map(abs).prefetch(1)),
        ("prefetch_of_views", RANGE(5).shuffle(3, seed=1).prefetch(1)),
        ("prefetch_of_prefetch", RANGE(5).map(abs).prefetch(1).map(abs).prefetch(1)),
    ],
)
def test_it_stays(rule: str, dataset: Any) -> None:
    assert not fires(dataset, rule)


def test_the_shorter_take_and_the_sum_of_skips_remain() -> None:
    assert RANGE(9).repeat(2).take(7).take(3).to_list() == RANGE(9).repeat(2).take(3).take(7).to_list() == [0, 1, 2]
    assert RANGE(5).repeat(2).skip(1).skip(2).to_list() == [3, 4, 0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "sizes, kept", [((1, 4), 4), ((4, 1), 4), ((1, AUTOTUNE), "AUTOTUNE"), ((AUTOTUNE, 3), "AUTOTUNE")]
)
def test_the_larger_buffer_remains(sizes: tuple[int, int], kept: Any) -> None:
    dataset = RANGE(5).map(abs).prefetch(sizes[0]).prefetch(sizes[1])
    assert f"prefetch(buffer_size={kept})" in dataset.explain().split("runs:")[1]
