# SPDX-License-Identifier: Apache-2.0
import functools
import json
import os
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.plan.fingerprint import difference, fingerprint
from distinput.plan.reach import ReachedCode

Dataset = di.data.Dataset
Text = di.data.TextLineDataset


def told(here: di.data.Dataset, there: di.data.Dataset, **allowed: Any) -> str | None:
    """What tells two pipelines apart, one of them known by its fingerprint through JSON."""
    return difference(here.node, json.loads(json.dumps(fingerprint(there.node))), **allowed)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.txt").write_text("".join(f"{name}{i}\n" for i in range(5)))
    return tmp_path


def texts(folder: Path, names: str, **how: Any) -> di.data.Dataset:
    return Text([f"{folder}/{name}.txt" for name in names], **how)


def test_the_same_files_are_the_same(folder: Path) -> None:
    assert told(texts(folder, "ab"), texts(folder, "ab")) is None


@pytest.mark.parametrize(
    "names, said",
    [
        ("ba", "step 1 (slices) names the same 2 files then, but in another order"),
        ("ac", "step 1 (slices) names other files than then, the first of them {}/c.txt"),
        ("abc", "step 1 (slices) names 3 files here and 2 files then"),
    ],
)
def test_other_files_are_told_by_name(folder: Path, names: str, said: str) -> None:
    assert told(texts(folder, names), texts(folder, "ab")) == said.format(folder)


def test_a_file_that_changed_is_told_by_name(folder: Path) -> None:
    there = fingerprint(texts(folder, "ab").node)
    os.utime(folder / "b.txt", (1, 1))
    said = difference(texts(folder, "ab").node, there)
    assert said is not None
    assert f"{folder}/b.txt has another time of change; may_differ='times'" in said
    assert difference(texts(folder, "ab").node, there, "times") is None
    (folder / "b.txt").write_text("b\n")
    said = difference(texts(folder, "ab").node, there, "times")
    assert said is not None
    assert f"{folder}/b.txt has another size; may_differ='sizes'" in said
    assert difference(texts(folder, "ab").node, there, "sizes") is None


def test_files_may_have_moved_together(folder: Path) -> None:
    (folder / "new").mkdir()
    there = fingerprint(texts(folder, "ab").node)
    for name in ("a", "b"):
        (folder / f"{name}.txt").rename(folder / f"new/{name}.txt")
        os.utime(folder / f"new/{name}.txt", (1, 1))
    moved = texts(folder / "new", "ab")
    said = difference(moved.node, there)
    assert said is not None
    assert f"names files in another folder than then, here '{folder}/new/'; may_differ='root'" in said
    assert difference(moved.node, there, "root") is None
    turned = difference(texts(folder / "new", "ba").node, there, "root")
    assert turned is not None
    assert "another order" in turned


def test_what_is_no_name_of_a_difference_is_refused() -> None:
    with pytest.raises(
        di.errors.InvalidArgumentError, match="may_differ: known are functions, root, sizes, times; got f"
    ):
        told(Dataset.range(2), Dataset.range(3), may_differ="f")


@pytest.mark.parametrize(
    "here, there",
    [
        (np.arange(5), np.arange(5) + 1),
        (np.arange(5), np.arange(5)[::-1]),
        (["a", "b"], ["b", "a"]),
        (["a", "bc"], ["ab", "c"]),
        (np.zeros((2, 20 << 20), np.uint8), np.eye(2, 20 << 20, dtype=np.uint8)),
        ({"x": [1], "y": [2]}, {"x": [2], "y": [1]}),
    ],
)
def test_other_values_in_memory_are_seen(here: Any, there: Any) -> None:
    made = Dataset.from_tensor_slices
    assert told(made(here), made(here)) is None
    assert told(made(here), made(there)) == "step 1 (slices) holds other values than then"


def test_what_lies_between_the_fields_of_a_struct_is_no_value() -> None:
    kind = np.dtype([("small", "i1"), ("inner", np.dtype([("a", "i2"), ("b", "i8", 2)], align=True))], align=True)
    zeros, ones = [np.full(6 * kind.itemsize, byte, np.uint8).view(kind) for byte in (0, 255)]
    for name in ("a", "b"):
        ones["inner"][name] = 0
    ones["small"] = 0
    assert told(Dataset.from_tensor_slices(zeros), Dataset.from_tensor_slices(ones)) is None
    ones["inner"]["b"][5, 1] = 1
    assert told(Dataset.from_tensor_slices(zeros), Dataset.from_tensor_slices(ones)) is not None


def adding(k: Any) -> Callable[[Any], Any]:
    return lambda x: x + k


FACTOR = 2


def with_a_global(x: Any) -> Any:
    return x * FACTOR


def counting() -> Callable[[Any], Any]:
    calls = 0

    def count(x: Any) -> Any:
        nonlocal calls
        calls += 1
        return x

    return count


