# SPDX-License-Identifier: Apache-2.0
"""What is read from a function changes when what it does changes, and for no other reason."""

import enum
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from distinput.data import Dataset
from distinput.errors import StateError
from distinput.plan.code import ArgumentReader, function_word


def read(value: Any) -> tuple[str, list[str], list[str]]:
    """What a step's argument says: as text, of code and of what is held; names aside."""
    reading = ArgumentReader()
    text = reading.argument(value)
    return text, reading.code, reading.held


def compiled(source: str, **names: Any) -> Callable[..., Any]:
    """The function `f` of a module that is written so."""
    module: dict[str, Any] = {"__name__": "a_module", **names}
    exec(source, module)
    function: Callable[..., Any] = module["f"]
    return function


SAME = [
    ("def f(x): return x + 1", "\n\n\ndef f(x):\n    return x + 1"),
    ("def f(x): return x + 1", "def f(other): return other + 1"),
    ("def f(x): return x + 1", "def g(x): return x + 1\nf = g"),
    ("def f(x):\n  'one'\n  return x", "def f(x):\n  'two'\n  return x"),
    ("def f(x): return x in {'a', 'b', 'c'}", "def f(x): return x in {'c', 'b', 'a'}"),
    ("def g(x): return x\ndef f(x): return g(x)", "def g(y): return y\ndef f(x): return g(x)"),
    ("unused = 1\ndef f(x): return x", "unused = 2\ndef f(x): return x"),
    ("held = [1]\ndef f(x): return held", "held = [2]\ndef f(x): return held"),
]


@pytest.mark.parametrize("one, other", SAME)
def test_what_does_the_same_reads_the_same(one: str, other: str) -> None:
    assert read(compiled(one)) == read(compiled(other))


DIFFERENT = [
    ("def f(x): return x + 1", "def f(x): return x + 2"),
    ("def f(x): return x + 1", "def f(x): return x + 1.0"),
    ("def f(x): return x + 1", "def f(x): return x + True"),
    ("def f(x): return x + 1", "def f(x): return x - 1"),
    ("def f(x, y=1): return x", "def f(x, y=2): return x"),
    ("def f(x, *, y=1): return x", "def f(x, *, y=2): return x"),
    ("def f(x): return x", "def f(*x): return x"),
    ("def f(x): return x.a", "def f(x): return x.b"),
    ("def g(x): return x\ndef f(x): return g(x)", "def g(x): return -x\ndef f(x): return g(x)"),
    ("SIZE = 1\ndef f(x): return SIZE", "SIZE = 2\ndef f(x): return SIZE"),
    ("def f(x): return (lambda: 1)()", "def f(x): return (lambda: 2)()"),
    ("def m(n): return lambda x: x + n\nf = m(1)", "def m(n): return lambda x: x + n\nf = m(2)"),
    ("def f(x):\n  if x: return 1\n  return 2", "def f(x):\n  if not x: return 1\n  return 2"),
    ("def f(x): return (1, (2, 3))", "def f(x): return (1, (2, 4))"),
    ("def f(x): return x in {'a'}", "def f(x): return x in {'b'}"),
]


@pytest.mark.parametrize("one, other", DIFFERENT)
def test_what_does_something_else_reads_otherwise(one: str, other: str) -> None:
    assert read(compiled(one)) != read(compiled(other))


def test_functions_that_call_each_other_are_read_once() -> None:
    _, code, _ = read(compiled("def g(x): return f(x)\ndef f(x): return g(x)"))
    assert code[-1] == "again 0"


class Color(enum.Enum):
    RED = 1
    BLUE = 2


@dataclass(frozen=True)
class Frozen:
    size: int


class Plain:
    pass


