# SPDX-License-Identifier: Apache-2.0
"""A step that reshuffles has an order of its own at each of its places, as in TensorFlow; what all have in common stays."""

import json
import pickle
from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest

import distinput as di
from distinput.data import Dataset
from distinput.data.experimental import RandomDataset
from distinput.plan.families import differing_by_place, placed, with_drawn_seeds

N = 40
Made = Callable[[], Dataset[Any]]


def numbers(dataset: Any) -> list[Any]:
    return [tuple(map(int, x)) if isinstance(x, tuple) else int(x) for x in dataset]


def _uncounted() -> Dataset[Any]:
    return Dataset.range(N).filter(lambda x: x >= 0)


RANDOM: dict[str, Made] = {
    "shuffle": lambda: Dataset.range(N).shuffle(N),
    "shuffle with seed": lambda: Dataset.range(N).shuffle(N, seed=3),
    "small buffer": lambda: Dataset.range(N).shuffle(8, seed=3),
    "shuffle of a stream": lambda: _uncounted().shuffle(N, seed=3),
    "shuffle below": lambda: Dataset.range(N).shuffle(N, seed=3).map(lambda x: x + 1).prefetch(2),
    "global_shuffle": lambda: Dataset.range(N).global_shuffle(seed=3),
    "random": lambda: RandomDataset().take(N),
    "random anew": lambda: Dataset.random(seed=3, rerandomize_each_iteration=True).take(N),
    "sample": lambda: Dataset.sample_from_datasets([Dataset.range(20), Dataset.range(20, N)]),
    "sample anew": lambda: Dataset.sample_from_datasets(
        [Dataset.range(20), Dataset.range(20, N)], seed=3, rerandomize_each_iteration=True
    ),
    "map with rng": lambda: Dataset.range(N).map(lambda x, rng: rng.integers(1 << 30), rng=True, seed=3),
}
"""Each place has another order; the law of TensorFlow, of which tests/golden has the answers for these steps."""

FIXED: dict[str, Made] = {
    "once": lambda: Dataset.range(N).shuffle(N, reshuffle_each_iteration=False),
    "once with seed": lambda: Dataset.range(N).shuffle(N, seed=3, reshuffle_each_iteration=False),
    "global once": lambda: Dataset.range(N).global_shuffle(seed=3, reshuffle_each_iteration=False),
    "random with seed": lambda: Dataset.random(seed=3).take(N),
    "sample with seed": lambda: Dataset.sample_from_datasets([Dataset.range(20), Dataset.range(20, N)], seed=3),
    "cached": lambda: Dataset.range(N).shuffle(N, seed=3).cache(),
}
"""All places have the same order."""

WAYS: dict[str, Callable[[Dataset[Any]], tuple[list[Any], list[Any]]]] = {
    "zip": lambda ds: tuple(map(list, zip(*numbers(Dataset.zip((ds, ds))), strict=True))),  # type: ignore[arg-type,return-value]
    "zip of derived": lambda ds: tuple(  # type: ignore[return-value]
        map(list, zip(*numbers(Dataset.zip((ds.map(lambda x: x), ds.prefetch(1)))), strict=True))  # type: ignore[arg-type]
    ),
    "concatenate": lambda ds: _halves(numbers(ds.concatenate(ds))),
    "choose": lambda ds: _turns(
        numbers(Dataset.choose_from_datasets([ds, ds], Dataset.range(2 * N).map(lambda i: i % 2)))
    ),
    "flat_map": lambda ds: _halves(numbers(Dataset.range(2).flat_map(lambda e: ds))),
    "flat_map of equal elements": lambda ds: _halves(numbers(Dataset.from_tensors(0).repeat(2).flat_map(lambda e: ds))),
    "flat_map of a derived one": lambda ds: _halves(numbers(Dataset.range(2).flat_map(lambda e: ds.map(lambda x: x)))),
    "flat_map of a list": lambda ds: _halves(numbers(Dataset.range(2).flat_map(lambda e, held=[ds]: held[0]))),
    "interleave": lambda ds: _turns(numbers(Dataset.range(2).interleave(lambda e: ds, cycle_length=2))),
}


