# SPDX-License-Identifier: Apache-2.0
"""`MapView`: positions for PyTorch's samplers."""

import pickle
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

import torch
from torch.utils.data import BatchSampler, DataLoader, DistributedSampler, SequentialSampler

import distinput as di
from distinput.errors import ElementTypeError, InputWarning
from distinput.interop.torch import MapView

Dataset = di.data.Dataset


def doubled(x: Any) -> Any:
    return x * 2


def test_elements_are_those_of_the_dataset_by_position() -> None:
    dataset = Dataset.from_tensor_slices({"x": np.arange(12.0).reshape(6, 2), "name": list("abcdef")})
    view = MapView(dataset)
    assert len(view) == 6
    assert view[4]["x"].tolist() == [8, 9]
    assert view[-1]["name"] == b"f"
    assert [element["x"].tolist() for element in view.__getitems__([5, 0])] == [[10, 11], [0, 1]]
    with pytest.raises(IndexError):
        view[6]


def test_samplers_and_batches_of_pytorch_work() -> None:
    view = MapView(Dataset.range(11).map(doubled))
    torch.manual_seed(1)
    found = [row for batch in DataLoader(view, batch_size=4, shuffle=True) for row in batch.tolist()]
    assert sorted(found) == [2 * i for i in range(11)]
    assert found != sorted(found)
    ranks = [
        DataLoader(view, batch_size=4, sampler=DistributedSampler(view, 2, rank, shuffle=False)) for rank in (0, 1)
    ]
    assert [[batch.tolist() for batch in loader] for loader in ranks] == [
        [[0, 4, 8, 12], [16, 20]],
        [[2, 6, 10, 14], [18, 0]],  # record 0 is there twice
    ]


def test_several_positions_give_a_list_of_elements() -> None:
    view = MapView(Dataset.from_tensor_slices({"x": np.arange(5)}))
    for index, rows in ((slice(1, 3), [1, 2]), ([3, -1], [3, 4]), (np.array([0, 2]), [0, 2]), ([], [])):
        assert view[index] == [{"x": torch.tensor(row)} for row in rows]
    assert view[torch.tensor(2)] == {"x": torch.tensor(2)}
    batches = DataLoader(view, sampler=BatchSampler(SequentialSampler(view), 3, drop_last=False), batch_size=None)
    assert [[int(element["x"]) for element in batch] for batch in batches] == [[0, 1, 2], [3, 4]]


def test_it_is_sent_to_loader_workers() -> None:
    assert pickle.loads(pickle.dumps(MapView(Dataset.range(5).map(doubled))))[2] == 4


def test_a_shuffle_is_warned_of() -> None:
    with pytest.warns(InputWarning, match="order of the first pass in every epoch"):
        MapView(Dataset.range(5).shuffle(5, seed=1))
    MapView(Dataset.range(5).shuffle(5, seed=1, reshuffle_each_iteration=False))


@pytest.mark.parametrize(
    "dataset, says",
    [
        (Dataset.range(5).filter(lambda x: x > 1), r"filter can only be iterated.*or use IterableView"),
        (Dataset.range(5).repeat(), "infinite.*use IterableView"),
        ([1, 2], "expected a distinput Dataset, got list"),
    ],
)
def test_what_has_no_positions_is_refused(dataset: Any, says: str) -> None:
    with pytest.raises(TypeError, match=says):
        MapView(dataset)


def test_what_pytorch_lacks_is_refused_by_name() -> None:
    with pytest.raises(ElementTypeError, match=r"MapView: component \['when'\] has dtype datetime64"):
        MapView(Dataset.from_tensor_slices({"when": np.array(["2020-01-01"], "datetime64[D]")}))
