# SPDX-License-Identifier: Apache-2.0
"""What is built from a pipeline keeps the pipeline's spec: no function of the user is called to find it out again."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.plan.families import with_drawn_seeds, with_seed
from distinput.plan.node import walk
from distinput.plan.options import AutoShardPolicy
from distinput.rewrite import RULES, rewrite
from distinput.sharding.own_rows import with_common_order
from tests.distribute.workers import on_workers

Dataset: Any = di.data.Dataset
WORDS = ["a", "b", "c", "d"]
NUMBERS = {b"a": 1, b"b": 2, b"c": 3, b"d": 4}


class Counted:
    """A function, and how often it was called."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.calls = function, 0

    def __call__(self, *given: Any) -> Any:
        self.calls += 1
        return self.function(*given)


def numbered(word: bytes) -> int:
    return NUMBERS[word]


def words() -> Any:
    return Dataset.from_tensor_slices(WORDS)


def up_to(x: Any) -> Any:
    return Dataset.range(x)


PIPELINES: dict[str, Callable[[Any], Any]] = {
    # of a function that is called for each word
    "map": lambda f: words().map(f),
    "map of map": lambda f: words().map(f).map(lambda x: x + 1).map(lambda x: x * 2),
    "map and batch": lambda f: words().map(f).shuffle(2).batch(2),
    "map and unbatch": lambda f: words().map(f).batch(2).unbatch().shuffle(3).batch(2),
    "take of take": lambda f: words().take(4).take(3).skip(0).map(f).take(-1).shuffle(1),
    "skip before take": lambda f: words().map(f).take(3).skip(1).shuffle(3, seed=1),
    "nothing": lambda f: words().map(f).take(0).shuffle(3),
    "zip": lambda f: Dataset.zip(words().map(f), Dataset.range(4)).enumerate().batch(2),
    "prefetch": lambda f: words().map(f).prefetch(2).prefetch(3).batch(2),
    "shard": lambda f: words().map(f).shard(1, 0).repeat(2).shuffle(5),
    "map rows": lambda f: (
        words().map_rows(lambda x: np.array([f(word) for word in x.tolist()])).map_rows(lambda x: x + 1)
    ),
    "scan": lambda f: words().shuffle(2).scan(np.int64(0), lambda s, x: (s, f(x))).take(3).take(2),
    "flat_map": lambda f: (
        words().take(3).take(2).flat_map(lambda x: Dataset.range(f(x)).shuffle(2)).shuffle(3).batch(2)
    ),
    "interleave": lambda f: words().shuffle(2).interleave(lambda x: up_to(f(x))).batch(2),
    "group_by_window": lambda f: (
        words().group_by_window(lambda x: np.int64(f(x) % 2), lambda k, g: g.batch(2), 2).take(3)
    ),
    "padded": lambda f: words().map(lambda x: np.zeros(f(x))).padded_batch(2),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_the_spec_of_a_tree_that_is_built_is_that_of_the_pipeline(name: str) -> None:
    function = Counted(numbered)
    node = PIPELINES[name](function).node
    spec, asked = node.spec, function.calls
    for rule in RULES:
        assert rewrite(node, (rule,))[0].spec == spec
    running, _ = rewrite(node)
    other = rewrite(with_drawn_seeds(running, [1] * 9))[0]
    for tree in (running, other, with_seed(node, 3), with_common_order(node)):
        assert vars(tree)["spec"] == spec  # kept, and not found out again
        for step in walk(tree):
            _ = step.spec
    assert function.calls == asked


def test_files_are_not_opened_again_for_the_spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.save(tmp_path / "a.npy", np.zeros((6, 2)))
    node = di.data.NpyDataset(str(tmp_path / "a.npy")).shuffle(3, seed=1).batch(2).take(5).take(2).prefetch(1).node
    spec = node.spec
    monkeypatch.setattr(type(node.inputs[0].inputs[0].inputs[0].inputs[0]), "spec", property(lambda _: 1 / 0))
    assert rewrite(node)[0].spec == with_drawn_seeds(node, []).spec == spec


@pytest.mark.parametrize("name", [name for name in PIPELINES if name != "nothing"])
def test_elements_are_all_that_a_function_is_called_for(name: str) -> None:
    function = Counted(numbered)
    dataset = PIPELINES[name](function)
    _ = dataset.element_spec
    asked = function.calls
    plain = PIPELINES[name](other := Counted(numbered))
    _ = plain.element_spec
    before = other.calls
    iterator = iter(plain)
    list(iterator)
    for_elements = other.calls - before
    _ = dataset.options(), dataset.cardinality(), dataset.element_spec, repr(dataset), dataset.explain()
    iterator = iter(dataset)
    state = iterator.state()
    assert function.calls == asked
    list(iterator)
    assert function.calls == asked + for_elements
    restored = dataset.restore(state)
    assert function.calls == asked + for_elements
    list(restored)
    assert function.calls == asked + 2 * for_elements


def test_a_function_that_fails_on_what_is_made_up_need_not_be_called_for_no_element() -> None:
    dataset = words().map(lambda word: {b"a": 1, b"b": 2, b"c": 3, b"d": 4}[word]).take(0).shuffle(3)
    assert list(dataset) == []
    assert dataset.element_spec == di.TensorSpec([], "int32")
    assert list(dataset) == []
    assert list(dataset.restore(iter(dataset).state())) == []


def test_a_dataset_function_is_called_once_when_it_is_added() -> None:
    function = Counted(up_to)
    dataset = Dataset.range(4).flat_map(function, name="labelled").take(3)
    assert function.calls == 1
    for change in (
        lambda node: with_seed(node, 3),
        lambda node: with_drawn_seeds(node, [5]),
        lambda node: rewrite(node)[0],
    ):
        change(dataset.node)
    assert function.calls == 1


@pytest.mark.parametrize("policy", ["AUTO", "DATA", "OFF"])
def test_shards_and_workers_call_functions_for_their_elements_alone(policy: str) -> None:
    options = di.data.Options()
    options.experimental_distribute.auto_shard_policy = AutoShardPolicy[policy]
    counted = [Counted(lambda x: x + 1) for _ in range(2)]

    def described(function: Counted) -> Any:
        made = Dataset.range(8).map(function).shuffle(3, seed=1).batch(4).prefetch(1).with_options(options)
        _ = made.element_spec
        return made

    datasets = [described(function) for function in counted]
    asked = [function.calls for function in counted]
    for index in range(2):
        shard = di.data.experimental.auto_shard_dataset(datasets[0], 2, index)
        assert shard.element_spec == datasets[0].element_spec

    def body(strategy: Any, worker: int) -> None:
        distributed = strategy.experimental_distribute_dataset(datasets[worker])
        _ = distributed.element_spec
        distributed.explain()
        assert counted[worker].calls == asked[worker]
        iterator = iter(distributed)
        state = iterator.state()
        list(iterator)
        assert asked[worker] < counted[worker].calls <= asked[worker] + 8
        before = counted[worker].calls
        distributed.restore(state).close()
        assert counted[worker].calls == before

    for result in on_workers([1, 1], body):
        if isinstance(result, Exception):
            raise result
