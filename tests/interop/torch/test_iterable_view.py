# SPDX-License-Identifier: Apache-2.0
"""`IterableView`: every record once over ranks and loader workers, equal steps, exact restarts; loader workers are simulated.

tests/interop/torch/test_loader.py runs real ones.
"""

import json
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader

import distinput as di
from distinput.errors import FailedPreconditionError, InputWarning, InvalidArgumentError, StateError
from distinput.interop.torch import IterableView
from distinput.interop.torch.readers import Ranks
from tests.interop.torch.simulated import as_worker, loaded, worker_iterators

Dataset = di.data.Dataset
pytestmark = pytest.mark.filterwarnings("ignore:each of the .* workers of this DataLoader reads everything")


def not_third(x: Any) -> bool:
    return bool(x % 3 != 0)


def one_more(x: Any) -> Any:
    return x + 1


PIPELINES: dict[str, Callable[[int, int], Any]] = {
    "in order": lambda n, size: Dataset.range(n).batch(size),
    "shuffled": lambda n, size: Dataset.range(n).shuffle(7, seed=1).map(one_more).batch(size),
    "globally shuffled": lambda n, size: Dataset.range(n).global_shuffle(seed=2).batch(size).prefetch(2),
    "without the last": lambda n, size: Dataset.range(n).batch(size, drop_remainder=True),
    "not counted": lambda n, size: Dataset.range(n).shuffle(5, seed=1).filter(not_third).batch(size),
    "functions of batches": lambda n, size: Dataset.range(n).batch(size).map(one_more),
    "repeated": lambda n, size: Dataset.range(n).shuffle(3, seed=1).batch(size).repeat(2).take(7),
}

cases = st.tuples(
    st.sampled_from(sorted(PIPELINES)), st.integers(0, 30), st.integers(1, 7), st.integers(1, 4), st.integers(0, 3)
)


def rows(steps: Any) -> list[list[int]]:
    return [step.tolist() for step in steps]


def joined(ranks: list[list[list[int]]]) -> list[list[int]]:
    """The global batches: the rows of all ranks, step by step."""
    assert len({len(steps) for steps in ranks}) == 1, "the ranks have different numbers of steps"
    return [[row for part in parts for row in part] for parts in zip(*ranks, strict=True)]


@given(cases)
def test_ranks_and_workers_have_the_rows_of_every_batch_once_in_equally_many_steps(case: Any) -> None:
    name, n, size, ranks, workers = case
    dataset = PIPELINES[name](n, size)
    views = [IterableView(PIPELINES[name](n, size), rank, ranks, tail="partial") for rank in range(ranks)]
    for epoch in range(3):  # of equal number on all ranks, though PyTorch draws other numbers on each
        found = [rows(loaded(view, workers, 97 * rank + epoch)) for rank, view in enumerate(views)]
        assert joined(found) == rows(dataset)
    try:
        assert len(views[0]) == len(found[0])
    except TypeError:
        assert name == "not counted"


@given(cases, st.integers(1, 4), st.integers(0, 3), st.data())
def test_a_state_resumes_on_other_numbers_of_ranks_and_workers(
    case: Any, new_ranks: int, new_workers: int, data: st.DataObject
) -> None:
    name, n, size, ranks, workers = case
    batches = [rows(PIPELINES[name](n, size).iter_pass(epoch)) for epoch in range(3)]
    at = data.draw(st.integers(0, len(batches[1])))
    view = IterableView(PIPELINES[name](n, size), 0, ranks, tail="partial")
    assert len(list(loaded(view, workers, 1))) == len(batches[0])
    if workers:
        states = worker_states(view, workers, at)
        state = {"_snapshot": {"_worker_snapshots": states}, "_steps_since_snapshot": 0}
    else:
        iterator = iter(view)
        for _ in range(at):
            next(iterator)
        state = view.state_dict()
    views = [IterableView(PIPELINES[name](n, size), rank, new_ranks, tail="partial") for rank in range(new_ranks)]
    for later in views:
        later.load_state_dict(json.loads(json.dumps(state)))
    for rest in (batches[1][at:], batches[2]):
        assert joined([rows(loaded(v, new_workers, len(rest) + 31 * rank)) for rank, v in enumerate(views)]) == rest


def worker_states(view: IterableView, workers: int, at: int) -> dict[str, Any]:
    """What a StatefulDataLoader saves of its workers after `at` steps of a pass."""
    iterators = [iterator for _, iterator in worker_iterators(view, workers, 2)]
    for step in range(at):
        next(iterators[step % workers])
    return {f"worker_{k}": {"fetcher_state": {"dataset_iter_state": i.state_dict()}} for k, i in enumerate(iterators)}


