# SPDX-License-Identifier: Apache-2.0
"""What PyTorch's tools expect of a dataset; docs/conventions.md lists the lines."""

import json
from pathlib import Path
from typing import Any

import pytest

import distinput as di

torch = pytest.importorskip("torch")

ROOT = Path(__file__).parents[2]
Dataset = di.data.Dataset


def batches(rows: int = 10, size: int = 3) -> di.data.Dataset:
    return Dataset.range(rows).shuffle(rows, seed=1).batch(size)


def view(rank: int | None = 0, world_size: int | None = 1, **shape: int) -> Any:
    return di.interop.torch.IterableView(batches(**shape), rank=rank, world_size=world_size, tail="partial")


def loader(of: Any, **options: Any) -> Any:
    return torch.utils.data.DataLoader(of, batch_size=None, **options)


def test_a_view_is_an_iterable_dataset_whose_batches_stay_as_they_are() -> None:
    made = view()
    assert isinstance(made, torch.utils.data.IterableDataset)
    steps = list(loader(made))
    assert all(isinstance(step, torch.Tensor) for step in steps)
    assert [step.tolist() for step in steps] == [batch.tolist() for batch in batches()]


def test_loader_workers_divide_the_steps_and_sharding_twice_is_refused() -> None:
    whole = [step.tolist() for step in loader(view())]
    assert [step.tolist() for step in loader(view(), num_workers=2)] == whole
    with pytest.raises(di.errors.InvalidArgumentError, match=r"batch_size=None"):
        list(torch.utils.data.DataLoader(view(), batch_size=2))
    with pytest.raises(TypeError, match="rank, world_size, share_memory"):
        di.interop.torch.Loader(view(rank=0, world_size=2), rank=0, world_size=2)
    with pytest.raises(TypeError, match="sampler"):
        di.interop.torch.Loader(batches(), sampler=torch.utils.data.SequentialSampler([1, 2]))
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with pytest.raises(TypeError, match="got DistributedDataset"):
        di.interop.torch.IterableView(strategy.experimental_distribute_dataset(batches()))


def test_a_map_style_view_has_items_many_at_a_time_and_a_length() -> None:
    made = di.interop.torch.MapView(Dataset.range(10).map(lambda x: {"x": x, "y": 2.0 * x}))
    assert len(made) == 10
    assert made[3]["y"] == 6.0
    assert [int(item["x"]) for item in made.__getitems__([4, 1])] == [4, 1]
    shuffled = torch.utils.data.DataLoader(made, batch_size=4, shuffle=True)
    assert sorted(int(x) for batch in shuffled for x in batch["x"]) == list(range(10))


def test_len_counts_what_is_yielded() -> None:
    assert len(view()) == len(loader(view())) == len(list(view())) == 4
    assert len(view(rank=1, world_size=2)) == 4  # a rank without a row has the step too
    with pytest.raises(TypeError):
        len(di.interop.torch.IterableView(batches().filter(lambda x: True), rank=0, world_size=1))


def test_states_are_those_of_stateful_objects_and_are_loaded_before_iter() -> None:
    from torch.distributed.checkpoint.stateful import Stateful

    made = view()
    assert isinstance(made, Stateful)
    steps = iter(made)
    assert isinstance(steps, Stateful)
    next(steps)
    state = json.loads(json.dumps(steps.state_dict()))
    rest = [step.tolist() for step in steps]
    again = view()
    again.load_state_dict(state)
    assert [step.tolist() for step in again] == rest


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
def test_the_stateful_loader_of_torchdata_saves_and_restores() -> None:
    torchdata = pytest.importorskip("torchdata.stateful_dataloader")
    for workers in (0, 2):
        one = torchdata.StatefulDataLoader(view(), batch_size=None, num_workers=workers)
        steps = iter(one)
        next(steps)
        state = one.state_dict()
        rest = [step.tolist() for step in steps]
        other = torchdata.StatefulDataLoader(view(), batch_size=None, num_workers=workers)
        other.load_state_dict(state)
        assert [step.tolist() for step in other] == rest


def test_set_epoch_chooses_the_order() -> None:
    made = view()
    orders = []
    for epoch in (0, 1, 0):
        made.set_epoch(epoch)
        orders.append([step.tolist() for step in made])
    assert orders[0] == orders[2] != orders[1]


def test_batches_are_nests_of_tensors_so_pinning_and_moving_need_no_class_of_our_own() -> None:
    """`pin_memory` and `.to` reach tensors in dicts, tuples and lists; an own batch class would only hide them."""
    from torch.utils._pytree import tree_map

    pairs = Dataset.range(4).map(lambda x: {"x": x, "y": (x, 1.0)}).batch(2)
    (step, *_) = loader(di.interop.torch.IterableView(pairs, rank=0, world_size=1))
    moved = tree_map(lambda leaf: leaf.to("cpu", non_blocking=True), step)
    assert type(step) is dict
    assert moved["y"][0].tolist() == [0, 1]
    if torch.cuda.is_available():
        (pinned, *_) = loader(di.interop.torch.IterableView(pairs, rank=0, world_size=1), pin_memory=True)
        assert pinned["x"].is_pinned()


def test_distributed_values_are_pytrees() -> None:
    from torch.utils._pytree import tree_leaves, tree_map

    value = di.distribute.PerReplica([torch.ones(2), torch.ones(1)])
    assert len(tree_leaves({"x": value})) == 2
    assert [part.sum().item() for part in tree_map(lambda part: 3 * part, value).values] == [6.0, 3.0]


def test_rank_and_world_size_are_read_when_it_is_iterated(monkeypatch: pytest.MonkeyPatch) -> None:
    made = di.interop.torch.IterableView(batches(), tail="partial")
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("MASTER_ADDR", "localhost")
    monkeypatch.setenv("MASTER_PORT", "1")
    assert [step.tolist() for step in made] == [step.tolist() for step in view(rank=1, world_size=2)]


def test_join_is_not_needed() -> None:
    """`torch.distributed.algorithms.join.Join` is for ranks with different numbers of steps; all ranks have the same here."""
    for rows in (1, 7, 10):
        ranks = [list(view(rank=rank, world_size=3, rows=rows)) for rank in range(3)]
        assert len({len(steps) for steps in ranks}) == 1
        assert sorted(int(row) for steps in ranks for step in steps for row in step) == list(range(rows))
