# SPDX-License-Identifier: Apache-2.0
"""`Loader`, mostly without loader workers; more of them are in test_recipes.py."""

import json
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

import distinput as di  # noqa: E402 - needs PyTorch
from distinput.interop.torch import IterableView, Loader  # noqa: E402

Dataset = di.data.Dataset
SHUFFLED = Dataset.range(10).shuffle(10, seed=1).batch(3)


def rows(steps: Any) -> list[list[int]]:
    return [step.tolist() for step in steps]


def test_it_counts_passes_and_steps() -> None:
    loader = Loader(SHUFFLED)
    assert (loader.epoch, len(loader)) == (0, 4)
    first = rows(loader)
    assert sorted(row for step in first for row in step) == list(range(10))
    assert loader.epoch == 1
    steps = iter(loader)
    second = [next(steps).tolist() for _ in range(3)]
    assert loader.epoch == 1
    second += rows(steps)
    assert loader.epoch == 2
    assert second != first
    loader.set_epoch(0)
    assert rows(loader) == first


def test_every_step_restores_on_another_number_of_ranks() -> None:
    loader = Loader(SHUFFLED, rank=1, world_size=2, tail="partial")
    whole = [rows(SHUFFLED.iter_pass(epoch)) for epoch in range(3)]
    states = [json.loads(json.dumps(loader.state_dict()))]
    for _ in range(2):
        states += [json.loads(json.dumps(loader.state_dict())) for _step in loader]
    for taken, state in enumerate(states):
        again = Loader(SHUFFLED, rank=0, world_size=1)
        again.load_state_dict(state)
        epoch, at = divmod(taken, 4)
        assert again.epoch == epoch
        assert [again.state_dict()[key] for key in ("epoch", "step")] == [epoch, at]
        assert rows(again) == whole[epoch][at:]
        assert again.epoch == epoch + 1


def test_steps_that_cannot_be_counted_restore_too() -> None:
    dataset = SHUFFLED.unbatch().filter(lambda x: x >= 0).batch(3)
    loader = Loader(dataset)
    whole = rows(dataset.iter_pass(0))
    for taken, _ in enumerate(loader, 1):
        again = Loader(dataset)
        again.load_state_dict(loader.state_dict())
        assert rows(again) == whole[taken:]


@pytest.mark.parametrize("option", ["batch_size", "sampler", "shuffle", "collate_fn"])
def test_what_the_dataset_does_is_refused(option: str) -> None:
    with pytest.raises(TypeError, match=f"Loader: {option} is not an option here"):
        Loader(SHUFFLED, **{option: 1})


def test_options_that_ask_for_nothing_are_taken() -> None:
    """Frameworks make a loader again from its attributes and DataLoader's defaults."""
    idle = {"batch_size": None, "shuffle": False, "sampler": None, "batch_sampler": None, "drop_last": False}
    given = Loader(SHUFFLED, **idle, in_order=True)
    again = Loader(dataset=given.view, collate_fn=given.collate_fn, **idle)
    assert rows(again) == rows(Loader(SHUFFLED))


@pytest.mark.parametrize("workers", [0, 2])
def test_steps_out_of_order_are_refused(workers: int) -> None:
    with pytest.raises(TypeError, match=r"Loader: in_order=False would deliver steps in the order.*num_parallel_calls"):
        Loader(SHUFFLED, num_workers=workers, in_order=False)


def test_a_view_has_a_rank_of_its_own() -> None:
    with pytest.raises(TypeError, match="those of the view"):
        Loader(IterableView(SHUFFLED, 0, 2), rank=1)
    with pytest.raises(TypeError, match="those of the view"):
        Loader(IterableView(SHUFFLED, 0, 2), tail="pad")
    assert rows(Loader(IterableView(SHUFFLED, 0, 2))) == rows(Loader(SHUFFLED, 0, 2))