class Adder:
    def __init__(self, k: int) -> None:
        self.k, self.calls = k, 0

    def __call__(self, x: Any) -> Any:
        self.calls += 1
        return x + self.k

    def method(self, x: Any) -> Any:
        return x - self.k


def plus(k: int, x: Any) -> Any:
    return x + k


@pytest.mark.parametrize(
    "here, there, said",
    [
        (adding(1), adding(1), None),
        (adding(1), adding(2), "reads other values from outside"),
        (Adder(1), Adder(1), None),
        (Adder(1), Adder(2), "reads other values from outside"),
        (Adder(1).method, Adder(2).method, "reads other values from outside"),
        (functools.partial(plus, 1), functools.partial(plus, 1), None),
        (functools.partial(plus, 1), functools.partial(plus, 2), "reads other values from outside"),
        (lambda x: x + 1, lambda y: y + 1, None),
        (lambda x: x + 1, lambda x: x + 2, "a function with another body"),
        (lambda x: (lambda: x + 1)(), lambda x: (lambda: x + 2)(), "a function with another body"),
        (lambda x: x in {"a", "b", "c"}, lambda x: x in {"a", "b", "d"}, "a function with another body"),
        (lambda x, k=1: x + k, lambda x, k=2: x + k, "reads other values from outside"),
        (np.sqrt, np.sqrt, None),
    ],
)
def test_functions_are_compared_by_what_they_do(here: Any, there: Any, said: str | None) -> None:
    both = [Dataset.range(3).map(f, output_signature=di.TensorSpec([], "int64")) for f in (here, there)]
    found = told(*both)
    assert (found is None) if said is None else (found is not None and said in found)
    assert told(*both, may_differ="functions") is None


def test_the_constant_of_a_module_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    there = fingerprint(Dataset.range(3).map(with_a_global).node)
    assert difference(Dataset.range(3).map(with_a_global).node, there) is None
    monkeypatch.setitem(globals(), "FACTOR", 3)
    said = difference(Dataset.range(3).map(with_a_global).node, there)
    assert said is not None
    assert "reads other values from outside" in said


def by_attribute(x: Any) -> Any:
    return x * by_attribute.factor  # type: ignore[attr-defined]


def around_it(x: Any) -> Any:
    return by_attribute(x)


@pytest.mark.parametrize("function", [by_attribute, around_it])
def test_the_attribute_of_a_function_counts(function: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_attribute, "factor", 2, raising=False)
    there = fingerprint(Dataset.range(3).map(function).node)
    assert difference(Dataset.range(3).map(function).node, there) is None
    monkeypatch.setattr(by_attribute, "factor", 3)
    said = difference(Dataset.range(3).map(function).node, there)
    assert said is not None
    assert "reads other" in said


class Holder:
    k = 1


def of_another(x: Any) -> Any:
    return x


def users_module() -> types.ModuleType:
    """A module of the user's with a function, a class and a module inside, each of which has a number `k`."""
    module: Any = types.ModuleType("module_of_the_user")
    module.inner = types.ModuleType("inner_module_of_the_user")
    module.function = types.FunctionType(of_another.__code__, vars(module), "function")
    module.Class = type("Class", (), {"__module__": "module_of_the_user"})
    return module


USERS: Any = users_module()
FUNCTION, CLASS = USERS.function, USERS.Class
READERS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "function": (lambda x: x * FUNCTION.k, FUNCTION),
    "class": (lambda x: x * CLASS.k, CLASS),
    "class of the same module": (lambda x: x * Holder.k, Holder),
    "function in a module": (lambda x: x * USERS.function.k, FUNCTION),
    "class in a module": (lambda x: x * USERS.Class.k, CLASS),
    "module in a module": (lambda x: x * USERS.inner.k, USERS.inner),
}


@pytest.mark.parametrize("name", READERS)
def test_the_attribute_of_what_is_of_another_module_counts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, owner = READERS[name]

    def words() -> tuple[Any, str]:
        node = Dataset.range(3).map(function, output_signature=di.TensorSpec([], "int64")).node
        return fingerprint(node), ReachedCode.by(node).word

    monkeypatch.setattr(owner, "k", 2, raising=False)
    there = words()
    assert there == words()
    monkeypatch.setattr(owner, "unread", 3, raising=False)
    if name in ("function", "function in a module"):
        assert there == words()
    monkeypatch.setattr(owner, "k", 3)
    assert all(a != b for a, b in zip(there, words(), strict=True))


FILLING: Any = types.ModuleType("filling_of_the_user")
exec(
    """
class Words:
    table = {}
    @classmethod
    def of(cls):
        cls.table.update({1: 2})
        return cls
def fill():
    Words.table.update({1: 2})
def encode(x):
    fill()
    return x + len(Words.table)
""",
    vars(FILLING),
)
WORDS, FILL = FILLING.Words, FILLING.fill
FILLERS: dict[str, Callable[[Any], Any]] = {
    "class": lambda x: x + len(WORDS.of().table),
    "class in a module": lambda x: x + len(FILLING.Words.of().table),
    "function": lambda x: (FILL(), x + len(WORDS.table))[1],
    "function in a module": lambda x: (FILLING.fill(), x + len(FILLING.Words.table))[1],
    "function of a function": FILLING.encode,
}


