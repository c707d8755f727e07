# SPDX-License-Identifier: Apache-2.0
"""Functions for `apply` that group and choose: they are the methods; the ops are tested in tests/ops."""

import pytest

import distinput as di
from distinput.errors import InvalidArgumentError

X = di.data.experimental
RANGE = di.data.Dataset.range


def test_group_by_window() -> None:
    made = RANGE(6).apply(X.group_by_window(lambda x: x % 2, lambda _, group: group.batch(2), 2))
    assert [batch.tolist() for batch in made] == [[0, 2], [1, 3], [4], [5]]
    with pytest.raises(
        InvalidArgumentError, match="group_by_window: give exactly one of window_size and window_size_func"
    ):
        X.group_by_window(lambda x: x, lambda _, group: group)


def test_rejection_resample() -> None:
    made = RANGE(8).apply(X.rejection_resample(lambda x: x % 2, [1.0, 0.0], [0.5, 0.5]))
    assert made.to_list() == [(0, 0), (0, 2), (0, 4), (0, 6)]


def test_group_by_reducer() -> None:
    count = X.Reducer(lambda key: 0, lambda n, _: n + 1, lambda n: n)
    assert RANGE(7).apply(X.group_by_reducer(lambda x: x // 4, count)).to_list() == [4, 3]