def test_the_length_of_its_dataset_is_the_number_of_records() -> None:
    """As in PyTorch's own loops, which divide by it."""
    for rank in range(2):
        loader = Loader(SHUFFLED, rank, 2)
        assert (len(loader), len(loader.dataset), len(loader.view)) == (4, 10, 4)
    assert len(Loader(SHUFFLED, tail="drop").dataset) == 9
    assert len(Loader(Dataset.range(5)).dataset) == 5
    assert len(Loader(loader.dataset)) == 4
    with pytest.raises(TypeError, match="the number of records is not known before they are read"):
        len(Loader(Dataset.range(5).filter(lambda x: x > 2).batch(2)).dataset)
    with pytest.raises(TypeError, match="the number of records is infinite"):
        len(Loader(Dataset.range(5).batch(2).repeat()).dataset)


def test_steps_that_a_worker_cannot_send_are_refused() -> None:
    Pair = namedtuple("Pair", "a b")  # noqa: PYI024 - of a function, so that no other process finds it
    ds = di.data.Dataset.range(4).map(lambda i: Pair(i, i)).batch(2)
    assert [step.a.tolist() for step in Loader(ds)] == [[0, 1], [2, 3]]
    with pytest.raises(TypeError, match=r"loader workers send steps by pickle, and these cannot be sent: .*Pair"):
        list(Loader(ds, num_workers=1))


def test_the_state_is_that_of_the_loader_alone() -> None:
    """Composer asks `loader.dataset`, with numbers of its own, wherever there is a method of that name."""
    loader = Loader(SHUFFLED)
    assert not hasattr(loader.dataset, "state_dict")
    assert not hasattr(loader.dataset, "load_state_dict")
    again = Loader(loader.dataset)  # as frameworks make a copy
    next(iter(loader))
    again.load_state_dict(loader.state_dict())
    assert rows(again) == rows(SHUFFLED.iter_pass(0))[1:]
    steps = iter(again)
    next(steps)
    assert again.state_dict()["step"] == 1


def but_two(number: Any) -> Any:
    if number == 2:
        raise ValueError("two")
    return number


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_a_step_that_failed_is_behind_the_state(workers: int) -> None:
    """A loop that goes on after an error takes no record twice after a restart."""
    dataset = Dataset.range(6).map(but_two).batch(1)
    loader = Loader(dataset, num_workers=workers)
    steps = iter(loader)
    assert [next(steps).tolist() for _ in range(2)] == [[0], [1]]
    with pytest.raises(ValueError, match="two"):
        next(steps)
    states = [loader.state_dict()]
    assert next(steps).tolist() == [3]
    states.append(loader.state_dict())
    for state, rest in zip(states, ([[3], [4], [5]], [[4], [5]]), strict=True):
        again = Loader(dataset)
        again.load_state_dict(state)
        assert rows(again) == rest


def _kept() -> Dataset[Any]:
    """Eight records of a hundred, which the first pass chooses."""
    return Dataset.range(100).shuffle(100, seed=1).take(8).cache().batch(2)


@pytest.mark.parametrize("persistent", [False, True])
def test_a_cache_keeps_the_first_pass_though_workers_end_with_theirs(persistent: bool) -> None:
    first = [batch.tolist() for batch in _kept()]
    loader = Loader(_kept(), num_workers=1, persistent_workers=persistent)
    assert [[step.tolist() for step in loader] for _ in range(2)] == [first, first]


@pytest.mark.parametrize("passes", [0, 1])
@pytest.mark.parametrize("taken", [0, 2])
@pytest.mark.parametrize("workers", [(1, 0), (0, 1), (1, 1)])
def test_a_cache_keeps_the_first_pass_over_restarts(workers: tuple[int, int], taken: int, passes: int) -> None:
    first = [batch.tolist() for batch in _kept()]
    loader = Loader(_kept(), num_workers=workers[0])
    for _ in range(passes):
        list(loader)
    steps = iter(loader)
    begun = [next(steps).tolist() for _ in range(taken)]
    again = Loader(_kept(), num_workers=workers[1])
    again.load_state_dict(loader.state_dict())
    assert begun + [step.tolist() for step in again] == first
    if passes + taken:
        assert [step.tolist() for step in again] == first


