# SPDX-License-Identifier: Apache-2.0
from typing import Any

import pytest

from distinput.values.spec_json import MalformedJson, items_of, json_value, member, of_kind


@pytest.mark.parametrize("text", ["", "{", b"\xff", "[" * 100_000, "1" * 10_000])
def test_what_is_no_json_is_told(text: Any) -> None:
    with pytest.raises(MalformedJson, match="it is no JSON"):
        json_value(text)


def test_kinds_are_exact() -> None:
    assert member({"x": True}, "x", bool) is True
    assert items_of((1, 2), "it", 2) == [1, 2]
    for value, kind in [(True, int), (1, float), ("1", int), ([], dict), (None, str)]:
        with pytest.raises(MalformedJson, match="it must be"):
            of_kind(value, "it", kind)
    with pytest.raises(MalformedJson, match="it has no 'y'"):
        member({"x": 1}, "y")
    with pytest.raises(MalformedJson, match="must have 2 items"):
        items_of([1], "it", 2)
