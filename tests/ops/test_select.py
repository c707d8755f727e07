# SPDX-License-Identifier: Apache-2.0
from typing import Any

import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from distinput.testing import check_dataset

ROWS = di.data.Dataset.from_tensor_slices({"x": [1, 4], "n": {"b": ["p", "q"], "a": [7.0, 8.0]}, "y": [[1, 2], [3, 4]]})


def test_keys_are_in_the_order_that_was_asked_for() -> None:
    assert [list(row) for row in ROWS.select(["y", "x"])] == [["y", "x"]] * 2
    assert ROWS.select(["n"]).to_list() == [{"n": {"b": b"p", "a": 7.0}}, {"n": {"b": b"q", "a": 8.0}}]
    assert ROWS.select(["x"]).element_spec == {"x": ROWS.element_spec["x"]}


def test_batches_and_positions_work_as_before() -> None:
    assert ROWS.batch(2).select(["x"]).to_list() == [{"x": [1, 4]}]
    assert ROWS.select(["x"])[1] == {"x": 4}
    assert len(ROWS.select(["x"])) == 2


def test_it_keeps_the_laws() -> None:
    assert {"restart", "facts"} <= set(check_dataset(lambda: ROWS.repeat(2).select(["y", "n"])))


@pytest.mark.parametrize(
    "dataset, columns, error, message",
    [
        (ROWS, ["z"], InvalidArgumentError, "select: elements have no component 'z'; they have n, x, y"),
        (ROWS, "x", InvalidArgumentError, "columns must be a list of names, got 'x'"),
        (ROWS, [], InvalidArgumentError, "at least one name, each once"),
        (ROWS, ["x", "x"], InvalidArgumentError, "at least one name, each once"),
        (di.data.Dataset.range(3), ["x"], TypeError, "elements must be dicts, got TensorSpec"),
    ],
)
def test_wrong_columns_are_refused(dataset: Any, columns: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        dataset.select(columns)