@given(cases, st.data())
def test_each_worker_continues_from_its_own_state(case: Any, data: st.DataObject) -> None:
    """As torchdata's StatefulDataLoader restores them: first the view in the worker, then its iterator."""
    name, n, size, ranks, workers = case
    whole = rows(loaded(IterableView(PIPELINES[name](n, size), 0, ranks, tail="partial"), workers))
    at = data.draw(st.integers(0, len(whole)))
    pairs = worker_iterators(IterableView(PIPELINES[name](n, size), 0, ranks, tail="partial"), workers)
    for step in range(at):
        next(pairs[step % len(pairs)][1])
    states = []
    for number, (mine, iterator) in enumerate(pairs):
        with as_worker(number, workers, 0):
            states.append(json.loads(json.dumps([mine.state_dict(), iterator.state_dict()])))
    again = IterableView(PIPELINES[name](n, size), 0, ranks, tail="partial")
    iterators = [iterator for _, iterator in worker_iterators(again, workers, 5, states)]
    left = [next(iterators[step % len(iterators)]).tolist() for step in range(at, len(whole))]
    assert left == whole[at:]
    assert all(next(iterator, None) is None for iterator in iterators)
    assert again.position == (1, 0)


def test_every_step_of_an_uneven_dataset_restores_exactly() -> None:
    dataset = Dataset.range(11).shuffle(11, seed=3).batch(4)
    view = IterableView(dataset, 1, 2)
    iterator, found, states = iter(view), [], []
    while True:
        states.append(json.loads(json.dumps(view.state_dict())))
        step = next(iterator, None)
        if step is None:
            break
        found.append(step.tolist())
    assert len(found) == 3
    for at, state in enumerate(states[:-1]):
        again = IterableView(dataset, 1, 2)
        again.load_state_dict(state)
        assert again.state_dict() == state
        assert rows(again) == found[at:]
    assert len(json.dumps(states[1])) < 1000


def test_a_pass_that_has_ended_is_followed_by_the_next_one() -> None:
    dataset = Dataset.range(8).shuffle(8, seed=1).batch(3)
    view = IterableView(dataset, 0, 1)
    first, state = rows(view), view.state_dict()
    again = IterableView(dataset, 0, 1)
    again.load_state_dict(state)
    assert rows(again) == rows(view) != first


def test_epochs_have_other_orders_and_set_epoch_chooses_one() -> None:
    view = IterableView(Dataset.range(12).shuffle(12, seed=1).batch(4), 0, 1)
    epochs = [rows(view) for _ in range(3)]
    assert len({json.dumps(epoch) for epoch in epochs}) == 3
    view.set_epoch(1)
    assert [rows(view), rows(view)] == epochs[1:]
    view.set_epoch(0)
    assert rows(loaded(view, 2)) == epochs[0]
    assert rows(loaded(view, 3)) == epochs[1], "a number that PyTorch drew before is that of another pass now"
    with pytest.raises(InvalidArgumentError, match="set_epoch: epoch must be at least 0"):
        view.set_epoch(-1)
    with pytest.raises(InvalidArgumentError, match="a pass must be from 0 to 16777215"):
        view.set_epoch(1 << 24)


def test_a_state_said_by_its_steps_is_that_of_those_who_count() -> None:
    view = IterableView(Dataset.range(20).shuffle(20, seed=1).batch(3), 0, 2)
    with pytest.raises(TypeError, match="integer"):
        view.state_dict(steps=1.5)  # type: ignore[arg-type]
    found = rows(loaded(view, 2))
    with pytest.raises(FailedPreconditionError, match=r"only the loop knows .* view.state_dict\(steps=17\)"):
        view.state_dict()
    again = IterableView(view._dataset, 0, 2)
    again.load_state_dict(view.state_dict(steps=4))
    assert rows(again) == found[4:]


def test_a_state_loaded_after_workers_that_persist_were_started_is_refused() -> None:
    view = IterableView(Dataset.range(20).batch(3), 0, 1)
    state = view.state_dict()
    (mine, _), _ = worker_iterators(view, 2)
    view.load_state_dict(state)
    with as_worker(0, 2, 7), pytest.raises(StateError, match="after persistent loader workers had been started"):
        iter(mine)


def test_the_state_of_one_worker_is_not_that_of_the_view() -> None:
    view = IterableView(Dataset.range(20).batch(3), 0, 1)
    state = worker_iterators(view, 2)[0][1].state_dict()
    with pytest.raises(StateError, match="state of one of 2 loader workers"):
        view.load_state_dict(state)
    with pytest.raises(StateError, match="state of one of 2 loader workers, and there are 3 here"):
        worker_iterators(view, 3, 1, [(state, state)] * 3)[0][1].state_dict()


