# SPDX-License-Identifier: Apache-2.0
import json
import logging
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di

Dataset = di.data.Dataset
INT = di.TensorSpec([], "int64")


def failing(bad: set[int]) -> Any:
    def function(x: Any) -> Any:
        if int(x) in bad:
            raise ValueError(f"bad {x}")
        return x

    return function


@given(st.integers(0, 40), st.sets(st.integers(0, 40)), st.sets(st.integers(0, 40)), st.data())
def test_exactly_the_others_come_and_follow_a_restart(
    n: int, bad: set[int], worse: set[int], data: st.DataObject
) -> None:
    def build() -> Any:
        mapped = Dataset.range(n).map(failing(bad), output_signature=INT).map(failing(worse), output_signature=INT)
        return mapped.filter(lambda x: failing({3, 5})(x) % 2 == 0).ignore_errors()

    expected = [x for x in range(n) if x not in bad | worse | {3, 5} and x % 2 == 0]
    assert [int(x) for x in build()] == expected
    at = data.draw(st.integers(0, len(expected)))
    with iter(build()) as iterator:
        for _ in range(at):
            next(iterator)
        state = json.loads(json.dumps(iterator.state()))
    assert [int(x) for x in build().restore(state)] == expected[at:]


@pytest.mark.parametrize("calls", [None, 2, di.data.AUTOTUNE])
def test_a_take_counts_the_elements_that_are_there(calls: Any) -> None:
    mapped = Dataset.range(9).map(failing({1, 2}), num_parallel_calls=calls, output_signature=INT)
    assert [int(x) for x in mapped.take(3).ignore_errors()] == [0, 3, 4]
    assert [int(x) for x in mapped.ignore_errors().take(3)] == [0, 3, 4]
    assert [int(x) for x in mapped.batch(2).unbatch().prefetch(2).ignore_errors()] == [4, 5, 6, 7, 8]


def test_errors_behind_it_are_raised() -> None:
    with pytest.raises(ValueError, match="bad 2"):
        list(Dataset.range(4).ignore_errors().map(failing({2}), output_signature=INT))


def test_errors_of_no_function_are_left_out(tmp_path: Any) -> None:
    (tmp_path / "bad").write_bytes(b"no records")
    ds = di.data.TFRecordDataset(str(tmp_path / "bad")).ignore_errors()
    assert list(ds) == []
    assert ds.stats()["2:ignore_errors"]["last_error"].startswith("DataLossError: ")


def test_errors_are_told_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "distinput"):
        assert list(Dataset.range(2).map(failing({1}), output_signature=INT).ignore_errors(log_warning=True)) == [0]
    assert "ValueError: bad 1" in caplog.text
    assert "on element np.int64(1)" in caplog.text


def test_cardinality() -> None:
    assert Dataset.range(3).ignore_errors().cardinality() == di.data.UNKNOWN_CARDINALITY
    assert Dataset.range(3).repeat().ignore_errors().cardinality() == di.data.INFINITE_CARDINALITY
    assert np.array_equal(list(Dataset.range(3).ignore_errors()), [0, 1, 2])
