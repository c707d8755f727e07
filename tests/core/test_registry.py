# SPDX-License-Identifier: Apache-2.0
"""Tables that are open to others: names are checked, none is taken twice, and nothing is imported early."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from distinput.names.lazy import Registry


def numbers() -> Registry[Callable[..., Any]]:
    return Registry("number", {"fraction": "fractions:Fraction"})


def half() -> float:
    return 0.5


def test_a_function_is_found_by_its_name() -> None:
    table = numbers()
    table.register("half", half)
    assert table.find("half") is half
    assert "half" in table
    assert (list(table), len(table)) == (["fraction", "half"], 2)


def test_a_place_is_imported_when_it_is_first_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "outside_number.py").write_text(
        "class Third:\n    def __call__(self):\n        return 3\n    of = len\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    table = numbers()
    table.register("third", "outside_number:Third")
    table.register("length", "outside_number:Third.of")
    assert "outside_number" not in sys.modules
    assert table.find("third")()() == 3
    assert table.find("length") is len
    del sys.modules["outside_number"]


@pytest.mark.parametrize("name", ["", "Third", "a-b", "_a", "3d", "a b", "a:b", 7])
def test_a_name_is_lower_case_letters_digits_and_underscores(name: Any) -> None:
    with pytest.raises(ValueError, match=r"^number: a name must be lower-case letters, digits and underscores"):
        numbers().register(name, half)


@pytest.mark.parametrize(
    "place", ["", "fractions", "fractions:", ":Fraction", "a b:c", "a:b:c", "fractions:Fraction()"]
)
def test_a_place_is_a_module_and_an_attribute(place: str) -> None:
    with pytest.raises(ValueError, match=r"^number 'a': a place must be 'package.module:attribute', got '"):
        numbers().register("a", place)


def test_what_can_be_neither_called_nor_imported_is_an_error() -> None:
    with pytest.raises(TypeError, match=r"^number 'a': needs a function, a class, or .*, got int$"):
        numbers().register("a", 3)  # type: ignore[arg-type]


def test_a_taken_name_says_who_has_it() -> None:
    table = numbers()
    with pytest.raises(
        ValueError, match=r"^number 'fraction': the name is taken by fractions:Fraction, so .*:half needs"
    ):
        table.register("fraction", half)
    table.register("half", half)
    with pytest.raises(
        ValueError, match=r"^number 'half': the name is taken by .*:half, so math:sqrt needs another one$"
    ):
        table.register("half", "math:sqrt")
    assert table.find("half") is half


def test_the_same_function_may_be_registered_again() -> None:
    table = numbers()
    table.register("half", half)
    table.register("half", half)
    table.register("fraction", "fractions:Fraction")
    assert len(table) == 2


def test_an_unknown_name_lists_the_known_ones() -> None:
    table = numbers()
    table.register("half", half)
    with pytest.raises(ValueError, match=r"^unknown number 'third'; known are fraction, half$"):
        table.find("third")


@pytest.mark.parametrize("place, error", [("no_such_module:a", ImportError), ("math:no_such_name", AttributeError)])
def test_a_place_that_is_not_there_says_whose_it_is(place: str, error: type[Exception]) -> None:
    table = numbers()
    table.register("a", place)
    with pytest.raises(error) as caught:
        table.find("a")
    assert caught.value.__notes__ == [f"number 'a' is registered as {place!r}"]


def test_tables_are_apart() -> None:
    table = numbers()
    table.register("half", half)
    assert "half" not in numbers()
