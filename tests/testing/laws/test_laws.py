# SPDX-License-Identifier: Apache-2.0
"""The laws notice what breaks them."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.columns.block import Block
from distinput.columns.rows import Stream
from distinput.columns.state import State
from distinput.plan.node import Node
from distinput.rewrite import rules
from distinput.run.run import Run
from distinput.testing import (
    check_blocks,
    check_nothing_left,
    check_positions,
    check_restart,
    check_rewrites,
    check_same_as,
    check_shards,
    check_spec,
)
from distinput.values.spec import Spec

Dataset = di.data.Dataset


@dataclass(frozen=True, eq=False)
class Broken(Node):
    """The elements of the input, wrong in one way."""

    input: Node
    how: str

    @cached_property
    def spec(self) -> Spec:
        return Spec.leaf((), np.float32) if self.how == "spec" else self.input.spec

    @property
    def cardinality(self) -> int:
        return self.input.cardinality + (self.how == "cardinality")

    def start(self, epoch: int) -> State:
        return {"input": self.input.start(epoch)}

    def start_at(self, row: int, epoch: int) -> State | None:
        at = self.input.start_at(row + 1, epoch) if self.how == "position" else self.input.start_at(row, epoch)
        return None if at is None else {"input": at}

    def stream(self, state: State, run: Run) -> Stream:
        if self.how in ("thread", "distinput-kernels"):
            threading.Thread(target=threading.Event().wait, args=(60,), name=self.how, daemon=True).start()
        for index, (block, after) in enumerate(self.input.open(state["input"], run)):
            if self.how == "state" and index == 0:
                yield block, state
            elif self.how == "data":
                yield block, {"input": after, "rows": "x" * 200}
            elif self.how == "blocks":
                yield block.rows(0, max(1, block.size - 1)), {"input": after}
            else:
                yield block, {"input": after}

    @property
    def random_access(self) -> bool:
        return self.how == "fetch"

    def fetch(self, rows: Any, epoch: int) -> Block:
        return self.input.fetch(rows[::-1], epoch)


def broken(how: str) -> Dataset:
    return Dataset(Broken(Dataset.range(9).batch(2).node if how == "state" else Dataset.range(9).node, how))


@pytest.mark.parametrize(
    "check, how, says",
    [
        (check_restart, "state", "restart at"),
        (check_restart, "data", "holds data"),
        (check_spec, "spec", "must fit"),
        (check_spec, "cardinality", "the cardinality is 10, but there are 9"),
        (check_positions, "position", "start_at"),
        (check_positions, "fetch", "fetch"),
    ],
)
def test_a_broken_op_breaks_its_law(check: Callable[[Dataset], None], how: str, says: str) -> None:
    with pytest.raises(AssertionError, match=says):
        check(broken(how))


def test_results_that_depend_on_blocks_break_the_law() -> None:
    with pytest.raises(AssertionError, match="blocks of"):
        check_blocks(lambda: broken("blocks"))


def test_a_thread_left_behind_breaks_the_law() -> None:
    with pytest.raises(AssertionError, match="there are still"):
        check_nothing_left(lambda: broken("thread"), seconds=0.2)


def test_a_thread_that_compiles_kernels_for_all_is_nothing_that_an_iteration_leaves() -> None:
    check_nothing_left(lambda: broken("distinput-kernels"), seconds=0.2)


def test_a_rule_that_changes_elements_breaks_the_law() -> None:
    def no_repeat(node: Node) -> Node | None:
        return node.inputs[0] if node.op == "repeat" else None

    rules.register_rule(no_repeat)
    with pytest.raises(AssertionError, match="no_repeat"):
        check_rewrites(Dataset.range(3).filter(lambda x: x < 2).repeat(2))


@pytest.mark.parametrize("expected", [[0, 1], [0, 1, 2, 3], [0, 2, 1], [0, 1, np.int32(2)], [0, 1, [2]]])
def test_other_elements_break_the_law(expected: list[Any]) -> None:
    with pytest.raises(AssertionError, match="same as a list"):
        check_same_as(Dataset.range(3), expected)


def test_elements_are_compared_as_plain_values_where_they_are_plain() -> None:
    check_same_as(Dataset.from_tensor_slices({"a": [1, 2], "b": ["x", "y"]}), [{"a": 1, "b": "x"}, {"a": 2, "b": b"y"}])
    check_same_as(Dataset.range(3).window(2), [[0, 1], [2]])


def test_a_shuffle_without_an_order_is_no_shard() -> None:
    class Fickle:
        calls = 0

    def changes(x: Any) -> Any:
        Fickle.calls += 1
        return x + Fickle.calls

    with pytest.raises(AssertionError, match="shard"):
        check_shards(Dataset.range(4).map(changes), 2)
