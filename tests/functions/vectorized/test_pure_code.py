# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from typing import Any

import pytest

from distinput.functions.vectorized.answers import Refused
from distinput.functions.vectorized.whole_block import check_code, names_read

NOTHING: frozenset[str] = frozenset()
COUNT = 0


def counting(x: Any) -> Any:
    global COUNT
    COUNT += 1
    return x


def importing(x: Any) -> Any:
    import math

    return math.sqrt(x)


def handling(x: Any) -> Any:
    try:
        return 1 / x
    except ZeroDivisionError:
        return x


def generating(x: Any) -> Any:
    yield x


def attribute(x: Any) -> Any:
    x.seen = True
    return x


def unknown(x: Any) -> Any:
    return x.tofile("f")


def same(x: Any) -> Any:
    return x is x


@pytest.mark.parametrize(
    "function, reason",
    [
        (counting, "assigns to the global variable `COUNT`"),
        (importing, "imports `math`"),
        (handling, "handles exceptions"),
        (generating, "generator"),
        (attribute, "assigns to the attribute `seen`"),
        (unknown, r"uses \.tofile"),
        (same, "compares by `is`"),
    ],
)
def test_effects_are_seen(function: Callable[..., Any], reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        check_code(function.__code__, NOTHING)


def test_a_variable_of_the_function_around_it_is_not_assigned() -> None:
    total = 0

    def adding(x: Any) -> Any:
        nonlocal total
        total += 1
        return x

    def inside(x: Any) -> Any:
        def deep() -> None:
            nonlocal total
            total += 1

        deep()
        return x

    for function in (adding, inside):
        with pytest.raises(Refused, match="assigns to `total` of the function around it"):
            check_code(function.__code__, NOTHING)


def test_what_a_call_makes_for_itself_is_harmless() -> None:
    def local(x: Any) -> Any:
        parts = [x[i] for i in range(3)]
        found = {"a": parts}
        found["b"] = [part + 1 for part in parts]

        def add(k: int) -> Any:
            nonlocal parts
            parts = [part + k for part in parts]
            return parts

        return sum(add(2)), {**found, "c": lambda: x}, (*parts,), x[1:], -x

    check_code(local.__code__, NOTHING)
    assert names_read(local.__code__) >= {"range", "sum"}
