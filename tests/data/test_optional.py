# SPDX-License-Identifier: Apache-2.0
"""A step of an iterator that may have come to its end."""

import pytest

import distinput as di
from distinput.errors import InvalidArgumentError

Optional = di.data.experimental.Optional


def test_a_value_is_there() -> None:
    found = Optional.from_value(3)
    assert (found.has_value(), found.get_value(), repr(found)) == (True, 3, "Optional(3)")


@pytest.mark.parametrize("value", [None, 0, b"", ()])
def test_any_value_is_one(value: object) -> None:
    assert Optional.from_value(value).has_value()
    assert Optional.from_value(value).get_value() == value


def test_an_empty_one_knows_what_it_would_look_like() -> None:
    spec = di.TensorSpec([], "int64")
    found = Optional.empty(spec)
    assert (found.has_value(), found.element_spec, repr(found)) == (False, spec, "Optional()")
    with pytest.raises(InvalidArgumentError, match=r"does not have a value: the data ended; ask has_value\(\) first"):
        found.get_value()


def test_an_iterator_gives_empty_ones_from_its_end_on() -> None:
    it = iter(di.data.Dataset.range(1))
    found = [it.get_next_as_optional() for _ in range(3)]
    assert [each.has_value() for each in found] == [True, False, False]
    assert {each.element_spec for each in found} == {di.TensorSpec([], "int64")}
