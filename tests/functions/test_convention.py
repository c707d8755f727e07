# SPDX-License-Identifier: Apache-2.0
from typing import Any

from distinput.functions.chain import calling


def arguments(*given: Any) -> Any:
    return given


def test_a_tuple_is_unpacked_and_anything_else_is_one_argument() -> None:
    call = calling(arguments)
    assert call((1, 2)) == (1, 2)
    assert call({"a": 1}) == ({"a": 1},)
    assert call([1, 2]) == ([1, 2],)
    assert call(()) == ()


def test_a_subclass_of_tuple_is_one_argument() -> None:
    from collections import namedtuple

    point = namedtuple("Point", "x y")(1, 2)  # noqa: PYI024 - untyped on purpose, as users write it
    assert calling(arguments)(point) == (point,)


def test_a_list_that_is_returned_is_a_tuple() -> None:
    assert calling(lambda x: [x, [x]])(3) == (3, [3])
    assert calling(lambda x: {"a": [x]})(3) == {"a": [3]}