@pytest.mark.parametrize(
    "state, says",
    [
        (7, "expected a state"),
        ({"_snapshot": {}}, "lacks those of its workers"),
        ({"_snapshot": None, "fetcher_state": {}}, "holds no state of a view"),
        (iter(Dataset.range(3)).state(), "not a state of a view of steps.* restore it with Dataset.restore"),
    ],
)
def test_what_is_no_state_of_a_view_is_refused(state: Any, says: str) -> None:
    with pytest.raises(StateError, match=says):
        IterableView(Dataset.range(20).batch(3), 0, 1).load_state_dict(state)


def test_a_state_of_another_pipeline_is_refused() -> None:
    view = IterableView(Dataset.range(20).batch(4), 0, 1)
    view.load_state_dict(IterableView(Dataset.range(20).batch(3), 0, 1).state_dict())
    with pytest.raises(StateError, match=r"batch.* has other arguments"):
        next(iter(view))


def test_a_state_that_was_changed_is_refused() -> None:
    state = IterableView(Dataset.range(20).batch(3), 0, 1).state_dict()
    with pytest.raises(StateError, match="not as it was saved"):
        IterableView(Dataset.range(20).batch(3), 0, 1).load_state_dict({**state, "step": 1})


@pytest.mark.parametrize(
    "dataset, says",
    [
        (Dataset.range(8), r"2 ranks share the rows of every batch.* call .batch\(global_batch_size\)"),
        (Dataset.range(8).shuffle(8).batch(2), r"was given no seed.* \(seed=1\)"),
        (Dataset.range(8).batch(2).shard_batches(2, 0), "sharded already, by shard_batches"),
        (Dataset.range(8).shard(2, 0).batch(2), r"sharded already, by shard\(num_shards=2, index=0\), made at .*test_"),
    ],
)
def test_what_ranks_cannot_share_is_refused(dataset: Any, says: str) -> None:
    view = IterableView(dataset, 0, 2)
    with pytest.raises(InvalidArgumentError, match=says):
        iter(view)
    assert len(rows(IterableView(dataset, 0, 1))) == len(dataset)


def test_every_tenth_row_may_be_kept_for_validation() -> None:
    assert rows(IterableView(Dataset.range(40).shard(10, 3).batch(4), 0, 2)) == [[3, 13]]


def counted_up(n: Any) -> Any:
    return np.arange(n)


@pytest.mark.parametrize("workers", [0, 2])
def test_ragged_batches_are_divided_by_rows(workers: int) -> None:
    lists = Dataset.range(7).map(counted_up, output_signature=di.TensorSpec([None], "int64"))
    views = [IterableView(lists.ragged_batch(3), rank, 2, tail="partial") for rank in range(2)]
    found = [[[row.tolist() for row in step.unbind()] for step in loaded(view, workers)] for view in views]
    assert joined(found) == [[list(range(n)) for n in batch] for batch in ([0, 1, 2], [3, 4, 5], [6])]


def test_what_is_no_dataset_is_refused() -> None:
    steps = di.distribute.MirroredStrategy(["CPU:0"]).experimental_distribute_dataset(Dataset.range(4).batch(2))
    for value in ([1, 2], steps):
        with pytest.raises(TypeError, match=r"expected a distinput Dataset, got (list|DistributedDataset)"):
            IterableView(value)  # type: ignore[arg-type]


def test_elements_without_a_batch_axis_are_for_one_rank() -> None:
    for workers in (0, 2):
        assert [int(x) for x in loaded(IterableView(Dataset.range(5), 0, 1), workers)] == [0, 1, 2, 3, 4]


def test_len_is_unknown_or_infinite_as_it_is_for_the_dataset() -> None:
    with pytest.raises(TypeError, match="infinite"):
        len(IterableView(Dataset.range(3).batch(2).repeat()))
    with pytest.raises(TypeError, match="not known before they are read"):
        len(IterableView(Dataset.range(3).filter(not_third).batch(2)))


def test_a_dataloader_that_batches_again_is_refused() -> None:
    view = IterableView(Dataset.range(8).batch(2), 0, 1)
    with pytest.raises(InvalidArgumentError, match="give it batch_size=None"):
        next(iter(DataLoader(view)))
    assert next(iter(DataLoader(IterableView(Dataset.range(8), 0, 1), batch_size=3))).tolist() == [0, 1, 2]
    lists = Dataset.from_tensor_slices(np.zeros((8, 2)))
    with pytest.raises(InvalidArgumentError, match="give it batch_size=None"):  # their features would be divided
        next(iter(DataLoader(IterableView(lists, 0, 2), batch_size=3)))


def test_a_sampler_is_refused_by_the_dataloader() -> None:
    view = IterableView(Dataset.range(8).batch(2), 0, 1)
    with pytest.raises(ValueError, match="IterableDataset: expected unspecified sampler"):
        DataLoader(view, batch_size=None, sampler=torch.utils.data.DistributedSampler(view, 2, 0))