def _halves(found: list[Any]) -> tuple[list[Any], list[Any]]:
    return found[: len(found) // 2], found[len(found) // 2 :]


def _turns(found: list[Any]) -> tuple[list[Any], list[Any]]:
    return found[::2], found[1::2]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("made", RANDOM)
def test_each_place_has_its_own_order(made: str, way: str) -> None:
    first, second = WAYS[way](RANDOM[made]())
    assert first != second
    if "shuffle" in made:
        assert sorted(first) == sorted(second)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("made", FIXED)
def test_what_has_one_order_has_it_at_all_places(made: str, way: str) -> None:
    if (made, way) != ("cached", "interleave"):  # two that fill one cache at a time, as in TensorFlow
        first, second = WAYS[way](FIXED[made]())
        assert first == second


@pytest.mark.parametrize("made", RANDOM)
def test_the_first_place_has_the_order_that_it_has_alone(made: str) -> None:
    dataset = RANDOM[made]()
    for number in (0, 1):
        alone = numbers(dataset.iter_pass(number))
        assert numbers(dataset.concatenate(dataset).iter_pass(number))[:N] == alone
        assert [a for a, _ in numbers(Dataset.zip((dataset, dataset)).iter_pass(number))] == alone


def test_a_seed_makes_all_of_it_again() -> None:
    def make() -> Any:
        ds = Dataset.range(N).shuffle(N, seed=3)
        return Dataset.zip((ds, ds.concatenate(ds))), Dataset.range(3).flat_map(lambda e: ds)

    for one, other in zip(make(), make(), strict=True):
        assert [numbers(one), numbers(one)] == [numbers(other), numbers(other)]


def test_a_dataset_that_the_function_makes_has_the_order_of_its_seed() -> None:
    found = numbers(Dataset.range(3).flat_map(lambda e: Dataset.range(N).shuffle(N, seed=3)))
    assert found[:N] == found[N : 2 * N] == found[2 * N :]


PLACES: dict[str, Callable[[], Dataset[Any]]] = {
    "zip": lambda: (lambda ds: Dataset.zip((ds, ds)))(Dataset.range(N).shuffle(8, seed=3)),
    "concatenate": lambda: (lambda ds: ds.concatenate(ds).repeat(2))(_uncounted().shuffle(8, seed=3)),
    "flat_map": lambda: (lambda ds: Dataset.range(3).flat_map(lambda e: ds))(Dataset.range(N).shuffle(8, seed=3)),
    "interleave": lambda: (lambda ds: Dataset.range(4).interleave(lambda e: ds, cycle_length=2))(
        Dataset.range(N).shuffle(8, seed=3)
    ),
    "interleave in threads": lambda: (
        lambda ds: Dataset.range(4).interleave(lambda e: ds, cycle_length=2, num_parallel_calls=2)
    )(Dataset.range(N).shuffle(8, seed=3)),
    "nested": lambda: (
        lambda ds: Dataset.range(2).flat_map(lambda e: Dataset.zip((ds, ds)).concatenate(Dataset.zip((ds, ds))))
    )(Dataset.range(N).shuffle(8, seed=3)),
    "batched": lambda: (lambda ds: Dataset.zip((ds.batch(4), ds.batch(4))).unbatch())(
        Dataset.range(N).shuffle(8, seed=3)
    ),
}


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("at", [0, 1, 7, N - 1, N, N + 3])
def test_states_go_on_with_the_same_orders(name: str, at: int) -> None:
    it = iter(PLACES[name]())
    list(islice(it, at))
    state = json.loads(json.dumps(it.state()))
    assert numbers(PLACES[name]().restore(state)) == numbers(it)


@pytest.mark.parametrize("name", PLACES)
def test_other_ways_to_the_elements_give_the_same(name: str) -> None:
    found = numbers(PLACES[name]())
    assert (
        numbers(
            pickle.loads(pickle.dumps(PLACES[name](), protocol=5)) if name in ("zip", "batched") else PLACES[name]()
        )
        == found
    )
    if name == "zip":
        assert numbers(PLACES[name]()[list(range(N))]) == found
    sharded = [numbers(PLACES[name]().shard(2, i)) for i in range(2)]
    assert [sharded[i % 2][i // 2] for i in range(len(found))] == found


def test_seedless_steps_restart_in_a_new_process() -> None:
    def make() -> Any:
        ds = Dataset.range(N).shuffle(N)
        return Dataset.zip((ds, ds))

    it = iter(make())
    first = next(it)
    assert [tuple(map(int, first)), *numbers(make().restore(it.state()))][1:] == numbers(it)


def test_states_of_before_go_on_in_their_order() -> None:
    """A state of a release in which all places had one order says so by its seeds."""
    ds = Dataset.range(N).shuffle(N, seed=3)
    both = Dataset.zip((ds, ds))
    it = iter(both)
    next(it)
    state = it.place()
    marks = state["at"]["inputs"]
    marks[1] = marks[0]
    running = both._runs()
    from distinput.run.run import Run

    with Run() as run:
        rest = [element for block, _ in running.node.open(state["at"], run) for element in block.elements()]
    assert [int(a) for a, _ in rest][1:] == [int(b) for _, b in rest][1:]


def test_copies_of_a_step_are_the_step() -> None:
    ds = Dataset.range(N).shuffle(N)
    node = Dataset.zip((ds, ds)).node
    copied = with_drawn_seeds(node, [5])
    assert [step.place for step in differing_by_place(placed(copied))] == [0, 1]
    assert placed(placed(node)) is not node
    assert [step.place for step in differing_by_place(placed(placed(node)))] == [0, 1]
    assert placed(ds.node) is ds.node


def test_records_are_those_of_the_place(tmp_path: Any) -> None:
    path = str(tmp_path / "n.txt")
    with open(path, "w") as file:
        file.write("".join(f"{i}\n" for i in range(N)))
    ds = di.data.TextLineDataset(path).shuffle(N, seed=3).map(int)
    pairs = Dataset.zip((ds, ds))
    assert sorted(int(b) for _, b in pairs) == list(range(N))


def test_a_part_of_a_tree_keeps_its_places() -> None:
    ds = Dataset.range(9).shuffle(9, seed=1)
    whole = placed(ds.concatenate(ds).concatenate(ds).node)
    assert [step.place for step in differing_by_place(placed(whole))] == [0, 1, 2]
    behind = Dataset.zip((Dataset(differing_by_place(whole)[2]), Dataset(differing_by_place(whole)[0]))).node
    assert [step.place for step in differing_by_place(placed(behind))] == [2, 0]