def test_a_cache_keeps_the_first_pass_behind_steps_that_draw_seeds() -> None:
    def made() -> Dataset[Any]:
        return Dataset.range(9).flat_map(lambda n: Dataset.range(n, n + 9)).shuffle(99, seed=1).take(8).cache().batch(2)

    first = rows(made())
    loader = Loader(made())
    assert rows(loader) == first
    steps = iter(loader)
    begun = [next(steps).tolist()]
    again = Loader(made())
    again.load_state_dict(loader.state_dict())
    assert [begun + rows(again), rows(again)] == [first, first]


_ABOVE: dict[str, Callable[[Dataset[Any]], Dataset[Any]]] = {
    "itself": lambda ds: ds,
    "repeat": lambda ds: ds.repeat(2),
    "repeat of a repeat": lambda ds: ds.repeat(2).take(7).repeat(2),
    "sample": lambda ds: Dataset.sample_from_datasets(
        [ds, ds.map(lambda x: x)], [0.5, 0.5], balanced=True, on_end="repeat"
    ).take(9),
}


@pytest.mark.parametrize("above", _ABOVE)
def test_a_cache_below_a_repeat_has_the_order_of_the_same_pass_in_workers(above: str) -> None:
    def made(workers: int) -> list[Any]:
        view = IterableView(_ABOVE[above](Dataset.range(6).shuffle(6, seed=1).cache()))
        view.set_epoch(3)
        loader = torch.utils.data.DataLoader(view, batch_size=None, num_workers=workers)
        return [[int(step) for step in loader] for _ in range(2)]

    assert made(1) == made(0)


def _plain(dataset: Dataset[Any], workers: int) -> Any:
    return torch.utils.data.DataLoader(IterableView(dataset), batch_size=None, num_workers=workers)


def _stateful(dataset: Dataset[Any], workers: int) -> Any:
    module = pytest.importorskip("torchdata.stateful_dataloader")
    return module.StatefulDataLoader(IterableView(dataset), batch_size=None, num_workers=workers)


def _loader(dataset: Dataset[Any], workers: int) -> Any:
    return Loader(dataset, num_workers=workers)


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
@pytest.mark.parametrize("made", [_plain, _stateful])
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_cache_keeps_the_first_pass_whatever_starts_the_workers(made: Any, method: str) -> None:
    first = [batch.tolist() for batch in _kept()]
    loader = made(_kept(), 1)
    loader.multiprocessing_context = method
    assert [rows(loader) for _ in range(2)] == [first, first]


def test_a_view_whose_caches_workers_fill_tells_which_pass_they_keep() -> None:
    view = IterableView(_kept())
    loader = torch.utils.data.DataLoader(view, batch_size=None, num_workers=1)
    first, _ = rows(loader), rows(loader)
    again = IterableView(_kept())
    again.load_state_dict(view.state_dict(steps=1))
    assert again.position == (1, 1)
    assert [rows(again), rows(again)] == [first[1:], first]


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize("made", [_stateful, _loader])
def test_passes_behind_a_restart_have_the_drawn_seeds_of_before(made: Any, workers: int) -> None:
    def shuffled() -> Dataset[Any]:
        return Dataset.range(12).shuffle(12).batch(3)

    loader = made(shuffled(), workers)
    steps = iter(loader)
    next(steps)
    state = loader.state_dict()
    wanted = [rows(steps), rows(loader), rows(loader)]
    again = made(shuffled(), workers)
    again.load_state_dict(state)
    assert [rows(again) for _ in range(3)] == wanted


def test_a_state_after_a_restart_has_the_drawn_seeds_of_the_workers() -> None:
    loaders = [Loader(Dataset.range(12).shuffle(12).batch(3), num_workers=1) for _ in range(3)]
    steps = iter(loaders[0])
    next(steps)
    state = loaders[0].state_dict()
    wanted = rows(steps)
    for loader in loaders[1:]:
        loader.load_state_dict(state)
        steps = iter(loader)
        assert next(steps).tolist() == wanted.pop(0)
        state = loader.state_dict()
    assert rows(steps) == wanted
