# SPDX-License-Identifier: Apache-2.0
"""A step keeps its functions as they are when it is made."""
# ruff: noqa: B008, B023, PERF401 - functions that read the variable of a loop are what is tested

import functools
import inspect
import pickle
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import distinput as di
from distinput.data import Dataset
from distinput.plan.binding import bound, by_name

RANGE = Dataset.range(3)


STEPS: dict[str, Callable[[Dataset[Any], Callable[[], int]], Dataset[Any]]] = {
    "map": lambda ds, k: ds.map(lambda x: x + k()),
    "map of threads": lambda ds, k: ds.map(lambda x: x + k(), num_parallel_calls=2),
    "map vectorized": lambda ds, k: ds.map(lambda x: x + k(), vectorize=True),
    "map with rng": lambda ds, k: ds.map(lambda x, rng: x + k(), rng=True),
    "map_rows": lambda ds, k: ds.map_rows(lambda x: x + k()),
    "filter": lambda ds, k: ds.filter(lambda x: x != k()),
    "take_while": lambda ds, k: ds.take_while(lambda x: x < k()),
    "flat_map": lambda ds, k: ds.flat_map(lambda x: Dataset.range(k())),
    "interleave": lambda ds, k: ds.interleave(lambda x: Dataset.range(k())),
    "scan": lambda ds, k: ds.scan(np.int64(0), lambda s, x: (s, x + k())),
    "group_by_window": lambda ds, k: ds.group_by_window(lambda x: x % k(), lambda key, group: group.batch(9), 9),
    "window_size_func": lambda ds, k: ds.group_by_window(lambda x: 0, lambda key, g: g.batch(9), None, lambda key: k()),
    "bucket_by_sequence_length": lambda ds, k: ds.bucket_by_sequence_length(lambda x: k(), [2], [1, 2]),
    "batch_by_tokens": lambda ds, k: ds.batch_by_tokens(4, length_func=lambda x: k()),
    "rejection_resample": lambda ds, k: ds.rejection_resample(lambda x: k() % 2, [0.0, 1.0], [0.5, 0.5], seed=1),
    "group_by_reducer": lambda ds, k: ds.apply(
        di.data.experimental.group_by_reducer(
            lambda x: x % k(),
            di.data.experimental.Reducer(lambda key: np.int64(k()), lambda s, x: s + x + k(), lambda s: s * k()),
        )
    ),
    "from_generator": lambda ds, k: Dataset.from_generator(
        lambda: iter([k()]), output_signature=di.TensorSpec((), di.int64)
    ),
}


def _of_cell(step: str) -> list[Any]:
    """Datasets whose functions read the variable of a loop."""
    return [STEPS[step](RANGE, (lambda k: lambda: k)(k)) for k in (1, 2, 3)]


def _texts(datasets: list[Any]) -> list[str]:
    return [str(ds.to_list()) for ds in datasets]


@pytest.mark.parametrize("step", STEPS)
def test_every_step_takes_its_functions_as_they_are(step: str) -> None:
    made = []
    for k in (1, 2, 3):
        made.append(STEPS[step](RANGE, lambda: k))
    assert _texts(made) == _texts(_of_cell(step))


