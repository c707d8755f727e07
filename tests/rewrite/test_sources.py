# SPDX-License-Identifier: Apache-2.0
"""Positions are shuffled before their items are read, and before functions are called."""

from collections.abc import Callable
from threading import get_ident
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.plan.node import Node
from distinput.rewrite.rules import rewrite
from distinput.testing.laws import check_rewrites
from distinput.testing.laws.trace import begun
from tests.rewrite.running import fires, ops_after

SOURCE = di.data.Dataset.from_source


def test_positions_are_shuffled_before_they_are_read() -> None:
    dataset = SOURCE(list(range(20)), num_parallel_calls=2).global_shuffle(seed=3)
    assert ops_after(dataset, "read_after_shuffle") == ["range", "global_shuffle", "from_source"]
    assert dataset.to_list() == di.data.Dataset.range(20).global_shuffle(seed=3).to_list()


def test_items_are_read_in_the_new_order_and_few_ahead() -> None:
    read: list[int] = []

    class Noted:
        def __len__(self) -> int:
            return 50_000

        def __getitem__(self, index: int) -> int:
            read.append(index)
            return index

    dataset = SOURCE(Noted(), element_spec=di.TensorSpec([], "int64")).global_shuffle(seed=1)
    first = next(iter(dataset))
    assert read == [first]


ROWS = di.data.Dataset.from_tensor_slices(np.arange(40))


@pytest.mark.parametrize("shuffled", [lambda ds: ds.shuffle(9, seed=1), lambda ds: ds.global_shuffle(seed=1)])
@pytest.mark.parametrize(
    "chosen",
    [
        lambda ds: ds,
        lambda ds: ds.take(20),
        lambda ds: ds.skip(3).shard(2, 1).repeat(2),
        lambda ds: ds.split(0.8, seed=3)[0].prefetch(2),
        lambda ds: ds.global_shuffle(seed=3),
        lambda ds: ds.with_options(di.data.Options()),
    ],
)
@pytest.mark.parametrize("options", [{}, {"num_parallel_calls": 3}, {"rng": True, "seed": 2}])
def test_positions_are_shuffled_before_functions_are_called(
    options: dict[str, Any], chosen: Callable[[Any], Any], shuffled: Callable[[Any], Any]
) -> None:
    def plus(x: int, *rng: np.random.Generator) -> int:
        return int(x + 100 + (rng[0].integers(9) if rng else 0))

    dataset = shuffled(chosen(ROWS.map(plus, **options)))
    rule = "call_after_global_shuffle" if dataset.node.op == "global_shuffle" else "call_after_shuffle"
    assert ops_after(dataset, rule)[-1] == "map"
    if not options.get("rng"):
        assert dataset.to_list() == [x + 100 for x in shuffled(chosen(ROWS))]


@pytest.mark.parametrize("shuffled", [lambda ds: ds.shuffle(9, seed=1), lambda ds: ds.global_shuffle(seed=1)])
def test_calls_below_a_shuffle_are_made_on_threads(shuffled: Callable[[Any], Any]) -> None:
    threads = set()

    def noted(x: int) -> int:
        threads.add(get_ident())
        return x

    dataset = shuffled(ROWS.take(39).map(noted, num_parallel_calls=3, output_signature=di.TensorSpec([], "int64")))
    assert sorted(dataset.as_numpy_iterator()) == list(range(39))
    assert get_ident() not in threads


def test_what_drops_errors_leaves_the_positions_of_a_buffer_to_other_elements() -> None:
    def quotient(x: int) -> float:
        return 1 / (x % 4)

    buffered = ROWS.map(quotient).shuffle(9, seed=1)
    assert fires(buffered, "call_after_shuffle")
    assert not fires(buffered.ignore_errors(), "call_after_shuffle")
    check_rewrites(buffered.ignore_errors())
    everywhere = ROWS.map(quotient).global_shuffle(seed=1).ignore_errors()
    assert ops_after(everywhere, "call_after_global_shuffle")[-2:] == ["map", "ignore_errors"]


def _all_of(dataset: Any, running: Node) -> list[Any]:
    """Every element and every error of a pass that goes on behind errors."""
    results: list[Any] = []
    with begun(dataset.node, running) as iterator:
        while True:
            try:
                results.append(next(iterator).tolist())
            except StopIteration:
                return results
            except ValueError as error:
                results.append(str(error))


@pytest.mark.parametrize("shuffled", [lambda ds: ds.shuffle(9, seed=1), lambda ds: ds.global_shuffle(seed=1)])
@pytest.mark.parametrize(
    "batched",
    [
        lambda ds: ds.batch(4),
        lambda ds: ds.ragged_batch(4),
        lambda ds: ds.take(35).batch(4),
        lambda ds: ds.batch(4).ignore_errors(),
        lambda ds: ds.map(abs).batch(4),
    ],
)
@pytest.mark.parametrize("before", [lambda ds: ds, lambda ds: ds.map(abs)])
def test_an_error_below_a_shuffle_takes_no_more_of_a_batch_with_it(
    before: Callable[[Any], Any], batched: Callable[[Any], Any], shuffled: Callable[[Any], Any]
) -> None:
    def odd(x: int) -> int:
        if x % 4 == 0:
            raise ValueError(f"{x} is even")
        return x

    dataset = batched(shuffled(before(ROWS).map(odd)))
    assert _all_of(dataset, rewrite(dataset.node)[0]) == _all_of(dataset, dataset.node)
    check_rewrites(dataset)


@pytest.mark.parametrize(
    "dataset",
    [
        ROWS.map(abs).cache().shuffle(9, seed=1),  # which calls them once, in the first pass
        ROWS.filter(lambda x: x > 3).map(abs).shuffle(9, seed=1),  # whose rows wait in the buffer
        ROWS.map(abs).batch(4).shuffle(3, seed=1),
        ROWS.shuffle(9, seed=1),
    ],
)
def test_functions_stay_where_elements_are_shuffled(dataset: Any) -> None:
    assert not fires(dataset, "call_after_shuffle")
    check_rewrites(dataset)
