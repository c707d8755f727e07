# SPDX-License-Identifier: Apache-2.0
"""Arguments as text are short, and the same in every process."""

import functools
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.plan.node import describe, given


def named(x: int) -> int:
    return x


class Callable:
    def __call__(self) -> None: ...

    def method(self) -> None: ...


@pytest.mark.parametrize(
    "value, text",
    [
        (np.zeros((2, 3), np.float32), "float32[2, 3]"),
        (np.int64(3), "3"),
        (named, "named"),
        (Callable, "Callable"),
        (Callable(), "Callable"),
        (Callable().method, "Callable.method"),
        (functools.partial(named, 3), "partial"),
        (len, "len"),
        ("a", "'a'"),
        (b"a", "b'a'"),
        (None, "None"),
        ({"a": named, "b": {"c": np.arange(2)}}, "{a: named, b: {c: int64[2]}}"),
        ({}, "{}"),
    ],
)
def test_arguments_as_text(value: Any, text: str) -> None:
    assert describe(value) == text


def test_functions_inside_functions_are_named_with_them() -> None:
    assert describe(lambda: 0).endswith("test_functions_inside_functions_are_named_with_them.<locals>.<lambda>")


@pytest.mark.parametrize("length, wanted", [(60, "x" * 58), (61, None)])
def test_long_texts_are_cut_at_the_limit(length: int, wanted: str | None) -> None:
    found = describe("x" * (length - 2))
    assert len(found) == 60
    assert found == (f"'{wanted}'" if wanted else "'" + "x" * 56 + "...")
    assert describe("x" * 100, None) == "'" + "x" * 100 + "'"
    assert describe({"a": "x" * 100}, 20) == "{a: '" + "x" * 12 + "..."


def test_arguments_left_at_their_defaults_are_not_given() -> None:
    dataset = di.data.Dataset.range(10).shuffle(5, seed=1)
    assert given(dataset.node) == {"buffer_size": "5", "seed": "1"}
