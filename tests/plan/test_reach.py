# SPDX-License-Identifier: Apache-2.0
"""What functions reach is told apart by what it does, however far away it stands; caches are held to it."""

import functools
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import distinput as di
from distinput.plan.reach import ReachedCode

TOKENS = """
import functools
V = {value}
TABLE = {{"k": {value}}}
def encode(x):
    return x + {value}
class Base:
    K = {value}
    def low(self, x):
        return x + {value}
class Coder(Base):
    def helper(self, x):
        return self.low(x)
    def run(self, x):
        return self.helper(x)
    def __call__(self, x):
        return self.helper(x)
    @staticmethod
    def alone(x):
        return x + {value}
    @classmethod
    def of_class(cls, x):
        return cls.alone(x)
    @property
    def plain(self):
        return {value}
    @functools.cached_property
    def once(self):
        return {value}
CODER = Coder()
class Adds:
    def __init__(self, to_add):
        self.to_add = to_add
    def __call__(self, x):
        return x + self.to_add
    def run(self, x):
        return x + self.to_add
ADDS = Adds({value})
PARTIAL = functools.partial(lambda to_add, x: x + to_add, {value})
GET = {{0: {value}, 1: {value} + 1}}.get
BY_NAME = {{"run": CODER.run, "coder": CODER}}
"""

PIPELINE = """
import functools
import tokens_of_test
import tokens_of_test as other
from tokens_of_test import CODER, Coder, encode
def through(x):
    return tokens_of_test.encode(x)
def imports(x):
    from tokens_of_file import encode
    return encode(x)
def make(coder):
    return lambda x: coder[0].run(x)
class Feed:
    def __len__(self):
        return 2
    def __getitem__(self, index):
        return self.at(index)
    def at(self, index):
        return encode(index)
FUNCTIONS = {
    "function of a module": lambda x: tokens_of_test.encode(x),
    "function": encode,
    "named by another": lambda x: encode(x),
    "function in between": lambda x: through(x),
    "class": lambda x: Coder().run(x),
    "class of a module": lambda x: other.Coder().run(x),
    "object": lambda x: CODER.run(x),
    "object of a module": lambda x: other.CODER.run(x),
    "object that is called": CODER,
    "called inside": lambda x: CODER(x),
    "method": CODER.run,
    "static method": lambda x: Coder.alone(x),
    "class method": Coder.of_class,
    "class method inside": lambda x: Coder.of_class(x),
    "property": lambda x: x + CODER.plain,
    "cached property": lambda x: x + CODER.once,
    "constant of a class": lambda x: x + Coder.K,
    "constant of a module": lambda x: x + other.V,
    "table of a module": lambda x: x + other.TABLE["k"],
    "name as text": lambda x: getattr(other, "encode")(x),
    "method in a table": lambda x: other.BY_NAME["run"](x),
    "object in a table": lambda x: other.BY_NAME["coder"].run(x),
    "default": lambda x, coder=CODER: coder.run(x),
    "cell": make([CODER]),
    "partial": functools.partial(lambda coder, x: coder.run(x), CODER),
    "import inside": imports,
    "attribute of what is called": lambda x: other.ADDS(x),
    "attribute of the object of a method": other.ADDS.run,
    "partial of a module": lambda x: other.PARTIAL(x),
    "method written in C": lambda x: other.GET(int(x)),
}
"""

Version = Callable[[int], dict[str, Any]]