@pytest.mark.parametrize(
    "one, other",
    [
        (np.arange(3), np.arange(1, 4)),
        (np.arange(3), np.arange(3, dtype=np.int32)),
        (np.array([b"a"], object), np.array([b"b"], object)),
        ([1], (1,)),
        ({"a": 1}, {"a": 2}),
        ("1", 1),
        (Color.RED, Color.BLUE),
        (Frozen(1), Frozen(2)),
        (functools.partial(max, 1), functools.partial(max, 2)),
        (functools.partial(max, key=len), functools.partial(max, key=abs)),
        (len, abs),
        (np.add, np.subtract),
        (Plain, Frozen),
    ],
)
def test_values_that_differ_read_otherwise(one: Any, other: Any) -> None:
    assert read(one) != read(other)


@pytest.mark.parametrize("value", [{"c", "a", "b"}, Plain(), np.array([Plain()], object), Color.RED])
def test_values_read_the_same_again_and_name_no_address(value: Any) -> None:
    again = {"b", "c", "a"} if isinstance(value, set) else value
    assert read(value) == read(again)
    assert "0x" not in str(read(value))


class Scale:
    def __init__(self, by: int) -> None:
        self.by = by
        self.calls = 0

    def __call__(self, x: int) -> int:
        self.calls += 1
        return x * self.by

    def method(self, x: int) -> int:
        return x * self.by


def test_objects_are_read_by_the_attributes_that_their_methods_leave_alone() -> None:
    used = Scale(2)
    used(1)
    assert read(used) == read(Scale(2))
    assert read(used) != read(Scale(3))
    assert read(used.method) == read(Scale(2).method)
    assert read(used.method) != read(Scale(3).method)


class Holder:
    """Holds the datasets that its methods are steps of."""

    def __init__(self, factor: int) -> None:
        self.factor = factor
        functions = self.times, functools.partial(self.plus, 1), self
        self.first, self.second, self.third = [Dataset.range(3).map(function) for function in functions]

    def times(self, x: Any) -> Any:
        return x * self.factor

    def plus(self, n: int, x: Any) -> Any:
        return x + n * self.factor

    def __call__(self, x: Any) -> Any:
        return x - self.factor


@pytest.mark.parametrize("name, elements", [("first", [0, 2, 4]), ("second", [2, 3, 4]), ("third", [-2, -1, 0])])
def test_an_object_may_hold_the_datasets_that_call_it(name: str, elements: list[int]) -> None:
    dataset, other = [getattr(Holder(factor), name) for factor in (2, 3)]
    assert dataset.to_list() == elements
    state = iter(getattr(Holder(2), name)).state()
    assert list(dataset.restore(state)) == elements
    with pytest.raises(StateError, match="another pipeline"):
        other.restore(state)


def test_wrapped_functions_are_followed() -> None:
    def wrapped(n: int) -> Callable[[int], int]:
        @functools.lru_cache
        def inner(x: int) -> int:
            return x + n

        return inner

    assert read(wrapped(1)) == read(wrapped(1))
    assert read(wrapped(1)) != read(wrapped(2))


def test_a_variable_that_is_not_set_yet_is_passed_over() -> None:
    def made() -> Callable[[], int]:
        def inner() -> int:
            return later

        found = read(inner)
        later = 3
        assert read(inner)[1] == found[1]
        assert read(inner)[2] == [*found[2], "later=int 3"]
        return inner

    made()


def first_of_table(x: Any) -> Any:
    return TABLE["second"](x)


def second_of_table(x: Any) -> Any:
    return TABLE["more"] + x


TABLE: dict[str, Any] = {"first": first_of_table, "second": second_of_table, "more": 1}


def test_a_table_may_hold_the_functions_that_read_it(monkeypatch: pytest.MonkeyPatch) -> None:
    before = function_word(first_of_table)
    assert before == function_word(first_of_table) != function_word(second_of_table)
    monkeypatch.setitem(TABLE, "more", 2)
    assert function_word(first_of_table) != before


def test_a_function_whose_code_is_replaced_is_read_again() -> None:
    function = compiled("def f(x): return x + 1")
    before = function_word(function)
    function.__code__ = compiled("def f(x): return x + 2").__code__
    assert function_word(function) != before
