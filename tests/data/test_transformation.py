# SPDX-License-Identifier: Apache-2.0
"""A method that adds an op is made of the op, and behaves as one that was written by hand."""

import copy
import inspect

import pytest

import distinput as di
from distinput.data.dataset import method_of
from distinput.ops.shuffle import Shuffle
from distinput.ops.take import Take

Dataset = di.data.Dataset


def test_a_method_of_an_op_takes_its_arguments_and_documentation() -> None:
    first = method_of("first", Take)
    assert str(inspect.signature(first)) == "(self, count: int, name: str | None = None) -> 'Dataset'"
    assert (first.__name__, first.__qualname__, first.__module__) == (
        "first",
        "Dataset.first",
        "distinput.data.dataset",
    )
    assert first.__doc__ == Take.__doc__
    made = first(Dataset.range(5), 2, name="few")
    assert type(made) is Dataset
    assert (made.to_list(), made.node.name) == ([0, 1], "few")


def test_messages_speak_of_the_method() -> None:
    with pytest.raises(TypeError, match=r"^first: unexpected argument 'n', did you mean count\?$"):
        method_of("first", Take)(Dataset.range(5), n=2)


def test_passes_go_on_unless_the_op_reshuffles() -> None:
    source = Dataset.range(5)
    list(source)
    assert method_of("first", Take)(source, 2)._passes is source._passes
    assert method_of("mixed", Shuffle, reshuffles=True)(source, 5)._passes is not source._passes


def test_a_method_is_bound_as_any_other() -> None:
    source = Dataset.range(5)
    take = source.take
    assert take(2).to_list() == Dataset.take(source, 2).to_list() == [0, 1]
    assert Dataset.take is Dataset.take
    assert di.data.TFRecordDataset.take is Dataset.take


def test_the_line_of_the_user_is_that_of_the_call() -> None:
    line = inspect.currentframe().f_lineno + 1
    made = Dataset.range(5).take(2)
    assert (made.node.origin.file, made.node.origin.line) == (__file__, line)


def test_a_dataset_can_be_copied() -> None:
    assert copy.copy(Dataset.range(3)).to_list() == [0, 1, 2]
    assert copy.deepcopy(Dataset.range(3).batch(2)).to_list() == [[0, 1], [2]]
