# SPDX-License-Identifier: Apache-2.0
"""Elements and results of replicas are the mappings that they were, as in TensorFlow."""

import pickle
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.values.nest import map_leaves, structure_of

RANGE = di.data.Dataset.range


class Named(dict[str, Any]):
    """A subclass of the user's."""


class Wanting(dict[str, Any]):
    """A subclass that cannot be made without an argument."""

    def __init__(self, needed: int) -> None:
        super().__init__(a=needed)


MAPPINGS: list[Mapping[str, Any]] = [
    OrderedDict(b=np.int64(1), a=np.int64(2)),
    Named(b=np.int64(1), a=np.int64(2)),
    defaultdict(list, b=np.int64(1), a=np.int64(2)),
    Counter(b=np.int64(1), a=np.int64(2)),
    MappingProxyType({"b": np.int64(1), "a": np.int64(2)}),
]


@pytest.mark.parametrize("value", MAPPINGS, ids=lambda value: type(value).__name__)
def test_an_element_is_the_mapping_that_the_function_gave(value: Mapping[str, Any]) -> None:
    for element in RANGE(3).map(lambda x: value).batch(2).unbatch():
        assert type(element) is type(value)
        assert list(element.items()) == list(value.items())


@pytest.mark.parametrize("value", MAPPINGS, ids=lambda value: type(value).__name__)
def test_a_nest_is_built_again_and_sent_to_other_processes(value: Mapping[str, Any]) -> None:
    doubled = map_leaves(lambda x: x * 2, value)
    assert type(doubled) is type(value)
    assert dict(doubled) == {"b": 2, "a": 4}
    if isinstance(value, defaultdict):
        assert doubled.default_factory is list
    if not isinstance(value, MappingProxyType):  # of which pickle knows no class
        structure = structure_of(value)
        assert type(pickle.loads(pickle.dumps(structure)).build([1, 2])) is type(value)


def test_a_mapping_that_cannot_be_made_from_its_items_is_a_plain_dict() -> None:
    assert RANGE(1).map(lambda x: Wanting(3)).to_list() == [{"a": 3}]


def test_mappings_of_the_same_keys_may_stand_for_each_other() -> None:
    assert structure_of(OrderedDict(a=1)) == structure_of({"a": 1})


@pytest.mark.parametrize("replicas", [1, 2])
def test_run_gives_back_the_mapping(replicas: int) -> None:
    strategy = di.distribute.MirroredStrategy([f"CPU:{i}" for i in range(replicas)])
    for made in (OrderedDict, Named, dict):
        result = strategy.run(lambda made=made: made(b=1, a=2))
        assert type(result) is made
        assert list(result) == ["b", "a"]


def test_a_distributed_element_is_the_mapping() -> None:
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    for made in (OrderedDict, dict, Named):
        dataset = RANGE(4).batch(4).map(lambda x, made=made: made(b=x, a=x))
        (step,) = strategy.experimental_distribute_dataset(dataset)
        assert type(step) is made
        assert list(step) == ["b", "a"]
    for keys in (["b", "a"], ["a", "b"]):  # the order of the keys belongs to the element, too
        dataset = RANGE(4).batch(4).map(lambda x, keys=keys: dict.fromkeys(keys, x))
        (step,) = strategy.experimental_distribute_dataset(dataset)
        assert list(step) == keys
