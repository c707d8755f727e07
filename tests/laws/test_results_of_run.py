# SPDX-License-Identifier: Apache-2.0
"""The type of what comes out of `run` depends on the kinds of what the replicas return, never on the values."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di

STRATEGIES: dict[str, Callable[[], Any]] = {
    "central": lambda: di.distribute.CentralStorageStrategy(["CPU:0", "CPU:1"]),
    "mirrored": lambda: di.distribute.MirroredStrategy(["CPU:0", "CPU:1"]),
}
KINDS: dict[str, tuple[Callable[[int], Any], bool]] = {
    "array": (lambda n: np.array([n]), True),
    "bool": (bool, False),
    "bytes": (lambda n: b"%d records" % n, False),
    "complex": (complex, True),
    "float": (float, True),
    "int": (int, True),
    "numpy bool": (np.bool_, False),
    "numpy float": (np.float32, True),
    "numpy int": (np.int64, True),
    "text": (lambda n: f"{n} records", False),
}
"""How a function makes its result of a number, and whether results can be summed."""
NUMBERS = st.tuples(st.integers(0, 3), st.integers(0, 3)) | st.integers(0, 300).map(lambda n: (n, n))


@pytest.fixture(scope="module", params=STRATEGIES)
def strategy(request: pytest.FixtureRequest) -> Any:
    return STRATEGIES[request.param]()


def context() -> Any:
    return di.distribute.get_replica_context()


def types(value: Any) -> Any:
    """The types of a nest, those of the components of distributed values included."""
    if isinstance(value, di.distribute.DistributedValues):
        return type(value), [type(part) for part in value.values]
    if isinstance(value, dict):
        return {key: types(each) for key, each in value.items()}
    return [types(each) for each in value] if isinstance(value, tuple | list) else type(value)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25, deadline=None)
@given(numbers=NUMBERS)
def test_equal_results_have_the_type_of_others(strategy: Any, kind: str, numbers: tuple[int, int]) -> None:
    make, summed = KINDS[kind]

    def step(n: int) -> Any:
        return {"nested": (make(n), [make(n)])}, make(n)

    def of(given: tuple[int, int]) -> Any:
        return strategy.run(step, args=(di.distribute.PerReplica(given),))

    found = of(numbers)
    assert types(found) == types(of((1, 2)))
    assert [len(strategy.experimental_local_results(found[1])), len(found[0]["nested"][0].values)] == [2, 2]
    if summed:
        assert strategy.reduce("SUM", found[1], axis=None) == sum(numbers)
        assert strategy.reduce("MEAN", found, axis=None)[1] == sum(numbers) / 2


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25, deadline=None)
@given(numbers=NUMBERS)
def test_a_merge_function_gets_the_same_types(strategy: Any, kind: str, numbers: tuple[int, int]) -> None:
    make, summed = KINDS[kind]

    def of(given: tuple[int, int]) -> Any:
        seen: list[Any] = []

        def merge(strategy: Any, x: Any, *, y: Any) -> Any:
            seen.append((types(x), types(y), [len(strategy.experimental_local_results(x))]))
            return strategy.reduce("SUM", x, axis=None) if summed else None

        made = strategy.run(
            lambda n: context().merge_call(merge, args=(make(n),), kwargs={"y": [make(n)]}),
            args=(di.distribute.PerReplica(given),),
        )
        return seen, made

    seen, made = of(numbers)
    assert seen == of((1, 2))[0]
    assert made == (sum(numbers) if summed else None)


@given(numbers=NUMBERS)
@settings(max_examples=25, deadline=None)
def test_an_update_returns_the_same_types(strategy: Any, numbers: tuple[int, int]) -> None:
    with strategy.scope():
        v = di.Variable(0.0, aggregation="MEAN")

        def of(given: tuple[int, int]) -> Any:
            value = di.distribute.PerReplica(given) if len(strategy.experimental_local_results(v)) > 1 else given[0]
            return types(strategy.extended.update(v, lambda part, x: (float(x), int(x)), args=(value,), group=False))

        assert of(numbers) == of((1, 2))


def test_flags_given_to_a_merge_function_are_flags(strategy: Any) -> None:
    def merge(strategy: Any, x: Any, scale: Any, *, mean: Any, name: Any) -> Any:
        return (name, strategy.reduce("MEAN" if mean else "SUM", x, axis=None) * scale)

    def step(flag: bool) -> Any:
        return context().merge_call(merge, args=(np.float32(2), 3.0), kwargs={"mean": flag, "name": "loss"})

    assert strategy.experimental_local_results(strategy.run(step, args=(True,)))[0] == ("loss", 6)
    assert strategy.experimental_local_results(strategy.run(step, args=(False,)))[0] == ("loss", 12)
