# SPDX-License-Identifier: Apache-2.0
"""Results come in the order of the elements, however late the first of them are."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from distinput.columns.block import Block, Failure
from distinput.columns.state import State
from distinput.functions.chain import Chain
from distinput.functions.workers import Calling, Done, Parts, in_order
from distinput.run.run import OpCounters, Run
from distinput.values.nest import LEAF


def block(*numbers: int) -> Block:
    return Block.of_elements(LEAF, [np.int64(n) for n in numbers])


class Backwards:
    """Lanes that say that the part sent last is ready first."""

    workers = 2

    def __init__(self, calling: Calling) -> None:
        self.calling = calling
        self.sent: list[Block] = []
        self.under_way = self.most = 0

    def send(self, rows: Block) -> Block:
        self.sent.append(rows)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        return rows

    def ready(self, sent: Block) -> bool:
        return sent is self.sent[-1] and len(self.sent) > 1

    def receive(self, sent: Block) -> Done:
        self.under_way -= 1
        return self.calling.work(sent, None)


def stream(*items: Any) -> Iterator[tuple[Block, State]]:
    for number, item in enumerate(items, start=1):
        if isinstance(item, Exception):
            raise item
        yield item, {"at": number}


def results(given: Iterator[tuple[Block, State]], most: int | None = None) -> tuple[list[Any], Backwards, Parts]:
    with Run() as run:
        calling = Calling(Chain([lambda x: x * 10]), run, OpCounters(), lambda *_: None)
        lanes, parts = Backwards(calling), Parts(given, {"input": {}, "skip": 0}, 1)
        found: list[Any] = []
        for made, _, _ in in_order(parts, calling, lanes, most):
            found += ["failure"] if type(made) is Failure else [int(x) for x in made.elements()]
    return found, lanes, parts


def test_results_keep_the_order_of_the_elements() -> None:
    found, lanes, _ = results(stream(block(1, 2, 3), block(4, 5)))
    assert found == [10, 20, 30, 40, 50]
    assert lanes.most == 4, "two parts for each worker"


def test_no_more_parts_are_under_way_than_asked_for() -> None:
    found, lanes, _ = results(stream(block(1, 2, 3, 4)), most=1)
    assert (found, lanes.most) == ([10, 20, 30, 40], 1)


def test_a_failure_keeps_its_place() -> None:
    found, _, _ = results(stream(block(1), Failure(ValueError("lost")), block(2)))
    assert found == [10, "failure", 20]


def test_an_error_of_the_stream_is_raised_after_the_elements_before_it() -> None:
    found, _, parts = results(stream(block(1, 2), OSError("gone")))
    assert found == [10, 20]
    with pytest.raises(OSError, match="gone"):
        parts.close()
