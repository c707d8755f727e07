# SPDX-License-Identifier: Apache-2.0
"""What a function reads from outside is a part of what it is, also if others may change it."""

import argparse
import array
import collections
import ctypes
import dataclasses
import functools
import os
import re
import string
import subprocess
import sys
import threading
import types
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest

import distinput as di
from distinput.data import Dataset
from distinput.plan.code import function_word, value_word


class Space:
    def __init__(self, value: Any) -> None:
        self.value = value

    def read(self, x: Any) -> Any:
        return x + len(str(self.value))

    def __call__(self, x: Any) -> Any:
        return self.read(x)


@dataclasses.dataclass
class Record:
    value: Any


@dataclasses.dataclass(frozen=True)
class Frozen:
    value: Any


class Slots:
    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


Point = collections.namedtuple("Point", "x y")  # noqa: PYI024


def large(at: int) -> Any:
    array = np.zeros(5_000_000)
    array[at] = 1
    return array


def _masked(mask: list[bool]) -> Any:
    return np.ma.MaskedArray([1, 2], mask)


PAIRS: dict[str, tuple[Any, Any]] = {
    "array": (np.array([1, 2]), np.array([1, 3])),
    "array of another type": (np.array([1, 2]), np.array([1.0, 2.0])),
    "masked array": (_masked([True, False]), _masked([False, True])),
    "array of objects": (np.array(["a"], object), np.array(["b"], object)),
    "large array": (large(0), large(4_999_999)),
    "list": ([1], [2]),
    "list of arrays": ([np.array([1])], [np.array([2])]),
    "dict": ({"a": 1}, {"a": 2}),
    "keys": ({"a": 1}, {"b": 1}),
    "order of a dict": ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    "nested": ({"a": [{"b": (np.array([1]),)}]}, {"a": [{"b": (np.array([2]),)}]}),
    "set": ({1, 2}, {1, 3}),
    "deque": (collections.deque([1]), collections.deque([2])),
    "counter": (collections.Counter("a"), collections.Counter("b")),
    "tuple of an array": ((np.array([1]),), (np.array([2]),)),
    "namedtuple": (Point(1, [2]), Point(1, [3])),
    "bytearray": (bytearray(b"a"), bytearray(b"b")),
    "array of Python": (array.array("q", [1]), array.array("q", [2])),
    "buffer": ((ctypes.c_int * 1)(1), (ctypes.c_int * 1)(2)),
    "template": (string.Template("$a"), string.Template("$b")),
    "user list": (collections.UserList([1]), collections.UserList([2])),
    "pattern": (re.compile("a"), re.compile("b")),
    "namespace": (types.SimpleNamespace(value=1), types.SimpleNamespace(value=2)),
    "arguments": (argparse.Namespace(value=1), argparse.Namespace(value=2)),
    "object": (Space(1), Space(2)),
    "object of an array": (Space(np.array([1])), Space(np.array([2]))),
    "object of objects": (Space([Space(1)]), Space([Space(2)])),
    "dataclass": (Record(1), Record(2)),
    "frozen dataclass": (Frozen(large(1)), Frozen(large(2_500_001) * 2)),
    "slots": (Slots(1), Slots(2)),
    "function in a list": ([lambda: 1], [lambda: 2]),
    "variable": (di.Variable(1.0), di.Variable(2.0)),
}

HOLDING: dict[str, Callable[[Any], Any]] = {
    "closure": lambda v: lambda x: (x, v)[0],
    "default": lambda v: lambda x, v=v: x,
    "partial": lambda v: functools.partial(lambda v, x: x, v),
    "partial by name": lambda v: functools.partial(lambda x, v: x, v=v),
    "inner function": lambda v: lambda x: (lambda: (x, v)[0])(),
    "helper": lambda v: (lambda helper: lambda x: helper(x))(lambda x: (x, v)[0]),
    "attribute": lambda v: Space(v),
    "bound method": lambda v: Space(v).read,
}


def fingerprint(function: Any) -> int:
    return int(Dataset.range(3).map(function).fingerprint())


@pytest.mark.parametrize("holding", HOLDING)
@pytest.mark.parametrize("pair", PAIRS)
def test_another_value_is_another_pipeline(pair: str, holding: str) -> None:
    one, other = PAIRS[pair]
    hold = HOLDING[holding]
    assert fingerprint(hold(one)) == fingerprint(hold(one))
    assert fingerprint(hold(one)) != fingerprint(hold(other))


def test_a_change_in_place_is_seen_by_the_next_pipeline() -> None:
    table, words, space = np.array([1, 2]), {"a": 1}, Space(1)
    for value, change in (
        (table, lambda: table.__setitem__(0, 9)),
        (words, lambda: words.update(b=2)),
        (space, lambda: setattr(space, "value", 2)),
    ):
        before = fingerprint(lambda x: (x, value)[0])  # noqa: B023
        change()
        assert fingerprint(lambda x: (x, value)[0]) != before  # noqa: B023


def test_attributes_of_classes_and_of_modules_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    class Config:
        scale: Any = 1
        other = 1

    class Scaled:
        scale: ClassVar[list[int]] = [1]

        def read(self, x: Any) -> Any:
            return x * self.scale[0]

    function = lambda x: x * Config.scale  # noqa: E731
    before, method, module = fingerprint(function), fingerprint(Scaled().read), types.ModuleType("settings_of_mine")
    module.scale = 1  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "settings_of_mine", module)
    of_module = fingerprint(lambda x: x * module.scale)
    Config.other = 2
    assert fingerprint(function) == before
    Config.scale, Scaled.scale = 2, [2]
    module.scale = 2  # type: ignore[attr-defined]
    assert fingerprint(function) != before
    assert fingerprint(Scaled().read) != method
    assert fingerprint(lambda x: x * module.scale) != of_module


