# SPDX-License-Identifier: Apache-2.0
"""`batch_by_tokens`: the rules for its arguments and errors; the laws are in tests/laws."""

from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError

VECTORS: Any = di.data.Dataset.range(1, 8).map(lambda n: np.full(n, n), output_signature=di.TensorSpec([None], "int64"))


def test_padding_counts() -> None:
    ds = VECTORS.batch_by_tokens(12)
    assert ds.element_spec == di.TensorSpec([None, None], "int64")
    assert [batch.shape for batch in ds] == [(3, 3), (2, 5), (1, 6), (1, 7)]


def test_ragged_batches_have_no_padding() -> None:
    ds = VECTORS.batch_by_tokens(12, "ragged")
    assert ds.element_spec == di.RaggedTensorSpec([None, None], "int64", 1)
    assert [batch.row_lengths().tolist() for batch in ds] == [[1, 2, 3, 4], [5, 6], [7]]


def test_at_most_so_many_rows() -> None:
    assert [len(batch) for batch in VECTORS.batch_by_tokens(12, "ragged", max_rows=2)] == [2, 2, 2, 1]


def test_tokens_are_those_of_the_longest_open_component() -> None:
    ds = VECTORS.map(
        lambda x: {"ids": x, "more": x[1:], "place": np.zeros(100), "label": x[0]},
        output_signature={
            "ids": di.TensorSpec([None], "int64"),
            "more": di.TensorSpec([None], "int64"),
            "place": di.TensorSpec([100], "float64"),
            "label": di.TensorSpec([], "int64"),
        },
    )
    batches = list(ds.batch_by_tokens(12))
    assert [batch["ids"].shape for batch in batches] == [(3, 3), (2, 5), (1, 6), (1, 7)]
    assert [batch["label"].tolist() for batch in batches] == [[1, 2, 3], [4, 5], [6], [7]]


def test_a_function_says_the_length_of_an_element() -> None:
    ds = di.data.Dataset.range(10).batch_by_tokens(9, "ragged", lambda n: n)
    assert ds.to_list() == [[0, 1, 2, 3], [4, 5], [6], [7], [8], [9]]
    pairs = di.data.Dataset.zip((di.data.Dataset.range(4), di.data.Dataset.range(4)))
    assert [a.tolist() for a, _ in pairs.batch_by_tokens(3, "ragged", lambda a, b: b)] == [[0, 1, 2], [3]]


def test_an_element_with_too_many_tokens() -> None:
    with pytest.raises(
        InvalidArgumentError, match="an element of 4 tokens does not go into a batch of max_tokens=3"
    ) as e:
        list(VECTORS.batch_by_tokens(3))
    assert "on element array([4, 4, 4, 4])" in e.value.__notes__
    assert [batch.shape for batch in VECTORS.batch_by_tokens(3, on_longer="alone")] == [
        *[(1, 1), (1, 2), (1, 3), (1, 4), (1, 5), (1, 6), (1, 7)],
    ]
    assert [batch.tolist() for batch in VECTORS.batch_by_tokens(3, "padded").ignore_errors()] == [
        [[1]],
        [[2, 2]],
        [[3] * 3],
    ]


def test_an_error_of_the_input_ends_a_batch_and_loses_nothing() -> None:
    failing = VECTORS.map(_fails_at_three)
    assert [batch.row_lengths().tolist() for batch in failing.batch_by_tokens(100, "ragged").ignore_errors()] == [
        [1, 2],
        [4, 5, 6, 7],
    ]
    batches = failing.batch_by_tokens(100, "ragged", len).ignore_errors()
    assert [batch.row_lengths().tolist() for batch in batches] == [[1, 2], [4, 5, 6, 7]]


def _fails_at_three(x: Any) -> Any:
    if len(x) == 3:
        raise ValueError("three")
    return x


def test_length_func_must_return_whole_numbers() -> None:
    for wrong in (1.5, -1, "x"):
        with pytest.raises(
            TypeError, match="batch_by_tokens: length_func must return a number of tokens, at least 0, got"
        ):
            list(VECTORS.batch_by_tokens(3, length_func=lambda _, wrong=wrong: wrong))


@pytest.mark.parametrize(
    "make, error, message",
    [
        (lambda: VECTORS.batch_by_tokens(0), InvalidArgumentError, "max_tokens must be greater than zero, got 0"),
        (lambda: VECTORS.batch_by_tokens(None), TypeError, "max_tokens must be an integer, got None"),
        (lambda: VECTORS.batch_by_tokens(2**31), InvalidArgumentError, r"max_tokens must be below 2\*\*31"),
        (
            lambda: VECTORS.batch_by_tokens(9, max_rows=0),
            InvalidArgumentError,
            "max_rows must be greater than zero, got 0",
        ),
        (
            lambda: VECTORS.batch_by_tokens(9, "dense"),
            InvalidArgumentError,
            "layout must be 'padded' or 'ragged', got 'dense'",
        ),
        (
            lambda: VECTORS.batch_by_tokens(9, on_longer="split"),
            InvalidArgumentError,
            "on_longer must be 'raise' or 'alone', got 'split'",
        ),
        (
            lambda: VECTORS.batch_by_tokens(9, "ragged", padding_values=0),
            InvalidArgumentError,
            "layout='ragged' does not pad; leave out padding_values",
        ),
        (lambda: VECTORS.batch_by_tokens(9, length_func=3), TypeError, "length_func must be a function, got 3"),
        (
            lambda: di.data.Dataset.range(3).batch_by_tokens(9),
            InvalidArgumentError,
            "no component has a first dimension, so that its tokens could be counted; give length_func",
        ),
        (
            lambda: VECTORS.map(lambda x: x, output_signature=di.TensorSpec(None, "int64")).batch_by_tokens(9),
            InvalidArgumentError,
            "the element has an unknown rank; give map an output_signature",
        ),
    ],
)
def test_wrong_arguments_are_refused(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match="batch_by_tokens: " + message):
        make()
