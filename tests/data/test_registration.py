# SPDX-License-Identifier: Apache-2.0
"""Ops of others as methods of every dataset, and as steps without a method."""

import inspect
import json
import pickle
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from multiprocessing import get_context
from typing import Any

import pytest

import distinput as di
from distinput.extend import Node, OneForOne, Run, Spec, State, Stream, dataset_of, register_op, step
from distinput.testing import check_dataset

Dataset = di.data.Dataset


@dataclass(frozen=True, eq=False)
class Passed(Node):
    """The elements but for the first `count`, and before them those of `first`.

    Args:
      count: how many are passed over.
      first: another dataset.
    """

    input: Node
    count: int = 1
    first: Node | None = None

    @cached_property
    def spec(self) -> Spec:
        return self.input.spec

    def start(self, epoch: int) -> State:
        return {"input": self.input.start(epoch), "over": self.count}

    def stream(self, state: State, run: Run) -> Stream:
        over = state["over"]
        for block, after in self.input.open(state["input"], run):
            kept = block.rows(over, block.size)
            over -= min(over, block.size)
            if kept.size:
                yield kept, {"input": after, "over": over}


@pytest.fixture
def registered() -> None:
    register_op("passed", Passed)


@pytest.mark.usefixtures("registered")
def test_a_registered_op_is_a_method_with_signature_and_documentation() -> None:
    assert Dataset.range(5).passed(2).to_list() == [2, 3, 4]
    assert di.data.TextLineDataset([]).passed is not None
    assert Dataset.passed.__doc__ == Passed.__doc__
    assert list(inspect.signature(Dataset.passed).parameters) == ["self", "count", "first", "name"]
    assert "passed(count=3)" in Dataset.range(5).passed(3).explain()
    with pytest.raises(TypeError, match="counts"):
        Dataset.range(5).passed(counts=3)


@pytest.mark.usefixtures("registered")
def test_states_of_a_registered_op_go_on() -> None:
    assert "restart" in check_dataset(lambda: Dataset.range(9).passed(2), list(range(2, 9)))
    it = iter(Dataset.range(5).passed(1))
    next(it)
    with pytest.raises(di.errors.StateError):
        Dataset.range(5).passed(2).restore(it.state())


def go_on(dataset: Any, state: State) -> list[int]:
    return [int(element) for element in dataset.restore(state)]


@pytest.mark.usefixtures("registered")
def test_a_pipeline_with_it_works_in_another_process() -> None:
    dataset = Dataset.range(5).passed(1).batch(1).unbatch()
    it = iter(dataset)
    next(it)
    state = json.loads(json.dumps(it.state()))
    assert pickle.loads(pickle.dumps(dataset)).to_list() == [1, 2, 3, 4]
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(go_on, dataset, state).result() == [2, 3, 4]


def test_an_op_that_is_not_registered_is_a_step() -> None:
    assert Dataset.range(5).apply(step(Passed, 2)).to_list() == [2, 3, 4]
    assert Dataset.range(5).apply(step(Passed, count=3)).to_list() == [3, 4]
    other = Dataset.range(1)
    assert Dataset.range(5).apply(step(Passed, 1, other)).node.inputs[1] is other.node
    with pytest.raises(TypeError, match="step: needs a subclass of Node"):
        Dataset.range(5).apply(step(lambda node: 3))  # type: ignore[arg-type,return-value]


def test_passes_over_a_step_are_counted_with_those_below_it() -> None:
    shuffled = Dataset.range(20).shuffle(20, seed=1)
    stepped = shuffled.apply(step(Passed, 0))
    first = list(shuffled)
    assert list(stepped) != first
    assert list(stepped.iter_pass(0)) == first


def test_a_node_is_a_dataset() -> None:
    assert dataset_of(Passed(Dataset.range(3).node)).to_list() == [1, 2]
    with pytest.raises(TypeError, match="dataset_of: needs a Node, got 3"):
        dataset_of(3)  # type: ignore[arg-type]


@pytest.mark.usefixtures("registered")
def test_a_taken_name_says_who_has_it() -> None:
    with pytest.raises(
        ValueError, match=r"op 'map': the name is taken by Dataset\.map, so .*:Passed needs another one"
    ):
        register_op("map", Passed)
    with pytest.raises(ValueError, match=r"op 'to_list': the name is taken by Dataset\.to_list"):
        register_op("to_list", "mine:Op")
    with pytest.raises(ValueError, match=r"op 'passed': the name is taken by .*test_registration.*:Passed, so mine:Op"):
        register_op("passed", "mine:Op")
    register_op("passed", Passed)  # a cell of a notebook, run twice
    assert Dataset.range(3).passed().to_list() == [1, 2]


class Undecorated(OneForOne):
    size: int


@dataclass(frozen=True, eq=False)
class Source(Node):
    """Has no input."""


@pytest.mark.parametrize(
    "op, says",
    [
        (3, "needs a subclass of Node, got 3"),
        (dict, "needs a subclass of Node, got <class 'dict'>"),
        (Undecorated, r"has fields but is not a dataclass; put @dataclass\(frozen=True, eq=False\) before it"),
        (Source, r"has no field for its input; a source is used by dataset_of\(Source\(\.\.\.\)\)"),
    ],
)
def test_what_is_no_op_is_refused(op: Any, says: str) -> None:
    with pytest.raises(TypeError, match=f"op 'mine': .*{says}"):
        register_op("mine", op)
    assert not hasattr(Dataset, "mine")


@pytest.mark.usefixtures("registered")
def test_an_op_that_cannot_be_imported_says_what_it_is_registered_as() -> None:
    register_op("later", "package_that_is_not_there:Op")
    with pytest.raises(ImportError) as told:
        Dataset.range(3).later()
    assert told.value.__notes__ == ["op 'later' is registered as 'package_that_is_not_there:Op'"]
