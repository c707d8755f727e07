# SPDX-License-Identifier: Apache-2.0
"""Laws 7 and 9: the replicas' parts are the batches, and so are sums and means over them."""

import json
from typing import Any

import numpy as np

from distinput.core.leaves import dtype_of
from distinput.core.nest import structure_of
from distinput.core.ragged_tensor import RaggedTensor
from distinput.core.state import State
from distinput.data.dataset import Dataset
from distinput.distribute.core.strategy import Strategy
from distinput.testing.elements import difference, exact, rows_of

__all__ = ["check_distributed"]


def check_distributed(strategy: Strategy, dataset: Dataset, options: Any = None) -> None:
    """Laws 7 and 9 in one process: the replicas' parts are the batches, and so are sums and means over them.

    In each step the rows of all replicas follow each other in order; over all steps they are the rows of the dataset.
    `gather`, SUM and MEAN along axis 0 are those of the rows of the step, each computed by NumPy in one piece. From the state
    at every step exactly the rest follows.

    Args:
      strategy: any strategy of one process.
      dataset: global batches of numbers or strings.
      options: `InputOptions`.

    Raises:
      AssertionError: a row, a number or a restart is wrong.

    >>> import distinput as di
    >>> strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1", "CPU:2"])
    >>> check_distributed(strategy, di.data.Dataset.range(7).batch(4))
    """
    distributed = strategy.experimental_distribute_dataset(dataset, options)
    steps: list[list[Any]] = []
    delivered: list[Any] = []
    states: list[State] = []
    with iter(distributed) as iterator:
        states.append(iterator.state())
        for step in iterator:
            parts = list(strategy.experimental_local_results(step))
            steps.append([exact(part) for part in parts])
            delivered += [row for part in parts if _has_rows(part) for row in rows_of(part)]
            _check_step(strategy, step, parts)
            states.append(iterator.state())
        states.append(iterator.state())
    wrong = difference(delivered, [row for batch in dataset.iter_pass(0) for row in rows_of(batch)])
    if wrong is not None:
        raise AssertionError(f"distributed over {strategy.num_replicas_in_sync}: {wrong}")
    for position, state in enumerate(states):
        with distributed.restore(json.loads(json.dumps(state))) as iterator:
            rest = [[exact(part) for part in strategy.experimental_local_results(step)] for step in iterator]
        wrong = difference(rest, steps[position:])
        if wrong is not None:
            raise AssertionError(
                f"distributed over {strategy.num_replicas_in_sync}, restart at step {position}: {wrong}"
            )


def _has_rows(part: Any) -> bool:
    return bool(len(structure_of(part).flatten(part)[0]))


def _check_step(strategy: Strategy, step: Any, parts: list[Any]) -> None:
    structure = structure_of(parts[0])
    columns = [structure.flatten(part) for part in parts]
    inner = [{leaf.shape[1:] for leaf in leaves} for leaves in zip(*columns, strict=True)]
    if any(len(shapes) > 1 for shapes in inner):
        return  # replicas without rows may not know dimensions that the data decides
    whole = [_joined(leaves) for leaves in zip(*columns, strict=True)]
    gathered = structure.flatten(strategy.gather(step, axis=0))
    for value, expected in zip(gathered, whole, strict=True):
        if exact(value) != exact(expected):
            raise AssertionError(f"gather over {strategy.num_replicas_in_sync}: got {value!r}, expected {expected!r}")
    numbers = [leaf for leaf in structure_of(step).flatten(step) if dtype_of(_first_part(strategy, leaf)).kind in "if"]
    for leaf in numbers:
        rows = _joined(strategy.experimental_local_results(leaf))
        if isinstance(rows, RaggedTensor):
            _check_ragged(strategy, leaf, rows)
            continue
        _check_number("SUM", strategy.reduce("SUM", leaf, axis=0), rows.sum(axis=0))
        if len(rows):
            _check_number("MEAN", strategy.reduce("MEAN", leaf, axis=0), rows.astype(np.float64).mean(axis=0))


def _joined(parts: Any) -> Any:
    """The rows of all parts, one after the other."""
    if not isinstance(parts[0], RaggedTensor):
        return np.concatenate(parts)
    lengths = np.concatenate([part.row_lengths() for part in parts])
    return RaggedTensor.from_row_lengths(_joined([part.values for part in parts]), lengths)


def _check_ragged(strategy: Strategy, leaf: Any, rows: RaggedTensor) -> None:
    """Sums and means over the values of all rows, and over the rows where there is one ragged dimension."""
    axes, flat = tuple(range(rows.ragged_rank + 1)), rows.flat_values
    _check_number("SUM", strategy.reduce("SUM", leaf, axis=axes), flat.sum(axis=0))
    if len(flat):
        _check_number("MEAN", strategy.reduce("MEAN", leaf, axis=axes), flat.astype(np.float64).mean(axis=0))
    if rows.ragged_rank == 1:
        there = np.arange(int(rows.row_lengths().max(initial=0))) < rows.row_lengths()[:, None]
        total = rows.to_padded(0).sum(axis=0)
        _check_number("SUM", strategy.reduce("SUM", leaf, axis=0), total)
        counts = there.sum(axis=0).reshape(-1, *[1] * (total.ndim - 1))
        _check_number("MEAN", strategy.reduce("MEAN", leaf, axis=0), total / counts)


def _first_part(strategy: Strategy, leaf: Any) -> Any:
    return strategy.experimental_local_results(leaf)[0]


def _check_number(operation: str, given: Any, expected: Any) -> None:
    close = np.allclose(np.asarray(given, np.float64), np.asarray(expected, np.float64), rtol=1e-6, atol=1e-6)
    if np.shape(given) != np.shape(expected) or not close:
        raise AssertionError(f"reduce({operation}, axis=0): got {given!r}, the rows in one piece give {expected!r}")
