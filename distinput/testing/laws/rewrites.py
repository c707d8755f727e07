# SPDX-License-Identifier: Apache-2.0
"""Law 3: rewrites change neither the elements nor what follows a state."""

import json
from typing import Any

from distinput.data.dataset import Dataset
from distinput.data.iterator import DatasetIterator
from distinput.plan.node import UNKNOWN, Node
from distinput.rewrite import RULES, Running, rewrite
from distinput.testing.elements import difference
from distinput.testing.laws.trace import MOST, PassTrace, begun

__all__ = ["check_rewrites"]


def check_rewrites(dataset: Dataset, *, most: int = MOST) -> None:
    """Law 3: rewrites change neither the elements nor what follows a state.

    The pipeline runs as it was described, with all rules, those that were registered as well, and with each rule alone.

    Args:
      dataset: any pipeline.
      most: elements looked at when the pipeline is endless.

    Raises:
      AssertionError: a rule changes something.

    >>> import distinput as di
    >>> check_rewrites(di.data.Dataset.range(9).take(5).take(3).batch(2).unbatch())
    """
    described = PassTrace.of(begun(dataset.node, dataset.node), most)
    tried: set[tuple[str, ...]] = {()}
    for rules in (None, *[(rule,) for rule in RULES]):
        running, fired = rewrite(dataset.node, rules)
        if tuple(fired) in tried:
            continue
        tried.add(tuple(fired))
        what = f"rewrites ({', '.join(fired)})"
        if exact_spec(running) != exact_spec(dataset.node):
            raise AssertionError(f"{what}: the spec was {dataset.node.spec.nest} and is {running.spec.nest}")
        if dataset.node.cardinality not in (UNKNOWN, running.cardinality):
            raise AssertionError(f"{what}: the cardinality was {dataset.node.cardinality} and is {running.cardinality}")
        trace = PassTrace.of(begun(dataset.node, running), most)
        wrong = difference(trace.elements, described.elements)
        if wrong is not None or trace.failure != described.failure:
            raise AssertionError(f"{what}: {wrong or f'ends with {trace.failure}, expected {described.failure}'}")
        for position, state in enumerate(trace.states):
            coded = json.loads(json.dumps(state))
            rest = PassTrace.of(DatasetIterator(dataset.node, Running(running), coded), most)
            wrong = difference(rest.elements[: most - position], trace.rest(position))
            if wrong is not None:
                raise AssertionError(f"{what}, restart at {position}: {wrong}")


def exact_spec(node: Node) -> Any:
    """The spec of a node as a value that can be compared."""
    return node.spec.structure, node.spec.leaves