def test_what_a_function_notes_is_no_part_of_what_it_is() -> None:
    seen: list[Any] = []
    counts: dict[Any, int] = {}

    class Log:
        def __init__(self) -> None:
            self.seen: list[Any] = []

        def note(self, x: Any) -> Any:
            self.seen.append(x)
            return x

    log = Log()

    def function(x: Any) -> Any:
        seen.append(x)
        counts[int(x)] = counts.get(int(x), 0) + 1
        return log.note(x)

    first, method = fingerprint(function), fingerprint(log.note)
    dataset = Dataset.range(4).map(function)
    it = iter(dataset)
    next(it)
    state = it.state()
    assert list(dataset.restore(state)) == [1, 2, 3]
    assert list(Dataset.range(4).map(function).restore(state)) == [1, 2, 3]
    assert (fingerprint(function), fingerprint(log.note)) == (first, method)


def test_what_changes_while_a_pass_runs_was_seen_before() -> None:
    def make(notes: list[Any]) -> Dataset[Any]:
        def keep(where: list[Any], x: Any) -> None:
            where.append(x)

        return Dataset.range(4).map(lambda x: keep(notes, x) or x)

    it = iter(make([]))
    next(it)
    assert list(make([]).restore(it.state())) == [1, 2, 3]


def test_things_without_values_count_by_their_class() -> None:
    for make in (threading.Lock, lambda: np.random.default_rng(), lambda: iter([1])):
        one, other = make(), make()
        assert value_word(one, function_word) == value_word(other, function_word)


def test_what_holds_itself_is_read_once() -> None:
    held: list[Any] = [1]
    held.append(held)
    assert value_word(held, function_word) == value_word(held, function_word)


def test_models_that_are_trained_count_by_their_class() -> None:
    class Model:
        def __init__(self, weights: Any) -> None:
            self.weights = weights

        def named_parameters(self) -> Any:
            return self.weights

    one, other = Model(np.zeros(2)), Model(np.ones(2))
    assert value_word(one, function_word) == value_word(other, function_word)


def test_tables_and_tensors_of_others() -> None:
    import pyarrow as pa

    assert value_word(pa.table({"a": [1]}), function_word) != value_word(pa.table({"a": [2]}), function_word)
    assert value_word(pa.array([1]), function_word) != value_word(pa.array([2]), function_word)
    pandas = pytest.importorskip("pandas")
    torch = pytest.importorskip("torch")
    made: tuple[Callable[[int], Any], ...] = (
        lambda x: pandas.DataFrame({"a": [x]}),
        lambda x: pandas.Series([x]),
        lambda x: torch.tensor([x]),
        lambda x: torch.tensor([x]).bfloat16(),
    )
    for make in made:
        assert value_word(make(1), function_word) == value_word(make(1), function_word)
        assert value_word(make(1), function_word) != value_word(make(2), function_word)


def test_the_word_is_the_same_in_every_process() -> None:
    program = (
        "import numpy as np, collections\n"
        "from distinput.plan.code import value_word\n"
        "from distinput.plan.code import function_word\n"
        "print(value_word({'a': [np.arange(3), {'x', 'y', 'z'}, collections.Counter('abc')]}, function_word))"
    )
    words = []
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        words.append(
            subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, env=environment).stdout
        )
    assert words[0] == words[1]


@pytest.mark.parametrize("pair", ["array", "list", "dict", "namespace", "object", "frozen dataclass"])
@pytest.mark.parametrize("holding", ["closure", "partial", "bound method"])
def test_folders_never_serve_elements_of_other_values(tmp_path: Any, pair: str, holding: str) -> None:
    def made(value: Any) -> Dataset[Any]:
        return (
            Dataset.range(2).map(lambda x: x, output_signature=di.TensorSpec([], di.int64)).map(HOLDING[holding](value))
        )

    one, other = PAIRS[pair]
    made(one).cache(str(tmp_path / "cache")).to_list()
    made(one).snapshot(str(tmp_path / "snapshot")).to_list()
    with pytest.raises(di.errors.FailedPreconditionError, match="reads other"):
        made(other).cache(str(tmp_path / "cache")).to_list()
    made(other).snapshot(str(tmp_path / "snapshot")).to_list()
    assert len(list((tmp_path / "snapshot").iterdir())) == 2
    assert made(one).cache(str(tmp_path / "cache")).to_list() == made(one).to_list()


def test_states_of_other_values_are_refused() -> None:
    def made(table: Any) -> Dataset[Any]:
        return Dataset.range(2).map(lambda x: table[x])

    it = iter(made(np.array([1, 2])))
    next(it)
    assert list(made(np.array([1, 2])).restore(it.state())) == [2]
    with pytest.raises(di.errors.StateError, match="other arrays, lists or objects"):
        made(np.array([1, 3])).restore(it.state())
    assert list(made(np.array([1, 3])).restore(it.state(), may_differ="functions")) == [3]


def test_an_object_that_holds_a_function_that_holds_the_object() -> None:
    class Tools:
        def __init__(self) -> None:
            self.functions = {"f": lambda x: di.data.Dataset.range(x).take(self.most)}
            self.most = 3

    tools = Tools()
    dataset = di.data.Dataset.range(4).flat_map(tools.functions["f"])
    assert dataset.to_list() == [0, 0, 1, 0, 1, 2]
    assert iter(dataset).state()