def test_loops_of_a_script_take_variables_of_the_module(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
        import functools, pickle
        import numpy as np
        import distinput as di

        parts = []
        for c in range(3):
            parts.append(di.data.Dataset.range(9).filter(lambda x: x % 3 == c))
        print([part.to_list() for part in parts])

        for way in ("lambda", "def", "helper", "partial", "inner", "default"):
            total = di.data.Dataset.range(3)
            for k in (1, 10, 100):
                def add(x):
                    return x + k
                functions = {
                    "lambda": lambda x: x + k, "def": add, "helper": lambda x: add(x), "partial": functools.partial(add),
                    "inner": lambda x: (lambda: x + k)(), "default": lambda x, f=add: f(x),
                }
                total = total.map(functions[way])
            print(way, total.to_list())

        calls = 0
        def count(x):
            global calls
            calls += 1
            return x + later(x)
        counted = di.data.Dataset.range(3).map(count)
        def later(x):
            return np.int64(1)
        print(counted.to_list(), calls)

        def factorial(n):
            return 1 if n < 2 else n * factorial(n - 1)
        print(di.data.Dataset.range(5).map(lambda n: factorial(int(n))).to_list())

        def plus(x):
            return x + k
        print(pickle.loads(pickle.dumps(di.data.Dataset.range(3).map(plus))).to_list())
        """)
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    ways = [f"{way} [111, 112, 113]" for way in ("lambda", "def", "helper", "partial", "inner", "default")]
    assert done.stdout.splitlines() == [
        "[[0, 3, 6], [1, 4, 7], [2, 5, 8]]", *ways, "[1, 2, 3] 3", "[1, 1, 2, 6, 24]", "[100, 101, 102]",
    ]  # fmt: skip


def test_what_a_function_holds_is_taken_as_well() -> None:
    class Adder:
        def add(self, x: Any) -> Any:
            return x + k

    made = []
    for k in (1, 10):

        def inner(x: Any) -> Any:
            return x + k

        @functools.wraps(inner)
        def decorated(*args: Any) -> Any:
            return inner(*args)

        both = (inner, functools.partial(inner))
        made.append(
            [
                RANGE.map(lambda x: inner(x)),
                RANGE.map(decorated),
                RANGE.map(lambda x: both[1](x)),
                RANGE.map(functools.partial(lambda f, x: f(x), inner)),
                RANGE.map(Adder().add),
            ]
        )
    assert [ds.to_list() for ds in made[0]] == [[1, 2, 3]] * 5
    assert [ds.to_list() for ds in made[1]] == [[10, 11, 12]] * 5


def test_a_generator_may_make_the_functions() -> None:
    def functions() -> Any:
        for k in (1, 10):
            yield lambda x: x + k

    total = RANGE
    for function in functions():
        total = total.map(function)
    assert total.to_list() == [11, 12, 13]


def test_counters_are_shared() -> None:
    calls, seen = 0, []

    def count(x: Any) -> Any:
        nonlocal calls
        calls += 1
        seen.append(int(x))
        return x

    def told(x: Any) -> Any:  # a sibling reads it
        return x * 0 + calls

    assert RANGE.map(count).to_list() == [0, 1, 2]
    assert (calls, seen) == (3, [0, 1, 2])
    assert RANGE.map(told).to_list() == [3, 3, 3]

    def of_attribute(x: Any) -> Any:
        of_attribute.calls += 1  # type: ignore[attr-defined]
        return x

    of_attribute.calls = 0  # type: ignore[attr-defined]
    RANGE.map(of_attribute).to_list()
    assert of_attribute.calls == 3  # type: ignore[attr-defined]


def _pair() -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    n = 0

    def count(x: Any) -> Any:
        nonlocal n
        n += 1
        return x

    return count, lambda x: x * 0 + n


def test_a_sibling_that_assigns_shares_its_variable_when_their_maker_has_returned() -> None:
    count, told = _pair()
    RANGE.map(count).to_list()
    dataset = RANGE.map(told)
    RANGE.map(count).to_list()
    assert dataset.to_list() == [6, 6, 6]


def test_functions_may_be_defined_later_and_call_themselves() -> None:
    def first(x: Any) -> Any:
        return second(x)

    dataset = RANGE.map(first)

    def second(x: Any) -> Any:
        return x + 1

    def factorial(n: Any) -> Any:
        return 1 if n < 2 else n * factorial(n - 1)

    assert dataset.to_list() == [1, 2, 3]
    assert Dataset.range(5).map(lambda n: factorial(int(n))).to_list() == [1, 1, 2, 6, 24]


def helper(x: Any) -> Any:
    return x + 1


STEP = 5


def test_functions_and_modules_can_be_replaced_for_a_test(monkeypatch: pytest.MonkeyPatch) -> None:
    k = 0
    dataset = RANGE.map(lambda x: helper(x) + k + STEP, vectorize=False)
    monkeypatch.setattr(sys.modules[__name__], "helper", lambda x: x - 1)
    monkeypatch.setattr(sys.modules[__name__], "STEP", 7)  # a value is taken when the step is made
    assert dataset.to_list() == [4, 5, 6]
    dataset = RANGE.map(lambda x: np.negative(x) + k, vectorize=False)
    monkeypatch.setattr(np, "negative", lambda x: x * 3)
    assert dataset.to_list() == [0, 3, 6]


def test_what_cannot_be_copied_is_watched() -> None:
    class Add:
        def __call__(self, x: Any) -> Any:
            return x + k

    total: dict[str, Dataset[Any]] = {"list": RANGE, "object": RANGE, "cached": RANGE}
    for k in (1, 10):
        functions = [lambda x: x + k]

        @functools.lru_cache
        def cached(x: Any) -> Any:
            return x + k

        total["list"] = total["list"].map(lambda x: functions[0](x))
        total["object"] = total["object"].map(Add())
        total["cached"] = total["cached"].map(lambda x: cached(int(x)))
    for name, dataset in total.items():
        with pytest.raises(di.errors.FailedPreconditionError, match=r"reads the variable k, .*when it was 1"):
            dataset.to_list()
        k = 1
        assert name in total


@pytest.mark.parametrize(
    "use",
    [
        lambda own: own(),
        lambda own: own().inner,
        lambda own: lambda x, it=own(): it.inner(x),
        lambda own: lambda x, it=own: it().inner(x),
        lambda own: lambda x: own.alone(x),
        lambda own: lambda x, it={"deep": [own().inner]}: it["deep"][0](x),
        lambda own: lambda x, it=Named(own().inner): it.function(x),
        lambda own: lambda x, it=functools.lru_cache(own().inner): it(x),
    ],
    ids=[
        "object",
        "method",
        "object in a default",
        "class",
        "static method",
        "list in a dict",
        "named tuple",
        "cached",
    ],
)
def test_methods_of_a_class_that_a_loop_makes_are_watched(use: Any) -> None:
    made = []
    for k in (1, 2):

        class Own:
            def __call__(self, x: Any) -> Any:
                return self.inner(x)

            def inner(self, x: Any) -> Any:
                return x * self.factor

            @property
            def factor(self) -> int:
                return k

            @staticmethod
            def alone(x: Any) -> Any:
                return x * k

        made.append(di.data.Dataset.range(2).map(use(Own)))
    with pytest.raises(di.errors.FailedPreconditionError, match="reads the variable k, which has another value now"):
        made[0].to_list()
    assert made[1].to_list() == [0, 2]


def test_methods_of_a_source_that_a_loop_makes_are_watched() -> None:
    made = []
    for k in (1, 2):

        class Own:
            def __len__(self) -> int:
                return 2

            def __getitem__(self, index: int) -> int:
                return (index + 1) * self.factor()

            def factor(self) -> int:
                return k

        made.append(Dataset.from_source(Own(), element_spec=di.TensorSpec((), di.int64)))
    with pytest.raises(
        di.errors.FailedPreconditionError, match=r"from_source: .* reads the variable k, which has another"
    ):
        made[0].to_list()
    assert made[1].to_list() == [2, 4]


class Named(NamedTuple):
    function: Any


def test_methods_that_nobody_names_are_not_watched() -> None:
    k = 1

    class Own:
        def factor(self, x: Any) -> Any:
            return x + 1

        def told(self) -> int:
            return k

    own = Own()
    made = di.data.Dataset.range(2).map(lambda x: own.factor(x))
    k = 2
    assert (own.told(), made.to_list()) == (2, [1, 2])


class Proxy:
    """Stands for an object that is not there yet."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"{name}: not yet")


class Proxied:
    proxy = Proxy()

    def __call__(self, x: Any) -> Any:
        return x if self.proxy is None else x + 1


def test_a_proxy_in_a_class_is_not_asked_for_its_attributes() -> None:
    class Own:
        proxy = Proxy()

        def __call__(self, x: Any) -> Any:
            return x if self.proxy is None else x + 1

    assert [Dataset.range(2).map(function).to_list() for function in (Proxied(), Own())] == [[1, 2], [1, 2]]


def test_lists_are_the_same_objects() -> None:
    numbers, table = [1], np.array([1])
    dataset = RANGE.map(lambda x: x + numbers[0] + table[0], vectorize=False)
    numbers[0], table[0] = 10, 100
    assert dataset.to_list() == [110, 111, 112]


def test_a_copy_looks_like_the_function() -> None:
    k = 1

    def add(x: int, *, more: int = 2) -> int:
        """Adds."""
        return x + k + more

    made = bound(add)
    assert made is not add
    assert bound(made) is made
    assert inspect.signature(made) == inspect.signature(add)
    assert inspect.getsource(made) == inspect.getsource(add)
    assert (made.__doc__, made.__name__, made.__qualname__, made.__module__) == (
        "Adds.", "add", add.__qualname__, __name__,
    )  # fmt: skip
    assert made(1) == 4


def test_a_function_without_variables_stays_itself() -> None:
    assert bound(helper) is helper
    assert bound(len) is len
    nothing = lambda x: np.abs(x)  # noqa: E731
    assert bound(nothing) is nothing
    assert by_name(nothing) is nothing


def test_named_functions_are_still_pickled_by_name() -> None:
    dataset = pickle.loads(pickle.dumps(RANGE.map(helper)))
    assert dataset.to_list() == [1, 2, 3]


def test_the_same_with_processes_and_executors() -> None:
    from concurrent.futures import ThreadPoolExecutor

    pytest.importorskip("cloudpickle")
    made = []
    with ThreadPoolExecutor(1) as executor:
        for k in (1, 10):
            made += [
                RANGE.map(lambda x: x + k, processes=True, num_parallel_calls=1),
                RANGE.map(lambda x: x + k, executor=executor),
            ]
        assert [ds.to_list() for ds in made] == [[1, 2, 3]] * 2 + [[10, 11, 12]] * 2


def test_states_and_fingerprints_are_of_what_was_taken() -> None:
    made = []
    for k in (1, 10):
        made.append(RANGE.map(lambda x: x + k))
    assert made[0].fingerprint() != made[1].fingerprint()
    it = iter(made[0])
    assert next(it) == 1
    assert list(made[0].restore(it.state())) == [2, 3]
    with pytest.raises(di.errors.StateError, match="reads other values"):
        made[1].restore(it.state())


def test_compiled_functions_take_variables_as_well() -> None:
    numba = pytest.importorskip("numba")
    made = []
    for k in (1, 10):
        made.append(RANGE.map(numba.njit(lambda x: x + k)))
    assert [ds.to_list() for ds in made] == [[1, 2, 3], [10, 11, 12]]


def test_attributes_that_no_function_names_are_not_watched() -> None:
    class Trainer:
        def __init__(self, callback: Any) -> None:
            self.callback = callback

        def step(self, x: Any) -> Any:
            return x + 1

    epoch = 0
    dataset = RANGE.map(Trainer(lambda: epoch).step)
    epoch = 1
    assert dataset.to_list() == [1, 2, 3]


def test_a_script_is_pickled_by_its_names(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
        import functools, pickle
        import distinput as di

        k = 5
        def plus(x):
            return x + k
        def of(f, x):
            return f(x) * 2
        def drawn(x, rng):
            return x + k

        ds = di.data.Dataset.range(3)
        for made in (ds.map(plus), ds.map(functools.partial(of, plus)), ds.map(drawn, rng=True)):
            print(pickle.loads(pickle.dumps(made)).to_list())
        """)
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[5, 6, 7]", "[10, 12, 14]", "[5, 6, 7]"]


def test_the_connection_of_a_query_is_taken_too(tmp_path: Path) -> None:
    import sqlite3

    made = []
    for number in (1, 2):
        path = str(tmp_path / f"{number}.db")
        with sqlite3.connect(path) as connection:
            connection.execute("create table t (x integer)")
            connection.execute("insert into t values (?)", (number,))
        connection.close()
        made.append(Dataset.from_sql("select x from t", lambda: sqlite3.connect(path)))
    assert [ds.to_list() for ds in made] == [[{"x": 1}], [{"x": 2}]]
