# SPDX-License-Identifier: Apache-2.0
"""Distributed datasets that only workers make."""

import pickle
from functools import partial
from typing import Any

import pytest

import distinput as di
from distinput.distribute.coordinator.parameter_server import UnbuiltDataset, UnbuiltDatasetsFromFunction

DATASET = di.data.Dataset.range(4).batch(2)


def unbuilt(kind: type[UnbuiltDataset] = UnbuiltDataset) -> UnbuiltDataset:
    return kind(partial(_made, di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])))


def _made(strategy: Any) -> Any:
    return strategy.experimental_distribute_dataset(DATASET)


def test_it_counts_as_a_distributed_dataset_and_has_its_spec() -> None:
    dataset = unbuilt()
    assert isinstance(dataset, di.distribute.DistributedDataset)
    assert isinstance(dataset.element_spec, di.distribute.PerReplicaSpec)
    assert "replicas" in dataset.explain()


@pytest.mark.parametrize(
    "kind, cure",
    [
        (UnbuiltDataset, "you need to pass this dataset to ClusterCoordinator.create_per_worker_dataset"),
        (UnbuiltDatasetsFromFunction, "You need to use this dataset in ClusterCoordinator.create_per_worker_dataset"),
    ],
)
def test_it_cannot_be_iterated_here(kind: type[UnbuiltDataset], cure: str) -> None:
    with pytest.raises(ValueError, match=cure):
        iter(unbuilt(kind))
    with pytest.raises(ValueError, match=cure):
        unbuilt(kind).restore({})


@pytest.mark.parametrize("name", ["cardinality", "num_steps"])
def test_nothing_is_counted_here(name: str) -> None:
    with pytest.raises(ValueError, match="Cannot get the cardinality of a dataset that is not built"):
        getattr(unbuilt(), name)


def test_it_travels_without_what_was_made_for_its_spec() -> None:
    dataset = UnbuiltDataset(_other)
    before = pickle.dumps(dataset)
    _ = dataset.element_spec
    assert pickle.dumps(dataset) == before


def _other() -> Any:
    return _made(di.distribute.get_strategy())