@pytest.fixture
def version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Version:
    """A program of the user's in a version: the functions of its pipeline, by what they show."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # both versions have one size and one time

    def made(value: int) -> dict[str, Any]:
        text = TOKENS.format(value=value)
        (tmp_path / "tokens_of_file.py").write_text(text)
        monkeypatch.delitem(sys.modules, "tokens_of_file", raising=False)
        tokens, program = types.ModuleType("tokens_of_test"), types.ModuleType("program_of_test")
        for module, code in ((tokens, text), (program, PIPELINE)):
            monkeypatch.setitem(sys.modules, module.__name__, module)
            exec(code, vars(module))
        return {**program.FUNCTIONS, "source": program.Feed}

    return made


CASES = [*[line.split('"')[1] for line in PIPELINE.splitlines() if line.startswith('    "')], "source"]


def pipeline(functions: dict[str, Any], case: str) -> "di.data.Dataset[Any]":
    return (
        di.data.Dataset.from_source(functions[case]())
        if case == "source"
        else di.data.Dataset.range(2).map(functions[case])
    )


@pytest.mark.parametrize("case", CASES)
def test_a_cache_never_serves_what_another_version_made(case: str, version: Version, tmp_path: Path) -> None:
    for value in (1, 1, 5):
        functions = version(value)
        shared = pipeline(functions, case).cache(shared=str(tmp_path / "shared"))
        assert shared.to_list() == [value, value + 1]
        alone = pipeline(functions, case).cache(str(tmp_path / "alone"))
        if value == 1:
            assert alone.to_list() == [1, 2]
        else:
            with pytest.raises(di.errors.FailedPreconditionError, match="was written by another pipeline: ") as refused:
                alone.to_list()
            assert "may_differ" not in str(refused.value)  # a cache takes none
    assert len(list((tmp_path / "shared").iterdir())) == 2


def test_what_was_written_by_another_version_is_not_gone_on_with(version: Version, tmp_path: Path) -> None:
    flag = tmp_path / "broken"
    for value in (1, 5):
        encode = version(value)["object"]

        def run(x: int, encode: Any = encode) -> int:
            if x == 3 and flag.exists():
                raise ValueError("broken")
            return int(encode(x))

        ds = di.data.Dataset.range(4).map(run, output_signature=di.TensorSpec([], "int64"))
        flag.touch()
        if value == 1:
            with pytest.raises(ValueError, match="broken"):
                ds.write(tmp_path / "data", "elements", shard_rows=1)
        flag.unlink()
    ds.write(tmp_path / "data", "elements", shard_rows=1)
    assert di.data.Dataset.load(tmp_path / "data").to_list() == [5, 6, 7, 8]


class Unreadable(Mapping[str, int]):
    def __getitem__(self, key: str) -> int:
        return 1

    def __iter__(self) -> Iterator[str]:
        raise ValueError("it has no keys today")

    def __len__(self) -> int:
        return 1


@pytest.mark.parametrize("way", ["closure", "default"])
def test_what_cannot_be_looked_at_is_not_left_out(way: str) -> None:
    held = Unreadable()
    functions = {"closure": lambda x: x + len(held), "default": lambda x, given=held: x + len(given)}
    with pytest.raises(ValueError, match="no keys today"):
        di.data.Dataset.range(3).map(functions[way]).fingerprint()


def test_variables_of_the_environment_count(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    words = []
    for text in ("1", "2"):
        monkeypatch.setenv("OFFSET_OF_TEST", text)
        words.append(ReachedCode.of([lambda x: x + int(os.environ["OFFSET_OF_TEST"])]).code_word)
    assert words[0] != words[1]


def test_what_the_code_changes_itself_does_not_count() -> None:
    words = []
    seen: list[int] = []

    class Counter:
        total = 0

        def __init__(self) -> None:
            self.calls = 0

        def __call__(self, x: int) -> int:
            self.calls += 1
            seen.append(x)
            return x

    counter = Counter()
    for _ in range(2):
        words.append(ReachedCode.of([counter, len, int]).code_word)
        counter(1)
    assert words[0] == words[1]


def test_objects_of_packages_count_where_a_folder_is_named() -> None:
    import pyarrow as pa

    tables = [pa.table({"x": [number]}) for number in (1, 1, 2)]
    words = [ReachedCode.of([lambda x, table=table: (x, table)]).word for table in tables]
    assert words[0] == words[1] != words[2]


@pytest.mark.needs("torch")
@pytest.mark.parametrize("way", ["closure", "table", "argument", "method", "callable", "own", "partial"])
def test_the_weights_of_a_model_that_makes_elements_count(way: str, tmp_path: Path) -> None:
    import torch

    class Tensor(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.from_numpy(x.copy())

    class Own(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Sequential(Tensor(), torch.nn.Linear(1, 1))

        def embed(self, x: Any) -> Any:
            return self.layer(x)

        def plain(self, x: Any) -> Any:
            return x

    class Embeds:
        def __init__(self, model: Any) -> None:
            self.model = model

        def run(self, x: Any) -> Any:
            return self.model(x)

        __call__ = run

    model = torch.nn.Sequential(Tensor(), torch.nn.Linear(1, 1)) if way != "own" else Own()
    made: dict[str, Callable[[], Any]] = {
        "closure": lambda: lambda x: model(x),
        "table": lambda: lambda x, models={"a": [model]}: models["a"][0](x),
        "argument": lambda: model,
        "method": lambda: Embeds(model).run,
        "callable": lambda: Embeds(model),
        "own": lambda: model.embed,
        "partial": lambda: functools.partial(lambda used, x: used(x), model),
    }
    ds = di.data.Dataset.from_tensor_slices(np.ones((2, 1), np.float32))

    aside = ReachedCode.of([getattr(model, "plain", len)]).code_word
    words, elements = [], []
    for _ in range(2):
        function = made[way]()
        cached = ds.map(function).cache(shared=str(tmp_path))
        elements.append(cached.to_list())
        words.append(ReachedCode.of([made[way]()]).code_word)
        assert ReachedCode.of([made[way]()]).code_word == words[-1]
        with torch.no_grad():
            next(iter(model.parameters())).add_(1.0)
    assert words[0] != words[1]
    assert elements[0] != elements[1]
    if way == "own":  # a method that uses no weights makes what it made, whatever is trained meanwhile
        assert ReachedCode.of([model.plain]).code_word == aside


def test_what_a_class_counts_for_itself_does_not_count() -> None:
    class Counter:
        calls = 0
        seen: ClassVar[list[int]] = []

        @classmethod
        def count(cls, x: int) -> int:
            cls.calls += 1
            cls.seen.append(x)
            return x

    words = []
    for _ in range(2):
        words.append(ReachedCode.of([lambda x: Counter.count(x)]).code_word)
        Counter.count(1)
    assert words[0] == words[1]


def _counted(function: Callable[[int], int]) -> Any:
    @functools.wraps(function)
    def counting(x: int) -> int:
        counting.calls += 1  # type: ignore[attr-defined]
        return function(x)

    counting.calls = 0  # type: ignore[attr-defined]
    return counting


def _counts_in_a_class() -> Callable[[int], int]:
    class Counter:
        calls = 0

    def count(x: int) -> int:
        Counter.calls += 1
        return x

    return count


def _counts_in_a_module() -> Callable[[int], int]:
    module: Any = types.ModuleType("counted")
    module.calls = 0

    def count(x: int) -> int:
        module.calls += 1
        return x

    return count


@pytest.mark.parametrize("make", [lambda: _counted(lambda x: x), _counts_in_a_class, _counts_in_a_module])
def test_what_a_function_counts_in_what_it_holds_does_not_count(make: Callable[[], Any]) -> None:
    function, words = make(), []
    for _ in range(2):
        words.append(ReachedCode.of([function]).code_word)
        function(1)
    assert words[0] == words[1]


def test_a_long_table_of_functions_is_followed() -> None:
    words = []
    for last in (lambda x: x + 1, lambda x: x + 2):
        table = [*[lambda x: x] * 500, last]
        words.append(ReachedCode.of([lambda x, table=table: table[x % 501](x)]).code_word)
    assert words[0] != words[1]


def test_functions_that_reach_each_other_are_read_once() -> None:
    table: dict[str, Any] = {}

    def even(n: int) -> bool:
        return n == 0 or bool(table["odd"](n - 1))

    table |= {"odd": lambda n: n != 0 and even(n - 1), "self": table}
    assert ReachedCode.of([even]).word == ReachedCode.of([even]).word
