# SPDX-License-Identifier: Apache-2.0
"""Which pass a worker of a DataLoader begins, and what it warns of; tests/engines runs real ones."""

import sys
import warnings
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import distinput as di
from distinput.data import loader
from distinput.errors import InputWarning
from distinput.run.threads import LoaderWorker

Dataset = di.data.Dataset
PLAIN = Dataset.range(8)
SHUFFLED = PLAIN.shuffle(8, seed=1)


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield monkeypatch


def play(monkeypatch: pytest.MonkeyPatch, number: int = 0, count: int = 1, lasts: bool = False, draw: int = 77) -> None:
    monkeypatch.setattr(loader, "loader_worker", lambda: LoaderWorker(number, count, lasts, draw))


def test_outside_of_a_data_loader_passes_go_on(worker: pytest.MonkeyPatch) -> None:
    assert loader.first_pass(SHUFFLED.node, 3) == 3
    loader.look_around(PLAIN.node)
    loader.look_again(SHUFFLED.node, 3)


def test_a_new_worker_begins_with_a_pass_that_is_drawn(worker: pytest.MonkeyPatch) -> None:
    play(worker, draw=77)
    assert loader.first_pass(SHUFFLED.node, 3) == 80
    assert loader.first_pass(PLAIN.node, 3) == 3  # every pass is the same


def test_a_worker_that_lasts_counts_itself(worker: pytest.MonkeyPatch) -> None:
    play(worker, lasts=True)
    assert loader.first_pass(SHUFFLED.node, 3) == 3


def test_all_workers_of_an_epoch_begin_with_one_pass(worker: pytest.MonkeyPatch) -> None:
    shares = SHUFFLED.shard(2, 0)
    passes = []
    for number in range(2):
        play(worker, number=number, count=2)
        passes.append(loader.first_pass(shares.node, 0))
    assert passes == [77, 77]


def test_where_other_processes_share_the_elements_the_order_stays(worker: pytest.MonkeyPatch) -> None:
    worker.setenv("WORLD_SIZE", "2")
    play(worker)
    with pytest.warns(
        InputWarning, match=r"every epoch of this DataLoader will have the same order.*iter_pass\(epoch\)"
    ):
        assert loader.first_pass(SHUFFLED.node, 3) == 3
    play(worker, number=1)  # the first worker has said it
    assert loader.first_pass(SHUFFLED.node, 3) == 3


def test_the_first_of_several_workers_warns_of_a_dataset_that_all_read(worker: pytest.MonkeyPatch) -> None:
    other = Dataset.range(8).node
    object.__setattr__(other.origin, "process", -1)  # made before the worker was started
    play(worker, count=3)
    with pytest.warns(InputWarning, match=r"each of the 3 workers .* each one is delivered 3 times; .*dataset.shard\("):
        loader.look_around(other)
    play(worker, number=1, count=3)
    loader.look_around(other)
    play(worker, count=1)
    loader.look_around(other)


def test_a_pass_that_begins_again_in_a_worker_that_lasts_is_warned_of(worker: pytest.MonkeyPatch) -> None:
    play(worker, lasts=True)
    with pytest.warns(InputWarning, match=r"^iter_pass: pass 4 begins again in a worker of a DataLoader"):
        loader.look_again(SHUFFLED.node, 4)
    loader.look_again(PLAIN.node, 4)
    play(worker, lasts=False)
    loader.look_again(SHUFFLED.node, 4)


class DataLoader:
    """Calls a dataset as PyTorch's does, from a module of that name.

    Args:
      dataset: to read.
    """

    def __init__(self, dataset: Any) -> None:
        names: dict[str, Any] = {"__name__": "torch.utils.data.sampler", "dataset": dataset}
        exec("def length():\n    return len(dataset)\ndef first():\n    return dataset.__getitems__([0])", names)
        self.length, self.first = names["length"], names["first"]


def test_a_data_loader_over_what_cannot_be_counted_is_told_what_to_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.data", ModuleType("torch.utils.data"))
    with pytest.raises(TypeError, match=r"length is unknown\. A DataLoader .*IterableView\(dataset\), batch_size=None"):
        DataLoader(PLAIN.filter(lambda x: x > 1)).length()
    with pytest.raises(TypeError, match=r"is infinite\. A DataLoader"):
        DataLoader(PLAIN.repeat()).length()
    with pytest.raises(TypeError, match=r"length is unknown\.$"):
        len(PLAIN.filter(lambda x: x > 1))
    assert DataLoader(PLAIN).length() == 8


def test_a_data_loader_that_takes_positions_of_a_shuffled_dataset_is_warned(worker: pytest.MonkeyPatch) -> None:
    worker.setitem(sys.modules, "torch.utils.data", ModuleType("torch.utils.data"))
    assert DataLoader(Dataset.range(8)).first() == [0]
    with pytest.warns(InputWarning, match=r"every epoch has the same order; .*IterableView\(dataset\)"):
        DataLoader(Dataset.range(8).shuffle(8, seed=1)).first()
    assert len(Dataset.range(8).shuffle(8, seed=1)[[0]]) == 1