@pytest.mark.parametrize("name", FILLERS)
def test_a_table_that_is_filled_when_it_is_asked_for_is_left_out(name: str) -> None:
    def made() -> Any:
        return Dataset.range(3).map(FILLERS[name], output_signature=di.TensorSpec([], "int64"))

    WORDS.table.clear()
    before = fingerprint(made().node)
    assert made().to_list() == [1, 2, 3]
    assert WORDS.table
    assert fingerprint(made().node) == before


def counting_in_an_attribute(x: Any) -> Any:
    counting_in_an_attribute.calls += 1  # type: ignore[attr-defined]
    return x


counting_in_an_attribute.calls = 0  # type: ignore[attr-defined]


def test_what_a_function_counts_for_itself_is_left_out() -> None:
    functions: list[Callable[[Any], Any]] = [counting(), Adder(1), counting_in_an_attribute]
    there = [fingerprint(Dataset.range(3).map(f).node) for f in functions]
    reached = ReachedCode.of(functions).word
    for f, before in zip(functions, there, strict=True):
        list(Dataset.range(3).map(f))
        assert difference(Dataset.range(3).map(f).node, before) is None
    assert ReachedCode.of(functions).word == reached


def test_a_data_set_inside_a_function_counts() -> None:
    def around(inner: di.data.Dataset) -> di.data.Dataset:
        return Dataset.range(3).flat_map(lambda _: inner)

    assert told(around(Dataset.range(3)), around(Dataset.range(3))) is None
    assert told(around(Dataset.range(3)), around(Dataset.range(4))) is not None


def test_a_docstring_is_no_difference() -> None:
    def made(source: str) -> di.data.Dataset:
        names: dict[str, Any] = {}
        exec(source, names)
        return Dataset.range(3).map(names["f"])

    plain = made("def f(x):\n    return x + 12345")
    assert told(plain, made("\n\ndef f(x):\n    'Adds.'\n    # and says so\n    return x + 12345")) is None
    assert told(plain, made("def f(x):\n    return x + 12346")) is not None


def test_how_many_threads_call_a_function_does_not_matter() -> None:
    plain = Dataset.range(9).map(adding(1)).batch(2)
    other = Dataset.range(9).map(adding(1), num_parallel_calls=2).prefetch(3).batch(2).with_options(di.data.Options())
    assert told(other, plain) is None
    assert told(plain, other) is None


PROGRAM = """
import json
import distinput as di
from distinput.plan.fingerprint import fingerprint
from tests.plan.test_fingerprint import Adder, adding, with_a_global

class Odd: pass

ds = di.data.Dataset.range(8).map(adding(3)).map(Adder(1)).map(with_a_global).map(lambda x: x in {"a", "b", "c", "d"})
ds = ds.map(lambda x, odd=Odd(): x).scan(0, lambda s, x: (s + 1, s))
print(json.dumps(fingerprint(ds.node)))
"""


def test_every_process_says_the_same() -> None:
    def run(seed: str) -> str:
        env = {**os.environ, "PYTHONHASHSEED": seed}
        return subprocess.run(
            [sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=True
        ).stdout

    assert run("1") == run("2")


def test_a_fingerprint_is_small() -> None:
    many = Dataset.from_tensor_slices([f"/data/{i:09}.txt" for i in range(100_000)])
    assert len(json.dumps(fingerprint(many.node))) < 200


def test_a_module_is_asked_for_nothing() -> None:
    class Lazy(types.ModuleType):
        def __getattr__(self, name: str) -> Any:
            raise ImportError(f"{name} is not installed")

    lazy = Lazy("lazy")
    dataset = Dataset.range(3).map(lambda x: x if lazy is None else x + 1, output_signature=di.TensorSpec([], "int64"))
    assert difference(dataset.node, fingerprint(dataset.node)) is None


def test_a_fingerprint_in_64_bits() -> None:
    ds = di.data.Dataset.range(4)
    assert ds.batch(2).fingerprint() == di.data.Dataset.range(4).batch(2).fingerprint() != ds.batch(3).fingerprint()
    assert ds.fingerprint().dtype == np.uint64


def test_a_shard_that_keeps_everything_makes_no_difference(folder: Path) -> None:
    plain, shard = texts(folder, "ab").batch(2), texts(folder, "ab").shard(1, 0).batch(2)
    assert told(plain, shard) is None
    assert told(shard, plain) is None
    assert told(shard.take(3), plain.take(4)) == "step 4 (take) has other arguments than then"
    assert told(plain, texts(folder, "ab").shard(2, 0).batch(2)) == "step 3 is batch here and was shard then"
