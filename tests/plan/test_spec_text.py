# SPDX-License-Identifier: Apache-2.0
"""Specs and numbers of elements in a few characters; what `render` shows is tested with it."""

from typing import Any

import pytest

import distinput as di
from distinput.plan.node import INFINITE, UNKNOWN
from distinput.plan.text import bounds_text, count_text, spec_text, spec_text_of

RANGE = di.data.Dataset.range
GENERATED = di.data.Dataset.from_generator(lambda: iter([1]), output_signature=di.TensorSpec([], "int64"))


def odd(x: Any) -> Any:
    return x % 2 == 1


def test_the_comma_between_sizes_is_the_callers() -> None:
    spec = di.data.Dataset.from_tensors({"x": [[1.0, 2.0]]}).batch(2).node.spec
    assert [spec_text(spec), spec_text(spec, ",")] == ["{'x': float32[?, 1, 2]}", "{'x': float32[?,1,2]}"]


def test_a_function_that_fails_is_named_by_its_error() -> None:
    def broken(x: Any) -> Any:
        raise KeyError(x)

    assert spec_text_of(RANGE(2).map(broken).node).startswith("<")


def test_numbers_of_elements() -> None:
    assert [count_text(n) for n in (0, 12, INFINITE, UNKNOWN)] == ["x0", "x12", "endless", "x?"]


@pytest.mark.parametrize(
    "dataset, text",
    [
        (RANGE(7000).batch(2), "× 3,500"),
        (RANGE(7).filter(odd), "× 0…7"),
        (RANGE(7).concatenate(RANGE(9).filter(odd)), "× 7…16"),
        (RANGE(7).concatenate(GENERATED), "× 7 or more"),
        (RANGE(7).repeat(), "× ∞"),
        (GENERATED, "× ?"),
        (RANGE(0), "× 0"),
    ],
)
def test_bounds_of_the_number_of_elements(dataset: Any, text: str) -> None:
    assert bounds_text(dataset.node) == text


def test_a_number_that_cannot_be_found_out_now_is_left_out() -> None:
    assert bounds_text(_Missing()) == ""  # type: ignore[arg-type]


class _Missing:
    @property
    def cardinality(self) -> int:
        raise FileNotFoundError("gone.parquet")