def test_workers_that_read_everything_are_warned_of() -> None:
    view = IterableView(Dataset.range(8).filter(not_third).batch(2), 0, 1)
    with pytest.warns(InputWarning, match=r"each of the 2 workers .* reads everything.*num_workers=1"):
        worker_iterators(view, 2)


def test_explain_says_what_is_read() -> None:
    counted = IterableView(Dataset.range(8).batch(2), 1, 2).explain()
    assert counted.splitlines() == [
        "rank:   1 of 2",
        "steps:  4 on every rank",
        "reads:  only this rank's rows; each loader worker only its own steps",
    ]
    assert (
        "everything; every loader worker the same again"
        in IterableView(Dataset.range(8).filter(not_third).batch(2), 0, 2).explain()
    )


def picky(x: Any) -> Any:
    if x == 4:
        raise ValueError("four")
    return x


def test_an_error_takes_the_place_of_one_step() -> None:
    iterator, found = iter(IterableView(Dataset.range(9).map(picky).batch(2), 0, 1)), []
    for _ in range(5):
        try:
            found.append(next(iterator).tolist())
        except ValueError as error:
            found.append(str(error))
    assert found == [[0, 1], [2, 3], "four", [6, 7], [8]]


@pytest.mark.parametrize("counted", [True, False])
def test_an_error_is_raised_by_the_worker_whose_step_it_is(counted: bool) -> None:
    dataset = Dataset.range(9).map(picky)
    dataset = dataset if counted else dataset.filter(lambda x: x >= 0)
    pairs = worker_iterators(IterableView(dataset.batch(2), 0, 1), 2)
    first, second = (iterator for _, iterator in pairs)
    assert next(first).tolist() == [0, 1]
    with pytest.raises(ValueError, match="four"):
        next(first)
    assert next(second).tolist() == [2, 3]
    assert len(next(second)) == 2


class _MultiProcessingDataLoaderIter:
    """Copies a view as PyTorch's does for the workers that it spawns."""

    def __init__(self, view: IterableView) -> None:
        self.state = view.__getstate__()


def test_only_a_loader_worker_is_told_the_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rank that a program spawns finds out its own; there, a rank of the process that made the view would be wrong."""
    view = IterableView(Dataset.range(8).batch(4))
    monkeypatch.setattr(Ranks, "found", lambda self: (3, 4))
    assert _MultiProcessingDataLoaderIter(view).state["_ranks"] == Ranks(3, 4)
    assert view.__getstate__()["_ranks"] == Ranks()


def test_a_view_is_sent_to_another_process_with_its_epoch() -> None:
    view = IterableView(Dataset.range(12).shuffle(12, seed=1).batch(4), 0, 1)
    first = rows(view)
    again = pickle.loads(pickle.dumps(view))
    assert rows(again) == rows(view) != first


def test_pinned_memory_is_left_to_the_dataloader(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no GPU here, so pinning is played; DataLoader finds the tensors in the nest, and passes text on."""
    monkeypatch.setattr(torch.utils.data._utils.pin_memory.torch.Tensor, "pin_memory", lambda self, *_: self + 100)
    dataset = Dataset.from_tensor_slices({"x": np.arange(4), "name": list("abcd")}).batch(2)
    step = next(iter(IterableView(dataset, 0, 1)))
    pinned = torch.utils.data._utils.pin_memory.pin_memory(step)
    assert pinned["x"].tolist() == [100, 101]
    assert pinned["name"].tolist() == [b"a", b"b"]


def test_a_view_of_mapped_rows_is_sent_too() -> None:
    view = IterableView(Dataset.range(5).map(one_more).batch(4), 0, 1)
    assert rows(pickle.loads(pickle.dumps(view))) == rows(view) == [[1, 2, 3, 4], [5]]


def test_a_view_has_nothing_that_lightning_would_replace() -> None:
    assert not hasattr(IterableView(Dataset.range(4).batch(2)), "sampler")


def resized(name: bytes) -> tuple[Any, int]:
    return np.zeros((2, 2), np.float32), 1


def test_shapes_that_nobody_stated_are_why_everything_is_read() -> None:
    names = Dataset.from_tensor_slices(["a"] * 8)
    told = IterableView(names.map(resized).batch(4), 0, 2).explain()
    assert told.endswith("state it, with output_signature= of the last map before the batch")
    stated = (di.TensorSpec([2, 2], "float32"), di.TensorSpec([], "int64"))
    assert "only this rank's rows" in IterableView(names.map(resized, output_signature=stated).batch(4), 0, 2).explain()
    assert "output_signature" not in IterableView(Dataset.range(8).filter(not_third).batch(2), 0, 2).explain()
