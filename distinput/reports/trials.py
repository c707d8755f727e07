# SPDX-License-Identifier: Apache-2.0
"""Changes of a pipeline that keep its elements, each tried out: how many times as fast would it be?"""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from distinput.data.dataset import Dataset
from distinput.ops.map import Map
from distinput.plan.check import AUTOTUNE
from distinput.plan.node import Node
from distinput.reports.bench import Bench, bench

__all__ = ["TriedChange", "trials"]


@dataclass(frozen=True)
class TriedChange:
    """A change that was tried.

    Args:
      change: what was changed, as one would write it.
      elements_per_second: with it; None if the pass failed.
      times: as fast as without it.
      error: why it failed; "" if it did not.
    """

    change: str
    elements_per_second: float | None = None
    times: float | None = None
    error: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def trials(dataset: Dataset[Any], told: Bench, seconds: float = 3.0) -> Iterator[TriedChange]:
    """Try changes that apply to a dataset; each of them keeps all elements and their order.

    Args:
      dataset: what was measured; it is not changed.
      told: the measurement that they are compared with.
      seconds: of each trial.

    >>> import distinput as di
    >>> ds = di.data.Dataset.range(1000).map(lambda x: x + 1)
    >>> [one.change for one in trials(ds, bench(ds, warm_up=0), 0.1)][:1]
    ['map(num_parallel_calls=AUTOTUNE)']
    """
    for change, edit in CHANGES.items():
        try:
            changed = _edited(dataset.node, edit)
            if changed is dataset.node:
                continue
            rate = bench(Dataset(changed), seconds).elements_per_second
        except Exception as error:  # noqa: BLE001 - a function that cannot be sent to processes, say, is what is to be told
            yield TriedChange(change, error=f"{type(error).__name__}: {error}".splitlines()[0])
            continue
        was = told.elements_per_second
        yield TriedChange(change, rate, rate / was if rate is not None and was else None)


def _in_threads(node: Node) -> Node:
    if isinstance(node, Map) and node.num_parallel_calls is None and not _bound(node):
        return replace(node, num_parallel_calls=AUTOTUNE)
    return node


def _in_processes(node: Node) -> Node:
    if isinstance(node, Map) and not node.processes and not _bound(node):
        return replace(node, num_parallel_calls=AUTOTUNE, processes=True)
    return node


def _bound(node: Map) -> bool:
    """Whether the user has said where its function is called."""
    return bool(node.synchronous) or node.executor is not None


CHANGES: dict[str, Callable[[Node], Node]] = {
    "map(num_parallel_calls=AUTOTUNE)": _in_threads,
    "map(num_parallel_calls=AUTOTUNE, processes=True)": _in_processes,
}
"""Each change by its name: what becomes of a step."""


def _edited(node: Node, edit: Callable[[Node], Node]) -> Node:
    """The tree with every step edited; the very same tree where nothing changes."""
    inputs = tuple([_edited(source, edit) for source in node.inputs])
    same = all(one is other for one, other in zip(inputs, node.inputs, strict=True))
    return edit(node if same else node.with_inputs(inputs))
