# SPDX-License-Identifier: Apache-2.0
"""Reaching a row directly is the same as passing over all rows before it."""

import json
import re
from typing import Any

import numpy as np

from distinput.data.dataset import Dataset
from distinput.plan.node import Node, walk
from distinput.testing.elements import difference, exact
from distinput.testing.laws.trace import elements_from

__all__ = ["check_positions"]


def check_positions(dataset: Dataset, *, most: int = 60) -> None:
    """Reaching a row directly is the same as passing over all before it, for every step of the pipeline.

    `start_at(row)`, where it gives a state, is followed by what `skip(row)` gives, and `fetch(rows)`, where there is random
    access, gives the elements at those rows, in two different passes. `dataset[rows]` gives those of the first pass, or an
    error that names a step of the pipeline.

    Args:
      dataset: any pipeline.
      most: elements looked at of each step.

    Raises:
      AssertionError: a row is another one.

    >>> import distinput as di
    >>> check_positions(di.data.Dataset.range(9).repeat(2).batch(4))
    """
    failing = {id(step.inputs[0]) for step in walk(dataset.node) if step.skips_failures}
    for step in walk(dataset.node):
        if id(step) in failing:  # which has no elements that can be listed
            continue
        for epoch in (0, 1):
            elements = elements_from(step, step.start(epoch), most)
            _check_start_at(step, epoch, elements, most)
            if step.fetches:
                _check_fetch(step, epoch, elements)
    _check_keys(dataset, elements_from(dataset.node, dataset.node.start(0), most))


def _check_keys(dataset: Dataset, elements: list[Any]) -> None:
    count = len(elements)
    keys: list[list[int]] = [
        list(range(count)),
        list(range(0, count, 3))[::-1],
        [row * 7 % count for row in range(count)],
    ]
    try:
        for rows in keys:
            wrong = difference([exact(element) for element in dataset[rows]], [elements[row] for row in rows])
            if wrong is not None:
                raise AssertionError(f"dataset[{rows}]: {wrong}")
        if count:
            wrong = difference([exact(dataset[count - 1])], elements[-1:])
            if wrong is not None:
                raise AssertionError(f"dataset[{count - 1}]: {wrong}")
    except TypeError as error:
        named = _UNREACHED.match(str(error))
        if named is None or named[1] not in {step.op for step in walk(dataset.node)}:
            raise


_UNREACHED = re.compile(r"elements cannot be reached by position: (\w+) can only be iterated")


def _check_start_at(step: Node, epoch: int, elements: list[Any], most: int) -> None:
    # Behind the last row seen there may be more of an endless step.
    last = len(elements) if len(elements) < most else most // 2
    for row in range(last + 1):
        state = step.start_at(row, epoch)
        if state is None:
            continue
        wrong = difference(elements_from(step, json.loads(json.dumps(state)), len(elements) - row), elements[row:])
        if wrong is not None:
            raise AssertionError(f"start_at({row}, {epoch}) of {step}: {wrong}")
        if len(elements) < most:
            extra = elements_from(step, state, most)
            if len(extra) != len(elements) - row:
                raise AssertionError(
                    f"start_at({row}, {epoch}) of {step}: {len(extra)} follow, expected {len(elements) - row}"
                )


def _check_fetch(step: Node, epoch: int, elements: list[Any]) -> None:
    count = len(elements)
    wanted = [
        np.arange(count),
        np.arange(count)[::-1],
        np.arange(0, count, 3),
        np.arange(3 * count) * 7 % max(1, count),
    ]
    for rows in wanted:
        if not len(rows):
            continue
        block = step.fetch(np.ascontiguousarray(rows, np.int64), epoch)
        wrong = difference([exact(element) for element in block.elements()], [elements[row] for row in rows])
        if wrong is not None:
            raise AssertionError(f"fetch({rows.tolist()}, {epoch}) of {step}: {wrong}")
